handlers = {}
def handler(name):
    def decorate(f):
        handlers[name] = f
        return f
    return decorate
@handler("a")
def on_a(x):
    return "a", x
@handler("b")
def on_b(x, table=handlers):
    return table["a"](x)
class Node:
    kinds = []
    def __init__(self, children=()):
        self.children = children
class Leaf(Node): pass
Node.kinds.append(Leaf)
Node.leaf = Leaf()
root = Node([Leaf()])
def selfish(x=None): return x
selfish.__defaults__ = (selfish,)
class Ring: pass
Ring.me = Ring()
Ring.me.ring = Ring
# %%
%%parallel out=back
assert handlers["a"] is on_a and on_b(1) == ("a", 1) and handlers["b"] is on_b
assert Node.kinds == [Leaf] and type(Node.leaf) is Leaf and selfish() is selfish
assert Ring.me.ring is Ring and type(Ring.me) is Ring
back = Node.leaf, root, Ring.me
# %%
assert all(type(l) is Leaf and type(r) is Node and type(r.children[0]) is Leaf and type(m) is Ring for l, r, m in back)
