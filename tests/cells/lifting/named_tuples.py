import collections
from typing import NamedTuple
Pair = collections.namedtuple("Pair", "a b", defaults=[4])
class Point(NamedTuple):
    x: int
    y: int = 2
    def norm(self):
        return self.x + self.y
class Bare(NamedTuple):
    x: int
    p: Point = Point(1)
class Sub(collections.namedtuple("Base", "u v")):
    @property
    def w(self):
        return self.u * self.v
value = Point(5), Pair(1), Bare(1), Sub(2, 3)
# %%
%%parallel out=made
made = [Point(rank), Pair(rank), Bare(rank), Sub(rank, 3), Point(1).norm(), Sub(2, 3).w,
        [type(v) for v in value] == [Point, Pair, Bare, Sub], value]
# %%
for rank, (point, pair, bare, sub, norm, w, same, back) in enumerate(made):
    assert type(point) is Point and point == (rank, 2) and type(pair) is Pair and pair == (rank, 4)
    assert type(bare) is Bare and type(bare.p) is Point and type(sub) is Sub and sub.w == 3 * rank
    assert norm == 3 and w == 6 and same and back == value and [type(b) for b in back] == [type(v) for v in value]
