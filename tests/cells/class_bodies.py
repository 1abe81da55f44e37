# reads: Base Meta Node Plain _Leaf__private config deco fallback items later property registry super thing x
# binds: Leaf Node Plain
# attributes: registry.add
@registry.add
class Leaf(Base, metaclass=Meta, option=config):
    x = x
    y = x
    table = [x for _ in items]
    rows = [_ for _ in y]
    @property
    def prop(self): return self.x
    @prop.setter
    def prop(self, value): self.x = later
    @deco(y)
    def method(self, n=fallback, m=y): return super().total() + __class__.x + thing
    def _mangled(self): return __private + self.__own
class Node(Node):
    make = lambda self: Node()
class Plain:
    first: Plain
