"""What keeps a child from its work, or breaks it there, is told in the notebook."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from kernels import Kernel, kernel

SETUP = """
import concurrent.futures, enum, multiprocessing as mp, os, pathlib, sys, torch, torch.multiprocessing as tmp
from torch.utils.data import DataLoader, Dataset
mp.set_forkserver_preload(["torch", "concurrent.futures.process"])
contexts = {method: mp.get_context(method) for method in ("spawn", "forkserver")}
pathlib.Path("vanishing.py").write_text("class Thing: pass")
sys.path.insert(0, os.getcwd())
from vanishing import Thing
pathlib.Path("vanishing.py").unlink()
class Picky:
    def __setstate__(self, state): raise ValueError("not like this")
def picky():
    thing = Picky()
    thing.x = 1
    return thing
class Own(contexts["forkserver"].Process):
    def __init__(self):
        super().__init__()
        self.thing = picky()
    def run(self): print("it ran")
class Things(Dataset):
    def __init__(self): self.thing = picky()
    def __len__(self): return 2
    def __getitem__(self, i): return i
def take(*_): pass
def square(x): return x * x
def fail(*_): raise ValueError("not like this")
def add_newer(x): return x + newer
def apply_all(functions, x): return [function(x) for function in functions] and "applied"
def is_kind(kind): return isinstance(1, kind)
def take_color(thing, color): return thing is not None
def load(**options): return list(DataLoader(num_workers=1, multiprocessing_context="forkserver", **options))
def execute(task, *arguments, method="forkserver", **options):
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=contexts[method], **options) as executor:
        return executor.submit(task, *arguments).result(60)
def exit_code(process):
    process.start()
    process.join(60)
    return process.exitcode
"""
NOTE = (
    "ValueError: not like this\n(It was raised while a new process unpickled its target and arguments, "
    "In [2] line 10. Make what can't be unpickled in the function that runs there.)"
)
LATE = (
    "name 'newer' is not defined. This process has the notebook as it was when the process was started; if "
    "'newer' has been defined since, make the pool again, or pass it as an argument."
)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel that shows what its children write, as kernels do that no tests of ipykernel's start."""
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    with kernel(tmp_path_factory.mktemp("notebook"), env=env) as running:
        running.run(SETUP).check()
        yield running


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("tmp.spawn(take, (picky(),))", "ProcessRaisedException"),
        (
            "tmp.start_processes(take, (picky(),), nprocs=2, start_method='forkserver')",
            "ProcessRaisedException",
        ),
        ("load(dataset=Things())", "ValueError"),
        ("load(dataset=[1, 2], collate_fn=picky())", "ValueError"),
        ("contexts['forkserver'].Pool(1, take, (picky(),)).apply(square, (3,))", "ValueError"),
        ("execute(square, 3, initializer=take, initargs=(picky(),))", "BrokenProcessPool"),
        ("execute(square, 3, initializer=take, initargs=(picky(),), method='spawn')", "BrokenProcessPool"),
    ],
)
def test_a_process_that_cannot_be_unpickled_is_told_where_its_work_is_waited_for(
    notebook: Kernel, cell: str, kind: str
) -> None:
    reply = notebook.run(cell)
    assert reply.error is not None
    assert reply.error[0] == kind
    assert NOTE in reply.error[2]


def test_a_missing_module_is_told_where_the_work_is_waited_for(notebook: Kernel) -> None:
    reply = notebook.run("tmp.start_processes(take, (Thing(),), start_method='forkserver')")
    assert reply.error is not None
    assert "ModuleNotFoundError: No module named 'vanishing'" in reply.error[1]


@pytest.mark.parametrize(
    "process",
    [
        "contexts['forkserver'].Process(target=take, args=(picky(),))",
        "contexts['spawn'].Process(target=take, args=(picky(),))",
        "Own()",
    ],
)
def test_a_plain_process_that_cannot_be_unpickled_tells_it_on_stderr(notebook: Kernel, process: str) -> None:
    told = notebook.run(f"print(exit_code({process}))").check()
    assert told.stdout == "1\n"
    assert NOTE in told.stderr


def test_an_executor_tells_what_broke_it(notebook: Kernel) -> None:
    reply = notebook.run("execute(square, 3, initializer=fail)")
    assert reply.error is not None
    assert reply.error[0] == "BrokenProcessPool"
    assert "a process of the executor failed beside its tasks" in reply.error[2]
    assert "ValueError: not like this" in reply.error[2]


