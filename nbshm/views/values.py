"""Results by rank in a page: as the notebook would show each value, where one is more than text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nbshm.results import Results, value_in_text
from nbshm.views.ansi import escape
from nbshm.views.excerpt import Rich
from nbshm.views.images import IMAGES, image_html

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_PAGE = "text/html"
_STYLE = """<style>
.nbshm-results{display:grid;grid-template-columns:max-content minmax(0,1fr);column-gap:1em;row-gap:.5em}
.nbshm-results>div{overflow-x:auto}
.nbshm-results>.rank{color:var(--jp-ui-font-color2,#757575);
font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px)}
.nbshm-results pre{margin:0}
.nbshm-results img{max-width:100%}
</style>"""


class RichResults:
    """Has a shell show results with tables and figures in them as HTML, until it is closed."""

    def __init__(self, shell: InteractiveShell) -> None:
        formatter: Any = shell.display_formatter  # None only while a shell is made
        self._formatters: dict[str, Any] = formatter.formatters
        self._formatters[_PAGE].for_type(Results, self._html)

    def close(self) -> None:
        """Leave results to their text."""
        self._formatters[_PAGE].pop(Results, None)

    def _html(self, results: Results) -> str | None:
        pages = [self._page(value) for value in results]
        return results_html(results, pages) if any(pages) else None

    def _page(self, value: Any) -> str | None:
        """Return a value's HTML or image, as the shell's formatters make it; None if it is only text."""
        if page := self._formatted(_PAGE, value)[0]:
            return str(page)
        for kind in IMAGES:
            content, metadata = self._formatted(kind, value)
            if content:
                return image_html(Rich(data={kind: content}, metadata={kind: metadata}))
        return None

    def _formatted(self, kind: str, value: Any) -> tuple[Any, dict[str, Any]]:
        formatter = self._formatters.get(kind)
        given = None if formatter is None else formatter(value)
        return given if isinstance(given, tuple) else (given, {})


def results_html(values: Sequence[Any], pages: Sequence[str | None]) -> str:
    """Write values by rank: each as its page, or as text where it has none."""
    return f'{_STYLE}\n<div class="nbshm-results">\n{chr(10).join(_rows(values, pages))}\n</div>'


def _rows(values: Sequence[Any], pages: Sequence[str | None]) -> Iterator[str]:
    for rank, (value, page) in enumerate(zip(values, pages, strict=True)):
        content = page or f"<pre>{escape(value_in_text(value))}</pre>"
        yield f'<div class="rank">rank {rank}</div><div>{content}</div>'
