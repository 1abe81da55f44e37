"""Interrupts of the kernel that are blocked for a while (`kernel_signals.py`)."""

from __future__ import annotations

import signal

import pytest

from nbshm.processes.kernel_signals import interrupts_blocked

set_mask = signal.pthread_sigmask


def blocked_signals():
    return set_mask(signal.SIG_BLOCK, [])


def test_interrupts_are_blocked_for_a_while():
    with interrupts_blocked():
        assert signal.SIGINT in blocked_signals()
    assert signal.SIGINT not in blocked_signals()


def test_an_interrupt_that_came_just_before_leaves_none_blocked(monkeypatch):
    def block_late(how, signals):
        before = set_mask(how, signals)
        if signal.SIGINT in signals:  # as Python does where one came while the mask was set
            raise KeyboardInterrupt
        return before

    monkeypatch.setattr(signal, "pthread_sigmask", block_late)
    with pytest.raises(KeyboardInterrupt), interrupts_blocked():
        pass
    assert signal.SIGINT not in blocked_signals()