def test_tasks_are_told_of_names_that_are_newer_than_their_processes(notebook: Kernel) -> None:
    notebook.run("""
pool = contexts["forkserver"].Pool(1)
executor = concurrent.futures.ProcessPoolExecutor(1, mp_context=contexts["forkserver"])
assert pool.apply(square, (3,)) == executor.submit(square, 3).result() == 9
newer = 1
""").check()
    for call in ("pool.apply(add_newer, (3,))", "pool.map(add_newer, [3])"):
        assert notebook.run(call).error[:2] == ("NameError", LATE)
    assert notebook.run("executor.submit(add_newer, 3).result()").error[:2] == ("NameError", LATE)
    notebook.run("executor.shutdown(); pool.terminate(); pool.join(); del newer").check()


FOR_CELLS = (
    "There is no IPython in this process, where `!` commands, magics and display() are not known. "
    "Use subprocess and print, or run the function in a parallel cell."
)


def test_tasks_are_told_that_ipython_is_not_in_their_processes(notebook: Kernel) -> None:
    notebook.run("""
def command(x):
    !echo {x}
def magic(x):
    %time x
def show(x): display(x)
pool = contexts["forkserver"].Pool(1)
""").check()
    for name, task in {"get_ipython": "command", "display": "show"}.items():
        told = f"name '{name}' is not defined. {FOR_CELLS}"
        assert notebook.run(f"pool.apply({task}, (3,))").error[:2] == ("NameError", told)
    assert notebook.run("pool.apply(magic, (3,))").error[1].endswith(FOR_CELLS)
    notebook.run("pool.terminate(); pool.join()").check()


LATER = (
    "'{}' is not in this process, which was started before the notebook defined it. "
    "Make the pool, or the process, after the definition."
)


def test_functions_and_classes_that_are_newer_than_a_pool_raise_where_they_are_used(notebook: Kernel) -> None:
    """The one that a task calls, and those that it is given; an instance that it only passes on is none."""
    notebook.run("""
pool = contexts["forkserver"].Pool(1)
executor = concurrent.futures.ProcessPoolExecutor(1, mp_context=contexts["forkserver"])
assert pool.apply(square, (3,)) == executor.submit(square, 3).result() == 9
def save(x): pass
class Kind:
    def __init__(self, x): self.x = x
class Color(enum.Enum): RED = 1
""").check()
    save, kind, color = (("NameError", LATER.format(name)) for name in ("save", "Kind", "Color"))
    for call, told in {
        "pool.apply(apply_all, ([save], 3))": save,
        "pool.map(save, [3, 4])": save,
        "executor.submit(apply_all, [save], 3).result()": save,
        "pool.apply(Kind, (3,))": kind,
        "pool.apply(is_kind, (Kind,))": kind,
        "pool.apply(take_color, (1, Color.RED))": color,  # made by a call of its class
    }.items():
        assert notebook.run(call).error[:2] == told
    assert notebook.value("pool.apply(take_color, (Kind(3), [Kind]))") is True
    notebook.run("executor.shutdown(); pool.terminate(); pool.join(); del save, Kind, Color").check()


def test_a_misspelt_name_of_a_module_is_told_as_ever(notebook: Kernel) -> None:
    notebook.run("import statistics").check()
    reply = notebook.run("contexts['forkserver'].Pool(1).apply(eval, ('nothing', {}))")
    assert reply.error[:2] == ("NameError", "name 'nothing' is not defined")


def test_a_left_out_name_is_told_on_a_plain_processs_stderr(notebook: Kernel) -> None:
    notebook.run("""
import sqlite3
db = sqlite3.connect(":memory:")
def use_db(): return db.execute("select 1")
""").check()
    told = notebook.run("print(exit_code(contexts['forkserver'].Process(target=use_db)))").check()
    assert told.stdout == "1\n"
    assert (
        "NameError: the notebook's 'db' is not in this process: sqlite3.Connection holds an open connection. "
        "Open it inside the cell."
    ) in told.stderr


def test_a_process_pickles_what_it_is_sent_with_in_its_own_way(notebook: Kernel) -> None:
    notebook.run("""
class Careful(contexts["forkserver"].Process):
    def __getstate__(self): return {**vars(self), "_args": ()}
    def run(self): os._exit(7)
careful = Careful(args=(mp.get_context("fork").Lock(),))
""").check()
    assert notebook.value("exit_code(careful)") == 7
