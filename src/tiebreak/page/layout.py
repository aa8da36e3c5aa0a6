"""The layout of every view: head, navigation, live regions, forms."""

from __future__ import annotations

from functools import cache
from importlib import resources

from tiebreak.markup import Child, Markup, html_document, tag
from tiebreak.page.tokens import Tokens, Visitor
from tiebreak.report import charts

VIEWS = (("/", "Ask", False), ("/watch", "Watch", True), ("/people", "People", True))
# No delay between what comes in and its buttons: a key in between would leave the page.
HTMX = (
    '{"allowEval":false,"includeIndicatorStyles":false,"historyEnabled":false,'
    '"defaultSettleDelay":0}'
)


def document(
    title: str,
    *content: Child,
    visitor: Visitor | None = None,
    here: str = "",
    goes_to: str | None = None,
) -> str:
    """Return a whole page; `goes_to`: where a browser goes on from it by itself."""
    onwards = None
    if goes_to is not None:
        onwards = tag("meta", http_equiv="refresh", content=f"0; url={goes_to}")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="htmx-config", content=HTMX),
        onwards,
        tag("title", f"{title} · tiebreak"),
        tag("link", rel="stylesheet", href="/static/page.css"),
        tag("link", rel="icon", href="/static/icon.svg"),
        tag("script", src="/static/htmx.min.js", defer=True),
        tag("script", src="/static/page.js", defer=True),
    )
    body = tag(
        "body",
        tag("a", "To the page", href="#page", class_="skip"),
        tag("header", tag("p", "tiebreak", class_="brand"), _navigation(visitor, here)),
        tag("main", *content, id="page", tabindex="-1"),
        # Screen readers say what comes into these; they must be there before it does.
        tag("p", id="said", role="status", class_="said"),
        tag("p", id="failed", role="alert", class_="said"),
    )
    return html_document(head, body)


def form(
    tokens: Tokens,
    visitor: Visitor,
    action: str,
    *content: Child,
    into: str | None = None,
    **attributes: object,
) -> Markup:
    """Return a form that posts; with script its answer goes into one element, else it is a page."""
    csrf = tag("input", type="hidden", name="csrf", value=tokens.csrf(visitor))
    if into is not None:
        attributes = {
            "hx_post": action,
            "hx_target": into,
            "hx_swap": "outerHTML",
            **attributes,
        }
    return tag("form", csrf, *content, method="post", action=action, **attributes)


def say(words: str) -> Markup:
    """Return what puts words into the live region, beside the part of a page that is replaced."""
    return tag("p", words, id="said", role="status", class_="said", hx_swap_oob="innerHTML")


@cache
def style() -> str:
    """Return the whole style: of charts and tables, of the report, and of the page."""
    own = resources.files("tiebreak.page").joinpath("static", "page.css").read_text("utf-8")
    return "\n".join([charts.stylesheet(), charts.stylesheet("report"), own])


def _navigation(visitor: Visitor | None, here: str) -> Markup | None:
    if visitor is None or visitor.who is None:
        return None
    entries = [
        tag("li", tag("a", name, href=path, aria_current="page" if path == here else None))
        for path, name, is_for_leads in VIEWS
        if visitor.is_lead or not is_for_leads
    ]
    who = tag("li", "You are ", tag("b", visitor.who, class_="id"), class_="who")
    return tag("nav", tag("ul", *entries, who), aria_label="Views")
