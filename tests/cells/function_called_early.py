# reads: ready setting
# perhaps:
# binds: f mode setting
def f():
    return setting
if ready:
    mode = f()
else:
    setting = 1
    mode = f()
