"""Templates: HTML from Jinja files, with all text escaped, and Markdown without HTML or links."""

from __future__ import annotations

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).disable(
    ["link", "image", "autolink", "html_block", "html_inline", "reference"]
)


def environment(package: str) -> jinja2.Environment:
    """Return the templates in the folder `templates` of a package."""
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
    r"""Return Markdown as HTML; HTML, links and images in it stay as they are written.

    >>> markdown("A **cat** <b>\n\n1. one")
    Markup('<p>A <strong>cat</strong> &lt;b&gt;</p>\n<ol>\n<li>one</li>\n</ol>\n')
    """
    return Markup(_MARKDOWN.render(text))
