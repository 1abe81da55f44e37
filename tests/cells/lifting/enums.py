import enum, threading
import numpy as np
class Colour(enum.Enum):
    RED = 1
    GREEN = enum.auto()
    CRIMSON = 1
    def nice(self):
        return self is Colour.GREEN
class Bits(enum.Flag):
    R = enum.auto()
    W = enum.auto()
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5
class Kind(str, enum.Enum):
    A = "a"
class Planet(enum.Enum):
    EARTH = (5.9, 6.3)
    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius
        self.lock = threading.Lock()
Made = enum.Enum("Made", "X Y")
class Point(tuple, enum.Enum):
    ZERO = (0, 0)
    def norm(self): return "old"
Colour.RED.weight = 5
Colour.GREEN._near = [Colour.RED]
Colour.added = 7
Colour.GREEN.seen = np.zeros(9)
Planet.EARTH.mass = 6.0
Point.ZERO.norm = lambda: "new"
Point.far = lambda self: self[0]
table = {Colour.RED: 1, Bits.R | Bits.W: 2, Made.X: 3}
# %%
%%parallel out=back
assert Colour.CRIMSON is Colour.RED and Colour.GREEN.nice() and Colour(2) is Colour.GREEN
assert Colour.CRIMSON.weight == 5 and Colour.GREEN._near == [Colour.RED] and Colour.added == Colour.RED.added == 7
assert Point.ZERO.norm() == "new" and Point.ZERO.far() == 0 and not hasattr(Colour.GREEN, "weight")
Colour.GREEN.seen[rank] = 1
assert table[Colour.RED] == 1 and table[Bits.W | Bits.R] == 2 and table[Made.X] == 3
back = [Colour.GREEN, Bits.R | Bits.W, Level.HIGH, Kind.A, Planet.EARTH, Made.Y, Planet.EARTH.mass, table]
# %%
for colour, bits, level, kind, planet, made, mass, t in back:
    assert colour is Colour.GREEN and bits == Bits.R | Bits.W and type(bits) is Bits and level is Level.HIGH
    assert kind is Kind.A and planet is Planet.EARTH and made is Made.Y and mass == 6.0 and t == table
assert Colour.GREEN.seen[: len(back)].all()
