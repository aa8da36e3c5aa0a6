"""Links: broken, doubtful, and contradictory ones with the chain that proves it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tiebreak import charts, link_graph
from tiebreak.charts import number, percent
from tiebreak.charts.table import Row
from tiebreak.errors import InputNote
from tiebreak.html_report.subject import LOOK, Sentence, Subject, name
from tiebreak.ids import Ids
from tiebreak.link_graph import Implications
from tiebreak.links import Links
from tiebreak.links.check import write_chain
from tiebreak.markup import Markup, clip, join, tag
from tiebreak.wording import counted

TITLE = "Links"
MOST_LINKS_OF_A_CHAIN = 20_000  # links of a group, for a chain through it to be looked for
LONGEST_CHAIN = 600  # characters


def measure(subject: Subject) -> dict[str, Any] | None:
    """Find links that labels break, that look wrong, or that cannot all hold."""
    model = subject.model
    links = model.links_
    if links is None or not len(links):
        return None
    broken = model.violations_
    doubtful = model.doubtful_links_
    implied = _implied(links, model.tasks_, len(model.classes_))
    report = getattr(model, "link_report_", None)
    most = subject.limits.links
    return {
        "n_links": len(links),
        "n_must": links.n_must,
        "n_cannot": links.n_cannot,
        "n_broken": 0 if broken is None else len(broken),
        "broken": [] if broken is None else _rows(subject, broken, most),
        "n_doubtful": None if doubtful is None else len(doubtful),
        "doubtful": [] if doubtful is None else _doubtful(subject, doubtful, most),
        "n_contradictory": len(implied.closure.conflicts) + len(implied.odd),
        "contradictory": _contradictions(links, model.tasks_, implied, most),
        "errors": _error_rates(getattr(model, "link_errors_", None), most),
        "components": None if report is None else dict(report._asdict()),
        "uncertain_groups": [
            {"tasks": len(group), "first": name(group[0])}
            for group in getattr(model, "uncertain_groups_", [])[:most]
        ],
        "n_uncertain_groups": len(getattr(model, "uncertain_groups_", [])),
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say how many links look wrong."""
    said = []
    for key, what in (
        ("n_doubtful", "look wrong"),
        ("n_broken", "are broken by the labels"),
        ("n_contradictory", "contradict the others"),
    ):
        if found[key]:
            of = counted(found["n_links"], "link")
            said.append(Sentence(f"{found[key]:,} of {of} {what}.", LOOK))
    if found["n_uncertain_groups"]:
        n = counted(found["n_uncertain_groups"], "group")
        said.append(
            Sentence(
                f"The class of {n} of linked tasks is uncertain: label one task of each.", LOOK
            )
        )
    return said or [Sentence(f"All {counted(found['n_links'], 'link')} hold.")]


def show(found: dict[str, Any]) -> Markup:
    """Show what is wrong with links, with chains."""
    parts: list[Markup] = [tag("p", _counts(found))]
    rows: list[Row]
    if found["contradictory"]:
        rows = [
            (f"{each['left']} {each['sign']} {each['right']}", each["chain"], each["where"])
            for each in found["contradictory"]
        ]
        shown = f"Contradictions: {len(rows):,} of {found['n_contradictory']:,}"
        parts.append(charts.table(shown, ("link", "yet other links say", "where"), rows))
    if found["doubtful"]:
        rows = [(*_cells(each), percent(each["wrong"])) for each in found["doubtful"]]
        shown = f"Links that look wrong: {len(rows):,} of {found['n_doubtful']:,}"
        parts.append(charts.table(shown, (*_HEADER, "probably wrong"), rows))
    if found["broken"]:
        rows = [_cells(each) for each in found["broken"]]
        shown = f"Links that the labels break: {len(rows):,} of {found['n_broken']:,}"
        parts.append(charts.table(shown, _HEADER, rows))
    if found["errors"]:
        rows = [
            (each["source"], percent(each["of_same"]), percent(each["of_different"]))
            for each in found["errors"]
        ]
        header = ("source", "says different of the same", "says same of different")
        parts.append(charts.table("How often links are wrong, as learnt", header, rows))
    if found["uncertain_groups"]:
        rows = [(each["first"], number(each["tasks"])) for each in found["uncertain_groups"]]
        shown = "Groups of linked tasks that could well have another class: label one task of each"
        parts.append(charts.table(shown, ("a task", "tasks in the group"), rows))
    return join(parts)


