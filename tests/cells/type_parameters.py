# python: 3.12
# reads: Base Bound K T dict list
# binds: Alias Box Pair first plain
# annotated: V
type Alias = list[Bound]
type Pair[X] = dict[X, K]
def first[T: Bound](items: list[T], other: "V") -> T:
    made: T = items[0]
    return made, T
class Box[T](Base[T]):
    item: T
    def get(self) -> T: return self.item
plain: T
