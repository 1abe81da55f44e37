"""What is on its way through a queue or a pipe is kept until it is taken, or until nobody can take it."""

from __future__ import annotations

import multiprocessing as mp
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection, reduction, resource_sharer
from pathlib import Path

import pytest

from nbshm.processes import keeping
from nbshm.processes.keeping import KeeperProcess
from nbshm.processes.sweeping import Sweeper
from nbshm.wire import kept
from nbshm.wire.kept import Keeping, KeptFd, Lost, TooMany, _sender

CONTEXT = mp.get_context("spawn")


@pytest.fixture
def keeper() -> Iterator[KeeperProcess]:
    """A keeper's process, which this process hands descriptors to."""
    sweeper = Sweeper()
    started = KeeperProcess(sweeper)
    started.ensure_started()
    installed = Keeping(lambda: started.address)
    installed.install()
    yield started
    installed.remove()
    started.close()
    sweeper.close()
    assert reduction.DupFd.__module__ == "multiprocessing.reduction"


def test_a_process_that_cannot_be_started_leaves_no_directory(monkeypatch, tmp_path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(keeping, "start_bystander", refuse)
    sweeper = Sweeper()
    keeper = KeeperProcess(sweeper)
    assert keeper.ensure_started() is None
    assert list(tmp_path.iterdir()) == []
    keeper.close()
    sweeper.close()


def held(keeper: KeeperProcess) -> int:
    """Count what the keeper has open beside its standard streams and its door."""
    return len(list(Path(f"/proc/{keeper._process.pid}/fd").iterdir())) - 4


def wait_until(holds: Callable[[], bool], *, seconds: float = 10) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.005)


class Asked:
    """Tells who sends when it is pickled."""

    def __reduce__(self):
        sender = _sender()
        return int, (sender.fileno() if sender else -1,)


def test_who_pickles_for_a_connection_is_known() -> None:
    queue, simple, (end, other) = CONTEXT.Queue(), CONTEXT.SimpleQueue(), CONTEXT.Pipe()
    queue.put(Asked())
    simple.put(Asked())
    end.send(Asked())
    assert queue.get(timeout=10) == queue._writer.fileno()
    assert simple.get() == simple._writer.fileno()
    assert other.recv() == end.fileno()
    assert reduction.ForkingPickler.loads(reduction.ForkingPickler.dumps(Asked())) == -1
    queue.close()
    queue.join_thread()


def test_what_was_sent_is_kept_until_it_is_taken(keeper: KeeperProcess) -> None:
    reader, writer = CONTEXT.Pipe(duplex=False)
    carried, other = CONTEXT.Pipe()
    writer.send([carried, carried, other])
    writer.send(other)
    carried.close()
    other.close()
    first, second, third = reader.recv()
    first.send("through the first")
    assert third.recv() == "through the first"
    wait_until(lambda: held(keeper) == 2)  # the last message's, and where it was sent
    reader.recv().close()
    wait_until(lambda: held(keeper) == 0)
    for taken in (first, second, third):
        taken.close()


@pytest.mark.usefixtures("keeper")
def test_a_reader_finds_the_end_when_all_was_taken() -> None:
    reader, writer = CONTEXT.Pipe(duplex=False)
    writer.send(writer)
    writer.close()
    reader.recv().close()
    with pytest.raises(EOFError):
        reader.recv()


@pytest.mark.parametrize("duplex", [True, False])
def test_what_nobody_can_take_any_more_is_given_up(keeper: KeeperProcess, *, duplex: bool) -> None:
    reader, writer = CONTEXT.Pipe(duplex=duplex)
    for _ in range(3):
        writer.send(writer)
    wait_until(lambda: held(keeper) == 4)
    reader.close()
    wait_until(lambda: held(keeper) == 0)
    writer.close()


def test_what_is_lost_is_told(keeper: KeeperProcess) -> None:
    reader, writer = CONTEXT.Pipe(duplex=False)
    writer.send(writer)
    message = reader.recv_bytes()
    connection._ForkingPickler.loads(message).close()
    with pytest.raises(Lost, match="it was fetched before, or the nbshm extension that kept it"):
        connection._ForkingPickler.loads(message)
    writer.send(writer)
    keeper.close()
    with pytest.raises(Lost, match="Put it on the queue again"):
        reader.recv()
    writer.close()


def test_a_keeper_whose_socket_was_cleared_away_is_followed_by_another(keeper: KeeperProcess) -> None:
    before = keeper.address
    assert before == keeper.ensure_started()
    Path(before).unlink()
    assert keeper.ensure_started() not in {None, before}
    reader, writer = CONTEXT.Pipe(duplex=False)
    writer.send(writer)
    wait_until(lambda: held(keeper) == 2)
    reader.recv().close()
    reader.close()
    writer.close()


def test_without_a_keeper_the_sender_hands_out_itself(keeper: KeeperProcess) -> None:
    os.kill(keeper._process.pid, signal.SIGKILL)
    keeper._process.wait()
    reader, writer = CONTEXT.Pipe(duplex=False)
    writer.send(writer)
    reader.recv().close()
    resource_sharer.stop()
    before = keeper.address
    assert keeper.ensure_started() not in {None, before}
    writer.send(writer)
    wait_until(lambda: held(keeper) == 2)


def test_a_sender_that_may_open_no_more_hands_out_itself(keeper: KeeperProcess, monkeypatch) -> None:
    monkeypatch.setattr(kept, "can_open", lambda _: False)
    reader, writer = CONTEXT.Pipe(duplex=False)
    writer.send(writer)
    wait_until(lambda: held(keeper) == 0)  # once it has started, and closed the file of its program
    reader.recv().close()
    resource_sharer.stop()
    reader.close()
    writer.close()


@pytest.mark.usefixtures("keeper")
def test_who_collects_what_it_receives_may_open_more_files_as_far_as_the_limit_goes(monkeypatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    newest = os.dup(0)
    os.close(newest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (newest + 20, hard))
    reader, writer = CONTEXT.Pipe(duplex=False)
    received = []
    for _ in range(20):
        writer.send(writer)
        received.append(reader.recv())
    assert newest + 20 < resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= hard
    writer.send(writer)
    monkeypatch.setattr(kept, "can_open", lambda _: False)
    with pytest.raises(TooMany, match=r"each tensor that it gets from a queue keeps one open\. Use %shm_str"):
        reader.recv()
    for connected in (reader, writer, *received):
        connected.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_descriptor_that_no_connection_is_to_carry_goes_the_usual_way(keeper: KeeperProcess) -> None:
    assert keeper.address
    assert not isinstance(reduction.DupFd(0), KeptFd)
    resource_sharer.stop()
