"""How operators of the notebook (`torch.library.custom_op`) travel: each process registers them anew.

What torch itself has of one, in C++, knows no pickle. It is made again of the functions that people gave it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

Reduced: TypeAlias = tuple[Any, ...]

_HOME = "torch._library.custom_ops"
_FUNCTIONS = ("_abstract_fn", "_setup_context_fn", "_backward_fn")
"""What `register_fake` and `register_autograd` were given, and do no more than keep."""


def of_class(kind: type) -> Callable[[Any], Reduced] | None:
    """Return the reducer of torch's class of such operators; None for all others."""
    return _reduce if kind.__module__ == _HOME and kind.__name__ == "CustomOpDef" else None


def _reduce(operator: Any) -> Reduced:
    own = vars(operator)
    tags = (own["_tags"],) if "_tags" in own else ()  # they came later than the class
    arguments = (own["_namespace"], own["_name"], own["_schema"], own["_init_fn"], *tags)
    state = {
        "kernels": {device: _given(function) for device, function in own["_backend_fns"].items()},
        "functions": {name: own[name] for name in _FUNCTIONS},
        "vmap": own.get("_vmap_fn"),
        "dispatch": own.get("_torch_dispatch_fns", {}),
        "autocast": own.get("_autocast_dtype", {}),
    }
    return _rebuild, arguments, state, None, None, _register


def _given(kernel: Any) -> Any:
    """Return the function that a kernel was made of: torch puts it into one that can be switched off."""
    return inspect.getclosurevars(inspect.unwrap(kernel)).nonlocals.get("fn", kernel)


def _rebuild(namespace: str, name: str, *arguments: Any) -> Any:
    """Make an operator without kernels, or return that which is there: of the notebook, of a module."""
    home = importlib.import_module(_HOME)
    there = home.OPDEFS.get(f"{namespace}::{name}")
    return home.CustomOpDef(namespace, name, *arguments) if there is None else there


def _register(operator: Any, state: dict[str, Any]) -> None:
    if vars(operator)["_backend_fns"]:  # it was there
        return
    for device, kernel in state["kernels"].items():
        operator.register_kernel(device)(kernel)
    vars(operator).update(state["functions"])
    if state["vmap"] is not None:
        operator.register_vmap(state["vmap"])
    for kind, function in state["dispatch"].items():
        operator.register_torch_dispatch(kind, function)
    for device, dtype in state["autocast"].items():
        operator.register_autocast(device, dtype)
