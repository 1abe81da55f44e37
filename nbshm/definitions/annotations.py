"""Names in annotations, whether these are written out, quoted, or evaluated already."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, ForwardRef


def annotation_names(annotations: Iterable[Any]) -> frozenset[str]:
    """Return the names in live annotations that are, or hold, strings: `"Config"`, `list["Config"]`.

    `annotations` are the values of an `__annotations__`. What is evaluated already needs no name any more.
    """
    return frozenset[str]().union(*(text_names(text) for value in annotations for text in _texts(value)))


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, ForwardRef):
        return [value.__forward_arg__]
    arguments = getattr(value, "__args__", ())
    return (
        [text for argument in arguments for text in _texts(argument)] if isinstance(arguments, tuple) else []
    )


def expression_names(expression: ast.expr) -> frozenset[str]:
    """Return all names in an annotation that is not evaluated, those in quotes included."""
    names = frozenset(node.id for node in ast.walk(expression) if isinstance(node, ast.Name))
    return names | quoted_names(expression)


def quoted_names(expression: ast.expr) -> frozenset[str]:
    """Return the names in the string literals of an annotation, where these hold an expression."""
    strings = (node.value for node in ast.walk(expression) if isinstance(node, ast.Constant))
    return frozenset[str]().union(*(text_names(text) for text in strings if isinstance(text, str)))


def text_names(text: str) -> frozenset[str]:
    """Return the names in an annotation that is a string; none if it is not an expression."""
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):  # a ValueError tells of null bytes
        return frozenset()
    return expression_names(expression)
