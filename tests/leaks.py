"""What a kernel and all that it started hold of the machine: processes, descriptors, threads, files."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernels import Kernel, kernel

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # it is looked at, not written to
FOREIGN_SEMAPHORES = "sem.mp-"  # multiprocessing's names; those of the kernel begin otherwise
NAME_SEMAPHORES = (
    "import multiprocessing, os\n"
    "multiprocessing.current_process()._config['semprefix'] = f'/tested-{os.getpid()}'"
)
MARK = "NBSHM_TESTED_KERNEL"
NOBODY_STANDS_BY = "%parallel standby=0"  # each run is to leave as many processes as it found, the same ones
AS_MANY_STAND_BY = "%parallel standby=auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What is there at one moment: numbers of the kernel itself, names of all else."""

    processes: frozenset[int]
    zombies: int
    fds: Counter[str]
    threads: int
    shared_memory: frozenset[str]
    files: frozenset[str]
    rss: int


class Traces:
    """What a kernel leaves on the machine, told from everybody else's.

    Whatever the kernel starts inherits a mark in its environment, also what outlives it, and has a temporary
    directory of its own. Descriptors of IPython's history, which come and go, don't count. Semaphores have
    names of their own. Of other files in /dev/shm those count that were not there before and that no
    process of others has mapped or open.
    """

    def __init__(self, notebook: Kernel, *, mark: str, temporary: Path, foreign: frozenset[str]) -> None:
        self.kernel = notebook
        self.pid = notebook.pid
        self._mark = mark
        self._temporary = temporary
        self._foreign = foreign

    def footprint(self) -> Footprint:
        """Look at everything now."""
        own = frozenset(processes(self._mark))
        home = Path(f"/proc/{self.pid}")
        return Footprint(
            processes=own,
            zombies=len(zombies_of(self.pid)),
            fds=_open_files(home / "fd"),
            threads=len(_listed(home / "task")),
            shared_memory=self._shared_memory(own),
            files=frozenset(_below(self._temporary)),
            rss=_resident(home),
        )

    def wait_for_no_more_than(self, before: Footprint, *, seconds: float = 5) -> Footprint:
        """Wait until nothing is there that was not there before."""
        return self._wait(lambda now: added(before, now), seconds)

    def wait_for_names(self, names: frozenset[str], *, seconds: float) -> None:
        """Wait until torch has no names in /dev/shm but these."""

        def excess(now: Footprint) -> str:
            return _told(torch={name for name in now.shared_memory - names if name.startswith("torch_")})

        self._wait(excess, seconds)

    def wait_for_nothing(self, *, seconds: float) -> Footprint:
        """Wait until nothing at all is left, the kernel included."""
        return self._wait(
            lambda now: _told(
                processes=describe(now.processes), shared_memory=now.shared_memory, files=now.files
            ),
            seconds,
        )

    def _wait(self, excess: Callable[[Footprint], str], seconds: float) -> Footprint:
        limit = time.monotonic() + seconds
        while too_much := excess(found := self.footprint()):
            assert time.monotonic() < limit, f"too much is left: {too_much}"
            time.sleep(0.01)
        return found

    def _shared_memory(self, own: frozenset[int]) -> frozenset[str]:
        names = (name for name in _listed(SHARED_MEMORY) if not name.startswith(FOREIGN_SEMAPHORES))
        new = frozenset(names) - self._foreign
        return new - held_by_others(own) if new else new


def added(before: Footprint, now: Footprint) -> str:
    """Say what there is more than before; empty if nothing."""
    return _told(
        processes=describe(now.processes - before.processes),
        zombies=now.zombies - before.zombies,
        descriptors=[f"{many} x {what}" for what, many in (now.fds - before.fds).items()],
        threads=now.threads - before.threads,
        shared_memory=now.shared_memory - before.shared_memory,
        files=now.files - before.files,
    )


def _told(**more: int | Collection[str]) -> str:
    """Say what there is, leaving out what there is not."""
    there = {
        what: much if isinstance(much, int) else sorted(much)
        for what, much in more.items()
        if (much > 0 if isinstance(much, int) else much)
    }
    return str(there) if there else ""


@contextmanager
def traced_kernel(directory: Path) -> Iterator[Traces]:
    """Start a kernel whose traces can be told."""
    mark = f"{MARK}={os.getpid()}-{time.monotonic_ns()}"
    temporary, work = directory / "temporary", directory / "work"
    temporary.mkdir()
    work.mkdir()
    foreign = frozenset(_listed(SHARED_MEMORY))
    name, _, value = mark.partition("=")
    with kernel(work, env={**os.environ, name: value, "TMPDIR": str(temporary)}) as notebook:
        notebook.run(NAME_SEMAPHORES).check()
        notebook.run(NOBODY_STANDS_BY).check()
        yield Traces(notebook, mark=mark, temporary=temporary, foreign=foreign)


def processes(mark: str) -> Iterator[int]:
    """Return the living processes whose environment has the mark."""
    needle = b"\0" + mark.encode() + b"\0"
    for name in _listed(Path("/proc")):
        if name.isdigit() and needle in b"\0" + _content(Path("/proc") / name / "environ"):
            yield int(name)


def zombies_of(pid: int) -> list[int]:
    """Return the children of a process that have ended and were not waited for."""
    return [int(n) for n in _listed(Path("/proc")) if n.isdigit() and _state(int(n)) == ("Z", pid)]


def held_by_others(own: frozenset[int]) -> frozenset[str]:
    """Return the names in /dev/shm that processes other than these have mapped or open."""
    found: set[str] = set()
    for name in _listed(Path("/proc")):
        if not name.isdigit() or int(name) in own:
            continue
        home = Path("/proc") / name
        found.update(re.findall(rf"{SHARED_MEMORY}/(\S+)", _content(home / "maps").decode(errors="replace")))
        for fd in _listed(home / "fd"):
            try:
                target = (home / "fd" / fd).readlink()
            except OSError:
                continue
            if target.is_relative_to(SHARED_MEMORY):
                found.add(target.name)
    return frozenset(found)


def _open_files(home: Path) -> Counter[str]:
    """Count what descriptors lead to, by name, leaving out numbers and IPython's history."""
    targets: Counter[str] = Counter()
    for fd in _listed(home):
        try:
            target = str((home / fd).readlink())
        except OSError:  # closed meanwhile
            continue
        if "profile_default" not in target:
            targets[re.sub(r"[\[#]\d+\]?", "", target)] += 1
    return targets


def describe(pids) -> list[str]:
    """Say what processes are: number, state, command."""
    return [f"{pid} {_state(pid)} {_content(Path(f'/proc/{pid}/cmdline'))[:200]!r}" for pid in sorted(pids)]


def _state(pid: int) -> tuple[str, int]:
    fields = _content(Path(f"/proc/{pid}/stat")).rpartition(b") ")[2].split()
    return (fields[0].decode(), int(fields[1])) if fields else ("gone", 0)


def _resident(home: Path) -> int:
    fields = _content(home / "statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has gone meanwhile
        return b""


def _below(directory: Path) -> Iterator[str]:
    """Return what lies below a directory; what vanishes meanwhile is fine, unlike with `rglob`."""
    for place, directories, files in os.walk(directory):
        yield from (os.path.join(place, name) for name in (*directories, *files))  # noqa: PTH118  # of strings


def _listed(directory: Path) -> list[str]:
    try:
        return [path.name for path in directory.iterdir()]
    except OSError:
        return []
