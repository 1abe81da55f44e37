"""Start the workers of a run, whatever the start method, and own what all runs share.

    launch ── socketpair, two pipes ──▶ start method ──▶ process: life.main(its end of the socket)
       └───── Setup(rank, nprocs) + stdout, stderr, lifeline, page ────▶┘   (over that socket; then the job)

One road for all start methods, also for a worker that stands ready before there is a job.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import weakref
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import util

from nbshm.option_table import StartMethod
from nbshm.processes.allowances import check_workers
from nbshm.processes.keeping import Keeper
from nbshm.processes.kernel_signals import interrupts_put_off
from nbshm.processes.lifelines import Lifeline
from nbshm.processes.messages import Setup
from nbshm.processes.places import new_page
from nbshm.processes.servers import Server
from nbshm.processes.start_methods import ForkMethod, ForkserverMethod, Method, SpawnMethod
from nbshm.processes.sweeping import Sweeper
from nbshm.processes.transport import Channel
from nbshm.processes.workers import Worker, Workers

PRELOAD = ("nbshm.worker.preload",)


class Launcher:
    """Starts workers; keeps the forkserver, the lifeline and the sweeper as long as the extension is loaded.

    `work` names what a worker does with its job, as `package.module:function` (see `nbshm.worker.life.Work`).
    """

    def __init__(self, *, work: str = "nbshm.worker.work:run", preload: Sequence[str] = PRELOAD) -> None:
        self._work = work
        self.sweeper = Sweeper()
        self.keeper = Keeper(self.sweeper)
        self._server = Server(self.sweeper, preload=preload)
        self._lifeline = Lifeline()
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

    def renew(self) -> None:
        """Let new workers come from a new forkserver, which imports everything afresh."""
        self._server.renew()
        self.prepare()

    def launch(self, nprocs: int, method: StartMethod) -> Workers:
        """Start `nprocs` workers and tell each who it is; they wait for their job then.

        Raises
        ------
        OptionError
            They are more than this process may open descriptors for; nothing was started.

        """
        check_workers(nprocs)
        workers = Workers(self.sweeper)
        way = self._methods[method]
        try:
            with interrupts_put_off(), way.starting(), workers.directory.in_use():
                self._start_all(workers, nprocs, way)
        except BaseException:
            workers.close()
            raise
        return workers

    def close(self) -> None:
        """End the forkserver, the keeper, the sweeper and, by the lifeline, every worker that still lives."""
        if self._closed:
            return
        self._closed = True
        self._lifeline.close()
        self._server.close()
        self.keeper.close()
        self.sweeper.close()

    def forget(self) -> None:
        """Let go, in a forked child of the kernel, of what tells others that the kernel lives."""
        self._lifeline.forget()
        self._server.forget()
        self.keeper.forget()
        self.sweeper.forget()

    def _start_all(self, workers: Workers, nprocs: int, method: Method) -> None:
        """Ask for all processes before the first is waited for: a forkserver makes one after the other."""
        with contextlib.ExitStack() as births:
            asked = [births.enter_context(self._birth(rank, nprocs, method)) for rank in range(nprocs)]
            for bear in asked:
                workers.add(bear())
        workers.be_swept()

    @contextlib.contextmanager
    def _birth(self, rank: int, nprocs: int, method: Method) -> Iterator[Callable[[], Worker]]:
        """Ask for a process and tell it who it is; give what waits for it and makes its `Worker`."""
        with contextlib.ExitStack() as kernel_ends, contextlib.ExitStack() as worker_ends:
            ours, theirs = socket.socketpair()
            kernel_ends.enter_context(ours)
            worker_ends.enter_context(theirs)
            stdout, stderr = (_pipe(kernel_ends, worker_ends) for _ in range(2))
            util.register_after_fork(ours, socket.socket.close)  # a forked child has no business with it
            page = new_page()
            kernel_ends.callback(os.close, page)
            channel = Channel(ours)
            popen = method.start(theirs, self._work, name=f"nbshm-rank-{rank}")
            setup = pickle.dumps(Setup(rank=rank, nprocs=nprocs))
            with contextlib.suppress(BrokenPipeError):  # it has died already; supervision will tell
                channel.send(setup, [stdout[1], stderr[1], self._lifeline.read_end, page])

            def bear() -> Worker:
                worker = Worker(
                    rank=rank, popen=popen, channel=channel, stdout=stdout[0], stderr=stderr[0], page=page
                )
                kernel_ends.pop_all()
                return worker

            yield bear


def _pipe(kernel_ends: contextlib.ExitStack, worker_ends: contextlib.ExitStack) -> tuple[int, int]:
    read_end, write_end = os.pipe()
    kernel_ends.callback(os.close, read_end)
    worker_ends.callback(os.close, write_end)
    return read_end, write_end


def _let_go_in_forked_children(launcher: Launcher) -> None:
    """Have every forked child of the kernel let go; a hook can't be taken back, so it holds nothing alive."""
    forget = weakref.WeakMethod(launcher.forget)

    def after_fork() -> None:
        method = forget()
        if method is not None:
            method()

    os.register_at_fork(after_in_child=after_fork)
