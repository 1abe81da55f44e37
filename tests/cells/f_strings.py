# reads: name print rank value width
# binds: text
text = f"{rank!r:>{width}} {{literal}} {value=}"
print(f"{text} {[x for x in name]}")
