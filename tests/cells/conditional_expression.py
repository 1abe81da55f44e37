# reads: a b c print y
# perhaps: y
# binds: x y
x = (y := a) if c else b
print(x, y)
