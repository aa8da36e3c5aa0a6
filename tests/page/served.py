"""A server to try things on: `tiebreak serve` in a process of its own, and a client for it."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode

TOKEN = "a-token-of-tests-only"


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: str
    raw: bytes


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.log = log

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def entrance(self) -> str:
        """The address that lets a lead in."""
        return f"{self.address}/?token={TOKEN}"

    def is_up(self) -> bool:
        """Say whether it still answers."""
        return Client(self).get("/static/page.js").status == 200


class Client:
    """One browser without script, or with htmx where a test says so."""

    def __init__(self, server: Server, cookie: str | None = None) -> None:
        self._server = server
        self.cookie = cookie
        self.question = ""

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request on a connection of its own; keep the cookie that comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=60)
        own = {} if self.cookie is None else {"Cookie": f"tiebreak={self.cookie}"}
        with closing(connection):
            connection.request(method, path, body=body, headers={**own, **(headers or {})})
            with connection.getresponse() as got:
                raw = got.read()
        reply = Reply(got.status, {k.lower(): v for k, v in got.getheaders()}, "", raw)
        found = re.match(r"tiebreak=([^;]+)", reply.headers.get("set-cookie", ""))
        if found:
            self.cookie = found[1]
        reply = reply._replace(body=raw.decode("utf-8", "replace"))
        self._remember(reply.body)
        return reply

    def get(self, path: str, **headers: str) -> Reply:
        """Fetch a page."""
        return self.send("GET", path, headers=headers)

    def post(self, path: str, *, script: bool = True, **fields: Any) -> Reply:
        """Send a form, as a browser does from a page of the server."""
        form = urlencode(fields).encode()
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": self._server.address,
            "Sec-Fetch-Site": "same-origin",
            **({"HX-Request": "true"} if script else {}),
        }
        return self.send("POST", path, form, headers)

    def answer(self, says: object) -> Reply:
        """Answer the question that is shown."""
        return self.post("/answer", question=self.question, says=says)

    def _remember(self, page: str) -> None:
        question = re.search(r'name="question" value="([^"]+)"', page)
        self.question = unescape(question[1]) if question else ""


def lead(server: Server, who: str = "lead") -> Client:
    """Come in with the token, and give a name."""
    client = Client(server)
    assert client.get(f"/?token={TOKEN}").status == 200
    client.get("/")
    assert client.post("/name", script=False, who=who, again=1).status == 303
    client.get("/")
    return client


def join(client: Client, address: str) -> Reply:
    """Open an invitation, and begin."""
    client.get(address)
    _, _, invitation = address.partition("invitation=")
    return client.post("/join", script=False, invitation=unquote(invitation))


def invited(by: Client, server: Server, who: str) -> Client:
    """Come in with an invitation that a lead made."""
    page = by.post("/invite", who=who, again=1).body
    link = re.search(rf'value="[^"]*(/join\?[^"]+)"[^>]*Invitation for {re.escape(who)}', page)
    assert link is not None
    client = Client(server)
    assert join(client, unescape(link[1])).status == 303
    client.get("/")
    return client


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(folder: Path, *arguments: str, port: int | None = None, token: str = TOKEN) -> Server:
    """Start a server, and wait until it answers."""
    chosen = port or free_port()
    log = folder / "server.log"
    environment = {**os.environ, "TIEBREAK_TOKEN": token, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "tiebreak", "serve", *arguments, "--port", str(chosen)]
    with log.open("ab") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, env=environment)
    server = Server(process, chosen, log)
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up:
        assert process.poll() is None, log.read_text()
        try:
            if server.is_up():
                return server
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise AssertionError(log.read_text())


@contextmanager
def serving(folder: Path, *arguments: str, **options: Any) -> Iterator[Server]:
    """Run a server for as long as a test needs it."""
    server = start(folder, *arguments, **options)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(timeout=30)
