"""An exception pickled so that it comes back as what it is, with those that it was raised from."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from nbshm.failures.chains import LONGEST_CHAIN, safe_message
from nbshm.remade_exceptions import reduce_without_init, set_attributes

Dumps: TypeAlias = Callable[[Any], bytes]


class ExceptionStandIn(Exception):  # noqa: N818  # it stands for an error, and is none
    """Stands for an exception that could not be pickled: its type's name and its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packed:
    """An exception that was pickled, with those that pickle leaves out of it."""

    own: bytes
    cause: _Packed | None
    context: _Packed | None
    suppress_context: bool


def pack_exception(exception: BaseException, *, dumps: Dumps = pickle.dumps) -> bytes | None:
    """Pickle an exception with its causes and contexts; None if it would not come back as what it is.

    A cause or context that can't be pickled is replaced by an `ExceptionStandIn`.
    """
    own = _pickled(exception, dumps)
    if own is None:
        return None
    return pickle.dumps(_packed(exception, own, dumps, depth=0))


def unpack_exception(packed: bytes) -> BaseException:
    """Return the exception that `pack_exception` pickled, with its causes and contexts."""
    return _unpacked(pickle.loads(packed))


def _packed(exception: BaseException, own: bytes, dumps: Dumps, *, depth: int) -> _Packed:
    def follow(other: BaseException | None) -> _Packed | None:
        if other is None or depth >= LONGEST_CHAIN:
            return None
        return _packed(other, _pickled_or_stand_in(other, dumps), dumps, depth=depth + 1)

    return _Packed(
        own=own,
        cause=follow(exception.__cause__),
        context=None if exception.__cause__ is not None else follow(exception.__context__),
        suppress_context=exception.__suppress_context__,
    )


class _WithoutInit:
    """Pickles an exception as its arguments and attributes, whatever its class says."""

    def __init__(self, exception: BaseException) -> None:
        self._exception = exception

    def __reduce__(self) -> tuple[Any, ...]:
        return reduce_without_init(self._exception)


def _pickled(exception: BaseException, dumps: Dumps) -> bytes | None:
    """Pickle an exception so that it comes back as what it is, whatever arguments its `__init__` takes.

    What it says then may differ either way, in an address.
    """
    first = _tried(exception, exception, dumps)
    if first is not None and first[1] == safe_message(exception):
        return first[0]
    found = _tried(_WithoutInit(exception), exception, dumps) or first
    return None if found is None else found[0]


def _tried(form: object, exception: BaseException, dumps: Dumps) -> tuple[bytes, str] | None:
    """Return a form pickled, and what comes back of it says; None where that is nothing of the kind."""
    try:
        pickled = dumps(form)
        back = pickle.loads(pickled)
    except Exception:  # noqa: BLE001  # a foreign __reduce__ or __init__; None is how the report says so
        return None
    return (pickled, safe_message(back)) if type(back) is type(exception) else None


def _pickled_or_stand_in(exception: BaseException, dumps: Dumps) -> bytes:
    stand_in = ExceptionStandIn(f"{type(exception).__name__}: {safe_message(exception)}")
    return _pickled(exception, dumps) or pickle.dumps(stand_in)


def _unpacked(packed: _Packed) -> BaseException:
    exception: BaseException = pickle.loads(packed.own)
    links = {
        "__cause__": packed.cause and _unpacked(packed.cause),
        "__context__": packed.context and _unpacked(packed.context),
        "__suppress_context__": packed.suppress_context,  # setting a cause, None too, suppresses the context
    }
    set_attributes(exception, links)
    return exception
