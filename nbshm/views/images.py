"""Images as HTML in which nothing can run."""

from __future__ import annotations

import base64

from nbshm.views.ansi import escape
from nbshm.views.excerpt import Rich

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/svg+xml")
"""What pages can show, the best first."""


def image_html(piece: Rich) -> str | None:
    """Write the image of an output; also of an SVG only the picture is shown. None if it has no image."""
    for kind in IMAGES:
        if content := piece.data.get(kind):
            data = _encoded(kind, content)
            size = "".join(_size(piece, kind, side) for side in ("width", "height"))
            return f'<img src="data:{kind};base64,{escape(data)}" alt="{escape(piece.plain)}"{size}>'
    return None


def _encoded(kind: str, content: str | bytes) -> str:
    if kind == "image/svg+xml" and isinstance(content, str):
        return base64.b64encode(content.encode()).decode()
    return base64.b64encode(content).decode() if isinstance(content, bytes) else "".join(content.split())


def _size(piece: Rich, kind: str, side: str) -> str:
    size = piece.metadata.get(kind, {}).get(side)
    return f' {side}="{int(size)}"' if isinstance(size, (int, float)) else ""