_HEADER = ("task", "and", "link", "their labels", "where")


def _counts(found: dict[str, Any]) -> str:
    said = (
        f"{counted(found['n_links'], 'link')}: {found['n_must']:,} must, {found['n_cannot']:,} "
        f"cannot. {found['n_broken']:,} broken by the labels"
    )
    if found["n_doubtful"] is not None:
        said += f", {found['n_doubtful']:,} more likely wrong than right"
    said += f", {found['n_contradictory']:,} in contradiction."
    components = found["components"]
    if components and components["large"]:
        said += f" {counted(components['large'], 'component')} of linked tasks are approximate."
    return said


def _rows(subject: Subject, links: Links, most: int) -> list[dict[str, Any]]:
    """Return links with the labels of both tasks."""
    model = subject.model
    label = model.labels_.label[model.tasks_.codes(links.tasks)]
    return [
        {
            "left": name(links.tasks[int(links.left[at])]),
            "right": name(links.tasks[int(links.right[at])]),
            "link": "must" if links.must[at] else "cannot",
            "labels": [
                name(model.classes_[int(label[end[at]])]) for end in (links.left, links.right)
            ],
            "where": clip(links.where(at), 80),
        }
        for at in range(min(most, len(links)))
    ]


def _doubtful(subject: Subject, doubtful: Any, most: int) -> list[dict[str, Any]]:
    rows = _rows(subject, doubtful.links, most)
    shares = doubtful.probability[: len(rows)].tolist()
    return [row | {"wrong": share} for row, share in zip(rows, shares, strict=True)]


def _cells(each: dict[str, Any]) -> tuple[str, ...]:
    left, right = each["labels"]
    return each["left"], each["right"], each["link"], f"{left}, {right}", each["where"]


def _error_rates(rates: Any, most: int) -> list[dict[str, Any]]:
    return [
        {
            "source": "all links" if source is None else name(source),
            "of_same": float(rate.says_different_of_same),
            "of_different": float(rate.says_same_of_different),
        }
        for source, rate in list((rates or {}).items())[:most]
    ]


def _implied(links: Links, tasks: Ids, n_classes: int) -> Implications:
    """Return what would follow if every link held, those with a weight too."""
    with warnings.catch_warnings(action="ignore", category=InputNote):  # said by the fit
        codes = links.on(tasks)
    return link_graph.imply(codes, n_classes, firm=np.ones(codes.n_links, dtype=bool))


def _contradictions(
    links: Links, tasks: Ids, implied: Implications, most: int
) -> list[dict[str, Any]]:
    """Return cannot-links whose tasks must-links join, with the chain that joins them."""
    group = implied.group[implied.links.left]
    has_chain = np.bincount(group)[group] <= MOST_LINKS_OF_A_CHAIN
    rows = []
    for place in implied.closure.conflicts[:most].tolist():
        a = int(implied.task[implied.links.left[place]])
        b = int(implied.task[implied.links.right[place]])
        chain = "a chain too long to look for"
        if has_chain[place]:
            chain = write_chain(tasks, implied.why(a, b, same=True))
        rows.append((a, "≠", b, chain, place))
    if len(implied.odd) and has_chain[implied.odd[0]]:
        cycle = implied.why_odd()
        last = cycle[-1]
        chain = f"with two classes, {write_chain(tasks, cycle)} cannot all hold"
        rows.append((last.start, "=" if last.must else "≠", last.end, chain, last.origin))
    return [
        {
            "left": name(tasks[left]),
            "sign": sign,
            "right": name(tasks[right]),
            "chain": clip(chain, LONGEST_CHAIN),
            "where": clip(links.where(int(implied.links.row[place])), 80),
        }
        for left, sign, right, chain, place in rows
    ]
