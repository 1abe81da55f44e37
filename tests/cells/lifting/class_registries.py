import enum, functools
registry, names, table = [], [], {}
def seen(cls):
    table[cls.__name__] = cls
class Base:
    def __init_subclass__(cls, **rest):
        super().__init_subclass__(**rest)
        registry.append(cls)
        names.append(cls.__name__)
        seen(cls)
class One(Base):
    def get(self): return 1
class Two(One, Base):
    pass
class Meta(type):
    made = []
    def __init__(cls, *rest):
        super().__init__(*rest)
        Meta.made.append(cls.__name__)
class Uses(metaclass=Meta): ...
class Other:
    converted = functools.partial(int, base=2)
    kind = One
    def own(self): return self._Other__hidden()
    def __hidden(self): return "hidden"
    if True:
        def inside(self): return "inside"
    two = property(lambda self: 2)
def helper(x, cache={}):
    cache[x] = helper
    return len(cache)
helper(1)
# %%
%%parallel out=back
assert registry == [One, Two] and names == ["One", "Two"] and table == {"One": One, "Two": Two}, (registry, names, table)
assert Meta.made == ["Uses"], Meta.made
assert Other.converted("11") == 3 and Other.kind is One and Other().own() == "hidden" and Other().inside() == "inside" and Other().two == 2
assert helper(2) == 2 and helper.__defaults__[0][1] is helper
class Third(Base): pass
assert names == ["One", "Two", "Third"]
back = registry[0](), registry[0], Uses(), helper
# %%
assert all(type(o) is One and k is One and type(u) is Uses and h is helper for o, k, u, h in back)
assert names == ["One", "Two"]
