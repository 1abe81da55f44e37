"""What is asked of CUDA, and what is made of its answers; here a stand-in gives them."""

from __future__ import annotations

import _posixshmem
import inspect
import itertools
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch.multiprocessing.reductions import rebuild_cuda_tensor

import nbshm
from nbshm.errors import CannotSend
from nbshm.jobs import CudaHandle, Parcel
from nbshm.memory.buffers import Buffers
from nbshm.memory.shared.segments import Segments
from nbshm.memory.tensors import cuda, plain_torch, torch_sharing
from nbshm.memory.tensors.lending import Lendings
from nbshm.memory.tensors.plain_torch import PlainTorch
from nbshm.memory.tensors.storages import rebuild_empty, reduce_storage
from nbshm.refusals import Unshareable
from nbshm.wire.readiness import wait_readable

HANDLE = CudaHandle(
    device=0,
    handle=b"handle",
    nbytes=4,
    offset=0,
    counter_file=b"/torch_1_2_3",
    counter=0,
    event=b"",
    must_wait=True,
)


OF_A_TENSOR = {
    "tensor_cls",
    "tensor_size",
    "tensor_stride",
    "tensor_offset",
    "storage_cls",
    "dtype",
    "requires_grad",
}


def storage() -> torch.UntypedStorage:
    return torch.ones(1).untyped_storage()


def test_torch_names_a_storage_by_what_a_handle_has_in_its_order():
    named = [name for name in inspect.signature(rebuild_cuda_tensor).parameters if name not in OF_A_TENSOR]
    assert dict(zip(CudaHandle._fields, named, strict=True)) == {
        "device": "storage_device",
        "handle": "storage_handle",
        "nbytes": "storage_size_bytes",
        "offset": "storage_offset_bytes",
        "counter_file": "ref_counter_handle",
        "counter": "ref_counter_offset",
        "event": "event_handle",
        "must_wait": "event_sync_required",
    }
    for method in ("_share_cuda_", "_new_shared_cuda", "_release_ipc_counter_cuda"):
        assert hasattr(torch.UntypedStorage, method)


@pytest.fixture
def share(monkeypatch):
    """Have `_share_cuda_` answer what the function given says; what is asked of CUDA is in the list."""

    def install(answer):
        asked: list = []
        released = staticmethod(lambda *counter: asked.append(("take one off", *counter)))
        monkeypatch.setattr(torch.UntypedStorage, "_share_cuda_", answer)
        monkeypatch.setattr(torch.UntypedStorage, "_release_ipc_counter_cuda", released)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda device: asked.append(("finish", device.type)))
        monkeypatch.setattr(cuda, "_counts", set())
        return asked

    return install


def numbered():
    """Return what makes handles whose counts are numbered from 0."""
    numbers = itertools.count()
    return lambda _: HANDLE._replace(counter=next(numbers))


def test_a_handle_is_made_once_for_as_long_as_the_memory_is_the_same(share):
    asked = share(numbered())
    one = storage()
    assert cuda.handle_of(one) is cuda.handle_of(one)
    one.resize_(1 << 20)
    cuda.handle_of(one)
    assert asked == [("take one off", b"/torch_1_2_3", 0), ("take one off", b"/torch_1_2_3", 1)]


def test_nobody_is_counted_where_the_storage_is_held(share):
    share(numbered())
    handle = cuda.handle_of(storage())
    assert not handle.must_wait
    with pytest.raises(OSError, match="Invalid argument"):
        _posixshmem.shm_open(os.fsdecode(handle.counter_file), os.O_RDWR | os.O_CREAT)


def test_a_count_is_made_for_each_handle_that_is_to_be_opened_once(share):
    asked = share(numbered())
    one = storage()
    handles = [cuda.counted_handle_of(one) for _ in range(2)]
    assert handles == [HANDLE, HANDLE._replace(counter=1)]
    assert asked == []


def test_what_has_no_memory_goes_without_a_handle(monkeypatch):
    monkeypatch.setattr(plain_torch, "is_on_cuda", lambda _: True)
    sender = PlainTorch(Segments(), keep=lambda _: None)
    assert sender.reduce(torch.UntypedStorage(0)) == (rebuild_empty, ("cpu",))


def test_what_cuda_does_not_hand_over_is_refused_in_its_words(share):
    def refuse(_):
        raise RuntimeError("cudaMallocAsync does not support it.\nCUDA kernel errors might be ...")

    share(refuse)
    with pytest.raises(
        Unshareable, match=r"not hand it over \(cudaMallocAsync does not support it\)\. Use its "
    ):
        cuda.handle_of(storage())


def test_what_was_received_is_lent_as_a_clone(share):
    received = storage()

    def answer(asked):
        if asked is received:
            raise RuntimeError(
                "Attempted to send CUDA tensor received from another process; consider cloning"
            )
        return HANDLE

    asked = share(answer)
    mine, handle = cuda.lent(received)
    assert mine is not received
    assert handle.handle == HANDLE.handle
    assert asked[0] == ("finish", "cpu")  # before it is cloned: another stream may write to it


