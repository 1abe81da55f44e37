"""What is said in a line before the ranks start."""

from __future__ import annotations

import random

import numpy as np
import pytest
from kernels import Kernel

from nbshm.runs.foreword import about_generators


@pytest.mark.parametrize(
    ("setup", "body", "kind"),
    [
        ("found = [None] * 2", "found[rank] = 1", "a list"),
        ("found = {}", "found[rank] = 1", "a dict"),
        ("found = set()", "found.add(rank)", "a set"),
        ("found = 0", "for i in nbshm.claim(range(4)): found += i", "an int"),
        ("import numpy as np; found = np.float64(0)", "found += rank", "a float64"),
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


def test_writes_into_the_variable_of_a_loop_are_told_by_what_it_goes_through(shared_notebook: Kernel) -> None:
    shared_notebook.run("records = [{'n': 1}, {'n': 2}]").check()
    body = "for record in nbshm.claim(records): record['n'] += 1"
    text = shared_notebook.run(f"%%parallel nprocs=2\n{body}").check().text
    assert "What the cell writes into records (a list) stays in the ranks. To get it back, " in text
    assert "end the cell in records," in text
    assert "nbshm:" not in shared_notebook.run(f"%%parallel nprocs=2\n{body}\nrecords").check().text


def test_writes_into_objects_of_libraries_are_told_where_nothing_becomes_of_them(
    shared_notebook: Kernel,
) -> None:
    shared_notebook.run(
        "import numpy as np; from sklearn.linear_model import LinearRegression\n"
        "poly, X = np.polynomial.Polynomial([1, 2]), np.eye(3)\n"
        "models, scores = [LinearRegression() for _ in range(2)], np.zeros(2)"
    ).check()
    fit = "for i in nbshm.claim(range(2)): models[i].fit(X, X[0])"
    text = shared_notebook.run(f"%%parallel nprocs=2\npoly.coef[rank] = 9\n{fit}").check().text
    told = (
        "What the cell writes into poly (a Polynomial) and models[i] (a LinearRegression) stays in the ranks."
    )
    assert told in text
    for body in (
        f"{fit}\nmodels",
        "models[rank].fit(X, X[0])",
        "models[rank].fit(X, X[0])\nscores[rank] = models[rank].score(X, X[0])",
        "%time models[rank].fit(X, X[0])\n%time models[rank].score(X, X[0])",
        "poly.coef[rank] = 9\nscores[rank] = poly(1)",
    ):
        assert "nbshm:" not in shared_notebook.run(f"%%parallel nprocs=2\n{body}").check().text


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
        (
            "import numpy as np; numbers = np.random.PCG64(1)",
            "np.random.Generator(numbers).random()",
            "np.random.Generator(numbers.spawn(nprocs)[rank]).random()",
        ),
        (
            "import numpy as np; numbers = np.random.default_rng(1)",
            "numbers.spawn(1)[0].random()",
            "streams = numbers.spawn(nprocs)\nstreams[rank].random()",
        ),
        (
            "import numpy as np; numbers = np.random.SeedSequence(1)",
            "[child] = numbers.spawn(1)\nnp.random.default_rng(child).random()",
            "np.random.default_rng(numbers.spawn(nprocs)[rank]).random()",
        ),
        (
            "import random\nclass Numbers(random.Random): pass\nnumbers = Numbers(1)",
            "numbers.random()",
            "numbers.seed(rank)",
        ),
    ],
)
def test_a_generator_is_told_of_unless_the_cell_gives_each_rank_a_stream(
    shared_notebook: Kernel, setup: str, told: str, remedied: str
) -> None:
    shared_notebook.run(setup).check()
    note = "Every rank gets the same random numbers from numbers."
    again = "The next parallel cell starts it again where the notebook left it."
    text = shared_notebook.run(f"%%parallel nprocs=2\n{told}").check().text
    assert note in text
    assert again in text
    assert note not in shared_notebook.run(f"%%parallel nprocs=2\n{remedied}").check().text


