"""Markup: HTML and SVG built from Python, with all escaping in one place.

Text is escaped wherever it enters; only what `tag` and `join` made passes as it is. Nothing else in
the package writes angle brackets.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

VOID = {"meta", "br", "col", "input", "img", "link"}  # elements of HTML that have no end
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
UNSAFE_NAME = re.compile(r"[^a-zA-Z0-9:-]")


class Markup(str):
    """Text that is markup already: every part of it was escaped when it came in."""

    __slots__ = ()


Child = object  # Markup stays as it is, None is left out, anything else is escaped


def escape(value: object) -> Markup:
    """Return a value as text that is safe between tags and in quoted attributes.

    >>> escape("<b>"), escape(Markup("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(printable(str(value))))


def printable(text: str) -> str:
    """Replace what neither HTML nor SVG may hold: control characters, halves of characters.

    >>> printable("a" + chr(0) + "b")
    'a�b'
    """
    return UNPRINTABLE.sub("�", text)


def clip(value: object, most: int) -> str:
    """Return a value as text of at most so many characters.

    >>> clip("a long name", 7)
    'a long…'
    """
    text = printable(str(value)[: 4 * most + 4])
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def join(parts: Iterable[Child], between: Child = "") -> Markup:
    """Escape parts that are not markup and put them together.

    >>> join(["a<", tag("b", "c")], ", ")
    'a&lt;, <b>c</b>'
    """
    return Markup(escape(between).join(escape(part) for part in parts if part is not None))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Make an element. `class_` is class, `data_x` data-x; None is left out, True stands bare.

    >>> tag("p", "1 < 2 ", tag("b", "x"), class_='a"b')
    '<p class="a&quot;b">1 &lt; 2 <b>x</b></p>'
    """
    said = "".join(
        _attribute(key, value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{said}>")
    return Markup(f"<{name}{said}>{join(children)}</{name}>")


def html_document(head: Markup, body: Markup) -> str:
    """Make a whole page of its two parts.

    >>> html_document(tag("head"), tag("body", "Hello")).split()[:3]
    ['<!DOCTYPE', 'html>', '<html']
    """
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def figure_list(figures: Iterable[tuple[str, str]]) -> Markup:
    """Make a list of figures, each above what it counts.

    >>> figure_list([("7", "labels")])
    '<dl class="tiles"><div><dt>labels</dt><dd>7</dd></div></dl>'
    """
    items = [tag("div", tag("dt", what), tag("dd", value)) for value, what in figures]
    return tag("dl", *items, class_="tiles")


def section(title: Child, key: str, /, *children: Child, **attributes: object) -> Markup:
    """Make a section that is named by its heading, whose id is `key`.

    >>> section("Links", "links", tag("p", "None."))
    '<section aria-labelledby="links"><h2 id="links">Links</h2><p>None.</p></section>'
    """
    heading = tag("h2", title, id=key)
    return tag("section", heading, *children, **attributes, aria_labelledby=key)


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    if UNSAFE_NAME.search(name):
        raise ValueError(f"{key!r} is not the name of an attribute.")
    if value is True:
        return f" {name}"
    return f' {name}="{html.escape(printable(str(value)))}"'
