"""Every way in which a rank can end is told in the cell, soon, in words; the next cell works."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import pytest

METHODS = ("forkserver", "spawn", "fork")


def soon() -> float:
    """Return the seconds within which an ending must be told: two, where nobody else uses the machine."""
    return 2.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What rank 1 does while rank 0 waits for it, and how the cell must tell it."""

    name: str
    does: str
    error: str | None
    tells: tuple[str, ...] = ()
    tells_not: str = "never told"
    waits: str = "nbshm.barrier()"
    before: str = ""


DEMANDING = """class Demanding(Exception):
    def __init__(self, number, *, reason):
        super().__init__(f'number {number}: {reason}')
"""
SILENT = """class Silent(Exception):
    def __str__(self):
        raise RuntimeError('cannot speak')
    __repr__ = __str__
"""
CHAIN = """try:
        {}['key']
    except KeyError as error:
        now()
        raise ValueError('no key') from error"""
GROUP = """now()
    raise ExceptionGroup('both', [OSError('disk'), ExceptionGroup('inner', [KeyError('k')])])"""
KILLED_IN_LOCK = """with nbshm.lock():
        nbshm.barrier()
        now(); os.kill(os.getpid(), signal.SIGKILL)"""

RAISED, DIED = "RankRaised", "RankDied"

