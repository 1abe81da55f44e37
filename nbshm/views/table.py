"""The rows of a live view as an HTML table in which nothing can run, below a line that sums them up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from nbshm.views.ansi import escape
from nbshm.views.paces import Pace
from nbshm.views.rows import Row
from nbshm.words import (
    number_in_words,
    percent_in_words,
    progress_in_words,
    seconds_in_words,
    size_in_words,
    without_colours,
)

STYLE = """
.nbshm-live{font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px);
line-height:1.4;color:var(--jp-content-font-color1,inherit)}
.nbshm-live table{border-collapse:collapse;width:100%;table-layout:auto;margin:0;font:inherit;color:inherit}
.nbshm-live button{line-height:22px}
.nbshm-live tr{background:none!important}
.nbshm-live td,.nbshm-live th{padding:0 1em 0 0;border:none;text-align:left;white-space:nowrap;
font-weight:normal;vertical-align:top;line-height:inherit}
.nbshm-live th,.nbshm-live .dim{color:var(--jp-ui-font-color2,#757575)}
.nbshm-live .number{text-align:right;font-variant-numeric:tabular-nums}
.nbshm-live .last{width:100%;max-width:0;overflow:hidden;text-overflow:ellipsis;white-space:pre;
padding-right:0}
.nbshm-live .running{color:var(--jp-brand-color1,#1976d2)}
.nbshm-live .waiting{color:var(--jp-warn-color1,#b26a00)}
.nbshm-live .finished{color:var(--jp-success-color1,#2e7d32)}
.nbshm-live .failed,.nbshm-live .died{color:var(--jp-error-color1,#c62828);font-weight:bold}
.nbshm-live .bar{display:inline-block;width:6em;height:.7em;margin-right:.6em;
border:1px solid var(--jp-border-color1,#9e9e9e)}
.nbshm-live .bar i{display:block;height:100%;background:var(--jp-brand-color1,#1976d2)}
"""

_LONGEST_SHOWN = 300  # characters of a last line
_LONG_RUN = 30.0  # seconds after which it is worth a look how the time was spent


def head_html(rows: Sequence[Row], whole: Pace | None, seconds: float) -> str:
    """Write the line above the rows: what they are doing, how far they are, how long it will take."""
    bar = "" if whole is None else _bar(whole.fraction)
    offer = "; nbshm.last.report() will show how the time was spent" if seconds >= _LONG_RUN else ""
    text = escape(summary(rows, whole))
    return f'<div>{bar}{text}<span class="dim"> · {seconds_in_words(seconds)}{offer}</span></div>'


def summary(rows: Sequence[Row], whole: Pace | None) -> str:
    """Sum up in words: `3 of 4 running, 1 finished, 61 %, about 20 s left`."""
    states = Counter(row.state for row in rows)
    (first, count), *others = sorted(states.items(), key=lambda state: _ORDER.index(state[0]))
    parts = [f"{count} of {len(rows)} {first}" if len(rows) > 1 else first]
    parts += [f"{count} {state}" for state, count in others]
    if whole is not None:
        parts += [] if whole.fraction is None else [percent_in_words(whole.fraction)]
        left = whole.seconds_left
        parts += [] if left is None else [f"about {seconds_in_words(left)} left"]
    return ", ".join(parts)


def table_html(rows: Sequence[Row]) -> str:
    """Write a row for each rank."""
    gpu = any(row.usage is not None and row.usage.gpu is not None for row in rows)
    names = ["rank", "state", "time", "progress", "CPU", "memory", "shared", *(["GPU"] if gpu else [])]
    head = "".join(f"<th{_RIGHT if name in _NUMBERS else ''}>{name}</th>" for name in names)
    lines = "\n".join(f"<tr>{''.join(_cells(row, gpu=gpu))}</tr>" for row in rows)
    return f'<table><tr>{head}<th class="last">last line</th></tr>\n{lines}\n</table>'


_ORDER = ("running", "waiting", "starting", "failed", "died", "stopped", "finished")
_NUMBERS = ("rank", "time", "CPU", "memory", "shared", "GPU")
_RIGHT = ' class="number"'


def _cells(row: Row, *, gpu: bool) -> Iterator[str]:
    yield f'<td class="number dim">{row.rank}</td>'
    yield f'<td class="{row.state}">{escape(f"{row.state} {row.detail}".strip())}</td>'
    yield f'<td class="number dim">{seconds_in_words(row.seconds)}</td>'
    yield f"<td>{''.join(_progress(row.paces))}</td>"
    usage = row.usage
    figures = [
        "" if usage is None or row.is_over else percent_in_words(usage.cpu),
        "" if usage is None else size_in_words(usage.own),
        "" if usage is None else size_in_words(usage.shared),
        *(["" if usage is None or usage.gpu is None else size_in_words(usage.gpu)] if gpu else []),
    ]
    yield from (f'<td class="number">{figure}</td>' for figure in figures)
    line = without_colours(row.last_line)
    yield f'<td class="last">{escape(line[-_LONGEST_SHOWN:])}</td>'


def _progress(paces: Sequence[Pace]) -> Iterator[str]:
    """Write the outermost loop with a bar, the loops in it as words."""
    for depth, pace in enumerate(paces):
        if depth == 0 and pace.shared is None:
            yield _bar(pace.fraction)
        if depth:
            inner = f"{progress_in_words(pace.label, pace.done, pace.total)} {pace.detail}".rstrip()
            yield f'<span class="dim"> · {escape(inner)}</span>'
        else:
            yield escape(" ".join(_said(pace)))


def _said(pace: Pace) -> Iterator[str]:
    if pace.shared is not None and pace.total is not None:
        yield f"{pace.label} {number_in_words(pace.done)} of {number_in_words(pace.total)}".lstrip()
    else:
        yield progress_in_words(pace.label, pace.done, pace.total)
    if pace.rate is not None:
        yield rate_in_words(pace.rate)
    if pace.shared is None and pace.seconds_left is not None:
        yield f"{seconds_in_words(pace.seconds_left)} left"
    if pace.detail:
        yield pace.detail


def rate_in_words(rate: float) -> str:
    """Write items a second, or the seconds that one item takes: `3.2/s`, `4.1 s each`."""
    return f"{number_in_words(float(f'{rate:.2g}'))}/s" if rate >= 1 else f"{seconds_in_words(1 / rate)} each"


def _bar(fraction: float | None) -> str:
    if fraction is None:
        return ""
    return f'<span class="bar"><i style="width:{round(100 * fraction)}%"></i></span>'
