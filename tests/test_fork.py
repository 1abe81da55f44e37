"""Forked workers: the notebook as it is, with its memory shared as by the other start methods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kernels import Kernel, kernel

SETUP = """
import enum, threading
import numpy as np, torch
tensor, array, held = torch.zeros(4), np.zeros(4), [np.zeros(4)]
model = torch.nn.Linear(2, 2)
lock, file, generator = threading.Lock(), open("/dev/null"), (i for i in range(9))

class Box:
    def __init__(self):
        self.array, self.lock = np.zeros(4), lock

class Store:
    counts, guard = np.zeros(2), (lock, np.zeros(2))

    @classmethod
    def put(cls, index):
        cls.counts[index] += index + 1

store = Store()

def fill(index, counts=np.zeros(2)):
    counts[index] += 1
    held[0][index] = index + 1

def call(index):
    fill(index)

def learn(index, layer=torch.nn.Linear(2, 2)):
    with torch.no_grad():
        layer.weight[index] = index + 1

def point(index, points=torch.utils.data.TensorDataset(torch.zeros(2))):
    points.tensors[0][index] = index + 1

class Points:
    points = torch.utils.data.TensorDataset(torch.zeros(2))

class Colour(enum.Enum):
    RED = 1

Colour.RED.seen = np.zeros(2)
box = Box()
"""
HEAD = "%%parallel nprocs=2 start_method=fork"


@pytest.fixture(scope="module")
def forking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("fork")) as running:
        running.run(SETUP).check()
        yield running


def test_what_ranks_write_is_in_the_notebook(forking: Kernel) -> None:
    source = "tensor[rank] = array[rank] = rank + 1\ncall(rank)\n"
    forking.run(f"{HEAD}\n{source}with torch.no_grad():\n    model.weight[rank] = 7").check()
    assert forking.value("(tensor.tolist(), array.tolist(), held[0].tolist())") == ([1.0, 2.0, 0.0, 0.0],) * 3
    assert forking.value("(fill.__defaults__[0].tolist(), model.weight.tolist())") == (
        [1.0, 1.0],
        [[7.0, 7.0], [7.0, 7.0]],
    )


def test_what_functions_and_classes_hold_is_shared(forking: Kernel) -> None:
    source = "learn(rank); point(rank); point(rank, Points.points); Colour.RED.seen[rank] = 1"
    forking.run(f"{HEAD}\n{source}").check()
    assert forking.value(
        "[points.tensors[0].tolist() for points in (point.__defaults__[0], Points.points)]"
    ) == [[1.0, 2.0], [1.0, 2.0]]
    assert forking.value("Colour.RED.seen.tolist()") == [1.0, 1.0]
    assert forking.value("learn.__defaults__[0].weight.tolist()") == [[1.0, 1.0], [2.0, 2.0]]


@pytest.mark.parametrize("name", ["Store", "store"])
def test_arrays_that_are_attributes_of_classes_are_shared(forking: Kernel, name: str) -> None:
    before = forking.value("Store.counts.tolist()")
    forking.run(f"{HEAD}\n{name}.put(rank); {name}.guard[1][rank] = 9").check()
    assert forking.value("Store.counts.tolist()") == [before[0] + 1, before[1] + 2]


def test_what_can_not_travel_is_there(forking: Kernel) -> None:
    reply = forking.run(f"{HEAD}\nwith lock:\n    first = next(generator)\nfile.name, first").check()
    assert reply.result == {"text/plain": "[('/dev/null', 0), ('/dev/null', 0)]"}
    assert reply.text.count("nbshm:") == 0


def test_arrays_that_can_not_be_shared_are_told(forking: Kernel) -> None:
    reply = forking.run(f"{HEAD}\nbox.array[rank] = Store.guard[1][rank] = 1").check()
    for name in ("box", "Store.guard"):
        assert reply.text.count(f"{name} can't be sent, so each forked rank has a copy of its own") == 1
    assert "nbshm.share(box) moves it ahead, or says why not." in reply.text
    assert forking.value("(box.array.tolist(), Store.guard[1].tolist())") == ([0.0] * 4, [0.0] * 2)


def test_arrays_that_were_shared_before_are_shared_though_they_can_not_be_sent(forking: Kernel) -> None:
    forking.run("import nbshm\nshared_box = Box()\nnbshm.share(shared_box);").check()
    reply = forking.run(f"{HEAD}\nshared_box.array[rank] = 1").check()
    assert reply.text == ""
    assert forking.value("shared_box.array.tolist()") == [1.0, 1.0, 0.0, 0.0]


WITH_LOCKS = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.lock = torch.nn.Linear(2, 2, bias=False), threading.Lock()

class Trainer:
    def __init__(self, net):
        self.net, self.optimizer = net, torch.optim.SGD(net.parameters(), lr=1.0, momentum=0.5)
        self.steps = (i for i in range(9))

locked, trainer = Net(), Trainer(torch.nn.Linear(2, 2, bias=False))
product = torch.ones(2, requires_grad=True) * 1
"""


