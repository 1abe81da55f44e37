from __future__ import annotations

from nbshm.processes.stillness import STILL_SECONDS, Stillness


def test_stillness_is_told_once_until_something_is_said():
    still = Stillness(lambda: 0.0, 0.0)
    assert [still.has_come(now) for now in (0.1, STILL_SECONDS - 0.1, STILL_SECONDS, STILL_SECONDS + 9)] == [
        False,
        False,
        True,
        False,
    ]
    still.end(20.0)
    assert [still.has_come(now) for now in (20.1, 20.0 + STILL_SECONDS)] == [False, True]


def test_who_computes_does_not_stand_still():
    used = iter([0.0, 1.0, 1.0, 1.01])
    still = Stillness(lambda: next(used), 0.0)
    assert [still.has_come(now) for now in (0.1, 5.0, 5.1, 10.1)] == [False, False, False, True]
