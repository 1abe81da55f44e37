"""The state of each rank in a row: what it is doing, for how long, and what it said last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nbshm.events import (
    Ended,
    Event,
    Exited,
    Failed,
    Interrupted,
    Progress,
    Result,
    Resumed,
    Started,
    Waiting,
)
from nbshm.reports import signal_name, without_colours
from nbshm.views.ansi import escape
from nbshm.words import progress_in_words, seconds_in_words

State: TypeAlias = Literal["starting", "running", "waiting", "finished", "failed", "stopped", "died"]

_LONGEST_SHOWN = 300  # characters of a last line
_OVER: tuple[State, ...] = ("finished", "failed", "stopped", "died")
_STYLE = """<style>
.nbshm-live{border-collapse:collapse;font-family:var(--jp-code-font-family,monospace);
font-size:var(--jp-code-font-size,13px);line-height:1.4;color:var(--jp-content-font-color1,inherit)}
.nbshm-live td{padding:0 1em 0 0.3em;text-align:left;white-space:nowrap;vertical-align:top}
.nbshm-live td:nth-child(1),.nbshm-live td:nth-child(3){text-align:right;
color:var(--jp-ui-font-color2,#757575)}
.nbshm-live td:nth-child(4){max-width:60em;overflow:hidden;text-overflow:ellipsis;white-space:pre}
.nbshm-live .running{color:var(--jp-brand-color1,#1976d2)}
.nbshm-live .waiting{color:var(--jp-warn-color1,#b26a00)}
.nbshm-live .finished{color:var(--jp-success-color1,#2e7d32)}
.nbshm-live .failed,.nbshm-live .died{color:var(--jp-error-color1,#c62828);font-weight:bold}
</style>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is shown of one rank."""

    state: State
    detail: str
    seconds: float
    progress: str
    last_line: str


@dataclass(slots=True)
class _Rank:
    state: State = "starting"
    detail: str = ""
    progress: str = ""
    began: float = 0.0
    ended: float | None = None


class Rows:
    """Follows the ranks of a run through its events."""

    def __init__(self, nprocs: int, now: float) -> None:
        self._ranks = {rank: _Rank(began=now) for rank in range(nprocs)}

    def add(self, event: Event, now: float) -> None:
        """Take the next event."""
        match event:
            case Started(rank=rank):
                self._ranks[rank] = _Rank(state="running", began=now)
            case Waiting(rank=rank, at=at):
                self._set(rank, "waiting", at)
            case Resumed(rank=rank):
                self._set(rank, "running")
            case Progress(rank=rank):
                self._ranks[rank].progress = progress_in_words(event.label, event.done, event.total)
            case Result(rank=rank):
                self._close(rank, "finished", now)
            case Failed(rank=rank, report=report):
                self._close(rank, "failed", now, report.type_name)
            case Exited(rank=rank, code=code):
                self._close(rank, "failed", now, f"exit code {code}")
            case Interrupted(rank=rank):
                self._close(rank, "stopped", now)
            case Ended(rank=rank, exitcode=exitcode):
                cause = signal_name(-exitcode) if exitcode < 0 else f"exit code {exitcode}"
                self._close(rank, "finished" if exitcode == 0 else "died", now, cause)
            case _:
                pass

    def row(self, rank: int, now: float, last_line: str) -> Row:
        """Return what is to be shown of a rank now."""
        known = self._ranks[rank]
        return Row(
            state=known.state,
            detail=known.detail,
            seconds=(now if known.ended is None else known.ended) - known.began,
            progress=known.progress,
            last_line=last_line,
        )

    def _set(self, rank: int, state: State, detail: str = "") -> None:
        if self._ranks[rank].state not in _OVER:
            self._ranks[rank].state = state
            self._ranks[rank].detail = detail

    def _close(self, rank: int, state: State, now: float, detail: str = "") -> None:
        if self._ranks[rank].state not in _OVER:
            self._set(rank, state, "" if state == "finished" else detail)
            self._ranks[rank].ended = now


def rows_html(rows: Sequence[Row]) -> str:
    """Write the rows as an HTML table in which nothing can run."""
    lines = "\n".join(_row_html(rank, row) for rank, row in enumerate(rows))
    return f'{_STYLE}\n<table class="nbshm-live">\n{lines}\n</table>'


def _row_html(rank: int, row: Row) -> str:
    state = f"{row.state} {row.detail}".strip()
    said = " ".join(part for part in (row.progress, without_colours(row.last_line)) if part)
    cells = [
        f"<td>rank {rank}</td>",
        f'<td class="{row.state}">{escape(state)}</td>',
        f"<td>{seconds_in_words(row.seconds)}</td>",
        f"<td>{escape(said[-_LONGEST_SHOWN:])}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"
