import dataclasses, functools, json, os, statistics, types
import numpy as np
calls, last, SCALE, n_calls = np.zeros(3), np.zeros(3), 1, 0
def index():
    return int(os.environ.get("RANK", 2))
def timed(f):
    mine = np.zeros(3)
    @functools.wraps(f)
    def wrapper(*args):
        global n_calls
        n_calls += 1
        calls[index()] += 1
        mine[index()] += 1
        return f(*args) * SCALE + later()
    wrapper.mine = mine
    return wrapper
def later():
    return 0
mean, norm = timed(statistics.mean), timed(np.linalg.norm)
def losses(x, table=np.zeros(3)):
    table[index()] += 1
    return mean(x)
losses.__module__ = "losses"
class Elsewhere:
    __module__ = "mylib"
    table = np.zeros(3)
    def __init__(self): self.own = np.zeros(3)
    def note(self): self.own[index()] += 1; Elsewhere.table[index()] += 1; return self
def logged(cls):
    class New(cls):
        def note(self, line): last[index()] += line; self.lines[index()] += 1
        def __init__(self): self.lines = np.zeros(3)
    functools.update_wrapper(New, cls, updated=())
    return New
Decoder = logged(json.JSONDecoder)
Made = types.new_class("Made", (), {}, lambda body: body.update(table=np.zeros(3), put=lambda self: np.add.at(self.table, index(), 1)))
@dataclasses.dataclass
class Settings:
    rate: int = 1
    size = timed(abs)
Settings.mean = staticmethod(timed(statistics.mean))
elsewhere, decoder, made = Elsewhere(), Decoder(), Made()
loads = functools.lru_cache(json.loads)
with_partial = functools.lru_cache(functools.partial(json.loads))
# %%
%%parallel nprocs=2 out=back
SCALE = 1 + rank
def later(): return 10
assert mean([2, 2]) == 2 * SCALE + 10 and norm(np.ones(4)) == 2 * SCALE + 10 and n_calls == 2
assert losses([1]) == SCALE + 10 and losses.__module__ == "losses" and mean.__module__ == "statistics"
elsewhere.note(); decoder.note("x" and 1); made.put()
assert Settings.size(-3) == 3 * SCALE + 10 and Settings.mean([1, 3]) == 2 * SCALE + 10
assert loads("[1]") is loads("[1]") and with_partial("2") == 2
back = mean, losses, elsewhere, decoder, made, [mean], timed(statistics.mode)
# %%
assert calls.tolist() == [5, 5, 0] and n_calls == 0, calls
assert mean.mine.tolist() == [2, 2, 0] and norm.mine.tolist() == [1, 1, 0], mean.mine
assert losses.__defaults__[0].tolist() == [1, 1, 0] and losses([1]) == 1
assert Elsewhere.table.tolist() == [1, 1, 0] == elsewhere.own.tolist(), Elsewhere.table
assert last.tolist() == [1, 1, 0] == decoder.lines.tolist() and Made.table.tolist() == [1, 1, 0]
for f, g, e, d, m, [in_list], new in back:
    assert f is mean is in_list and g is losses, (f, mean)
    assert type(e) is Elsewhere and type(d) is Decoder and type(m) is Made
    assert new([3, 3]) == 3 and type(new.mine) is np.ndarray
