"""What ranks print and show arrives whole and in order, last words and floods too; floods stay bounded."""

from __future__ import annotations

import re

import pytest

METHODS = ("forkserver", "spawn", "fork")

EVERY_WAY = """%%parallel nprocs=2 start_method={method}
import subprocess
print("by print")
os.write(1, b"by descriptor 1\\n")
os.write(2, b"by descriptor 2\\n")
print("by stderr", file=sys.stderr)
ctypes.CDLL(None).puts(b"by C")
ctypes.CDLL(None).fflush(None)
subprocess.run(["echo", "by a child"])
!echo by the shell
child = mp.get_context("fork").Process(target=print, args=("by a fork",), kwargs=dict(flush=True))
child.start(); child.join()
for step in range(1000):
    print(f"\\rstep {{step}}", end="", file=sys.stderr, flush=True)
print(file=sys.stderr)
nbshm.barrier()
{end}
"""
WAYS = ["print", "descriptor 1", "descriptor 2", "stderr", "C", "a child", "the shell", "a fork"]


@pytest.mark.parametrize("method", METHODS)
def test_all_that_is_written_is_shown_in_order_however_it_was_written(prepared, method):
    text = prepared.run(EVERY_WAY.format(method=method, end="")).check().text
    for way in WAYS:
        assert len(re.findall(rf"by {way}$", text, re.MULTILINE)) == 1, text  # both ranks folded
    to_stdout = [way for way in WAYS if way not in {"descriptor 2", "stderr"}]
    positions = [text.index(f"by {way}\n") for way in to_stdout]
    assert positions == sorted(positions), text
    assert text.index("by descriptor 2") < text.index("by stderr")
    assert "step 999" in text
    assert len(text) < 2000  # a bar is one line
    prepared.run("import nbshm").check()
    whole = prepared.value("nbshm.last.output(1)")
    assert [way for way in WAYS if f"by {way}" not in whole] == []
    assert "\rstep 500\r" in whole


UNHEARD = (
    "[ranks 0-1] nbshm: logging handlers are not carried over, so what is logged below WARNING is not shown. "
    "Call logging.basicConfig() in the cell.\n"
)
LOUD = "[ranks 0-1 stderr] loud\n"
HEARD = "[ranks 0-1 stderr] INFO:own:quiet\n" * 2 + "[ranks 0-1 stderr] WARNING:own:loud\n"


@pytest.mark.parametrize(
    ("configured", "inside", "shown"),
    [
        ("logging.basicConfig(level=logging.INFO)", "", UNHEARD + LOUD),
        ("logging.basicConfig(level=logging.INFO)", "logging.basicConfig()", HEARD),
        ("own.setLevel(logging.INFO); own.addHandler(print_it)", "", UNHEARD + LOUD),
        ("own.setLevel(logging.INFO); own.addHandler(print_it)", "logging.basicConfig()", HEARD),
        (
            "own.setLevel(logging.INFO); own.addHandler(logging.NullHandler())",
            "",
            LOUD,
        ),
        ("", "", LOUD),
    ],
)
def test_what_no_handler_takes_is_told_where_the_notebook_has_one(prepared, configured, inside, shown):
    prepared.run(
        "import logging; own = logging.getLogger('own'); print_it = logging.StreamHandler()\n" + configured
    ).check()
    try:
        log = "own.info('quiet')\nown.info('quiet')\nown.warning('loud')"
        assert prepared.run(f"%%parallel nprocs=2\n{inside}\n{log}").check().text == shown
    finally:
        prepared.run(
            "logging.root.handlers.clear(); logging.root.setLevel(logging.WARNING)\n"
            "own.handlers.clear(); own.setLevel(logging.NOTSET)"
        ).check()


