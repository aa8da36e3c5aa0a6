"""The guard: what every request passes before anything else looks at it.

Whom the request is for (Host), where a form comes from (Origin), how much and how long it sends,
how often it comes. What goes out carries headers that let no foreign script, frame or request in.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from tiebreak.page.tokens import Tokens

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LOG = logging.getLogger("uvicorn.error")  # as all that the server says
COOKIE = "tiebreak"
LOGIN = "/join"  # the one form that is read of who has no cookie
MOST_BODY = 64 * 1024  # bytes; a form has a few hundred
MOST_LOGIN = 8 * 1024  # bytes of the one form that strangers may send
MOST_AT_ONCE = 20  # requests of one visitor
RATE = 40.0  # requests a second that a visitor may make for long
BURST = 120.0  # … and at once
MOST_CLIENTS = 10_000  # whose rates are remembered


class Rules(NamedTuple):
    """What differs between servers."""

    hosts: frozenset[str]  # names that this server is known by, beside addresses
    is_local: bool  # bound to this machine only: no other address is its name
    allows_remote: bool = False  # images from https addresses

    def policy(self) -> str:
        """Return the Content-Security-Policy."""
        remote = " https:" if self.allows_remote else ""
        return (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            f"img-src 'self'{remote}; media-src 'self'{remote}; form-action 'self'; "
            "base-uri 'none'; frame-ancestors 'none'"
        )

    def is_ours(self, host: str) -> bool:
        """Say whether a Host names this server; a foreign name that resolves here does not."""
        name = _split(f"//{host}", "Host").hostname or ""
        if name in self.hosts or name == "localhost":
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.is_local


class Refusal(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class Guard:
    """Wraps the app."""

    def __init__(self, app: App, tokens: Tokens, rules: Rules) -> None:
        self._app = app
        self._tokens = tokens
        self._rules = rules
        self._running: Counter[str] = Counter()  # requests of each visitor
        self._rates: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, when

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Check a request, and let it through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        outgoing = self._with_headers(send)
        try:
            headers = _headers(scope)
            self._check(scope, headers)
            scope["visitor"] = self._tokens.visitor(_cookie(headers.get("cookie", "")))
            self._check_rate(scope)
            with self._at_once(scope):
                body = await _read_body(receive, _most_body(scope))
                await self._app(scope, _again(body, receive), outgoing)
        except Refusal as refusal:
            await _answer(outgoing, refusal)

    def _check(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> None:
        host = headers.get("host", "")
        if not self._rules.is_ours(host):
            raise Refusal(421, "This server is not known by that name.")
        if int(_number(headers.get("content-length", "0"))) > MOST_BODY:
            raise Refusal(413, f"A request may have {MOST_BODY:,} bytes.")
        if scope["method"] in ("GET", "HEAD"):
            return
        if scope["method"] != "POST":
            raise Refusal(405, "Only GET and POST are answered here.")
        said = headers.get("origin", "null")  # "null" is what browsers say of no origin
        origin = _split("" if said == "null" else said, "Origin")
        if origin.netloc != host or origin.scheme not in ("http", "https"):
            raise Refusal(403, "This form comes from another site, or says not from where.")

    def _check_rate(self, scope: MutableMapping[str, Any]) -> None:
        """Let each visitor, and each address without one, make so many requests a second."""
        visitor = scope["visitor"]
        client = visitor.run if visitor else f"at {(scope.get('client') or ('?',))[0]}"
        now = time.monotonic()
        left, then = self._rates.pop(client, (BURST, now))
        left = min(left + (now - then) * RATE, BURST)
        self._rates[client] = (max(left - 1.0, 0.0), now)
        if len(self._rates) > MOST_CLIENTS:
            self._rates.popitem(last=False)
        if left < 1.0:
            raise Refusal(429, "Too many requests. Wait a second.")

    @contextmanager
    def _at_once(self, scope: MutableMapping[str, Any]) -> Iterator[None]:
        """Let a visitor have so many requests at once: slow forms take up connections."""
        visitor = scope["visitor"]
        if visitor is None:
            yield
            return
        if self._running[visitor.run] >= MOST_AT_ONCE:
            raise Refusal(429, "Too many requests at once. Wait a second.")
        self._running[visitor.run] += 1
        try:
            yield
        finally:
            self._running[visitor.run] -= 1
            if not self._running[visitor.run]:
                del self._running[visitor.run]

    def _with_headers(self, send: Send) -> Send:
        safe = {
            "content-security-policy": self._rules.policy(),
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",  # with "no-referrer" browsers send no Origin
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "cache-control": "no-store",
        }

        async def outgoing(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", []))
                known = {name.lower() for name, _ in given}
                given += [
                    (name.encode(), value.encode())
                    for name, value in safe.items()
                    if name.encode() not in known
                ]
                message["headers"] = given
            await send(message)

        return outgoing


def _headers(scope: MutableMapping[str, Any]) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _cookie(header: str) -> str | None:
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return None


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise Refusal(400, "Content-Length is not a number.")
    return int(text[:12])


def _split(text: str, header: str) -> SplitResult:
    """Take an address apart; what is none is refused, with one line in the log.

    What was sent is not repeated there: strangers would write the log.
    """
    try:
        found = urlsplit(text)
        if "@" not in found.netloc and not (found.path or found.query or found.fragment):
            return found
    except ValueError:  # of brackets that do not match, among others
        pass
    LOG.warning("A request was refused: its header %s is malformed.", header)
    raise Refusal(400, f"The header {header} is malformed.")


def _most_body(scope: MutableMapping[str, Any]) -> int:
    """Return how long a body may be; of who has no cookie only the login form is read."""
    if scope["visitor"] is not None:
        return MOST_BODY
    if scope["method"] == "POST" and scope["path"] != LOGIN:
        raise Refusal(403, "Open the address that `tiebreak serve` printed, or ask a lead.")
    return MOST_LOGIN if scope["method"] == "POST" else 0


async def _read_body(receive: Receive, most: int) -> bytes:
    """Read a body that is short; the server hangs up on one that is slow."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "The request was broken off.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise Refusal(413, f"A request may have {most:,} bytes.")
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what hands out a body that was read."""
    rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return rest.pop() if rest else await receive()

    return receive_again


async def _answer(send: Send, refusal: Refusal) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{refusal.words}\n".encode()})
