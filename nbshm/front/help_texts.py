"""What `%%parallel?` and the other magics' help say."""

from __future__ import annotations

from nbshm.option_table import help_text

PARALLEL_HELP = f"""Run the cell in several processes, one for each rank.

    %%parallel [key=value ...]
    body

The body runs once in each process and may use whatever the notebook has: functions, classes, values. In it,
`rank` is 0, 1, ... nprocs-1 and `nprocs` their number; `nbshm` has what ranks need together (`nbshm.claim`,
`nbshm.barrier`, `nbshm.lock`). CPU tensors and numpy arrays are shared: what a rank writes into them in
place, the notebook and the other ranks see. Other assignments stay in the process that made them.

The values of the last expression are the cell's result: a list by rank.

Options
{help_text()}

Defaults for the session: %parallel nprocs=4. Values may be expressions of the notebook: nprocs={{n}}.

Examples

    %%parallel nprocs=4
    out[rank::nprocs] = [slow(x) for x in items[rank::nprocs]]

    %%parallel nprocs=4
    for i in nbshm.claim(range(len(items))):    # each item goes to the next free rank
        out[i] = slow(items[i])

    %%parallel nprocs=2 start_method=spawn out=model,losses timeout=600
    model, losses = train(data, seed=rank)      # afterwards model and losses are lists by rank
"""

DEFAULTS_HELP = """Show or set the session's defaults for %%parallel.

    %parallel                       show the defaults in force
    %parallel nprocs=4 timeout=60   set some of them

To run code in several processes begin a cell with %%parallel; see %%parallel? for all options.
"""

STRATEGY_HELP = """Show or set how torch itself shares storages: here, in workers, in other children.

    %shm_strategy                   show the strategies, which is in force, and the room there is
    %shm_strategy file_system       a name in /dev/shm for each storage
    %shm_strategy file_descriptor   a descriptor for each storage, and nothing to leave behind

It is about what queues and processes of your own are sent. What a parallel cell shares needs neither.
"""

STATUS_HELP = """Show what is shared with workers now, what room there is, and what dead processes have left.

    %shm_status          list names, with how each is shared
    %shm_status clean    remove what dead processes of yours have left in /dev/shm

moved: in shared memory for good; mirrored: copied in for the last run and back, for the reason that is told;
snapshot: read by the last run's workers without a copy for each; by CUDA: on a GPU, and written in place;
by a file: shared by torch, or mapped from a file.
"""

STACKS_HELP = """Show where the ranks of a run are: their lines in cells, and what they wait for.

    %parallel_stacks                of all runs
    %parallel_stacks job            of a run in the background, by the name that it is bound to

Ranks are not disturbed; one that sits in compiled code answers too. While a cell runs, this works where the
front end can run other code meanwhile (ipykernel 7 in a subshell).
"""
