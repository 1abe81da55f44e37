"""The notebook as a process knows it, and what workers take over with it.

| room | what happens in it |
|---|---|
| `namespace.py` | its names, what is known of its cells, and what did not travel |
| `lifts.py` | its definitions that have been lifted before, as long as they are the same |
| `cells.py`, `cell_numbers.py` | where the body lies in the cell that runs now; the numbers of all cells |
| `syntax_errors.py` | a parallel cell that does not compile |
| `local_modules.py` | the person's own files that were edited since their import |
| `located_modules.py` | modules that importing their names would not find, and a finder for them |
| `surroundings.py` | what workers take over: directory, paths, environment, filters, levels |
| `libraries.py`, `seeds.py` | and the state of libraries, and random seeds |
| `colormaps.py` | and what has been registered with matplotlib |
"""