HOLDERS = {
    "class Walk:\n    def __init__(self): self.rng = np.random.default_rng(1)\nwalk = Walk()": (
        "walk.rng.random()",
        "walk.rng",
        "Use walk.rng.spawn(nprocs)[rank] in the cell.",
    ),
    "class Slotted:\n    __slots__ = ('rng',)\nslotted = Slotted(); slotted.rng = random.Random(1)": (
        "slotted.rng.random()",
        "slotted.rng",
        "Seed one for each rank in the cell.",
    ),
    "def mc(n, rng=np.random.default_rng(0)): return rng.random(n)": (
        "mc(2)",
        "mc.rng",
        "Seed one for each rank in the cell.",
    ),
    "def kw(*, rng=random.Random(0)): return rng.random()": (
        "kw()",
        "kw.rng",
        "Seed one for each rank in the cell.",
    ),
    "def make(rng):\n    return lambda: rng.random()\ndraw = make(np.random.default_rng(0))": (
        "draw()",
        "draw.rng",
        "Seed one for each rank in the cell.",
    ),
    "class Model:\n    rng = np.random.default_rng(0)\n    def step(self): return self.rng.random()": (
        "Model().step()",
        "Model.rng",
        "Use Model.rng.spawn(nprocs)[rank] in the cell.",
    ),
    "class Bits:\n    def __init__(self): self.bits = np.random.PCG64(0)\nheld = Bits()": (
        "np.random.Generator(held.bits).random()",
        "held.bits",
        "Use held.bits.spawn(nprocs)[rank] in the cell.",
    ),
    "class Seeds:\n    def __init__(self): self.seeds = np.random.SeedSequence(0)\nheld = Seeds()": (
        "held.seeds.spawn(nprocs)[0].generate_state(1)",
        "held.seeds",
        "Use held.seeds.spawn(nprocs)[rank] in the cell.",
    ),
    "opts = {'rng': np.random.default_rng(0)}": (
        "opts['rng'].random()",
        "opts['rng']",
        "Seed one for each rank in the cell.",
    ),
    "part = functools.partial(np.random.Generator.random, np.random.default_rng(0))": (
        "part()",
        "part.args[0]",
        "Seed one for each rank in the cell.",
    ),
    "from sklearn.ensemble import RandomForestClassifier\n"
    "forest = RandomForestClassifier(random_state=np.random.RandomState(2))": (
        "forest.get_params()",
        "forest.random_state",
        "Seed one for each rank in the cell.",
    ),
}


@pytest.mark.parametrize("method", ["forkserver", "fork"])
@pytest.mark.parametrize("setup", HOLDERS)
def test_a_generator_that_something_holds_is_told_of_by_its_path(
    shared_notebook: Kernel, setup: str, method: str
) -> None:
    body, path, remedy = HOLDERS[setup]
    shared_notebook.run(f"import functools, random\nimport numpy as np\n{setup}").check()
    text = shared_notebook.run(f"%%parallel nprocs=2 start_method={method}\n{body}").check().text
    told = f"Every rank gets the same random numbers from {path}. {remedy} The next parallel cell starts it"
    assert told in text
    assert text.count("random numbers from") == 1


def test_a_generator_that_is_seeded_where_it_is_held_needs_no_word(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import numpy as np\nfrom types import SimpleNamespace\n"
        "held = SimpleNamespace(rng=np.random.default_rng(1)); opts = {'rng': np.random.default_rng(0)}"
    ).check()
    body = 'held.rng.spawn(nprocs)[rank].random(), opts["rng"].spawn(nprocs)[rank].random()'
    reply = shared_notebook.run(f"%%parallel nprocs=2 out=one\none = {body}").check()
    assert "nbshm:" not in reply.text


def test_streams_that_begin_elsewhere_in_each_rank_need_no_word(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import numpy as np\nbits = np.random.PCG64(1); rng, other = map(np.random.default_rng, (1, 2))"
    ).check()
    body = (
        "np.random.Generator(bits.jumped(rank)).random()\nrng.bit_generator.advance(rank * 10**9)\n"
        "other.bit_generator.seed_seq.spawn(nprocs)[rank]\nrng.random();"
    )
    assert "nbshm:" not in shared_notebook.run(f"%%parallel nprocs=2\n{body}").check().text


