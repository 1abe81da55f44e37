"""A process that is one rank: runs code with the board that it was given, and prints `result`."""

from __future__ import annotations

import sys

from nbshm.wire.board import Board
from nbshm.worker.ranks import Rank, being

if __name__ == "__main__":
    number, nprocs, descriptor = map(int, sys.argv[1:4])
    said: list = []
    rank = Rank(number, nprocs, say=said.append, wait_release=lambda: None, board=Board(descriptor, nprocs))
    namespace = {"rank": number, "nprocs": nprocs, "said": said, "result": None}
    with being(rank):
        exec(sys.argv[4], namespace)  # noqa: S102  # the test's own
    print(repr(namespace["result"]))
