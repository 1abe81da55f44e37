import math
scale = 3
def twice(x):
    return x * 2
def scaled(x, *more, offset=0, **options):
    return twice(x) * scale + offset + sum(more) + len(options)
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
def even(n):
    return n == 0 or odd(n - 1)
def odd(n):
    return n != 0 and even(n - 1)
def between(low, /, middle, *, high):
    return low < middle < high
def root(x):
    "The root."
    def inner(y):
        return math.sqrt(y) + scale
    return inner(x)
# %%
%%parallel out=seen
seen = [scaled(1, 2, offset=3, a=1), fact(5), even(10), between(1, 2, high=3), root(4), root.__doc__, twice]
# %%
assert all(s == [12, 120, True, True, 5.0, "The root.", twice] for s in seen), seen
