"""Memory shared ahead of a cell: `nbshm.share`, `nbshm.empty`, `nbshm.zeros`."""

from __future__ import annotations

import collections
import dataclasses
import resource
import sys
import types

import numpy as np
import pytest
import torch
from memory_notebook import Notebook, in_segment

import nbshm
from nbshm.machine.descriptor_limit import opened_descriptors
from nbshm.memory.shared import limits
from nbshm.memory.shared.limits import Room
from nbshm.memory.sharing import move_unsent
from nbshm.sharing import sharing_for


class Own:
    def __init__(self, **attributes):
        vars(self).update(attributes)


@dataclasses.dataclass(slots=True)
class Slotted:
    array: np.ndarray


Own.__module__ = Slotted.__module__ = "__main__"


@pytest.fixture
def shared(notebook: Notebook):
    """A notebook whose cells can share their memory: `run(source)` runs one in its namespace."""
    sharer = types.SimpleNamespace(
        segments=notebook.segments, mappings=lambda: [notebook.namespace, notebook.out]
    )
    notebook.namespace.update(nbshm=nbshm, np=np, torch=torch, Own=Own, Slotted=Slotted)
    with sharing_for(sharer):
        yield notebook


def run(notebook: Notebook, source: str) -> None:
    exec(source, notebook.namespace)  # noqa: S102  # the code is a test's own


def test_an_array_is_shared_with_all_its_names_and_views(shared: Notebook):
    run(shared, "x = np.arange(6.0); same, tail = x, x[2:]")
    shared.out[3] = shared["x"]
    run(shared, "got = nbshm.share(x)")
    assert shared["got"] is shared["x"] is shared["same"] is shared.out[3]
    assert in_segment(shared, shared["x"])
    assert np.shares_memory(shared["x"], shared["tail"])
    assert shared["x"].tolist() == [0, 1, 2, 3, 4, 5]
    shared.run("x += 1", "x")
    assert shared["tail"].tolist() == [3, 4, 5, 6]


def test_what_is_shared_already_is_itself(shared: Notebook):
    run(
        shared,
        "x, t = nbshm.share(np.ones(3)), nbshm.share(torch.ones(3)); y, u = nbshm.share(x), nbshm.share(t)",
    )
    assert shared["x"] is shared["y"]
    assert shared["t"] is shared["u"]


def test_a_masked_array_over_what_is_shared_already_is_itself(shared: Notebook):
    run(shared, "m = np.ma.array(nbshm.zeros(3), copy=False, fill_value=5)\ngot = nbshm.share(m)")
    assert shared["got"] is shared["m"]
    assert shared["m"].mask is np.ma.nomask


def test_sharing_a_view_shares_what_it_is_a_view_of(shared: Notebook):
    run(shared, "x = np.arange(6.0); part = nbshm.share(x[::2])")
    assert np.shares_memory(shared["x"], shared["part"])
    assert shared["part"].tolist() == [0, 2, 4]
    assert in_segment(shared, shared["x"])


def test_a_tensor_moves_in_place_with_all_that_refers_to_it(shared: Notebook):
    run(shared, "t = torch.arange(4.0); keep = [t, t[1:]]; got = nbshm.share(t)")
    assert shared["got"] is shared["t"] is shared["keep"][0]
    assert in_segment(shared, shared["t"])
    assert in_segment(shared, shared["keep"][1])


def test_a_small_tensor_that_numpy_looked_at_is_shared_once_it_does_not_any_more(shared: Notebook):
    run(shared, "t = torch.ones(3); view = t.numpy(); del view; nbshm.share(t)")
    assert in_segment(shared, shared["t"])


def test_a_module_and_its_optimizer_are_shared(shared: Notebook):
    run(
        shared,
        "model = torch.nn.BatchNorm1d(3)\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "model(torch.ones(2, 3)).sum().backward()\n"
        "optimizer.step()\n"
        "got = nbshm.share({'model': model, 'optimizer': optimizer})",
    )
    model, optimizer = shared["model"], shared["optimizer"]
    states = [value for state in optimizer.state.values() for value in state.values()]
    tensors = [*model.parameters(), *model.buffers(), model.weight.grad, *states]
    assert len(tensors) > 8
    assert all(in_segment(shared, tensor) for tensor in tensors)
    assert optimizer.param_groups[0]["params"][0] is model.weight


def test_the_tensors_in_an_object_of_a_library_are_shared(shared: Notebook):
    shared["points"] = torch.utils.data.TensorDataset(torch.zeros(3, 2))
    run(shared, "nbshm.share(points)")
    assert in_segment(shared, shared["points"].tensors[0])


