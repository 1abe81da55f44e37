"""Ranks in processes of their own, which share a board; and two in this process."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbshm.wire.board import Board
from nbshm.worker.ranks import Rank

CHILD = Path(__file__).with_name("rank_child.py")
TIMEOUT = 60
IMPORTS = "from nbshm.worker.ranks import claim, barrier, lock, device, progress\n"


@contextmanager
def started(code: str, nprocs: int) -> Iterator[list[subprocess.Popen[str]]]:
    board = os.memfd_create("board")
    children = []
    try:
        for rank in range(nprocs):
            command = [sys.executable, str(CHILD), str(rank), str(nprocs), str(board), IMPORTS + code]
            children.append(
                subprocess.Popen(
                    command,
                    pass_fds=[board],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        yield children
    finally:
        os.close(board)
        for child in children:
            child.kill()
            child.communicate()


def results(code: str, nprocs: int = 3) -> list:
    """Run code in each rank and return what each left in `result`."""
    with started(code, nprocs) as children:
        told = [child.communicate(timeout=TIMEOUT) for child in children]
    assert [error for _, error in told if error] == []
    return [ast.literal_eval(out) for out, _ in told]


def tell(child: subprocess.Popen) -> None:
    """Let a child go on that waits for a line."""
    child.stdin.write("go\n")
    child.stdin.flush()


@contextmanager
def two_ranks() -> Iterator[list[Rank]]:
    board = Board(os.memfd_create("board"), 2)
    yield [Rank(number, 2, say=lambda _: None, wait_release=lambda: None, board=board) for number in range(2)]
    board.close()
