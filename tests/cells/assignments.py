# reads: int print start
# binds: a b first last not_yet rest total x y z
x = 1
y = z = x
a, (b, *rest) = start, (x, y, z)
[first, last] = a, b
print(x, y, z, rest)
total: int = first
not_yet: int
print(total)
