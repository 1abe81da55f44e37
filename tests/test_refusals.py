"""What can't be sent to workers is refused before one starts, in one sentence that says what to do."""

from __future__ import annotations

import pytest
from kernels import Kernel

SETUP = """
import ctypes, os, socket, sqlite3, sys, threading, types, functools, dataclasses
import torch
handle = open(os.devnull)
binary = open(os.devnull, "rb")
lock, db, sock = threading.Lock(), sqlite3.connect(":memory:"), socket.socket()
cursor = db.cursor()
lines = (line for line in "ab")
async def fetch(): ...
waiting = fetch()
class Client: ...
client = Client()
client.cfg = {"guard": lock, "other": 1}
@dataclasses.dataclass
class Settings:
    path: str
    log: object
settings = [Settings("p", handle)]
leaf = torch.ones(2, requires_grad=True)
loss = leaf.sum()
made = types.ModuleType("made_by_hand")
def load_rows():
    return db.execute("select 1")
def deeper():
    return load_rows()
def closed():
    held = lock
    return lambda: held
by_closure = closed()
part = functools.partial(print, handle)
def default(x, log=handle):
    return x
class Logged:
    log = handle
    def write(self): return self.log
class Method:
    def get(self): return self
bound = Method()
bound.lock = lock
use = bound.get
library = ctypes.CDLL(None)
pools = [__import__("multiprocessing").get_context("spawn").Pool(1)]
pools[0].terminate()
pools[0].join()
threads = __import__("concurrent.futures").futures.ThreadPoolExecutor(1)
import argparse, logging.handlers, queue, subprocess
class Task:
    def __init__(self, **parts): self.__dict__.update(parts)
waiter = threading.Event()
in_line = queue.Queue()
child = subprocess.Popen(["true"])
child.wait()
tasks = {"first": Task(child=child)}
last = logging.NullHandler()
last.lock, far = threading.Lock(), types.SimpleNamespace(log=last)
for _ in range(3):
    far.log = logging.handlers.MemoryHandler(1, target=far.log)
    far.log.lock = None
logging_loader = torch.utils.data.DataLoader(Task(log=handle))
arguments = argparse.Namespace(log=handle)
before = set(globals())
"""

ODD = """
import collections, threading
class Unasked:
    def __getattr__(self, name): raise RuntimeError("no " + name)
class Silent:
    def __getattribute__(self, name): raise RuntimeError("never " + name)
class Classless:
    @property
    def __class__(self): raise RuntimeError("no class")
class Liar:
    @property
    def __class__(self): return list
class ModuleLiar:
    @property
    def __class__(self): return type(threading)
class Sour(collections.UserDict):
    def __getitem__(self, key): raise RuntimeError("sour")
class Endless(list):
    def __iter__(self): raise RuntimeError("no iteration")
class Incomparable(type):
    def __eq__(cls, other): raise RuntimeError("no comparison")
    __hash__ = type.__hash__
class Odd(metaclass=Incomparable): pass
class Deep:
    def __getattr__(self, name): return getattr(self, name + "_")
class Wordless(Exception):
    def __str__(self): raise RuntimeError("no words")
class Unsaid:
    def __reduce_ex__(self, protocol): raise Wordless
class Item: pass
class User:
    def use(self): return Item()
unasked, silent, classless, liar, module_liar = Unasked(), Silent(), Classless(), Liar(), ModuleLiar()
sour, endless, odd, deep, unsaid = Sour(), Endless([1]), Odd(), Deep(), Unsaid()
late = [User(), Item(), {"key": [Item(), threading.Lock()]}]
with_locks = {"sour": Sour(), "endless": Endless([1]), "odd": Odd(), "deep": Deep(), "unasked": Unasked()}
with_locks.update(classless=Classless(), liar=Liar())
sour.data["a"] = 1
with_locks["sour"].data["a"] = threading.Lock()
with_locks["endless"].append(threading.Lock())
for name in ("odd", "deep", "unasked", "classless", "liar"):
    with_locks[name].lock = threading.Lock()
def half_closed():
    if not with_locks:
        never = 1
    held = threading.Lock()
    return lambda: (held, never)
halved = half_closed()
for name, value in with_locks.items():
    globals()[name + "_locked"] = value
"""

OPEN = "is an open file"
CONNECT = "Connect inside the cell."
INSIDE = "Open it inside the cell."
LOCK = "_thread.lock is a lock of threads"
LOCK_REMEDY = "Use nbshm.lock(), or a lock of multiprocessing."
LINE = "(used by line 2 of this cell)"


