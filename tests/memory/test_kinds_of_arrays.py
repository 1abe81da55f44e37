"""Each kind of array in a real kernel, written to from two ranks; and snapshots inside others' objects."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import Kernel
from kinds import Kind, problems_of

SETUP = """
import array, ctypes, mmap, multiprocessing, os, tempfile
from multiprocessing import shared_memory
from numpy.lib.stride_tricks import as_strided
import numpy.ma.mrecords as mrecords
class Vector(np.ndarray):
    def __array_finalize__(self, original): self.unit = getattr(original, "unit", None)
class Slotted(np.ndarray):
    __slots__ = ("unit",)
class Reduced(np.ndarray):
    def __reduce__(self):
        make, arguments, state = super().__reduce__()
        return make, arguments, (*state, vars(self))
    def __setstate__(self, state):
        vars(self).update(state[-1])
        super().__setstate__(state[:-1])
class Noting(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = np.zeros(2)
class Rows(torch.utils.data.Dataset):
    def __init__(self): self.seen = np.zeros(2)
    def __len__(self): return 2
class Wrapper:
    def __init__(self): self.inner = np.zeros(3)
    @property
    def __array_interface__(self): return self.inner.__array_interface__
def noted(holder):
    holder.seen = np.zeros(2)
    return holder
def tagged(array, unit):
    array.unit = unit
    return array
def read_only(array):
    array.flags.writeable = False
    return array
def refuses(array):
    try: array[0] = 1
    except ValueError: return True
def views(owner):
    return owner, owner[1:], owner[1:][1:], owner.reshape(2, 3).T
def file(nbytes=64):
    number, name = tempfile.mkstemp(dir=".")
    os.write(number, bytes(nbytes))
    os.close(number)
    return name
def saved(mode):
    name = file() + ".npy"
    np.save(name, np.zeros(3))
    return np.load(name, mmap_mode=mode)
def both(tensor): return tensor, tensor.numpy()
def over(array): return array, torch.from_numpy(array)
def over_buffer(buffer):
    return buffer, np.frombuffer(buffer, "u1")[:3], torch.frombuffer(buffer, dtype=torch.uint8)
def over_ctypes():
    raw = multiprocessing.get_context("forkserver").RawArray("d", 3)
    return raw, np.frombuffer(raw)
def broadcast(array): return array, np.broadcast_to(array, (4, 3)), as_strided(array, (4, 3), (0, 8))
def wrapped():
    wrapper = Wrapper()
    return wrapper, np.asarray(wrapper)
memory = shared_memory.SharedMemory(create=True, size=64)
memory.unlink()
mapped = np.memmap(file(), "f8", "r+", shape=(6,))
struct = np.dtype([("a", "i4"), ("xy", "f8", (2,)), ("inner", [("tag", "U2")])])
"""

DTYPES = [*"?bBhHiIlLqQefdgFDG", ">i2", ">u8", ">f2", ">f8", ">c16"]
WRITE = "it[rank] = 1"
LIST = "it.tolist() == [1, 1, 0]"
EVERY_DTYPE = [
    Kind(
        name=f"dtype {name}",
        make=f"np.zeros(3, {name!r})",
        arrives=f"it.dtype.str == {np.dtype(name).str!r}",
        holds=LIST,
    )
    for name in DTYPES
]

LAYOUTS = [
    Kind(
        name=make,
        make=make,
        arrives=f"it.strides == {eval(make).strides}",  # noqa: S307  # written below
        write="it[rank] = 1",
        holds="it[0].all() and it[1].all() and not it[2:].any()",
    )
    for make in [
        "np.zeros((3, 4))",
        "np.zeros((3, 4), order='F')",
        "np.zeros((4, 3)).T",
        "np.zeros(6)[::-1]",
        "np.zeros((8, 8))[::-2, ::3]",
        "np.zeros((3, 4, 5)).transpose(1, 2, 0)[:, ::-1]",
    ]
]

BUFFERS = [
    Kind(
        name=f"over {make}",
        make=f"over_buffer({make})",
        write="it[1 + rank][rank] = 1",
        holds="it[1].tolist() == it[2][:3].tolist() == [1, 1, 0]",
    )
    for make in [
        "bytearray(64)",
        "array.array('B', bytes(64))",
        "(ctypes.c_byte * 64)()",
        "memoryview(bytearray(64))",
    ]
]

KINDS = [
    *EVERY_DTYPE,
    *LAYOUTS,
    Kind(
        name="times",
        make="np.zeros(3, 'M8[ns]')",
        write="it[rank] = np.datetime64('2020-01-01')",
        holds="it[0] == it[1] == np.datetime64('2020-01-01') and it[2] == np.datetime64(0, 'ns')",
    ),
    Kind(
        name="durations",
        make="np.zeros(3, 'm8[s]')",
        write="it[rank] = 1",
        holds="it.astype(int).tolist() == [1, 1, 0]",
    ),
    Kind(
        name="text",
        make="np.zeros(3, '>U4')",
        write="it[rank] = 'é✓'",
        holds="it.tolist() == ['é✓', 'é✓', '']",
    ),
    Kind(
        name="bytes",
        make="np.zeros(3, 'S4')",
        write="it[rank] = b'ab'",
        holds="it.tolist() == [b'ab', b'ab', b'']",
    ),
    Kind(
        name="void",
        make="np.zeros(3, 'V2')",
        write="it[rank] = b'ab'",
        holds="bytes(it.data) == b'abab' + bytes(2)",
    ),
    Kind(
        name="structured",
        make="(lambda rows: (rows, rows['a']))(np.zeros(3, struct))",
        write="it[0]['xy'][rank], it[0]['inner']['tag'][rank], it[1][rank] = 2, 'q', 1",
        holds="it[0]['a'].tolist() == [1, 1, 0] and it[0]['xy'].tolist() == [[2, 2], [2, 2], [0, 0]]"
        " and it[0]['inner']['tag'].tolist() == ['q', 'q', '']",
    ),
    Kind(
        name="rows of a structured array",
        make="(lambda rows: (rows, rows[0], rows[1]))(np.zeros(3, struct))",
        arrives="type(it[1]) is np.void",
        write="it[1 + rank]['a'], it[1 + rank]['xy'][rank] = 1 + rank, 2",
        holds="it[0]['a'].tolist() == [1, 2, 0] and it[0]['xy'].tolist() == [[2, 0], [0, 2], [0, 0]]"
        " and [row['a'] for row in it[1:]] == [1, 2]",
    ),
    Kind(
        name="a record of its own, and one of an array",
        make="(np.rec.array([(0, 0), (0, 0)], 'i4,i4')[0], np.zeros(2, 'i4,i4')[1], np.void(b'ab'),"
        " read_only(np.zeros(2, 'i4,i4'))[0], np.zeros(2, [('o', object), ('x', 'f8')])[1])",
        arrives="type(it[0]) is np.record and bytes(it[2]) == b'ab' and it[4]['o'] == 0"
        " and not it[3].flags.writeable",
        write="it[0][rank] = it[1][rank] = 1",
        holds="it[0].tolist() == it[1].tolist() == (1, 1)",
    ),
    Kind(
        name="aligned",
        make="np.zeros(3, np.dtype([('a', 'i1'), ('b', 'f8')], align=True))",
        arrives="it.dtype.isalignedstruct",
        write="it['b'][rank] = 1",
        holds="it['b'].tolist() == [1, 1, 0]",
    ),
    Kind(
        name="metadata",
        make="np.zeros(3, np.dtype('f8', metadata={'unit': 'm'}))",
        arrives="it.dtype.metadata['unit'] == 'm'",
        holds=LIST,
    ),
    Kind(
        name="records",
        make="np.rec.array(np.zeros(3, [('a', 'i4'), ('b', 'f8')]))",
        arrives="type(it) is np.recarray and type(it[0]) is np.record",
        write="it.a[rank] = 1",
        holds="it.a.tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a matrix",
        make="np.matrix(np.zeros((3, 2)))",
        arrives="type(it) is np.matrix",
        holds="it[:, 1].ravel().tolist() == [[1, 1, 0]]",
    ),
    Kind(
        name="characters",
        make="np.zeros(3, 'S2').view(np.char.chararray)",
        arrives="type(it) is np.char.chararray",
        write="it[rank] = b'x'",
        holds="it.tolist() == [b'x', b'x', b'']",
    ),
    Kind(
        name="masked",
        make="np.ma.array(np.zeros(3), mask=[0, 0, 1], fill_value=-5)",
        arrives="it.fill_value == -5",
        write="it[1 - rank] = 1; it.mask[0]",
        holds="it.data.tolist() == [1, 1, 0] and it.mask.tolist() == [False, False, True]",
    ),
    Kind(
        name="a mask",
        make="np.ma.array(np.zeros(3), mask=np.zeros(3, bool))",
        write="it[rank] = np.ma.masked",
        holds="it.mask.tolist() == [True, True, False]",
    ),
    Kind(
        name="masked views",
        make="(lambda m: (m, m[1:]))(np.ma.array(np.zeros(3), mask=[0, 0, 1]))",
        write="it[rank][0] = 1",
        holds="it[0].data.tolist() == [1, 1, 0] and it[1].data.tolist() == [1, 0]",
    ),
    Kind(
        name="masked records",
        make="mrecords.fromarrays([np.zeros(3), np.zeros(3)], names='a,b')",
        arrives="type(it) is mrecords.MaskedRecords",
        write="it.a[rank] = 1",
        holds="it.a.data.tolist() == [1, 1, 0]",
    ),
    Kind(name="the masked constant", make="np.ma.masked", write="", holds="it is np.ma.masked"),
    Kind(name="a type's limits", make="np.finfo('f4')", write="", holds="it.eps == np.finfo('f4').eps"),
    Kind(
        name="of a class with slots",
        make="tagged(np.zeros(3).view(Slotted), 'm')",
        arrives="type(it) is Slotted and it.unit == 'm'",
    ),
    Kind(
        name="a class",
        make="tagged(np.zeros(3).view(Vector), 'm')",
        arrives="type(it) is Vector and it.unit == 'm'",
        holds=LIST,
    ),
    Kind(
        name="a class that says how it is pickled",
        make="tagged(np.zeros(3).view(Reduced), 'm')",
        arrives="type(it) is Reduced and it.unit == 'm'",
        holds=LIST,
    ),
    Kind(
        name="no elements",
        make="np.zeros((0, 3), '>f4')",
        arrives="it.dtype.str == '>f4'",
        write="",
        holds="it.shape == (0, 3)",
    ),
    Kind(name="no dimensions", make="np.array(0.0)", write="it[...] = 1", holds="it[()] == 1"),
    Kind(
        name="read-only",
        make="read_only(np.zeros(3))",
        arrives="refuses(it)",
        write="",
        holds="not it.flags.writeable",
    ),
    Kind(
        name="a read-only view",
        make="(lambda a: (a, read_only(a[:])))(np.zeros(3))",
        arrives="refuses(it[1])",
        write="it[0][rank] = 1",
        holds="it[1].tolist() == [1, 1, 0] and not it[1].flags.writeable",
    ),
    Kind(
        name="broadcast",
        make="broadcast(np.zeros(3))",
        arrives="it[1].strides == (0, 8) and not it[1].flags.writeable",
        write="it[2][rank, rank] = 1",
        holds="it[0].tolist() == it[1][3].tolist() == it[2][2].tolist() == [1, 1, 0]",
    ),
    Kind(
        name="views of views",
        make="views(np.zeros(6))",
        arrives="np.shares_memory(it[1], it[3])",
        write="it[2 + rank].flat[0] = 1",
        holds="it[0].tolist() == [1, 0, 1, 0, 0, 0] and it[1][1] == it[3][2, 0] == 1",
    ),
    Kind(name="only a view", make="np.zeros(9)[2:].reshape(7, 1)[1:4, 0]", holds=LIST),
    Kind(
        name="memory map r+",
        make="mapped[:3]",
        arrives="type(it) is np.memmap and it.mode == 'r+'",
        holds=LIST,
    ),
    Kind(
        name="memory map r",
        make="np.memmap(file(), 'f8', 'r', offset=8)[1:]",
        arrives="type(it) is np.memmap and it.mode == 'r' and refuses(it)",
        write="",
        holds="it.shape == (6,)",
    ),
    Kind(name="memory map c", make="np.memmap(file(), 'f8', 'c', shape=3)", holds=LIST),
    Kind(
        name="memory map w+",
        make="np.lib.format.open_memmap(file(), 'w+', 'f4', (3,))",
        arrives="type(it) is np.memmap",
        holds=LIST,
    ),
    Kind(
        name="a loaded map, r",
        make="saved('r')",
        arrives="type(it) is np.memmap and refuses(it)",
        write="",
        holds="it.tolist() == [0, 0, 0]",
    ),
    Kind(name="a loaded map, c", make="saved('c')", holds=LIST),
    Kind(
        name="an array over a map",
        make="np.asarray(mapped)[3:]",
        holds=LIST + " and mapped[3:].tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a tensor over a map",
        make="(lambda m: (m, torch.from_numpy(m)))(np.memmap(file(), 'f8', 'r+', shape=3))",
        write="it[1][rank] = 1",
        holds="it[0].tolist() == it[1].tolist() == [1, 1, 0]",
    ),
    *BUFFERS,
    Kind(
        name="views of an array and of bytes",
        make="(lambda a: (a, memoryview(a), memoryview(a)[1:], memoryview(b'abc')))(np.zeros((3, 2), 'i2'))",
        arrives="[type(view) for view in it[1:]] == [memoryview] * 3 and it[1].shape == (3, 2)"
        " and it[1].format == 'h' and it[3].readonly and bytes(it[3]) == b'abc'",
        write="it[1][rank, 0] = it[2][1, rank] = 1",
        holds="it[0].tolist() == it[1].tolist() == [[1, 0], [1, 0], [1, 1]]",
    ),
    Kind(
        name="in a notebook module that a library's holds",
        make="nn.Sequential(nn.ModuleDict({'a': Noting()}))",
        write="it[0]['a'].seen[rank] = 1",
        holds="it[0]['a'].seen.tolist() == [1, 1]",
    ),
    Kind(
        name="in a notebook object that a library's holds",
        make="torch.utils.data.DataLoader(torch.utils.data.Subset(Rows(), [0]))",
        write="it.dataset.dataset.seen[rank] = 1",
        holds="it.dataset.dataset.seen.tolist() == [1, 1]",
    ),
    Kind(
        name="in a library's module",
        make="nn.Sequential(noted(nn.Linear(1, 1)))",
        write="it[0].seen[rank] = 1",
        holds="it[0].seen.tolist() == [1, 1]",
    ),
    Kind(
        name="over an anonymous map",
        make="over_buffer(mmap.mmap(-1, 64))[1:]",
        write="it[rank][rank] = 1",
        holds="it[0].tolist() == it[1][:3].tolist() == [1, 1, 0]",
    ),
    Kind(name="over SharedMemory", make="np.ndarray(3, 'u1', buffer=memory.buf)", holds=LIST),
    Kind(
        name="over shared ctypes",
        make="over_ctypes()",
        write="it[rank][rank] = 1",
        holds="list(it[0]) == it[1].tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a tensor and its array",
        make="both(torch.zeros(3))",
        write="it[rank][rank] = 1",
        holds="it[0].tolist() == it[1].tolist() == [1, 1, 0]",
    ),
    Kind(
        name="an array and its tensor",
        make="over(np.zeros(3))",
        write="it[rank][rank] = 1",
        holds="it[0].tolist() == it[1].tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a tensor over part of an array",
        make="(lambda a: (a, torch.as_tensor(a[1:])))(np.zeros(3))",
        write="it[1 - rank][rank] = 1",
        holds="it[0].tolist() == [0, 1, 0] and it[1].tolist() == [1, 0]",
    ),
    Kind(
        name="an array of part of a tensor",
        make="(lambda t: (t, np.asarray(t[1:])))(torch.zeros(3))",
        write="it[1 - rank][rank] = 1",
        holds="it[0].tolist() == [0, 1, 0] and it[1].tolist() == [1, 0]",
    ),
    Kind(
        name="a parameter's array",
        make="(lambda p: (p, p.detach().numpy()))(nn.Parameter(torch.zeros(3)))",
        write="it[1][rank] = 1",
        holds="it[0].tolist() == [1, 1, 0]",
    ),
    Kind(
        name="by DLPack",
        make="(lambda t: (t, np.from_dlpack(t), torch.from_dlpack(t)))(torch.zeros(3))",
        write="it[2 * rank][rank] = 1",
        holds="all(each.tolist() == [1, 1, 0] for each in it)",
    ),
    Kind(
        name="by __array_interface__",
        make="wrapped()",
        write="(it[0].inner, it[1])[rank][rank] = 1",
        holds="it[0].inner.tolist() == it[1].tolist() == [1, 1, 0]",
    ),
    Kind(name="a scalar", make="np.float32(3)", write="", holds="type(it) is np.float32 and it == 3"),
    Kind(name="a polynomial", make="np.polynomial.Polynomial(np.ones(3))", write="", holds="it(2.0) == 7"),
]


@pytest.fixture(scope="module")
def problems(shared_notebook: Kernel) -> dict[str, str]:
    return problems_of(shared_notebook, KINDS, setup=SETUP)


@pytest.mark.parametrize("name", [kind.name for kind in KINDS])
def test_each_kind_of_array_is_shared(problems: dict[str, str], name: str) -> None:
    assert name not in problems, problems[name]
    assert f"{name} in rank 0" not in problems, problems[f"{name} in rank 0"]


OWN_COPY = """
import pandas as pd, scipy.sparse
class Estimator:
    def __init__(self): self.coef_ = np.zeros(3)
held = np.zeros((3, 2))
copies = {
    "objects": np.array([np.zeros(2), "x", None], dtype=object),
    "structured with objects": np.zeros(3, [("o", object), ("x", "f8")]),
    "frame": pd.DataFrame({"a": np.zeros(3), "b": ["x"] * 3}),
    "series": pd.Series(np.zeros(3)),
    "sparse": scipy.sparse.csr_array(np.eye(3)),
    "over held": pd.DataFrame(held, copy=False),
}
if hasattr(np.dtypes, "StringDType"):
    copies["strings"] = np.array(["x", "y" * 50], dtype=np.dtypes.StringDType())
own = Estimator()
"""


def test_what_lies_in_objects_of_others_is_a_copy_that_each_rank_writes(shared_notebook: Kernel) -> None:
    shared_notebook.run(f"import numpy as np\n{OWN_COPY}").check()
    shared_notebook.run(
        "%%parallel nprocs=2\n"
        "assert copies['objects'][0].sum() == copies['frame'].a.sum() == 0\n"
        "copies['objects'][0][rank] = 1; copies['objects'][1] = 'y'\n"
        "copies['structured with objects']['x'][rank] = 1\n"
        "copies['frame'].loc[rank, 'a'] = 1; assert copies['frame'].a.sum() == 1\n"
        "copies['series'].iloc[rank] = 1; assert copies['series'].sum() == 1\n"
        "copies['sparse'].data[rank] = 5; assert copies['sparse'].sum() == 7\n"
        "if 'strings' in copies: assert copies['strings'][1] == 'y' * 50; copies['strings'][0] = 'z'\n"
        "held[rank] = own.coef_[rank] = 1"
    ).check()
    shared_notebook.run(
        "assert copies['objects'][0].tolist() == [0, 0] and copies['objects'][1] == 'x'\n"
        "assert not copies['structured with objects']['x'].any() and not copies['frame'].a.any()\n"
        "assert not copies['series'].any() and copies['sparse'].sum() == 3\n"
        "if 'strings' in copies: assert copies['strings'][0] == 'x'\n"
        "assert held.tolist() == copies['over held'].values.tolist() == [[1, 1], [1, 1], [0, 0]]\n"
        "assert own.coef_.tolist() == [1, 1, 0]"
    ).check()


UNMASKED = """
import numpy as np
class Box:
    def __init__(self): self.array = np.ma.zeros(4)[::2]
plain, divided, hard, untouched, rows = (np.ma.zeros((3, 2)) for _ in range(5))
hard.harden_mask()
struct = np.ma.zeros(3, [("a", "f8"), ("b", "i4", (2,))])
single, held, box = np.ma.array(3.0), [np.ma.zeros(3)], Box()
head = rows[:1]
all_of_them = [plain, divided, hard, untouched, rows, struct, single, *held, box.array, head]
same = list(all_of_them)
"""
MASKING = """
plain[rank, 0] = hard[rank] = held[0][rank] = box.array[rank] = head[0, rank] = np.ma.masked
hard[rank] = 3
divided[rank:rank + 1] /= 0
struct[rank] = single[...] = np.ma.masked
struct["a"][2] = np.ma.masked  # of a view without a mask, as is
part = untouched[rank:]
part[0] = np.ma.masked
"""


@pytest.mark.parametrize("options", ["", "start_method=fork", "background=job"])
def test_arrays_without_a_mask_get_the_one_that_they_would_have_from_a_serial_run(
    shared_notebook: Kernel, options: str
) -> None:
    shared_notebook.run(UNMASKED).check()
    shared_notebook.run(f"for rank in range(2):\n{_indented(MASKING)}").check()
    serial = shared_notebook.value("[str(array.mask.tolist()) for array in all_of_them]")
    shared_notebook.run(UNMASKED).check()
    shared_notebook.run(
        f"%%parallel nprocs=2 {options}\nassert plain.mask is np.ma.nomask\n{MASKING}"
    ).check()
    if "job" in options:
        shared_notebook.run("job.wait()").check()
    assert shared_notebook.value("[str(array.mask.tolist()) for array in all_of_them]") == serial
    assert shared_notebook.value("untouched.mask is rows.mask is np.ma.nomask") is True
    assert shared_notebook.value("hard.data.tolist()") == [[0, 0]] * 3
    assert shared_notebook.value("all(map(lambda new, old: new is old, all_of_them, same))") is True


def test_what_a_rank_masked_before_it_failed_is_masked(shared_notebook: Kernel) -> None:
    shared_notebook.run("import numpy as np\nfailed = np.ma.zeros(3)").check()
    reply = shared_notebook.run("%%parallel nprocs=2\nfailed[rank] = np.ma.masked\nnbshm.barrier()\n1 / rank")
    assert reply.error is not None
    assert shared_notebook.value("failed.mask.tolist()") == [True, True, False]


def _indented(source: str) -> str:
    return "".join(f"    {line}\n" for line in source.splitlines())
