"""What can't be sent to another process is named, with what to do."""

from __future__ import annotations

import multiprocessing as mp
import pickle
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler

import pytest
from kernels import Kernel

from nbshm.notebook.namespace import Notebook
from nbshm.plain.explaining import Explaining

SETUP = """
import concurrent.futures, multiprocessing as mp, sqlite3
spawn, forkserver = mp.get_context("spawn"), mp.get_context("forkserver")
def add(x, y=0): return x
def outer():
    def inner(): return 1
    return inner
class Cached:
    def __init__(self, call): self.call = call
    def __call__(self, x): return self.call(x)
class Logged(spawn.Process):
    def __init__(self):
        super().__init__()
        self.log = open("log.txt", "w")
def pooled(task, *arguments):
    with forkserver.Pool(1) as pool: pool.apply(task, arguments)
def executed(task):
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=forkserver) as executor:
        executor.submit(task).result()
def put(value):
    queue = spawn.SimpleQueue()
    queue.put(value)
"""
INHERITED = (
    " objects should only be shared between processes through inheritance. Pass it to the process as an "
    "argument when it is started, to a pool by initializer and initargs, or use a Manager's."
)
LAMBDA = "a lambda (In [N] line 1) can't be found by its name there. Define it with def, in a cell."


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


@pytest.mark.parametrize(
    ("cell", "kind", "name", "words"),
    [
        (
            "spawn.Process(target=outer()).start()",
            "AttributeError",
            "outer.<locals>.inner",
            "it is defined inside a function (In [2] line 5). Define it at the top level of a cell.",
        ),
        ("spawn.Process(target=lambda: 1).start()", "PicklingError", "<lambda>", LAMBDA),
        ("pooled(lambda: 1)", "PicklingError", "<lambda>", LAMBDA),
        ("executed(lambda: 1)", "PicklingError", "<lambda>", LAMBDA),
        (
            "old = add\ndef add(x): pass\nput(old)",
            "PicklingError",
            "add",
            "the notebook has another 'add' by now. Send that one, or give this one a name.",
        ),
        (
            "@Cached\ndef cached(x): return x\npooled(cached, 1)",
            "PicklingError",
            "cached",
            "it is the function inside of a Cached by that name. Send a function that calls cached.",
        ),
        (
            "import functools, statistics\nmean = functools.wraps(statistics.mean)(lambda x: x)\nput(mean)",
            "PicklingError",
            "mean",
            (
                "it says that it is of the module 'statistics', which has another. "
                "Set mean.__module__ = '__main__'."
            ),
        ),
        (
            "def gone(): pass\nnamed = gone\ndel gone\nput([named])",
            "PicklingError",
            "gone",
            "the notebook has nothing of the name 'gone'. Bind it to 'gone'.",
        ),
        (
            "class Row: pass\nrow = Row()\nclass Row: pass\nspawn.Process(target=add, args=([row],)).start()",
            "PicklingError",
            "args[0][0]",
            "its class 'Row' has been defined again since it was made. Make it again.",
        ),
        (
            "def made():\n    class Local: pass\n    return Local()\nput([made()])",
            "AttributeError",
            "made.<locals>.Local",
            (
                "its class 'made.<locals>.Local' is defined inside a function. "
                "Define the class at the top level of a cell."
            ),
        ),
        (
            "import threading\nput([threading.Lock()])",
            "TypeError",
            "lock",
            "_thread.lock is a lock of threads. Use a lock of multiprocessing.",
        ),
        (
            "Logged().start()",
            "TypeError",
            "Logged.log",
            "_io.TextIOWrapper is an open file. Open it in the function that runs there.",
        ),
        (
            "forkserver.Process(target=add, kwargs={'y': [sqlite3.connect(':memory:')]}).start()",
            "TypeError",
            "kwargs['y'][0]",
            "sqlite3.Connection holds an open connection. Open it in the function that runs there.",
        ),
        ("pooled(add, forkserver.Lock())", "RuntimeError", "Lock", f"Lock{INHERITED}"),
        ("put({'queue': spawn.Queue()})", "RuntimeError", "Queue", f"Queue{INHERITED}"),
        *(
            (
                f"{method}.Process(target=add, args=(mp.get_context('fork').{kind},)).start()",
                "RuntimeError",
                "args[0]",
                (
                    "A SemLock created in a fork context is being shared with a process in a spawn context. "
                    "Make it with the context of the process: "
                    'mp.get_context("spawn").Lock(), Queue(), Event(), ...'
                ),
            )
            for method, kind in (("forkserver", "Lock()"), ("forkserver", "Queue()"), ("spawn", "Event()"))
        ),
    ],
)
def test_what_cannot_be_sent_is_named(notebook: Kernel, cell: str, kind: str, name: str, words: str) -> None:
    reply = notebook.run(f"{cell}")
    assert reply.error is not None, reply.text
    number = notebook.value("len(In) - 2")
    expected = f"cannot send {name!r} to another process: {words.replace('[N]', f'[{number}]')}"
    assert reply.error[:2] == (kind, expected)


def test_a_function_is_sent_when_it_no_longer_says_that_it_is_a_modules(notebook: Kernel) -> None:
    cell = (
        "import functools, statistics\nSCALE = 2\n@functools.wraps(statistics.median)\n"
        "def median(x): return SCALE * statistics.median(x)\nmedian.__module__ = '__main__'\n"
        "with forkserver.Pool(1) as pool: print(pool.apply(median, ([3],)))"
    )
    assert notebook.run(cell).check().stdout == "6\n"


@pytest.fixture
def explaining() -> Iterator[Explaining]:
    hook = Explaining(Notebook(namespace={}))
    hook.install()
    yield hook
    hook.remove()
    assert "dump" not in vars(ForkingPickler)


class Rude:
    def __reduce__(self):
        raise self.error


@pytest.mark.parametrize("error", [ValueError("own"), RuntimeError("words"), KeyError("key", 2)])
def test_an_objects_own_refusal_is_left_as_it_is(explaining: Explaining, error: Exception) -> None:
    rude, arguments = Rude(), error.args
    rude.error = error
    with pytest.raises(type(error)) as raised:
        ForkingPickler.dumps([rude])
    assert raised.value is error
    assert error.args == arguments
    assert explaining


class Broken:
    @property
    def __dict__(self):
        raise OSError

    def __reduce__(self):
        raise TypeError("broken")


@pytest.mark.usefixtures("explaining")
def test_what_cannot_be_looked_into_is_refused_all_the_same() -> None:
    with pytest.raises(TypeError, match="broken"):
        ForkingPickler.dumps(Broken())


@pytest.mark.usefixtures("explaining")
def test_what_can_be_sent_is_pickled_as_ever() -> None:
    value = {"a": [1, 2], "b": mp.Process}
    assert pickle.loads(ForkingPickler.dumps(value)) == value
