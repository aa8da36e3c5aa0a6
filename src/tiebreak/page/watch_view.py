"""The view to watch in: the curve, the tasks in doubt, labels set by hand, downloads."""

from __future__ import annotations

from collections.abc import Hashable
from urllib.parse import urlencode

from tiebreak.ask import Answer
from tiebreak.markup import Markup, clip, figure_list, join, section, tag
from tiebreak.page import layout
from tiebreak.page.room import Room
from tiebreak.page.tokens import Visitor
from tiebreak.page.watching import Doubt, Listing, Outlook, Wanted
from tiebreak.report import charts
from tiebreak.report.charts import number, percent
from tiebreak.wording import counted

DOWNLOADS = (
    ("labels", "the fused labels, with probabilities"),
    ("links", "the answers that are links"),
    ("known", "the labels that people gave"),
)
LONGEST = 300  # characters of a text in the list
MOST_OPTIONS = 500  # classes in a list to choose from


def show(
    room: Room,
    visitor: Visitor,
    outlook: Outlook,
    listing: Listing,
    wanted: Wanted,
    *,
    follows: bool = False,
) -> Markup:
    """Return the whole view; `follows`: the curve grows by itself."""
    return join(
        [
            tag("h1", "Watch"),
            progress(outlook, follows=follows),
            tasks(room, visitor, listing, wanted),
            _set_by_hand(room, visitor, room.by_hand()),
            _downloads(),
        ]
    )


def progress(outlook: Outlook, *, follows: bool) -> Markup:
    """Return numbers and curve; they renew themselves only where somebody asked for it."""
    renewing = {"hx_get": "/progress", "hx_trigger": "every 5s", "hx_swap": "outerHTML"}
    words = "Stop following" if follows else "Follow: renew every 5 seconds"
    return tag(
        "div",
        _standing(outlook),
        section(
            "How it goes",
            "how",
            _curve(outlook),
            tag("p", tag("a", words, href="/watch" if follows else "/watch?follow=1")),
        ),
        **(renewing if follows else {}),
    )


def tasks(room: Room, visitor: Visitor, listing: Listing, wanted: Wanted) -> Markup:
    """Return the list of tasks, with what it can be searched by."""
    found = f"{counted(listing.n_found, 'task')}, those in most doubt first."
    return section(
        "Tasks",
        "tasks-title",
        _filter(room, wanted),
        tag("p", found, role="status"),
        tag("ul", *(_task(room, visitor, each) for each in listing.rows), class_="tasks"),
        _pages(room, listing, wanted),
        id="tasks",
    )


def _standing(outlook: Outlook) -> Markup:
    tiles = [
        (f"{outlook.wrong:,.1f}", f"of {outlook.n_tasks:,} labels expected to be wrong"),
        (f"{outlook.n_asked:,}", "questions answered"),
        (f"{outlook.per_hour:,.0f}", "answers an hour"),
        (f"{outlook.n_changed:,}", "labels changed by the last fit"),
    ]
    if outlook.questions_left is not None:
        tiles.append((f"{outlook.questions_left:,.0f}", "questions left, as it looks now"))
    if outlook.hours_left is not None:
        tiles.append((_duration(outlook.hours_left), "left at this pace"))
    return figure_list(tiles)


def _duration(hours: float) -> str:
    return f"{60.0 * hours:.0f} min" if hours < 2.0 else f"{hours:,.1f} h"


def _curve(outlook: Outlook) -> Markup:
    points = outlook.points
    chart = charts.line(
        "Labels expected to be wrong",
        _target_in_words(outlook),
        ("answers", "expected wrong labels"),
        [float(point.n_answers) for point in points],
        [point.wrong for point in points],
        rows=[[number(point.n_answers), number(point.wrong, 1)] for point in points],
    )
    return Markup(chart.html("curve"))


def _target_in_words(outlook: Outlook) -> str:
    if outlook.allowed is None:
        return "After each fit. No target was set: --target 0.95 would say how far to go."
    if outlook.wrong <= outlook.allowed:
        return f"After each fit. The target, {outlook.allowed:,.1f} wrong, is met."
    if outlook.questions_left is None:
        return f"After each fit. The target is {outlook.allowed:,.1f} wrong; too early to say when."
    return (
        f"After each fit. The target, {outlook.allowed:,.1f} wrong, is crossed in about "
        f"{outlook.questions_left:,.0f} questions, if the curve goes on as now."
    )


