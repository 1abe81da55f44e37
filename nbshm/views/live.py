"""The live view: a few widgets that show the ranks while the cell runs, and Stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbshm.views.outputs import Bundle, publish
from nbshm.views.subshells import hears_while_busy

_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_STOP = "End all ranks: an interrupt first, so that their finally blocks run"
_INTERRUPT = "To stop, interrupt the kernel."


class LiveView:
    """Shows pieces of HTML below each other, each of which is replaced as a whole; closed, nothing is left.

    A few `HTML` widgets, because `Output` widgets keep everything and get slower with each line. The first,
    `frame`, stays as it is: what a person chooses in it is not lost when the others are redrawn.
    """

    def __init__(self, frame: str, *, name: str, stop: Callable[[], None]) -> None:
        import ipywidgets  # noqa: PLC0415  # most cells are over before they would need it

        self._widgets = ipywidgets
        self._frame = ipywidgets.HTML(value=frame, layout=ipywidgets.Layout(width="100%", margin="0"))
        self._button = ipywidgets.Button(description="Stop", icon="stop", tooltip=_STOP)
        self._button.layout.width, self._button.layout.height = "6em", "22px"
        self._button.on_click(lambda _: stop())
        hint = "" if hears_while_busy(self._button) else f'<span class="dim">{_INTERRUPT}</span>'
        self._pieces = {"head": self._piece(""), "hint": self._piece(hint), "table": self._piece("")}
        top = [self._pieces["head"], *([self._pieces["hint"]] if hint else []), self._button]
        self._head = ipywidgets.HBox(top)
        self._box = ipywidgets.VBox(
            [self._head, self._pieces["table"], self._frame], _dom_classes=("nbshm-live", name)
        )

    def show(self, *, plain: str, display_id: str) -> None:
        """Put the view into the cell's output."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self._box.model_id}
        publish(Bundle(data={_WIDGET_VIEW: view, "text/plain": plain}), display_id=display_id)

    def update(self, piece: str, html: str, kinds: tuple[str, ...] = ()) -> None:
        """Show other HTML in a piece; one that is new comes below the others, with these CSS classes."""
        if piece in self._pieces:
            self._pieces[piece].value = html
        else:
            self._pieces[piece] = self._piece(html, kinds)
            self._box.children = [*self._box.children, self._pieces[piece]]

    def close(self) -> None:
        """Take the widgets out of the page and out of the kernel."""
        for piece in self._pieces.values():
            # A front end may save the last value with the notebook: nothing of a run that has ended belongs
            # there.
            piece.value = ""
        for widget in (self._box, self._head, self._button, self._frame):
            widget.layout.close()
        for part in (self._button.style, self._frame.style, *self._pieces.values()):
            part.close()
        for widget in (self._frame, self._button, self._head, self._box):
            widget.close()

    def _piece(self, html: str, kinds: tuple[str, ...] = ()) -> Any:
        frame = self._frame
        return self._widgets.HTML(value=html, layout=frame.layout, style=frame.style, _dom_classes=kinds)
