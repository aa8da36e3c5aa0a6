"""The lead's view of people: who answers how much, how often they err, and how to invite more."""

from __future__ import annotations

from tiebreak.markup import Markup, clip, join, section, tag
from tiebreak.page import layout
from tiebreak.page.room import Room
from tiebreak.page.tokens import MOST_NAME, Visitor
from tiebreak.page.watching import PersonSummary
from tiebreak.report.charts import number, percent, table


def show(
    room: Room,
    visitor: Visitor,
    people: list[PersonSummary],
    invited: list[tuple[str, str]],
) -> Markup:
    """Return the whole view."""
    return join(
        [
            tag("h1", "People"),
            section("Who answers", "who", _table(people)),
            section(
                "Invite",
                "invite",
                tag(
                    "p",
                    "Each person has an invitation of their own. It lets one browser in, the first "
                    "that opens it.",
                ),
                _form(room, visitor),
                *(_personal(*each) for each in invited),
            ),
        ]
    )


def _table(people: list[PersonSummary]) -> Markup:
    if not people:
        return tag("p", "Nobody has answered yet.", class_="note")
    header = ["person", "answers", "can’t tell", "contradicted", "error rate", "seconds", "last"]
    rows = [
        [
            clip(each.who, MOST_NAME),
            number(each.n_answers),
            number(each.n_unsure),
            number(each.n_contradicted),
            percent(each.error_rate),
            number(each.seconds, 1),
            each.last,
        ]
        for each in people
    ]
    words = (
        "Contradicted: answers that the labels of the last fit speak against. Error rate: as "
        "estimated once several people answer. Seconds: the median of one answer."
    )
    return join([Markup(table("Answers by person", header, rows)), tag("p", words, class_="note")])


def _form(room: Room, visitor: Visitor) -> Markup:
    return layout.form(
        room.tokens,
        visitor,
        "/invite",
        tag("label", tag("span", "Names, one a line"), tag("textarea", name="who", rows=3)),
        tag(
            "label",
            tag("input", type="checkbox", name="again", value="1"),
            " again, for people who were invited before",
        ),
        tag("button", "Make invitations", type="submit"),
        class_="filter",
    )


def _personal(who: str, address: str) -> Markup:
    return join([tag("p", f"For {who}:", role="status"), _address(address, who)])


def _address(address: str, who: str) -> Markup:
    return tag(
        "input",
        type="text",
        readonly=True,
        value=address,
        class_="address",
        aria_label=f"Invitation for {who}",
    )
