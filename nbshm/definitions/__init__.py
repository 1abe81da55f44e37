"""Text: what a cell needs and how it is written down.

| room | which names code uses |
|---|---|
| `names.py` | what a piece of code reads and binds: the house's door for text |
| `scopes.py` | what a scope uses of those around it |
| `flow.py` | which names are settled where in it |
| `bindings.py` | which names it binds |
| `uses.py` | a use of a name, as data |
| `annotations.py` | names in annotations |
| `escapes.py` | magics and shell escapes, written out as code |

| room | what a cell writes into |
|---|---|
| `writes.py` | items, attributes, calls of methods that change |
| `reads.py` | which names it reads otherwise than for that |
| `loops.py` | what the variables of its loops go through |
| `steps.py` | the steps from a name to a part of its value |
| `nodes.py` | walks through its text |

| room | how a definition is written down |
|---|---|
| `lifting.py` | its source, and the live state beside that |
| `sources.py` | the statement that it came from |
| `evidence.py` | what a class says about the statement that may have made it |
| `statements.py` | the statements in a cell's text |
| `states.py` | what was done to it after its statement ran |
| `registers.py` | what registers of libraries have for it |
| `live.py` | the expressions in it whose value the notebook has |
| `live_values.py` | these values, where a worker would come to others |

| room | what has no statement to be written down |
|---|---|
| `by_value.py` | functions without an importable home |
| `returned.py` | functions that a parallel cell gives back |
| `standard_objects.py` | objects of libraries that pickle would carry as something else |
| `weak_references.py` | weak references, and what they lead to |
"""
