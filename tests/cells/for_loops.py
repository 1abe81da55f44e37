# reads: e i items loss print range step steps
# perhaps: i loss
# binds: a e epoch i last loss twice
for i in items:
    loss = step(i)
print(i, loss)
for epoch in range(100):
    last = step(epoch)
    if last < e:
        break
print(epoch, last)
for twice in (1, 2):
    a = twice
else:
    e = steps
print(a)
