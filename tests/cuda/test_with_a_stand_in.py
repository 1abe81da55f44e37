"""How storages on GPUs travel, with a stand-in for CUDA (`stand_in.py`): the protocol, and not CUDA."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kernels import Kernel

STAND_IN = Path(__file__).with_name("stand_in.py")


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shutil.copy(STAND_IN, shared_notebook.directory)
    shared_notebook.run(
        "import multiprocessing as mp, threading\n"
        "import torch, nbshm, stand_in\n"
        "context = mp.get_context('forkserver')\n"
        "first, second = context.Queue(), context.Queue()"
    ).check()
    return shared_notebook


def cell(notebook: Kernel, body: str, options: str = "nprocs=2") -> str:
    # The stand-in is imported in a worker because the cell names it, before the values are there.
    return notebook.run(f"%%parallel {options}\nstand_in\n{body}").check().text


@pytest.mark.parametrize(("method", "runs"), [("forkserver", 2), ("spawn", 1)])
def test_ranks_write_into_the_notebooks_tensor_in_run_after_run(notebook, method, runs):
    notebook.run(
        "before = stand_in.allocated()\n"
        "gpu = stand_in.ones(4); tail = gpu[2:]; model = {'weight': gpu, 'tail': tail}"
    ).check()
    body = "gpu[rank] += 5; model['tail'][rank] += 1\nassert tail[rank] == gpu[2 + rank]"
    for _ in range(runs):
        cell(notebook, body, f"nprocs=2 start_method={method}")
    assert notebook.value("gpu.tolist()") == [1 + 5 * runs] * 2 + [1 + runs] * 2
    notebook.run("del gpu, tail, model").check()
    assert notebook.value("stand_in.allocated() - before") == 0


def test_what_was_handed_over_is_listed_as_long_as_it_is_there(notebook):
    notebook.run("seen = stand_in.ones(4); unseen = stand_in.ones(2); parts = [seen[2:]]").check()
    cell(notebook, "seen")
    told = notebook.run("%shm_status").check().stdout
    rows = {row[0]: row[1:] for row in map(str.split, told.splitlines()) if row[-2:] == ["by", "CUDA"]}
    assert rows["seen"] == ["tensor", "float32", "4", "16", "bytes", "by", "CUDA"]
    assert rows["parts"] == ["list", "1", "tensor", "16", "bytes", "by", "CUDA"]
    assert "unseen" not in rows


def test_what_ranks_had_that_failed_or_were_killed_is_freed_when_the_notebook_drops_it(notebook):
    notebook.run("import os, signal; before = stand_in.allocated(); gpu = stand_in.ones(1)").check()
    for end in ("os.kill(os.getpid(), signal.SIGKILL)", "gpu[7]"):
        assert notebook.run(f"%%parallel nprocs=2\nstand_in, gpu\n{end}").error is not None
    notebook.run("del gpu").check()
    assert notebook.value("stand_in.allocated() - before") == 0


def test_what_ranks_use_stays_until_they_have_ended_though_the_notebook_drops_it(notebook):
    notebook.run("before = stand_in.allocated(); gpu = stand_in.ones(2); go_on = context.Event()").check()
    cell(notebook, "go_on.wait(30); gpu.tolist()", "nprocs=2 background=job")
    notebook.run("del gpu; go_on.set(); job.wait(); seen = list(job.results)").check()
    assert notebook.value("seen") == [[1, 1]] * 2
    assert notebook.value("stand_in.allocated() - before") == 0


def test_a_rank_gives_up_what_it_drops(notebook):
    notebook.run("gpu = stand_in.ones(1)").check()
    cell(
        notebook,
        "file = gpu.untyped_storage().filename\n"
        "def is_mapped(): return file in open('/proc/self/maps').read()\n"
        "before = is_mapped(); del gpu; before, is_mapped()",
    )
    assert notebook.value("list(_)") == [(True, False)] * 2


def test_results_are_copied_before_their_rank_ends_and_the_notebooks_own_are_its_own(notebook):
    notebook.run("gpu = stand_in.ones(3)").check()
    cell(notebook, "made = stand_in.ones(2)\nmade += rank\ngpu[1:], made, made[:1]")
    assert notebook.value("[[part.tolist() for part in result] for result in _]") == [
        [[1, 1], [1, 1], [1]],
        [[1, 1], [2, 2], [2]],
    ]
    notebook.run("(own, made, part), other = _; own[0] = 7; made[0] = 8").check()
    assert notebook.value("(gpu.tolist(), part.tolist())") == ([1, 7, 1], [8])


def test_what_a_spawned_rank_has_made_is_there_at_its_end_and_freed_then(notebook):
    """Else torch complains, at the end of a program, of memory that others had."""
    text = cell(
        notebook,
        "import atexit, os\n"
        "class Told:\n"
        "    def __del__(self, write=os.write): write(2, b'freed\\n')\n"
        "made = stand_in.ones(3); made.told = Told(); del Told\n"
        "atexit.register(lambda: print('last', made.numel()))\n"
        "made[:1]",
        "nprocs=1 start_method=spawn",
    )
    assert "last 3" in text
    assert "freed" in text


def test_a_rank_stays_until_what_it_has_sent_is_taken_and_given_back(notebook):
    cell(
        notebook,
        "if rank == 0:\n"
        "    first.put(stand_in.ones(2))\n"
        "else:\n"
        "    try: nbshm.barrier()\n"
        "    except threading.BrokenBarrierError: pass  # rank 0 has finished\n"
        "    got = first.get(timeout=30)\n"
        "    got += 1\n"
        "    assert got.tolist() == [2, 2]",
    )


def test_what_was_received_is_sent_on_as_a_clone(notebook):
    text = cell(
        notebook,
        "if rank == 0:\n"
        "    first.put(stand_in.ones(2)); value = None\n"
        "elif rank == 1:\n"
        "    got = first.get(timeout=30); second.put(got); value = got\n"
        "else:\n"
        "    value = second.get(timeout=30); value += 1\n"
        "value",
        "nprocs=3",
    )
    assert "were not taken" not in text
    assert notebook.value("[None if value is None else value.tolist() for value in _]") == [
        None,
        [1, 1],
        [2, 2],
    ]


def test_two_ranks_that_keep_each_others_tensors_both_end(notebook):
    text = cell(
        notebook,
        "mine, theirs = (first, second) if rank == 0 else (second, first)\n"
        "mine.put(stand_in.ones(1))\n"
        "got = theirs.get(timeout=30)",
    )
    assert "CUDA tensor" not in text


def test_put_and_get_in_one_process_is_the_same_tensor(notebook):
    body = (
        "mine = stand_in.ones(1)\n"
        "first.put(mine)\n"
        "got = first.get(timeout=30)\n"
        "got += 1\n"
        "assert mine.item() == 2"
    )
    cell(notebook, body, "nprocs=1")
    notebook.run(body).check()


def test_the_notebook_lets_go_of_what_it_was_given_back(notebook):
    notebook.run(
        "from nbshm.memory.tensors.lending import lendings\n"
        "first.put(stand_in.ones(1)); held = lambda: [lent.storage for lent in lendings._lent.values()]"
    ).check()
    assert notebook.value("len(held())") == 1
    cell(notebook, "first.get(timeout=30).item()", "nprocs=1")
    assert notebook.value("held()") == []


def test_what_nobody_takes_is_told(notebook):
    text = cell(notebook, "if rank == 1: first.put(stand_in.ones(1))")
    assert "a CUDA tensor that it has put on a queue was not taken" in text
    assert "send it with .cpu()" in text
    reply = notebook.run("first.get(timeout=30)")
    assert reply.error is not None
    assert "That process must be there still" in reply.text


def test_the_notebook_can_keep_no_process_from_ending_but_clone_what_it_got(notebook):
    notebook.run(
        "def produce(queue, done):\n    stand_in\n    queue.put(stand_in.ones(2)); done.wait(30)\n"
        "done = context.Event()\n"
        "producer = context.Process(target=produce, args=(second, done)); producer.start()\n"
        "got = second.get(timeout=30)"
    ).check()
    reply = notebook.run("%%parallel nprocs=1\nstand_in, got")
    assert reply.error is not None
    assert "cannot share 'got': it was received from another process, which CUDA lets nobody" in reply.text
    assert "Use got.clone()." in reply.text
    notebook.run("del got; done.set(); producer.join(30); code = producer.exitcode; producer.close()").check()
    assert notebook.value("code") == 0
