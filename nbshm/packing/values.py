"""The stream of values: one pickler with one memo, and the search for what can't travel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from nbshm.packing.knowledge import Knowledge, LearntError
from nbshm.packing.references import Reference, References
from nbshm.packing.tail import Late
from nbshm.refusals import Unsendable, refusal


class Pickler(Protocol):
    """What packing asks of a pickler: one stream, one memo, and a hook for the notebook's definitions."""

    @property
    def stream(self) -> bytes:
        """What has been pickled so far."""

    def meet(self, values: Iterable[Any], /) -> None:
        """Look at values that are going to be pickled."""

    def dump(self, value: Any, /) -> None:
        """Pickle a value behind those that were pickled before."""


PicklerT = TypeVar("PicklerT", bound=Pickler)


def write(pickler: Pickler, values: Sequence[Any]) -> None:
    """Write values to a stream as `Program` tells."""
    pickler.meet(values)
    for value in values:
        pickler.dump([])
        pickler.dump(value)


class Values(Generic[PicklerT]):
    """Takes values in, each under a name; refuses, or has left out, those that can't travel."""

    def __init__(
        self,
        knowledge: Knowledge,
        make_pickler: Callable[[Reference], PicklerT],
        references: References,
    ) -> None:
        self._knowledge = knowledge
        self._make_pickler = make_pickler
        self.pickler = make_pickler(references)

    def dump(self, value: Any, name: str) -> None:
        """Pickle a value of that name, or refuse it."""
        try:
            write(self.pickler, [value])
        except LearntError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a value's own pickling raises
            self.refuse(name, error, value)

    def dump_tail(self, tail: Sequence[Late]) -> None:
        """Pickle what is bound and set last, or refuse what of it can't travel."""
        given = [late for late in tail if late.takes]
        try:
            write(self.pickler, [late.value for late in given])
        except LearntError:
            raise
        except Exception as error:  # whatever a value's own pickling raises; each is tried to find it
            self._find_culprit({late.label: late.value for late in given}, error)
            raise

    def _find_culprit(self, values: Mapping[str, Any], problem: Exception) -> None:
        """Pickle each value alone, so that the one that can't travel is known by name.

        Where it is the sum of them that is too much, it is the biggest.
        """
        sizes = {}
        for name, value in values.items():
            try:
                sizes[name] = self._size(value)
            except Exception as error:  # noqa: BLE001, PERF203  # as above; one failure ends it
                self.refuse(name, error, value)
        if sizes and isinstance(problem, Unsendable):
            self.refuse(max(sizes, key=lambda name: sizes[name]), problem)

    def refuse(self, name: str, error: Exception, value: Any = None) -> NoReturn:
        """Raise CannotSend for a name, or leave it out where it may be left out."""
        root = name.partition(".")[0]
        why = refusal(name, value, error, user=self._knowledge.users.get(root), again=self._size)
        if not self._knowledge.may_be_left_out(root):
            raise why from error
        sentence = f"the notebook's {why.path!r} is not in this process: {why.reason}. {why.remedy}"
        self._knowledge.leave_out(root, sentence)
        raise LearntError from error

    def _size(self, value: Any) -> int:
        """Pickle a value by itself and return its size.

        Afresh, since a memo would pass over what failed before. Nothing is learnt from it: which definitions
        there are does not matter here.
        """
        pickler = self._make_pickler(References(self._knowledge))
        pickler.dump(value)
        return len(pickler.stream)