def test_tensors_of_what_can_not_be_sent_are_shared(forking: Kernel) -> None:
    forking.run(WITH_LOCKS).check()
    reply = forking.run(
        f"{HEAD}\nwith torch.no_grad():\n"
        "    for tensor in locked.layer.weight, trainer.net.weight, product: tensor[rank] = rank + 7\n"
        "    trainer.optimizer.param_groups[0]['params'][0][rank] += 1"
    ).check()
    assert reply.text == ""
    values = "(locked.layer.weight.tolist(), trainer.net.weight.tolist(), product.tolist())"
    assert forking.value(values) == ([[7, 7], [8, 8]], [[8, 8], [9, 9]], [7, 8])


def test_definitions_and_memory_come_back_as_the_notebooks_own(forking: Kernel) -> None:
    forking.run(f"{HEAD} out=b, c, t\nb, c, t = Box, call, tensor").check()
    assert forking.value("b == [Box, Box] and c == [call, call]") is True
    assert forking.value("[one.data_ptr() == tensor.data_ptr() for one in t]") == [True, True]


def test_threads_that_would_hang_are_refused(forking: Kernel) -> None:
    forking.run("torch.set_num_threads(2)\nlarge = torch.ones(3_000_000)\n(large * 2).sum()").check()
    reply = forking.run(f"{HEAD} timeout=60\n(large * 2).sum().item(), torch.get_num_threads()").check()
    assert reply.result == {"text/plain": "[(6000000.0, 1), (6000000.0, 1)]"}
    refused = forking.run(f"{HEAD} threads=2\nrank")
    assert "threads=2 is refused under start_method=fork" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


POOLS = """
import asyncio, concurrent.futures, ctypes, multiprocessing.pool, fanout

def executor():
    made = concurrent.futures.ThreadPoolExecutor(1)
    made.submit(abs, 1).result()
    return made

def compiled():
    "Start a thread as compiled code does, with a name."
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, libc.pause, None)
    libc.pthread_setname_np(thread, b"fanout-0")
    return libc, thread
"""


@pytest.mark.parametrize(
    ("make", "end", "told"),
    [
        ("executor()", "pool.shutdown()", "a ThreadPoolExecutor"),
        ("multiprocessing.pool.ThreadPool(1)", "pool.terminate(); pool.join()", "a pool of multiprocessing"),
        ("compiled()", "pool[0].pthread_cancel(pool[1]); pool[0].pthread_join(pool[1], None)", "fanout"),
    ],
)
def test_threads_of_others_that_ranks_have_not_got_are_told(
    forking: Kernel, make: str, end: str, told: str
) -> None:
    (forking.directory / "fanout.py").write_text("")
    forking.run(f"{POOLS}\npool = {make}").check()
    reply = forking.run(f"{HEAD}\nrank").check()
    assert (
        f"Threads do not survive a fork, and the notebook has some of {told}: a rank that uses them may wait "
        "for ever. Use start_method=forkserver or spawn."
    ) in " ".join(reply.text.split())
    forking.run(end).check()
    assert "Threads do not survive" not in forking.run(f"{HEAD}\nrank").check().text
    assert "Threads do not survive" not in forking.run("%%parallel nprocs=2\nrank").check().text


