"""HTML templates and Markdown, with the same rules for the page and the report."""

from __future__ import annotations

from functools import cache

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup

# Nothing that leads out of the page or brings HTML in: such text stays text.
UNSAFE = ["link", "image", "autolink", "html_block", "html_inline", "reference"]


@cache
def environment(package: str) -> jinja2.Environment:
    """Return the templates of a package: everything is escaped unless it is Markup."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters["markdown"] = markdown
    return made


def markdown(text: str) -> Markup:
    """Return Markdown as HTML, without links, pictures or HTML of its own.

    >>> print(markdown("1. one *more*"))
    <ol>
    <li>one <em>more</em></li>
    </ol>
    <BLANKLINE>
    """
    return Markup(_parser().render(text))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).disable(UNSAFE)
