from __future__ import annotations

import numpy as np
import pytest
import torch
from memory_notebook import Notebook

from nbshm.refusals import Unsendable

NAMES = "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 complex64 complex128 bool"
DTYPES = [*NAMES.split(), *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]


def test_every_dtype_is_shared(notebook: Notebook):
    notebook["tensors"] = {name: torch.zeros(2, dtype=getattr(torch, name)) for name in DTYPES}
    notebook.run(
        "for name, tensor in tensors.items():\n"
        "    assert str(tensor.dtype) == 'torch.' + name\n"
        "    tensor[rank] = 1",
        "tensors",
        ranks=2,
    )
    for name, tensor in notebook["tensors"].items():
        assert tensor.to(torch.complex128).tolist() == [1, 1], name


def test_layouts_arrive_as_they_are(notebook: Notebook):
    tensor = notebook["t"] = torch.zeros(3, 4)
    notebook["turned"], notebook["even"] = tensor.t(), tensor[:, ::2]
    notebook["wide"] = torch.zeros(3, 1).expand(3, 5)
    notebook["windows"] = torch.zeros(6).as_strided((4, 3), (1, 1))
    notebook.run(
        "assert turned.stride() == (1, 4) and wide.stride() == (1, 0)\n"
        "turned[1, 0] = 1; even[2, 1] = 7; wide[1, 0] = 4; windows[3, 2] = 6",
        *notebook.namespace,
    )
    assert tensor.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 7, 0]]
    assert notebook["wide"].tolist() == [[0] * 5, [4] * 5, [0] * 5]
    assert notebook["windows"][3, 2] == 6


def test_empty_and_single_tensors_keep_shape_and_dtype(notebook: Notebook):
    full = notebook["full"] = torch.arange(6.0)
    notebook["empty"] = [torch.zeros(0, 4), torch.empty(1, 0, dtype=torch.int32), torch.tensor([]), full[6:]]
    notebook["single"] = torch.tensor(3)
    notebook.run(
        "assert [tuple(e.shape) for e in empty] == [(0, 4), (1, 0), (0,), (0,)]\n"
        "assert empty[1].dtype == torch.int32 and empty[3].storage_offset() == 6\n"
        "single += 4",
        *notebook.namespace,
    )
    assert notebook["single"] == 7


def test_conjugate_and_negative_bits_arrive(notebook: Notebook):
    notebook["c"] = (torch.ones(3, dtype=torch.complex64) * 1j).conj()
    notebook["n"] = notebook["c"].imag
    result = notebook.run(
        "assert c.is_conj() and n.is_neg() and c[0] == -1j and n[0] == -1; result = c, n", "c", "n"
    )
    assert result[0][0].is_conj()
    assert result[0][1].is_neg()


def test_attributes_set_on_a_tensor_arrive(notebook: Notebook):
    notebook["t"], notebook["p"] = torch.zeros(2), torch.nn.Parameter(torch.ones(2))
    notebook["t"].tag, notebook["p"].tag = {"a": 1}, "p"
    notebook.run("assert t.tag == {'a': 1} and p.tag == 'p' and type(p) is torch.nn.Parameter", "t", "p")


