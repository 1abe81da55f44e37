"""One run from text to results.

In the order in which to read:

| room | what happens in it |
|---|---|
| `runner.py` | a run in the foreground: the houses called in order |
| `background.py` | a run that goes on while the notebook is used: the thread that supervises, and `job` |
| `under_way.py` | what both have in common: workers that have what they need, and what they say |
| `tasks.py` | what is to be run |
| `analysis.py` | what a cell needs from the notebook, from its text alone |
| `departures.py` | a job made ready to be sent, and the memory's way back |
| `arrivals.py` | what comes back: results by rank, or an error |
| `living.py` | the runs that are alive |
| `last.py` | the last run, as data |
| `times.py` | how its ranks spent their time, gathered from events |
| `time_report.py` | the same as a table and a picture |
| `foreword.py` | what is said before a run starts |
| `notes.py` | what is said of ranks that stand still, and that linger |
| `hints.py` | what the person can do about an error in a rank |
| `shared_collectives.py` | collectives that ranks call with the same memory |
| `private_writes.py` | which of a cell's writes stay in the ranks |
| `library_objects.py` | objects of libraries that each rank has a copy of its own of |
"""
