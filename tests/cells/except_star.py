# python: 3.11
# reads: OSError group print run
# perhaps: group
# binds: group x
try:
    x = run()
except* OSError as group:
    x = None
print(x, group)