ENDINGS = [
    Ending(
        name="os._exit",
        does="time.sleep(0.1); now(); os._exit(7)",
        error=DIED,
        tells=(r"rank 1 ended abruptly with exit code 7", r"In \[\d+\] line \d"),
    ),
    Ending(
        name="sys.exit(3)",
        does="now(); sys.exit(3)",
        error=DIED,
        tells=(r"rank 1 ended by sys.exit with exit code 3 at In \[\d+\] line \d",),
    ),
    Ending(
        name="sys.exit(text)",
        does="now(); sys.exit('no data in it')",
        error=DIED,
        tells=(r"rank 1 ended by sys.exit.*no data in it",),
    ),
    Ending(
        name="its connection closed",
        does="now(); os.closerange(3, 4096)",
        error=DIED,
        tells=(
            r"rank 1 ended abruptly with exit code 1 after [^;]*; its code has closed the connection",
            r"notebook, as os.closerange or the start of a daemon does: do that in a process of its own.",
        ),
        tells_not="Traceback",
    ),
    Ending(name="sys.exit()", does="now(); sys.exit()", error=None, waits="pass"),
    Ending(name="sys.exit(0)", does="now(); sys.exit(0)", error=None, waits="pass"),
    Ending(name="raise SystemExit", does="now(); raise SystemExit(5)", error=DIED, tells=("exit code 5",)),
    Ending(
        name="SIGKILL",
        does="now(); os.kill(os.getpid(), signal.SIGKILL)",
        error=DIED,
        tells=("rank 1 was killed by SIGKILL", "memory"),
    ),
    Ending(
        name="SIGTERM",
        does="now(); os.kill(os.getpid(), signal.SIGTERM)",
        error=DIED,
        tells=("rank 1 was killed by SIGTERM",),
    ),
    Ending(
        name="SIGSEGV",
        does="now(); ctypes.string_at(0)",
        error=DIED,
        tells=("rank 1 was killed by SIGSEGV", "segmentation fault", r"In \[\d+\] line \d+: .*string_at"),
    ),
    Ending(name="SIGABRT", does="now(); os.abort()", error=DIED, tells=("rank 1 was killed by SIGABRT",)),
    Ending(
        name="exception",
        does="now(); [][0]",
        error=RAISED,
        tells=(r"rank 1 failed at In \[\d+\] line \d", "IndexError: list index out of range"),
    ),
    Ending(
        name="exception that does not unpickle",
        does="now(); raise Demanding(1, reason='x')",
        before=DEMANDING,
        error=RAISED,
        tells=("Demanding: number 1: x",),
    ),
    Ending(
        name="exception that does not pickle",
        does="now(); raise ValueError(threading.Lock())",
        error=RAISED,
        tells=("ValueError: <unlocked",),
    ),
    Ending(
        name="exception whose __str__ raises",
        does="now(); raise Silent",
        before=SILENT,
        error=RAISED,
        tells=("rank 1 failed", "Silent"),
    ),
    Ending(
        name="chain",
        does=CHAIN,
        error=RAISED,
        tells=("KeyError: 'key'", "direct cause", "ValueError: no key"),
    ),
    Ending(
        name="group",
        does=GROUP,
        error=RAISED,
        tells=("both", "OSError: disk", "inner", "KeyError: 'k'"),
    ),
    Ending(
        name="note",
        does="error = ValueError('empty'); error.add_note('while reading part 3'); now(); raise error",
        error=RAISED,
        tells=("ValueError: empty", "while reading part 3"),
    ),
    Ending(
        name="KeyboardInterrupt of its own",
        does="now(); raise KeyboardInterrupt",
        error=RAISED,
        tells=("rank 1 failed", "KeyboardInterrupt"),
    ),
    Ending(
        name="recursion",
        does="now(); endless(0)",
        before="def endless(n):\n    return endless(n + 1)\n",
        error=RAISED,
        tells=("RecursionError",),
    ),
    Ending(
        name="assertion",
        does="now(); assert rank == 0, 'not first'",
        error=RAISED,
        tells=("AssertionError: not first",),
    ),
    Ending(
        name="value that can't come back",
        does="now(); give = threading.Lock()",
        waits="give = 1",
        error=RAISED,
        tells=("can't come back", "lock"),
    ),
    Ending(
        name="a failure in a finally",
        does="try:\n        1 / 0\n    finally:\n        now()\n        os._exit(9)",
        error=DIED,
        tells=("exit code 9",),
    ),
    # Who waits for a rank that fails.
    Ending(
        name="mp.Barrier",
        does="now(); 1 / 0",
        before="meeting = mp.get_context('spawn').Barrier(2)",
        waits="meeting.wait()",
        error=RAISED,
        tells=("ZeroDivisionError",),
    ),
    Ending(
        name="lock",
        does="with nbshm.lock():\n        nbshm.barrier()\n        now(); 1 / 0",
        waits="nbshm.barrier()\n    with nbshm.lock():\n        time.sleep(600)",
        error=RAISED,
        tells=("ZeroDivisionError",),
    ),
    Ending(
        name="lock of one that is killed",
        does=KILLED_IN_LOCK,
        waits="nbshm.barrier()\n    with nbshm.lock():\n        time.sleep(600)",
        error=DIED,
        tells=("SIGKILL",),
    ),
    Ending(
        name="mp.Lock",
        does="guard.acquire(); nbshm.barrier(); now(); 1 / 0",
        before="guard = mp.get_context('spawn').Lock()",
        waits="nbshm.barrier(); guard.acquire()",
        error=RAISED,
        tells=("ZeroDivisionError",),
    ),
    Ending(
        name="queue",
        does="now(); 1 / 0",
        before="answers = mp.get_context('spawn').Queue()",
        waits="answers.get()",
        error=RAISED,
        tells=("ZeroDivisionError",),
    ),
    Ending(
        name="sleep",
        does="now(); 1 / 0",
        waits="time.sleep(600)",
        error=RAISED,
        tells=("ZeroDivisionError", "rank 0 was stopped"),
    ),
    Ending(
        name="child process",
        does="now(); 1 / 0",
        waits="import subprocess\n    subprocess.run(['sleep', '600'])",
        error=RAISED,
        tells=("ZeroDivisionError",),
    ),
    Ending(name="input", does="now(); input('name? ')", error=RAISED, tells=("input",)),
]


def cell(ending: Ending, method: str, options: str = "") -> str:
    return (
        f"%%parallel nprocs=2 start_method={method} {options}\n"
        f"give = None\nif rank == 1:\n    {ending.does}\nelse:\n    {ending.waits}\ngive"
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_each_ending_is_told_soon_and_in_words(prepared, ending, method):
    if ending.before:
        prepared.run(ending.before).check()
    reply = prepared.run(cell(ending, method))
    assert (reply.error and reply.error[0]) == ending.error, reply.text
    for words in ending.tells:
        assert re.search(words, reply.text), reply.text
    assert ending.tells_not not in reply.text
    assert prepared.value("seconds()") < soon()


@pytest.mark.parametrize("method", METHODS)
def test_after_all_that_the_next_cell_works_and_nothing_was_left(traces, method):
    notebook = traces.kernel
    assert "[0, 1]" in notebook.run(f"%%parallel nprocs=2 start_method={method}\nrank").check().text
