"""Values: how each travels to the workers, and whose memory it is."""

TORCH_ROOMS = tuple(
    f"{__name__}.{room}"
    for room in (
        "appearances",
        "census",
        "cuda",
        "graphs",
        "lending",
        "nested",
        "parametrized",
        "plain_tensors",
        "plain_torch",
        "sparse",
        "storages",
        "strategies",
        "tensors",
        "torch_limits",
        "torch_sharing",
    )
)
"""The rooms that import torch as soon as they are imported."""
