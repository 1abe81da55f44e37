# reads: D base deco global_default late_bound rank scale
# binds: apply decorated g helper kernel late_bound offset twice
offset = 1
def kernel(x, y: D = global_default, *args, k=base, **options):
    local = helper(x) + offset
    return [local * scale for local in args], options, y, k
def helper(x):
    if x: return kernel(x - 1)
    return twice(x)
def twice(x): return 2 * x
kernel(rank)
@deco
def decorated():
    return late_bound
late_bound = 1
decorated()
def g(): return g
def apply(): return late_bound
