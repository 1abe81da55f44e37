# ruff: noqa: S102  # cells are executed
from __future__ import annotations

import os
import re
import signal
import sys
import threading
from pathlib import Path

from nbshm.wire.whereabouts import DUMP_SIGNAL, answer, ask, new_page, read_place
from nbshm.worker.whereabouts import Whereabouts, place_in_cells

CELLS = {"cell three": 3, "cell five": 5}


def frame_of(source, filename, **names):
    """Return the frame in which code of that file calls `here`."""
    frames = []
    exec(compile(source, filename, "exec"), {"here": lambda: frames.append(sys._getframe(1)), **names})
    return frames[0]


def test_the_innermost_cell_counts():
    frame = frame_of("\n\nhere()", "cell three")
    assert place_in_cells(frame, CELLS) == "In [3] line 3"


def test_code_of_libraries_is_seen_through():
    inner = "here()"
    outer = "\nrun()"
    frames = []
    library = compile(inner, "library.py", "exec")
    names = {"run": lambda: exec(library, {"here": lambda: frames.append(sys._getframe())})}
    exec(compile(outer, "cell five", "exec"), names)
    assert place_in_cells(frames[0], CELLS) == "In [5] line 2"


def test_no_cell_is_no_place():
    assert place_in_cells(sys._getframe(), CELLS) == ""
    assert place_in_cells(None, CELLS) == ""


def test_the_place_is_written_while_the_code_runs():
    page = new_page()
    threads = threading.active_count()
    whereabouts = Whereabouts(os.dup(page))
    waited = threading.Event()

    def wait_until_written():
        while read_place(page) is None and not waited.wait(0.001):
            pass

    whereabouts.follow(CELLS, lambda _: None)
    exec(compile("wait()", "cell three", "exec"), {"wait": wait_until_written})
    assert read_place(page) == "In [3] line 1"
    assert threading.active_count() == threads
    whereabouts.close()
    os.close(page)


def test_the_thread_that_looks_takes_no_interrupt():
    page = new_page()
    whereabouts = Whereabouts(os.dup(page))
    threads, looked = [], threading.Event()
    whereabouts.follow(CELLS, lambda _: (threads.append(threading.get_native_id()), looked.set()))
    assert looked.wait(30)
    status = Path(f"/proc/self/task/{threads[0]}/status").read_text()
    blocked = int(re.search(r"^SigBlk:\s+(\w+)$", status, re.MULTILINE)[1], 16)
    assert blocked >> (signal.SIGINT - 1) & 1
    assert not blocked >> (DUMP_SIGNAL - 1) & 1
    whereabouts.close()
    os.close(page)


def test_the_thread_that_looks_is_born_with_interrupts_blocked(monkeypatch):
    """It may begin late, where an interrupt waits already: the first thread that looks takes it."""
    page = new_page()
    whereabouts = Whereabouts(os.dup(page))
    blocked, born = [], threading.Event()
    monkeypatch.setattr(whereabouts, "_follow", lambda *_: (blocked.append(blocked_signals()), born.set()))
    whereabouts.follow(CELLS, lambda _: None)
    assert born.wait(30)
    assert signal.SIGINT in blocked[0]
    assert signal.SIGINT not in blocked_signals()
    whereabouts._gone.set()
    whereabouts.close()
    os.close(page)


def blocked_signals():
    return signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_question_is_answered_with_the_whole_stack():
    page = new_page()
    whereabouts = Whereabouts(os.dup(page))
    waited, dumps = threading.Event(), []

    def look(depth):
        return look(depth - 1) if depth else wait_for_an_answer()

    def wait_for_an_answer():
        question = ask(page)
        while (dump := answer(page, question)) is None and not waited.wait(0.001):
            pass
        dumps.append(dump)

    whereabouts.follow(CELLS, lambda _: None)
    exec(compile("look(150)", "cell three", "exec"), {"look": look})
    assert 'File "cell three", line 1 in <module>' in dumps[0].text
    assert dumps[0].text.count(" in look") == 151
    whereabouts.close()
    os.close(page)
