"""Values: how each travels to the workers, and whose memory it is.

| room | how values are pickled |
|---|---|
| `capturing.py` | the pickler for the way out, which notes memory |
| `picklers.py` | what all picklers of values have in common |
| `reducers.py` | the reducers of one pickle |
| `buffers.py` | the memory that they note |
| `arrays.py` | how arrays travel |
| `masks.py` | the first mask of a masked array |
| `delegates.py` | how objects travel whose class has a `__getattr__` |
| `generators.py` | random generators that travel |

| room | what becomes of their memory |
|---|---|
| `decisions.py` | what is to be done with each piece |
| `fitting.py` | whether that fits |
| `placing.py` | doing it, and bringing back what ranks wrote |
| `sharing.py` | the same ahead of a cell, and for what can't be sent |
| `move_refusals.py` | why memory can't be moved |
| `inventory.py` | what is shared now, by name |

| room | how it is found again |
|---|---|
| `loading.py` | where values find their memory when they are unpickled |
| `mapping.py` | a worker's side of it |
| `parcels.py` | a worker's values on their way back |
| `homecoming.py` | their memory as the notebook's own |

Floors: `shared/` is the memory itself, `ownership/` what of the notebook holds it, `tensors/` all that knows
torch.
"""
