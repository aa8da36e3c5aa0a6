"""Many people at once, and a server that is killed: no pair twice, no answer lost or doubled."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from page.crowd_client import Book, Line, Subject, answers, question_of, recorded
from page.served import TOKEN, Client, Server, free_port, serving, start

import tiebreak as tb
from tiebreak import tables
from tiebreak.page import guard


def cookie_of(who: str) -> str:
    return guard.Tokens(TOKEN).cookie(guard.Visitor(f"run-{who}", who, False))


def make_job(folder: Path, n_tasks: int) -> dict[str, str]:
    crowd = tb.simulate.crowd(
        n_tasks, 200, 3, responses_per_task=4, accuracy=(0.55, 0.9), random_state=0
    )
    tables.write_responses(folder / "r.parquet", crowd.responses)
    return {str(task): str(label) for task, label in crowd.gold.to_dict().items()}


def people(
    folder: Path, n_tasks: int, n_people: int, seconds: float, think: tuple[float, float]
) -> Book:
    """Let people answer truly, one in ten times wrongly; return what happened."""
    truth = make_job(folder, n_tasks)
    classes = sorted(set(truth.values()))
    rng = random.Random(0)

    def says(subject: Subject) -> str:
        kind, left, right = subject
        if rng.random() < 0.1:
            return "0"
        if kind == "same":
            return "0" if truth[left] == truth[right] else "1"
        return str(classes.index(truth[left]))

    async def all_of_them(server: Server) -> Book:
        book = Book()
        until = time.monotonic() + seconds
        names = [f"p{number:02d}" for number in range(n_people)]
        await asyncio.gather(
            *(answers(Line(server, cookie_of(who)), who, book, until, think, says) for who in names)
        )
        return book

    with serving(folder, "r.parquet", "--session", "s.db") as server:
        with ThreadPoolExecutor(1) as thread:  # playwright may keep a loop running in this one
            book = thread.submit(lambda: asyncio.run(all_of_them(server))).result()
        assert server.is_up()
    counts = Counter(recorded(folder / "s.db"))
    assert book.refused == []
    assert book.clashes == []
    assert set(counts.values()) == {1}
    assert sorted(counts) == sorted(book.acknowledged)
    return book


def test_eight_people_at_once(tmp_path: Path) -> None:
    book = people(tmp_path, 2_000, 8, 6.0, (0.05, 0.3))
    assert len(book.acknowledged) >= 40
    assert np.median(book.seconds) < 1.0  # the long form has the figures; CI machines are busy


@pytest.mark.long
def test_fifty_people_for_a_minute_on_100_000_tasks(tmp_path: Path) -> None:
    book = people(tmp_path, 100_000, 50, 60.0, (1.0, 3.0))
    median, late = np.percentile(book.seconds, [50, 99])
    sys.stdout.write(f"{len(book.seconds)} answers, median {median:.3f} s, 99 % {late:.3f} s")
    assert len(book.acknowledged) > 1_000
    assert median < 0.1
    assert late < 1.0


def killed(folder: Path, n_kills: int) -> None:
    """Kill the server again and again while three people answer; what it said is kept holds."""
    make_job(folder, 3_000)
    rng = random.Random(1)
    port = free_port()
    acknowledged: list[str] = []
    stop = threading.Event()
    goes_on = Counter[int]()
    round_now = [0]

    def answer(server: Server, who: str) -> None:
        client = Client(server, cookie_of(who))
        while not stop.is_set():
            try:
                page = client.get("/").body
                while (shown := question_of(page)) is not None and not stop.is_set():
                    reply = client.answer(random.choice("01"))
                    if "/keep" in reply.body:
                        reply = client.post("/keep", answer=_answer_of(reply.body))
                    if reply.status == 200:
                        acknowledged.append(shown.token)
                        goes_on[round_now[0]] += 1
                    page = reply.body
                    time.sleep(rng.uniform(0.0, 0.1))
                time.sleep(0.05)
            except (OSError, EOFError, ValueError):
                time.sleep(0.05)
            except Exception as error:
                if type(error).__module__ != "http.client":
                    raise
                time.sleep(0.05)

    server = start(folder, "r.parquet", "--session", "s.db", port=port)
    threads = [threading.Thread(target=answer, args=(server, who)) for who in "abc"]
    for thread in threads:
        thread.start()
    try:
        for number in range(n_kills):
            round_now[0] = number
            give_up = time.monotonic() + 60.0
            while not goes_on[number] and time.monotonic() < give_up:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.6))
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            server = start(folder, "r.parquet", "--session", "s.db", port=port)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        server.process.terminate()
        server.process.wait(timeout=30)
    counts = Counter(recorded(folder / "s.db"))
    sys.stdout.write(
        f"{n_kills} kills, {len(acknowledged)} answers acknowledged, {len(counts)} kept"
    )
    assert [n for n in range(n_kills) if not goes_on[n]] == []
    assert set(counts.values()) == {1}
    assert set(acknowledged) <= set(counts)


def _answer_of(page: str) -> str:
    found = re.findall(r'action="/keep".*?name="answer" value="(\d+)"', page, re.DOTALL)
    return found[0] if found else "0"


def test_two_kills_lose_nothing(tmp_path: Path) -> None:
    killed(tmp_path, 2)


@pytest.mark.long
def test_thirty_kills_lose_nothing(tmp_path: Path) -> None:
    killed(tmp_path, 30)