def test_a_generator_in_whose_place_the_cell_puts_another_needs_no_word(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import numpy as np\nfrom types import SimpleNamespace\n"
        "held = SimpleNamespace(rng=np.random.default_rng(1)); opts = {'rng': np.random.default_rng(0)}"
    ).check()
    body = 'held.rng = opts["rng"] = np.random.default_rng(rank)\nheld.rng.random();'
    assert "random numbers" not in shared_notebook.run(f"%%parallel nprocs=2\n{body}").check().text


def test_a_seed_sequence_of_which_each_rank_may_take_its_own_needs_no_word(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import random, numpy as np; sequence = np.random.SeedSequence(1); made = sequence"
    ).check()
    shared_notebook.run(
        "rng = np.random.Generator(np.random.PCG64(made)); system = random.SystemRandom()"
    ).check()
    body = "np.random.default_rng(sequence.spawn(nprocs)[rank])\nmade = sequence\nmade.spawn(1);"
    assert "nbshm:" not in shared_notebook.run(f"%%parallel nprocs=2\n{body}").check().text


def test_what_draws_for_everybody_is_seeded_and_needs_no_word(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import random, torch\nimport numpy as np\n"
        "common = [np.random.mtrand._rand, random._inst, torch.default_generator, random.randint]"
    ).check()
    assert "random numbers" not in shared_notebook.run("%%parallel nprocs=2\nlen(common)").check().text


def test_several_kinds_of_generators_have_one_line_and_one_remedy() -> None:
    values = {"a": np.random.default_rng(1), "b": random.Random(1)}  # noqa: S311
    (told,) = about_generators(list(values.items()), [], values)
    assert told == (
        "Every rank gets the same random numbers from a and b. Seed one for each rank in the cell. "
        "The next parallel cell starts them again where the notebook left them."
    )


def test_generators_of_which_each_item_has_its_own_are_told_in_one_line(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import numpy as np\nfrom types import SimpleNamespace\n"
        "agents = [SimpleNamespace(rng=each) for each in np.random.default_rng(1).spawn(15)]\n"
        "common = [SimpleNamespace(rng=agents[0].rng)] * 2"
    ).check()
    text = shared_notebook.run("%%parallel nprocs=2\nagents[rank].rng.random()").check().text
    assert (
        "The ranks have copies of agents[0].rng, agents[1].rng, agents[2].rng and 12 more. The next parallel "
        "cell starts them again where the notebook left them. Make new ones before it."
    ) in text
    text = shared_notebook.run("%%parallel nprocs=2\ncommon[rank].rng.random()").check().text
    assert "Every rank gets the same random numbers from common[0].rng." in text


def test_what_the_notebook_has_for_torch_distributed_is_told_where_it_hides_the_ranks_own(
    shared_notebook: Kernel,
) -> None:
    shared_notebook.run("import os\nos.environ.update(RANK='0', WORLD_SIZE='1')").check()
    source = "%%parallel nprocs={}\nimport os; os.environ['RANK']"
    told = shared_notebook.run(source.format(2)).check().text
    alone = shared_notebook.run(source.format(1)).check().text
    shared_notebook.run("os.environ.update(RANK='0', WORLD_SIZE='2'); del os.environ['RANK']").check()
    right = shared_notebook.run(source.format(2)).check().text
    shared_notebook.run("del os.environ['WORLD_SIZE']").check()
    assert (
        "The notebook's os.environ has RANK=0 and WORLD_SIZE=1, which each of the 2 ranks finds instead of "
        "its own (torch.distributed reads that). "
        'Before the cell: del os.environ["RANK"], os.environ["WORLD_SIZE"].'
    ) in told
    assert told.endswith("['0', '0']")
    assert (alone, right) == ("['0']", "['0', '1']")


def test_the_arguments_of_a_call_are_the_same_in_all_ranks_without_a_word(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import nbshm\nimport numpy as np\nrng = np.random.default_rng(1)\ndef draw(rank, rng): rng.random()"
    ).check()
    for method in ("forkserver", "fork"):
        call = f"nbshm.start_processes(draw, (rng,), 2, start_method={method!r})"
        assert "random numbers" not in shared_notebook.run(call).check().text
