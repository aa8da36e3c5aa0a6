"""The view to answer in: one decision a screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from tiebreak.ask import Contradiction, Question
from tiebreak.ask.console import EARLIER, WHY, in_words
from tiebreak.ask.results import choices_of
from tiebreak.markup import Child, Markup, clip, join, tag
from tiebreak.page import layout
from tiebreak.page.room import Reason, Room, Screen
from tiebreak.page.tokens import Visitor
from tiebreak.report.charts import percent, table
from tiebreak.wording import counted

INTO = "#ask"
FEW = 5  # workers named a label
POLL = "load delay:400ms"
SLOW_POLL = "load delay:3s"


def show(room: Room, visitor: Visitor, screen: Screen) -> Markup:
    """Return the part of the page that changes with every answer."""
    if screen.contradiction is not None:
        body = _contradiction(room, visitor, screen.contradiction)
    elif screen.question is not None:
        body = _question(room, visitor, screen.question)
    elif screen.is_waiting:
        body = _waiting()
    else:
        body = _finished(room, visitor, screen)
    since = len(room.desk.fits.history)
    return tag(
        "section",
        _standing(room, screen),
        body,
        will_change(since) if screen.has_new else tag("p", id="changed", class_="note"),
        id="ask",
        aria_labelledby="asked",
    )


def changed(n_changed: int) -> Markup:
    """Return what the last answers changed."""
    return tag("p", f"{counted(n_changed, 'label')} changed.", id="changed", class_="note")


def will_change(since: int, poll: str = POLL) -> Markup:
    """Return a place that asks what the last answers changed, once there is a fit."""
    return tag(
        "p",
        id="changed",
        class_="note",
        hx_get=f"/changed?since={since}",
        hx_trigger=poll,
        hx_swap="outerHTML",
    )


def why(reasons: list[Reason]) -> Markup:
    """Return what is believed of the tasks that are asked about, and who voted for what."""
    return tag("div", *map(_reason, reasons), class_="pair")


def _standing(room: Room, screen: Screen) -> Markup:
    progress = screen.progress
    of_budget = "" if progress.budget is None else f" of {progress.budget:,}"
    said = [
        f"{progress.asked:,}{of_budget} answered",
        f"about {progress.wrong:,.1f} of {progress.n_tasks:,} labels still wrong",
    ]
    if progress.is_soft:
        said.append("answers may err")
    return tag("p", " · ".join(said), class_="standing")


def _question(room: Room, visitor: Visitor, question: Question) -> Markup:
    signed = tag("input", type="hidden", name="question", value=room.sign(question, visitor))
    job = room.desk.job
    tasks = zip(question.tasks, (question.left_text, question.right_text), strict=False)
    shown = [
        tag(
            "article",
            tag(
                "h2",
                tag("span", "Task ", class_="tb-hidden"),
                tag("span", clip(task, 120), class_="id"),
            ),
            room.contents.show(job.code_of(task), text, clip(task, 120)),
        )
        for task, text in tasks
    ]
    choices = choices_of(question)
    skip_key = next(key for key, word in choices.commands.items() if word == "skip")
    answers = layout.form(
        room.tokens,
        visitor,
        "/answer",
        signed,
        tag("div", *_buttons(room, question), class_="answers"),
        into=INTO,
    )
    return join(
        [
            tag("h1", _asks(room, question), id="asked", tabindex="-1"),
            tag("div", *shown, class_="pair" if len(shown) > 1 else "single"),
            answers,
            tag(
                "div",
                _one(room, visitor, "/skip", "Skip", skip_key, signed),
                _one(room, visitor, "/undo", "Undo", "u"),
                _why_button(room, visitor, question) if room.may_see_why(visitor) else None,
                class_="more",
            ),
            tag("div", id="why"),
        ]
    )


def _asks(room: Room, question: Question) -> str:
    """Return the question in words."""
    if question.kind == "same":
        wording = room.desk.job.wording or "the same class"
        return f"{wording[:1].upper()}{wording[1:].rstrip('?')}?"
    if question.kind == "is":
        return f"Is this {clip(question.label, 80)}?"
    return "Which class?"


def _buttons(room: Room, question: Question) -> list[Markup]:
    """Return a button for each answer; what classes mean stands below their names."""
    keys: dict[Hashable, list[str]] = {}
    for key, says in choices_of(question).by_key.items():
        keys.setdefault(says, []).append(key)
    is_class = question.kind in ("label", "vote")
    made = [
        _button(
            clip(says, 80) if is_class else str(says).capitalize(),
            str(place),
            keys.get(says, []),
            room.desk.job.class_text(says) if is_class else None,
        )
        for place, says in enumerate(question.choices)
    ]
    return [*made, _button("Can’t tell", "unsure", ["?"], None)]


def _button(words: str, value: str, keys: list[str], meaning: str | None) -> Markup:
    key = keys[0] if keys else None
    return tag(
        "button",
        tag("span", words, class_="id"),
        None if key is None else tag("kbd", key.upper(), aria_hidden="true"),
        None if meaning is None else tag("small", clip(meaning, 200)),
        type="submit",
        name="says",
        value=value,
        data_key=" ".join(keys) or None,
        aria_keyshortcuts=key.upper() if key and len(key) == 1 else None,
    )


def _one(
    room: Room, visitor: Visitor, action: str, words: str, key: str, *content: Child
) -> Markup:
    """Return a form of one button."""
    return layout.form(room.tokens, visitor, action, *content, _plain_button(words, key), into=INTO)


def _plain_button(words: str, key: str) -> Markup:
    return tag(
        "button",
        f"{words} ",
        tag("kbd", key.upper(), aria_hidden="true"),
        type="submit",
        data_key=key,
        class_="plain",
        aria_keyshortcuts=key.upper(),
    )


def _why_button(room: Room, visitor: Visitor, question: Question) -> Markup:
    """Return what shows votes and probabilities: on request only, so that they do not sway."""
    words = "Why this pair?" if question.kind == "same" else "Why this task?"
    return tag(
        "form",
        tag("input", type="hidden", name="question", value=room.sign(question, visitor)),
        _plain_button(words, "v"),
        tag("span", in_words(question.gain), class_="note") if question.gain > 0 else None,
        method="get",
        action="/why",
        hx_get="/why",
        hx_target="#why",
    )


def _reason(reason: Reason) -> Markup:
    by_label = Counter(vote.label for vote in reason.votes)
    voters: dict[Hashable, list[str]] = {}
    for vote in reason.votes:
        voters.setdefault(vote.label, []).append(clip(vote.worker, 40))
    rows = [
        [clip(label, 60), percent(share), f"{by_label[label]} {_few(voters.get(label, []))}"]
        for label, share in reason.probabilities
    ]
    caption = f"What is believed of {clip(reason.task, 80)}"
    return Markup(table(caption, ["class", "probability", "votes"], rows))


def _few(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - FEW:,} more" if len(names) > FEW else ""
    return f"({', '.join(names[:FEW])}{more})"


def _contradiction(room: Room, visitor: Visitor, found: Contradiction) -> Markup:
    """Show why answers cannot all be true, and the three ways out."""
    earlier = [
        each for each in found.earlier[:EARLIER] if visitor.is_lead or each.who == visitor.who
    ]
    ways = [
        tag(
            "li",
            _way(room, visitor, "/undo", f"Undo {clip(each, 80)}", str(number), each.id),
            tag("span", f" by {clip(each.who, 40)}, {each.at}", class_="note"),
        )
        for number, each in enumerate(earlier, start=1)
    ]
    return join(
        [
            tag("h1", "This contradicts what was said before", id="asked", tabindex="-1"),
            tag("p", clip(found.chain, 600), class_="chain id"),
            tag("p", "They cannot all be true. What gives?"),
            tag(
                "ul",
                tag("li", _way(room, visitor, "/undo", "Undo this answer", "u", found.answer)),
                *ways,
                tag(
                    "li",
                    _way(room, visitor, "/keep", "Keep all", "k", found.answer),
                    tag("span", "answers count as fallible then", class_="note"),
                ),
                class_="ways",
            ),
        ]
    )


def _way(room: Room, visitor: Visitor, action: str, words: str, key: str, id: int) -> Markup:
    return _one(
        room, visitor, action, words, key, tag("input", type="hidden", name="answer", value=id)
    )


def _waiting() -> Markup:
    return tag(
        "div",
        tag("h1", "Choosing questions …", id="asked", tabindex="-1"),
        tag("p", "The model is looking at the answers. The next question comes by itself."),
        tag("p", tag("a", "Look again", href="/")),
        hx_get="/ask",
        hx_trigger="load delay:700ms, every 3s",  # the second: where a look failed
        hx_target=INTO,
        hx_swap="outerHTML",
    )


def _finished(room: Room, visitor: Visitor, screen: Screen) -> Markup:
    reason = screen.progress.finished or "nothing"
    downloads = [
        tag("li", tag("a", name, href=f"/download/{name}"))
        for name in ("labels.csv", "links.csv", "known.csv")
    ]
    return join(
        [
            tag("h1", "That is all for now", id="asked", tabindex="-1"),
            tag("p", WHY[reason]),
            tag("p", "Every answer is kept. Thank you."),
            tag("ul", *downloads, class_="ways") if visitor.is_lead else None,
            tag("div", _one(room, visitor, "/undo", "Undo", "u"), class_="more"),
        ]
    )
