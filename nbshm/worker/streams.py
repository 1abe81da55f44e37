"""What a worker shows beside text: rich output and cleared output, said in the order in which it was shown.

Descriptors 1 and 2 are pipes that the kernel reads: text needs nobody here. Rich output goes as events, each
with a mark in the text (see `nbshm.wire.markers`) that tells what was printed before it.
"""

# IPython is typed in part:
# mypy: allow-untyped-calls

from __future__ import annotations

import base64
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from IPython.core.displaypub import DisplayPublisher

from nbshm.events import Cleared, Display, Event
from nbshm.wire.markers import mark
from nbshm.words import printable

Say: TypeAlias = Callable[[Event], None]

# A widget's view without a kernel behind it would be an error message in the page; its text says what it is.
_WIDGET = "application/vnd.jupyter.widget-view+json"


class Voice:
    """How one rank says what it shows. Made when descriptor 1 is the pipe that the kernel reads.

    `token` is the run's, as the reader knows it; without one nothing is marked.
    """

    def __init__(self, *, rank: int, say: Say, token: str | None = None) -> None:
        self.rank = rank
        self.say = say
        self._token = token
        self._number = 0
        self._process = os.getpid()
        self._in_order = threading.Lock()
        # A copy, because the code may point descriptor 1 elsewhere and then the mark must not go there.
        self._pipe = -1 if token is None else os.dup(1)

    def close(self) -> None:
        """Give the copy of descriptor 1 back."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def show(self, event: Display | Cleared) -> None:
        """Say an event, marked in the text."""
        with self._in_order:
            self._mark()
            self.say(event)

    def is_heard(self) -> bool:
        """Tell whether this process is the rank itself: a child that it forked has no way to the kernel."""
        return os.getpid() == self._process

    def _mark(self) -> None:
        if self._token is None:
            return
        # Code may have closed either: the display is then told where it can be, at the end of the text.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            os.write(self._pipe, mark(self._token, self._number))
        self._number += 1


class EventPublisher(DisplayPublisher):
    """Publishes IPython's displays as events; without a voice they are text, as in a plain IPython."""

    voice: Voice | None = None

    def publish(
        self,
        data: Mapping[str, Any],
        metadata: Mapping[str, Any] | None = None,
        *_: Any,
        transient: Mapping[str, Any] | None = None,
        update: bool = False,
        **__: Any,
    ) -> None:
        """Say what is displayed, with the identity under which it may be updated."""
        if self.voice is None or not self.voice.is_heard():
            print(data.get("text/plain", ""))  # noqa: T201  # what IPython's own publisher does
            return
        display = Display(
            rank=self.voice.rank,
            data=_portable(data),
            metadata=dict(metadata or {}),
            display_id=(transient or {}).get("display_id"),
            update=update,
        )
        self.voice.show(display)

    def clear_output(self, wait: bool = False) -> None:  # noqa: FBT001, FBT002  # IPython's signature
        """Say that what was shown so far is to go."""
        if self.voice is not None and self.voice.is_heard():
            self.voice.show(Cleared(rank=self.voice.rank, wait=wait))


def _portable(data: Mapping[str, Any]) -> dict[str, Any]:
    """Make a MIME bundle that any front end can take: bytes in base64, no widgets."""
    return {kind: _as_text(value) for kind, value in data.items() if kind != _WIDGET}


def _as_text(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return printable(value) if isinstance(value, str) else value
