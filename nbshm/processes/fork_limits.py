"""What fork asks of a run: one thread in each worker, and no CUDA in the kernel before it."""

from __future__ import annotations

import sys
from dataclasses import replace

from nbshm.options import OptionError, Options


def as_fork_allows(options: Options) -> Options:
    """Return how forked workers may run: with one thread, because torch's threads do not survive a fork.

    After one threaded operation of torch in the kernel the first of a forked child never returns, and
    nothing tells whether there has been one.

    Raises
    ------
    OptionError
        Fork can't do what is asked for.

    """
    torch = sys.modules.get("torch")
    if torch is None:
        return options
    if torch.cuda.is_initialized():
        raise OptionError(
            "start method 'fork' is refused: CUDA is initialised in this kernel. "
            "Use start_method=forkserver or spawn."
        )
    if options.threads not in {None, 1}:
        raise OptionError(
            f"threads={options.threads} is refused under start_method=fork: torch's threads do not survive "
            "a fork. Use threads=1, or start_method=forkserver or spawn."
        )
    return replace(options, threads=1)
