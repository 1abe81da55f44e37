"""N workers, started together, supervised, always ended.

| room | how workers are started |
|---|---|
| `launcher.py` | the workers of a run, and what all runs share |
| `workers.py` | the kernel's handles on them |
| `newcomers.py` | a process from when it is asked for until it is a worker |
| `start_methods.py` | how each start method makes one |
| `servers.py`, `generations.py` | nbshm's own forkserver, each from its start to its end |
| `standby.py` | workers that stand by |
| `allowances.py`, `fork_limits.py` | what is asked before one is started |
| `semaphores.py` | locks that were made for forked children, for workers |
| `directories.py`, `trackers.py` | files and the resource tracker of multiprocessing |

| room | how they are supervised |
|---|---|
| `supervisor.py` | their doings as events |
| `course.py` | what has been said, what must be done, how it ended |
| `listeners.py`, `pipes.py` | what one worker says and prints |
| `selection.py` | waiting for any of them |
| `lookout.py`, `inquiries.py` | where those are that say nothing |
| `stillness.py` | whether the run stands still |
| `vitals.py` | what is known of one that dies |
| `barriers.py` | the run's barrier |
| `kernel_signals.py` | the kernel's interrupt meanwhile |

| room | how they end, and what is left of them |
|---|---|
| `endings.py` | the ladder by which one is ended |
| `farewells.py` | those that stay for others at their end |
| `lifelines.py` | the kernel's end of their lives |
| `bystanders.py`, `sweeping.py`, `keeping.py` | the small processes beside the kernel |
"""
