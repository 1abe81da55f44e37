"""Start the workers of a run, whatever the start method, and own what all runs share.

    launch ── socketpair ──▶ start method ──▶ process: life.main(its end of the socket)
       └───── Setup(rank, nprocs) + stdout, stderr, lifeline, page ────▶┘   (over that socket; then the job)

One road for all start methods, also for a worker that stood by before there was a run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import weakref
from collections.abc import Sequence

from nbshm.errors import ParallelError
from nbshm.option_table import StartMethod
from nbshm.processes.allowances import can_stand_by, check_workers
from nbshm.processes.keeping import KeeperProcess
from nbshm.processes.kernel_signals import interrupts_put_off
from nbshm.processes.lifelines import Lifeline
from nbshm.processes.newcomers import Newcomer
from nbshm.processes.servers import Server
from nbshm.processes.standby import Standby
from nbshm.processes.start_methods import ForkMethod, ForkserverMethod, Method, SpawnMethod
from nbshm.processes.sweeping import Sweeper
from nbshm.processes.workers import Workers
from nbshm.wire.messages import Setup

_TRIES = 2  # who kills the second forkserver as well will kill the third

_LAST_MOMENT = 1.0  # seconds; a forkserver without workers ends in a hundredth of one

PRELOAD = ("nbshm.worker.preload",)


class Launcher:
    """Starts workers; keeps the forkserver, the lifeline and the sweeper as long as the extension is loaded.

    `work` names what a worker does with its job, as `package.module:function` (see `nbshm.worker.life.Work`).
    """

    def __init__(self, *, work: str = "nbshm.worker.work:run", preload: Sequence[str] = PRELOAD) -> None:
        self._work = work
        self.sweeper = Sweeper()
        self.keeper = KeeperProcess(self.sweeper)
        self._server = Server(self.sweeper, preload=preload)
        self._lifeline = Lifeline()
        self._standby = Standby(self._ahead)
        self._closed = False
        self._methods: dict[StartMethod, Method] = {
            "forkserver": ForkserverMethod(self._server),
            "spawn": SpawnMethod(),
            "fork": ForkMethod(),
        }
        _let_go_in_forked_children(self)

    def prepare(self) -> None:
        """Start what the first run would have to wait for, without waiting."""
        self.sweeper.start()
        self.sweeper.begin_names(os.getpid())
        self._server.ensure_started()

    def launch(
        self, nprocs: int, method: StartMethod, *, standby: int | None = 0, preload: Sequence[str] = ()
    ) -> Workers:
        """Start `nprocs` workers and tell each who it is; they wait for their job then.

        When they are closed, `standby` workers of the forkserver are made ready for the next run, if this one
        came from it; None for as many. They have `preload` imported as well.

        Raises
        ------
        OptionError
            They are more than this process may open descriptors for; nothing was started.
        ParallelError
            The forkserver was killed meanwhile, again and again.

        """
        check_workers(nprocs)
        workers = self._started(nprocs, method)
        if method == "forkserver":
            many = nprocs if standby is None else standby
            workers.when_closed(functools.partial(self.stand_by, many, preload))
        return workers

    def stand_by(self, many: int, preload: Sequence[str] = ()) -> None:
        """Have that many workers of the forkserver ready in a moment, or none if that takes too much.

        A forkserver that has not imported `preload` is replaced by one that has, as soon as that is there.
        """
        possible = many if not self._closed and can_stand_by(many) else 0
        if possible:
            self._server.start_next(preload)
            if self._server.next is not None:
                self._standby.want(0)  # those there are would only delay it
        self._standby.want(possible)

    def close(self) -> None:
        """End the forkserver, the keeper, the sweeper and, by the lifeline, every worker that still lives."""
        if self._closed:
            return
        self._closed = True
        self._server.drop_next()
        self._standby.close()
        self._lifeline.close()
        self._server.close()
        self.keeper.close()
        self.sweeper.close()

    def forget(self) -> None:
        """Let go, in a forked child of the kernel, of what tells others that the kernel lives.

        Once: in children of that child, and after `close`, the descriptors' numbers may be somebody else's.
        """
        if self._closed:
            return
        self._closed = True
        self._standby.forget()
        self._lifeline.forget()
        self._server.forget()
        self.keeper.forget()
        self.sweeper.forget()

    def _started(self, nprocs: int, method: StartMethod) -> Workers:
        """Start the workers; where their forkserver has been killed meanwhile, from another one."""
        for _ in range(_TRIES):
            workers = Workers(self.sweeper)
            try:
                with interrupts_put_off(), self._methods[method].starting():
                    self._start_all(workers, nprocs, method)
            except BaseException as error:
                workers.close()
                if method != "forkserver" or not isinstance(error, (EOFError, ConnectionError)):
                    raise
            else:
                return workers
        raise ParallelError(
            f"no workers could be started: the forkserver that they come from ended {_TRIES} times "
            "meanwhile. The machine may have run out of memory, or a library that it imports ends it; "
            "start_method=spawn needs no forkserver."
        )

    def _start_all(self, workers: Workers, nprocs: int, method: StartMethod) -> None:
        """Ask for all processes before the first is waited for: a forkserver makes one after the other."""
        directory = workers.directory.path
        with contextlib.ExitStack() as stack:
            newcomers = []
            for rank in range(nprocs):
                newcomer = stack.enter_context(contextlib.closing(self._newcomer(method)))
                newcomer.settle(Setup(rank=rank, nprocs=nprocs, directory=directory), self._lifeline.read_end)
                newcomers.append(newcomer)
            for newcomer in newcomers:
                workers.add(newcomer.worker())
        workers.be_swept()

    def _newcomer(self, method: StartMethod) -> Newcomer:
        """Return a process that stands by, or ask for one."""
        if method != "forkserver":
            return Newcomer(self._methods[method], self._work)
        self._server.ensure_started()
        return self._standby.take(self._server.pid) or self._from_server()

    def _ahead(self) -> Newcomer:
        """Ask for a process that stands by; the server that is to follow is in use once it has made one."""
        coming = self._server.next
        if coming is None:
            return self._from_server()
        newcomer = Newcomer(ForkserverMethod(coming), self._work, server=coming.pid)
        try:
            newcomer.wait()
        except EOFError:
            newcomer.close()
            self._server.drop_next()
            raise
        self._server.use_next()
        self._server.see_off(_LAST_MOMENT)
        return newcomer

    def _from_server(self) -> Newcomer:
        self._server.ensure_started()
        return Newcomer(self._methods["forkserver"], self._work, server=self._server.pid)


def _let_go_in_forked_children(launcher: Launcher) -> None:
    """Have every forked child of the kernel let go; a hook can't be taken back, so it holds nothing alive."""
    forget = weakref.WeakMethod(launcher.forget)

    def after_fork() -> None:
        method = forget()
        if method is not None:
            method()

    os.register_at_fork(after_in_child=after_fork)
