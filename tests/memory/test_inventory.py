"""What is shared by name (`inventory.py`)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from memory_notebook import Notebook, pickled

from nbshm.memory.buffers import Buffers
from nbshm.memory.inventory import Entry, Inventory, Kept, take_inventory


def inventory(notebook: Notebook, *sent: str, **histories) -> Inventory:
    return take_inventory(
        mappings=[notebook.namespace, notebook.out],
        sent=frozenset(sent),
        mirrored=notebook.mirrored,
        lent=(),
        histories=histories,
        segments=notebook.segments,
    )


def test_each_name_says_how_it_is_shared_and_why_it_is_mirrored(notebook: Notebook):
    notebook["moved"], notebook["held"] = np.zeros((2, 3)), np.zeros(4, "i2")
    notebook["keep"] = [notebook["held"]]
    notebook["tensor"] = torch.zeros(())
    notebook["seen"], notebook["unused"] = torch.zeros(5), np.zeros(2)
    view = notebook["seen"].numpy()
    names = "moved", "held", "tensor", "seen"
    notebook.run("", *names)
    found = inventory(notebook, *names)
    (fd,) = found.entries[0].segments
    assert found.entries == (
        Entry(name="moved", kind="array float64", shape="2 x 3", nbytes=48, how="moved", segments=(fd,)),
        Entry(
            name="held",
            kind="array int16",
            shape="4",
            nbytes=8,
            how="mirrored",
            why="it is held by the list 'keep' too; nbshm.share(keep) moves it",
        ),
        Entry(name="tensor", kind="tensor float32", shape="()", nbytes=4, how="moved", segments=(fd,)),
        Entry(
            name="seen",
            kind="tensor float32",
            shape="5",
            nbytes=20,
            how="mirrored",
            why="a numpy array or another library looks at its memory",
        ),
    )
    assert (found.segments, found.kept) == (1, ())
    assert found.nbytes == 4096
    assert view is not None


def test_containers_and_modules_are_one_line_for_each_way(notebook: Notebook):
    notebook["model"] = torch.nn.Linear(2, 2)
    notebook["parts"] = {"a": torch.zeros(3), "b": [np.zeros(4), torch.zeros(1)]}
    notebook.run("", "model", "parts")
    entries = inventory(notebook, "model", "parts").entries
    assert [(entry.name, entry.kind, entry.shape, entry.how) for entry in entries] == [
        ("model", "Linear", "2 tensors", "moved"),
        ("parts", "dict", "2 tensors", "moved"),
        ("parts", "dict", "1 array", "mirrored"),
    ]


def test_what_a_class_holds_is_told_under_its_name(notebook: Notebook):
    class Config:
        weights, array = torch.ones(4), np.ones(2)

    Config.__module__ = "__main__"
    notebook["Config"] = Config
    notebook["weights"], notebook["array"] = Config.weights, Config.array
    notebook.run("", "weights", "array")
    del notebook.namespace["weights"], notebook.namespace["array"]
    found = {entry.how: entry for entry in inventory(notebook, "Config").entries}
    assert (found["moved"].kind, found["moved"].shape) == ("class", "1 tensor")
    assert "held by the class test_what_a_class" in found["mirrored"].why


def test_memory_that_views_have_in_common_is_counted_once(notebook: Notebook):
    notebook["rows"] = np.zeros((8, 4))
    notebook["parts"] = [notebook["rows"][start::2] for start in range(2)] + [notebook["rows"], np.zeros(2)]
    notebook.run("", "parts")
    (parts,) = (entry for entry in inventory(notebook, "parts").entries if entry.name == "parts")
    assert (parts.shape, parts.nbytes) == ("4 arrays", 8 * 4 * 8 + 2 * 8)


def test_tensors_in_objects_of_libraries_are_told(notebook: Notebook):
    points = torch.utils.data.TensorDataset(torch.zeros(3, 2), torch.zeros(3))
    notebook["few"] = [torch.utils.data.Subset(points, [0]), torch.utils.data.DataLoader(points)]
    notebook.run("", "few")
    (entry,) = inventory(notebook, "few").entries
    assert (entry.name, entry.kind, entry.shape, entry.how) == ("few", "list", "2 tensors", "moved")


def test_what_a_run_holds_is_told_by_its_own_names_alone(notebook: Notebook):
    notebook["t"] = torch.zeros(3)
    notebook["job"] = Buffers()
    pickled(notebook["t"], notebook["job"])
    notebook.run("", "t")
    assert [entry.name for entry in inventory(notebook, "t").entries] == ["t"]


@pytest.mark.filterwarnings("ignore:The PyTorch API of")  # is in prototype stage
def test_tensors_that_consist_of_others_are_told_as_what_they_are(notebook: Notebook):
    parts = torch.zeros(2), torch.zeros(3)
    notebook["few"] = torch.eye(4).to_sparse()
    notebook["columns"] = [torch.eye(3).to_sparse()]
    notebook["ragged"] = torch.nested.nested_tensor(list(parts), layout=torch.jagged)
    notebook["nested"] = torch.nested.nested_tensor(list(parts))
    notebook["masked"] = torch.masked.masked_tensor(torch.zeros(4), torch.ones(4, dtype=torch.bool))
    names = tuple(notebook.namespace)
    notebook.run("", *names)
    found = inventory(notebook, *names).entries
    assert {(entry.name, entry.kind, entry.shape) for entry in found} == {
        ("few", "sparse_coo tensor float32", "4 x 4"),
        ("columns", "list", "1 tensor"),
        ("ragged", "jagged tensor float32", "2 x ?"),
        ("nested", "tensor float32", "2 x ?"),
        ("masked", "tensor float32", "4"),
    }
    sizes = {name: sum(entry.nbytes for entry in found if entry.name == name) for name in names}
    assert sizes == {"few": 80, "columns": 60, "ragged": 44, "nested": 20, "masked": 20}


def test_the_class_of_a_tensor_does_not_see_that_it_is_listed(notebook: Notebook):
    notebook["loud"] = torch.zeros(2).as_subclass(Loud)
    notebook.run("", "loud")
    (entry,) = inventory(notebook, "loud").entries
    assert (entry.kind, entry.shape, entry.how) == ("tensor float32", "2", "moved")


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *_, **__):
        raise RuntimeError("looked at")


def test_what_a_living_run_mirrors_is_listed_whatever_runs_were_since(notebook: Notebook):
    notebook["model"] = torch.nn.Linear(3, 2)
    notebook["loss"] = (notebook["model"].weight ** 2).sum()
    _, placement = notebook.place("model")
    with placement:
        found = take_inventory(
            mappings=[notebook.namespace, notebook.out],
            sent=frozenset(),
            mirrored=(),
            lent=placement.mirrored(),
            histories={},
            segments=notebook.segments,
        ).entries
    assert [(entry.name, entry.shape, entry.how, entry.why) for entry in found] == [
        (
            "model",
            "1 tensor",
            "mirrored",
            "what was computed from it is still there (an autograd graph: loss)",
        ),
        ("model", "1 tensor", "moved", ""),
    ]


def test_an_array_without_a_name_is_not_said_to_be_held_by_a_list_too(notebook: Notebook):
    notebook["held"] = [np.zeros(3)]
    notebook.run("", "held")
    (entry,) = inventory(notebook, "held").entries
    assert (
        entry.why == "it has no name of its own, but is held by the list 'held'; nbshm.share(held) moves it"
    )
    notebook["first"] = notebook["held"][0]
    notebook.run("", "held", "first")
    assert [(entry.name, entry.why) for entry in inventory(notebook, "held", "first").entries] == [
        ("held", "it is held by the list 'held', and named first too; nbshm.share(held) moves it"),
        ("first", "it is held by the list 'held' too; nbshm.share(held) moves it"),
    ]


def test_what_a_frame_holds_is_a_snapshot_of_the_last_run(notebook: Notebook):
    notebook["frame"] = pd.DataFrame({"a": np.arange(100.0)})
    (entry,) = inventory(notebook, "frame").entries
    assert (entry.kind, entry.how) == ("DataFrame", "snapshot")
    assert entry.nbytes >= 800
    assert inventory(notebook).entries == ()


def test_a_mask_is_shared_as_its_data_are(notebook: Notebook):
    notebook["masked"] = np.ma.array(np.zeros(3), mask=[0, 1, 0])
    notebook.run("masked.mask[0] = True", "masked")
    (entry,) = inventory(notebook, "masked").entries
    assert (entry.how, entry.nbytes) == ("mirrored", 27)
    assert notebook["masked"].mask.tolist() == [True, True, False]


def test_what_torch_shares_is_shared_by_others(notebook: Notebook):
    notebook["tensor"] = torch.zeros(1000).share_memory_()
    (entry,) = inventory(notebook).entries
    assert (entry.how, entry.nbytes, entry.segments) == ("by a file", 4000, ())


def test_what_no_name_leads_to_is_told_with_what_keeps_it(notebook: Notebook):
    notebook["first"], notebook["second"], notebook["third"] = (np.zeros(2**21) for _ in range(3))
    notebook.run("", "first", "second", "third")
    history, last = [notebook["first"]], {"r": notebook["second"]}
    hidden = iter([notebook["third"]])
    notebook.namespace.clear()
    kept = inventory(notebook, **{"Out[1]": history, "nbshm.last": last}).kept
    assert [(each.by, each.nbytes >> 24) for each in kept] == [  # an array may begin in the midst of a page
        ("Out[1]", 1),
        ("nbshm.last", 1),
        ("objects that no name leads to", 1),
    ]
    assert isinstance(kept[0], Kept)
    assert next(hidden) is not None


def test_spare_memory_is_counted(notebook: Notebook):
    notebook["x"] = np.zeros(2**20)
    notebook.run("", "x")
    del notebook.namespace["x"]
    assert inventory(notebook).spare >= 2**23
    assert inventory(notebook).segments == 0
