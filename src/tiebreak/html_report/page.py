"""The page of a report: one file with its style inside, no script, nothing from the network."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from tiebreak import charts
from tiebreak.arguments import refused
from tiebreak.charts import percent
from tiebreak.html_report.sections import SECTIONS
from tiebreak.html_report.subject import SIGNS, Sentence
from tiebreak.markup import Markup, figure_list, html_document, join, section, tag
from tiebreak.wording import counted

GENERATOR = "tiebreak"
# Nothing may be loaded and no script may run, whatever an id or a text holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(found: dict[str, Any]) -> str:
    """Make the page from what `gather` found."""
    if not isinstance(found, dict) or not found.keys() >= {"sections", "source"}:
        raise refused("found", "what html_report.gather returned", found)
    sections = [
        (key, each.TITLE, each.show(found["sections"][key]))
        for key, each in SECTIONS.items()
        if found["sections"][key] is not None
    ]
    shown = [section(title, key, content) for key, title, content in sections]
    title = f"Report on {found['source']}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=GENERATOR),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", charts.stylesheet(), stylesheet()),
    )
    body = tag(
        "body",
        tag("a", "To the report", href="#report", class_="skip"),
        _header(found, title),
        tag("main", _top(found, sections), *shown, id="report"),
        _footer(found),
    )
    return html_document(head, body)


@cache
def stylesheet() -> Markup:
    """Return the style of the page around charts and tables, as CSS."""
    style = resources.files("tiebreak.html_report").joinpath("report.css")
    return Markup(style.read_text("utf-8"))


def plain_words(found: dict[str, Any]) -> list[Sentence]:
    """Return what the report says first, what somebody should look at before the rest."""
    said = [
        sentence
        for key, each in SECTIONS.items()
        if found["sections"][key] is not None
        for sentence in each.words(found["sections"][key])
    ]
    return sorted(said, key=lambda sentence: SIGNS.index(sentence.sign))


def _header(found: dict[str, Any], title: str) -> Markup:
    n = found["counts"]
    parts = [counted(n[f"{noun}s"], noun) for noun in ("response", "task", "worker")]
    parts.append(counted(n["classes"], "class"))
    if n["links"]:
        parts.append(counted(n["links"], "link"))
    if n["gold"]:
        parts.append(counted(n["gold"], "known label"))
    return tag("header", tag("h1", title), tag("p", " · ".join(parts)))


def _top(found: dict[str, Any], sections: list[tuple[str, str, Markup]]) -> Markup:
    said = [
        tag(
            "li",
            tag("span", f"{sentence.sign}: ", class_="sign"),
            sentence.text,
            class_=sentence.sign.lower(),
        )
        for sentence in plain_words(found)
    ]
    entries = [tag("li", tag("a", title, href=f"#{key}")) for key, title, _ in sections]
    return join(
        [
            section("In plain words", "plain", _tiles(found), tag("ul", *said, class_="words")),
            tag("nav", tag("ul", *entries), aria_label="Sections"),
        ]
    )


def _tiles(found: dict[str, Any]) -> Markup:
    """Show the few numbers that everybody asks for."""
    sections = found["sections"]
    tiles: list[tuple[str, str]] = []
    labels = sections["labels"]
    if labels is not None:
        share = labels["n_doubtful"] / labels["n_tasks"]
        tiles.append((f"{labels['n_doubtful']:,}", f"doubtful labels, {percent(share)} of all"))
        tiles.append((f"{labels['expected_wrong']:,.1f}", "labels expected to be wrong"))
    scores = sections["scores"]
    if scores is not None:
        tiles.append((percent(scores["accuracy"]), f"of {scores['n_tasks']:,} known labels found"))
    agreement = sections["agreement"]
    if agreement is not None and agreement["alpha"]["value"] is not None:
        tiles.append((f"{agreement['alpha']['value']:.2f}", "Krippendorff's α"))
    links = sections["links"]
    if links is not None:
        tiles.append((f"{links['n_broken']:,}", f"of {links['n_links']:,} links broken"))
    return figure_list(tiles)


def _footer(found: dict[str, Any]) -> Markup:
    said = (
        f"Written {found['written']} by tiebreak {found['tiebreak']}. The same numbers, for "
        f"programs, are in the .json file beside this page (version {found['version']})."
    )
    return tag("footer", tag("p", said))
