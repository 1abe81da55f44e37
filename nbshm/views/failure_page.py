"""The failure of a run as HTML: the root cause first, what followed from it after that, each kind once.

Of the person's own frames the lines around are shown, with the failing expression marked and the values of
names on demand; those of libraries are folded. It says what the plain text says, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from nbshm.failures.frames import Frame, folded
from nbshm.failures.reports import Raised, RankFailure, Stopped
from nbshm.failures.stories import grouped, headline, other_messages, story, title, unfinished_items
from nbshm.failures.tracebacks import ExceptionReport
from nbshm.views.ansi import escape
from nbshm.views.outputs import Bundle
from nbshm.words import without_colours

_DIRECT = "The above exception was the direct cause of the following one:"
_DURING = "While the above exception was handled, the following one occurred:"
_MOST_FRAMES = 30  # of one traceback: a runaway recursion says nothing new
_STYLE = """<style>
.nbshm-failure{font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px);
line-height:1.4;color:var(--jp-content-font-color1,inherit);
border-left:3px solid var(--jp-error-color1,#c62828);padding-left:.7em}
.nbshm-failure .head,.nbshm-failure .kind{color:var(--jp-error-color1,#c62828)!important;font-weight:bold}
.nbshm-failure .place{margin-top:.5em;font-weight:bold}
.nbshm-failure .dim,.nbshm-failure summary{color:var(--jp-ui-font-color2,#757575);font-weight:normal}
.nbshm-failure summary{cursor:pointer}
.nbshm-failure pre{margin:0;padding:0;font:inherit;line-height:inherit;color:inherit;background:none;
border:none;white-space:pre-wrap;overflow-wrap:anywhere}
.nbshm-failure mark{background:#ffe0b2;color:#212121;font-weight:bold;text-decoration:underline}
.nbshm-failure table{border-collapse:collapse;margin:0 0 0 1em;font:inherit;color:inherit}
.nbshm-failure td{padding:0 1em 0 0;border:none;text-align:left!important;vertical-align:top;
overflow-wrap:anywhere}
.nbshm-failure tr{background:none!important}
.nbshm-failure .members{margin-left:1.5em}
</style>"""


def failure_bundle(failures: Sequence[RankFailure], stopped: Sequence[Stopped]) -> Bundle:
    """Write the failure as an output of the cell: HTML, and the same as plain text."""
    plain = without_colours(story(failures, stopped))
    return Bundle(data={"text/plain": plain, "text/html": failure_html(failures, stopped)})


def failure_html(failures: Sequence[RankFailure], stopped: Sequence[Stopped]) -> str:
    """Write what failed, and with whom."""
    parts = [f'<div class="head">{escape(headline(failures, stopped))}</div>']
    for number, group in enumerate(grouped(failures)):
        parts += _group(group, root_cause=number == 0)
    return f'{_STYLE}\n<div class="nbshm-failure">\n{chr(10).join(parts)}\n</div>'


def _group(group: Sequence[RankFailure], *, root_cause: bool) -> Iterator[str]:
    """Write failures of one kind: the first one's traceback, and how the messages of the others differ."""
    if not root_cause:
        yield f'<div class="kind">{escape(title(group))}</div>'
    yield from (f"<div>{escape(line)}</div>" for line in unfinished_items(group))
    first = group[0]
    if isinstance(first, Raised):
        yield from _exception(first.report)
        yield from (f"<pre>{escape(line)}</pre>" for line in other_messages(group))


def _exception(report: ExceptionReport) -> Iterator[str]:
    """Write an exception below those that it was raised from."""
    if report.cause is not None:
        yield from _exception(report.cause)
        yield f'<div class="dim">{_DIRECT if report.is_direct else _DURING}</div>'
    yield from _frames(report.frames)
    message = f"{report.type_name}: {report.message}" if report.message else report.type_name
    yield f'<pre class="kind">{escape(message)}</pre>'
    yield from (f"<pre>{escape(note)}</pre>" for note in report.notes)
    if report.members:
        yield '<div class="members">'
        for number, member in enumerate(report.members, start=1):
            yield f'<div class="dim">exception {number} of the group</div>'
            yield from _exception(member)
        yield "</div>"


def _frames(frames: Sequence[Frame]) -> Iterator[str]:
    left_out = len(frames) - _MOST_FRAMES
    shown = frames if left_out <= 0 else (*frames[: _MOST_FRAMES // 2], *frames[-_MOST_FRAMES // 2 :])
    for of_library, group in groupby(shown, key=lambda frame: frame.is_library):
        if of_library:
            yield _folded(list(group))
        else:
            yield from _owns(group)
    if left_out > 0:
        yield f'<div class="dim">{left_out} frames in the middle are left out</div>'


def _owns(frames: Iterable[Frame]) -> Iterator[str]:
    """Write frames of the person's own code; a recursion in one line is shown once."""
    for shown, more in folded(frames):
        yield from map(_own, shown)
        if more:
            yield '<div class="dim">and again and again, in the same line</div>'


def _folded(frames: Sequence[Frame]) -> str:
    """Write frames of libraries as one line that can be opened."""
    files = ", ".join(dict.fromkeys(frame.place.partition(" line ")[0] for frame in frames))
    lines = "\n".join(f"{frame.place}, in {frame.function}: {frame.text}" for frame in frames)
    count = f"{len(frames)} {'frame' if len(frames) == 1 else 'frames'} in {files}"
    return f"<details><summary>{escape(count)}</summary><pre>{escape(lines)}</pre></details>"


def _own(frame: Frame) -> str:
    """Write a frame of the person's own code: where it is, its lines, the values of its names."""
    function = (
        "" if frame.function == "<module>" else f' <span class="dim">in {escape(frame.function)}</span>'
    )
    place = f'<div class="place">{escape(frame.place)}{function}</div>'
    lines = "\n".join(_lines(frame)) or escape(frame.text)
    return f"{place}<pre>{lines}</pre>{_values(frame)}"


def _lines(frame: Frame) -> Iterator[str]:
    margin = _margin(frame.source)
    width = len(str(frame.first + len(frame.source)))
    for number, text in enumerate(frame.source, start=frame.first):
        here = number == frame.line
        code = _marked(text, frame.mark, margin) if here else escape(text[margin:])
        line = f"{'→' if here else ' '} {number:>{width}}  {code}"
        yield f"<b>{line}</b>" if here else line


def _marked(text: str, mark: tuple[int, int] | None, margin: int) -> str:
    if mark is None:
        return escape(text[margin:])
    start, end = (max(margin, column) for column in mark)
    return f"{escape(text[margin:start])}<mark>{escape(text[start:end])}</mark>{escape(text[end:])}"


def _margin(lines: Iterable[str]) -> int:
    """Count the blanks that all lines begin with."""
    return min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)


def _values(frame: Frame) -> str:
    if not frame.values:
        return ""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in frame.values
    )
    return f"<details><summary>values</summary><table>{rows}</table></details>"