@pytest.fixture(scope="module")
def refusing(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("handle", f"cannot send 'handle' to the workers: _io.TextIOWrapper {OPEN} {LINE}. {INSIDE}"),
        ("binary", f"cannot send 'binary' to the workers: _io.BufferedReader {OPEN} {LINE}. {INSIDE}"),
        ("lock", f"cannot send 'lock' to the workers: {LOCK} {LINE}. {LOCK_REMEDY}"),
        (
            "db",
            f"cannot send 'db' to the workers: sqlite3.Connection holds an open connection {LINE}. {INSIDE}",
        ),
        (
            "cursor",
            f"cannot send 'cursor' to the workers: sqlite3.Cursor holds an open connection {LINE}. {INSIDE}",
        ),
        (
            "sock",
            f"cannot send 'sock' to the workers: socket.socket is an open socket {LINE}. {CONNECT}",
        ),
        (
            "library",
            (
                f"cannot send 'library' to the workers: ctypes.CDLL is a library in this process {LINE}. "
                "Load it inside the cell."
            ),
        ),
        (
            "pools",
            (
                f"cannot send 'pools[0]' to the workers: Pool is a pool of this process's own {LINE}. "
                "Make it inside the cell."
            ),
        ),
        (
            "threads",
            (
                "cannot send 'threads' to the workers: ThreadPoolExecutor is a pool of this process's own "
                f"{LINE}. Make it inside the cell."
            ),
        ),
        (
            "lines",
            (
                f"cannot send 'lines' to the workers: generator is a live generator {LINE}. "
                "Make it inside the cell, or send a list."
            ),
        ),
        (
            "waiting",
            (
                f"cannot send 'waiting' to the workers: coroutine is a coroutine {LINE}. "
                "Call the function inside the cell."
            ),
        ),
        (
            "loss",
            (
                "cannot share 'loss': it is part of an autograd graph, which can't cross processes "
                f"{LINE}. Use loss.detach()."
            ),
        ),
        (
            "made",
            (
                f"cannot send 'made' to the workers: the module 'made_by_hand' can't be imported in a worker "
                f"{LINE}. Import it from a file or a package."
            ),
        ),
        ("client", f"cannot send 'client.cfg['guard']' to the workers: {LOCK} {LINE}. {LOCK_REMEDY}"),
        (
            "settings",
            f"cannot send 'settings[0].log' to the workers: _io.TextIOWrapper {OPEN} {LINE}. {INSIDE}",
        ),
        (
            "by_closure",
            f"cannot send 'by_closure (its closure)' to the workers: {LOCK} {LINE}. {LOCK_REMEDY}",
        ),
        (
            "in_line",
            (
                f"cannot send 'in_line.mutex' to the workers: {LOCK} {LINE}. "
                "It is part of in_line, a queue.Queue: use the one of multiprocessing."
            ),
        ),
        (
            "waiter",
            (
                f"cannot send 'waiter._cond._lock' to the workers: {LOCK} {LINE}. "
                "It is part of waiter, a threading.Event: use the one of multiprocessing."
            ),
        ),
        (
            "tasks",
            (
                f"cannot send 'tasks['first'].child._waitpid_lock' to the workers: {LOCK} {LINE}. "
                "It is part of tasks['first'].child, a subprocess.Popen: make that inside the cell."
            ),
        ),
        (
            "far",
            (
                f"cannot send 'far.log' to the workers: deep inside, {LOCK} {LINE}. "
                "It is a logging.handlers.MemoryHandler: make that inside the cell."
            ),
        ),
        (
            "logging_loader",
            (
                f"cannot send 'logging_loader.dataset.log' to the workers: _io.TextIOWrapper {OPEN} {LINE}. "
                f"{INSIDE}"
            ),
        ),
        (
            "arguments",
            f"cannot send 'arguments.log' to the workers: _io.TextIOWrapper {OPEN} {LINE}. {INSIDE}",
        ),
        ("part", f"cannot send 'part.args[0]' to the workers: _io.TextIOWrapper {OPEN} {LINE}. {INSIDE}"),
        (
            "default(1)",
            f"cannot send 'default.log' to the workers: _io.TextIOWrapper {OPEN} {LINE}. {INSIDE}",
        ),
        ("Logged", f"cannot send 'Logged.log' to the workers: _io.TextIOWrapper {OPEN} {LINE}. {INSIDE}"),
        ("use()", f"cannot send 'use.__self__.lock' to the workers: {LOCK} {LINE}. {LOCK_REMEDY}"),
        (
            "deeper()",
            (
                "cannot send 'db' to the workers: sqlite3.Connection holds an open connection "
                f"(used by load_rows, In [CELL] line 22). {INSIDE}"
            ),
        ),
    ],
)
def test_what_cannot_travel_is_refused_in_one_sentence(refusing: Kernel, body: str, message: str) -> None:
    cell = refusing.value(
        "load_rows.__code__.co_filename and get_ipython().compile.format_code_name("
        "load_rows.__code__.co_filename)[1]"
    )
    reply = refusing.run(f"%%parallel nprocs=2\n{body}")
    assert reply.error is not None, reply.text
    assert reply.error[1] == message.replace("In [CELL]", str(cell).replace("In[", "In ["))
    assert reply.error[0] == "CannotSend"
    assert not reply.streams, "nothing may be said of ranks: none was started"