@pytest.mark.parametrize(
    "end", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGKILL)", "ctypes.string_at(0)"]
)
@pytest.mark.parametrize("method", METHODS)
def test_last_words_without_a_line_end_are_not_lost(prepared, method, end):
    reply = prepared.run(f"""%%parallel nprocs=2 start_method={method}
if rank == 1:
    for number in range(5000):
        print("word", number)
    print("my last words", end="")
    sys.stderr.write("and on stderr")
    {end}
nbshm.barrier()
""")
    assert reply.error[0] == "RankDied"
    assert "my last words" in reply.text
    assert "and on stderr" in reply.text
    prepared.run("import nbshm").check()
    whole = prepared.value("[line for line in nbshm.last.output(1).splitlines() if line.startswith('word ')]")
    assert whole == [f"word {number}" for number in range(5000)]


def test_what_goes_on_to_the_very_end_of_a_rank_has_the_names_that_it_uses(prepared):
    prepared.run("""
import atexit
@atexit.register
def say_goodbye():
    try: print("goodbye,", audience)
    except NameError: pass  # the notebook itself has none
""").check()
    reply = prepared.run("""%%parallel nprocs=1 start_method=spawn
say_goodbye  # which registers itself here, too
audience, steps = "world", 0
def count():
    global steps
    while True: steps += 1
threading.Thread(target=count, daemon=True).start()
""").check()
    assert reply.text == "goodbye, world\n"


def test_a_flood_is_bounded_in_the_kernel_and_in_the_notebook_and_whole_on_the_last_run(prepared):
    prepared.run("import nbshm, psutil\nresident = psutil.Process().memory_info().rss").check()
    reply = prepared.run(
        """%%parallel nprocs=2
for number in range(500_000):
    print("line", rank, number)
""",
        timeout=110,
    ).check()
    grown = prepared.value("psutil.Process().memory_info().rss - resident")
    assert grown < 50 << 20, f"{grown >> 20} MB"
    assert len(reply.text) < 2 * 300 << 10
    assert "line 0 0" in reply.text
    assert "line 0 499999" in reply.text
    assert "lines left out; nbshm.last.output(rank) has them all" in reply.text
    check = "nbshm.last.output(%d) == ''.join(f'line %d {n}\\n' for n in range(500_000))"
    assert prepared.value(check % (0, 0))
    assert prepared.value(check % (1, 1))


def test_a_line_without_end_is_bounded(prepared):
    prepared.run("import nbshm, psutil\nresident = psutil.Process().memory_info().rss").check()
    prepared.run(
        "%%parallel nprocs=1\nfor _ in range(1000): sys.stdout.write('x' * 100_000)", timeout=110
    ).check()
    grown = prepared.value("psutil.Process().memory_info().rss - resident")
    assert grown < 50 << 20, f"{grown >> 20} MB"


@pytest.mark.parametrize("method", METHODS)
def test_rich_output_comes_in_its_place(prepared, method):
    reply = prepared.run(f"""%%parallel nprocs=1 start_method={method}
%matplotlib inline
import matplotlib.pyplot as plt
from IPython.display import HTML, Image
print("before")
display(HTML("<b>bold</b>"))
print("between")
plt.plot([1, 2, 3])
plt.show()
print("after")
""").check()
    everything = [part for data in reply.displays for part in data.values()]
    assert any("<b>bold</b>" in part for part in everything if isinstance(part, str))
    shown = str(reply.displays)
    places = [shown.index("before"), shown.index("<b>bold</b>"), shown.index("between"), shown.index("after")]
    assert places == sorted(places)
    assert "image/png" in shown
    assert shown.index("between") < shown.index("image/png") < shown.rindex("after")


def test_a_figure_that_nobody_shows_is_shown_at_the_end_of_each_rank(prepared):
    reply = prepared.run("""%%parallel nprocs=2
%matplotlib inline
import matplotlib.pyplot as plt
plt.plot([rank, 2, 3])
None
""").check()
    assert str(reply.displays).count("image/png") == 2


def test_what_is_compiled_in_a_spawned_rank_says_nothing_at_its_end(prepared):
    body = (
        "import torch\n@torch.compile(backend='eager')\ndef double(x): return 2 * x\ndouble(torch.ones(1));"
    )
    assert prepared.run(f"%%parallel nprocs=1 start_method=spawn\n{body}").check().text == ""
