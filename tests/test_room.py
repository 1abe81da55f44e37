"""Limits of the system, met by parallel cells in real kernels: they work, or say so, and the kernel lives."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from kernels import Kernel, kernel
from namespaces import small_shared_memory


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel that may open 256 descriptors, and no more."""
    with kernel(tmp_path_factory.mktemp("limited"), load=False) as running:
        running.run("import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))").check()
        running.run("%load_ext nbshm").check()
        running.run("import numpy as np, torch").check()
        yield running


def test_tensors_by_the_thousand_are_shared_with_few_descriptors(limited: Kernel) -> None:
    limited.run("many = [torch.full((16,), float(i)) for i in range(20_000)]").check()
    for _ in range(2):
        limited.run("%%parallel nprocs=2\nfor tensor in many[rank::2]: tensor += 1").check()
    assert limited.value("all(bool((t == i + 2).all()) for i, t in enumerate(many))") is True


def test_results_that_are_kept_do_not_use_up_the_descriptors(limited: Kernel) -> None:
    cell = "%%parallel nprocs=4\nnp.full(200_000, float(rank))"
    limited.run(f"kept = [get_ipython().run_cell({cell!r}).result for _ in range(30)]").check()
    assert (
        limited.value("[[array[-1] for array in run] for run in kept] == [[0.0, 1.0, 2.0, 3.0]] * 30") is True
    )
    limited.run("%reset -f out").check()


def test_a_process_is_sent_more_tensors_than_there_are_descriptors(limited: Kernel) -> None:
    limited.run("""
    import torch.multiprocessing as mp
    def add(_, tensors):
        for tensor in tensors: tensor += 1
    tensors = [torch.zeros(4) for _ in range(400)]
    """).check()
    reply = limited.run("mp.spawn(add, (tensors,))").check()
    assert reply.stderr.count("few file descriptors are left, so torch shares by name") == 1
    assert reply.stderr.splitlines()[-1].strip() == "mp.spawn(add, (tensors,))"  # the person's own line
    assert limited.value("sum(int(tensor.sum()) for tensor in tensors)") == 1600
    limited.run("del tensors").check()


def test_a_message_may_have_more_tensors_than_there_are_descriptors(limited: Kernel) -> None:
    limited.run("""
    def add_up(queue, answers): answers.put([int(tensor[1]) for tensor in queue.get()])
    context = mp.get_context("forkserver")
    queue, answers = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=add_up, args=(queue, answers))
    process.start()
    queue.put([torch.full((2,), float(i)) for i in range(1000)])
    """).check()
    assert limited.value("answers.get() == list(range(1000))") is True
    limited.run("process.join()").check()


def test_tensors_that_torch_has_shared_one_by_one_are_used_with_few_descriptors(limited: Kernel) -> None:
    limited.run("shared = [torch.zeros(2).share_memory_() for _ in range(400)]").check()
    limited.run("%%parallel nprocs=2\nfor tensor in shared[rank::2]: tensor += 1").check()
    assert limited.value("sum(int(tensor.sum()) for tensor in shared)") == 800
    limited.run("del shared").check()


def test_a_run_for_which_too_few_descriptors_are_left_is_refused_in_a_line(limited: Kernel) -> None:
    limited.run("tensor = torch.zeros(2)").check()
    # Some are left: threads of the kernel itself fail without any.
    limited.run("opened = [os.dup(0) for _ in range(256 - 20 - len(os.listdir('/proc/self/fd')))]").check()
    reply = limited.run("%%parallel nprocs=2\ntensor[rank] = 1")
    assert re.match(r"UsageError: nprocs=2 needs 46 file descriptors here, and \d+ are left", reply.stderr)
    limited.run("while opened: os.close(opened.pop())").check()
    limited.run("%%parallel nprocs=2\ntensor[rank] = 1").check()
    assert limited.value("tensor.tolist()") == [1.0, 1.0]


