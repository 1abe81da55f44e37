"""Workers made ahead find the notebook as it is when they are needed."""

from __future__ import annotations

STOOD_BY = """
import time
import nbshm.extension
standby, limit = nbshm.extension.current_session().launcher._standby, time.monotonic() + 30
while not standby:
    assert time.monotonic() < limit
    time.sleep(0.01)
one = standby._ready[0]._popen.pid
"""


def test_what_changed_while_a_worker_stood_by_is_what_it_finds(notebook, tmp_path):
    notebook.run("import multiprocessing, os, sys\n%parallel standby=1").check()
    notebook.run(STOOD_BY, timeout=60).check()
    notebook.run(
        f"sys.argv.append('later'); os.chdir({str(tmp_path)!r}); os.environ['LATER'] = 'yes'\n"
        "multiprocessing.current_process().authkey = b'later'\n"
        "multiprocessing.set_start_method('spawn')"
    ).check()
    cell = (
        "%%parallel nprocs=1\n"
        "(sys.argv[-1], os.getcwd(), os.environ['LATER'], bytes(multiprocessing.current_process().authkey),"
        " multiprocessing.get_start_method(), os.getpid() == one)"
    )
    notebook.run(cell).check()
    assert notebook.value("Out[max(Out)][0]") == ("later", str(tmp_path), "yes", b"later", "spawn", True)
