"""What a kernel and everything that it started hold of the machine: processes, descriptors, threads, files."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernels import Kernel, kernel

SHARED_MEMORY = Path("/dev/shm")
MARK = "NBSHM_TESTED_KERNEL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What is there at one moment: numbers of the kernel itself, names of all else."""

    processes: frozenset[int]
    zombies: int
    fds: int
    threads: int
    shared_memory: frozenset[str]
    files: frozenset[str]
    rss: int


class Traces:
    """What a kernel leaves on the machine, told from everybody else's.

    Whatever the kernel starts inherits a mark in its environment, also what outlives it, and has a temporary
    directory of its own. Files in /dev/shm have no such mark: counted are those that were not there before and
    that no process of others has mapped or open.
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
            fds=len(_listed(home / "fd")),
            threads=len(_listed(home / "task")),
            shared_memory=self._shared_memory(own),
            files=frozenset(str(path) for path in self._temporary.rglob("*")),
            rss=_resident(home),
        )

    def wait_for(self, condition, *, seconds: float = 5) -> Footprint:
        """Wait until a footprint fulfils the condition; fail with the last one."""
        limit = time.monotonic() + seconds
        while not condition(found := self.footprint()):
            assert time.monotonic() < limit, f"{found}\n{describe(found.processes)}"
            time.sleep(0.01)
        return found

    def wait_for_no_more_than(self, before: Footprint, *, seconds: float = 5) -> Footprint:
        """Wait until nothing is there that was not there before."""
        return self.wait_for(lambda now: not added(before, now), seconds=seconds)

    def wait_for_nothing(self, *, seconds: float) -> Footprint:
        """Wait until nothing at all is left, the kernel included."""
        return self.wait_for(
            lambda now: not (now.processes or now.shared_memory or now.files), seconds=seconds
        )

    def _shared_memory(self, own: frozenset[int]) -> frozenset[str]:
        new = frozenset(_listed(SHARED_MEMORY)) - self._foreign
        return new - held_by_others(own) if new else new


def added(before: Footprint, now: Footprint) -> str:
    """Say what there is more than before; empty if nothing."""
    more = {
        "processes": describe(now.processes - before.processes),
        "zombies": now.zombies - before.zombies,
        "descriptors": now.fds - before.fds,
        "threads": now.threads - before.threads,
        "shared memory": sorted(now.shared_memory - before.shared_memory),
        "files": sorted(now.files - before.files),
    }
    found = {what: much for what, much in more.items() if (much > 0 if isinstance(much, int) else much)}
    return str(found) if found else ""


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
        found.update(re.findall(r"/dev/shm/(\S+)", _content(home / "maps").decode(errors="replace")))
        for fd in _listed(home / "fd"):
            try:
                target = os.readlink(home / "fd" / fd)
            except OSError:
                continue
            if target.startswith("/dev/shm/"):
                found.add(target.removeprefix("/dev/shm/"))
    return frozenset(found)


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


def _listed(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