def test_a_refusal_changes_nothing(refusing: Kernel) -> None:
    refusing.run("grown = set(globals()) - before").check()
    assert refusing.value("sorted(n for n in grown if not n.startswith('_'))") == ["before"]


@pytest.mark.parametrize(
    "body",
    [
        "eval('hidden')",
        "globals()['hid' + 'den']",
        "import __main__\n__main__.hidden",
        "from __main__ import hidden\nhidden",
    ],
)
def test_a_name_that_the_analysis_cannot_see_is_hinted_at(refusing: Kernel, body: str) -> None:
    refusing.run("hidden = 5")
    reply = refusing.run(f"%%parallel nprocs=1\n{body}")
    assert reply.error is not None
    assert "send=hidden" in reply.error[2]
    assert refusing.run(f"%%parallel nprocs=1 send=hidden\n{body}").check().text.strip().endswith("[5]")


def test_a_name_that_went_with_the_ranks_of_an_earlier_cell_is_told_of(refusing: Kernel) -> None:
    refusing.run("%%parallel nprocs=2\nimport fractions as parts\nparts.Fraction(rank);").check()
    reply = refusing.run("%%parallel nprocs=2\nparts.Fraction(1, 2)")
    assert reply.error is not None
    told = f"In [{refusing.value('len(In) - 3')}] bound 'parts' in its ranks only, which have ended. Bind it"
    assert told in " ".join(reply.error[2].split())
    reply = refusing.run("%%parallel nprocs=2\nnowhere; nowhere = 1")
    assert "in its ranks only" not in reply.error[2]


def test_a_name_that_only_a_query_of_pandas_says_is_hinted_at(refusing: Kernel) -> None:
    refusing.run("import pandas as pd\nframe = pd.DataFrame({'a': [1, 9]})\nlimit = 5").check()
    body = "len(frame.query('a > @limit'))"
    reply = refusing.run(f"%%parallel nprocs=1\n{body}")
    assert reply.error is not None
    assert "Add send=limit." in reply.error[2]
    assert refusing.run(f"%%parallel nprocs=1 send=limit\n{body}").check().text.strip().endswith("[1]")
    of_a_column = refusing.run("%%parallel nprocs=1\nframe.query('limit > 0')")
    assert of_a_column.error is not None
    assert "send=" not in of_a_column.error[2], "it is not in the notebook either"


def test_a_name_that_exists_nowhere_is_a_plain_name_error(refusing: Kernel) -> None:
    reply = refusing.run("%%parallel nprocs=1\nnowhere")
    assert reply.error is not None
    assert "name 'nowhere' is not defined" in reply.error[2]
    assert "send=" not in reply.error[2]


def test_what_the_cell_binds_itself_is_no_reason_to_refuse(refusing: Kernel) -> None:
    text = "%%parallel nprocs=1\nfor lock in range(rank + 1):\n    pass\nlock"
    assert refusing.run(text).check().text.strip().endswith("[0]")


@pytest.fixture(scope="module")
def odd(refusing: Kernel) -> Kernel:
    refusing.run(ODD).check()
    return refusing


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("silent", "__main__.Silent can't be pickled (RuntimeError: never "),
        ("classless", "__main__.Classless can't be pickled (RuntimeError: no class)"),
        ("liar", "__main__.Liar can't be pickled (PicklingError: "),
        ("module_liar", "__main__.ModuleLiar can't be pickled (PicklingError: "),
        ("endless", "__main__.Endless can't be pickled (RuntimeError: no iteration)"),
        ("unsaid", "__main__.Unsaid can't be pickled (Wordless: <unprintable Wordless object>)"),
    ],
)
def test_an_odd_object_that_cannot_travel_is_refused_by_its_name(odd: Kernel, name: str, reason: str) -> None:
    reply = odd.run(f"%%parallel nprocs=1\n{name}")
    assert reply.error is not None, reply.text
    assert reply.error[:1] == ("CannotSend",), reply.text
    assert reply.error[1].startswith(f"cannot send '{name}' to the workers: {reason}")


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("sour_locked", "['a']"),
        ("endless_locked", "[1]"),
        *((f"{name}_locked", ".lock") for name in ("odd", "deep", "unasked", "classless", "liar")),
        ("late", "[2]['key'][1]"),
        ("halved", " (its closure)"),
    ],
)
def test_the_culprit_is_found_inside_odd_objects(odd: Kernel, name: str, step: str) -> None:
    reply = odd.run(f"%%parallel nprocs=1\n{name}")
    assert reply.error is not None, reply.text
    assert reply.error[1] == f"cannot send '{name}{step}' to the workers: {LOCK} {LINE}. {LOCK_REMEDY}"


def test_odd_objects_that_can_be_pickled_do_travel(odd: Kernel) -> None:
    reply = odd.run("%%parallel nprocs=1\n[type(each).__name__ for each in (unasked, sour, odd, deep)]")
    assert "[['Unasked', 'Sour', 'Odd', 'Deep']]" in reply.check().text
