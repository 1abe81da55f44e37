# reads: again print ready start y
# perhaps: y
# binds: x y
while True:
    x = start()
    if ready(x):
        break
print(x)
while again:
    y = x
print(y)
