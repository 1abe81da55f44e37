"""Attributes of someone else's modules, replaced for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Have `owner.name` be `value` while this is entered; what the owner does not have is left alone."""
    if not hasattr(owner, name):
        yield
        return
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


class Replacement:
    """Stands in for a function of a module or class from `install` to `remove`; doing either twice is fine.

    Somebody else may have replaced it meanwhile: then `remove` leaves theirs.
    """

    def __init__(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        self._owner = owner
        self._name = name
        self._function = function
        self._is_installed = False
        self.original: Callable[..., Any] = getattr(owner, name)
        """What was there before."""

    def install(self) -> None:
        """Take the function's place."""
        if not self._is_installed:
            self.original = getattr(self._owner, self._name)
            setattr(self._owner, self._name, self._function)
            self._is_installed = True

    def remove(self) -> None:
        """Give the place back."""
        if self._is_installed and getattr(self._owner, self._name) == self._function:
            setattr(self._owner, self._name, self.original)
        self._is_installed = False
