"""What several ranks said, told once where they said the same.

Folding depends on what was said alone, never on when, so two equal runs fold alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nbshm.views.excerpt import Piece

Voice: TypeAlias = Literal["stdout", "stderr", "note", "verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One piece of a rank's story, and through which voice it came."""

    voice: Voice
    piece: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """An entry that these ranks have in common."""

    ranks: tuple[int, ...]
    entry: Entry


def fold(stories: Mapping[int, Sequence[Entry]]) -> Iterator[Passage]:
    """Tell the stories of ranks in rank order; what all begin or end with is told once.

    Between a common beginning and a common end, ranks that go on alike are folded in the same way.
    """
    told = {rank: list(story) for rank, story in stories.items() if story}
    if not told:
        return
    everyone = tuple(sorted(told))
    beginning = _common(list(told.values()))
    middles = {rank: story[beginning:] for rank, story in told.items()}
    ending = _common([story[::-1] for story in middles.values()])
    first = told[everyone[0]]
    yield from (Passage(ranks=everyone, entry=entry) for entry in first[:beginning])
    for group in _alike({rank: story[: len(story) - ending] for rank, story in middles.items()}):
        yield from fold(group)
    yield from (Passage(ranks=everyone, entry=entry) for entry in first[len(first) - ending :])


def _common(stories: Sequence[Sequence[Entry]]) -> int:
    """Count the entries that all stories begin with."""
    count = 0
    for entries in zip(*stories, strict=False):
        if any(entry != entries[0] for entry in entries[1:]):
            break
        count += 1
    return count


def _alike(stories: Mapping[int, Sequence[Entry]]) -> list[dict[int, Sequence[Entry]]]:
    """Group the ranks whose stories begin with the same entry, in rank order."""
    groups: list[dict[int, Sequence[Entry]]] = []
    for rank in sorted(stories):
        story = stories[rank]
        if not story:
            continue
        for group in groups:
            if next(iter(group.values()))[0] == story[0]:
                group[rank] = story
                break
        else:
            groups.append({rank: story})
    return groups
