"""A run in a notebook's page: a live view if it takes long, then the story, which stays.

events ──▶ Story ──▶ passages ──▶ bundles ──▶ one display, updated in place
   └─────▶ Rows, Tails ──▶ live widgets in that same display, from a quarter of a second to the end
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Sequence

from nbshm.events import Event
from nbshm.failures.reports import Raised, RankFailure, Stopped
from nbshm.views.failure_page import failure_bundle
from nbshm.views.live import LiveView
from nbshm.views.outputs import Bundle, publish, replace_output
from nbshm.views.rows import Rows
from nbshm.views.static import bundles
from nbshm.views.story import Story
from nbshm.views.table import head_html, table_html
from nbshm.views.tail_choice import frame_html, tail_class

PATIENCE = 0.25  # seconds; a view that comes and goes at once would only flicker
_REFRESH = 0.25  # seconds at least between two states of the live view
_COST = 100  # times as long as it took to draw it a state stays: the view has one per cent of a core
_LONGEST = 2.0  # seconds that it stays at most


class PageView:
    """Shows a run as one output of the cell; what ranks displayed themselves may add further ones.

    The live view comes after `patience` seconds.
    """

    def __init__(self, *, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._display_id = f"nbshm-{uuid.uuid4().hex}"
        self._live: LiveView | None = None
        self._finished = False

    def begin(self, nprocs: int, *, stop: Callable[[], None]) -> None:
        """Get ready for a run of that many ranks; `stop`, called in any thread, ends it."""
        self._nprocs = nprocs
        self._stop = stop
        self._story = Story(nprocs)
        self._began = self._clock()
        self._rows = Rows(nprocs, self._began)
        self._next_refresh = self._began + self._patience

    def show(self, event: Event) -> None:
        """Take the next event; redraw the live view if it is time."""
        now = self._clock()
        self._story.add(event)
        self._rows.add(event, now)
        if now >= self._next_refresh:
            self._next_refresh = now + self._refresh(now)

    def finish(self, *, failures: Sequence[RankFailure] = (), stopped: Sequence[Stopped] = ()) -> None:
        """Put the story in the live view's place; a short run that said nothing leaves no output."""
        if self._finished:
            return
        self._finished = True
        self._story.finish(failures, stopped)
        passages = self._story.passages()
        outputs = bundles(passages, self._nprocs) if passages else []
        if self.shows_failures(failures):
            outputs.append(failure_bundle(failures, stopped))
        try:
            self._publish(outputs)
        finally:
            if self._live is not None:
                self._live.close()

    def shows_failures(self, failures: Sequence[RankFailure]) -> bool:
        """Show exceptions to a person; what executes notebooks reads the error itself."""
        return self._patience != math.inf and any(isinstance(failure, Raised) for failure in failures)

    def _refresh(self, now: float) -> float:
        """Draw the view as it is now; return for how many seconds it is to stay so."""
        live = self._live or self._open()
        begun = time.thread_time()
        rows = self._rows.rows(now, map(self._story.last_line, range(self._nprocs)))
        live.update("head", head_html(rows, self._rows.whole(), now - self._began))
        live.update("table", table_html(rows))
        self._show_tails(live)
        if self._live is None:
            plain = "1 rank is running" if self._nprocs == 1 else f"{self._nprocs} ranks are running"
            live.show(plain=plain, display_id=self._display_id)
            self._live = live
            return _REFRESH
        return min(_LONGEST, max(_REFRESH, _COST * (time.thread_time() - begun)))

    def _show_tails(self, live: LiveView) -> None:
        tails = self._story.tails
        changed = tails.take_changed()
        if changed:
            live.update("all", tails.of_all(), self._tail_classes(None))
        for rank in changed if self._nprocs > 1 else []:
            live.update(f"rank {rank}", tails.of(rank), self._tail_classes(rank))

    def _open(self) -> LiveView:
        name = self._display_id
        return LiveView(frame_html(name, self._nprocs), name=name, stop=self._stop)

    def _tail_classes(self, rank: int | None) -> tuple[str, ...]:
        return "nbshm-tail", tail_class(self._display_id, rank)

    def _publish(self, outputs: Sequence[Bundle]) -> None:
        if self._live is not None:
            # Without any data the output is still there, but nothing is shown or compared.
            first, outputs = (outputs[0], outputs[1:]) if outputs else (Bundle(data={}), [])
            replace_output(first, display_id=self._display_id)
        for output in outputs:
            publish(output)
