"""What a piece of code needs from the notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a piece of code needs: names, with where each is used; dotted names; names that may be left out.

    `all_optional`: whatever can't travel may be left out, also what others read. `extra` are values that are
    bound to names without being the notebook's values of these names.
    """

    names: Mapping[str, str]
    attributes: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    all_optional: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