def test_containers_keep_their_identity_and_have_shared_arrays_in_them(shared: Notebook):
    run(
        shared,
        "import collections\n"
        "rows = [np.ones(3), {'deep': collections.deque([np.zeros(2)]), 'number': 3}, Own(x=np.ones(1))]\n"
        "got = nbshm.share(rows)",
    )
    rows = shared["rows"]
    assert shared["got"] is rows
    assert isinstance(rows[1]["deep"], collections.deque)
    assert all(in_segment(shared, array) for array in (rows[0], rows[1]["deep"][0], rows[2].x))


def test_an_array_that_a_container_and_a_name_hold_stays_one(shared: Notebook):
    run(shared, "x = np.ones(3); rows = {'x': x, 'view': x[1:]}; nbshm.share(rows)")
    assert shared["rows"]["x"] is shared["x"]
    assert np.shares_memory(shared["rows"]["view"], shared["x"])


def test_a_tuple_that_the_call_makes_gives_a_tuple_back(shared: Notebook):
    run(shared, "a, b, c = nbshm.share((np.ones(3), torch.ones(2), np.zeros(1)))")
    assert all(in_segment(shared, shared[name]) for name in "abc")


def test_a_function_gets_the_shared_array_for_its_variable(shared: Notebook):
    run(
        shared,
        "def load():\n"
        "    data = np.arange(3.0)\n"
        "    other = data\n"
        "    data = nbshm.share(data)\n"
        "    return data, other\n"
        "data, other = load()",
    )
    assert in_segment(shared, shared["data"])
    assert not in_segment(shared, shared["other"])
    assert shared["data"].tolist() == shared["other"].tolist() == [0, 1, 2]


def test_calls_that_are_traced_do_not_hold_what_they_are_given(shared: Notebook):
    shared["x"] = np.ones(3)
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        run(shared, "nbshm.share(x)")
    finally:
        sys.settrace(before)
    assert in_segment(shared, shared["x"])


def test_sharing_leaves_no_old_memory_behind_in_the_caller():
    def load():
        data = np.arange(3.0)
        before = sys.getrefcount(data)
        nbshm.share(data)
        return sys.getrefcount(data) - before

    assert load() == 0


