"""A background run as who asks for it sees it, without ranks."""

from __future__ import annotations

import threading

import pytest

from nbshm.errors import CallInterrupted
from nbshm.jobs import Body, Origin
from nbshm.runs.background import BackgroundRun, Standing
from nbshm.runs.living import LivingRun


class Interrupted(threading.Event):
    """Who waits for it is interrupted."""

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002  # threading's
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        ("wait", "the wait was interrupted. The run goes on; stop() ends it."),
        (
            "stop",
            "the wait was interrupted. The ranks are being stopped; stop() again ends them at once.",
        ),
    ],
)
def test_an_interrupted_wait_says_what_becomes_of_the_run(ask: str, told: str) -> None:
    body = Body(source="1", cell="1", origin=Origin(filename="cell", line=1))
    living = LivingRun(name="job", grace=2, body=body)
    job = BackgroundRun(
        Standing(name="job", cell="In [1]", living=living, cells={}, current=None, over=Interrupted())
    )
    with pytest.raises(CallInterrupted) as caught:
        getattr(job, ask)()
    assert str(caught.value) == told
