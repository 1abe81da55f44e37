"""How a run's time was spent, as a table and a small picture: `nbshm.last.report()`."""

from __future__ import annotations

from collections.abc import Iterator

from nbshm.runs.times import RankTimes, balance
from nbshm.words import percent_in_words, seconds_in_words

_WIDTH = 40  # characters of the longest bar
_HEAD = ("rank", "start-up", "work", "waiting", "over early")
_SIGNS = {"starting": "·", "working": "█", "waiting": "░", "over": " "}
_COLOURS = {
    "starting": "var(--jp-border-color1,#bdbdbd)",
    "working": "var(--jp-brand-color1,#1976d2)",
    "waiting": "var(--jp-warn-color1,#f57c00)",
    "over": "transparent",
}
_NAMES = {"starting": "start-up", "working": "work", "waiting": "waiting (for a barrier, a lock, a queue)"}


class TimeReport:
    """The times of a run's ranks, `ranks`, in seconds, by rank; in a notebook it shows itself."""

    def __init__(self, ranks: tuple[RankTimes, ...]) -> None:
        self.ranks = ranks

    def __repr__(self) -> str:
        rows = [_HEAD, *map(self._cells, range(len(self.ranks)))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
        bars = ["", *(self._bar(times) for times in self.ranks)]
        lines = [
            "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), bar]).rstrip()
            for row, bar in zip(rows, bars, strict=True)
        ]
        key = ", ".join(f"{_SIGNS[phase]} {name}" for phase, name in _NAMES.items())
        return "\n".join([*lines, self._summary(), key])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in (*_HEAD, ""))
        rows = "\n".join(self._row(rank) for rank in range(len(self.ranks)))
        key = ", ".join(f"{_sample(phase)} {name}" for phase, name in _NAMES.items())
        return f"<table>\n<tr>{head}</tr>\n{rows}\n</table>\n<div>{self._summary()}</div>\n<div>{key}</div>"

    def _cells(self, rank: int) -> tuple[str, ...]:
        times = self.ranks[rank]
        seconds = (times.starting, times.working, times.waiting, times.over)
        return (str(rank), *map(seconds_in_words, seconds))

    def _row(self, rank: int) -> str:
        cells = "".join(f"<td>{cell}</td>" for cell in self._cells(rank))
        parts = "".join(
            f'<span style="width:{100 * share:.1f}%;background:{_COLOURS[phase]}"></span>'
            for phase, share in _shares(self.ranks[rank])
        )
        return f'<tr>{cells}<td><div style="display:flex;width:24em;height:1em">{parts}</div></td></tr>'

    def _bar(self, times: RankTimes) -> str:
        bar, done = "", 0.0
        for phase, share in _shares(times):
            done += share
            bar += _SIGNS[phase] * (round(_WIDTH * done) - len(bar))
        return bar

    def _summary(self) -> str:
        whole = sum(times.whole for times in self.ranks)
        work = sum(times.working for times in self.ranks)
        share = percent_in_words(work / whole) if whole else "nothing"
        return (
            f"Work is {share} of the ranks' time; on average a rank worked "
            f"{percent_in_words(balance(self.ranks))} as long as the one that worked longest."
        )


def _shares(times: RankTimes) -> Iterator[tuple[str, float]]:
    for phase in _SIGNS:
        yield phase, getattr(times, phase) / times.whole if times.whole else 0.0


def _sample(phase: str) -> str:
    return f'<span style="display:inline-block;width:1em;height:.8em;background:{_COLOURS[phase]}"></span>'
