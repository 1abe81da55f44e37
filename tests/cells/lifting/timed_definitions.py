%%time
def timed(x):
    return x + 1
class Timed:
    def get(self): return timed(1)
class Bare: pass
# %%
%%parallel out=back
back = timed(1), Timed().get(), Timed(), Bare()
# %%
assert all(b[:2] == (2, 2) and type(b[2]) is Timed and type(b[3]) is Bare for b in back), back
# %%
%%capture
def captured(): return "captured"
# %%
%%parallel out=back
back = captured()
# %%
assert all(b == "captured" for b in back)
