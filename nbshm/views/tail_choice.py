"""Which rank's output a live view shows: a choice that the page itself keeps, without the kernel.

A busy kernel can't be asked, and pieces of the view are replaced all the time: so the choice is a set of
radio buttons in a piece that is never replaced, and style rules that show what is checked.
"""

from __future__ import annotations

from nbshm.views import table, tails

_STYLE = """
.nbshm-live .widget-html-content{font:inherit;line-height:inherit;color:inherit;width:100%}
.nbshm-live .choice{display:flex;flex-wrap:wrap;gap:0 .8em;margin-top:.3em}
.nbshm-live .choice label{cursor:pointer;white-space:nowrap;display:inline-flex;align-items:center;gap:.2em}
.nbshm-live .choice input{margin:0}
.nbshm-live .nbshm-tail{display:none}
"""


def tail_class(name: str, rank: int | None) -> str:
    """Return the CSS class of a rank's output in the view of that name; of all ranks' where rank is None."""
    return f"{name}-{'all' if rank is None else rank}"


def frame_html(name: str, nprocs: int) -> str:
    """Write the view's styles and, for several ranks, the choice: nobody's output, all ranks' or one's."""
    ranks = [] if nprocs == 1 else list(range(nprocs))
    rules = "\n".join(_rule(name, tail_class(name, rank)) for rank in (None, *ranks))
    if nprocs == 1:
        rules = f".{tail_class(name, None)}{{display:block!important}}"
    style = f"<style>{_STYLE}{table.STYLE}{tails.STYLE}{rules}</style>"
    buttons = [
        _button(name, f"{name}-none", "none"),
        _button(name, tail_class(name, None), "all ranks", " checked"),
    ]
    buttons += [_button(name, tail_class(name, rank), f"{rank}") for rank in ranks]
    choice = f'<div class="choice"><span class="dim">output</span>{"".join(buttons)}</div>'
    return style if nprocs == 1 else style + choice


def _rule(name: str, shown: str) -> str:
    return f".{name}:has(#{shown}:checked) .{shown}{{display:block!important}}"


def _button(name: str, identity: str, text: str, state: str = "") -> str:
    return f'<label><input type="radio" name="{name}" id="{identity}"{state}>{text}</label>'
