"""Every form of torch's multiprocessing runs what the notebook defines."""

from __future__ import annotations

import pytest
from kernels import Kernel

SETUP = """
import dataclasses, torch, torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info
mp.set_forkserver_preload(["torch"])
@dataclasses.dataclass
class Row:
    x: int
scale = 3
def triple(x): return Row(scale * x)
def ranked(rank, queue): queue.put(Row(rank))
class Squares(Dataset):
    def __len__(self): return 6
    def __getitem__(self, i): return i * i * scale
class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, 6, info.num_workers))
class Backwards(Sampler):
    def __init__(self, data): self.data = data
    def __iter__(self): return iter(reversed(range(len(self.data))))
    def __len__(self): return len(self.data)
def collate(items): return Row(sum(items))
marks = torch.zeros(4).share_memory_()
def mark(i): marks[i] += 1
def all_forms(method, workers):
    marks.zero_()
    queue = mp.get_context(method).SimpleQueue()
    mp.start_processes(ranked, (queue,), nprocs=workers, start_method=method)
    assert sorted(queue.get().x for _ in range(workers)) == list(range(workers))
    with mp.get_context(method).Pool(1) as pool: assert pool.map(triple, [2]) == [Row(6)]
    options = dict(num_workers=workers, multiprocessing_context=method)
    loader = DataLoader(Squares(), batch_size=2, sampler=Backwards(Squares()), worker_init_fn=mark,
                        collate_fn=collate, persistent_workers=True, **options)
    for _ in range(2): assert [row.x for row in loader] == [123, 39, 3]
    assert marks.tolist() == [1] * workers + [0] * (4 - workers)
    stream = DataLoader(Stream(), batch_size=None, **options)
    assert sorted(int(x) for x in stream) == list(range(6))
"""


@pytest.fixture(scope="module")
def notebook(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run(SETUP).check()
    return shared_notebook


@pytest.mark.parametrize(("method", "workers"), [("forkserver", 2), ("spawn", 1)])
def test_every_form_runs_in_the_notebook(notebook: Kernel, method: str, workers: int) -> None:
    notebook.run(f"all_forms({method!r}, {workers})").check()


def test_every_form_runs_in_a_rank(notebook: Kernel) -> None:
    notebook.run(
        "%%parallel nprocs=1\nmp.set_forkserver_preload(['torch'])\nall_forms('forkserver', 2)"
    ).check()
