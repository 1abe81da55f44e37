"""The whole output is kept, and nothing of it is left behind."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

from nbshm.events import Output
from nbshm.views.transcript import Transcript


def test_everything_can_be_read_by_rank_in_the_order_of_arrival(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    transcript.write(Output(rank=0, stream="stdout", text="a\r"))
    transcript.write(Output(rank=1, stream="stdout", text="é"))
    transcript.write(Output(rank=0, stream="stderr", text="b\n"))
    assert transcript.read(0) == "a\rb\n"
    transcript.write(Output(rank=0, stream="stdout", text="c"))
    assert transcript.read(0) == "a\rb\nc"
    assert transcript.read(1) == "é"
    assert transcript.read(2) == ""
    transcript.close()


def test_much_output_is_on_disk_without_a_name(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    for _ in range(100):
        transcript.write(Output(rank=0, stream="stdout", text="x" * 10_000))
    assert len(open_files(tmp_path)) == 1
    assert list(tmp_path.iterdir()) == []
    assert transcript.read(0) == "x" * 1_000_000
    transcript.close()


def test_a_forgotten_transcript_gives_back_its_descriptor(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    transcript.write(Output(rank=0, stream="stdout", text="x" * 100_000))
    assert len(open_files(tmp_path)) == 1
    del transcript
    gc.collect()
    assert open_files(tmp_path) == []


def test_where_the_disk_is_full_the_output_says_that_it_is_cut(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))  # Python takes no notice of the signal
    try:
        for _ in range(30):
            transcript.write(Output(rank=0, stream="stdout", text="€" * 3_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    text = transcript.read(0)
    assert text.strip("€") == "\n[what followed could not be kept: File too large]\n"
    assert text.count("€") == ((64 << 10) + 100_000) // 3
    transcript.close()


def test_a_closed_transcript_is_empty(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    transcript.write(Output(rank=0, stream="stdout", text="x"))
    transcript.close()
    assert transcript.read(0) == ""


def open_files(directory: Path) -> list[str]:
    """Where descriptors of this process lead into the directory; the one that lists them is gone by then."""
    places = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    return [place for place in places if place.startswith(str(directory))]
