"""The tensors and arrays that a value holds."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

from nbshm.memory.ownership.kinds import is_array
from nbshm.memory.ownership.paths import steps_from
from nbshm.memory.ownership.reach import is_of_libraries, is_plain_kind, reachable

_MOST = 100_000  # objects that those of libraries lead to (the nodes of a graph, say): a second at most


def tensors_and_arrays(value: Any) -> Iterator[Any]:
    """Yield the tensors and arrays that are shared with a value, each once.

    The tensors in modules, in optimizers and in other libraries' objects (a dataset, say) are.
    """
    seen: set[int] = set()
    for part in _found(value):
        if id(part) not in seen:
            seen.add(id(part))
            yield part


def is_data_with_memory(value: Any) -> bool:
    """Tell whether a value holds memory (modules too), and beside it only what is plain or the notebook's."""
    memory = (*_memory_kinds(), *_kinds_of_torch())
    found = list(reachable([value], lambda kind: issubclass(kind, memory) or not is_plain_kind(kind)))
    return bool(found) and all(issubclass(type(part), memory) for part in found)


def is_tensor_or_array(value: Any) -> bool:
    """Tell whether a value is a tensor or an array, of any class."""
    return issubclass(type(value), _memory_kinds())


def _memory_kinds() -> tuple[type, ...]:
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    return (*((numpy.ndarray,) if numpy else ()), *((torch.Tensor,) if torch else ()))


def _kinds_of_torch() -> tuple[type, ...]:
    """Return the classes of modules and of optimizers."""
    torch = sys.modules.get("torch")
    return (torch.nn.Module, torch.optim.Optimizer) if torch else ()


def _found(value: Any) -> Iterator[Any]:
    memory, torch = _memory_kinds(), sys.modules.get("torch")
    of_torch = _kinds_of_torch()
    modules, optimizers = of_torch[:1], of_torch[1:]
    scripted: Any = getattr(sys.modules.get("torch.jit"), "ScriptModule", ())
    of_libraries = []
    known = (*memory, *of_torch)
    for part in reachable([value], lambda kind: issubclass(kind, known) or is_of_libraries(kind)):
        if issubclass(type(part), memory):
            yield part
        elif issubclass(type(part), modules):
            # Of a compiled module nothing is an attribute; what others have is reached itself.
            recurse = issubclass(type(part), scripted)
            yield from [*part.parameters(recurse), *part.buffers(recurse)]
        elif issubclass(type(part), optimizers):
            yield from reachable([part.state, part.param_groups], lambda kind: issubclass(kind, memory))
        else:
            of_libraries.append(part)
    if torch:
        near = itertools.islice(steps_from(*of_libraries), _MOST)
        yield from (part for part in near if issubclass(type(part), torch.Tensor))


def of_masked(part: Any) -> list[Any]:
    """Return the arrays that a masked array has beside its data, which are shared as that is: its mask."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not issubclass(type(part), numpy.ma.MaskedArray):
        return []
    return [array for array in vars(part).values() if is_array(array)]


def pieces_of(part: Any) -> list[Any]:
    """Return what a tensor or an array consists of: of a masked array its data, and its mask if any."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not issubclass(type(part), numpy.ma.MaskedArray):
        return [part]
    mask = part._mask  # noqa: SLF001  # `mask` is a new view of it
    return [part.data] if mask is numpy.ma.nomask else [part.data, mask]


def arrays_of_libraries(value: Any) -> list[Any]:
    """Return the arrays inside other libraries' objects, which travel as snapshots."""
    shared = {id(piece) for part in tensors_and_arrays(value) for piece in (part, *of_masked(part))}
    return [part for part in steps_from(value) if is_array(part) and id(part) not in shared]
