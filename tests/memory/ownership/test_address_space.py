from __future__ import annotations

import mmap
import os
from multiprocessing import get_context, shared_memory
from pathlib import Path

import numpy as np
import torch
from memory_notebook import Notebook, address_of

from nbshm.memory.ownership import address_space
from nbshm.memory.ownership.address_space import AddressSpace, resident


def test_memory_that_torch_shares_already_is_handed_over_itself(notebook: Notebook):
    tensor = notebook["t"] = torch.zeros(3).share_memory_()
    _, placement = notebook.place("t")
    with placement:
        assert not any(spot.back for spot in placement._spots)
    (result,) = notebook.run("t[0] = 1; result = t", "t")
    assert tensor.tolist() == [1, 0, 0]
    assert result.untyped_storage() is tensor.untyped_storage()
    assert tensor.is_shared()


def test_memory_that_torch_shares_by_name_is_handed_over_itself(notebook: Notebook):
    torch.multiprocessing.set_sharing_strategy("file_system")
    try:
        tensor = notebook["t"] = torch.zeros(3).share_memory_()
    finally:
        torch.multiprocessing.set_sharing_strategy("file_descriptor")
    other = tensor.numpy()
    notebook.run("t[0] = 1", "t")
    assert other.tolist() == [1, 0, 0]
    assert len(notebook.segments) == 0


def test_an_array_in_named_shared_memory_is_the_same_memory_in_the_worker(notebook: Notebook):
    named = shared_memory.SharedMemory(create=True, size=4096)
    try:
        array = notebook["a"] = np.ndarray((4,), "f8", buffer=named.buf, offset=64)
        notebook["name"] = named.name
        (result,) = notebook.run(
            "import mmap, os\n"
            "with open('/dev/shm/' + name, 'r+b') as file: content = mmap.mmap(file.fileno(), 0)\n"
            "a[0] = 5; result = np.frombuffer(content, count=1, offset=64)[0]",
            "a",
            "name",
        )
        assert result == array[0] == 5
        notebook.namespace.clear()
        del array
    finally:
        named.close()
        named.unlink()


def test_a_device_that_memory_is_mapped_from_is_not_handed_over(monkeypatch):
    status = Path(os.devnull).stat()
    mapped = address_space._Mapped(
        start=0, end=4096, flags="rw-s", offset=0, device=status.st_dev, inode=status.st_ino, path=os.devnull
    )
    monkeypatch.setattr(address_space, "_read_mappings", lambda: [mapped])
    with AddressSpace() as space:
        assert space.shared_file(0, 16) is None
        assert space.is_writeable(0, 16)


def test_an_array_over_shared_ctypes_is_handed_over_itself(notebook: Notebook):
    shared = get_context("spawn").Array("d", 3, lock=False)
    notebook["a"] = np.frombuffer(shared)
    notebook.run("a[0] = 5", "a")
    assert shared[0] == 5
    assert len(notebook.segments) == 0
    notebook.namespace.clear()


def test_private_and_anonymous_memory_has_no_file_to_hand_over():
    with AddressSpace() as space, mmap.mmap(-1, 4096) as anonymous:
        private = bytearray(4096)
        assert space.shared_file(address_of(anonymous), 10) is None
        assert space.shared_file(address_of(private), 10) is None
        assert space.is_writeable(address_of(anonymous), 4096)


def test_memory_is_writeable_only_if_all_of_it_is(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 8192)
    mapped = np.memmap(file, np.uint8, "r")
    address = mapped.__array_interface__["data"][0]
    with AddressSpace() as space:
        assert not space.is_writeable(address, 8192)
        assert not space.is_writeable(0, 10)


def test_a_file_that_was_replaced_is_not_taken_for_the_mapped_one(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 4096)
    fd = os.open(file, os.O_RDWR)
    with mmap.mmap(fd, 4096) as mapped, AddressSpace() as space:
        os.close(fd)
        (tmp_path / "new").write_bytes(b"y" * 4096)
        (tmp_path / "new").replace(file)
        found = space.shared_file(address_of(mapped), 10)
        assert found is None or os.pread(found[0].fd, 1, 0) == b"x"


def test_pages_that_nobody_has_touched_take_no_room():
    array = np.zeros(4 << 20)
    address = array.__array_interface__["data"][0]
    assert resident(address, array.nbytes) <= array.nbytes // 16
    array[: 2 << 20] = 1
    assert abs(resident(address, array.nbytes) - array.nbytes // 2) <= array.nbytes // 16
    assert resident(address, 100) == 100


def test_where_pages_can_not_be_seen_all_are_taken_to_be_there(monkeypatch):
    def refuse(*_):
        raise PermissionError

    array = np.zeros(4 << 20)
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", refuse)
        assert resident(array.__array_interface__["data"][0], array.nbytes) == array.nbytes
