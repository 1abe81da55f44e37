"""What lives from loading the extension to unloading it: hooks, the forkserver, the private directory."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nbshm.notebook.cell_numbers import cell_numbers
from nbshm.notebook.local_modules import LocalModules
from nbshm.notebook.namespace import Notebook
from nbshm.notebook.surroundings import check_directory
from nbshm.plain.hooks import PlainMultiprocessing
from nbshm.processes.kernel_signals import interrupts_put_off
from nbshm.processes.launcher import Launcher
from nbshm.runs.last import Run
from nbshm.runs.living import LivingRuns
from nbshm.sharing import sharing_for

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbshm.memory.ownership.extents import Range
    from nbshm.memory.shared.segments import Segments


class Session:
    """The extension at work in one shell, until it is closed."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self._closing = contextlib.ExitStack()
        self.notebook = Notebook(namespace=shell.user_ns, cells=cell_numbers(shell, self._closing))
        self.launcher = Launcher()
        self.modules = LocalModules(self._autoreloaded)
        self.runs = LivingRuns()
        self.last: Run | None = None
        self.sent: frozenset[str] = frozenset()  # the names that the last run was given
        self.mirrored: Sequence[Range] = ()  # the memory that was copied in for it, to be copied back
        keeper = self.launcher.keeper
        self._plain = PlainMultiprocessing(
            self.notebook, keeper=lambda: keeper.address, for_children=keeper.ensure_started
        )
        self._follows_torch = False

    def open(self) -> None:
        """Install the hooks and start what the first run would wait for, without waiting."""
        self._closing.callback(self.launcher.close)
        self._plain.install()
        self._closing.callback(self._plain.remove)
        self._closing.enter_context(sharing_for(self))
        self.shell.events.register("post_execute", self._follow_imports)
        self._closing.callback(self.shell.events.unregister, "post_execute", self._follow_imports)
        self.launcher.prepare()
        self._follow_imports()

    def close(self) -> None:
        """End what runs, and take everything back that `open` and later runs did."""
        self.runs.end()
        self._closing.close()

    @functools.cached_property
    def segments(self) -> Segments:
        """The shared memory that this kernel maps."""
        from nbshm.memory.shared.segments import Segments  # noqa: PLC0415  # nothing of memory is needed to load

        segments = Segments()
        self._closing.callback(segments.spares.clear)
        return segments

    def mappings(self) -> list[dict[Any, Any]]:
        """Return the namespace, and the mappings beside it in which IPython keeps values of cells.

        Those are `Out`, the names that `%who` passes over (`_` and `_5` among them), and the attributes of
        the display hook and of the last cell's result.
        """
        namespace = self.shell.user_ns
        holders = (self.shell.displayhook, self.shell.last_execution_result)
        attributes = (vars(holder) for holder in holders if holder is not None)
        return [namespace, namespace["_oh"], self.shell.user_ns_hidden, *attributes]

    def get_ready(self) -> None:
        """Import torch, which a run's errors and memory are made with, if the notebook has not.

        Raises OptionError where the working directory is gone: some builds of torch end a process that
        imports them there.
        """
        check_directory()
        # Torch that was imported by half can't be imported again in the same process, and may end it.
        with (
            interrupts_put_off(),
            contextlib.suppress(ImportError),
        ):  # without it, all but tensors still works
            import torch.multiprocessing  # noqa: F401, PLC0415  # not when the extension loads
        self._follow_torch()

    def _autoreloaded(self, module: str) -> float | None:
        """Return the time of the file that `%autoreload` has brought a module up to.

        It may change functions in place, so nothing of the module tells; it notes the times of all files.
        """
        magics = self.shell.magics_manager.registry.get("AutoreloadMagics")
        times: Mapping[str, float] = getattr(getattr(magics, "_reloader", None), "modules_mtimes", {})
        return times.get(module)

    def _follow_imports(self) -> None:
        self.modules.look()
        self._follow_torch()

    def _follow_torch(self) -> None:
        """Care for storages that plain torch code sends, as soon as the notebook has torch."""
        if self._follows_torch or "torch" not in sys.modules:
            return
        with interrupts_put_off():
            from nbshm.memory.tensors.plain_torch import PlainTorch  # noqa: PLC0415  # imports torch

            self._follows_torch = True
            plain_torch = PlainTorch(self.segments, keep=self._plain.keep)
            plain_torch.install()
            self._closing.callback(plain_torch.remove)
            self.shell.events.register("post_execute", plain_torch.look)
            self._closing.callback(self.shell.events.unregister, "post_execute", plain_torch.look)
            self.launcher.keeper.ensure_started()  # forked processes have tensors to send
