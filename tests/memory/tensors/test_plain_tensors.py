from __future__ import annotations

import gc

import pytest
import torch
from memory_notebook import Notebook

from nbshm.jobs import Place, Places
from nbshm.memory.buffers import Buffers
from nbshm.memory.capturing import CapturingPickler
from nbshm.memory.tensors.plain_tensors import PlainTensors


def captured(value: object) -> CapturingPickler:
    pickler = CapturingPickler(lambda _: NotImplemented, others={})
    pickler.dump(value)
    return pickler


def test_each_of_thousands_of_tensors_takes_a_few_bytes():
    many = [torch.ones(16) for _ in range(2000)]
    pickler = captured(many)
    assert len(pickler.buffers) == 2000
    assert len(pickler.stream) < 16 * 2000


def test_a_storage_stays_one_for_tensors_that_travel_in_different_ways(notebook: Notebook):
    plain = torch.zeros(4)
    marked = plain[1:]
    marked.mark = 1
    notebook["all"] = [plain, plain[::2], marked, torch.nn.Parameter(plain), plain.untyped_storage()]
    code = (
        "first, *others, storage = all\n"
        "found = [tensor.untyped_storage()._cdata for tensor in (first, *others)]\n"
        "assert set(found) == {storage._cdata}\n"
        "marked = others[1]; marked += marked.mark"
    )
    notebook.run(code, "all")
    assert plain.tolist() == [0, 1, 1, 1]


def test_a_plain_tensor_is_no_view_in_the_worker(notebook: Notebook):
    notebook["row"], notebook["table"], notebook["turned"] = (
        torch.zeros(6),
        torch.zeros(2, 3),
        torch.zeros(2, 3).t(),
    )
    code = "assert row._base is table._base is turned._base is None\nturned[2, 1] = 1"
    notebook.run(code, *notebook.namespace)
    assert notebook["turned"].tolist() == [[0, 0], [0, 0], [0, 1]]


def test_a_storage_that_is_no_whole_number_of_elements_arrives_whole(notebook: Notebook):
    storage = torch.zeros(11, dtype=torch.uint8)
    notebook["t"] = storage[:8].view(torch.float32)
    notebook.run("t[1] = 2; assert t.untyped_storage().nbytes() == 11", "t")
    assert notebook["t"].tolist() == [0, 2]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(2, requires_grad=True),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.ones(2, dtype=torch.complex64).conj().imag,
        torch.ones(2).to_sparse(),
        torch.ones(2, device="meta"),
        torch.ones(0),
    ],
    ids=["requires grad", "conjugate", "negative", "sparse", "meta", "empty"],
)
def test_what_is_more_than_plain_is_left_to_a_closer_look(tensor: torch.Tensor):
    plain = PlainTensors(buffers=Buffers())
    assert plain.reduce(tensor) is None
    assert plain.reduce(torch.ones(2)) is not None


def test_a_tensor_with_attributes_a_grad_or_hooks_is_not_plain():
    marked, leaf, hooked = torch.ones(2), torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    marked.mark = 1
    leaf.grad = torch.ones(2)
    hooked.register_hook(print)
    for tensor in (leaf, hooked):
        tensor.requires_grad_(requires_grad=False)
    plain = PlainTensors(buffers=Buffers())
    assert [plain.reduce(tensor) for tensor in (marked, leaf, hooked)] == [None] * 3


def test_no_garbage_is_collected_while_values_are_pickled():
    class Watching:
        def __reduce__(self) -> tuple[object, ...]:
            states.append(gc.isenabled())
            return int, ()

    states: list[bool] = []
    captured([Watching()])
    assert states == [False]
    assert gc.isenabled()


def test_a_row_of_places_is_what_it_was_made_of():
    places = [Place(0, 64, 8), Place(3, 1 << 40, 1 << 33)]
    row = Places(places)
    assert list(row) == places
    assert [row[0], row[1], len(row)] == [*places, 2]
