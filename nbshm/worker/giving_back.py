"""Sending what a rank gives back, or telling why it can't come back."""

from __future__ import annotations

from typing import Any

from nbshm.events import Failed, Result
from nbshm.failures.tracebacks import report_exception
from nbshm.jobs import Outcome
from nbshm.refusals import culprit_in, reason_of
from nbshm.wire.messages import Arrived
from nbshm.worker.borrowers import stay_for_borrowers
from nbshm.worker.life import Seat
from nbshm.worker.results import ResultPickling

_CUT = "what was part of an autograd graph came back detached: the graph stays in the worker."


def give_back(outcome: Outcome, seat: Seat, results: ResultPickling, *, lenient: bool = False) -> int:
    """Send the rank's values; a value that can't be pickled is this rank's failure, told in words.

    `lenient`: it is told in a line, as nobody has asked for the value.
    """
    try:
        parcel, segments = results.pack(outcome)
    except Exception as error:  # noqa: BLE001  # whatever a value's own pickling raises
        if lenient:
            why = _why(outcome.value, error, results)
            seat.tell(f"what it returned can't come back to the notebook: {why}.")
            return give_back(Outcome(value=None, out={}), seat, results)
        problem = TypeError(f"{_culprit(outcome, error, results)}.")
        seat.say(Failed(rank=seat.rank, report=report_exception(problem)))
        return 1
    if results.cut_graphs:
        seat.tell(_CUT)
    seat.say(Result(rank=seat.rank, parcel=parcel), [segment.fd for segment in segments])
    if parcel.is_lent:
        seat.wait_for(Arrived)
    stay_for_borrowers(seat)
    return 0


def _culprit(outcome: Outcome, error: Exception, results: ResultPickling) -> str:
    """Say which of a rank's values can't be pickled, why, and what to do."""
    for name, value in outcome.out.items():
        try:
            results.try_out(value)
        except Exception as again:  # noqa: BLE001, PERF203  # as above
            return f"out={name} can't come back to the notebook: {_why(value, again, results)}"
    why = _why(outcome.value, error, results)
    remedy = "End the cell in ';', or with a value that can be pickled"
    return f"the value of the last expression can't come back to the notebook: {why}. {remedy}"


def _why(value: Any, error: Exception, results: ResultPickling) -> str:
    """Say which part of a value can't be pickled, and why."""
    culprit = culprit_in("", value, error, results.try_out)
    reason = reason_of(culprit.value, culprit.error)
    path = culprit.known_path.strip()
    return f"at {path}, {reason}" if path else reason
