"""One kernel, one look at each thing: quick, and with any allowed version of what nbshm stands on."""

from __future__ import annotations

from kernels import Kernel


def test_a_parallel_cell_works_from_the_load_to_the_result(notebook: Kernel) -> None:
    notebook.run("import numpy as np, torch\ntensor, array = torch.zeros(2), np.zeros(2)").check()
    notebook.run("def double(x):\n    return 2 * x").check()
    source = "tensor[rank] = array[rank] = double(rank + 1)\nprint('hello', rank)\ndouble(rank)"
    reply = notebook.run(f"%%parallel nprocs=2\n{source}").check()
    assert reply.result == {"text/plain": "[0, 2]"}
    assert "[rank 1] hello 1" in reply.text
    assert notebook.value("(tensor.tolist(), array.tolist())") == ([2.0, 4.0], [2.0, 4.0])

    failed = notebook.run("%%parallel nprocs=2\nif rank == 1:\n    1 / 0")
    assert failed.error is not None
    assert failed.error[0] == "RankRaised"
    assert failed.error[1].startswith("rank 1 failed at In [6] line 3")
    assert "ZeroDivisionError" in failed.error[2]
    failed = notebook.run("%%parallel nprocs=2\ndouble(double)")
    assert failed.error is not None
    assert "----> 2     return 2 * x" in failed.error[2]
    notebook.run("file = open('/dev/null')").check()
    refused = notebook.run("%%parallel nprocs=2\nfile.read()")
    assert refused.error is not None
    assert refused.error[0] == "CannotSend"
    notebook.run("%unload_ext nbshm").check()