HOLDERS = {
    "the list 'keep'": "keep = [x]",
    "a tuple": "keep = [(x[1:],)]",
    "the dict 'keep'": "keep = {'x': x}",
    "a closure": "def make(y):\n    return lambda: y\nkeep = make(x)",
    "the Own 'keep'": "keep = Own(x=x)",
    "the last traceback": (
        "import sys\ndef fail(y):\n    1 / 0\ntry:\n    fail(x)\nexcept ZeroDivisionError as error:\n"
        "    sys.last_value = keep = error"
    ),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_array_that_something_else_holds_is_refused_with_who_holds_it(shared: Notebook, holder):
    run(shared, f"x = np.ones(3)\n{HOLDERS[holder]}")
    array = shared["x"]
    try:
        with pytest.raises(nbshm.CannotSend) as refused:
            run(shared, "nbshm.share(x)")
    finally:
        sys.__dict__.pop("last_value", None)
        shared.namespace.pop("keep")
    remedy = "Share its copy(), or leave it to the parallel cell, which copies it in and back."
    if holder in {"the list 'keep'", "the dict 'keep'", "the Own 'keep'"}:
        remedy = "Use nbshm.share(keep), which moves it too."
    assert str(refused.value) == f"cannot share 'x': it is held by {holder} too. {remedy}"
    assert shared["x"] is array


REFUSED = {
    "x = np.frombuffer(bytearray(8))": "its memory belongs to a bytearray",
    "x = torch.ones(3).numpy()": "its memory belongs to a torch.Tensor",
    "x = np.ma.masked_array([1, 2])": "it is a numpy.ma.MaskedArray, and only plain arrays can be moved",
    "x = np.rec.array([(1, 2)])": "it is a numpy.rec.recarray, and only plain arrays can be moved",
    "r = np.rec.array([(1, 2)], names='a,b'); x = r.a": "its memory belongs to a numpy.rec.recarray",
    "x = torch.ones(3); view = x.numpy()": "a numpy array or another library looks at its memory",
    "x = torch.ones(3); view = torch.from_dlpack(x)": "something that can't be seen",
    "x = torch.ones(3, requires_grad=True) * 2": "it is part of an autograd graph, which can't",
}


CELL = "it to the parallel cell, which copies it in and back."
INSIDE = {
    "x = {'q': [np.ones(2), (np.ones(3),)]}": (
        "x['q'][1][0]': it has no name of its own, but is held by a tuple. "
        f"Use a list in the place of the tuple, or leave {CELL}"
    ),
    "x = (np.ones(3), 1)": (
        "x[0]': it has no name of its own, but is held by the tuple 'x'. "
        f"Use a list in the place of the tuple, or leave {CELL}"
    ),
    "a = np.ones(3); x = [(a,)]": (
        f"a': it is held by a tuple too. Use a list in the place of the tuple, or leave {CELL}"
    ),
    "x = [np.ones(3)]; keep = (lambda y: lambda: y)(x[0])": (
        f"x[0]': it is held by a closure too. Put its copy() there, or leave {CELL}"
    ),
    "x = Own(y=Slotted(np.ones(3)))": (
        f"x.y.array': it has no name of its own, but is held by a Slotted. Leave {CELL}"
    ),
    "x = [{'k': torch.ones(3)}]; view = x[0]['k'].numpy()": (
        "x[0]['k']': a numpy array or another library looks at its memory. "
        f"Put its clone() there, or leave {CELL}"
    ),
    "x = [np.rec.array([(1, 2)])]": (
        f"x[0]': it is a numpy.rec.recarray, and only plain arrays can be moved. Leave {CELL}"
    ),
    "base = np.ones(6); keep = [base]; x = [np.lib.stride_tricks.sliding_window_view(base, 3)]": (
        "x[0]': it is held by the list 'keep' too. Use nbshm.share(keep), which moves it too."
    ),
}


@pytest.mark.parametrize("source", INSIDE)
def test_what_cannot_be_shared_inside_of_something_is_named_by_its_path(shared: Notebook, source: str):
    run(shared, source)
    with pytest.raises(nbshm.CannotSend) as refused:
        run(shared, "nbshm.share(x)")
    assert str(refused.value) == f"cannot share '{INSIDE[source]}"


def test_who_holds_an_array_is_found_beside_classes_that_cant_be_hashed(shared: Notebook):
    run(shared, "class Unhashable(type): __hash__ = None\nclass Odd(metaclass=Unhashable): pass")
    run(shared, "odd = [Odd()]; x = np.ones(3); keep = (x, odd[0])")
    with pytest.raises(nbshm.CannotSend, match="it is held by the tuple 'keep' too"):
        run(shared, "nbshm.share(x)")


def test_what_is_noted_while_holders_are_looked_for_is_none_of_them(shared: Notebook):
    run(shared, "x = np.ones(3); r, s = x.view(np.recarray), x.view(np.recarray)")
    with pytest.raises(nbshm.CannotSend) as refused:
        run(shared, "nbshm.share(x)")
    assert "list" not in str(refused.value)


@pytest.mark.parametrize("source", REFUSED)
def test_what_cannot_be_shared_is_refused_with_the_reason(shared: Notebook, source):
    run(shared, source)
    with pytest.raises(nbshm.CannotSend, match=f"cannot share 'x': {REFUSED[source]}"):
        run(shared, "nbshm.share(x)")


MODEL = "model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))\n"


def test_a_parameter_that_a_graph_has_saved_is_refused_by_its_path_and_that_graphs_name(shared: Notebook):
    run(shared, MODEL + "losses = [model(torch.ones(2, 3)).sum()]")
    with pytest.raises(nbshm.CannotSend) as refused:
        run(shared, "nbshm.share(model)")
    assert str(refused.value) == (
        "cannot share 'model.2.weight': what was computed from it is still there "
        "(an autograd graph: losses). "
        "Use `del losses`, or call backward(), which frees the graph, and share it then."
    )
    run(shared, "del losses\nnbshm.share(model)")
    assert all(in_segment(shared, parameter) for parameter in shared["model"].parameters())


def test_what_is_left_of_a_graph_after_backward_keeps_no_parameter_from_moving(shared: Notebook):
    run(shared, MODEL + "loss = model(torch.ones(2, 3)).sum(); loss.backward()\nnbshm.share(model)")
    parameters = list(shared["model"].parameters())
    assert all(in_segment(shared, parameter) for parameter in parameters)
    before = parameters[0].grad.clone()
    run(shared, "model(torch.ones(2, 3)).sum().backward()")
    assert torch.equal(parameters[0].grad, 2 * before)


def test_a_consumer_that_cannot_be_seen_counts_beside_the_rest_of_a_graph(shared: Notebook):
    run(shared, "p = torch.nn.Parameter(torch.ones(3)); loss = (2 * p).sum(); loss.backward()")
    run(shared, "view = torch.from_dlpack(p.detach())")
    with pytest.raises(nbshm.CannotSend, match="cannot share 'p': "):
        run(shared, "nbshm.share(p)")


def test_where_one_part_is_refused_none_has_moved(shared: Notebook):
    run(shared, "good, bad = torch.ones(3), np.ones(3); keep = [bad]")
    with pytest.raises(nbshm.CannotSend, match="cannot share 'bad'"):
        run(shared, "nbshm.share({'good': good, 'bad': bad})")
    assert not in_segment(shared, shared["good"])


@pytest.mark.parametrize("value", ["5", "'text'", "[1, {}]", "print"])
def test_what_has_no_memory_is_refused(shared: Notebook, value):
    with pytest.raises(TypeError, match=r"nbshm.share: there is no memory to share in a value of type"):
        run(shared, f"nbshm.share({value})")


def test_an_array_of_objects_is_refused(shared: Notebook):
    run(shared, "words = np.array(['a', None], dtype=object)")
    with pytest.raises(TypeError, match=r"^nbshm.share: an array of object can't be shared"):
        run(shared, "nbshm.share(words)")


@pytest.mark.parametrize("make", ["empty", "zeros"])
def test_new_arrays_are_like_numpys_and_used_without_a_copy(shared: Notebook, make):
    run(shared, f"x = nbshm.{make}((2, 3), 'i2', order='F')")
    array = shared["x"]
    keep = [array, array[1]]
    assert (array.shape, array.dtype, array.flags.f_contiguous) == ((2, 3), np.dtype("i2"), True)
    assert array.flags.writeable
    shared.run("x[:] = 5", "x")
    assert shared["x"] is keep[0]
    assert keep[1].tolist() == [5, 5, 5]


@pytest.mark.parametrize("shape", [0, (), 3, [2, 2], np.int64(4), (3, 0)])
def test_zeros_takes_the_shapes_that_numpy_takes(shape):
    array = nbshm.zeros(shape)
    assert array.shape == np.zeros(shape).shape
    assert array.dtype == float
    assert not array.any()


def test_arrays_of_references_cannot_be_made():
    with pytest.raises(TypeError, match=r"nbshm.zeros: an array of dtype object holds references"):
        nbshm.zeros(3, object)


def test_a_negative_length_is_refused_as_numpy_does():
    with pytest.raises(ValueError, match="negative dimensions"):
        nbshm.zeros(-1)


def test_an_array_that_there_is_no_room_for_is_refused(monkeypatch):
    room = Room(nbytes=1000, where="this machine's memory", remedy="Free some.")
    monkeypatch.setattr(limits, "memory_left", lambda: room)
    with pytest.raises(nbshm.NoRoom) as refused:
        nbshm.empty(1000)
    assert str(refused.value) == (
        "no room for the array of nbshm.empty(): 7.8 KiB needed, "
        "1000 bytes left in this machine's memory. Free some."
    )


def test_an_array_that_may_not_be_mapped_is_refused(monkeypatch):
    room = Room(nbytes=1000, where="what this process may map (RLIMIT_AS)", remedy="Raise the limit.")
    monkeypatch.setattr(limits, "addresses_left", lambda: room)
    with pytest.raises(nbshm.NoRoom, match=r"7.8 KiB needed, 1000 bytes left in what this process may map"):
        nbshm.zeros(1000)


@pytest.fixture
def few_descriptors():
    """Let only some more descriptors be opened, for as long as nobody raises the limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(opened_descriptors()) + 40, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_more_new_arrays_than_descriptors_are_left_raise_the_limit():
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    _kept = [nbshm.zeros(1) for _ in range(soft - len(opened_descriptors()))]
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > soft


@pytest.mark.usefixtures("few_descriptors")
def test_new_arrays_that_the_last_descriptors_would_go_to_are_refused(monkeypatch):
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = soft - len(opened_descriptors())
    unlimited = resource.RLIM_INFINITY, resource.RLIM_INFINITY
    limit_of = {resource.RLIMIT_NOFILE: (soft, soft)}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limit_of.get(kind, unlimited))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    refusal = r"0 bytes left in the files that this process may open \(RLIMIT_NOFILE\). Raise the limit"
    with pytest.raises(nbshm.NoRoom, match=refusal):
        _kept = [nbshm.zeros(1) for _ in range(left)]
    monkeypatch.undo()


def test_what_moves_of_many_values_that_can_not_be_sent_counts_as_one_runs(notebook: Notebook):
    spares, big = notebook.segments.spares, 1 << 20
    spares.expect(big)
    for name in "abcdefghij":
        notebook[name] = [torch.zeros(1000)]
    values = dict(notebook.namespace)
    assert move_unsent(values, mappings=[notebook.namespace], segments=notebook.segments, reserved=0) == []
    assert all(in_segment(notebook, value[0]) for value in values.values())
    notebook.segments.create(big)
    assert spares.nbytes >= big
