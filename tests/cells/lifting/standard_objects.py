import contextvars, inspect, struct, sys, threading, typing, weakref
from dataclasses import MISSING
header, state, blank = struct.Struct("<id"), threading.local(), threading.local()
state.value = [1]
class Session(threading.local):
    def __init__(self, name="n"): self.name = name
Row = typing.TypedDict("Row", {"a": int, "b": str}, total=False)
def unpacked(data): return header.unpack(data)
def given(x=MISSING, y=inspect.Parameter.empty): return x is not MISSING, y is not inspect.Parameter.empty
depth, unit, user = (contextvars.ContextVar(name, default=1) for name in ("depth", "unit", "user"))
unset = contextvars.ContextVar("unset")
from nbshm.memory.loading import _load as of_a_module
of_module = [of_a_module]
class Node:
    def __init__(self, parent=None): self.parent = parent and weakref.ref(parent)
root = Node()
child, orphan, uncle = Node(root), Node(Node()), Node()
by_name, ages, nodes = weakref.WeakValueDictionary(uncle=uncle), weakref.WeakKeyDictionary({uncle: 7}), weakref.WeakSet([uncle])
uncle.known_by = nodes
token = depth.set([blank])
held = [depth, user.set("me").var]
def read(): return depth.get(), unit.get(), user.get(), unset.get("none")
# %%
%%parallel out=back
assert Row(a=1) == {"a": 1} and typing.is_typeddict(Row) and Row.__optional_keys__ == {"a", "b"}
blank.own = rank
assert child.parent().parent is None and orphan.parent() is None
assert [*by_name.items()] == [("uncle", node) for node in nodes] and [*ages.items()] == [(by_name["uncle"], 7)]
assert by_name["uncle"].known_by is nodes
assert read() == ([blank], 1, "me", "none") and held[0] is depth and held[1] is user
assert of_a_module is of_module[0] is sys.modules["nbshm.memory.loading"]._load
assert contextvars.Context().run(read) == (1, 1, 1, "none")
back = unpacked(header.pack(rank, 0.5)), state.value, blank.own, Session("m").name, given(), given(1, 2), header, state, Row
# %%
for rank, (numbers, value, own, name, nothing, both, layout, local, kind) in enumerate(back):
    assert (numbers, value, own, name, nothing, both) == ((rank, 0.5), [1], rank, "m", (False, False), (True, True))
    assert layout.format == header.format and local.value == [1] and kind is Row
assert not vars(blank) and read() == ([blank], 1, 'me', 'none')
