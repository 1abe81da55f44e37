from __future__ import annotations

import numpy as np
import pytest
from memory_notebook import Notebook, in_segment
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from nbshm.memory.ownership.extents import extent


def test_layouts_arrive_as_they_are(notebook: Notebook):
    notebook["x"] = np.zeros((4, 3))
    notebook["column"], notebook["reversed"] = notebook["x"][:, 1], notebook["x"][::-1]
    notebook["turned"], notebook["fortran"] = notebook["x"].T, np.zeros((4, 2), order="F")
    notebook["wide"] = np.broadcast_to(np.arange(3.0), (4, 3))
    notebook.run(
        "assert fortran.flags.f_contiguous and reversed.strides == (-24, 8)\n"
        "assert not wide.flags.writeable and wide.strides[0] == 0 and wide.sum() == 12\n"
        "column[0] = 5; reversed[0, 0] = 8; turned[2, 1] = 9; fortran[1] = 4",
        *notebook.namespace,
    )
    assert notebook["x"].tolist() == [[0, 5, 0], [0, 0, 9], [0, 0, 0], [8, 0, 0]]
    assert notebook["fortran"].tolist() == [[0, 0], [4, 4], [0, 0], [0, 0]]
    assert notebook["fortran"].flags.f_contiguous
    assert in_segment(notebook, notebook["column"])


def test_windows_over_an_array_move_with_it(notebook: Notebook):
    notebook["x"] = np.zeros(6)
    notebook["windows"] = sliding_window_view(notebook["x"], 3)
    notebook["part"] = as_strided(notebook["x"][1:], (2, 2), (8, 16))[1:]
    notebook.run("x[2] = 5; part[0, 1] = 7\nassert not windows.flags.writeable", "x", "part", "windows")
    assert notebook["windows"].tolist() == [[0, 0, 5], [0, 5, 0], [5, 0, 7], [0, 7, 0]]
    assert notebook["part"].tolist() == [[5, 7]]
    assert all(in_segment(notebook, notebook[name]) for name in ("x", "windows", "part"))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((1, 0), np.complex64),
        np.empty(0, "U3"),
        np.zeros((4, 3))[4:, ::-1],
        np.zeros(3, "S0"),
        np.zeros((0, 0)).T,
    ],
)
def test_an_array_without_bytes_keeps_shape_and_dtype(notebook: Notebook, array):
    notebook["a"] = array
    (result,) = notebook.run("result = a", "a")
    assert (result.shape, result.dtype) == (array.shape, array.dtype)


def test_arrays_of_objects_travel_by_pickle(notebook: Notebook):
    notebook["objects"] = np.array([{"k": 1}, None, "txt", [1, 2]], dtype=object)
    notebook["mixed"] = np.array([(1, "p")], dtype=[("n", "i4"), ("o", object)])
    notebook["masked"] = np.ma.array([[1], "a"], mask=[0, 1], dtype=object)
    notebook.run(
        "assert objects[0]['k'] == 1 and mixed['o'][0] == 'p' and masked.mask.tolist() == [False, True]\n"
        "objects[0]['k'] = 2",
        *notebook.namespace,
    )
    assert notebook["objects"][0] == {"k": 1}


def test_masked_arrays_share_data_and_mask(notebook: Notebook):
    masked = notebook["m"] = np.ma.array([1.0, 2, 3], mask=[0, 1, 0], fill_value=-5)
    bare = notebook["b"] = np.ma.array([1.0, 2])
    hard = notebook["h"] = np.ma.array([1.0, 2], mask=[1, 0], hard_mask=True)
    notebook.run(
        "assert type(m) is np.ma.MaskedArray and m.fill_value == -5 and b.mask is np.ma.nomask\n"
        "assert h.hardmask and not m.hardmask\n"
        "m[2] = 9; m[0] = np.ma.masked; b[1] = 4; h[0] = 3",
        "m",
        "b",
        "h",
    )
    assert masked.data.tolist() == [1, 2, 9]
    assert masked.mask.tolist() == [True, True, False]
    assert bare.tolist() == [1, 4]
    assert hard.data.tolist() == [1, 2]


def test_a_read_only_array_stays_so(notebook: Notebook):
    notebook["r"] = np.arange(3.0)
    notebook["r"].flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        notebook.run("r[0] = 1", "r")
    assert not notebook["r"].flags.writeable
    assert in_segment(notebook, notebook["r"])


def test_bytes_are_not_written_through_an_array_over_them(notebook: Notebook):
    content = b"abc"
    notebook["a"] = np.frombuffer(content, np.uint8)
    _, placement = notebook.place("a")
    with placement:
        assert not any(spot.back for spot in placement._spots)
    assert content == b"abc"


