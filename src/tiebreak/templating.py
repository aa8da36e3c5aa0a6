"""Templates of HTML and of sentences, and Markdown, with the same rules everywhere."""

from __future__ import annotations

import re
from functools import cache

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup

from tiebreak.wording import agreeing, clip, counted, number, percent

# Nothing that leads out of the page or brings HTML in: such text stays text.
UNSAFE = ["link", "image", "autolink", "html_block", "html_inline", "reference"]


@cache
def environment(package: str, *, is_html: bool = True) -> jinja2.Environment:
    """Return the templates of a package; in HTML everything is escaped unless it is Markup."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=is_html,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters["markdown"] = markdown
    made.globals |= {each.__name__: each for each in (agreeing, clip, counted, number, percent)}
    return made


def sentences(package: str, name: str, **given: object) -> list[str]:
    """Return the sentences of a template of plain text, in which each paragraph is one of them."""
    template = environment(package, is_html=False).get_template(name)
    paragraphs = re.split(r"\n\s*\n", template.render(**given))
    lines = (re.sub("[ \n]+", " ", each).strip(" ") for each in paragraphs)
    return [line for line in lines if line]


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
