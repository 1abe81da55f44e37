"""DistributedDataParallel in a rank: told in a line where it goes over memory that all ranks share.

It means each rank to have parameters of its own, and all to take the same step. Where they have the same
ones, each rank takes that step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_module_registration_hook

_SHARED = (
    "DistributedDataParallel goes over a model that all ranks share: each rank's optimizer changes the same "
    "parameters, so every step is taken as often as there are ranks. Give each rank its own, "
    "DistributedDataParallel(copy.deepcopy(net)), and bring the end's home in rank 0, "
    "net.load_state_dict(ddp.module.state_dict())."
)


def tell_of_shared_replicas(
    is_shared: Callable[[torch.UntypedStorage], bool], tell: Callable[[str], None]
) -> None:
    """Have a line told when this process wraps a model whose parameters are shared; one a run."""

    def look(module: torch.nn.Module, name: str, submodule: torch.nn.Module | None) -> None:
        del name
        if _wraps(module) and submodule is not None and any(map(is_shared, _trained(submodule))):
            handle.remove()
            tell(_SHARED)

    handle = register_module_module_registration_hook(look)


def _wraps(module: torch.nn.Module) -> bool:
    parallel: Any = torch.nn.parallel
    return isinstance(module, parallel.DistributedDataParallel)


def _trained(module: torch.nn.Module) -> list[torch.UntypedStorage]:
    return [parameter.untyped_storage() for parameter in module.parameters() if parameter.requires_grad]
