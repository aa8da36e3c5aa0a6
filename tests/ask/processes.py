"""Processes that answer, are killed, run out of disk: a script of its own, without threads.

It forks, so that a child costs milliseconds and not the import of everything. Each child
acknowledges on a pipe what it recorded, after the session said so; what the file holds in the end
is printed as JSON for the test to judge.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import tiebreak as tb
from tiebreak.ask import Answer, Question
from tiebreak.errors import SessionError

CROWD = tb.simulate.crowd(60, 6, 2, accuracy=(0.6, 0.8), random_state=0)
TRUTH = CROWD.gold.to_dict()

KINDS = ("same", "label", "is")  # all that one person can answer

Acknowledge = Callable[[str, int], None]


def true_answer(question: Question) -> Any:
    """Return what somebody says who knows the class of every task."""
    known = TRUTH[question.left]
    if question.kind == "same":
        return "same" if known == TRUTH[question.right] else "different"
    if question.kind == "is":
        return "yes" if known == question.label else "no"
    return known


def recorded_as(answer: Answer) -> str:
    """Return the kind of event that an answer is."""
    return "label" if answer.kind == "label" else str(answer.says)


def answer_on(path: Path, who: str, n: int, acknowledge: Acknowledge, undo: float = 0.0) -> None:
    """Answer n questions, undoing some; acknowledge each step once the session has it."""
    chance = random.Random(os.getpid())
    with tb.ask.Session(
        path, CROWD.responses, who=who, batch=5, kinds=KINDS, random_state=0
    ) as session:
        try:
            _answer_some(session, n, acknowledge, undo, chance)
        except SessionError as error:  # what could not be kept is not counted either
            error.fields["in_force"] = len(session.answers())
            raise


def _answer_some(
    session: tb.ask.Session, n: int, acknowledge: Acknowledge, undo: float, chance: random.Random
) -> None:
    for _ in range(n):
        question = session.next()
        if question is None:
            return
        answer = session.answer(question, true_answer(question))
        acknowledge(recorded_as(answer), answer.id)
        if chance.random() < undo:
            undone = session.undo(answer)
            assert undone is not None
            acknowledge("undo", undone.id)


def fork(body: Callable[[Acknowledge], None]) -> tuple[int, TextIO]:
    """Run a body in a child; return its id and the end of the pipe it acknowledges on."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, os.fdopen(read)
    try:
        os.close(read)
        body(lambda kind, id: (os.write(write, f"{kind} {id}\n".encode()), None)[1])
        os._exit(0)
    except BaseException as error:
        code = getattr(error, "code", "") or str(error)
        in_force = getattr(error, "fields", {}).get("in_force", "")
        words = f"error {type(error).__name__} {code} {in_force}".replace("\n", " ")
        os.write(write, words.encode())
        os._exit(3)


def finish(child: int, pipe: TextIO) -> tuple[int, list[str]]:
    """Wait for a child; return how it ended and what it acknowledged, if not read before."""
    status = os.waitpid(child, 0)[1]
    with pipe:
        return status, pipe.read().splitlines()


def judge(path: Path, acknowledged: list[str]) -> dict[str, Any]:
    """Open the file again and compare it with what was acknowledged."""
    with tb.ask.Session(path, CROWD.responses) as session:
        in_force = [
            # a pair is never asked twice; a label may be, once several people answer, of another
            (a.kind if a.kind == "same" else f"{a.kind} by {a.who}", frozenset((a.left, a.right)))
            for a in session.answers()
        ]
    db = sqlite3.connect(path)
    rows = db.execute("SELECT id, kind, about FROM events").fetchall()
    sound = db.execute("PRAGMA integrity_check").fetchone()[0]
    db.close()
    recorded = Counter(f"{kind} {about if kind == 'undo' else id}" for id, kind, about in rows)
    return {
        "acknowledged": len(acknowledged),
        "recorded": len(rows),
        "lost": sorted(set(acknowledged) - set(recorded)),
        "doubled": [event for event, n in recorded.items() if n > 1]
        + [[kind, *map(str, pair)] for (kind, pair), n in Counter(in_force).items() if n > 1],
        "in_force": len(in_force),
        "sound": sound,
    }


def kill(folder: Path) -> list[dict[str, Any]]:
    """Kill 50 children at random moments; a new file after every five.

    A moment lies up to 20 ms after the first, second … acknowledgement, however slow the machine
    is today; every fifth is anywhere from the start on, while the file is made or opened.
    """
    chance = random.Random(0)
    found = []
    for moment in range(50):
        path = folder / f"{moment // 5}.db"
        if moment % 5 == 0:
            acknowledged: list[str] = []
        child, pipe = fork(lambda ack, path=path: answer_on(path, "me", 999, ack, undo=0.2))  # type: ignore[misc]
        n_first = moment % 5
        lines = [line.strip() for _ in range(n_first) if (line := pipe.readline())]
        time.sleep(chance.uniform(0.0, 0.02 if n_first else 0.05))
        os.kill(child, signal.SIGKILL)
        status, more = finish(child, pipe)
        lines += more
        acknowledged += [line for line in lines if not line.startswith("error")]
        errors = [line for line in lines if line.startswith("error")]
        killed = os.WIFSIGNALED(status)
        found.append({**judge(path, acknowledged), "killed": killed, "errors": errors})
    return found


def two(folder: Path) -> list[dict[str, Any]]:
    """Let two people, and two windows of one of them, begin and answer at once, on five files."""
    found = []
    for number in range(5):
        path = folder / f"{number}.db"
        bodies = [
            lambda ack, who=who, path=path: answer_on(path, who, 6, ack)
            for who in ("ann", "ann", "bob")
        ]
        endings = [finish(*child) for child in [fork(body) for body in bodies]]
        judged = judge(path, [line for _, lines in endings for line in lines])
        found.append({**judged, "statuses": [status for status, _ in endings]})
    return found


def full(folder: Path) -> list[dict[str, Any]]:
    """Answer until the file may not grow, at several sizes; then look what is left."""
    found = []
    for kib in (0, 1, 20, 70, 90, 110, 150, 200):
        path = folder / f"{kib}.db"

        def until_full(ack: Acknowledge, path: Path = path, kib: int = kib) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (kib * 1024, resource.RLIM_INFINITY))
            answer_on(path, "me", 999, ack, undo=0.9)

        status, lines = finish(*fork(until_full))
        kept = [line for line in lines if not line.startswith("error")]
        errors = [line for line in lines if line.startswith("error")]
        found.append({**judge(path, kept), "status": status, "errors": errors, "kib": kib})
    return found


def read_only(folder: Path) -> list[dict[str, Any]]:
    """Answer on a file that may not be written, as somebody who is not root."""
    path = folder / "session.db"
    _, lines = finish(*fork(lambda ack: answer_on(path, "me", 5, ack)))
    path.chmod(0o444)
    folder.chmod(0o555)

    def as_nobody(ack: Acknowledge) -> None:
        if os.geteuid() == 0:
            os.setuid(65534)
        answer_on(path, "me", 5, ack)

    _, errors = finish(*fork(as_nobody))
    folder.chmod(0o755)
    path.chmod(0o644)
    return [{**judge(path, lines), "errors": errors}]


if __name__ == "__main__":
    answer_on(Path(":memory:"), "me", 1, lambda kind, id: None)  # children find all imported
    what = {"kill": kill, "two": two, "full": full, "read_only": read_only}[sys.argv[1]]
    sys.stdout.write(json.dumps(what(Path(sys.argv[2]))))
