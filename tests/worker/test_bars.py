"""tqdm's bars are a rank's progress: its own, its notebook's, those of libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tqdm")

ROOT = Path(__file__).parents[2]
SETUP = """
import os, sys
from nbshm.worker.bars import Bars
from nbshm.wire.board import Board
from nbshm.worker.imports import ImportWatch
from nbshm.worker.ranks import Rank, being, claim, progress
said = []
rank = Rank(0, 1, say=said.append, wait_release=print, board=Board(os.memfd_create("board"), 1))
rank.loops.seconds = 0.0
Bars(rank.loops).follow(ImportWatch())
"""


def told(code: str) -> list[str]:
    """Run code in a rank; return what it has told of its loops, and fail if anything was printed."""
    text = f"{SETUP}\nwith being(rank):\n" + "\n".join(f"    {line}" for line in code.splitlines())
    text += "\nfor p in said: print(p.loop, p.label, p.done, p.total, p.detail, p.ended, sep='|')"
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", text]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert run.stderr == ""
    return run.stdout.splitlines()


@pytest.mark.parametrize("module", ["tqdm", "tqdm.auto", "tqdm.std", "tqdm.notebook"])
def test_a_bar_tells_its_beginning_and_its_end_and_prints_nothing(module: str) -> None:
    lines = told(f"from {module} import tqdm\nfor i in tqdm(range(3), desc='fits'): pass")
    assert lines[0] == "0|fits|0|3||False"
    assert lines[-1] == "0|fits|3|3||True"


@pytest.mark.parametrize("module", ["tqdm", "tqdm.auto", "tqdm.notebook"])
def test_a_range_with_a_bar_is_told(module: str) -> None:
    assert told(f"from {module} import trange\nlist(trange(5))")[-1] == "0||5|5||True"


def test_a_bar_of_a_library_that_has_imported_it_before_is_told() -> None:
    code = "import tqdm\nfrom tqdm.contrib.concurrent import thread_map\nthread_map(abs, [1, 2])"
    assert told(code)[-1] == "0||2|2||True"


def test_nested_bars_are_loops_of_their_own() -> None:
    lines = told(
        "from tqdm import tqdm\nfor i in tqdm('ab', 'outer'):\n  for j in tqdm('xyz', 'inner'): pass"
    )
    assert [line.split("|")[:2] for line in lines if line.endswith("True")] == [
        ["1", "inner"],
        ["2", "inner"],
        ["0", "outer"],
    ]


def test_what_a_bar_shows_beside_its_numbers_is_told() -> None:
    code = "from tqdm import tqdm\nwith tqdm(total=5) as bar:\n  bar.update(2); bar.set_postfix(loss=3.5)"
    assert told(code)[-1] == "0||2|5|loss=3.5|True"


def test_a_bar_around_a_claim_gives_it_its_name() -> None:
    lines = told("from tqdm import tqdm\nfor i in tqdm(claim(range(3)), desc='fits'): pass")
    assert {line.split("|")[1] for line in lines} == {"fits"}
    assert lines[-1] == "0|fits|3|3||True"


def test_progress_around_a_claim_gives_it_its_name() -> None:
    assert told("list(progress(claim(range(3)), label='fits'))")[-1] == "0|fits|3|3||True"


def test_a_bar_with_a_file_of_its_own_is_drawn_there() -> None:
    code = (
        "import io; from tqdm import tqdm\nfile = io.StringIO()\n"
        "list(tqdm('abc', file=file))\nassert '3/3' in file.getvalue()"
    )
    assert told(code) == []


def test_a_disabled_bar_says_nothing() -> None:
    assert (
        told("from tqdm import tqdm\nlist(tqdm('abc', disable=True)); list(tqdm('abc', disable=None))") == []
    )


def test_a_forked_child_of_a_rank_tells_nothing() -> None:
    code = (
        "import tqdm\npid = os.fork()\n"
        "if not pid:\n  sys.stderr = open(os.devnull, 'w'); list(tqdm.tqdm('abc')); os._exit(len(said))\n"
        "assert os.waitpid(pid, 0)[1] == 0"
    )
    assert told(code) == []
