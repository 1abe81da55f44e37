from __future__ import annotations

import numpy as np
import torch
from conftest import in_segment


def test_writes_to_a_tensor_are_seen_through_every_alias(notebook):
    notebook["a"] = torch.zeros(4)
    keep, row = [notebook["a"]], notebook["a"][1:3]
    notebook.run("a[rank] = rank + 1", "a", ranks=2)
    assert notebook["a"].tolist() == [1, 2, 0, 0]
    assert keep[0] is notebook["a"]
    notebook["a"][1] = 50
    assert row.tolist() == [50, 0]
def test_named_arrays_move_with_views(notebook):
    notebook["x"] = np.zeros((4,3)); notebook["col"]=notebook["x"][:,1]; notebook["same"]=notebook["x"]
    notebook.out[3]=notebook["x"]
    notebook.run("x[rank]=rank+1","x",ranks=2)
    assert in_segment(notebook, notebook["x"])
    assert notebook["col"].tolist()==[1,2,0,0]
    assert notebook["same"] is notebook["x"] is notebook.out[3]
    assert np.shares_memory(notebook["x"], notebook["col"])
def test_held(notebook):
    x=notebook["x"]=np.zeros((4,3)); holder=[x]
    notebook.run("x[rank]=rank+1","x",ranks=2)
    assert not in_segment(notebook, x) and notebook["x"] is x and x[:,0].tolist()==[1,2,0,0]
def test_result(notebook):
    t=notebook["t"]=torch.zeros(5); notebook["x"]=np.zeros(3)
    r=notebook.run("result=(t, x, torch.ones(3), np.arange(4)[::-1], t[2:])","t","x")[0]
    assert r[0].untyped_storage() is t.untyped_storage() 
    r[0][2]=7; assert t[2]==7 and r[4][0]==7
    assert np.shares_memory(r[1],notebook["x"])
    assert r[2].tolist()==[1,1,1] and r[3].tolist()==[3,2,1,0]
