"""Which objects of libraries each rank has a copy of its own of, with all that is in them.

Any may be only what leads to a file, a server or shared memory, to which writes go wherever they are made:
those that are told as private are in memory for all that is known of them. No code of theirs runs here.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator, MutableMapping
from itertools import islice
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from nbshm.memory.ownership.reach import is_of_libraries
from nbshm.own_code import library_of
from nbshm.own_definitions import is_own

# Whose objects keep in files what is written into them, as the standard library's may (shelve).
_ELSEWHERE = frozenset({"diskcache", "fsspec", "h5py", "multiprocess", "netCDF4", "tables", "tensorstore"})
_SHARED = frozenset({"mmap", "multiprocess", "multiprocessing"})
_DEAD_ENDS = (ModuleType, FunctionType, BuiltinFunctionType, type, str, bytes, int, float)
_MOST = 10_000  # parts of an object are looked at: some milliseconds


def is_private_object(value: Any) -> bool:
    """Tell whether a value is such an object.

    A mapping may be anything's (a store, a cache, the settings of a process). What holds tensors, or objects
    of the person's, is written into in part.
    """
    kind = type(value)
    library = library_of(kind)
    if library in sys.stdlib_module_names or library in _ELSEWHERE or library == "torch":
        return False
    if not is_of_libraries(kind) or issubclass(kind, MutableMapping):
        return False
    return not any(map(_arrives, _parts(value)))


def is_estimator(value: Any) -> bool:
    """Tell whether a value learns by scikit-learn's rules: `fit` puts what it learns into the object."""
    return any(
        base.__name__ == "BaseEstimator" and str(base.__module__).startswith("sklearn.")
        for base in type(value).__mro__
    )


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value and what it leads to, the nearest first."""
    waiting, seen = deque([value]), {id(value)}
    for _ in range(_MOST):
        if not waiting:
            return
        part = waiting.popleft()
        yield part
        for inner in islice(gc.get_referents(part), _MOST - len(waiting)):
            if id(inner) not in seen and not issubclass(type(inner), _DEAD_ENDS):
                seen.add(id(inner))
                waiting.append(inner)


def _arrives(part: Any) -> bool:
    """Tell whether what is written into a part of an object is seen in the notebook."""
    kind, numpy, torch = type(part), sys.modules.get("numpy"), sys.modules.get("torch")
    shared = (*((numpy.memmap,) if numpy else ()), *((torch.Tensor,) if torch else ()))
    return issubclass(kind, shared) or is_own(kind) or library_of(kind) in _SHARED
