"""What is asked of CUDA, and what is made of its answers; here a stand-in gives them."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest
import torch
from torch.multiprocessing.reductions import rebuild_cuda_tensor

from nbshm.jobs import CudaHandle, Parcel
from nbshm.memory import cuda
from nbshm.memory.buffers import Buffers
from nbshm.memory.lending import Lendings
from nbshm.memory.storages import reduce_storage
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


def test_a_handle_is_made_once_for_as_long_as_the_memory_is_the_same(monkeypatch):
    made = iter([HANDLE, HANDLE._replace(counter=1)])
    monkeypatch.setattr(cuda, "_share", lambda _: next(made))
    one = storage()
    assert [cuda.handle_of(one).counter for _ in range(2)] == [0, 0]
    one.resize_(1 << 20)
    assert cuda.handle_of(one).counter == 1


def test_what_cuda_does_not_hand_over_is_refused_in_its_words(monkeypatch):
    def share(_):
        raise RuntimeError("cudaMallocAsync does not support it.\nCUDA kernel errors might be ...")

    monkeypatch.setattr(cuda, "_share", share)
    with pytest.raises(
        Unshareable, match=r"not hand it over \(cudaMallocAsync does not support it\)\. Use its "
    ):
        cuda.handle_of(storage())


def test_what_was_received_is_lent_as_a_clone(monkeypatch):
    received = storage()

    def share(asked):
        if asked is received:
            raise RuntimeError(
                "Attempted to send CUDA tensor received from another process; consider cloning"
            )
        return HANDLE

    monkeypatch.setattr(cuda, "_share", share)
    monkeypatch.setattr(cuda, "finish_on", lambda _: None)
    mine, handle = cuda.lent(received)
    assert mine is not received
    assert handle == HANDLE


def test_what_can_not_be_opened_says_what_must_be_so(monkeypatch):
    def fail(_):
        raise RuntimeError("CUDA error: invalid argument\nmore")

    monkeypatch.setattr(cuda, "_open", fail)
    with pytest.raises(
        RuntimeError, match=r"on cuda:0 can't be opened here: CUDA error: invalid argument\. That"
    ):
        cuda.opened(HANDLE)


def test_the_files_of_counts_are_removed_by_name(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(cuda, "_counts", {HANDLE.counter_file, b"/torch_gone"})
    (tmp_path / "torch_1_2_3").touch()
    (tmp_path / "torch_of_another").touch()
    cuda.remove_counts(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["torch_of_another"]


def test_a_parcel_tells_whether_the_sender_must_stay():
    assert Parcel(pickled=b"", cuda=(0, HANDLE)).is_lent
    assert not Parcel(pickled=b"", cuda=(0,)).is_lent


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


def test_what_is_lent_is_held_until_its_borrower_has_ended(monkeypatch):
    taken_off: list[CudaHandle] = []
    monkeypatch.setattr(cuda, "_share", lambda _: HANDLE)
    monkeypatch.setattr(cuda, "take_off", taken_off.append)
    lendings, borrower = Lendings(), Borrower()
    lendings.lend(storage(), borrower.keep)
    assert len(lendings.look()) == 1
    borrower.end()
    assert lendings.look() == []
    assert taken_off == [HANDLE]


def test_without_a_line_each_lending_has_a_count_of_its_own(monkeypatch):
    made = iter([HANDLE, HANDLE._replace(counter=1)])
    monkeypatch.setattr(cuda, "_share", lambda _: next(made))
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
