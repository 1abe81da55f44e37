"""Loading, reloading and unloading the extension in a real kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from kernels import Kernel, kernel

CENSUS = """
import gc, os, signal, sys, threading, copyreg
import multiprocessing.reduction, multiprocessing.resource_tracker, multiprocessing.spawn
import ipywidgets, numpy as np, psutil, torch.multiprocessing
from multiprocessing.reduction import ForkingPickler
multiprocessing.resource_tracker.ensure_running()  # the standard library's own, which stays

def descriptors():
    links = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            links[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            pass
    own = ("sqlite", ".ipython")  # IPython's history is written whenever it likes
    return sorted(f"{fd} {link}" for fd, link in links.items() if not any(word in link for word in own))

def census():
    gc.collect()
    shell = get_ipython()
    return {
        "descriptors": descriptors(),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "children": sorted(child.pid for child in psutil.Process().children(recursive=True)),
        "magics": {kind: sorted(table) for kind, table in shell.magics_manager.magics.items()},
        "events": {name: list(callbacks) for name, callbacks in shell.events.callbacks.items()},
        "completion": list(shell.Completer.custom_matchers),
        "formatters": list(shell.display_formatter.formatters["text/html"].type_printers),
        "preparation": multiprocessing.spawn.get_preparation_data,
        "reducers": dict(ForkingPickler._extra_reducers),
        "copyreg": dict(copyreg.dispatch_table),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
        "hooks": [sys.excepthook, sys.displayhook, sys.stdout, sys.stderr, list(sys.meta_path)],
        "main": [sys.modules["__main__"], sys.modules.get("__mp_main__")],
        "start method": multiprocessing.get_start_method(allow_none=True),
    }

def differences():
    now = census()
    return {key: (before[key], now[key]) for key in before if before[key] != now[key]}
"""


@pytest.fixture
def bare(tmp_path: Path) -> Kernel:
    """A kernel that has everything in it but the extension."""
    with kernel(tmp_path, load=False) as running:
        running.run(CENSUS).check()
        # What the first import brings stays imported.
        running.run("%load_ext nbshm\n%unload_ext nbshm").check()
        running.run("before = census()").check()
        yield running


def test_loading_is_quick_and_imports_nothing_heavy(tmp_path: Path) -> None:
    source = """
import sys, time
start = time.process_time()
get_ipython().run_line_magic("load_ext", "nbshm")
seconds = time.process_time() - start
heavy = [name for name in ("torch", "numpy", "ipywidgets") if name in sys.modules]
"""
    seconds = []
    for _ in range(3):
        with kernel(tmp_path, load=False) as running:
            running.run(source).check()
            seconds.append(running.value("seconds"))
            assert running.value("heavy") == []
    assert min(seconds) < 0.2  # of this process: what else the machine does is no matter


def test_unloading_takes_everything_back(bare: Kernel) -> None:
    bare.run("%load_ext nbshm\n%load_ext nbshm\n%reload_ext nbshm").check()
    assert bare.run("%%parallel nprocs=2\nrank").check().result == {"text/plain": "[0, 1]"}
    bare.run("%unload_ext nbshm").check()
    assert bare.run("print(differences())").check().stdout == "{}\n"
    assert "not found" in bare.run("%%parallel nprocs=2\nrank").stderr


def test_what_a_run_shared_outlives_the_extension_and_nothing_else_does(bare: Kernel) -> None:
    bare.run("import nbshm\n%load_ext nbshm\ntensor, array = torch.zeros(1000), np.zeros(1000)").check()
    bare.run("%%parallel nprocs=2\ntensor[rank] = array[rank] = 1\nprint('said')").check()
    bare.run("last = nbshm.last\n%unload_ext nbshm").check()
    assert bare.value("nbshm.last is None") is True
    assert bare.value("(tensor[:3].tolist(), array[:3].tolist(), last.output(0))") == (
        [1.0, 1.0, 0.0],
        [1.0, 1.0, 0.0],
        "said\n",
    )
    bare.run("%load_ext nbshm").check()
    bare.run("%%parallel nprocs=2\ntensor[rank] += 1\narray[rank] += 1").check()
    assert bare.value("(tensor[:3].tolist(), array[:3].tolist())") == ([2.0, 2.0, 0.0], [2.0, 2.0, 0.0])
    bare.run("%unload_ext nbshm\ndel tensor, array, last").check()
    assert bare.run("print(differences())").check().stdout == "{}\n"


FAMILY = """
def is_open(fd):
    return os.path.exists(f"/proc/self/fd/{fd}")

def lost_by_descendants(generations):
    mine = [fd for _ in range(20) for fd in os.pipe()]
    child = os.fork()
    if child == 0:
        lost = sum(not is_open(fd) for fd in mine)
        os._exit(lost or generations and lost_by_descendants(generations - 1))
    for fd in mine: os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def test_forked_children_close_no_descriptors_but_those_of_the_extension(bare: Kernel) -> None:
    bare.run("%load_ext nbshm\n" + FAMILY).check()
    bare.run("%%parallel nprocs=1\npass").check()
    assert bare.value("lost_by_descendants(generations=2)") == 0
    bare.run("%unload_ext nbshm").check()
    assert bare.value("lost_by_descendants(generations=0)") == 0


def test_unloading_ends_a_run_that_is_alive(bare: Kernel) -> None:
    source = """
%load_ext nbshm
import threading
os.mkfifo("begun")
def unload_when_it_runs():
    open("begun").close()  # waits for a rank to open the other end
    get_ipython().extension_manager.unload_extension("nbshm")
unloading = threading.Thread(target=unload_when_it_runs)
unloading.start()
"""
    bare.run(source).check()
    cell = """%%parallel nprocs=2
import pathlib, time
try:
    nbshm.barrier()
    if rank == 0:
        open("begun", "w").close()
    time.sleep(60)
finally:
    pathlib.Path(f"ended {rank}").touch()
"""
    reply = bare.run(cell)
    assert reply.error is not None
    assert reply.error[0] == "RunInterrupted"
    bare.run("unloading.join(); del unloading").check()
    assert bare.run("print(differences())").check().stdout == "{}\n"
    assert sorted(path.name for path in bare.directory.glob("ended *")) == ["ended 0", "ended 1"]


def test_a_kernel_that_is_shut_down_during_a_run_leaves_no_process(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    with kernel(tmp_path) as running:
        running.send("%%parallel nprocs=2\nimport time\nopen('begun', 'w').close()\ntime.sleep(60)")
        (tmp_path / "begun").open().close()  # waits for a rank to open the other end
        process = psutil.Process(running.pid)
        processes = [process, *process.children(recursive=True)]
        assert len(processes) >= 5  # two workers, their forkserver and the sweeper
        running.manager.shutdown_kernel()
        _, alive = psutil.wait_procs(processes, timeout=30)
        assert alive == []


def test_only_public_names_are_offered(notebook: Kernel) -> None:
    notebook.run("import nbshm").check()
    message = notebook.client.complete("nbshm.", 6)
    while True:
        reply = notebook.client.get_shell_msg(timeout=30)
        if reply["parent_header"]["msg_id"] == message:
            break
    offered = sorted(match.removeprefix("nbshm.").removeprefix(".") for match in reply["content"]["matches"])
    assert offered == notebook.value("nbshm.__all__")
    assert notebook.value("[name for name in nbshm.__all__ if getattr(nbshm, name) is None]") == ["last"]


EMBEDDING = """
import IPython
factor = 5
def times(x): return x * factor
def embed():
    shift = 1
    IPython.embed(colors="NoColor")
if __name__ == "__main__":
    embed()
"""
EMBEDDED = (
    "nbshm: this shell is embedded in other code. A parallel cell has the shell's names, which %who lists; "
    "`from __main__ import *` makes those of the module such names. A pool can't be sent functions that are "
    "defined here."
)


@pytest.mark.parametrize("place", ["in a function", "in a module"])
def test_a_shell_with_names_beside_its_modules_is_told_which_are_known(tmp_path: Path, place: str) -> None:
    lines = ["%load_ext nbshm"]
    script = tmp_path / "script.py"
    if place == "in a module":
        script.write_text(EMBEDDING.replace("    embed()", '    shift = 1; IPython.embed(colors="NoColor")'))
    else:
        script.write_text(EMBEDDING)
        lines.append("from __main__ import *")
    cell = "print('found', [times(i) + shift for i in range(3)])"
    lines += [f"get_ipython().run_cell_magic('parallel', 'nprocs=2', {cell!r})", "exit"]
    text = subprocess.run(
        [sys.executable, script],
        input="\n".join([*lines, ""]),
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    ).stdout
    assert "found [1, 6, 11]" in text
    assert (EMBEDDED in text) is (place == "in a function")
