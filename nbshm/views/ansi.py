"""Text with ANSI escape sequences as HTML that can't run: colours become spans, everything else is escaped.

The class names are those that Jupyter's own pages define (`ansi-red-fg`), so colours follow the theme.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ESCAPE = re.compile(
    r"\x1b\[(?P<codes>[0-9;:]*)m"  # select graphic rendition: kept
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # other control sequences: cursor movements, erasing
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # operating system commands: titles, links
    r"|\x1b[@-Z\\-_]?"  # the rest
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CUBE = (0, 95, 135, 175, 215, 255)
_EXTENDED, _BY_INDEX, _BY_RGB = (38, 48), 5, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    """What the sequences so far have switched on; colours are class stems or `rgb(...)`."""

    foreground: str | None = None
    background: str | None = None
    bold: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False


_SWITCHES: dict[int, dict[str, Any]] = {
    1: {"bold": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"inverse": True},
    22: {"bold": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"inverse": False},
}


def ansi_to_html(text: str) -> str:
    """Write text as HTML; whatever it holds, the result is text in spans."""
    style, parts, end = _Style(), [], 0
    for match in _ESCAPE.finditer(text):
        parts.append(_span(text[end : match.start()], style))
        end = match.end()
        if match["codes"] is not None:
            style = _apply(style, match["codes"])
    return "".join([*parts, _span(text[end:], style)])


def escape(text: str) -> str:
    """Escape text for HTML; control characters, which HTML can't hold, become their pictures."""
    return html.escape(_CONTROL.sub(_picture, text))


def _picture(control: re.Match[str]) -> str:
    code, delete = ord(control[0]), 0x7F
    return "\u2421" if code == delete else chr(0x2400 + code)


def _span(text: str, style: _Style) -> str:
    if not text:
        return ""
    classes, css = _classes(style), _css(style)
    attributes = (f' class="{" ".join(classes)}"' if classes else "") + (f' style="{css}"' if css else "")
    return f"<span{attributes}>{escape(text)}</span>" if attributes else escape(text)


def _classes(style: _Style) -> list[str]:
    switches = {"ansi-bold": style.bold, "ansi-italic": style.italic, "ansi-underline": style.underline}
    colours = [
        f"ansi-{colour}-{ground}" for colour, ground in _grounds(style) if not colour.startswith("rgb")
    ]
    return [name for name, on in switches.items() if on] + colours


def _css(style: _Style) -> str:
    properties = {"fg": "color", "bg": "background-color"}
    return ";".join(
        f"{properties[ground]}:{colour}" for colour, ground in _grounds(style) if colour.startswith("rgb")
    )


def _grounds(style: _Style) -> list[tuple[str, str]]:
    front, back = style.foreground, style.background
    if style.inverse:
        front, back = back or "default-inverse", front or "default-inverse"
    return [(colour, ground) for colour, ground in ((front, "fg"), (back, "bg")) if colour]


def _apply(style: _Style, codes: str) -> _Style:
    numbers = iter([int(code or 0) for code in re.split("[;:]", codes)])
    for number in numbers:
        style = _switched(style, number, numbers)
    return style


def _switched(style: _Style, number: int, following: Iterator[int]) -> _Style:
    if number == 0:
        return _Style()
    if number in _SWITCHES:
        return replace(style, **_SWITCHES[number])
    if number in _EXTENDED:
        return _coloured(style, number, _extended(following))
    if number // 10 in (3, 4, 9, 10):
        return _coloured(style, number, _named(number))
    return style


def _coloured(style: _Style, number: int, colour: str | None) -> _Style:
    if number // 10 in (3, 9):
        return replace(style, foreground=colour)
    return replace(style, background=colour)


def _named(number: int) -> str | None:
    """Name the colour of codes 30-37, 40-47, 90-97 and 100-107; 39 and 49 mean the default."""
    colour, bright = number % 10, number >= 90  # noqa: PLR2004  # the bright colours start there
    if colour >= len(_NAMES):
        return None
    return f"{_NAMES[colour]}-intense" if bright else _NAMES[colour]


def _extended(following: Iterator[int]) -> str | None:
    kind = next(following, 0)
    if kind == _BY_INDEX:
        return _indexed(next(following, 0))
    if kind == _BY_RGB:
        red, green, blue = (min(next(following, 0), 255) for _ in range(3))
        return f"rgb({red},{green},{blue})"
    return None


def _indexed(index: int) -> str:
    """Look a colour up in the table of 256: 16 named, a cube of six levels, 24 greys."""
    first_of_cube, first_grey = 16, 232
    if index < len(_NAMES):
        return _NAMES[index]
    if index < first_of_cube:
        return f"{_NAMES[index - len(_NAMES)]}-intense"
    if index < first_grey:
        place = index - first_of_cube
        red, green, blue = _CUBE[place // 36], _CUBE[place // 6 % 6], _CUBE[place % 6]
        return f"rgb({red},{green},{blue})"
    grey = 8 + 10 * (min(index, 255) - first_grey)
    return f"rgb({grey},{grey},{grey})"
