"""What registers of libraries have for a class."""

from __future__ import annotations

import copyreg

import pytest

from nbshm.definitions.registers import enter, entries_for

kl = pytest.importorskip("torch.distributions.kl")


class Registered:
    pass


class Other:
    pass


def test_entries_are_found_by_the_class_alone_and_in_a_tuple(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(copyreg.dispatch_table, Registered, len)
    monkeypatch.setitem(kl._KL_REGISTRY, (Other, Registered), max)
    monkeypatch.setitem(kl._KL_REGISTRY, (Other, Other), min)
    assert list(entries_for(Registered)) == [
        ("copyreg", Registered, len),
        ("torch.distributions.kl", (Other, Registered), max),
    ]
    assert list(entries_for(ValueError)) == []


def test_an_entry_is_put_where_it_was_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(copyreg, "dispatch_table", {})
    enter("copyreg", Registered, len)
    assert list(entries_for(Registered)) == [("copyreg", Registered, len)]


def test_a_register_that_a_library_has_no_more_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(kl, "_KL_REGISTRY")
    assert list(entries_for(Registered)) == []
