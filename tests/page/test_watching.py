"""What a lead sees: the curve and where it goes, tasks by what is searched, people, contents."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tiebreak as tb
from tiebreak.ask import Desk
from tiebreak.ask.log import Event
from tiebreak.ask.storage import FitPoint
from tiebreak.errors import InputError
from tiebreak.page import watch_view, watching
from tiebreak.page.contents import Contents, markdown
from tiebreak.page.room import Room
from tiebreak.page.tokens import Tokens, clean_name
from tiebreak.page.watching import Wanted, listing, pace, questions_to


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    crowd = tb.simulate.crowd(60, 6, 3, accuracy=(0.5, 0.8), random_state=0)
    texts = {task: f"text number {at}" for at, task in enumerate(crowd.responses.tasks)}
    with Desk(tmp_path / "s.db", crowd.responses, texts=texts, background=True) as made:
        made.fits.last(made.log.snapshot())
        yield made


def test_the_list_begins_with_the_tasks_in_most_doubt(desk: Desk) -> None:
    found = listing(desk, desk.last_fit(), Wanted())
    assert found.n_found == 60
    assert found.n_pages == 3
    shares = [row.probability for row in found.rows]
    assert shares == sorted(shares)
    last = listing(desk, desk.last_fit(), Wanted(page=99))
    assert len(last.rows) == 20
    assert last.rows[-1].probability >= shares[-1]


def test_the_list_is_searched_by_words_class_probability_and_worker(desk: Desk) -> None:
    fit = desk.last_fit()
    assert [row.text for row in listing(desk, fit, Wanted(words="NUMBER 17")).rows] == [
        "text number 17"
    ]
    name = desk.job.responses.classes[1]
    assert {row.label for row in listing(desk, fit, Wanted(label=name)).rows} == {name}
    low = listing(desk, fit, Wanted(high=0.6))
    assert all(row.probability <= 0.6 for row in low.rows)
    assert low.n_found < 60
    worker = str(desk.job.responses.workers[0])
    theirs = listing(desk, fit, Wanted(worker=worker))
    assert all(worker in {str(v.worker) for v in desk.votes(row.task)} for row in theirs.rows)
    assert listing(desk, fit, Wanted(worker="nobody")).n_found == 0


def test_people_are_counted_and_contradicted_by_the_labels(desk: Desk) -> None:
    fit = desk.last_fit()
    task = desk.job.responses.tasks[0]
    names = list(desk.job.responses.classes)
    believed = fit.model.labels_.best()[task]
    ann = desk.session("ann")
    ann.answer(ann.question(task), believed)
    bob = desk.session("bob")
    bob.answer(bob.question(task), next(name for name in names if name != believed))
    bob.answer(bob.question(desk.job.responses.tasks[1]), "unsure")
    found = {each.who: each for each in watching.people(desk)}
    assert (found["ann"].n_answers, found["ann"].n_contradicted) == (1, 0)
    assert (found["bob"].n_answers, found["bob"].n_contradicted) == (2, 1)
    assert found["bob"].n_unsure == 1


def test_a_curve_that_does_not_fall_promises_nothing() -> None:
    rising = [FitPoint(0, 10.0, 0), FitPoint(10, 11.0, 0), FitPoint(20, 12.0, 0)]
    assert questions_to(rising, 5.0) is None
    assert questions_to([FitPoint(0, 10.0, 0)], 5.0) is None
    assert questions_to([FitPoint(0, 4.0, 0)], 5.0) == 0.0
    assert questions_to([], 5.0) is None


def test_the_pace_is_that_of_the_last_hour() -> None:
    now = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def at(minutes: float) -> Event:
        when = (now - timedelta(minutes=minutes)).isoformat(timespec="milliseconds")
        return Event(1, "t", "r", when.replace("+00:00", "Z"), "ann", "same", "a", "b")

    assert pace([], now) == 0.0
    assert pace([at(90)], now) == 0.0
    assert pace([at(90), at(30), at(15), at(1)], now) == pytest.approx(6.0)


def test_a_label_by_hand_replaces_the_last_one(desk: Desk) -> None:
    room = Room(desk, Tokens(), Contents.of({}, desk.job))
    lead = room.tokens.new_visitor("lead", is_lead=True)
    task = desk.job.responses.tasks[3]
    names = list(desk.job.responses.classes)
    assert room.set_label(lead, task, names[0]) == f"Set: {task} = {names[0]}."
    assert room.set_label(lead, task, names[1]) == f"Set: {task} = {names[1]}."
    (only,) = room.by_hand()
    assert only.says == names[1]
    room.unset_label(lead, only.id)
    assert room.by_hand() == []


def test_what_the_outlook_says(desk: Desk) -> None:
    desk.budget = 10
    found = watching.outlook(desk)
    assert found.questions_left == 10.0
    assert found.wrong == desk.last_fit().wrong
    assert len(found.points) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[link](javascript:alert(1))",
        "![picture](http://evil.example/x.png)",
        "<img src=x onerror=alert(1)>",
        "**<script>alert(1)</script>**",
        "```\n<script>\n```",
        "> <iframe>",
        "- <a href='x'>",
        "# <b>",
    ],
)
def test_markdown_makes_no_link_picture_or_script(text: str) -> None:
    shown = markdown(text)
    for name in ("<a", "<img", "<script", "<iframe", "<b>"):
        assert name not in shown


def test_files_without_a_folder_are_refused_and_addresses_are_not_fetched(desk: Desk) -> None:
    task = desk.job.responses.tasks[0]
    with pytest.raises(InputError, match="--media"):
        Contents.of({"image": {task: "a.png"}}, desk.job)
    with pytest.warns(tb.errors.InputNote, match="--allow-remote"):
        closed = Contents.of({"image": {task: "https://example.org/a.png"}}, desk.job)
    assert "<img" not in closed.show(0, "text", "name")
    opened = Contents.of(
        {"image": {task: "https://example.org/a.png"}}, desk.job, allows_remote=True
    )
    assert 'src="https://example.org/a.png"' in opened.show(0, "text", "name")
    for other in (
        "http://example.org/a.png",
        "javascript:alert(1)",
        "//example.org/a.png",
        "data:x",
    ):
        odd = Contents.of({"image": {task: other}}, desk.job, allows_remote=True)
        assert "<img" not in odd.show(0, "text", "name")


def test_names_are_cleaned() -> None:
    assert clean_name("a\x00\x1b[31mb\n") == "a [31mb"
    assert clean_name("x" * 81) is None
    assert clean_name("\u202e") is None


def test_a_person_settles_what_is_theirs_and_is_not_talked_out_of_the_rest(desk: Desk) -> None:
    room = Room(desk, Tokens(), Contents.of({}, desk.job))
    now = desk.log.snapshot()
    assert desk.background is not None
    desk.background.choose_by(desk.last_fit(), now)
    task = desk.job.responses.tasks[0]
    names = list(desk.job.responses.classes)

    def says(who: str, label: int, task: Hashable = task) -> bool:
        """Answer; return whether this person is asked to settle a contradiction."""
        question = desk.session(who).question(task)
        visitor = room.tokens.new_visitor(who, is_lead=False)
        return (
            room.answer(visitor, room.sign(question, visitor), str(label)).contradiction is not None
        )

    assert names[0] != names[1]
    assert not says("ann", 0)
    assert says("ann", 1)  # against herself
    other = desk.session("bob")
    other.answer(other.question(desk.job.responses.tasks[5]), names[0])
    assert desk.background.work_once()
    assert desk.progress().is_soft
    assert not says("bob", 2)  # against ann only
    assert says("bob", 1, desk.job.responses.tasks[5])  # against himself


def test_the_next_page_keeps_what_was_searched(desk: Desk) -> None:
    room = Room(desk, Tokens(), Contents.of({}, desk.job))
    lead = room.tokens.new_visitor("lead", is_lead=True)
    wanted = Wanted("text", desk.job.responses.classes[2], high=0.9)
    found = listing(desk, desk.last_fit(), wanted)._replace(n_pages=3)
    shown = watch_view.tasks(room, lead, found, wanted)
    assert "words=text&amp;worker=&amp;label=2&amp;low=0.0&amp;high=0.9&amp;page=1" in shown
