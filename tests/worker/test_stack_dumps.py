from __future__ import annotations

import faulthandler
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

from nbshm.worker.stack_dumps import dump_of


def dumped(depth: int) -> list[str]:
    """Dump this thread's stack below that many calls of one line."""
    return dumped(depth - 1) if depth else dump_of({threading.get_ident(): sys._getframe()}).splitlines()


def both() -> tuple[list[str], list[str]]:
    """Dump the stack of this line as nbshm does, and as faulthandler does."""
    with tempfile.TemporaryFile("w+") as file:
        own, _ = dump_of({10: sys._getframe()}), faulthandler.dump_traceback(file, all_threads=False)
        file.seek(0)
        return own.splitlines(), file.read().splitlines()


def test_a_short_stack_is_written_as_faulthandler_writes_it() -> None:
    with ThreadPoolExecutor(1) as pool:
        own, pythons = pool.submit(both).result()
    assert own == ["Thread 0x000000000000000a (most recent call first):", *pythons[1:]]


def test_a_deep_stack_is_whole() -> None:
    lines = dumped(500)
    assert sum(line.endswith("in dumped") for line in lines) == 501
    assert "..." not in "".join(lines)


def test_a_very_deep_stack_is_cut_in_the_middle() -> None:
    limit = sys.getrecursionlimit()
    outermost = dumped(0)[-1]
    sys.setrecursionlimit(10_000)
    try:
        lines = dumped(5000)
    finally:
        sys.setrecursionlimit(limit)
    assert len(lines) == 2002
    assert (lines[1001], lines[-1]) == ("  ...", outermost)
