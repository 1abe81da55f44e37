"""A run in a notebook's page: a live view if it takes long, then the story, which stays.

events ──▶ Story ──▶ passages ──▶ bundles ──▶ one display, updated in place
   └─────▶ Rows ───▶ a live widget in that same display, from a quarter of a second to the end
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence

from nbshm.events import Event
from nbshm.reports import RankFailure, Stopped
from nbshm.views.live import LiveView
from nbshm.views.outputs import Bundle, publish, replace_output
from nbshm.views.rows import Rows, rows_html
from nbshm.views.static import bundles
from nbshm.views.story import Story

PATIENCE = 0.25  # seconds; a view that comes and goes at once would only flicker
_REFRESH = 0.1  # seconds between two states of the live view


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
        self.begin(1)

    def begin(self, nprocs: int, *, stop: Callable[[], None] | None = None) -> None:
        """Get ready for a run of that many ranks; `stop` ends it, from any thread."""
        self._stop = stop
        self._nprocs = nprocs
        self._story = Story(nprocs)
        now = self._clock()
        self._rows = Rows(nprocs, now)
        self._next_refresh = now + self._patience

    def show(self, event: Event) -> None:
        """Take the next event; redraw the live view if it is time."""
        now = self._clock()
        self._story.add(event)
        self._rows.add(event, now)
        if now >= self._next_refresh:
            self._next_refresh = now + _REFRESH
            self._refresh(now)

    def finish(self, *, failures: Sequence[RankFailure] = (), stopped: Sequence[Stopped] = ()) -> None:
        """Put the story in the live view's place; a short run that said nothing leaves no output."""
        if self._finished:
            return
        self._finished = True
        self._story.finish(failures, stopped)
        passages = self._story.passages()
        try:
            self._publish(bundles(passages, self._nprocs) if passages else [])
        finally:
            if self._live is not None:
                self._live.close()

    def _refresh(self, now: float) -> None:
        ranks = range(self._nprocs)
        html = rows_html([self._rows.row(rank, now, self._story.last_line(rank)) for rank in ranks])
        if self._live is None:
            plain = "1 rank is running" if self._nprocs == 1 else f"{self._nprocs} ranks are running"
            self._live = LiveView(html, plain=plain, display_id=self._display_id)
        else:
            self._live.update(html)

    def _publish(self, outputs: Sequence[Bundle]) -> None:
        if self._live is not None:
            # Without any data the output is still there, but nothing is shown or compared.
            first, outputs = (outputs[0], outputs[1:]) if outputs else (Bundle(data={}), [])
            replace_output(first, display_id=self._display_id)
        for output in outputs:
            publish(output)
