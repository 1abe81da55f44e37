"""What the pickler is told about functions, classes and decorated objects of the notebook."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

from nbshm.attributes import found_at
from nbshm.definitions.by_value import reduce_function, reduce_product
from nbshm.definitions.lifting import Lifted
from nbshm.definitions.sources import home
from nbshm.packing.knowledge import Knowledge

Reference: TypeAlias = Callable[[Any], Any]


class References:
    """Answers a pickler: by name what is lifted, by value what the notebook has made otherwise.

    `defined` is told of each definition that a value refers to, `by_value` of each function that is written
    in full.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        *,
        defined: Callable[[Lifted], None] = lambda _: None,
        by_value: Callable[[FunctionType], None] = lambda _: None,
    ) -> None:
        self._knowledge = knowledge
        self._defined = defined
        self._by_value = by_value

    def __call__(self, value: Any) -> Any:
        """Return how a value is written, or NotImplemented to leave it to the pickler."""
        module, path = home(value)
        if module == "__main__" and path is not None:
            definition = self._definition(value, path)
            if definition is not None:
                self._defined(definition)
                return path
        return self._in_full(value)

    def _definition(self, value: Any, path: str) -> Lifted | None:
        """Return the definition that has the value at this path, if it can be lifted."""
        found = found_at(path, self._knowledge.namespace)
        return self._knowledge.definition(path.partition(".")[0]) if found is value else None

    def _in_full(self, value: Any) -> Any:
        """Return how to write what can't be lifted; a function of the notebook may say it is a module's."""
        if type(value) is FunctionType and value.__globals__ is self._knowledge.namespace:
            self._by_value(value)
            return reduce_function(value)
        return reduce_product(value)
