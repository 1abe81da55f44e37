# reads: done print range x
# perhaps: x
# binds: i x y
for i in range(10):
    y = i
    if done(y):
        continue
    x = y
print(x, y)
