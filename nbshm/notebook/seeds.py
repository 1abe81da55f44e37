"""Random seeds for the ranks of a run, drawn from the notebook's own generators.

One draw of each library's global generator seeds that library in all ranks, rank added, as a DataLoader does
with torch's: ranks differ, the next run draws other numbers, and a notebook that seeds again repeats.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from types import ModuleType

_BITS = 62  # torch takes 64 bits with a sign; there must be room for the rank
NUMPY_LIMIT = 2**32  # numpy's global generator takes no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """What rank 0 seeds each library's global generator with."""

    random: int
    numpy: int
    torch: int


def draw_seeds(seed: int | None = None) -> Seeds:
    """Draw seeds from the notebook's generators; `seed` replaces the draws and leaves them alone.

    A library that the notebook has not imported has no generator to draw from: it gets what `random` drew.
    """
    if seed is not None:
        return Seeds(random=seed, numpy=seed, torch=seed)
    drawn = random.getrandbits(_BITS)
    numpy_random, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    return Seeds(
        random=drawn,
        numpy=drawn if numpy_random is None else int(numpy_random.randint(NUMPY_LIMIT, dtype="uint32")),
        torch=drawn if torch is None else _draw_from_torch(torch),
    )


def _draw_from_torch(torch: ModuleType) -> int:
    # On the CPU, whatever the default device is: a draw from a GPU's generator would wait for the GPU.
    return int(torch.empty((), dtype=torch.int64, device="cpu").random_(2**_BITS).item())
