"""ANSI text as HTML: colours become spans, nothing else gets through."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbshm.views.ansi import ansi_to_html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain", "plain"),
        ("<script>alert('&')</script>", "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;"),
        ("\x1b[31mred\x1b[0m end", '<span class="ansi-red-fg">red</span> end'),
        ("\x1b[31mred\x1b[m end", '<span class="ansi-red-fg">red</span> end'),
        ("\x1b[1;92;44mx", '<span class="ansi-bold ansi-green-intense-fg ansi-blue-bg">x</span>'),
        ("\x1b[1ma\x1b[22mb", '<span class="ansi-bold">a</span>b'),
        ("\x1b[3;4ma\x1b[23;24mb", '<span class="ansi-italic ansi-underline">a</span>b'),
        ("\x1b[31ma\x1b[39mb", '<span class="ansi-red-fg">a</span>b'),
        ("\x1b[107ma\x1b[49mb", '<span class="ansi-white-intense-bg">a</span>b'),
        ("\x1b[38;5;9mx", '<span class="ansi-red-intense-fg">x</span>'),
        ("\x1b[38;5;196mx", '<span style="color:rgb(255,0,0)">x</span>'),
        ("\x1b[48;5;255mx", '<span style="background-color:rgb(238,238,238)">x</span>'),
        ("\x1b[38;2;1;2;999mx", '<span style="color:rgb(1,2,255)">x</span>'),
        ("\x1b[7mx", '<span class="ansi-default-inverse-fg ansi-default-inverse-bg">x</span>'),
        ("\x1b[7;31mx", '<span class="ansi-default-inverse-fg ansi-red-bg">x</span>'),
        ("a\x1b[2Kb\x1b[1Ac", "abc"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07after", "after"),
        ("bell\x07 nul\x00 del\x7f tab\t", "bell\u2407 nul\u2400 del\u2421 tab\t"),
        ("\x1b[38mx", "x"),
        ("\x1b[38;5mx", '<span class="ansi-black-fg">x</span>'),
        ("lonely \x1b", "lonely "),
    ],
)
def test_text_is_written_as_html(text: str, html: str) -> None:
    assert ansi_to_html(text) == html


@given(st.text(alphabet=st.sampled_from("\x1b[]();:?0123456789mKA<>&\"'ab \n\x07\\")))
def test_whatever_is_written_only_spans_come_out(text: str) -> None:
    html = ansi_to_html(text)
    without_spans = re.sub(r'<span( class="[a-z -]+")?( style="[a-z0-9:;,()-]+")?>|</span>', "", html)
    assert "<" not in without_spans
    assert ">" not in without_spans
    assert "\x1b" not in html
