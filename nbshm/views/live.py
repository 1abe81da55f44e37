"""The live view: one widget that shows a row per rank while the cell runs."""

from __future__ import annotations

from typing import Any

from nbshm.views.outputs import Bundle, publish

_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class LiveView:
    """Shows one piece of HTML that is replaced as a whole; closed, nothing of it is left.

    One `HTML` widget, because `Output` widgets keep everything and get slower with each line.
    """

    def __init__(self, html: str, *, plain: str, display_id: str) -> None:
        from ipywidgets import HTML  # noqa: PLC0415  # most cells are over before they would need it

        self._widget: Any = HTML(value=html)
        view = {"version_major": 2, "version_minor": 0, "model_id": self._widget.model_id}
        publish(Bundle(data={_WIDGET_VIEW: view, "text/plain": plain}), display_id=display_id)

    def update(self, html: str) -> None:
        """Show other HTML."""
        self._widget.value = html

    def close(self) -> None:
        """Take the widget out of the page and out of the kernel."""
        # A front end may save the last value with the notebook: nothing of a run that has ended belongs
        # there.
        self._widget.value = ""
        for part in (self._widget.layout, self._widget.style, self._widget):
            part.close()
