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
    assert "ZeroDivisionError" in failed.error[2]
    assert "UsageError" in notebook.run("%%parallel nprocs=0\nrank").stderr
    notebook.run("%unload_ext nbshm").check()
