"""Pickles that can't be unpickled, passed over: what comes behind one finds the memo that it expects."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from mmap import mmap
from typing import Any, BinaryIO, ClassVar

from nbshm.worker.stand_ins import stand_in


class MemoUnpickler(pickle._Unpickler):  # noqa: SLF001  # that in C can't be given a memo, 3.13's neither
    """Python's unpickler, many times slower than the one in C, whose memo can be given."""

    memo: dict[int, Any]
    stack: list[Any]

    def __init__(self, file: BinaryIO | mmap, memo: dict[int, Any]) -> None:
        super().__init__(file)
        self.memo = memo


def memo_behind(file: BinaryIO | mmap, memo: dict[int, Any], sentence: str) -> dict[int, Any]:
    """Read past a pickle without running anything that it names, and return the memo after it.

    It goes on with the memo of those before. What can be found by name, plain data and containers are in the
    memo as they are; for the rest is what raises the sentence when it is used.
    """
    reader = _Reader(file, dict(memo), sentence)
    reader.load()
    return {place: reader.found(value) for place, value in reader.memo.items()}


class _Reader(MemoUnpickler):
    """Makes nothing but plain data and containers."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(MemoUnpickler.dispatch)

    def __init__(self, file: BinaryIO | mmap, memo: dict[int, Any], sentence: str) -> None:
        super().__init__(file, memo)
        self._sentence = sentence
        self._named: dict[int, tuple[Any, str, str]] = {}

    def find_class(self, module: str, name: str, /) -> Any:
        """Return what stands for a class or a function, which is neither called nor looked for yet."""
        standing = stand_in(self._sentence, is_class=True)
        self._named[id(standing)] = standing, module, name
        return standing

    def found(self, value: Any) -> Any:
        """Return what a stand-in for a name stands for, if that can be had; anything else as it is."""
        named = self._named.get(id(value))
        if named is None:
            return value
        _, module, name = named
        try:
            return super().find_class(module, name)
        except Exception:  # noqa: BLE001  # an import may raise anything; the stand-in tells it
            return value

    def load_reduce(self) -> None:
        """Put what stands for an object in the place of a function and its arguments."""
        del self.stack[-2:]
        self.stack.append(stand_in(self._sentence, is_class=False))

    def load_newobj_ex(self) -> None:
        """Put what stands for an object in the place of a class and two kinds of arguments."""
        self.stack.pop()
        self.load_reduce()

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_reduce
    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex
