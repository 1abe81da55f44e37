import contextlib, functools, torch
@functools.lru_cache(maxsize=8)
def slow(n):
    return n if n < 2 else slow(n - 1) + slow(n - 2)
@contextlib.contextmanager
def opened(name):
    yield name.upper()
@functools.singledispatch
def show(x):
    return "any"
@show.register
def _(x: int):
    return "int"
@show.register(list)
def show_list(x):
    return "list of " + ", ".join(map(show, x))
@functools.total_ordering
class Version:
    def __init__(self, n):
        self.n = n
    def __lt__(self, other):
        return self.n < other.n
    def __eq__(self, other):
        return self.n == other.n
@torch.no_grad()
def quiet(x):
    return (x * 2).requires_grad
@torch.jit.script
def scripted(x: torch.Tensor, n: int = 3):
    for _ in range(n):
        x = x + 1
    return x
@functools.cache
def cached():
    return object()
slow(5)
# %%
%%parallel out=back
assert slow(20) == 6765 and slow.cache_info().maxsize == 8
with opened("a") as name:
    assert name == "A"
assert show(1) == "int" and show([1, "a"]) == "list of int, any" and show(2.0) == "any"
assert Version(2) >= Version(1) and not quiet(torch.ones(1, requires_grad=True))
assert scripted(torch.zeros(1)).item() == 3
assert cached() is cached()
back = [slow, show, Version(3), opened, quiet]
# %%
for s, sh, v, o, q in back:
    assert s is slow and sh is show and type(v) is Version and o is opened and q is quiet
