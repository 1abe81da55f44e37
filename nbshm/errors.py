"""Everything that nbshm can raise, each with the message that it builds from data.

    ParallelError
    ├── RankRaised    a rank's code raised: torch's ProcessRaisedException too    (nbshm.failures.rank_errors)
    ├── RankDied      a rank's process died: torch's ProcessExitedException too   (nbshm.failures.rank_errors)
    ├── RunTimedOut   a TimeoutError
    ├── CannotSend    a TypeError
    └── NoRoom        a MemoryError
    CallInterrupted   a KeyboardInterrupt, so no ParallelError: `except Exception` must not swallow it
    └── RunInterrupted
    NothingBound      a NameError: the run came to its end, but a name of `out=` was bound nowhere

The two that are torch's exceptions too have a module of their own, because importing it imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from nbshm.failures.reports import RankFailure, Stopped
from nbshm.failures.stacks import RankStack, stacks_in_words
from nbshm.failures.stories import stops_in_words
from nbshm.words import bytes_in_words, seconds_in_words, without_colours


class ParallelError(Exception):
    """A parallel cell did not come to its end.

    `failures` has what became of each rank that failed, the root cause first; `results` the values of the
    ranks that had finished (None for the others), by rank; `output(rank)` all that a rank wrote. Pickled, the
    error keeps its failures, but not the results and the output, which belong to the run. Where `is_shown` is
    set, a view shows the tracebacks already: the next time that IPython shows the error it says so instead.
    """

    def __init__(
        self,
        story: str,
        *,
        failures: Sequence[RankFailure] = (),
        results: Sequence[Any] = (),
        output: Callable[[int], str] | None = None,
    ) -> None:
        # Not super(): the next class in line may be torch's or OSError, whose __init__ takes other arguments.
        Exception.__init__(self, without_colours(story))
        self.failures = tuple(failures)
        self.results = list(results)
        self.is_shown = False
        self._story = story
        self._output = output

    def output(self, rank: int) -> str:
        """Return everything that a rank wrote to its stdout and stderr, in the order of arrival."""
        return self._output(rank) if self._output else ""

    def __str__(self) -> str:
        return without_colours(self._story)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self._story, failures=self.failures), ()

    def _render_traceback_(self) -> list[str]:
        """Show the story in place of the frames between the cell and the workers, as IPython's hook."""
        if self.is_shown:
            self.is_shown = False
            first = str(self).partition("\n")[0]
            return _titled(type(self).__name__, f"{first}\nThe traceback is above; %tb shows it as text.")
        return _titled(type(self).__name__, self._story)


class RunTimedOut(ParallelError, TimeoutError):  # noqa: N818  # its name is the condition
    """A run took longer than `timeout=` allows, counted from the start of its body.

    `stacks` are where its ranks were then.
    """

    def __init__(
        self,
        seconds: float,
        *,
        stopped: Sequence[Stopped],
        stacks: Sequence[RankStack] = (),
        results: Sequence[Any] = (),
        output: Callable[[int], str] | None = None,
    ) -> None:
        lines = [
            f"the run was stopped after {seconds_in_words(seconds)} (timeout={seconds:g}).",
            *_stops(stopped),
            *(["When its time was over:"] if stacks else []),
            *stacks_in_words(stacks),
        ]
        super().__init__("\n".join(lines), results=results, output=output)
        self.seconds = seconds
        self.stopped = tuple(stopped)
        self.stacks = tuple(stacks)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.seconds, stopped=self.stopped, stacks=self.stacks), ()


class CannotSend(ParallelError, TypeError):  # noqa: N818  # its name is the condition
    """A value can't travel to the workers, or its memory can't be shared with them.

    `path` leads to the value from a name of the notebook (`config.handlers[0]`), `reason` is a clause about
    it, `used` says who needs it and where (`load_rows, In [3] line 7`), `remedy` is a whole sentence.
    """

    def __init__(
        self,
        path: str,
        *,
        reason: str,
        remedy: str,
        used: str | None = None,
        action: Literal["send", "share"] = "send",
    ) -> None:
        to_whom = " to the workers" if action == "send" else ""
        use = f" (used by {used})" if used else ""
        super().__init__(f"cannot {action} '{path}'{to_whom}: {reason}{use}. {remedy}")
        self.path = path
        self.reason = reason
        self.remedy = remedy
        self.used = used
        self.action = action

    def __reduce__(self) -> tuple[Any, ...]:
        facts: dict[str, Any] = {
            "reason": self.reason,
            "remedy": self.remedy,
            "used": self.used,
            "action": self.action,
        }
        return partial(type(self), self.path, **facts), ()


class NoRoom(ParallelError, MemoryError):  # noqa: N818  # its name is the condition
    """Memory that a run needs is not there; said before anything is written."""

    def __init__(self, *, what: str, needed: int, available: int, where: str, remedy: str) -> None:
        super().__init__(
            f"no room for {what}: {bytes_in_words(needed)} needed, "
            f"{bytes_in_words(available)} left in {where}. {remedy}"
        )
        self.what = what
        self.needed = needed
        self.available = available
        self.where = where
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        facts = {name: getattr(self, name) for name in ("what", "needed", "available", "where", "remedy")}
        return partial(type(self), **facts), ()


class CallInterrupted(KeyboardInterrupt):
    """Something that a person has called was interrupted; what that means is told in a sentence."""

    def _render_traceback_(self) -> list[str]:
        """Show the sentence in place of the frames in which the kernel was, as IPython's hook."""
        return _titled("KeyboardInterrupt", str(self))


class RunInterrupted(CallInterrupted):
    """A run was ended by the kernel's interrupt or by Stop, as `by` tells; all its workers are gone.

    It has a line per rank that was stopped.
    """

    def __init__(
        self, stopped: Sequence[Stopped] = (), *, by: Literal["interrupted", "stopped"] = "interrupted"
    ) -> None:
        super().__init__("\n".join([f"the run was {by}.", *_stops(stopped)]))
        self.stopped = tuple(stopped)
        self.by = by

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.stopped, by=self.by), ()


class NothingBound(NameError):  # noqa: N818  # its name is the condition
    """No rank has bound a name that `out=` asks for."""

    def __init__(self, name: str) -> None:
        super().__init__(f"out={name}: no rank has bound {name!r}.")
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)

    def _render_traceback_(self) -> list[str]:
        """Show the sentence alone, as IPython's hook: no line of the notebook has raised this."""
        return _titled("NameError", str(self))


def _stops(stopped: Sequence[Stopped]) -> list[str]:
    return [f"{line}." for line in stops_in_words(stopped)]


def _titled(name: str, story: str) -> list[str]:
    first, *rest = story.splitlines() or [""]
    return [f"\x1b[1;31m{name}\x1b[0m: {first}", *rest]
