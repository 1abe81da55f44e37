from __future__ import annotations

import os
import resource
import socket
import threading

import pytest

from nbshm.wire.readiness import wait_readable
from nbshm.wire.receiving import DescriptorsLost
from nbshm.wire.transport import Channel


@pytest.fixture
def channels():
    ends = [Channel(end) for end in socket.socketpair()]
    yield ends
    for end in ends:
        end.close()


@pytest.fixture
def fds():
    opened = [os.memfd_create("test") for _ in range(600)]
    yield opened
    for fd in opened:
        os.close(fd)


@pytest.fixture
def few_descriptors():
    """Let this process open few more descriptors than it has, and raise that to 300 more at most."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208  # they are no paths

    def allow(more: int) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + more, before[1]))

    yield allow
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def inodes(fds):
    return [os.fstat(fd).st_ino for fd in fds]


def close_all(fds):
    for fd in fds:
        os.close(fd)


def test_a_frame_arrives_as_it_was_sent(channels):
    one, other = channels
    one.send(b"payload")
    assert other.receive().payload == b"payload"


def test_an_empty_frame_is_a_frame(channels):
    one, other = channels
    one.send(b"")
    assert other.receive().payload == b""


def test_frames_arrive_in_order(channels):
    one, other = channels
    for number in range(100):
        one.post(str(number).encode())
    assert one.flush()
    assert [int(frame.payload) for frame in other.feed()] == list(range(100))


def test_any_number_of_descriptors_arrives_in_order_with_its_own_frame(channels, fds):
    one, other = channels
    received = []
    for count in (1, 250, 251, 0, 600):
        one.send(b"x" * count, fds[:count])
        frame = other.receive()
        received.append((len(frame.payload), inodes(frame.fds) == inodes(fds[:count])))
        close_all(frame.fds)
    assert received == [(1, True), (250, True), (251, True), (0, True), (600, True)]


def test_received_descriptors_are_not_inherited_by_other_programs(channels, fds):
    one, other = channels
    one.send(b"", fds[:1])
    frame = other.receive()
    assert not os.get_inheritable(frame.fds[0])
    close_all(frame.fds)


def test_more_than_the_socket_holds_is_posted_without_waiting(channels):
    one, other = channels
    payload = os.urandom(5_000_000)
    one.post(payload)
    assert not one.flush()
    frames = []
    while not frames:
        assert wait_readable(other.fileno(), 10)
        frames = other.feed()
        one.flush()
    assert frames[0].payload == payload
    assert not one.unsent


def test_what_was_posted_before_goes_first(channels):
    one, other = channels
    one.post(b"first")
    one.send(b"second")
    assert [frame.payload for frame in other.feed()] == [b"first", b"second"]


def test_a_frame_that_has_come_half_is_waited_for(channels):
    one, other = channels
    one._connection.sendall((8).to_bytes(8, "little") + (0).to_bytes(4, "little") + b"half")
    assert other.next_frame() is None
    one._connection.sendall(b"half")
    assert other.next_frame().payload == b"halfhalf"


def test_a_sender_that_dies_in_a_frame_is_an_end_and_leaves_no_descriptor(channels, fds):
    one, other = channels
    one.post(b"x" * 10_000_000, fds[:300])
    one.flush()
    one.close()
    assert other.feed() == []
    assert other.receive() is None
    assert other.ended


def test_what_is_posted_to_a_receiver_that_died_is_dropped(channels):
    one, other = channels
    other.close()
    one.post(b"x")
    assert one.flush()
    assert not one.unsent


def test_sending_to_a_receiver_that_died_is_an_error(channels):
    one, other = channels
    other.close()
    with pytest.raises(BrokenPipeError):
        one.send(b"x")


def test_threads_may_send_at_the_same_time(channels):
    one, other = channels
    threads = [threading.Thread(target=one.send, args=(bytes([number]) * 500_000,)) for number in range(8)]
    for thread in threads:
        thread.start()
    payloads = [other.receive().payload for _ in threads]
    for thread in threads:
        thread.join()
    assert sorted(bytes(set(payload)) for payload in payloads) == [bytes([number]) for number in range(8)]


def test_one_feed_does_not_take_for_ever(channels):
    one, other = channels
    stop = threading.Event()

    def chatter():
        while not stop.is_set():
            one.send(b"x" * 100_000)

    thread = threading.Thread(target=chatter)
    thread.start()
    try:
        assert 1 <= len(other.feed() or [other.receive()]) <= 60
    finally:
        stop.set()
        while thread.is_alive():
            other.feed()
        thread.join()


def test_the_soft_limit_is_raised_for_descriptors(channels, fds, few_descriptors):
    one, other = channels
    one.post(b"", fds)
    one.flush()
    few_descriptors(20)
    frame = other.receive()
    assert len(frame.fds) == 600
    close_all(frame.fds)


def test_descriptors_that_may_not_be_opened_are_an_error_that_says_so(channels, fds, few_descriptors):
    one, other = channels
    few_descriptors(20)
    one.post(b"", fds[:100])  # too few for the limit to be raised
    one.flush()
    with pytest.raises(DescriptorsLost, match=r"of 100 file descriptors.*ulimit -n"):
        other.receive()
    one.send(b"next")
    assert other.receive().payload == b"next"


def test_a_channel_says_how_it_is(channels):
    one, other = channels
    assert repr(one).endswith("open>")
    other.close()
    one.receive()
    assert repr(one).endswith("ended>")
    one.close()
    assert repr(one).endswith("closed>")


def test_a_channel_whose_socket_other_code_has_closed_is_as_one_that_nobody_hears():
    ours, theirs = socket.socketpair()
    with theirs:
        os.close(ours.detach())
        channel = Channel(ours)
        with pytest.raises(BrokenPipeError):
            channel.send(b"nobody hears this")
