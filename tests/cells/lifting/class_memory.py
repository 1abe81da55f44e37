import dataclasses, enum, threading
from typing import ClassVar, NamedTuple
import numpy as np, torch
@dataclasses.dataclass(eq=False)
class Sample:
    values: object = torch.zeros(9)
    count: ClassVar[np.ndarray] = np.zeros(9)
@dataclasses.dataclass(slots=True, eq=False)
class Slotted:
    values: object = torch.zeros(9)
class Row(NamedTuple):
    values: object = torch.zeros(9)
class Table(enum.Enum):
    FIRST = {"a": np.zeros(9)}
    SECOND = [np.zeros(9)]
    def __init__(self, _):
        self.seen, self.lock = np.zeros(9), threading.Lock()
class Counting:
    def __init_subclass__(cls):
        cls.counts = np.zeros(9)
class Counted(Counting): pass
class Maker(type):
    def __new__(kind, *given):
        made = super().__new__(kind, *given)
        made.table = np.zeros(9)
        return made
class Made(metaclass=Maker): pass
def with_table(kind):
    kind.table = np.zeros(9)
    return kind
@with_table
class Decorated: pass
class Descriptor:
    def __init__(self): self.held = np.zeros(9)
    def __get__(self, _, kind): return self.held
class Described: part = Descriptor()
class Several:
    first, second = np.zeros(9), np.zeros(9)
    third = fourth = np.zeros(9)
    layer, other = torch.nn.Linear(1, 9), 0
    if first is not second: fifth = np.zeros(9)
    class Inner: sixth, seventh = np.zeros(9), np.zeros(9)
class Private:
    __table = np.zeros(9)
    __count = 0
    @classmethod
    def table(cls): return cls.__table
    @classmethod
    def count(cls):
        cls.__count += 1
        return cls.__count
class Methods:
    def first(self, to=np.zeros(9)): return to
    @staticmethod
    def second(to=np.zeros(9)): return to
    @classmethod
    def third(cls, to=np.zeros(9)): return to
    def __init_subclass__(cls): pass
Methods.first.seen = np.zeros(9)
Private.count()
torch.nn.init.zeros_(Several.layer.bias)
sample, slotted, row = Sample(), Slotted(), Row()
# %%
%%parallel out=back
for written in (Sample().values, Sample.count, Slotted().values, Row().values, Table.FIRST.value["a"],
        Table.SECOND.value[0], Counted.counts, Made.table, Decorated.table, Described.part, Several.second, Several.third,
        Several.fifth, Several.layer.bias.data, Several.Inner.seventh, Private.table(), Methods().first(), Methods.second(),
        Methods.third(), Methods.first.seen):
    written[rank] = 1
sample.values[4 + rank] = slotted.values[4 + rank] = row.values[4 + rank] = Several.third[4 + rank] = 2
for same in Sample().values, Sample.values, Slotted().values, Row().values, Several.fourth:
    assert same[4 + rank] == 2
back = Private.count()
# %%
for seen in (Sample().values, Sample.count, Slotted().values, Row().values, Table.FIRST.value["a"],
        Table.SECOND.value[0], Counted.counts, Made.table, Decorated.table, Described.part, Several.second, Several.third,
        Several.fifth, Several.layer.bias, Several.Inner.seventh, Private.table(), Methods().first(), Methods.second(),
        Methods.third(), Methods.first.seen):
    assert seen[: len(back)].all() and not seen[len(back) : 4].any(), seen
assert set(back) == {2} and sample.values is Sample().values is Sample.values and slotted.values is Slotted().values
