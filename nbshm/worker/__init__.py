"""The child's side of the wall: what runs in a worker.

| room | a worker's life |
|---|---|
| `life.py` | set up, wait for a job, work, end |
| `lifeline.py` | its end when the kernel is gone |
| `kernel_interrupts.py` | the kernel's SIGINT |
| `standard_streams.py` | descriptors 0, 1 and 2 |
| `leaving.py` | what a forked worker leaves behind of the kernel |
| `trackers.py` | resource trackers, which must outlive it |
| `inheritance.py` | what programs inherit that it starts |
| `borrowers.py` | whom it stays for at its end |
| `huge_pages.py`, `preload.py`, `preload_training.py` | what a forkserver has ready for it |

| room | its work |
|---|---|
| `work.py` | build `__main__`, run the body, give back what came of it |
| `surroundings.py` | the notebook's directory, environment, seeds taken over |
| `thread_pools.py` | as many threads as it may have |
| `imports.py` | what is done when a module is imported |
| `main_module.py` | `__main__` built from a program |
| `value_stream.py`, `passing_over.py` | the program's values, and those of them that can't be rebuilt |
| `results.py`, `giving_back.py` | what it gives back, pickled and sent |
| `torch_memory.py`, `parameters.py` | what it does about torch's memory |
| `data_parallel.py`, `collectives.py` | `torch.distributed` over memory that all ranks share |

| room | the body's run |
|---|---|
| `bodies.py` | a body run in the shell, and the ways in which one ends |
| `forks.py` | processes that it has forked, and that have run on to its end |
| `shell.py`, `shell_parts.py` | IPython's shell, with nobody at it |
| `cells.py` | the body at its lines of the cell |
| `event_loops.py` | its top-level `await` |
| `streams.py`, `printing.py` | what it shows, and what it prints |
| `cell_warnings.py` | warnings by cell number |
| `rendering.py`, `descriptions.py` | an exception as the notebook would show it, with values |
| `refusals.py` | what it can't do because nobody sits at it |

| room | what ranks do together |
|---|---|
| `ranks.py` | what a cell calls: `claim`, `barrier`, `lock`, `device`, `progress` |
| `claims.py` | a rank's share of the shared loops |
| `items.py`, `item_order.py`, `item_texts.py` | the items of one, and whether others have the same |
| `loop_reports.py`, `bars.py` | how far it has come in its loops, and in tqdm's |
| `devices.py` | which device is whose |

| room | what it tells beside that |
|---|---|
| `whereabouts.py`, `stack_dumps.py` | where in the notebook it is |
| `wait_notices.py`, `acquiring.py` | what it waits for |
| `gpu_memory.py` | what it has on GPUs |
| `unheard_logging.py` | logging that nothing shows |

| room | children of plain multiprocessing |
|---|---|
| `children.py` | one prepared: `__main__`, and the hooks |
| `envelopes.py` | what comes with its process object |
| `pools.py`, `executors.py` | pools and executors in which something fails beside the tasks |
| `tasks.py`, `blind.py` | tasks, also those that can't be unpickled |
| `stand_ins.py`, `late_names.py` | names of the notebook that are not there |
"""
