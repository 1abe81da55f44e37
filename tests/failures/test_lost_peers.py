"""Failures that follow from another rank's are told from those that are causes."""

from __future__ import annotations

import pytest

from nbshm.failures.lost_peers import tells_of_lost_peer
from nbshm.failures.tracebacks import report_exception


@pytest.mark.parametrize(
    "message",
    [
        "[pair.cc:553] Connection closed by peer [127.0.0.1]:13453. This is typically caused by ...",
        "[pair.cc:534] Read error [127.0.0.1]:1324: Connection reset by peer",
        "[pair.cc:443] writev [127.0.0.1]:13453: Broken pipe",
        "failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
        "ncclRemoteError: A call failed possibly due to ... or a remote process exiting prematurely.",
    ],
)
def test_what_torch_says_of_a_lost_peer_is_known(message: str) -> None:
    assert tells_of_lost_peer(report_exception(RuntimeError(message)))


def test_what_was_raised_while_a_loss_was_handled_follows_from_it() -> None:
    error = ValueError("training failed")
    error.__cause__ = RuntimeError("Connection closed by peer")
    assert tells_of_lost_peer(report_exception(error))


@pytest.mark.parametrize(
    "error", [RuntimeError("bad"), ValueError("Connection closed by peer"), BrokenPipeError("Broken pipe")]
)
def test_other_failures_are_causes(error: Exception) -> None:
    assert not tells_of_lost_peer(report_exception(error))
