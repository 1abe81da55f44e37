from __future__ import annotations

import numpy as np
import pytest
import torch
from memory_notebook import Notebook

from nbshm.refusals import Unsendable


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


def test_a_shape_beyond_the_storage_is_refused(notebook: Notebook):
    tensor = notebook["t"] = torch.from_numpy(np.zeros(3))
    with pytest.raises(RuntimeError):
        tensor.resize_(100)
    assert tensor.numel() == 100
    with pytest.raises(Unsendable, match="its shape reaches beyond its storage"):
        notebook.place("t")