def _filter(room: Room, wanted: Wanted) -> Markup:
    options = [tag("option", "any class", value=""), *_class_options(room, wanted.label)]
    fields = [
        _field("Search", tag("input", type="search", name="words", value=wanted.words)),
        _field("Class", tag("select", *options, name="label")),
        _field("Worker", tag("input", name="worker", value=wanted.worker)),
        _field("Least probability", _share("low", wanted.low)),
        _field("Most probability", _share("high", wanted.high)),
        tag("button", "Show", type="submit"),
    ]
    return tag(
        "form",
        *fields,
        method="get",
        action="/watch",
        hx_get="/tasks",
        hx_target="#tasks",
        hx_swap="outerHTML",
        class_="filter",
        role="search",
    )


def _class_options(room: Room, chosen: Hashable | None) -> list[Markup]:
    classes = list(room.desk.job.responses.classes)[:MOST_OPTIONS]
    return [
        tag("option", clip(name, 60), value=place, selected=name == chosen)
        for place, name in enumerate(classes)
    ]


def _field(words: str, control: Markup) -> Markup:
    return tag("label", tag("span", words), control)


def _share(name: str, value: float) -> Markup:
    return tag("input", type="number", name=name, value=f"{value:g}", min="0", max="1", step="0.01")


def _task(room: Room, visitor: Visitor, doubt: Doubt) -> Markup:
    name = clip(doubt.task, 120)
    votes = [join([tag("b", clip(label, 60)), f" {n}"]) for label, n in doubt.votes.most_common(6)]
    return tag(
        "li",
        tag(
            "div",
            tag("span", name, class_="name id"),
            tag("span", f"{clip(doubt.label, 60)}, ", percent(doubt.probability)),
            class_="head",
        ),
        None if doubt.text is None else tag("blockquote", clip(doubt.text, LONGEST)),
        tag("p", "Votes: ", join(votes, " · ") if votes else "none", class_="votes"),
        _set_form(room, visitor, doubt, name),
    )


def _set_form(room: Room, visitor: Visitor, doubt: Doubt, name: str) -> Markup:
    options = _class_options(room, doubt.label)
    return layout.form(
        room.tokens,
        visitor,
        "/label",
        tag("input", type="hidden", name="task", value=doubt.code),
        tag("select", *options, name="label", aria_label=f"Label of {name}"),
        tag(
            "button", "Set", tag("span", f" the label of {name}", class_="tb-hidden"), type="submit"
        ),
        class_="set",
    )


def _pages(room: Room, listing: Listing, wanted: Wanted) -> Markup | None:
    if listing.n_pages < 2:
        return None
    here = min(wanted.page, listing.n_pages - 1)
    ends = [("Before", here - 1), ("Next", here + 1)]
    links = [
        tag("li", tag("a", words, href=f"/watch?{_query(room, wanted, page)}#tasks"))
        for words, page in ends
        if 0 <= page < listing.n_pages
    ]
    where = tag("li", f"Page {here + 1:,} of {listing.n_pages:,}")
    return tag("nav", tag("ul", *links, where), aria_label="Pages of tasks")


def _query(room: Room, wanted: Wanted, page: int) -> str:
    given: dict[str, object] = {"words": wanted.words, "worker": wanted.worker}
    if wanted.label is not None:
        given["label"] = room.desk.job.code_of_class(wanted.label)
    return urlencode({**given, "low": wanted.low, "high": wanted.high, "page": page})


def _set_by_hand(room: Room, visitor: Visitor, answers: list[Answer]) -> Markup:
    rows = [
        tag(
            "li",
            layout.form(
                room.tokens,
                visitor,
                "/label/undo",
                tag("input", type="hidden", name="answer", value=each.id),
                tag("span", f"{clip(each, 120)}, by {clip(each.who, 40)} ", class_="id"),
                tag("button", "Undo", tag("span", f" {clip(each, 120)}", class_="tb-hidden")),
                class_="set",
            ),
        )
        for each in answers[:50]
    ]
    more = f"The last 50 of {len(answers):,}." if len(answers) > 50 else None
    return section(
        "Labels set by hand",
        "by-hand",
        tag("p", "They count as known, whatever people answered."),
        tag("ul", *rows, class_="ways") if rows else tag("p", "None yet.", class_="note"),
        None if more is None else tag("p", more, class_="note"),
    )


def _downloads() -> Markup:
    rows = [
        tag(
            "li",
            f"{what}: ",
            tag("a", f"{name}.csv", href=f"/download/{name}.csv"),
            " · ",
            tag("a", f"{name}.parquet", href=f"/download/{name}.parquet"),
        )
        for name, what in DOWNLOADS
    ]
    command = "tiebreak fuse responses.csv --links links.csv --gold known.csv --gold-weight 1"
    return section(
        "Download",
        "download",
        tag("ul", *rows, class_="ways"),
        tag(
            "p",
            "The labels are those of ",
            tag("code", f"{command} --link-sampling pairs"),
            ", as long as one person answers and each class has a known label.",
            class_="note",
        ),
    )
