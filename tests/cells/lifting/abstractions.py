import abc
from typing import Callable, Generic, NewType, ParamSpec, Protocol, TypedDict, TypeVar, runtime_checkable
T = TypeVar("T")
N = TypeVar("N", bound="Shape")
P = ParamSpec("P")
Metres = NewType("Metres", float)
Steps = NewType("Steps", Metres)
def twice(function: Callable[P, T], length: Metres = Metres(1.5)) -> tuple[Callable[P, T], Steps]:
    return function, Steps(2 * length)
@runtime_checkable
class Sized2(Protocol):
    def size(self) -> int: ...
class Box(Generic[T]):
    def __init__(self, item: T):
        self.item = item
    def get(self) -> T:
        return self.item
class IntBox(Box[int]):
    def size(self):
        return self.item
class Movie(TypedDict, total=False):
    title: str
    year: int
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
    @property
    @abc.abstractmethod
    def name(self): ...
class Square(Shape):
    def __init__(self, side):
        self.side = side
    def area(self):
        return self.side ** 2
    @property
    def name(self):
        return "square"
class Drawing:
    pass
Shape.register(Drawing)
Shape.register(complex)
box = IntBox(3)
# %%
%%parallel out=back
assert isinstance(box, Sized2) and type(box) is IntBox and isinstance(box, Box)
assert IntBox.__orig_bases__ == (Box[int],)
try:
    Shape()
except TypeError:
    pass
else:
    raise AssertionError
assert twice(len) == (len, 3.0) and Steps.__supertype__ is Metres and twice.__annotations__["length"] is Metres
assert isinstance(1j, Shape) and not isinstance(1, Shape)
back = [Box("s"), IntBox(4), Movie(title="t"), Square(3), Square(3).area(), Square(1).name, box, T, Box[int], P, Metres, isinstance(Drawing(), Shape)]
# %%
for generic, ints, movie, square, area, name, again, t, alias, p, metres, drawn in back:
    assert type(generic) is Box and type(ints) is IntBox and movie == {"title": "t"} and type(square) is Square
    assert area == 9 and name == "square" and type(again) is IntBox
    assert alias == Box[int], alias
    assert t is T and p is P and metres is Metres and drawn