def test_nothing_is_told_of_the_threads_that_every_notebook_has(forking: Kernel) -> None:
    """Those of Jupyter, torch, the BLAS, progress bars, event loops, and the person's own."""
    everyday = (
        "import asyncio, threading, ipywidgets, matplotlib.pyplot, tqdm\n"
        "held = threading.Event()\nown = threading.Thread(target=held.wait)\nown.start()\n"
        "np.ones((500, 500)) @ np.ones((500, 500))\n"
        "a = torch.ones(500, 500, requires_grad=True)\n(a @ a).sum().backward()\n"
        "for step in tqdm.tqdm(range(2)): pass\n"
        "await asyncio.to_thread(abs, 1)"
    )
    forking.run(everyday).check()
    assert forking.run(f"{HEAD}\nrank").check().text.strip() == "[0, 1]"
    forking.run("held.set(); own.join()").check()


BEHIND = """
import functools, torch
(of_base, of_list, of_setter, of_cached, of_dataset, of_cache, of_dispatch, of_hook, of_partial) = (
    np.zeros(2) for _ in range(9)
)

class Base:
    seen = np.zeros(2)
    def step(self, index): of_base[index] = self.seen[index] = 1

class Derived(Base):
    pass

class Thing:
    cache = np.zeros(2)
    def put(self, index): of_list[index] = self.cache[index] = 1
    @property
    def value(self): return 0
    @value.setter
    def value(self, index): of_setter[index] = 1
    @functools.cached_property
    def once(self): of_cached[:] = 1
    def _also(self, index): of_partial[index] = 1
    also = functools.partialmethod(_also)

class Rows(torch.utils.data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, index): of_dataset[index] = 1; return index

class Meta(type):
    table = np.zeros(2)

class WithMeta(metaclass=Meta):
    pass

@functools.lru_cache
def cached(index): of_cache[index] = 1

@functools.singledispatch
def visit(kind, index): raise TypeError

@visit.register
def visit_number(kind: int, index): of_dispatch[index] = 1

derived, things, loader = Derived(), {"a": [Thing()]}, torch.utils.data.DataLoader(Rows())
layer = torch.nn.Linear(1, 1)
hook = layer.register_forward_hook(lambda *_: of_hook.fill(1))
"""
USES = (
    "derived.step(rank); thing = things['a'][0]; thing.put(rank)\n"
    "thing.value = rank; thing.once; thing.also(rank)\n"
    "list(loader); cached(rank); visit(3, rank); layer(torch.ones(1, 1)); WithMeta.table[rank] = 1"
)


def test_what_is_behind_a_value_is_shared_however_it_leads_there(forking: Kernel) -> None:
    forking.run(BEHIND).check()
    forking.run(f"{HEAD}\n{USES};").check()
    names = "of_base of_list of_setter of_cached of_dataset of_cache of_dispatch of_hook of_partial"
    held = ["Base.seen", "Thing.cache", "WithMeta.table"]
    expressions = [*names.split(), *held]
    unwritten = [name for name in expressions if forking.value(f"{name}.tolist()") != [1.0, 1.0]]
    assert unwritten == []


@pytest.mark.parametrize("module", ["tqdm.std", "tqdm.notebook"])
def test_a_bar_of_the_notebook_is_the_ranks_progress_and_stays_the_notebooks(
    forking: Kernel, module: str
) -> None:
    pytest.importorskip("tqdm")
    forking.run(f"from {module} import tqdm\nbar = tqdm(total=4)").check()
    reply = forking.run(f"{HEAD}\nfor _ in range(4): bar.update(1)\nbar.close(); bar.n").check()
    assert reply.result == {"text/plain": "[4, 4]"}
    forking.run("bar.update(1); bar.close()").check()
    assert forking.value("bar.n") == 1


def test_names_of_ipythons_need_nothing_of_the_notebook(forking: Kernel) -> None:
    forking.run("def shell(): return type(get_ipython()).__name__").check()
    reply = forking.run(f"{HEAD}\nshell()").check()
    assert reply.text.strip() == "['WorkerShell', 'WorkerShell']"


