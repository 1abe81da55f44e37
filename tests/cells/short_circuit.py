# reads: first n print second third
# perhaps: n
# binds: n x
(x := first) and print(x)
0 < second < (n := third)
print(n)
