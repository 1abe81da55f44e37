"""Which DataLoaders travel without their workers."""

from __future__ import annotations

from torch.utils.data import DataLoader

from nbshm.memory.tensors import loaders


class Derived(DataLoader):
    pass


class WithWays(DataLoader):
    def __getstate__(self):
        return {"nothing": 1}


def test_those_that_do_not_pickle_themselves_do():
    reduced = {kind: loaders.of_class(kind) for kind in (DataLoader, Derived, WithWays, list)}
    assert [kind for kind, reduce in reduced.items() if reduce] == [DataLoader, Derived]
    loader = Derived([1, 2])
    loader._iterator, loader.mine = object(), [3]
    make, arguments, state = reduced[Derived](loader)
    assert type(make(*arguments)) is Derived
    assert state["_iterator"] is None
    assert state["mine"] is loader.mine
