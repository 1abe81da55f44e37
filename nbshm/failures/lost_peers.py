"""Failures that only follow from another rank's: a collective that ended because a peer is gone.

A rank that fails closes its connections, at the latest with its process and often earlier (in a `finally`
that destroys the process group, say), so that the ranks which wait for it may fail before it has said why.
torch.distributed has no class of its own for what they raise then, so that only the words can tell.
"""

from __future__ import annotations

import re

from nbshm.failures.tracebacks import ExceptionReport

_KINDS = frozenset({"RuntimeError", "DistError", "DistBackendError", "DistNetworkError"})
_WORDS = re.compile(
    "Connection closed by peer|Connection reset by peer|Broken pipe"  # Gloo
    "|Connection was likely closed"  # the store at MASTER_PORT
    "|remote process exit"  # NCCL
)


def tells_of_lost_peer(report: ExceptionReport) -> bool:
    """Tell whether an exception was raised because another rank was gone, or while that was handled."""
    link: ExceptionReport | None = report
    while link is not None:
        if link.type_name in _KINDS and _WORDS.search(link.message):
            return True
        link = link.cause
    return False
