"""The definitions and values that code needs, packed in the order in which a worker can build them.

All values of a run go through one pickler with one memo, so that what is one object in the notebook is one
object in the worker. A definition that needs a value when its statement *runs* finds it in the stream before
it; all other values follow the last definition. Which definitions there are, and in which order they can
stand, shows only while values are pickled (an instance deep in a list asks for its class). So packing is a
fixed point: a pass that meets a definition that has not been written yet learns it and starts again. One or
two passes are usual. In the order in which to read:

| room | what happens in it |
|---|---|
| `needs.py` | what is asked for |
| `fixed_point.py` | passes until one learns nothing: `pack` |
| `knowledge.py` | what one pass hands to the next |
| `one_pass.py` | one attempt to write everything down |
| `order.py` | each definition after what its statement needs to run |
| `circles.py` | definitions each of which must stand before another |
| `tail.py` | what is set after the last definition |
| `draft.py` | what a pass has written so far |
| `values.py` | the stream of values, and which of them can't travel |
| `references.py` | what the pickler is told about functions and classes |
| `imports.py` | the imports that a worker repeats |
| `forked_workers.py` | what a forked worker needs, which is memory alone |
| `reached_code.py` | the definitions that its values lead to |
"""

from __future__ import annotations

from nbshm.packing.fixed_point import Packed, pack
from nbshm.packing.needs import Needs
from nbshm.packing.references import Reference
from nbshm.packing.values import Pickler

__all__ = ["Needs", "Packed", "Pickler", "Reference", "pack"]