def test_figures_are_shown_though_the_notebook_has_shown_some(forking: Kernel) -> None:
    pytest.importorskip("matplotlib")
    plot = "plt.plot([1, 2]);"
    forking.run(f"%matplotlib inline\nimport matplotlib.pyplot as plt\n{plot}").check()
    assert "data:image/png" in forking.run(f"{HEAD}\n{plot}").check().displays[0]["text/html"]
    forking.run("%config InlineBackend.figure_format = 'svg'").check()
    assert "data:image/svg+xml" in forking.run(f"{HEAD}\n{plot}").check().displays[0]["text/html"]


def test_a_bar_with_a_file_of_its_own_stays_what_it_is(forking: Kernel) -> None:
    pytest.importorskip("tqdm")
    forking.run(
        "from tqdm.std import tqdm\nlog = open('bar.log', 'w+')\nbar = tqdm(total=4, file=log)"
    ).check()
    forking.run(f"{HEAD}\nif rank == 0: bar.update(4); bar.close(); log.flush()").check()
    assert "4/4" in (forking.directory / "bar.log").read_text()
    forking.run("bar.close(); log.close()").check()


def test_a_pool_in_a_forked_rank_knows_the_notebook(forking: Kernel) -> None:
    forking.run("def square(x):\n    return x * x").check()
    source = "import multiprocessing\nwith multiprocessing.get_context('spawn').Pool(1) as pool:\n"
    reply = forking.run(f"{HEAD}\n{source}    squares = pool.map(square, [1, 2])\nsquares").check()
    assert reply.result == {"text/plain": "[[1, 4], [1, 4]]"}


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_what_a_forked_rank_starts_leaves_the_kernels_keeper_alone(
    forking: Kernel, start_method: str
) -> None:
    forking.run(f"{HEAD}\nrank").check()
    keeper = (
        "(lambda keeper: (keeper._process.pid, keeper._process.poll(), os.listdir(keeper._directory.path)))"
        "(nbshm.extension.current_session().launcher.keeper)"
    )
    directories = "sorted(name for name in os.listdir(tempfile.gettempdir()) if name.startswith('nbshm-'))"
    forking.run("import nbshm, os, tempfile; tempfile.tempdir = os.getcwd()")
    before = forking.value(keeper), forking.value(directories)
    assert before[0][1:] == (None, ["keeper"])
    source = f"import multiprocessing\nwith multiprocessing.get_context('{start_method}').Pool(1) as pool:\n"
    forking.run(f"{HEAD}\n{source}    pool.map(abs, [1, 2])").check()
    assert (forking.value(keeper), forking.value(directories)) == before
    forking.run("tempfile.tempdir = None")


def test_ipythons_syntax_and_exit_are_the_ranks_own_not_the_kernels(forking: Kernel) -> None:
    source = "words = !echo alpha {rank}\n%time doubled = 2 * rank\nlist(words), doubled"
    assert "Wall time" in forking.run(f"{HEAD} out=kind\nkind = type(get_ipython()).__name__\n{source}").text
    assert forking.value("(kind, list(_))") == (["WorkerShell"] * 2, [(["alpha 0"], 0), (["alpha 1"], 2)])
    nested = forking.run(f"{HEAD}\n%%parallel nprocs=2\nrank")
    assert "%%parallel can't be used in a parallel cell" in nested.text
    assert forking.run(f"{HEAD}\nexit()").error is None
    assert forking.value("type(get_ipython()).__name__") == "ZMQInteractiveShell"


def test_cuda_in_a_forked_rank_is_told_to_use_another_start_method(forking: Kernel) -> None:
    words = "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must ..."
    reply = forking.run(f"{HEAD}\nraise RuntimeError({words!r})")
    assert reply.error is not None
    assert "Use start_method=forkserver or spawn." in reply.error[2]


def test_a_failure_points_at_the_cell(forking: Kernel) -> None:
    reply = forking.run(f"{HEAD}\n1 / 0")
    assert reply.error is not None
    assert reply.error[0] == "RankRaised"
    assert "line 2" in reply.error[1]
    assert "ZeroDivisionError: division by zero" in reply.error[2]
