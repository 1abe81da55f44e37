"""What is said in a line before the ranks start."""

from __future__ import annotations

import pytest
from kernels import Kernel


@pytest.mark.parametrize(
    ("setup", "body", "kind"),
    [
        ("found = [None] * 2", "found[rank] = 1", "a list"),
        ("found = {}", "found[rank] = 1", "a dict"),
        ("found = set()", "found.add(rank)", "a set"),
        ("found = 0", "for i in nbshm.claim(range(4)): found += i", "an int"),
        ("import numpy as np; found = np.array([None, None])", "found[rank] = 1", "an object array"),
        (
            "import pandas as pd; found = pd.DataFrame({'a': [1, 2]})",
            "found.loc[rank, 'a'] = 5",
            "a DataFrame",
        ),
    ],
)
def test_writes_that_stay_in_the_ranks_are_told(
    shared_notebook: Kernel, setup: str, body: str, kind: str
) -> None:
    shared_notebook.run(setup).check()
    text = shared_notebook.run(f"%%parallel nprocs=2\n{body}").check().text
    assert f"What the cell writes into found ({kind}) stays in the ranks." in text


def test_how_to_get_private_writes_back_is_told_by_name(shared_notebook: Kernel) -> None:
    shared_notebook.run("found, total = {}, 0").check()
    text = shared_notebook.run("%%parallel nprocs=2\nfound[rank] = 1\ntotal += 1").check().text
    assert "end the cell in found, total, or use out= for what the cell assigns." in text
    reply = shared_notebook.run("%%parallel nprocs=2 out=total\nfound[rank] = 1\ntotal += 1\nfound").check()
    assert reply.text.strip() == "[{0: 1}, {1: 1}]", "what comes back needs no word"
    assert shared_notebook.value("total") == [1, 1]


def test_writes_that_are_shared_need_no_word(shared_notebook: Kernel) -> None:
    shared_notebook.run("import numpy as np; held = {'a': np.zeros(2)}; array = np.zeros(2)").check()
    shared_notebook.run("count = own = total = 1").check()
    body = "held['a'][rank] = 1\nheld['a'] += 0\narray[rank] = 1\nown = []\nown.append(rank)"
    body += "\ncount = 0\ncount += 1\ntotal += 1"
    reply = shared_notebook.run(f"%%parallel nprocs=2 out=total\n{body}").check()
    assert "nbshm:" not in reply.text
    assert shared_notebook.value("(held['a'].tolist(), array.tolist())") == ([1.0, 1.0], [1.0, 1.0])


def test_gradients_that_the_ranks_would_share_are_told_in_one_line(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import torch\nmodel = torch.nn.Linear(2, 2)\nmodel(torch.ones(2)).sum().backward()"
    ).check()
    shares = "model has gradients already, so the ranks share them"
    assert shared_notebook.run("%%parallel nprocs=2\nmodel").check().text.count(shares) == 1
    assert shares not in shared_notebook.run("%%parallel nprocs=1\nmodel").check().text
    shared_notebook.run("model.zero_grad()").check()
    assert shares not in shared_notebook.run("%%parallel nprocs=2\nmodel").check().text


@pytest.mark.parametrize(
    ("setup", "told", "remedied"),
    [
        (
            "import numpy as np; numbers = np.random.default_rng(1)",
            "numbers.random()",
            "numbers = numbers.spawn(nprocs)[rank]\nnumbers.random()",
        ),
        ("import random; numbers = random.Random(1)", "numbers.random()", "numbers.seed(rank)"),
        (
            "import torch; numbers = torch.Generator()",
            "torch.rand(1, generator=numbers)",
            "torch.rand(1, generator=numbers.manual_seed(rank))",
        ),
    ],
)
def test_a_generator_is_told_of_unless_the_cell_gives_each_rank_a_stream(
    shared_notebook: Kernel, setup: str, told: str, remedied: str
) -> None:
    shared_notebook.run(setup).check()
    note = "Every rank gets the same random numbers from numbers."
    assert note in shared_notebook.run(f"%%parallel nprocs=2\n{told}").check().text
    assert note not in shared_notebook.run(f"%%parallel nprocs=2\n{remedied}").check().text
