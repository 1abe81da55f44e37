"""What the forkserver of some tests preloads: it leaves the test's group, as `nbshm.worker.preload` does."""

import os

os.setpgid(0, 0)

import nbshm.worker.life  # noqa: E402, F401  # after the above, as in the module that this stands for
