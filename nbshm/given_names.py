"""Names in a notebook that are not the person's: IPython puts some there, and nbshm others into a cell."""

from __future__ import annotations

GIVEN_NAMES = frozenset({"rank", "nprocs", "nbshm"})
"""Names that a parallel cell is given, whatever the notebook has by them."""

SHADOWED_NAMES = frozenset({"exit", "quit", "get_ipython"})
"""Names that IPython puts into the notebook, but a person may have bound something else to them."""

IPYTHON_NAMES = SHADOWED_NAMES | {"In", "Out", "_ih", "_oh", "_dh", "__builtins__"}
"""Names that IPython puts into the notebook."""
