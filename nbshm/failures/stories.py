"""What became of the ranks of a run that failed, in words.

The words are plain text or, for the traceback that a page or terminal shows, text with ANSI colours; a story
is a headline, then each different failure, the root cause first.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence

from nbshm.failures.reports import Circumstances, Died, Quit, Raised, RankFailure, Stopped
from nbshm.failures.stacks import frames_in_words
from nbshm.failures.tracebacks import ExceptionReport
from nbshm.words import bytes_in_words, ranks_in_words, seconds_in_words, verb_for

_LITTLE = 1 << 20  # bytes that are as good as none
_LONGEST = 200  # characters of a message where it stands in a line: the traceback has all of it
_EXPLANATIONS: dict[int, str] = {
    signal.SIGSEGV: "a segmentation fault, most often in a compiled library",
    signal.SIGABRT: "a compiled library gave up",
    signal.SIGFPE: "an arithmetic error in a compiled library",
    signal.SIGILL: "an instruction that this processor does not have",
}
_UNHEARD = (
    "; its code has closed the connection to the notebook, as os.closerange or the start of a daemon does: "
    "do that in a process of its own"
)


def headline(failures: Sequence[RankFailure], stopped: Sequence[Stopped] = ()) -> str:
    """Say in one line what failed first, with whom, and who was stopped because of it."""
    first = failures[0]
    same = [first, *(other for other in failures[1:] if _kind(other) == _kind(first))]
    what = _what_happened(first, [failure.rank for failure in same])
    return f"{what}{_and_the_others(what, stopped)}"


def story(failures: Sequence[RankFailure], stopped: Sequence[Stopped] = ()) -> str:
    """Tell the whole failure with ANSI colours: the headline, then each different failure once."""
    first, *others = grouped(failures)
    parts = [_bold_red(headline(failures, stopped)), *_told(first)]
    for group in others:
        parts += ["", _bold_red(title(group)), *_told(group)]
    return "\n".join(parts)


def grouped(failures: Sequence[RankFailure]) -> list[list[RankFailure]]:
    """Put failures of one kind together, in the order in which the kinds were seen first."""
    groups: dict[tuple[object, ...], list[RankFailure]] = {}
    for failure in failures:
        groups.setdefault(_kind(failure), []).append(failure)
    return list(groups.values())


def title(group: Sequence[RankFailure]) -> str:
    """Say what happened to ranks that failed alike, after others."""
    follows = ", too." if isinstance(group[0], Raised) else "."
    return _what_happened(group[0], [failure.rank for failure in group]) + follows


def other_messages(group: Sequence[RankFailure]) -> list[str]:
    """Say how the messages of exceptions of one kind differ from the first one's."""
    first, *others = [failure for failure in group if isinstance(failure, Raised)]
    messages: dict[str, list[int]] = {}
    for other in sorted(others, key=lambda failure: failure.rank):
        if other.report.message != first.report.message:
            messages.setdefault(_type_and_message(other.report), []).append(other.rank)
    return [f"{ranks_in_words(ranks)}: {message}" for message, ranks in messages.items()]


def unfinished_items(group: Sequence[RankFailure]) -> list[str]:
    """Say which items of a shared loop ranks had when they died."""
    return [
        f"rank {failure.rank} had items [{failure.items.start}:{failure.items.stop}] of a claim; "
        "no other rank has them."
        for failure in group
        if isinstance(failure, Died) and failure.items
    ]


def stop_in_words(stop: Stopped) -> str:
    """Say how and where a rank was stopped, without its number."""
    forced = "" if stop.by == "interrupt" else f" by {stop.by}"
    return f"stopped{forced}{_at(stop.line)}"


def stops_in_words(stopped: Iterable[Stopped]) -> list[str]:
    """Say where ranks were when they were stopped, one line for those that say the same."""
    lines: dict[str, list[int]] = {}
    for stop in stopped:
        lines.setdefault(stop_in_words(stop), []).append(stop.rank)
    return [f"{ranks_in_words(ranks)} {verb_for(ranks, 'was', 'were')} {how}" for how, ranks in lines.items()]


