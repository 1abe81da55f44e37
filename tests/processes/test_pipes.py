from __future__ import annotations

import os

import pytest

from nbshm.processes.pipes import OutputPipe


@pytest.fixture
def pipe():
    read_end, write_end = os.pipe()
    yield OutputPipe(read_end), write_end
    os.close(read_end)
    os.close(write_end)


def test_what_is_not_there_is_not_waited_for(pipe):
    reader, _ = pipe
    assert reader.read() == b""
    assert not reader.ended


def test_all_that_a_pipe_holds_is_read(pipe):
    reader, write_end = pipe
    os.write(write_end, b"x" * 65536)
    assert len(reader.read()) == 65536


def test_the_end_is_known():
    read_end, write_end = os.pipe()
    reader = OutputPipe(read_end)
    os.write(write_end, b"last")
    os.close(write_end)
    assert reader.read() == b"last"
    assert reader.ended
    os.close(read_end)


def test_a_character_waits_for_its_other_half(pipe):
    reader, _ = pipe
    assert (reader.decode(b"\xe2\x82"), reader.decode(b"\xac")) == ("", "€")


def test_bytes_that_are_no_text_are_shown_as_such(pipe):
    reader, _ = pipe
    assert reader.decode(b"a\xffb\xe2", final=True) == "a\\xffb\\xe2"
