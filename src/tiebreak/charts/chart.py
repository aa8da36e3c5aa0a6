"""A chart: a drawing with its title, its description and its numbers."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

from tiebreak.charts.table import Row, table
from tiebreak.errors import OptionError
from tiebreak.markup import Child, Markup, html_document, join, tag
from tiebreak.tables.write import open_target

NAMESPACE = "http://www.w3.org/2000/svg"
NARROW = 440.0  # charts that are wider keep a least width on a phone, and are scrolled there
ENDINGS = (".svg", ".html")


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A picture for readers, and the same numbers as a table for everybody.

    Notebooks show it by itself; `save` writes it as .svg or .html; `svg()` and `html()` are its
    markup for a page that has the stylesheet.
    """

    title: str
    description: str
    header: tuple[str, ...]
    rows: tuple[Row, ...] = field(repr=False)
    drawing: Markup = field(repr=False)
    width: float
    height: float

    def svg(self, key: str | None = None) -> Markup:
        """Return the picture; `key` begins the ids of its title and description on the page."""
        key = key or f"tb-{zlib.crc32((self.title + self.drawing).encode()):08x}"
        return tag(
            "svg",
            tag("title", self.title, id=f"{key}-title"),
            tag("desc", self.description, id=f"{key}-desc"),
            self.drawing,
            xmlns=NAMESPACE,
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            width=f"{self.width:g}",
            height=f"{self.height:g}",
            class_="tb-chart tb-wide" if self.width > NARROW else "tb-chart",
            role="img",
            aria_labelledby=f"{key}-title {key}-desc",
        )

    def html(self, key: str | None = None) -> Markup:
        """Return a figure: title, picture, description, and the numbers to unfold."""
        behind = table(self.title, self.header, self.rows, shows_caption=False)
        words = tag("summary", "The numbers", tag("span", f": {self.title}", class_="tb-hidden"))
        picture = tag(
            "div",
            self.svg(key),
            class_="tb-scroll",
            role="group",
            tabindex="0",
            aria_label=f"Chart: {self.title}",
        )
        caption = tag("figcaption", tag("strong", self.title), " ", tag("span", self.description))
        return tag("figure", caption, picture, tag("details", words, behind), class_="tb-figure")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart to a file of its own: .svg, or .html with its numbers."""
        ending = Path(path).suffix.lower()
        if ending not in ENDINGS:
            raise OptionError(f"A chart is saved as {' or '.join(ENDINGS)}; got {str(path)!r}.")
        text = self._alone() if ending == ".svg" else self._page()
        with open_target(path) as out:
            out.write(text.encode())

    def _repr_svg_(self) -> str:
        return self._alone()

    def _repr_html_(self) -> str:
        return join([tag("style", stylesheet()), tag("div", self.html(), class_="tb-notebook")])

    def _alone(self) -> str:
        """Return the picture with its colours inside and a ground to stand on."""
        ground = tag("rect", width="100%", height="100%", class_="tb-ground")
        style = tag("style", stylesheet())
        picture = self.svg()
        head, desc, rest = picture.partition("</desc>")
        return head + desc + style + ground + rest + "\n"

    def _page(self) -> str:
        head = tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("title", self.title),
            tag("style", stylesheet()),
        )
        body = tag("body", tag("main", self.html()), class_="tb-notebook")
        return html_document(head, body)


@cache
def stylesheet() -> Markup:
    """Return the colours and sizes of charts and tables, light and dark, as CSS."""
    return Markup(resources.files("tiebreak.charts").joinpath("chart.css").read_text("utf-8"))


def text(x: float, y: float, words: Child, kind: str = "", anchor: str | None = None) -> Markup:
    """Write words into a drawing."""
    classes = f"tb-text {kind}".strip()
    return tag("text", words, x=f"{x:g}", y=f"{y:g}", class_=classes, text_anchor=anchor)


def segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """Draw a straight line."""
    return tag("line", x1=f"{x1:g}", y1=f"{y1:g}", x2=f"{x2:g}", y2=f"{y2:g}", class_=kind)


def box(x: float, y: float, width: float, height: float, kind: str, **more: object) -> Markup:
    """Draw a rectangle."""
    return tag(
        "rect",
        x=f"{x:g}",
        y=f"{y:g}",
        width=f"{max(width, 0.0):g}",
        height=f"{max(height, 0.0):g}",
        class_=kind,
        **more,
    )


def as_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Keep rows as they are now."""
    return tuple(tuple(row) for row in rows)
