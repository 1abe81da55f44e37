import inspect, struct, threading, typing
from dataclasses import MISSING
header, state, blank = struct.Struct("<id"), threading.local(), threading.local()
state.value = [1]
class Session(threading.local):
    def __init__(self, name="n"): self.name = name
Row = typing.TypedDict("Row", {"a": int, "b": str}, total=False)
def unpacked(data): return header.unpack(data)
def given(x=MISSING, y=inspect.Parameter.empty): return x is not MISSING, y is not inspect.Parameter.empty
# %%
%%parallel out=back
assert Row(a=1) == {"a": 1} and typing.is_typeddict(Row) and Row.__optional_keys__ == {"a", "b"}
blank.own = rank
back = unpacked(header.pack(rank, 0.5)), state.value, blank.own, Session("m").name, given(), given(1, 2), header, state, Row
# %%
for rank, (numbers, value, own, name, nothing, both, layout, local, kind) in enumerate(back):
    assert (numbers, value, own, name, nothing, both) == ((rank, 0.5), [1], rank, "m", (False, False), (True, True))
    assert layout.format == header.format and local.value == [1] and kind is Row
assert not vars(blank)
