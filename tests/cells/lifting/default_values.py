evaluated = []
def made(x):
    evaluated.append(x)
    return [x]
base = 10
def append(item, into=made(1)):
    into.append(item)
    return into
def strict(a, b=base, /, c=made(2), *, d=made(3), e="literal", f=None):
    return a, b, c, d, e, f
class Holder:
    shared = made(4)
    def method(self, x=made(5), *, y=base):
        return x, y
    @classmethod
    def cls(cls, x=made(6)):
        return x
    @staticmethod
    def static(x=made(7)):
        return x
    sizes = {k: base for k in "ab"}
def nested(k=lambda x: x + base, g={"a": [base]}):
    return k(1), g
append("before")
base = 99
strict.__kwdefaults__["e"] = "changed"
# %%
%%parallel out=back
back = append(rank), strict(0), Holder().method(), Holder.cls(), Holder.static(), Holder.shared, Holder.sizes, nested(), evaluated
# %%
for rank, one in enumerate(back):
    assert one == ([1, "before", rank], (0, 10, [2], [3], "changed", None), ([5], 10), [6], [7], [4],
                   {"a": 10, "b": 10}, (100, {"a": [10]}), [1, 2, 3, 4, 5, 6, 7]), one
assert append.__defaults__ == ([1, "before"],) and evaluated == [1, 2, 3, 4, 5, 6, 7]