def test_what_is_lent_is_finished_so_nobody_waits_for_it(share):
    share(numbered())
    _, handle = cuda.lent(storage(), cuda.counted_handle_of)
    assert not handle.must_wait


def test_what_is_lent_again_is_finished_again(share):
    asked = share(numbered())
    one = storage()
    for _ in range(2):
        cuda.lent(one)
    assert asked == [("take one off", b"/torch_1_2_3", 0), ("finish", "cpu"), ("finish", "cpu")]


def test_what_can_not_be_opened_says_what_must_be_so(monkeypatch):
    def fail(_):
        raise RuntimeError("CUDA error: invalid argument\nmore")

    monkeypatch.setattr(cuda, "_open", fail)
    with pytest.raises(
        RuntimeError, match=r"on cuda:0 can't be opened here: CUDA error: invalid argument\. That"
    ):
        cuda.opened(HANDLE)


def test_segments_that_expand_say_what_they_need(monkeypatch):
    def fail(_):
        raise RuntimeError("pidfd_getfd: Operation not permitted")

    monkeypatch.setattr(cuda, "_open", fail)
    with pytest.raises(RuntimeError, match=r"not permitted\. .* PYTORCH_CUDA_ALLOC_CONF=expandable_segments"):
        cuda.opened(HANDLE)


def test_the_files_of_counts_are_removed_by_name(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(cuda, "_counts", {HANDLE.counter_file, b"/torch_gone"})
    (tmp_path / "torch_1_2_3").touch()
    (tmp_path / "torch_of_another").touch()
    cuda.remove_counts(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["torch_of_another"]


ASK_CHILDREN = """
import multiprocessing
from nbshm.memory.tensors.cuda import _ends_abruptly
for method in ("fork", "forkserver", "spawn"):
    with multiprocessing.get_context(method).Pool(1) as pool:
        print(method, pool.apply(_ends_abruptly))
print("itself", _ends_abruptly())
"""


def test_torch_itself_removes_them_in_processes_that_are_not_forked():
    told = subprocess.run([sys.executable, "-c", ASK_CHILDREN], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["fork", "True", "forkserver", "True", "spawn", "False", "itself", "False"]


def test_a_parcel_tells_whether_the_sender_must_stay():
    assert Parcel(pickled=b"", cuda=(0, HANDLE)).is_lent
    assert not Parcel(pickled=b"", cuda=(0,)).is_lent


@pytest.mark.parametrize(
    ("make", "dense"),
    [
        (lambda: torch.arange(6.0)[2:], torch.clone),
        (lambda: torch.eye(2).to_sparse(), torch.Tensor.to_dense),
        (
            lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(1)]),
            lambda it: it.to_padded_tensor(0),
        ),
    ],
    ids=["strided", "sparse", "nested"],
)
def test_what_is_put_on_a_queue_goes_by_its_storages(make, dense):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nested tensors are a prototype
        made = make()
        rebuild, parts = torch_sharing._reduce_on_cuda(made)
        again = rebuild(*parts)
    assert dense(again).equal(dense(made))
    assert type(again) is torch.Tensor


def test_what_is_pinned_stays_and_says_why(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.UntypedStorage, "is_pinned", lambda _: True)
    with pytest.raises(CannotSend, match="it is pinned for a GPU, which shared memory is not"):
        nbshm.share(torch.ones(3))


def test_other_devices_are_refused_by_name():
    elsewhere = torch.UntypedStorage(4, device="meta")
    with pytest.raises(Unshareable, match=r"it is on meta, whose memory can't be shared\. Send its cpu"):
        reduce_storage(elsewhere, Buffers())


class Borrower:
    """Who has a line, which is closed with it, in whatever way it ends."""

    def keep(self, line: int) -> Borrower:
        self.line = os.dup(line)
        return self

    def end(self) -> None:
        os.close(self.line)


def test_what_is_lent_is_held_until_its_borrower_has_ended(share):
    share(numbered())
    lendings, borrower = Lendings(), Borrower()
    lendings.lend(storage(), borrower.keep)
    assert len(lendings.look()) == 1
    borrower.end()
    assert lendings.look() == []


def test_without_a_line_each_lending_has_a_count_of_its_own(share):
    share(numbered())
    lendings, lent = Lendings(), storage()
    handles = [lendings.lend(lent, lambda _: None)[1][0] for _ in range(2)]
    assert [handle.counter for handle in handles] == [0, 1]
    assert lendings.look() == []


def test_what_is_borrowed_is_given_back_when_it_is_dropped_or_on_demand(monkeypatch):
    finished: list[torch.device] = []
    monkeypatch.setattr(cuda, "_open", lambda _: storage())
    monkeypatch.setattr(cuda, "finish_on", finished.append)
    lendings = Lendings()
    (dropped, first), (demanded, second) = os.pipe(), os.pipe()
    one, other = (lendings.take((0, number), HANDLE, line) for number, line in enumerate((first, second)))
    del one
    assert wait_readable(dropped, 0)  # it has come to its end: nobody has the other one
    lendings.give_all_back()
    assert wait_readable(demanded, 0)
    assert finished == [other.device, other.device]
    for line in (dropped, demanded):
        os.close(line)
