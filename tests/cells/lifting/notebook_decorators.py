import functools
decorated = []
def logged(f):
    decorated.append(f.__name__)
    @functools.wraps(f)
    def inner(*args, **kwargs):
        inner.calls += 1
        return f(*args, **kwargs) + 1
    inner.calls = 0
    return inner
def plain(f):
    def wrapper(x):
        return f(x) * 10
    return wrapper
def times(n):
    def decorate(f):
        @functools.wraps(f)
        def inner(x):
            return f(x) * n
        return inner
    return decorate
def tagged(cls):
    cls.tag = "tagged"
    decorated.append(cls.__name__)
    return cls
registry = {}
def register(f):
    registry[f.__name__] = f
    return f
class Remember:
    def __init__(self, f):
        functools.update_wrapper(self, f)
        self.f, self.seen = f, []
    def __call__(self, x):
        self.seen.append(x)
        return self.f(x)
@logged
def add(a, b=2):
    return a + b
@plain
def unwrapped(x):
    return x + 1
@times(3)
@logged
def stacked(x):
    return x
@tagged
class Thing:
    @times(2)
    def double(self):
        return 4
    def __repr__(self):
        return "Thing"
@register
def listed(x):
    return -x
@Remember
def noted(x):
    return fib(x)
@functools.lru_cache
@logged
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
add(1)
# %%
%%parallel out=back
assert add(1) == 4 and add.calls == 2 and unwrapped(1) == 20 and stacked(2) == 9 and add.__wrapped__(1) == 3
assert Thing.tag == "tagged" and repr(Thing()) == "Thing"
assert listed(1) == -1 and registry["listed"] is listed
assert noted(1) == 2 and noted.seen == [1], (noted(1), noted.seen)
assert fib(3) == 7, fib(3)
back = [Thing(), listed, len(decorated), noted.seen]
# %%
for thing, f, n, s in back:
    assert type(thing) is Thing and f is listed and n == len(decorated) == 4, (n, decorated)
assert add.calls == 1
