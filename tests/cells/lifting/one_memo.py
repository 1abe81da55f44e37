shared = [1]
def by_default(x=shared):
    return x
def by_global():
    return shared
def make():
    held = shared
    return lambda: held
by_closure = make()
class Holder:
    kept = shared
    def __init__(self): self.own = shared
    def method(self, x=shared): return x
holder = Holder()
by_default.attribute = shared
alias, pair = by_default, {"a": shared, "b": by_default, "c": holder}
# %%
%%parallel out=back
everything = [by_default(), by_global(), by_closure(), Holder.kept, holder.own, holder.method(), by_default.attribute, pair["a"]]
back = all(one is shared for one in everything), alias is by_default, pair["b"] is by_default, pair["c"] is holder, [one is shared for one in everything]
# %%
assert all(b[:4] == (True, True, True, True) for b in back), back
