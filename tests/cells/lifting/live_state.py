class Model:
    rate = 1
    names = ["a"]
    def step(self):
        return "old"
    def keep(self):
        return self.step(), self.rate
    @property
    def size(self):
        return 1
    @classmethod
    def build(cls):
        return "built old"
    class Part:
        weight = 1
def helper(x=1):
    return x
helper.calls = 5
helper.log = []
Model.rate = 7
Model.names.append("b")
Model.step = lambda self: "patched"
Model.size = property(lambda self: "patched size")
Model.build = classmethod(lambda cls: "built new")
Model.__len__ = lambda self: 42
Model.__repr__ = lambda self: "shown"
Model.added = {"x": helper.log}
Model.Part.weight = 5
Model.late_method = helper
def method(self): return "method"
Model.method = method
helper.__defaults__ = (9,)
helper.__doc__ = "A new word."
def replaced(): return "before"
replaced.__code__ = (lambda: "after").__code__
class Trimmed:
    gone = 1
    def also(self): ...
    def stays(self): return 1
del Trimmed.gone
del Trimmed.also
# %%
%%parallel out=back
m = Model()
back = (m.keep(), Model.names, m.size, Model.build(), len(m), repr(m), Model.Part.weight, m.late_method() is m, m.method(),
        helper(), helper.calls, helper.__doc__, replaced(), hasattr(Trimmed, "gone"), hasattr(Trimmed, "also"), Trimmed().stays(),
        Model.added["x"] is helper.log)
# %%
want = (("patched", 7), ["a", "b"], "patched size", "built new", 42, "shown", 5, True, "method", 9, 5, "A new word.", "after",
        False, False, 1, True)
for b in back:
    assert b == want, b
