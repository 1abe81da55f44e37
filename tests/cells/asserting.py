# reads: data m print
# perhaps: m
# binds: m
assert (m := data), m
print(m)
