"""Nobody answers under another's name, and nobody sees more than the lead allows."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from page.served import TOKEN, Client, Server, invited, join, lead, serving

from tiebreak import tables
from tiebreak.page import guard

WORKERS = [f"worker-{number}@example.com" for number in range(4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a job whose workers have addresses for names."""
    folder = tmp_path_factory.mktemp("strangers")
    rows = [(f"t{t}", w, f"c{(t * k) % 2}") for t in range(30) for k, w in enumerate(WORKERS)]
    columns = dict(
        zip(("task", "worker", "label"), map(list, zip(*rows, strict=True)), strict=True)
    )
    tables.write_table(folder / "r.csv", columns)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Return a server for a lead and those invited."""
    with serving(folder, "r.csv", "--session", "s.db") as running:
        yield running


def names(folder: Path) -> set[str]:
    """Return who answered, as the file has it."""
    with closing(sqlite3.connect(folder / "s.db")) as db:
        return {who for (who,) in db.execute("SELECT DISTINCT who FROM events")}


def invitation_for(by: Client, who: str, **fields: Any) -> str:
    """Let a lead make an invitation; return its address."""
    page = by.post("/invite", who=who, **fields).body
    found = re.search(rf'value="[^"]*(/join\?[^"]+)"[^>]*Invitation for {re.escape(who)}', page)
    assert found is not None, page
    return unescape(found[1])


def test_who_has_a_name_keeps_it(server: Server, folder: Path) -> None:
    boss = lead(server, "boss of names")
    ann = invited(boss, server, "ann")
    bob = invited(boss, server, "bob")
    for guest, other in ((ann, "bob"), (bob, "ann"), (bob, "boss of names"), (ann, "somebody")):
        cookie = guest.cookie
        reply = guest.post("/name", script=False, who=other)
        assert reply.status == 403
        assert guest.cookie == cookie
    assert boss.post("/name", script=False, who="ann").status == 403
    assert bob.get("/").status == 200
    assert bob.answer(0).status == 200
    assert "You are <b" in bob.get("/").body
    assert "ann" not in names(folder)
    assert "bob" in names(folder)


def test_a_name_in_use_is_refused(server: Server) -> None:
    boss = lead(server, "boss in use")
    invited(boss, server, "carl")
    other = Client(server)
    other.get(f"/?token={TOKEN}")
    other.get("/")
    for who in ("carl", "boss in use", " carl "):
        assert other.post("/name", script=False, who=who).status == 409
        assert other.get("/watch").status == 303  # no name yet
    assert other.post("/name", script=False, who="carl", again="1").status == 409  # a guest's
    assert other.post("/name", script=False, who="boss in use", again="1").status == 303
    assert boss.post("/invite", who="boss in use", again="1").status == 409  # a lead's
    assert boss.post("/invite", who="carl").status == 409
    assert boss.post("/invite", who="new\ncarl").status == 409


def test_a_name_that_answered_elsewhere_is_in_use(server: Server, folder: Path) -> None:
    from tiebreak.ask import Session

    with Session(folder / "s.db", tables.read_responses(folder / "r.csv"), who="tess") as terminal:
        terminal.answer(terminal.question("t3"), "c0")
    boss = lead(server)
    boss.get("/")  # reads what is new
    assert boss.post("/invite", who="tess").status == 409
    assert boss.post("/invite", who="tess", again="1").status == 200


def test_an_invitation_is_for_one_browser(server: Server, folder: Path) -> None:
    boss = lead(server)
    address = invitation_for(boss, "dora")
    previewed = Client(server)
    assert previewed.get(address).status == 200  # a chat that shows what is behind a link
    assert previewed.cookie is None
    dora = Client(server)
    assert join(dora, address).status == 303
    thief = Client(server)
    assert join(thief, address).status == 403
    assert thief.cookie is None
    assert dora.get("/").status == 200
    assert join(dora, address).status == 303  # who opens it again goes on
    assert dora.answer(0).status in (200, 409)
    assert dora.get("/").status == 200


def test_a_new_invitation_takes_the_place_of_the_old(server: Server) -> None:
    boss = lead(server)
    old = invitation_for(boss, "emil")
    before = Client(server)
    assert join(before, old).status == 303
    assert before.get("/").status == 200
    new = invitation_for(boss, "emil", again="1")
    assert before.get("/").status == 403
    assert before.post("/answer", question=before.question, says=0).status == 403
    assert join(Client(server), old).status == 403
    after = Client(server)
    assert join(after, new).status == 303
    assert after.get("/").status == 200


def test_several_people_are_invited_at_once(server: Server) -> None:
    page = lead(server).post("/invite", who="fay\n\n gus \n").body
    assert "Invitation for fay" in page
    assert "Invitation for gus" in page


def test_no_invitation_is_for_anybody(server: Server) -> None:
    page = lead(server).get("/people").body
    assert "/join" not in page
    for made in ([None], [None, "x"], ["eve"], [], "eve", ["eve", None]):
        signed = guard.Tokens(TOKEN).signed("invitation", made)
        assert join(Client(server), f"/join?invitation={signed}").status == 403
    assert join(Client(server), "/join?invitation=x").status == 403
    assert join(Client(server), "/join").status == 403


def test_a_question_is_answered_by_whom_it_was_asked(server: Server, folder: Path) -> None:
    boss = lead(server)
    hal = invited(boss, server, "hal")
    ida = invited(boss, server, "ida")
    asked_of_hal = hal.question
    assert asked_of_hal
    for path in ("/answer", "/skip"):
        assert ida.post(path, question=asked_of_hal, says=0).status == 409
    assert boss.post("/answer", question=asked_of_hal, says=0).status == 409
    assert hal.post("/answer", question=asked_of_hal, says=0).status == 200
    assert "ida" not in names(folder)


def test_what_others_answered_is_theirs(server: Server, folder: Path) -> None:
    boss = lead(server)
    jan = invited(boss, server, "jan of secrets")
    kim = invited(boss, server, "kim")
    assert jan.answer(0).status == 200
    with closing(sqlite3.connect(folder / "s.db")) as db:
        (last,) = db.execute("SELECT max(id) FROM events WHERE who LIKE 'jan%'").fetchone()
    for path in ("/undo", "/keep"):
        reply = kim.post(path, answer=last)
        assert reply.status == 409
        assert "jan of secrets" not in reply.body


def test_guests_see_no_probabilities_and_no_colleagues(server: Server) -> None:
    boss = lead(server)
    lea = invited(boss, server, "lea")
    page = lea.get("/").body
    assert "/why" not in page
    question = lea.question
    reply = lea.get(f"/why?question={question}")
    assert reply.status == 403
    for body in (page, reply.body):
        assert "@example.com" not in body
        assert "boss" not in body
    page = boss.get("/").body
    assert "@example.com" in boss.get(f"/why?question={boss.question}").body


def test_a_lead_may_allow_it(folder: Path) -> None:
    with serving(folder, "r.csv", "--session", "open.db", "--show-why") as running:
        guest = invited(lead(running), running, "max")
        assert "/why" in guest.get("/").body
        shown = guest.get(f"/why?question={guest.question}")
        assert shown.status == 200
        assert "@example.com" in shown.body
        other = invited(lead(running), running, "ned")
        assert other.get(f"/why?question={guest.question}").status == 409  # asked of another


def test_names_are_held_after_a_restart(folder: Path) -> None:
    with serving(folder, "r.csv", "--session", "again.db") as running:
        boss = lead(running)
        address = invitation_for(boss, "olga")
        olga = Client(running)
        assert join(olga, address).status == 303
        assert olga.get("/").status == 200
    with serving(folder, "r.csv", "--session", "again.db") as running:
        assert join(Client(running), address).status == 403
        back = Client(running, olga.cookie)
        assert back.get("/").status == 200
        assert lead(running).post("/invite", who="olga").status == 409
