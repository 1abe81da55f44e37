"""tqdm's bars in a worker: they are the rank's progress, and nothing of them is printed.

A bar that is given a file of its own stays what it is. tqdm's classes are changed in place, because libraries
and the notebook's functions hold them by whatever name they have imported them under.
"""

from __future__ import annotations

import io
import sys
from types import ModuleType
from typing import Any

from nbshm.worker.claims import Claimed
from nbshm.worker.imports import ImportWatch
from nbshm.worker.loop_reports import LoopReport, LoopReports

_FILE = 4  # the place of `file` among the arguments
_REPORT = "_nbshm_report"
_STANDARD = frozenset({"stdout", "stderr", "<stdout>", "<stderr>"})  # as a kernel and a terminal name them
# What a bar of `tqdm.notebook` has in place of a plain one's: widgets, which have no front end here.
_WIDGETS = (
    "__init__",
    "__iter__",
    "update",
    "close",
    "clear",
    "reset",
    "display",
    "status_printer",
    "colour",
)


class Nowhere(io.TextIOBase):
    """Takes what a bar draws for a terminal."""

    encoding = "utf-8"

    def write(self, text: str, /) -> int:
        """Forget it."""
        return len(text)


class Bars:
    """Has the bars of a rank told by its reports."""

    def __init__(self, reports: LoopReports) -> None:
        self._reports = reports

    def follow(self, watch: ImportWatch) -> None:
        """Take tqdm over as soon as it is imported."""
        watch.when_imported("tqdm.std", self._take_over)
        watch.when_imported("tqdm.notebook", _without_widgets)

    def _take_over(self, module: ModuleType) -> None:
        """Replace the methods that draw: `display` is the one that tqdm's documentation names for it."""
        kind: Any = vars(module)["tqdm"]
        begin, display, close = kind.__init__, kind.display, kind.close

        # `display=` is an option of tqdm.notebook's bars.
        def __init__(bar: Any, *args: Any, display: bool = True, **options: Any) -> None:  # noqa: N807, ARG001
            if self._is_told(args, options):
                options["file"] = Nowhere()
                setattr(bar, _REPORT, self._reports.report())
            begin(bar, *args, **options)

        def show(bar: Any, msg: Any = None, pos: Any = None) -> Any:
            report = getattr(bar, _REPORT, None)
            return display(bar, msg, pos) if report is None else _tell(bar, report)

        def end(bar: Any) -> None:
            report = getattr(bar, _REPORT, None)
            if report is not None and not bar.disable:
                report.end(bar.n)
            close(bar)

        kind.__init__, kind.display, kind.close = __init__, show, end
        for bar in kind._instances:  # noqa: SLF001  # a forked rank has the notebook's, which have no other list
            self._adopt(bar)

    def _adopt(self, bar: Any) -> None:
        """Tell of a bar from before, which would write to the notebook's terminal, or to its widget."""
        if getattr(bar.fp, "name", None) in _STANDARD:
            bar.fp, bar.gui = Nowhere(), False
            setattr(bar, _REPORT, self._reports.report())

    def _is_told(self, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
        ours = options.get("file") in (None, sys.stdout, sys.stderr) and not options.get("gui")
        return ours and len(args) <= _FILE and self._reports.is_heard()


def _tell(bar: Any, report: LoopReport) -> bool:
    """Say what a bar would show; one around a claim gives that its name, and counts nothing itself."""
    label = (bar.desc or "").removesuffix(": ")
    if isinstance(bar.iterable, Claimed):
        bar.iterable.report.label = label
        bar.iterable.report.detail = bar.postfix or ""
        return True
    report.label, report.total, report.detail = label, bar.total, bar.postfix or ""
    report.advance(bar.n)
    return True


def _without_widgets(module: ModuleType) -> None:
    """Make the notebook's bar a plain one."""
    kind: Any = vars(module)["tqdm_notebook"]
    for name in _WIDGETS:
        if name in vars(kind):
            delattr(kind, name)