def in_one_line(failure: RankFailure) -> str:
    """Say what happened to one rank, without its number: for a row of a view."""
    match failure:
        case Raised(report=report):
            where = f" at {report.where}" if report.where else ""
            return f"failed{where}: {_type_and_message(report)}"
        case Died() | Quit():
            return _what_happened(failure, [failure.rank]).split(" ", 2)[2].removeprefix("was ")


def _what_happened(failure: RankFailure, ranks: Sequence[int]) -> str:
    who = ranks_in_words(ranks)
    match failure:
        case Raised(preparing=True):
            be = verb_for(ranks, "it was", "they were")
            return f"{who} failed while {be} being prepared, before the cell's first line"
        case Raised(report=report):
            return f"{who} failed{_at(report.where)}"
        case Quit(exitcode=code, text=text, line=line):
            words = f": {text}" if text else ""
            return f"{who} ended by sys.exit with exit code {code}{_at(line)}{words}"
        case Died(is_lost=True, line=line):
            unknown = "how is not known, as the forkserver was killed"
            return f"{who} ended abruptly after {seconds_in_words(failure.seconds)}{_at(line)}; {unknown}"
        case Died(exitcode=code, line=line) if code >= 0:
            after = seconds_in_words(failure.seconds)
            unheard = _UNHEARD if failure.circumstances.is_unheard else ""
            return f"{who} ended abruptly with exit code {code} after {after}{_at(line)}{unheard}"
        case Died(line=line):
            be, after = verb_for(ranks, "was", "were"), seconds_in_words(failure.seconds)
            killed = f"{who} {be} killed by {failure.signal_name} after {after}{_at(line)}"
            return f"{killed}{_why(failure)}"


def _at(place: str | None) -> str:
    return f" at {place}" if place else ""


def _why(death: Died) -> str:
    match -death.exitcode:
        case signal.SIGKILL:
            return f"; {_why_killed(death.circumstances)}"
        case signal.SIGBUS:
            return f"; memory that could not be reached: {_why_unreachable(death.circumstances.free_shared)}"
        case number:
            reason = _EXPLANATIONS.get(number)
            return f"; {reason}" if reason else ""


def _why_killed(circumstances: Circumstances) -> str:
    memory = None if circumstances.memory is None else bytes_in_words(circumstances.memory)
    had = f" (it had {memory})" if memory else ""
    match circumstances.memory_kills:
        case None:
            return f"the machine may have run out of memory{had}"
        case 0:
            return f"the signal was sent: as the system counts, it was not killed for lack of memory{had}"
        case _:
            return f"the system killed it for lack of memory{had}"


def _why_unreachable(free: int | None) -> str:
    if free is None:
        return "a full /dev/shm or a truncated file"
    if free < _LITTLE:
        return f"/dev/shm is full, {bytes_in_words(free)} are left"  # noqa: S108  # it is only named
    return f"a truncated file, or /dev/shm was full ({bytes_in_words(free)} are left there now)"


def _and_the_others(what: str, stopped: Sequence[Stopped]) -> str:
    ranks = sorted(stop.rank for stop in stopped)
    if not ranks:
        return "."
    sentence = f"{ranks_in_words(ranks)} {verb_for(ranks, 'was', 'were')} stopped."
    return f". {sentence.capitalize()}" if ";" in what or ": " in what else f"; {sentence}"


def _kind(failure: RankFailure) -> tuple[object, ...]:
    """Say what two failures share that are told together, whatever their messages are."""
    match failure:
        case Raised(report=report, preparing=preparing):
            return ("raised", preparing, *report.signature)
        case Died(exitcode=code, line=line):
            return ("died", code, line)
        case Quit(exitcode=code, text=text, line=line):
            return ("quit", code, text, line)


def _told(group: Sequence[RankFailure]) -> list[str]:
    """Tell failures of one kind: the first one's traceback, how the messages of the others differ."""
    first = group[0]
    if not isinstance(first, Raised):
        frames = first.frames if isinstance(first, Died) else ()
        return [*frames_in_words(frames), *unfinished_items(group)]
    return [first.report.rendered.rstrip("\n"), *other_messages(group)]


def _type_and_message(report: ExceptionReport) -> str:
    lines = report.message.strip().splitlines()
    return f"{report.type_name}: {_in_short(lines[0])}" if lines else report.type_name


def _in_short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _bold_red(text: str) -> str:
    return f"\x1b[1;31m{text}\x1b[0m" if text else ""
