"""What registers of libraries have for classes of the notebook: `register_kl`, `copyreg.pickle`.

A call or a decorator has put it there, which nothing that uses the class leads to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from nbshm.attributes import followed

# By module; each is a dictionary whose keys are classes, or tuples of some.
_REGISTERS = {
    "copyreg": "dispatch_table",
    "torch.distributions.kl": "_KL_REGISTRY",
    "torch.utils.data._utils.collate": "default_collate_fn_map",
}


class Entry(NamedTuple):
    """What a register has under a key."""

    module: str
    key: Any
    value: Any


def entries_for(kind: type) -> Iterator[Entry]:
    """Yield what registers have for a class."""
    for module in _REGISTERS:
        for key, value in list(_register(module).items()):
            if kind is key or (isinstance(key, tuple) and any(each is kind for each in key)):
                yield Entry(module, key, value)


def enter(module: str, key: Any, value: Any) -> None:
    """Put an entry into the register of a module that is imported here."""
    _register(module)[key] = value


def _register(module: str) -> dict[Any, Any]:
    found = followed(sys.modules.get(module), [_REGISTERS[module]])
    return found if isinstance(found, dict) else {}
