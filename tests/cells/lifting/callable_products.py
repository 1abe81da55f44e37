%%writefile currying.py
import importlib
class curry:
    "As toolz has it: an instance leads to its function by `func`, and pickles by the name of its decorated one."
    def __init__(self, func, *args):
        self.func, self.args = func, args
        self.__name__, self.__qualname__, self.__module__ = func.__name__, func.__qualname__, func.__module__
    def __call__(self, *args):
        try:
            return self.func(*self.args, *args)
        except TypeError:
            return type(self)(self.func, *self.args, *args)
    def __reduce__(self):
        decorated = getattr(importlib.import_module(self.__module__), self.__name__, None)
        if not isinstance(decorated, curry) or decorated.func is not self.func:
            return type(self), (self.func, *self.args)
        return restored, (f"{self.__module__}:{self.__name__}", self.args)
def restored(name, args):
    module, _, name = name.partition(":")
    decorated = getattr(importlib.import_module(module), name)
    return curry(decorated.func, *args) if args else decorated
# %%
import importlib
importlib.invalidate_caches()
from currying import curry
scale, limits = 3, [7]
@curry
def add(x, y, limit=limits[0]):
    return min(x + y * scale, limit)
@curry
def other(x, y):
    return x - y
held = {"by": other(9)}
one, limits[0], old = add(1), 0, other
@curry
def other(x, y):
    return x * y
# %%
%%parallel
assert one(1) == 4 and one(5) == 7
# %%
%%parallel out=back
assert add(2)(1) == 5 and one(1) == 4 and add.func is one.func
assert held["by"](1) == 8 and old(9, 1) == 8 and other(2)(3) == 6
back = add, one, held
# %%
for a, o, h in back:
    assert a is add and o(1) == 4 and h["by"](1) == 8
