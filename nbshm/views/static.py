"""A story as what stays in the notebook: plain text, and the same as HTML.

Neither needs the other: the text is what a diff or a terminal shows, the HTML is complete without colours,
scripts or style sheets. Only what a rank *displayed* as HTML or in a form that HTML has no words for becomes
an output of its own, as if the cell itself had displayed it; what a rank printed is always escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from nbshm.views.ansi import ansi_to_html, escape
from nbshm.views.excerpt import Gap, Piece, Rich, Text
from nbshm.views.folding import Passage, Voice
from nbshm.views.images import image_html
from nbshm.views.outputs import Bundle
from nbshm.words import ranks_in_words

_MARKS: dict[Voice, str] = {"stdout": "", "stderr": " stderr", "note": "", "verdict": ""}
# JupyterLab and nbconvert colour ANSI classes only inside `jp-RenderedText`.
_STYLE = """<style>
.nbshm{display:grid;grid-template-columns:fit-content(20em) minmax(0,1fr);column-gap:1em;align-items:start;
line-height:var(--jp-code-line-height,1.3);
font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px)}
.nbshm>div,.nbshm>pre{margin:0;padding:0 0.3em;font:inherit;line-height:inherit}
.nbshm>div{color:var(--jp-ui-font-color2,#757575)}
.nbshm>pre{white-space:pre-wrap;overflow-wrap:anywhere;word-break:normal;
color:var(--jp-content-font-color1,inherit);background:none;border:none}
.nbshm>pre.nbshm-wide{grid-column:1/-1}
.nbshm>pre.nbshm-stderr{background:var(--jp-rendermime-error-background,rgba(255,0,0,.12))}
.nbshm>pre.nbshm-note{color:var(--jp-ui-font-color2,#757575);font-style:italic}
.nbshm>pre.nbshm-verdict{font-weight:bold}
.nbshm>pre i{color:var(--jp-ui-font-color2,#757575)}
.nbshm>pre img{display:block;max-width:100%}
</style>"""


def bundles(passages: Sequence[Passage], nprocs: int) -> list[Bundle]:
    """Write a story as outputs: one, unless ranks displayed what must be an output of its own."""
    outputs: list[Bundle] = []
    for together in [list(group) for _, group in groupby(passages, key=_is_foreign)]:
        outputs += _foreign(together, nprocs) if _is_foreign(together[0]) else [_page(together, nprocs)]
    return outputs or [_page([], nprocs)]


def plain_text(passages: Iterable[Passage], nprocs: int) -> str:
    """Write a story as plain text, each line with its ranks."""
    return "\n".join(line for passage in passages for line in _plain_lines(passage, nprocs))


def html_page(passages: Sequence[Passage], nprocs: int) -> str:
    """Write a story as HTML: a block for each run of lines of the same ranks and voice."""
    if not passages:
        return ""
    blocks = [list(group) for _, group in groupby(passages, key=_speaker)]
    rows = "\n".join(_block(block, nprocs) for block in blocks)
    return f'{_STYLE}\n<div class="nbshm jp-RenderedText">\n{rows}\n</div>'


def label(ranks: Sequence[int], nprocs: int, voice: Voice = "stdout") -> str:
    """Name who speaks: `rank 2`, `ranks 0-3 stderr`; nobody needs to be named where there is one rank."""
    return "" if nprocs == 1 or not ranks else ranks_in_words(ranks) + _MARKS[voice]


def _page(passages: Sequence[Passage], nprocs: int) -> Bundle:
    data = {"text/plain": plain_text(passages, nprocs), "text/html": html_page(passages, nprocs)}
    return Bundle(data=data)


def _is_foreign(passage: Passage) -> bool:
    piece = passage.entry.piece
    return isinstance(piece, Rich) and image_html(piece) is None and set(piece.data) != {"text/plain"}


def _foreign(passages: Iterable[Passage], nprocs: int) -> Iterator[Bundle]:
    """Give each display its own output, after one that says whose it is."""
    for passage in passages:
        piece = passage.entry.piece
        name = label(passage.ranks, nprocs)
        if name:
            html = f'{_STYLE}\n<div class="nbshm jp-RenderedText"><div>{name}</div></div>'
            yield Bundle(data={"text/plain": f"[{name}]", "text/html": html})
        if isinstance(piece, Rich):
            yield Bundle(data=piece.data, metadata=piece.metadata)


def _plain_lines(passage: Passage, nprocs: int) -> Iterator[str]:
    name = label(passage.ranks, nprocs, passage.entry.voice)
    prefix = f"[{name}] " if name else ""
    for line in _plain(passage.entry.piece, passage.entry.voice).split("\n"):
        yield f"{prefix}{line}"


def _plain(piece: Piece, voice: Voice) -> str:
    match piece:
        case Text(text=text):
            return f"nbshm: {text}" if voice == "note" else text
        case Gap():
            return _gap(piece)
        case Rich():
            return piece.plain


def _gap(gap: Gap) -> str:
    return f"... {gap.pieces} lines left out; nbshm.last.output(rank) has them all ..."


def _speaker(passage: Passage) -> tuple[tuple[int, ...], Voice]:
    return passage.ranks, passage.entry.voice


def _block(passages: Sequence[Passage], nprocs: int) -> str:
    ranks, voice = _speaker(passages[0])
    name = label(ranks, nprocs, voice)
    content = "".join(_html(passage.entry.piece, voice) for passage in passages)
    wide = "" if name else " nbshm-wide"
    row = f'<pre class="nbshm-{voice}{wide}">{content}</pre>'
    return f"<div>{name}</div>{row}" if name else row


def _html(piece: Piece, voice: Voice) -> str:
    match piece:
        case Rich():
            return image_html(piece) or f"{escape(piece.plain)}\n"
        case Gap():
            return f"<i>{escape(_gap(piece))}</i>\n"
        case Text():
            return f"{ansi_to_html(_plain(piece, voice))}\n"
