"""Everything by which plain multiprocessing in a process knows the notebook: the hooks, together."""

from __future__ import annotations

from collections.abc import Callable

from nbshm.notebook.namespace import Notebook
from nbshm.plain.envelopes import Envelopes
from nbshm.plain.explaining import Explaining
from nbshm.plain.main_hook import MainHook
from nbshm.wire.kept import Keeping, KeptFd


class PlainMultiprocessing:
    """The hooks into the standard library, in the kernel, in workers and in other children alike.

    `keeper()` tells the address of who keeps what is put on queues, None if nobody does; `for_children` may
    start it.
    """

    def __init__(
        self,
        notebook: Notebook,
        *,
        keeper: Callable[[], str | None],
        for_children: Callable[[], str | None] | None = None,
    ) -> None:
        self._keeping = Keeping(keeper)
        self._hooks = (
            self._keeping,
            MainHook(notebook, keeper=for_children or keeper),
            Explaining(notebook),
            Envelopes(notebook),
        )

    def keep(self, fd: int) -> KeptFd | None:
        """Have a descriptor kept for the message that is being pickled; None where that can't be."""
        return self._keeping.keep(fd)

    def install(self) -> None:
        """Put all hooks in place."""
        for hook in self._hooks:
            hook.install()

    def remove(self) -> None:
        """Undo `install`."""
        for hook in reversed(self._hooks):
            hook.remove()
