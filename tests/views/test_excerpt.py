"""What is kept of much output is bounded, and says what it leaves out."""

from __future__ import annotations

from nbshm.views.excerpt import KEPT_BYTES, KEPT_LINES, Excerpt, Gap, Rich, Text


def filled(*texts: str) -> Excerpt:
    excerpt = Excerpt()
    for text in texts:
        excerpt.add(Text(text=text))
    return excerpt


def test_little_is_kept_whole() -> None:
    assert list(filled("a", "b").pieces()) == [Text(text="a"), Text(text="b")]


def test_of_many_lines_the_first_and_the_last_are_kept_and_the_cut_is_stated() -> None:
    pieces = list(filled(*(str(number) for number in range(1000))).pieces())
    first, last = range(KEPT_LINES), range(1000 - KEPT_LINES, 1000)
    assert pieces[:KEPT_LINES] == [Text(text=str(number)) for number in first]
    assert pieces[KEPT_LINES] == Gap(pieces=1000 - 2 * KEPT_LINES)
    assert pieces[KEPT_LINES + 1 :] == [Text(text=str(number)) for number in last]


def test_long_lines_are_bounded_by_their_size() -> None:
    excerpt = filled(*("x" * 10_000 for _ in range(1000)))
    assert sum(piece.nbytes for piece in excerpt.pieces() if isinstance(piece, Text)) <= 2 * KEPT_BYTES
    (gap,) = (piece for piece in excerpt.pieces() if isinstance(piece, Gap))
    assert gap.pieces == 1000 - 12


def test_one_endless_line_is_cut_in_its_middle() -> None:
    (piece,) = filled("a" + "x" * 10 * KEPT_BYTES + "z").pieces()
    assert piece.nbytes <= KEPT_BYTES
    assert piece.text.startswith("ax")
    assert piece.text.endswith("xz")
    assert "characters left out" in piece.text


def test_figures_do_not_count_as_text() -> None:
    excerpt = Excerpt()
    for _ in range(20):
        excerpt.add(Rich(data={"image/png": "i" * KEPT_BYTES}, metadata={}))
    assert len(list(excerpt.pieces())) == 20


def test_figures_are_bounded_too() -> None:
    excerpt = Excerpt()
    for _ in range(50):
        excerpt.add(Rich(data={"image/png": "i" * (1 << 20)}, metadata={}))
    assert [type(piece) for piece in excerpt.pieces()].count(Rich) == 16


def test_a_display_with_an_id_is_replaced_wherever_it_is_kept() -> None:
    excerpt = Excerpt()
    old, new = (Rich(data={"text/plain": text}, metadata={}) for text in ("old", "new"))
    excerpt.add(old, "id")
    excerpt.add(Text(text="between"))
    excerpt.replace("id", new)
    excerpt.replace("unknown", old)
    assert list(excerpt.pieces()) == [new, Text(text="between")]
