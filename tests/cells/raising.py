# reads: NotImplementedError ValueError kind print
# binds: x
if kind == 1:
    x = 1
elif kind == 2:
    x = 2
else:
    raise ValueError(kind) from NotImplementedError
print(x)
