"""What errors say, what they carry, and that they are what other libraries expect."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from nbshm.errors import CallInterrupted, CannotSend, NoRoom, ParallelError, RunInterrupted, RunTimedOut
from nbshm.failures.frames import Frame
from nbshm.failures.packed_exceptions import pack_exception
from nbshm.failures.rank_errors import RankDied, RankRaised, error_for, original_exception
from nbshm.failures.reports import Circumstances, Died, Quit, Raised, Stopped, with_frames
from nbshm.failures.stacks import Dump, Reader
from nbshm.failures.stories import headline, in_one_line, story
from nbshm.failures.tracebacks import ExceptionReport
from nbshm.jobs import Body, Origin
from nbshm.words import without_colours


def raised(
    rank: int,
    *,
    message: str = "bad shard",
    line: int = 5,
    exception: BaseException | None = None,
    preparing: bool = False,
) -> Raised:
    frame = Frame(filename="cell.py", line=line, function="<module>", text="load()", cell=7)
    report = ExceptionReport(
        type_name="ValueError",
        message=message,
        frames=() if preparing else (frame,),
        rendered=f"\x1b[31mCell In[7], line {line}\x1b[0m\nValueError: {message}",
        pickled=None if exception is None else pack_exception(exception),
    )
    return Raised(rank=rank, pid=1000 + rank, report=report, preparing=preparing)


def died(rank: int, exitcode: int, seconds: float = 41.2, dump: Dump | None = None) -> Died:
    return Died(
        rank=rank, pid=1000 + rank, exitcode=exitcode, seconds=seconds, line="In [7] line 5", dump=dump
    )


STOPPED = tuple(Stopped(rank=rank) for rank in (0, 1, 3))


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ([raised(2)], "rank 2 failed at In [7] line 5; ranks 0, 1, 3 were stopped."),
        (
            [died(2, -signal.SIGKILL)],
            (
                "rank 2 was killed by SIGKILL after 41 s at In [7] line 5; "
                "the machine may have run out of memory. Ranks 0, 1, 3 were stopped."
            ),
        ),
        ([died(2, 7, 0.3)], "rank 2 ended abruptly with exit code 7 after 0.3 s at In [7] line 5;"),
        (
            [replace(died(2, 255), is_lost=True)],
            (
                "rank 2 ended abruptly after 41 s at In [7] line 5; how is not known, as the forkserver was "
                "killed. Ranks 0, 1, 3 were stopped."
            ),
        ),
        ([died(2, -signal.SIGUSR1)], "rank 2 was killed by SIGUSR1 after 41 s at In [7] line 5; ranks"),
        ([died(2, -40)], "rank 2 was killed by signal 40 after"),
        (
            [died(2, -signal.SIGSEGV)],
            "rank 2 was killed by SIGSEGV after 41 s at In [7] line 5; a segmentation fault, most often",
        ),
        (
            [Quit(rank=2, pid=1, exitcode=3, line="In [7] line 5")],
            "rank 2 ended by sys.exit with exit code 3 at In [7] line 5; ranks 0, 1, 3 were stopped.",
        ),
        (
            [Quit(rank=2, pid=1, exitcode=1, text="ran out of data")],
            "rank 2 ended by sys.exit with exit code 1: ran out of data. Ranks 0, 1, 3 were stopped.",
        ),
        (
            [raised(2, preparing=True)],
            "rank 2 failed while it was being prepared, before the cell's first line;",
        ),
    ],
)
def test_the_headline_says_what_failed_and_who_was_stopped(failures, expected) -> None:
    assert headline(failures, STOPPED).startswith(expected)


def test_without_others_the_headline_names_no_others() -> None:
    assert headline([raised(0)]) == "rank 0 failed at In [7] line 5."
    assert headline([raised(0)], [Stopped(rank=1)]).endswith("; rank 1 was stopped.")


def test_ranks_that_failed_alike_are_told_once() -> None:
    text = str(RankRaised([raised(rank) for rank in range(4)]))
    assert text.startswith("ranks 0-3 failed at In [7] line 5.")
    assert text.count("Cell In[7], line 5") == 1


def test_the_same_failure_with_other_messages_is_told_once_with_each_message() -> None:
    text = str(RankRaised([raised(rank, message=f"bad shard {rank}") for rank in range(3)]))
    assert text.count("Cell In[7], line 5") == 1
    assert text.endswith("rank 1: ValueError: bad shard 1\nrank 2: ValueError: bad shard 2")


def test_different_failures_are_told_one_after_the_other_the_root_cause_first() -> None:
    text = str(RankRaised([raised(2), raised(0, line=9), died(1, 7)]))
    order = ["rank 2 failed at In [7] line 5.", "Cell In[7], line 5", "rank 0 failed at In [7] line 9, too."]
    places = [
        text.index(part) for part in [*order, "Cell In[7], line 9", "rank 1 ended abruptly with exit code 7"]
    ]
    assert places == sorted(places)


def test_the_notebook_shows_the_story_with_colours_and_no_frames_of_nbshm() -> None:
    shown = "\n".join(RankRaised([raised(2)], stopped=STOPPED)._render_traceback_())
    assert "\x1b[31mCell In[7], line 5" in shown
    assert without_colours(shown).startswith("RankRaised: rank 2 failed at In [7] line 5; ranks")
    assert "nbshm/" not in shown


def test_a_rank_that_raised_is_torchs_exception_too() -> None:
    mp = pytest.importorskip("torch.multiprocessing")
    error = error_for([raised(2, exception=ValueError("bad shard"))])
    assert isinstance(error, RankRaised)
    assert isinstance(error, ParallelError)
    assert isinstance(error, mp.ProcessRaisedException)
    assert (error.error_index, error.error_pid, error.msg) == (2, 1002, str(error))


def test_a_rank_that_died_is_torchs_exception_too() -> None:
    mp = pytest.importorskip("torch.multiprocessing")
    error = error_for([died(1, -9)])
    assert isinstance(error, RankDied)
    assert isinstance(error, mp.ProcessExitedException)
    assert (error.error_index, error.exit_code, error.signal_name) == (1, -9, "SIGKILL")


def test_an_exit_is_a_death_with_its_code() -> None:
    error = error_for([Quit(rank=1, pid=5, exitcode=3)])
    assert isinstance(error, RankDied)
    assert (error.exit_code, error.signal_name, error.error_pid) == (3, None, 5)


def test_the_cause_is_what_the_rank_raised() -> None:
    cause = error_for([raised(0, exception=KeyError("a"))]).__cause__
    assert type(cause) is KeyError
    assert cause.args == ("a",)


class FussyError(Exception):
    """Can be pickled, but not made again where `known` is False."""

    known = True

    def __init__(self, *, code: int) -> None:
        super().__init__(code)

    def __reduce__(self):
        return _fussy, (self.args[0],)


def _fussy(code: int) -> FussyError:
    if not FussyError.known:
        raise LookupError("unknown here")
    return FussyError(code=code)


def test_a_cause_that_cannot_be_made_again_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = raised(0, message="3", exception=FussyError(code=3))
    monkeypatch.setattr(FussyError, "known", False)
    cause = original_exception(failure.report)
    assert str(cause) == "ValueError: 3"
    assert isinstance(cause.__cause__, LookupError)


def test_a_cause_that_cannot_be_pickled_is_named() -> None:
    assert str(original_exception(raised(0).report)) == "ValueError: bad shard"


@pytest.mark.parametrize(
    "error",
    [
        ParallelError("a cell in a cell"),
        RunTimedOut(3, stopped=STOPPED),
        CannotSend("db", reason="it is open", remedy="Open it inside the cell."),
        NoRoom(what="x", needed=4, available=2, where="shared memory", remedy="Free some."),
        RunInterrupted(STOPPED),
        RankRaised([raised(2)], stopped=STOPPED, results=[lambda: 0], output="text of {}".format),
        RankDied([died(1, -9)], output="text of {}".format),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling(error: BaseException) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    for name in (
        "failures",
        "error_index",
        "error_pid",
        "exit_code",
        "signal_name",
        "msg",
        "seconds",
        "path",
    ):
        assert getattr(again, name, None) == getattr(error, name, None)


def test_an_error_gives_the_results_and_the_output_of_its_run() -> None:
    error = RankRaised([raised(1)], results=[4, None], output=lambda rank: f"output of {rank}")
    assert error.results == [4, None]
    assert error.output(1) == "output of 1"


def test_a_timeout_is_a_timeout_error_and_says_where_the_ranks_were() -> None:
    at = [Stopped(rank=rank, line="In [7] line 5") for rank in (0, 1)]
    error = RunTimedOut(2.5, stopped=[*at, Stopped(rank=2, by="SIGKILL", line="In [7] line 9")])
    assert isinstance(error, TimeoutError)
    assert str(error).splitlines() == [
        "the run was stopped after 2.5 s (timeout=2.5).",
        "ranks 0-1 were stopped at In [7] line 5.",
        "rank 2 was stopped by SIGKILL at In [7] line 9.",
    ]


def test_an_interrupt_is_a_keyboard_interrupt_with_a_line_per_rank() -> None:
    error = RunInterrupted([Stopped(rank=0, line="In [7] line 5"), Stopped(rank=1, by="SIGKILL")])
    assert isinstance(error, KeyboardInterrupt)
    assert without_colours("\n".join(error._render_traceback_())).splitlines() == [
        "KeyboardInterrupt: the run was interrupted.",
        "rank 0 was stopped at In [7] line 5.",
        "rank 1 was stopped by SIGKILL.",
    ]


def test_a_refusal_to_send_names_the_value_the_reason_the_use_and_the_remedy() -> None:
    error = CannotSend(
        "db",
        reason="sqlite3.Connection holds an open database",
        used="load_rows, In [3] line 7",
        remedy="Open it inside the cell.",
    )
    assert isinstance(error, TypeError)
    assert str(error) == (
        "cannot send 'db' to the workers: sqlite3.Connection holds an open database "
        "(used by load_rows, In [3] line 7). Open it inside the cell."
    )


def test_a_refusal_to_share_names_the_value_the_reason_and_the_remedy() -> None:
    error = CannotSend(
        "loss",
        action="share",
        reason="it is part of an autograd graph, which can't cross processes",
        remedy="Use loss.detach().",
    )
    assert str(error) == (
        "cannot share 'loss': it is part of an autograd graph, which can't cross processes. "
        "Use loss.detach()."
    )


def test_too_little_room_is_a_memory_error_with_both_sizes() -> None:
    error = NoRoom(
        what="'grid'", needed=3 << 30, available=64 << 20, where="shared memory", remedy="Use float32."
    )
    assert isinstance(error, MemoryError)
    assert str(error) == "no room for 'grid': 3.0 GiB needed, 64.0 MiB left in shared memory. Use float32."


def test_a_row_says_what_happened_to_its_rank() -> None:
    assert in_one_line(raised(2)) == "failed at In [7] line 5: ValueError: bad shard"
    assert in_one_line(died(2, 7)) == "ended abruptly with exit code 7 after 41 s at In [7] line 5"


def test_naming_the_errors_that_need_no_torch_imports_no_torch() -> None:
    code = "import sys, nbshm.errors, nbshm.failures.reports; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_torch_the_errors_exist_all_the_same() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['torch.multiprocessing'] = None\n"
        "from nbshm.failures.rank_errors import RankDied, error_for\n"
        "from nbshm.failures.reports import Died\n"
        "error = error_for([Died(rank=1, pid=5, exitcode=-9, seconds=1.0)])\n"
        "assert type(error) is RankDied and error.signal_name == 'SIGKILL' and error.error_index == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_error_whose_tracebacks_a_view_shows_says_so_once() -> None:
    error = ParallelError("rank 0 failed.\nTraceback ...")
    error.is_shown = True
    assert error._render_traceback_()[1:] == ["The traceback is above; %tb shows it as text."]
    assert error._render_traceback_()[1:] == ["Traceback ..."]


@pytest.mark.parametrize(
    ("number", "circumstances", "told"),
    [
        (9, Circumstances(), "; the machine may have run out of memory."),
        (
            9,
            Circumstances(memory=3 << 30, memory_kills=1),
            "the system killed it for lack of memory (it had 3.0 GiB)",
        ),
        (
            9,
            Circumstances(memory=3 << 20, memory_kills=0),
            "as the system counts, it was not killed for lack of memory (it had 3.0 MiB)",
        ),
        (7, Circumstances(), "memory that could not be reached: a full /dev/shm or a truncated file"),
        (7, Circumstances(free_shared=4096), "is full, 4.0 KiB are left"),
        (7, Circumstances(free_shared=5 << 30), "or /dev/shm was full (5.0 GiB are left there now)"),
        (11, Circumstances(), "a segmentation fault, most often in a compiled library"),
    ],
)
def test_a_death_is_explained_by_what_was_measured(number, circumstances, told) -> None:
    death = Died(rank=1, pid=5, exitcode=-number, seconds=1.0, circumstances=circumstances)
    assert told in headline([death])


def test_a_fault_is_told_with_its_stack() -> None:
    dump = Dump(
        text="Fatal Python error: Segmentation fault\n\nCurrent thread 0x0a (most recent call first):\n"
        '  File "/lib/ctypes.py", line 5 in string_at\n  File "cell seven", line 2 in <module>\n',
        thread=10,
    )
    body = Body(
        source="crash()", cell="%%parallel\ncrash()", origin=Origin(filename="cell seven", line=2, cell=7)
    )
    death = with_frames(died(1, -11, dump=dump), Reader(cells={}, body=body))
    assert without_colours(story([death])).splitlines() == [
        headline([death]),
        "    In [7] line 2: crash()",
        "    ctypes.py line 5, in string_at",
    ]
    assert "SIGSEGV after 41 s at In [7] line 2; " in headline([death])
    assert with_frames(died(1, -9), Reader(cells={}, body=body)) == died(1, -9)


def test_the_items_that_a_dead_rank_had_are_told() -> None:
    dead = replace(died(2, -signal.SIGKILL), items=range(12, 25))
    assert "rank 2 had items [12:25] of a claim" in str(RankDied([dead]))
    assert "claim" not in str(RankDied([died(2, -signal.SIGKILL)]))


def test_an_interrupted_call_is_told_in_its_sentence_alone() -> None:
    error = CallInterrupted("the wait was interrupted.")
    assert isinstance(error, KeyboardInterrupt)
    assert [without_colours(line) for line in error._render_traceback_()] == [
        "KeyboardInterrupt: the wait was interrupted."
    ]
