# reads: a default key print
# binds: f g
f = lambda x, y=default, *z, **k: (x, y, z, k, a)
g = lambda: (inner := key) and inner
print(f, g)
