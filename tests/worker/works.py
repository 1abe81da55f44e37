"""What the workers of `test_life.py` do."""

from __future__ import annotations

import pickle
import signal
import sys
import time

from nbshm.events import Note


def exit_three(_job, _fds, _seat):
    return 3


def unpickle(job, _fds, _seat):
    pickle.loads(job)
    return 0


def wait(_job, _fds, _seat):
    sys.stdout.write("waiting")
    time.sleep(3600)


def chatter(_job, _fds, seat):
    while True:
        seat.say(Note(text="x" * 1_000_000))


def print_much(_job, _fds, _seat):
    signal.signal(signal.SIGUSR1, lambda *_: None)
    sys.stdout.write("0123456789" * 100_000)
    return 0


def print_surrogate(_job, _fds, _seat):
    print("\udcff", end="")
    return 0
