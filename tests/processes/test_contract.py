"""What every start method must do, whatever becomes of the workers."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time

import pytest
from crews import interrupt_kernel, is_alive, perform, supervised, wait_until_gone, when_ready

from nbshm.events import Display, Ended, Failed, Interrupted, Note, Output, Progress, Result, Started, Tick
from nbshm.failures.reports import Died, Quit, Raised
from nbshm.processes.workers import Workers


def test_every_rank_answers_with_its_value(launcher, method):
    run = perform(launcher, method, 4, "echo", {"a": 1})
    assert run.values() == [{"a": 1}] * 4
    assert run.verdict.ending == "finished"
    assert run.verdict.exitcodes == (0, 0, 0, 0)
    assert (run.verdict.failures, run.verdict.stopped) == ((), ())


def test_a_worker_leads_its_own_group_and_listens_to_interrupts(launcher, method):
    (worker,) = perform(launcher, method, 1, "describe").values()
    assert worker["group"] == worker["pid"] != os.getpid()
    assert signal.SIGINT not in worker["mask"]


def test_a_worker_is_no_daemon_and_reads_nothing(launcher, method):
    (worker,) = perform(launcher, method, 1, "describe").values()
    assert (worker["daemon"], worker["stdin"], worker["rank"]) == (False, "", (0, 1))


def test_all_ranks_have_their_sets_in_the_same_order(launcher, method):
    workers = perform(launcher, method, 3, "describe").values()
    assert len({worker["hash"] for worker in workers}) == 1


def test_a_seed_of_hashes_that_the_person_has_set_is_that_of_spawned_ranks(launcher, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    (worker,) = perform(launcher, "spawn", 1, "describe").values()
    command = [sys.executable, "-c", "print(hash('a string'))"]
    assert worker["hash"] == int(subprocess.check_output(command))


def test_spawned_ranks_start_where_no_program_env_is(launcher, monkeypatch):
    monkeypatch.setenv("PATH", "")
    (worker,) = perform(launcher, "spawn", 1, "describe").values()
    assert worker["rank"] == (0, 1)


def test_the_default_start_method_stays_open_here_and_there(launcher, method):
    import multiprocessing

    (worker,) = perform(launcher, method, 1, "describe").values()
    assert multiprocessing.get_start_method(allow_none=True) is None
    assert worker["start_method"] is None


def test_workers_are_nobodys_children_in_the_books_of_multiprocessing(launcher, method):
    import multiprocessing

    with supervised(launcher, method, 2, "wait_forever"):
        assert multiprocessing.active_children() == []


def test_a_sudden_exit_is_told_with_its_code(launcher, method):
    run = perform(launcher, method, 1, "exit_now")
    assert isinstance(run.verdict.failures[0], Died)
    assert (run.verdict.ending, run.verdict.exitcodes) == ("failed", (7,))


def test_an_exit_without_a_result_is_a_failure_although_its_code_is_zero(launcher, method):
    run = perform(launcher, method, 1, "exit_zero")
    assert (run.verdict.ending, run.verdict.failures[0].exitcode) == ("failed", 0)


def test_a_crash_leaves_a_stack_and_its_signal(launcher, method):
    run = perform(launcher, method, 1, "segfault")
    assert run.verdict.failures[0].signal_name == "SIGSEGV"
    assert "string_at" in run.verdict.failures[0].dump.text


def test_a_kill_from_outside_stops_the_other_ranks(launcher, method):
    with supervised(launcher, method, 3, "wait_forever") as (supervisor, workers):
        when_ready(supervisor, lambda: os.kill(workers[1].pid, signal.SIGKILL), nprocs=3)
        verdict = supervisor.verdict
    assert [(failure.rank, failure.signal_name) for failure in verdict.failures] == [(1, "SIGKILL")]
    assert {stop.rank for stop in verdict.stopped} == {0, 2}


def test_a_death_without_words_says_where_it_was(launcher, method):
    code = "def loop():\n    while True:\n        pass\n\nloop()\n"
    with supervised(launcher, method, 1, "run_cell", code) as (supervisor, (worker,)):
        for _ in supervisor:  # at least ten times a second
            if worker.place is not None:
                worker.send_signal(signal.SIGKILL)
        (failure,) = supervisor.verdict.failures
    assert failure.line in {"In [7] line 2", "In [7] line 3"}


def test_who_was_stopped_says_where(launcher, method):
    with supervised(launcher, method, 1, "run_cell", "import time\ntime.sleep(3600)") as (
        supervisor,
        (worker,),
    ):
        for _ in supervisor:
            if worker.place == "In [7] line 2":
                supervisor.stop()
        assert supervisor.verdict.stopped[0].line == "In [7] line 2"


def test_last_words_survive_a_kill(launcher, method):
    run = perform(launcher, method, 1, "print_and", "kill_self")
    assert (run.text(), run.text(stream="stderr")) == ("first", "unfinished")
    assert isinstance([event for event in run.events if not isinstance(event, Tick)][-1], Ended)


def test_a_loop_that_swallows_interrupts_is_terminated(launcher, method):
    with supervised(launcher, method, 2, "ignore_interrupt", grace=0.2) as (supervisor, _):
        events = when_ready(supervisor, interrupt_kernel, nprocs=2)
        verdict = supervisor.verdict
    assert verdict.ending == "interrupted"
    assert verdict.exitcodes == (-signal.SIGTERM,) * 2
    assert {stop.by for stop in verdict.stopped} == {"SIGTERM"}
    assert sum("swallowed" in event.text for event in events if isinstance(event, Output)) == 2


def test_a_loop_that_ignores_everything_is_killed(launcher, method):
    with supervised(launcher, method, 2, "ignore_everything", grace=0.1) as (supervisor, _):
        when_ready(supervisor, interrupt_kernel, nprocs=2)
        verdict = supervisor.verdict
    assert [stop.by for stop in verdict.stopped] == ["SIGKILL"] * 2


def test_a_second_interrupt_kills_at_once(launcher, method):
    with supervised(launcher, method, 1, "ignore_everything", grace=600) as (supervisor, _):
        presses = 0
        for event in supervisor:
            if isinstance(event, Output) and "ready" in event.text and presses < 2:  # again: it was swallowed
                presses += 1
                interrupt_kernel()
        verdict = supervisor.verdict
    assert (presses, verdict.exitcodes) == (2, (-signal.SIGKILL,))


def test_a_stopped_process_is_killed_too(launcher, method):
    begun = time.monotonic()
    run = perform(launcher, method, 1, "stop_self", grace=0.1, timeout=0.2)
    assert (run.verdict.ending, run.verdict.exitcodes) == ("timed out", (-signal.SIGKILL,))
    assert time.monotonic() - begun < 10


def test_an_interrupt_lets_finally_blocks_run_and_is_no_failure(launcher, method, tmp_path):
    with supervised(launcher, method, 2, "clean_up", str(tmp_path)) as (supervisor, _):
        events = when_ready(supervisor, interrupt_kernel, nprocs=2)
        verdict = supervisor.verdict
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]
    assert [type(event) for event in events if isinstance(event, Interrupted | Failed)] == [Interrupted] * 2
    assert (verdict.ending, verdict.failures) == ("interrupted", ())
    assert [stop.by for stop in verdict.stopped] == ["interrupt"] * 2


def test_the_kernel_takes_interrupts_itself_again_afterwards(launcher, method):
    before = signal.getsignal(signal.SIGINT)
    perform(launcher, method, 1, "echo")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_failure_ends_the_others_and_is_the_root_cause(launcher, method):
    run = perform(launcher, method, 3, "fail_one", 2)
    assert [(type(failure), failure.rank) for failure in run.verdict.failures] == [(Raised, 2)]
    assert [stop.rank for stop in run.verdict.stopped] == [0, 1]


def test_ranks_that_fail_together_all_have_failed(launcher, method):
    run = perform(launcher, method, 3, "fail_together", [1, 1, 1])
    assert sorted(failure.rank for failure in run.verdict.failures) == [0, 1, 2]
    assert run.verdict.stopped == ()


def test_an_interrupt_from_the_code_is_a_failure(launcher, method):
    run = perform(launcher, method, 2, "raise_interrupt")
    assert run.verdict.ending == "failed"
    assert run.verdict.failures[0].report.type_name == "KeyboardInterrupt"


def test_an_interrupt_from_elsewhere_is_a_failure(launcher, method):
    run = perform(launcher, method, 1, "interrupt_self")
    assert isinstance(run.verdict.failures[0], Quit)
    assert "did not come from the notebook" in run.verdict.failures[0].text


def test_an_exit_that_was_told_is_told_once(launcher, method):
    run = perform(launcher, method, 1, "quit_with", 3)
    assert [(type(failure), failure.exitcode) for failure in run.verdict.failures] == [(Quit, 3)]


def test_a_failure_before_the_body_is_told_as_one_of_preparing(launcher, method):
    run = perform(launcher, method, 2, "fail_early", "no such module")
    assert run.verdict.failures[0].preparing
    assert run.verdict.failures[0].report.message == "no such module"


def test_the_timeout_counts_from_the_start_of_the_body(launcher, method):
    run = perform(launcher, method, 2, "wait_forever", timeout=0.2)
    assert run.verdict.ending == "timed out"
    assert [stop.rank for stop in run.verdict.stopped] == [0, 1]


def test_a_flood_arrives_whole(launcher, method):
    run = perform(launcher, method, 2, "flood", 8_000_000)
    assert [len(run.text(rank)) for rank in range(2)] == [8_000_000] * 2


def test_who_floods_without_end_is_stopped_like_anyone(launcher, method):
    run = perform(launcher, method, 1, "flood_forever", timeout=0.2)
    assert run.verdict.ending == "timed out"


def test_a_character_that_comes_in_two_parts_is_one(launcher, method):
    run = perform(launcher, method, 1, "write_bytes", [b"\xe2\x82", b"\xac\xff\xe2"])
    assert run.text() == "€\\xff\\xe2"


def test_output_of_c_code_and_of_children_is_seen(launcher, method):
    run = perform(launcher, method, 1, "print_in_c")
    assert run.text() == "from a child\nfrom C\n"


def test_what_was_printed_before_an_event_is_told_before_it(launcher, method):
    run = perform(launcher, method, 1, "write_bytes", [b"%d\n" % number for number in range(200)])
    told = list(
        itertools.accumulate(
            len(event.text.split()) if isinstance(event, Output) else 0 for event in run.events
        )
    )
    events = [count for count, event in zip(told, run.events, strict=True) if isinstance(event, Progress)]
    assert all(count > number for number, count in enumerate(events))


def test_displays_stand_where_they_were_shown(launcher, method):
    run = perform(launcher, method, 1, "display_between", "abc", token="abc")  # noqa: S106  # it marks text
    story = [
        event.text if isinstance(event, Output) else event.data["text/plain"] + "\n"
        for event in run.of(Output | Display)
    ]
    expected = "".join(f"before {number}\ndisplay {number}\n" for number in range(5))
    assert "".join(story) == f"{expected}after\n"


def test_a_big_job_and_a_big_result_travel(launcher, method):
    run = perform(launcher, method, 2, "echo", b"j" * 50_000_000)
    assert [len(value) for value in run.values()] == [50_000_000] * 2


def test_three_thousand_descriptors_travel_to_every_rank(launcher, method):
    fds = [os.memfd_create("segment") for _ in range(3000)]
    try:
        os.write(fds[0], b"first")
        os.write(fds[-1], b"last")
        run = perform(launcher, method, 1, "count_descriptors", fds=fds)
    finally:
        for fd in fds:
            os.close(fd)
    assert run.values() == [([b"first", b"last"], 3000, 3000)]


def test_descriptors_come_back_beside_the_result(launcher, method):
    run = perform(launcher, method, 2, "send_descriptors", 300)
    try:
        assert [os.pread(run.descriptors[rank][299], 10, 0) for rank in range(2)] == [b"299", b"299"]
    finally:
        for fd in itertools.chain(*run.descriptors.values()):
            os.close(fd)


def test_descriptors_that_nobody_takes_are_closed(launcher, method):
    with supervised(launcher, method, 1, "send_descriptors", 300) as (supervisor, _):
        list(supervisor)


def test_a_workers_own_children_end_with_it(launcher, method):
    run = perform(launcher, method, 2, "leave_children")
    for pid in run.values():
        wait_until_gone(pid)
    assert run.verdict.ending == "finished"


def test_a_rank_that_has_finished_but_not_ended_can_be_stopped(launcher, method):
    with supervised(launcher, method, 1, "leave_thread") as (supervisor, _):
        for event in supervisor:
            if isinstance(event, Result):
                supervisor.stop()
        verdict = supervisor.verdict
    assert (verdict.ending, verdict.failures) == ("stopped", ())


def test_a_message_that_is_cut_by_death_is_dropped(launcher, method):
    run = perform(launcher, method, 1, "partial_frame")
    assert run.verdict.failures[0].signal_name == "SIGKILL"
    assert {type(event) for event in run.events} <= {Started, Ended, Tick}


def test_a_message_that_is_no_event_is_a_note(launcher, method):
    run = perform(launcher, method, 1, "unreadable_event")
    assert "could not be read" in run.of(Note)[0].text
    assert run.verdict.ending == "finished"


def test_the_barrier_lets_all_ranks_go_on_together(launcher, method):
    run = perform(launcher, method, 3, "barrier", [20, 20, 20])
    assert run.values() == [20, 20, 20]


def test_the_barrier_breaks_where_a_rank_has_finished(launcher, method):
    run = perform(launcher, method, 3, "barrier", [1, 2, 2])
    assert sorted(failure.rank for failure in run.verdict.failures) == [1, 2]
    assert "rank 0 has finished" in run.verdict.failures[0].report.message


def test_ranks_that_wait_at_the_barrier_for_one_that_died_are_stopped(launcher, method):
    with supervised(launcher, method, 2, "barrier", [1, 1]) as (supervisor, workers):
        os.kill(workers[1].pid, signal.SIGKILL)
        list(supervisor)
        verdict = supervisor.verdict
    assert [failure.rank for failure in verdict.failures] == [1]
    assert [stop.rank for stop in verdict.stopped] == [0]


def test_leaving_the_block_ends_everything_at_once(launcher, method):
    with supervised(launcher, method, 3, "ignore_everything") as (supervisor, workers):
        next(iter(supervisor))
        pids = [worker.pid for worker in workers]
    assert not any(is_alive(pid) for pid in pids)


def test_an_interrupt_while_workers_are_started_leaves_none_of_them(launcher, method, monkeypatch):
    started = []
    add = Workers.add

    def add_and_interrupt(workers, worker):
        signal.raise_signal(signal.SIGINT)
        add(workers, worker)
        started.append(worker.pid)

    monkeypatch.setattr(Workers, "add", add_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        launcher.launch(2, method)
    assert len(started) == 2
    assert not any(is_alive(pid) for pid in started)


def test_a_stop_from_another_thread_ends_the_run(launcher, method):
    import threading

    with supervised(launcher, method, 1, "wait_forever") as (supervisor, _):
        events = []
        thread = threading.Thread(target=lambda: events.extend(supervisor))
        thread.start()
        supervisor.stop()
        thread.join(20)
        assert not thread.is_alive()
        assert supervisor.verdict.ending == "stopped"


@pytest.mark.parametrize("nprocs", [1, 9])
def test_any_number_of_ranks_starts(launcher, method, nprocs):
    assert perform(launcher, method, nprocs, "echo").values() == [""] * nprocs
