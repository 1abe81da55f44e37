"""Tasks of pools and executors: what they raise reaches the notebook, with words for what it lacks here."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from multiprocessing.pool import MaybeEncodingError  # type: ignore[attr-defined]  # typeshed leaves it out
from typing import Any

from nbshm.worker.late_names import explain_late_name


def telling(task: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a task that raises what the notebook can receive.

    Raises
    ------
    MaybeEncodingError
        The task raised what can be pickled but not unpickled, as an exception whose class takes other
        arguments than it hands to `Exception`. It would end the thread of the notebook that receives
        results, and whoever waits for one would wait for ever.

    """

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return task(*arguments, **named)
        except Exception as error:
            explain_late_name(error)
            reason = _why_not_received(error)
            if reason is not None:
                raise MaybeEncodingError(reason, error) from error
            raise

    return call


def _why_not_received(error: Exception) -> Exception | None:
    try:
        pickled = pickle.dumps(error)
    except Exception:  # noqa: BLE001  # told by the standard library
        return None
    try:
        pickle.loads(pickled)
    except Exception as reason:  # noqa: BLE001  # whatever a class of the notebook raises
        return reason
    return None