def test_memory_maps_keep_their_file_and_mode(notebook: Notebook, tmp_path):
    file = tmp_path / "data.bin"
    whole = notebook["whole"] = np.memmap(file, "i8", "w+", shape=(4,))
    own = notebook["own"] = np.memmap(file, "i8", "c", shape=(4,))
    own[0] = 3
    notebook["tail"] = np.memmap(file, "i8", "r", offset=16, shape=(2,))
    notebook["odd"], notebook["plain"] = whole[1::2], np.asarray(whole)
    notebook.run(
        "assert all(type(part) is np.memmap for part in (whole, tail, odd))\n"
        "import os; assert not tail.flags.writeable and os.path.samefile(whole.filename, odd.filename)\n"
        "whole[0] = 5; whole.flush(); odd[1] = 7; own[2] = 9; plain[1] = 6\n"
        "assert tail.tolist() == [0, 7] and whole.tolist() == [5, 6, 0, 7] and own[0] == 3",
        *notebook.namespace,
    )
    assert own[:3].tolist() == [3, 0, 9]
    assert whole.tolist() == np.fromfile(file, "i8").tolist() == [5, 6, 0, 7]


def test_a_memory_map_whose_file_is_gone_is_an_array(notebook: Notebook, tmp_path):
    file = tmp_path / "data.bin"
    whole = notebook["whole"] = np.memmap(file, "i8", "w+", shape=(4,))
    file.unlink()
    notebook.run("whole[0] = 5; assert type(whole) is np.ndarray", "whole")
    assert whole[0] == 5


@pytest.mark.parametrize("content", [b"", b"another file of the same name, long enough"])
def test_a_memory_map_whose_file_was_replaced_keeps_its_contents(notebook: Notebook, tmp_path, content):
    file = tmp_path / "data.bin"
    np.arange(4, dtype="i8").tofile(file)
    notebook["writeable"] = np.memmap(file, "i8", "r+", shape=(4,))
    notebook["read"] = np.memmap(file, "i8", "r", shape=(4,))
    (tmp_path / "new").write_bytes(content)
    (tmp_path / "new").replace(file)
    notebook.run(
        "assert read.tolist() == writeable.tolist() == [0, 1, 2, 3]\nwriteable[0] = 9", *notebook.namespace
    )
    assert notebook["writeable"].tolist() == [9, 1, 2, 3]
    assert file.read_bytes() == content


def test_arrays_of_other_classes_are_shared_with_their_attributes(notebook: Notebook):
    vectors = vector_class()
    base = np.zeros(6)
    vector = notebook["vector"] = base[::2].view(vectors)
    vector.unit, vector.error = "m", np.zeros(2)
    vector.itself = vector
    matrix = notebook["matrix"] = np.array([[1, 2], [3, 4]]).view(np.matrix)
    (result,) = notebook.run(
        "assert vector.unit == 'm' and vector.itself is vector and vector.finalized\n"
        "vector[1] = 5; vector.error[0] = 6; matrix[0, 0] = 7\n"
        "assert type(matrix) is np.matrix\n"
        "result = vector",
        *notebook.namespace,
    )
    assert (base.tolist(), vector.error.tolist()) == ([0, 0, 5, 0, 0, 0], [6, 0])
    assert matrix.tolist() == [[7, 2], [3, 4]]
    assert (type(result).__name__, result.unit, np.shares_memory(result, base)) == ("Vector", "m", True)


def vector_class() -> type:
    """Make a class that travels by value, as it can't be imported."""

    class Vector(np.ndarray):
        def __array_finalize__(self, original):
            self.finalized = True

    return Vector


def test_a_snapshot_of_another_class_is_a_copy(notebook: Notebook):
    notebook["matrix"] = np.array([[1, 2], [3, 4]]).view(np.matrix)
    _, placement = notebook.place("matrix", is_shared=lambda _: False)
    with placement:
        assert placement.sizes == ()
    notebook.run("assert type(matrix) is np.matrix; matrix[0, 0] = 7", "matrix", is_shared=lambda _: False)
    assert notebook["matrix"][0, 0] == 1


def test_a_masked_array_of_another_class_shares_data_and_mask(notebook: Notebook):
    kind = type("Masked", (np.ma.MaskedArray,), {"__module__": "__main__"})
    masked = notebook["masked"] = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]).view(kind)
    notebook.run(
        "assert type(masked).__name__ == 'Masked'; masked.data[0] = 8; masked[2] = np.ma.masked", "masked"
    )
    assert masked.data.tolist() == [8, 2, 3]
    assert masked.mask.tolist() == [False, True, True]


def test_a_snapshot_of_one_column_does_not_take_the_table_along(notebook: Notebook):
    notebook["column"] = np.zeros((1000, 1000))[:, 3]
    _, placement = notebook.place("column", is_shared=lambda _: False)
    with placement:
        assert sum(placement.sizes) < 10_000


@pytest.mark.parametrize(
    ("array", "start", "length"),
    [
        (np.zeros((2, 3)), 0, 48),
        (np.zeros((2, 3))[:, 1], 8, 32),
        (np.zeros(4)[::-2], 8, 24),
        (np.broadcast_to(np.zeros(3), (5, 3)), 0, 24),
        (np.zeros((2, 3)).T[::-1], 0, 48),
        (np.zeros(3)[3:], 0, 0),
    ],
)
def test_the_extent_of_an_array_is_what_its_strides_reach(array, start, length):
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    address, nbytes = extent(array)
    assert nbytes == length
    assert length == 0 or address - base.__array_interface__["data"][0] == start
