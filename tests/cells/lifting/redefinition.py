def version(): return 1
class Thing:
    def value(self): return 1
class Bare: x = 1
# %%
%%parallel out=first
first = version(), Thing().value(), Bare.x
# %%
def version(): return 2
class Thing:
    def value(self): return 2
class Bare: x = 2
# %%
%%parallel out=second
second = version(), Thing().value(), Bare.x, Thing(), Bare()
# %%
assert all(f == (1, 1, 1) for f in first) and all(s[:3] == (2, 2, 2) for s in second), (first, second)
assert all(type(s[3]) is Thing and type(s[4]) is Bare for s in second)
# %%
def stale(): return "old"
def other(): return stale()
def stale(): return "new"
class Twice: value = 1
class Twice: value = 2
def fresh(): return "f1"
# %%
def fresh(): return "f2"
old_fresh = fresh
def fresh(): return "f3" + old_fresh()
keep = version
def version(): return 3
# %%
%%parallel out=back
back = stale(), other(), Twice.value, fresh(), keep(), version()
# %%
assert all(b == ("new", "new", 2, "f3f2", 2, 3) for b in back), back
