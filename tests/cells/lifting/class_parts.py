import functools
class Outer:
    __slots__ = ("a", "_b", "__c", "__dict__")
    count = 0
    class Inner:
        unit = "m"
        def __init__(self, v):
            self.v = v
        class Deep:
            x = 1
    def __init__(self, a):
        self.a, self._b, self.__c = a, a + 1, a + 2
    @property
    def b(self):
        return self._b
    @b.setter
    def b(self, value):
        self._b = value * 10
    @classmethod
    def make(cls, a=5):
        return cls(a)
    @staticmethod
    def helper(x):
        return x + 1
    @functools.cached_property
    def costly(self):
        return self.__c * 100
    @functools.lru_cache(maxsize=None)
    def remembered(self, x):
        return x
    def __call__(self, x):
        return self.a + x
    def __eq__(self, other):
        return type(self) is type(other) and self.a == other.a
    def __hash__(self):
        return hash(self.a)
    def __getstate__(self):
        return {"a": self.a, "b": self._b, "c": self.__c}
    def __setstate__(self, state):
        self.a, self._b, self.__c = state["a"], state["b"], state["c"]
class Child(Outer):
    def __init__(self, a):
        super().__init__(a)
        self.extra = Outer.Inner(a)
class Counted:
    made = 0
    def __new__(cls, *args):
        cls.made += 1
        return super().__new__(cls)
    def __reduce__(self):
        return Counted, ()
one, deep = Child(1), Outer.Inner.Deep()
# %%
%%parallel out=back
assert one.b == 2 and one(4) == 5 and one.costly == 300 and type(deep) is Outer.Inner.Deep
one.b = 3
assert one.b == 30 and Outer.make() == Outer(5) and Outer.helper(1) == 2 and Child.make(2).extra.v == 2
assert Outer.Inner.unit == "m" and Outer(1).remembered(2) == 2
back = [Child(4), Outer.Inner(2), deep, Outer.Inner, Counted()]
# %%
for child, inner, d, kind, counted in back:
    assert type(child) is Child and child.a == 4 and type(inner) is Outer.Inner and type(d) is Outer.Inner.Deep
    assert kind is Outer.Inner and type(counted) is Counted
