import enum
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
Made = enum.Enum("Made", "X Y")
table = {Colour.RED: 1, Bits.R | Bits.W: 2, Made.X: 3}
# %%
%%parallel out=back
assert Colour.CRIMSON is Colour.RED and Colour.GREEN.nice() and Colour(2) is Colour.GREEN
assert table[Colour.RED] == 1 and table[Bits.W | Bits.R] == 2 and table[Made.X] == 3
back = [Colour.GREEN, Bits.R | Bits.W, Level.HIGH, Kind.A, Planet.EARTH, Made.Y, Planet.EARTH.mass, table]
# %%
for colour, bits, level, kind, planet, made, mass, t in back:
    assert colour is Colour.GREEN and bits == Bits.R | Bits.W and type(bits) is Bits and level is Level.HIGH
    assert kind is Kind.A and planet is Planet.EARTH and made is Made.Y and mass == 5.9 and t == table
