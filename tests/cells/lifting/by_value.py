import functools, types
factor = 3
triple = lambda x: x * factor
def make_counter(start):
    count = start
    def bump(by=1):
        nonlocal count
        count += by
        return count
    return bump
def make_fact():
    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)
    return fact
def keep(content): return lambda: content
nothing = keep(None)
counter, fact = make_counter(5), make_fact()
part = functools.partial(lambda x, y: (x, y, factor), 1, y=2)
class Machine:
    def __init__(self, k): self.k = k
    def run(self, x): return self.k * x
    def __call__(self, x): return self.k + x
machine = Machine(4)
bound = machine.run
class Hiding:
    def __hidden(self): return "hidden"
    def given(self): return self.__hidden
hidden = Hiding().given()
loose = types.MethodType(lambda self, x: (self.v, x), types.SimpleNamespace(v=3))
exec("def made(x):\n    return x + factor")
exec("class Made:\n    def get(self): return factor")
table = {"double": lambda x: 2 * x, "f": make_fact()}
nested = lambda: (lambda y: triple(y) + 1)
composed = functools.reduce(lambda f, g: lambda x: g(f(x)), [triple, nested()])
def share():
    state = []
    return (lambda x: state.append(x)), (lambda: state)
push, look = share()
def count():
    n = 0
    def step():
        nonlocal n
        n += 1
        return step
    return step, (lambda: n)
step, steps = count()
fact.__defaults__
method = Machine(2).__call__
builtin = "abc".upper
getter = functools.partialmethod
made_once = Made()
# %%
%%parallel out=back
push(rank)
assert hidden() == "hidden" and loose(1) == (3, 1)
assert nothing() is None
assert step()() is step and steps() == 2
back = (triple(2), counter(), counter(), fact(5), part(), bound(3), machine(1), made(1), made_once.get(), table["double"](4),
        table["f"](3), nested()(1), composed(1), look(), method(1), builtin(), bound.__self__ is machine, type(made_once) is Made, keep(None))
# %%
for rank, (*b, none) in enumerate(back):
    assert none() is None
    assert tuple(b) == (6, 6, 7, 120, (1, 2, 3), 12, 5, 4, 3, 8, 6, 4, 10, [rank], 3, "ABC", True, True), b
assert counter() == 6 and look() == [] and steps() == 0
