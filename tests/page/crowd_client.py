"""Fifty people at once: an asyncio client that answers, watches what is shown, and times it."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from page.served import Server

Subject = tuple[str, str, str]


class Shown(NamedTuple):
    """A question on somebody's screen."""

    signed: str
    subject: Subject
    token: str


class Book:
    """What happened: who is shown what now, which answers were acknowledged, how long it took."""

    def __init__(self) -> None:
        self.on_screen: dict[Subject, str] = {}
        self.clashes: list[str] = []
        self.acknowledged: list[str] = []
        self.seconds: list[float] = []
        self.refused: list[str] = []

    def show(self, who: str, shown: Shown) -> None:
        """Note what somebody sees; it must be on no other screen."""
        other = self.on_screen.setdefault(shown.subject, who)
        if other != who:
            self.clashes.append(f"{shown.subject} is shown to {other} and {who}")

    def take_away(self, who: str, shown: Shown) -> None:
        """Note that somebody has answered."""
        if self.on_screen.get(shown.subject) == who:
            del self.on_screen[shown.subject]


class Line:
    """A connection that stays open, as a browser's does."""

    def __init__(self, server: Server, cookie: str) -> None:
        self._server = server
        self._cookie = cookie
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, str]:
        """Send a request; return status and body."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._server.port)
        reader, writer = self._streams
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._server.port}\r\n"
            f"Origin: {self._server.address}\r\nCookie: tiebreak={self._cookie}\r\n"
            "HX-Request: true\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        assert length is not None
        data = await reader.readexactly(int(length[1]))
        return int(head.split()[1]), data.decode()

    async def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            await self._streams[1].wait_closed()


async def answers(
    line: Line,
    who: str,
    book: Book,
    until: float,
    think: tuple[float, float],
    says: Callable[[Subject], str],
) -> None:
    """Answer until the time is over, as one person does."""
    rng = random.Random(who)
    await asyncio.sleep(rng.uniform(0.0, think[1]))
    _, page = await line.send("GET", "/")
    while time.monotonic() < until:
        shown = question_of(page)
        kept = re.search(r'action="/keep".*?name="answer" value="(\d+)"', page, re.DOTALL)
        if kept is not None:
            form = {"answer": kept[1]}
            _, page = await line.send("POST", "/keep", urlencode(form).encode())
            continue
        if shown is None:
            await asyncio.sleep(0.7)
            _, page = await line.send("GET", "/ask")
            continue
        book.show(who, shown)
        await asyncio.sleep(rng.uniform(*think))
        form = {"question": shown.signed, "says": says(shown.subject)}
        book.take_away(who, shown)
        began = time.monotonic()
        status, page = await line.send("POST", "/answer", urlencode(form).encode())
        book.seconds.append(time.monotonic() - began)
        if status == 200:
            book.acknowledged.append(shown.token)
        else:
            book.refused.append(f"{status} {page[-300:]}")
    await line.close()


def question_of(page: str) -> Shown | None:
    """Return the question on a page, if there is one."""
    found = re.search(r'name="question" value="([^"]+)"', page)
    if found is None:
        return None
    signed = unescape(found[1])
    text = signed.partition(".")[0]
    kind, left, right, token, *_ = json.loads(
        base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    )
    first, second = sorted((left, right)) if kind == "same" else (left, right)
    return Shown(signed, (kind, first, second), token)


def recorded(path: Path) -> list[str]:
    """Return the tokens of all answers in a file."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT token FROM events WHERE kind NOT IN ('undo', 'keep', 'skip')")
        return [row[0] for row in rows]