def test_a_grad_is_shared_and_a_new_one_is_private(notebook: Notebook):
    leaf = notebook["w"] = torch.ones(2, requires_grad=True)
    tagged = notebook["g"] = torch.nn.Parameter(torch.ones(2))
    tagged.tag, tagged.grad = 1, torch.full((2,), 3.0)
    notebook.run(
        "(w * 2).sum().backward(); assert w.is_leaf and w.grad.tolist() == [2, 2]\n"
        "assert g.tag == 1; g.grad += 1\n"
        "with torch.no_grad(): w[rank] += rank + 1",
        "w",
        "g",
        ranks=2,
    )
    assert leaf.grad is None
    assert leaf.tolist() == [2, 3]
    assert tagged.grad.tolist() == [5, 5]


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_sparse_tensors_share_their_values(notebook: Notebook):
    made = {"check_invariants": False}
    coalesced = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), is_coalesced=True, **made)
    twice = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3), requires_grad=True, **made)
    rows = torch.sparse_compressed_tensor(
        torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 2), layout=torch.sparse_csr, **made
    )
    columns = torch.sparse_compressed_tensor(
        torch.tensor([0, 1, 1]), torch.tensor([0]), torch.ones(1), (1, 2), layout=torch.sparse_csc, **made
    )
    notebook["all"] = [coalesced, twice, rows, columns]
    notebook.run(
        "a, b, c, d = all\n"
        "assert a.is_coalesced() and not b.is_coalesced() and b.requires_grad and b.is_leaf\n"
        "assert c.layout is torch.sparse_csr and d.layout is torch.sparse_csc and d.to_dense()[0, 0] == 1\n"
        "a._values()[0] = 9; c.values()[0] = 9",
        "all",
    )
    assert coalesced.to_dense()[0, 2] == 9
    assert rows.to_dense()[0, 0] == 9


@pytest.mark.filterwarnings("ignore:.*quantize")
def test_quantizers_are_kept(notebook: Notebook):
    notebook["q"] = torch.quantize_per_tensor(torch.tensor([0.5, 1.0]), 0.5, 1, torch.qint8)
    notebook["c"] = torch.quantize_per_channel(
        torch.ones(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.qint8
    )
    notebook.run(
        "assert (q.q_scale(), q.q_zero_point()) == (0.5, 1) and q.dequantize().tolist() == [0.5, 1]\n"
        "assert c.q_per_channel_axis() == 0 and c.q_per_channel_zero_points().tolist() == [0, 1]\n"
        "q[0] = 3",
        "q",
        "c",
    )
    assert notebook["q"].dequantize().tolist() == [3, 1]


def test_a_module_keeps_its_ties_and_shares_its_buffers(notebook: Notebook):
    model = notebook["model"] = torch.nn.Sequential(
        torch.nn.Linear(3, 3, bias=False), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3, bias=False)
    )
    model[2].weight = model[0].weight
    notebook.run(
        "assert model[0].weight is model[2].weight and len(list(model.parameters())) == 3\n"
        "model(torch.ones(4, 3))\n"
        "with torch.no_grad(): model[0].weight[0, 0] = 42",
        "model",
    )
    assert model[2].weight is model[0].weight
    assert model[2].weight[0, 0] == 42
    assert model[1].num_batches_tracked.item() == 1


def test_a_tensor_made_while_pickling_lives_until_the_worker_has_it(notebook: Notebook):
    class Temporary:
        def __reduce__(self):
            return list, ([torch.full((100,), float(number)) for number in range(50)],)

    notebook["made"] = Temporary()
    notebook.run("assert [int(tensor[-1]) for tensor in made] == list(range(50))", "made")


def test_a_part_of_a_graph_is_refused_with_the_remedy(notebook: Notebook):
    notebook["y"] = torch.ones(2, requires_grad=True) * 3
    with pytest.raises(Unsendable, match=r"autograd graph.*detach"):
        notebook.place("y")


def test_a_meta_tensor_is_refused(notebook: Notebook):
    notebook["m"] = torch.zeros(3, device="meta")
    with pytest.raises(Unsendable, match="meta tensor"):
        notebook.place("m")


def test_subclasses_share_their_memory(notebook: Notebook):
    buffer = notebook["b"] = torch.nn.Buffer(torch.zeros(2))
    notebook.run("b[0] = 1; assert isinstance(b, torch.nn.Buffer)", "b")
    assert buffer.tolist() == [1, 0]


def test_a_shape_beyond_the_storage_is_refused(notebook: Notebook):
    tensor = notebook["t"] = torch.from_numpy(np.zeros(3))
    with pytest.raises(RuntimeError):
        tensor.resize_(100)
    assert tensor.numel() == 100
    with pytest.raises(Unsendable, match="its shape reaches beyond its storage"):
        notebook.place("t")
