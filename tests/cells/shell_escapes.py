# reads: beta get_ipython n path rank width
# binds: words
# attributes: path.name
words = get_ipython().getoutput("echo alpha {rank + 1:>{width}} $beta $$HOME {{n}} ${path.name}")
get_ipython().system("awk '{print $1}' {words[0]} {n!r}")
