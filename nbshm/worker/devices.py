"""Which device is whose."""

from __future__ import annotations

import torch


def device_of(rank: int) -> torch.device:
    """Return the CUDA device of a rank, round and round; the CPU where there is no CUDA."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", rank % torch.cuda.device_count())
