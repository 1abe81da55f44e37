import dataclasses
from dataclasses import KW_ONLY, MISSING, InitVar, dataclass, field
from typing import ClassVar
@dataclass
class Plain:
    x: int
    y: float = 0.5
    tags: list = field(default_factory=list)
@dataclass(frozen=True)
class Frozen:
    x: int
    limit: ClassVar[int] = 9
    name: str = field(default="n", repr=False)
@dataclass(slots=True)
class Slotted:
    x: int
    y: list = field(default_factory=list)
@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Strict:
    x: int
    y: int = 2
    @property
    def total(self):
        return self.x + self.y
@dataclass
class Derived(Plain):
    z: int = 7
    start: InitVar[int] = 1
    def __post_init__(self, start):
        self.z += start
    def area(self):
        return self.x * self.z
@dataclass
class Mixed:
    x: int
    _: KW_ONLY
    y: int = 2
def first(values, default=MISSING):
    return default is MISSING
given = [Plain(1), Frozen(2), Slotted(3), Strict(x=4), Derived(5)]
# %%
%%parallel out=made,kinds,fields
kinds = [type(one) is kind for one, kind in zip(given, (Plain, Frozen, Slotted, Strict, Derived))]
made = [Plain(rank, tags=["a"]), Frozen(2), Slotted(3), Strict(x=4), Derived(5), given]
fields = [f.name for f in dataclasses.fields(Derived)]
assert Strict(x=1) < Strict(x=2) and Strict(x=1).total == 3 and Derived(5).area() == 40
assert Frozen.limit == 9 and repr(Frozen(1)) == "Frozen(x=1)"
assert Mixed(1, y=3) == Mixed(x=1, y=3) and first([]) and first([], MISSING)
assert dataclasses.fields(Plain)[0].default is MISSING
assert Plain(1).tags is not Plain(1).tags
# %%
for rank, (one, *others, back) in enumerate(made):
    assert one == Plain(rank, tags=["a"]) and others == [Frozen(2), Slotted(3), Strict(x=4), Derived(5)]
    assert [type(o) for o in others] == [Frozen, Slotted, Strict, Derived]
    assert back == given
assert all(all(k) for k in kinds) and fields[0] == ["x", "y", "tags", "z"], (kinds, fields)
