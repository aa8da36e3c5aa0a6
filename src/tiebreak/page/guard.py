"""The guard: what every request passes before anything else looks at it.

Whom the request is for (Host), where a form comes from (Origin), how much and how long it sends,
how often it comes. What goes out carries headers that let no foreign script, frame or request in.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tiebreak.page.tokens import Tokens

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

COOKIE = "tiebreak"
LOGIN = "/join"  # the one form that is read of who has no cookie
MOST_BODY = 64 * 1024  # bytes; a form has a few hundred
SLOWEST = 10.0  # seconds for the next piece of a body
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
        name = urlsplit(f"//{host}").hostname or ""
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
            body = await _read_body(receive)
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
        origin = urlsplit(headers.get("origin", ""))
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


async def _read_body(receive: Receive) -> bytes:
    """Read a body that is short and comes soon."""
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            message = await asyncio.wait_for(receive(), SLOWEST)
        except TimeoutError:
            raise Refusal(408, "The rest of the request did not come.") from None
        if message["type"] == "http.disconnect":
            raise Refusal(400, "The request was broken off.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BODY:
            raise Refusal(413, f"A request may have {MOST_BODY:,} bytes.")
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
