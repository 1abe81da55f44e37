"""Shared loops of ranks in processes of their own."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import textwrap

import numpy as np
import pytest
import torch
from rank_processes import results, two_ranks

from nbshm.wire.board import Board
from nbshm.worker.ranks import Rank


@pytest.mark.parametrize(
    "items",
    [
        "range(1000)",
        "list(range(1000))",
        "(i for i in range(1000))",
        "dict.fromkeys(range(1000))",
        "iter(range(1000))",
    ],
)
def test_each_item_goes_to_exactly_one_rank(items):
    shares = results(f"result = [i for i in claim({items})]")
    assert sorted(itertools.chain(*shares)) == list(range(1000))


def test_the_second_claim_is_another_loop():
    shares = results("for i in claim(range(10)): pass\nresult = list(claim('abcdef'))")
    assert sorted(itertools.chain(*shares)) == list("abcdef")


def test_a_claim_may_be_in_a_plain_loop():
    code = "result = [(a, b) for a in range(3) for b in claim(range(5))]"
    assert sorted(itertools.chain(*results(code))) == [(a, b) for a in range(3) for b in range(5)]


@pytest.mark.parametrize("outer", ["claim(range(9))", "enumerate(claim(range(9)))"])
def test_a_claim_in_the_loop_of_another_is_refused(outer):
    code = f"""
result = "nothing was left"
try:
    for _ in {outer}:
        for _ in claim(range(3)): pass
except RuntimeError as error:
    result = str(error)
