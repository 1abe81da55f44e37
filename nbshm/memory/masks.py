"""The first mask of a masked array: lent to it for a run, and kept if a rank has masked anything.

An array without a mask gets one when it is first masked, and no rank can give it to the notebook's. Nor can
it have one beforehand: views of it that ranks take would mask it too. So each rank notes at its end, in a
mask that all share, what its array has masked by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class LentMask:
    """A masked array that has no mask, and the one that is lent to it."""

    array: np.ma.MaskedArray[Any, Any]
    mask: np.ndarray[Any, Any]

    @classmethod
    def to(cls, array: np.ma.MaskedArray[Any, Any]) -> LentMask:
        """Lend a mask to an array."""
        return cls(array=array, mask=np.zeros(array.shape, np.ma.make_mask_descr(array.dtype)))

    def note(self) -> None:
        """Mask here what the array has masked; only that is written, as other ranks do the same."""
        masked: Any = self.array._mask  # type: ignore[attr-defined]  # noqa: SLF001  # `mask` is a view of it
        if masked is not np.ma.nomask:
            _flags(self.mask)[_flags(masked)] = True

    def hand_over(self) -> None:
        """Let the array have the mask, if anything is masked there."""
        if _flags(self.mask).any():
            self.array._mask = self.mask  # type: ignore[attr-defined]  # noqa: SLF001  # assigning `mask` copies


def _flags(mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a mask's flags in a row, those of each field too; they are its own if it has no gaps."""
    return np.ascontiguousarray(mask).reshape(-1).view(bool)
