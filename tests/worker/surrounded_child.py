"""A process that is a kernel (captures surroundings) or a worker (applies them)."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    part, file, before, after = sys.argv[1:5]
    namespace: dict[str, Any] = {"__name__": "__main__", "result": None}
    exec(before, namespace)  # noqa: S102  # the test's own
    if part == "kernel":
        from nbshm.notebook.surroundings import capture_surroundings

        options = {"threads": None, "share": 2, "seed": None, "port": 29501, **namespace.get("options", {})}
        Path(file).write_bytes(pickle.dumps(capture_surroundings(**options)))
    else:
        from nbshm.worker.surroundings import apply_surroundings

        namespace["apply_surroundings"] = apply_surroundings
        namespace["surroundings"] = surroundings = pickle.loads(Path(file).read_bytes())
        apply_surroundings(surroundings, rank=namespace["rank"], nprocs=3)
    exec(after, namespace)  # noqa: S102  # likewise
    print(repr(namespace["result"]))
