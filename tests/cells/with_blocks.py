# reads: FileNotFoundError contextlib lock maybe open print suppress torch x
# perhaps: maybe
# binds: f maybe text y
# attributes: contextlib.suppress f.read torch.no_grad
with open(x) as f, lock:
    text = f.read()
with torch.no_grad():
    y = text
with contextlib.suppress(FileNotFoundError):
    maybe = y
with suppress():
    maybe = y
print(text, y, maybe)
