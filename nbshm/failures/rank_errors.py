"""The errors of a rank that raised or died, which are torch.multiprocessing's errors too.

Importing this module imports torch; it is loaded when the first of them is raised or named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from nbshm.errors import ParallelError
from nbshm.failures.packed_exceptions import ExceptionStandIn, unpack_exception
from nbshm.failures.reports import Died, Quit, Raised, RankFailure, Stopped
from nbshm.failures.stories import story
from nbshm.failures.tracebacks import ExceptionReport

if TYPE_CHECKING:
    from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException
else:
    try:
        from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException
    except ImportError:  # nbshm's rooms without torch work, and fail, without it too
        from nbshm.failures.torchless import ProcessExitedException, ProcessRaisedException


class _RankFailed(ParallelError):  # noqa: N818  # its name is the condition
    """What both have: the failures that they tell, and how they travel."""

    def __init__(
        self,
        failures: Sequence[RankFailure],
        *,
        stopped: Sequence[Stopped] = (),
        results: Sequence[Any] = (),
        output: Callable[[int], str] | None = None,
    ) -> None:
        ParallelError.__init__(
            self, story(failures, stopped), failures=failures, results=results, output=output
        )
        self.stopped = tuple(stopped)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.failures, stopped=self.stopped), ()


class RankRaised(_RankFailed, ProcessRaisedException):
    """The code of at least one rank raised an exception.

    `__cause__` is the exception of the rank that failed first, `error_index` that rank, `error_pid` its
    process id.
    """

    def __init__(self, failures: Sequence[RankFailure], **facts: Any) -> None:
        _RankFailed.__init__(self, failures, **facts)
        root = failures[0]
        ProcessRaisedException.__init__(self, str(self), root.rank, root.pid)
        if isinstance(root, Raised):
            self.__cause__ = original_exception(root.report)


class RankDied(_RankFailed, ProcessExitedException):
    """The process of a rank ended on its own, by a signal or with an exit code other than 0.

    `error_index` is the rank that ended first, `error_pid` its process id; `exit_code` is as in
    multiprocessing, negative for a signal, whose name is `signal_name`.
    """

    def __init__(self, failures: Sequence[RankFailure], **facts: Any) -> None:
        _RankFailed.__init__(self, failures, **facts)
        root = failures[0]
        exitcode = root.exitcode if isinstance(root, (Died, Quit)) else 1
        name = root.signal_name if isinstance(root, Died) else None
        ProcessExitedException.__init__(self, str(self), root.rank, root.pid, exitcode, name)


def error_for(
    failures: Sequence[RankFailure],
    *,
    stopped: Sequence[Stopped] = (),
    results: Sequence[Any] = (),
    output: Callable[[int], str] | None = None,
) -> RankRaised | RankDied:
    """Make the error that tells these failures; the first of them, the root cause, decides its class."""
    kind = RankRaised if isinstance(failures[0], Raised) else RankDied
    return kind(failures, stopped=stopped, results=results, output=output)


def original_exception(report: ExceptionReport) -> BaseException:
    """Bring back the exception that a rank raised, or one that carries its type's name and its message."""
    stand_in = ExceptionStandIn(f"{report.type_name}: {report.message}")
    if report.pickled is None:
        return stand_in
    try:
        return unpack_exception(report.pickled)
    except Exception as problem:  # noqa: BLE001  # a foreign class may raise anything when it is made again
        stand_in.__cause__ = problem
        return stand_in
