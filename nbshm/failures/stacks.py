"""Where ranks are: the stacks of their threads as `faulthandler` dumps them, read into frames of cells.

A dump is text because that is what can be had of a process that lets no Python code run.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nbshm.failures.frames import Frame, folded
from nbshm.failures.waits import PROCESS, Wait, what_it_waits_for
from nbshm.jobs import Body
from nbshm.own_code import OWN_DIRECTORY
from nbshm.words import ranks_in_words, verb_for

_THREAD = re.compile(r"^(Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_IPYTHON = (os.sep + "IPython" + os.sep, os.sep + "ipykernel" + os.sep)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """The stacks of a process's threads as text; `thread` is the one that runs the body.

    `on_its_own`: Python code of the process has written it; else a signal has, as nothing else got a turn.
    `in_wait_for_child`: the system has the thread wait for a child process, which no Python frame tells of
    `os.waitpid` and `os.system`.
    """

    text: str
    thread: int
    on_its_own: bool = True
    in_wait_for_child: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStack:
    """Where one rank is: frames of the thread that runs the body, the outermost first, and what it waits for.

    `stuck`: it sits in compiled code that lets no Python code run; `silent`: not even a signal got an answer.
    """

    rank: int
    frames: tuple[Frame, ...] = ()
    waits_for: Wait | None = None
    stuck: bool = False
    silent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """Where the living ranks of a run are; `ranks` has them in order. Its repr tells it."""

    title: str
    ranks: tuple[RankStack, ...]

    def __repr__(self) -> str:
        if not self.ranks:
            return f"{self.title}: no rank runs."
        return "\n".join([f"{self.title}:", *stacks_in_words(self.ranks)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads dumps of a run's ranks: `cells` are the numbers of cells by the names of their code.

    The text of the body's own cell is not what IPython has compiled under its name, so `body` has it.
    """

    cells: Mapping[str, int]
    body: Body

    def stacks(self, dumps: Mapping[int, Dump | None]) -> tuple[RankStack, ...]:
        """Read the dumps of ranks."""
        return tuple(stack_of(rank, dumps[rank], self) for rank in sorted(dumps))

    def frame(self, filename: str, line: int, function: str) -> Frame:
        """Make a frame of what a dump says of it."""
        own = filename == self.body.origin.filename
        number = self.body.origin.cell if own else self.cells.get(filename)
        text = self._line_of_body(line) if own else linecache.getline(filename, line)
        return Frame(filename=filename, line=line, function=function, text=text.strip(), cell=number)

    def _line_of_body(self, line: int) -> str:
        return next(iter(self.body.cell.splitlines()[line - 1 : line]), "")


def stack_of(rank: int, dump: Dump | None, reader: Reader) -> RankStack:
    """Read a rank's dump."""
    if dump is None:
        return RankStack(rank=rank, silent=True)
    frames = frames_of(dump, reader)
    return RankStack(
        rank=rank,
        frames=_of_the_person(frames),
        waits_for=what_it_waits_for(frames) or (PROCESS if dump.in_wait_for_child else None),
        stuck=not dump.on_its_own,
    )


def frames_of(dump: Dump, reader: Reader) -> tuple[Frame, ...]:
    """Return the frames of the thread that runs the body, the outermost first."""
    return next((frames for ident, _, frames in _threads(dump, reader) if ident == dump.thread), ())


def frames_of_other_threads(dump: Dump, reader: Reader) -> list[tuple[Frame, ...]]:
    """Return the frames of other threads that run code of cells, the outermost first."""
    others = [_of_the_person(found) for ident, _, found in _threads(dump, reader) if ident != dump.thread]
    return [frames for frames in others if any(frame.cell is not None for frame in frames)]


def frames_at_death(dump: Dump | None, reader: Reader) -> tuple[Frame, ...]:
    """Return the frames of the thread in which a fault killed the process; none if nothing tells of one."""
    _, fault, last = (dump.text if dump else "").rpartition("Fatal Python error")
    threads = _threads(Dump(text=last, thread=0), reader) if fault else ()
    return next((_of_the_person(found) for _, current, found in threads if current), ())


def stacks_in_words(stacks: Sequence[RankStack]) -> Iterator[str]:
    """Tell where ranks are, those together that are at the same place; the line reached is the last."""
    groups: dict[tuple[object, ...], list[RankStack]] = {}
    for stack in stacks:
        places = tuple((frame.filename, frame.line) for frame in _shown(stack))
        groups.setdefault((places, stack.waits_for, stack.stuck, stack.silent), []).append(stack)
    for group in groups.values():
        ranks = [stack.rank for stack in group]
        yield f"{ranks_in_words(ranks)} {_what_they_do(group[0], ranks)}"
        yield from frames_in_words(_shown(group[0]))


def frames_in_words(frames: Sequence[Frame]) -> Iterator[str]:
    """Tell frames, a line each; a recursion in one line only once."""
    for shown, more in folded(frames):
        yield from map(_frame_in_words, shown)
        if more:
            yield f"    ... and the same {more} times more"


def _frame_in_words(frame: Frame) -> str:
    function = "" if frame.function.startswith("<") else f", in {frame.function}"
    return f"    {frame.place}{function}{f': {frame.text}' if frame.text else ''}"


def _shown(stack: RankStack) -> list[Frame]:
    """Return the frames of cells; the innermost of a library only where no wait says what it does."""
    innermost = stack.frames[-1] if stack.frames and stack.waits_for is None else None
    return [frame for frame in stack.frames if frame.cell is not None or frame is innermost]


def _what_they_do(stack: RankStack, ranks: Sequence[int]) -> str:
    if stack.silent:
        return verb_for(ranks, "does not answer.", "do not answer.")
    be = verb_for(ranks, "is", "are")
    if stack.stuck:
        return f"{be} in compiled code that lets no Python code run:"
    if stack.waits_for is not None:
        return f"{verb_for(ranks, 'waits', 'wait')} for {stack.waits_for.what}{':' if _shown(stack) else '.'}"
    return f"{be} at:" if stack.frames else f"{be} in no code of the notebook."


def _threads(dump: Dump, reader: Reader) -> Iterator[tuple[int, bool, tuple[Frame, ...]]]:
    """Yield the threads of the last dump in the text: ident, whether it was the current one, frames."""
    blocks: list[tuple[int, bool, list[Frame]]] = []
    for line in dump.text.splitlines():
        if thread := _THREAD.match(line):
            blocks.append((int(thread[2], 16), thread[1] == "Current thread", []))
        elif blocks and (frame := _FRAME.match(line)):
            blocks[-1][2].append(reader.frame(frame[1], int(frame[2]), frame[3]))
    for ident, current, frames in reversed(blocks):
        yield ident, current, tuple(reversed(frames))


def _of_the_person(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Leave out what leads to the person's code, and nbshm's own frames and IPython's between."""
    first = next((number for number, frame in enumerate(frames) if frame.cell is not None), len(frames))
    return tuple(frame for frame in frames[first:] if not _is_machinery(frame))


def _is_machinery(frame: Frame) -> bool:
    return frame.filename.startswith(OWN_DIRECTORY) or any(part in frame.filename for part in _IPYTHON)