"""
    (told,) = results(code, nprocs=1)
    assert told.startswith("claim: it is in the loop of another claim.")


@pytest.mark.parametrize(
    "before",
    [
        "for _ in claim(range(9)): break",
        "held = claim(range(9))\nfor _ in held: break",
        "try:\n    for _ in claim(range(9)): 1 / 0\nexcept ZeroDivisionError: pass",
        "first, *_ = claim(range(9))",
        "one, other = claim(range(3)), claim(range(3))\nfor _ in zip(one, other): pass",
    ],
)
def test_a_claim_after_a_loop_that_was_left_is_another(before):
    assert results(f"{before}\nresult = list(claim(range(3)))", nprocs=1) == [[0, 1, 2]]


def test_an_endless_iterable_can_be_shared():
    code = (
        "import itertools\nresult = []\n"
        "for i in claim(itertools.count()):\n  result.append(i)\n  if i > 500: break"
    )
    taken = sorted(itertools.chain(*results(code)))
    assert taken[:500] == list(range(500))
    assert len(set(taken)) == len(taken)


@pytest.mark.parametrize("items", ["range(1000)", "(i for i in range(1000))"])
def test_break_leaves_the_rest_to_the_others(items):
    board = os.memfd_create("board")
    quick, patient = (
        Rank(number, 2, say=print, wait_release=lambda: None, board=Board(os.dup(board), 2))
        for number in (0, 1)
    )
    theirs = eval(items)  # noqa: S307
    others = iter(patient.claim(theirs))
    taken = [next(others)]
    for item in quick.claim(eval(items)):  # noqa: S307
        taken.append(item)
        if len(taken) > 1:
            break
    taken += others
    for rank in (quick, patient):
        rank._board.close()
    os.close(board)
    assert sorted(taken) == list(range(1000))


def test_the_items_that_a_rank_works_at_are_known_until_it_leaves_the_loop():
    descriptor = os.memfd_create("board")
    board = Board(descriptor, 2)
    rank = Rank(1, 2, say=lambda _: None, wait_release=lambda: None, board=board)
    assert not board.held_by(1)
    list(rank.claim(range(100)))
    assert not board.held_by(1)
    for item in rank.claim(range(100)):
        assert item in range(*dataclasses.astuple(board.held_by(1)))
        if item == 24:  # the last of the first chunk
            break
    assert not board.held_by(1)
    board.close()


@pytest.mark.parametrize(
    ("items", "more"),
    [("range(10 + 2 * rank)", "12"), ("(i for i in range(10 + 2 * rank))", "(12|more than 10)")],
)
def test_ranks_with_different_lengths_are_told_both(items, more):
    code = f"try:\n  list(claim({items}))\nexcept ValueError as error: result = str(error)"
    told = [text for text in results(code, nprocs=2) if text is not None]
    assert told
    for text in told:
        assert re.search(r"rank 0 has 10\b", text), text
        assert re.search(rf"rank 1 has {more}\b", text), text


@pytest.mark.parametrize("taken", [0, 11])
def test_who_has_more_items_than_the_others_is_told_so_wherever_it_stands(taken):
    board = Board(os.memfd_create("board"), 2)
    few, many = (
        Rank(number, 2, say=lambda _: None, wait_release=lambda: None, board=board) for number in range(2)
    )
    rest = iter(many.claim(iter(range(12))))
    for _ in range(taken):  # one at a time, as long as nobody knows the length
        next(rest)
    assert len(list(few.claim(iter(range(10))))) == 10 - min(taken, 10)
    with pytest.raises(ValueError, match="rank 1 has more than 10 items, rank 0 has 10"):
        list(rest)
    board.close()


def refusals(code: str, nprocs: int = 2) -> list[str]:
    """Run code in each rank and return the ValueErrors that came of it."""
    caught = f"try:\n{textwrap.indent(code, '  ')}\nexcept ValueError as error: result = str(error)"
    return [text for text in results(caught, nprocs) if isinstance(text, str)]


@pytest.mark.parametrize(
    "items",
    [
        "random.sample(range(40), 40)",
        "iter(random.sample(range(40), 40))",
        "enumerate(random.sample([f'file {i}' for i in range(40)], 40))",
        "({'id': i, 'x': [i]} for i in random.sample(range(40), 40))",
    ],
)
def test_ranks_with_other_items_are_told_what_and_where(items):
    told = refusals(f"import random\nrandom.seed(rank)\nresult = list(claim({items}))")
    assert told
    for text in told:
        assert re.match(r"claim: item 0 is .* in rank [01], .* in rank [01]\. Each rank must be", text), text
        assert "shuffle in the notebook before the cell" in text


def test_both_items_are_named_and_long_ones_are_cut():
    told = refusals("result = list(claim([1, 'x' * 100 * (rank + 1)]))")
    (text,) = {re.sub(r"rank (0|1)", "rank N", text) for text in told}
    cut = "'" + 32 * "x" + "..."
    assert f"item 1 is {cut} in rank N, {cut} in rank N." in text


def test_items_that_were_only_gone_through_are_compared_too():
    board = Board(os.memfd_create("board"), 2)
    one, other = (
        Rank(number, 2, say=lambda _: None, wait_release=lambda: None, board=board) for number in range(2)
    )
    assert next(iter(one.claim(iter([7, 1, 2, 3])))) == 7
    with pytest.raises(ValueError, match="item 0 is 8 in rank 1, 7 in rank 0"):
        next(iter(other.claim(iter([8, 1, 2, 3]))))
    board.close()


@pytest.mark.parametrize("items", ["[object() for _ in range(9)]", "[[float('nan'), i] for i in range(9)]"])
def test_items_that_can_not_be_told_apart_are_shared_by_position(items):
    assert sum(results(f"result = len(list(claim({items})))")) == 9


def test_a_loop_over_rows_that_other_ranks_write_into_goes_on():
    code = "import numpy as np\nresult = [int(row[0]) for row in claim(memory())]"
    shared = "memory = lambda: np.frombuffer(bytearray([rank] * 8), np.uint8).reshape(8, 1)\n"
    assert len(list(itertools.chain(*results("import numpy as np\n" + shared + code)))) == 8


@pytest.mark.parametrize(
    "items_of",
    [
        list,
        enumerate,
        lambda rows: [(1, {"row": row}) for row in rows],
        lambda rows: [np.array(row) for row in rows],
        lambda rows: [torch.tensor(row) for row in rows],
    ],
)
def test_items_that_a_loop_before_has_changed_can_be_claimed_again(items_of):
    with two_ranks() as (one, other):
        for rank in (one, other):
            rows = [[3, 1], [5, 4]]
            for _ in rank.claim(items_of(rows)):
                rows[0].sort()
            list(rank.claim(items_of(rows)))


@pytest.mark.parametrize(
    "items_of",
    [
        lambda memory: memory,
        enumerate,
        lambda memory: zip(range(8), memory, strict=True),
        lambda memory: (2 * number for number in memory),
    ],
)
def test_a_rank_that_comes_late_may_find_other_numbers_in_memory_that_all_share(items_of):
    memory = np.frombuffer(bytearray(8), np.uint8)
    with two_ranks() as (one, other):
        for _ in one.claim(items_of(memory)):
            memory += 1
        list(other.claim(items_of(memory)))


def test_an_item_that_comes_again_may_have_been_changed():
    with two_ranks() as (one, other):
        for rank in (one, other):
            row = [1]
            for _ in rank.claim((epoch, row) for epoch in range(8)):
                row[0] += 1
                if rank is one:
                    break


def test_what_can_not_be_changed_is_compared_in_later_loops_too():
    told = refusals("list(claim(range(3)))\nresult = list(claim([(rank, 'a'), (rank, 'b')]))")
    assert all("item 0 is" in text for text in told)
    assert told


@pytest.mark.parametrize("items", ["{1, 2}", "frozenset([1])"])
def test_a_set_is_refused_with_the_remedy(items):
    code = f"try: claim({items})\nexcept TypeError as error: result = str(error)"
    assert all("claim(sorted(...))" in text for text in results(code, nprocs=2))


def test_a_million_tiny_items_cost_little():
    code = (
        "import time\nbegun = time.perf_counter()\n"
        "result = (sum(1 for _ in claim(range(1_000_000))), time.perf_counter() - begun)"
    )
    told = results(code, nprocs=2)
    assert sum(number for number, _ in told) == 1_000_000
    assert max(seconds for _, seconds in told) < 1


FORKED = """
import os, sys
refused = False
def told_in_a_child(call):
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        try: call()
        except RuntimeError as error: os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    return os.read(reader, 10_000).decode()
"""


def test_a_forked_child_has_no_share_of_a_loop():
    code = f"{FORKED}\ntold = told_in_a_child(lambda: claim(range(9)))\nresult = told, list(claim(range(9)))"
    ((told, items),) = results(code, nprocs=1)
    assert told == (
        "claim: this process was forked by rank 0, and is no rank itself. Claim in the rank, and give the "
        "items to the process; end it by os._exit() where it is not to run on."
    )
    assert items == list(range(9))


def test_a_forked_child_takes_nothing_of_a_loop_in_which_it_was_forked():
    code = f"""{FORKED}
result = []
loop = iter(claim(range(9)))
for i in loop:
    if i == 4: told = told_in_a_child(lambda: list(loop))
    result.append(i)
result = told[:6], result
"""
    assert results(code, nprocs=1) == [("claim:", list(range(9)))]


def test_a_forked_child_that_leaves_a_loop_leaves_it_for_itself_alone():
    code = f"""{FORKED}
def leave(loop): loop.close()
result = []
loop = iter(claim(range(9)))
for i in loop:
    if i == 4: told_in_a_child(loop.close)
    result.append(i)
"""
    assert results(code, nprocs=1) == [list(range(9))]