@pytest.fixture(scope="module")
def cramped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel that has 64 MiB of /dev/shm, like one in a container."""
    with kernel(tmp_path_factory.mktemp("cramped"), through=small_shared_memory("64m")) as running:
        running.run("import os, numpy as np, torch").check()
        running.run("def free(): return os.statvfs('/dev/shm').f_bavail * 4096").check()
        assert running.value("free()") == 64 << 20
        yield running


def write_and_read(notebook: Kernel, nbytes: int) -> None:
    notebook.run(
        f"tensor, array = torch.zeros({nbytes // 4}), np.zeros({nbytes // 8}); held = [array]"
    ).check()
    notebook.run("%%parallel nprocs=2\ntensor[rank - 1] = array[rank - 1] = rank + 1").check()
    assert notebook.value("[float(x) for x in (tensor[-1], tensor[0], array[-1], held[0][0])]") == [
        1,
        2,
        1,
        2,
    ]
    assert notebook.value("free()") == 64 << 20
    notebook.run("del tensor, array, held").check()


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_a_small_dev_shm_is_no_limit_for_what_a_parallel_cell_shares(cramped: Kernel, strategy: str) -> None:
    cramped.run(f"%shm_strategy {strategy}").check()
    write_and_read(cramped, 128 << 20)
    cramped.run("%%parallel nprocs=1 out=result\nresult = torch.ones(32 << 20)").check()
    assert cramped.value("int(result[0].sum())") == 32 << 20
    cramped.run("%shm_strategy file_descriptor").check()


def test_a_small_dev_shm_is_told_only_where_tensors_have_names_in_it(cramped: Kernel) -> None:
    cramped.run("""
    import torch.multiprocessing as mp
    def fill(_, tensor): tensor.fill_(1)
    tensor, other = torch.zeros(32 << 20), torch.zeros(32 << 20)
    """).check()
    cramped.run("mp.spawn(fill, (tensor,))").check()
    assert cramped.value("int(tensor.sum())") == 32 << 20
    cramped.run("%shm_strategy file_system").check()
    told = cramped.run("mp.spawn(fill, (other,))").error[1]
    assert "128.0 MiB needed, 64.0 MiB left in /dev/shm. Make /dev/shm larger: docker run --shm-size" in told
    assert cramped.value("[name for name in os.listdir('/dev/shm') if name.startswith('torch_')]") == []
    assert cramped.value("int(other.sum())") == 0
    cramped.run("%shm_strategy file_descriptor").check()


def test_a_small_dev_shm_is_no_limit_for_the_batches_of_a_loader(cramped: Kernel) -> None:
    cramped.run("""
    from torch.utils.data import DataLoader, TensorDataset
    data = TensorDataset(torch.arange(6.0)[:, None].expand(6, 5_000_000))
    loader = DataLoader(data, batch_size=2, num_workers=2)
    assert [batch[0][:, -1].tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]
    import threading  # those that fed the loader's queues have semaphores of them until they end
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread": thread.join(20)
    assert free() == 64 << 20
    """).check()


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_room_that_others_have_taken_meanwhile_is_as_none_at_all(cramped: Kernel, strategy: str) -> None:
    cramped.run(f"%shm_strategy {strategy}").check()
    reply = cramped.run("""
    import nbshm.memory.tensors.torch_limits
    from unittest import mock
    big = torch.ones(32 << 20)
    with mock.patch("nbshm.memory.tensors.torch_limits.shared_memory_left", lambda: None):
        big.share_memory_()
    """)
    assert (reply.error is None) is (strategy == "file_descriptor")
    assert cramped.value("(int(big.sum()), big.is_shared())") == (32 << 20, strategy == "file_descriptor")
    assert cramped.value("[name for name in os.listdir('/dev/shm') if name.startswith('torch_')]") == []
    cramped.run("%shm_strategy file_descriptor").check()


@pytest.mark.soak
def test_two_gigabytes_fit_beside_a_small_dev_shm(cramped: Kernel) -> None:
    write_and_read(cramped, 2 << 30)


def test_a_result_that_the_notebook_may_not_map_says_so_and_loses_nothing(notebook: Kernel) -> None:
    notebook.run("import resource\nimport numpy as np\nkept = np.zeros(2)").check()
    notebook.run("%%parallel nprocs=2\nrank").check()
    notebook.run(
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_AS)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), hard))"
    ).check()
    own = "resource.setrlimit(resource.RLIMIT_AS, (hard, hard))"
    reply = notebook.run(f"%%parallel nprocs=2\n{own}\nkept[rank] = 1\nnp.ones(50 << 20)", timeout=100)
    assert reply.error is not None
    assert reply.error[0] == "NoRoom"
    assert "400.0 MiB needed" in reply.error[1]
    assert "(RLIMIT_AS). Raise the limit (ulimit -v)" in reply.error[1]
    assert notebook.value("kept.tolist()") == [1.0, 1.0]
    assert notebook.run("%%parallel nprocs=2\nrank").check().result == {"text/plain": "[0, 1]"}


def test_a_system_without_memfds_is_told_of_wherever_one_is_needed(notebook: Kernel) -> None:
    notebook.run("""
    import errno, os, nbshm, numpy as np
    memfd_create = os.memfd_create
    def refuse(name): raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    os.memfd_create = refuse
    array = np.zeros(4000)
    """).check()
    for cell in ("nbshm.share(array)", "nbshm.zeros(9)", "%%parallel\narray[rank] = 1", "%%parallel\nrank"):
        name, story, traceback = notebook.run(cell).error
        assert (name, story.partition(" (")[0]) == (
            "ParallelError",
            "memory can't be shared on this system: it refuses memfd_create",
        )
        assert "File" not in traceback
    notebook.run("os.memfd_create = memfd_create").check()
    notebook.run("%%parallel nprocs=2\narray[rank] = 1").check()
    assert notebook.value("float(array.sum())") == 2.0
