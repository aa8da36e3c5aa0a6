"""What a lead sees: the curve and where it goes, tasks by what is searched, people, contents."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from page.served import Client, Server, lead, serving

import tiebreak as tb
from tiebreak.ask import Desk, Question
from tiebreak.errors import InputError
from tiebreak.page import app, guard, watch
from tiebreak.page import room as rooms


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    crowd = tb.simulate.crowd(60, 6, 3, accuracy=(0.5, 0.8), random_state=0)
    texts = {task: f"text number {at}" for at, task in enumerate(crowd.responses.tasks)}
    with Desk(tmp_path / "s.db", crowd.responses, texts=texts, background=True) as made:
        made.last_fit()
        yield made


def test_the_list_begins_with_the_tasks_in_most_doubt(desk: Desk) -> None:
    found = watch.listing(desk, {})
    assert found["n_found"] == 60
    assert found["n_pages"] == 3
    shares = [row["probability"] for row in found["rows"]]
    assert shares == sorted(shares)
    last = watch.listing(desk, {"page": "99"})
    assert len(last["rows"]) == 20
    assert last["rows"][-1]["probability"] >= shares[-1]


def test_labels_that_differ_from_the_vote_are_counted(desk: Desk) -> None:
    labels = desk.last_fit().model.labels_.best()
    responses = desk.job.responses
    n_differ = 0
    for at, task in enumerate(responses.tasks):
        said = [
            responses.classes[code % responses.n_classes]
            for code in responses.code[responses.start[at] : responses.start[at + 1]]
        ]
        most = max(map(said.count, said))
        top = {name for name in said if said.count(name) == most}
        n_differ += len(top) == 1 and labels[task] not in top
    assert n_differ > 0
    assert watch.outlook(desk)["n_from_vote"] == n_differ


def test_the_list_is_searched_by_words_class_probability_and_worker(desk: Desk) -> None:
    def rows(**query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = watch.listing(desk, query)["rows"]
        return found

    assert [row["text"] for row in rows(words="NUMBER 17")] == ["text number 17"]
    name = desk.job.responses.classes[1]
    assert {row["label"] for row in rows(label="1")} == {name}
    assert all(row["probability"] <= 0.6 for row in rows(high="0.6"))
    assert watch.listing(desk, {"high": "0.6"})["n_found"] < 60
    worker = str(desk.job.responses.workers[0])
    theirs = rows(worker=worker)
    assert theirs
    assert all(worker in {str(v.worker) for v in desk.job.votes(row["task"])} for row in theirs)
    assert rows(worker="nobody") == []


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
    found = {each["who"]: each for each in watch.people(desk)}
    assert (found["ann"]["n_answers"], found["ann"]["n_contradicted"]) == (1, 0)
    assert (found["bob"]["n_answers"], found["bob"]["n_contradicted"]) == (2, 1)
    assert found["bob"]["n_unsure"] == 1


def point(n_answers: int, wrong: float, n_changed: int) -> Any:
    return SimpleNamespace(n_answers=n_answers, wrong=wrong, n_changed=n_changed)


def test_a_curve_that_does_not_fall_promises_nothing() -> None:
    rising = [point(0, 10.0, 0), point(10, 11.0, 0), point(20, 12.0, 0)]
    assert watch.questions_to(rising, 5.0) is None
    assert watch.questions_to([point(0, 10.0, 0)], 5.0) is None
    assert watch.questions_to([point(0, 4.0, 0)], 5.0) == 0.0
    assert watch.questions_to([], 5.0) is None


def test_the_pace_is_that_of_the_last_hour() -> None:
    now = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def at(minutes: float) -> Any:
        when = (now - timedelta(minutes=minutes)).isoformat(timespec="milliseconds")
        return SimpleNamespace(at=when.replace("+00:00", "Z"))

    assert watch.pace([], now) == 0.0
    assert watch.pace([at(90)], now) == 0.0
    assert watch.pace([at(90), at(30), at(15), at(1)], now) == pytest.approx(6.0)


def test_a_label_by_hand_replaces_the_last_one(desk: Desk) -> None:
    room = rooms.Room(desk, guard.Tokens(), rooms.Contents({}, desk.job))
    lead = room.tokens.new_visitor("lead", is_lead=True)
    task = desk.job.responses.tasks[3]
    names = list(desk.job.responses.classes)
    assert str(room.set_label(lead, task, names[0])) == f"{task} = {names[0]}"
    assert str(room.set_label(lead, task, names[1])) == f"{task} = {names[1]}"
    (only,) = room.by_hand()
    assert only.says == names[1]
    room.unset_label(lead, only.id)
    assert room.by_hand() == []


def test_what_the_outlook_says(desk: Desk) -> None:
    desk.budget = 10
    found = watch.outlook(desk)
    assert found["questions_left"] == 10.0
    assert found["hours_left"] is None
    assert found["progress"].wrong == desk.last_fit().wrong
    assert found["curve"].partition("<tbody>")[2].count("<tr") == 1


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
    shown = rooms.markdown_below(text)
    for name in ("<a", "<img", "<script", "<iframe", "<b>"):
        assert name not in shown


def test_files_without_a_folder_are_refused_and_addresses_are_not_fetched(desk: Desk) -> None:
    task = desk.job.responses.tasks[0]
    with pytest.raises(InputError) as error:
        rooms.Contents({"image": {task: "a.png"}}, desk.job)
    assert error.value.code == "media-needed"
    with pytest.warns(tb.errors.InputNote) as caught:
        closed = rooms.Contents({"image": {task: "https://example.org/a.png"}}, desk.job)
    assert [getattr(each.message, "code", "") for each in caught] == ["remote-media"]
    assert closed.show(task)["image"] is None
    opened = rooms.Contents(
        {"image": {task: "https://example.org/a.png"}}, desk.job, allows_remote=True
    )
    assert opened.show(task)["image"] == "https://example.org/a.png"
    for other in (
        "http://example.org/a.png",
        "javascript:alert(1)",
        "//example.org/a.png",
        "data:x",
    ):
        odd = rooms.Contents({"image": {task: other}}, desk.job, allows_remote=True)
        assert odd.show(task)["image"] is None


def test_names_are_cleaned() -> None:
    assert guard.clean_name("a\x00\x1b[31mb\n") == "a [31mb"
    assert guard.clean_name("x" * 81) is None
    assert guard.clean_name("\u202e") is None


def test_a_person_settles_what_is_theirs_and_is_not_talked_out_of_the_rest(desk: Desk) -> None:
    room = rooms.Room(desk, guard.Tokens(), rooms.Contents({}, desk.job))
    now = desk.log.snapshot()
    assert desk.background is not None
    desk.background.choose_by(desk.last_fit(), now)
    task = desk.job.responses.tasks[0]
    names = list(desk.job.responses.classes)

    def says(who: str, label: int, task: Hashable = task) -> bool:
        """Answer; return whether this person is asked to settle a contradiction."""
        question = desk.session(who).question(task)
        visitor = room.tokens.new_visitor(who, is_lead=False)
        form = {"question": room.sign(question, visitor), "says": str(label)}
        return room.act(visitor, "answer", form)["contradiction"] is not None

    assert names[0] != names[1]
    assert not says("ann", 0)
    assert says("ann", 1)  # against herself
    other = desk.session("bob")
    other.answer(other.question(desk.job.responses.tasks[5]), names[0])
    assert desk.background.work_once()
    assert desk.progress().is_soft
    assert not says("bob", 2)  # against ann only
    assert says("bob", 1, desk.job.responses.tasks[5])  # against himself


def test_what_llms_write_is_shown_as_they_meant_it() -> None:
    shown = rooms.markdown_below(
        "# Title\nText.\n\n1. one\n2. two\n   - in it\n\n```py\nx = 1\n\ny = 2\n```"
    )
    assert '<h3 class="h1">Title</h3>' in shown
    assert shown.count("<li>") == 3
    assert "<ol>" in shown
    assert "x = 1\n\ny = 2\n</code>" in shown


def test_times_are_said_as_people_say_them() -> None:
    now = datetime(2026, 11, 18, 12, tzinfo=UTC)
    said = [
        app.ago((now - timedelta(seconds=seconds)).isoformat(), now)
        for seconds in (0, 59, 60, 7_200, 86_400, 6 * 86_400, 8 * 86_400)
    ]
    assert said == [
        "just now", "just now", "1 minute ago", "2 hours ago", "1 day ago", "6 days ago",
        "10 November 2026",
    ]  # fmt: skip


def test_it_ends_when_nothing_is_left_in_doubt(desk: Desk) -> None:
    room = rooms.Room(desk, guard.Tokens(), rooms.Contents({}, desk.job))
    desk.start()
    visitor = room.tokens.new_visitor("ann", is_lead=False)
    ann = desk.session("ann")
    for task, label in desk.last_fit().model.labels_.best().items():
        assert room.act(visitor)["finished"] is None
        with desk.lock:
            ann.answer(ann.question(task), label)
        desk.model()
        if desk.progress().wrong < 0.05:
            break
    assert desk.progress().asked >= 20
    assert desk.progress().finished is None  # a desk without target would go on
    screen = room.act(visitor)
    assert (screen["finished"], screen["question"]) == ("sure", None)
    undone = room.act(visitor, "undo")
    assert undone["question"].task == undone["about"].task  # to be answered again


@pytest.mark.parametrize(
    ("wording", "asked"),
    [
        (None, "Are these two of the same class?"),
        ("the same intent", "Are these two the same intent?"),
        ("Do both ask for money?", "Do both ask for money?"),
    ],
)
def test_the_question_is_put_in_words(tmp_path: Path, wording: str | None, asked: str) -> None:
    votes = [("a", "ann", "cat"), ("b", "ann", "dog")]
    means = {"cat": "Any feline."}
    with Desk(tmp_path / "s.db", votes, wording=wording, class_texts=means) as desk:
        room = rooms.Room(desk, guard.Tokens(), rooms.Contents({}, desk.job))
        ann = desk.session("ann")
        visitor = room.tokens.new_visitor("ann", is_lead=False)
        desk.start()
        screen = room.act(visitor)

        def shown(question: Question) -> str:
            screen.update(question=question, finished=None)
            filled = app.page("question.html", room=room, visitor=visitor, is_part=False, **screen)
            return bytes(filled.body).decode()

        is_cat = ann.question("a", label="cat")
        assert asked in shown(ann.question("a", "b"))
        assert "Any feline." not in shown(ann.question("a", "b"))
        assert "Which class is this?" in shown(ann.question("a"))
        assert shown(ann.question("a")).count("Any feline.") == 1
        assert "Is this “cat”?" in shown(is_cat)
        assert "Any feline." in shown(is_cat)
        for question in (is_cat, ann.question("a"), ann.question("b", "a")):
            form = {"question": room.sign(question, visitor), "says": "1"}
            assert room.act(visitor, "answer", form)["about"] is not None
        assert [str(each) for each in desk.answers()] == ["a ≠ cat", "a = dog", "b ≠ a"]


def test_guidelines_are_shown_to_the_people_who_answer(tmp_path: Path, messages: Path) -> None:
    (tmp_path / "g.md").write_text("# Rules\n\n1. Be *fair* <b>now</b>")
    arguments = (str(messages / "responses.csv"), "--session", "s.db", "--guidelines", "g.md")
    with serving(tmp_path, *arguments) as running:
        boss = lead(running)
        shown = "<li>Be <em>fair</em> &lt;b&gt;now&lt;/b&gt;</li>"
        assert shown in boss.get("/").body
        page = boss.post("/invite", who="max").body
        found = re.search(r'value="[^"]*(/join\?[^"]+)"', page)
        assert found is not None
        assert shown in Client(running).get(unescape(found[1])).body


def test_the_next_page_keeps_what_was_searched(server: Server) -> None:
    page = lead(server).get("/watch?words=m&label=1&high=0.999&low=0.1").body
    listed = lead(server).get("/tasks?words=m&high=0.999").body
    assert listed.count("<li>") > 20
    assert 'value="1" selected' in page
    link = "/watch?words=m&amp;worker=&amp;low=0.0&amp;high=0.999&amp;page=1#tasks"
    assert link in listed


def test_why_a_task_has_its_label_is_shown_on_request(server: Server) -> None:
    boss = lead(server)
    listed = boss.get("/tasks?words=m01").body
    found = re.search(r'action="/explain".*?name="task" value="(\d+)"', listed, re.DOTALL)
    assert found is not None
    whole = boss.get(f"/explain?task={found[1]}").body
    part = boss.get(f"/explain?task={found[1]}", **{"HX-Request": "true"}).body
    for shown in (whole, part):
        assert "m01" in shown
        assert shown.count('<th scope="row">') == 3
        assert "(w" in shown  # who voted
    assert "<html" in whole
    assert "<html" not in part
    assert boss.get("/explain?task=99999").status == 400


def test_every_table_can_be_downloaded(server: Server) -> None:
    boss = lead(server)
    for name in ("labels", "links", "known"):
        for form in ("csv", "parquet"):
            reply = boss.get(f"/download/{name}.{form}")
            assert reply.status == 200
            assert f"{name}.{form}" in reply.headers["content-disposition"]
            assert reply.raw.startswith(b"PAR1" if form == "parquet" else b"")
