"""The guard: who may come in, and what every request must pass before anything else sees it.

Cookies, invitations and questions are signed with a key made from the token of the address. So the
server keeps no list of visitors: restarted with the same token, it still knows them.

Each request must name this server (Host), each form must come from its pages (Origin and
Sec-Fetch-Site, beside a cookie that is SameSite=Strict), and none may be too long, too slow or too
frequent. Replies carry headers that keep foreign scripts, frames and requests out.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import json
import logging
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import h11
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from tiebreak.errors import TiebreakError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LOG = logging.getLogger("uvicorn.error")
COOKIE = "tiebreak"
LOGIN = "/join"  # the one form that is read without a cookie
MOST_NAME = 80  # characters of a person's name
SHORTEST = 16  # characters of a chosen token
MOST_BODY = 64 * 1024  # bytes; a form has a few hundred
MOST_LOGIN = 8 * 1024  # bytes of a form without a cookie
MOST_AT_ONCE = 20  # requests of one visitor
RATE = 40.0  # requests a second that a visitor may make for long
BURST = 120.0  # … and at once
MOST_CLIENTS = 10_000  # whose rates are remembered
REQUEST_WITHIN = 10.0  # seconds until a request must be complete, head and body
MOST_CONNECTIONS = 800  # at once
MOST_OF_ONE = 100  # incomplete requests of one address without a cookie
SPARE = 100  # connections kept free for newcomers

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with "no-referrer" browsers send no Origin
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class PageError(TiebreakError):
    """A request that goes no further, with the HTTP status that says so."""

    def __init__(self, code: str, /, status: int = 409, **fields: object) -> None:
        super().__init__(code, **fields)
        self.status = status


class Visitor(NamedTuple):
    """A browser that was let in: its sitting, its person once they have a name, their role."""

    run: str
    who: str | None
    is_lead: bool


class Tokens:
    """Makes and checks what is signed."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._key = hashlib.sha256(b"tiebreak page:" + self.token.encode()).digest()

    def is_token(self, said: str) -> bool:
        """Return whether this is the token of the address, in constant time."""
        return hmac.compare_digest(said.encode("utf-8", "replace"), self.token.encode())

    def new_visitor(self, who: str | None = None, *, is_lead: bool) -> Visitor:
        return Visitor(secrets.token_hex(8), who, is_lead)

    def cookie(self, visitor: Visitor) -> str:
        return self.signed("cookie", list(visitor))

    def signed(self, purpose: str, value: Any) -> str:
        """Return a value as text that only this server can have made."""
        body = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
        text = base64.urlsafe_b64encode(body).decode().rstrip("=")
        return f"{text}.{self._mac(purpose, text)}"

    def read(self, purpose: str, said: str | None) -> Any:
        """Return what was signed for this purpose; None if it was not."""
        text, _, mac = (said or "").partition(".")
        if not hmac.compare_digest(
            mac.encode("utf-8", "replace"), self._mac(purpose, text).encode()
        ):
            return None
        return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

    def _mac(self, purpose: str, text: str) -> str:
        said = f"{purpose}:{text}".encode("utf-8", "replace")
        return hmac.new(self._key, said, hashlib.sha256).hexdigest()


def clean_name(said: str) -> str | None:
    """Return a person's name without needless spaces; None if nothing is left, or too much.

    >>> clean_name(" ann  lee "), clean_name(" ")
    ('ann lee', None)
    """
    name = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    return name if 0 < len(name) <= MOST_NAME else None


def is_loopback(name: str) -> bool | None:
    """Return whether an address is of this machine only; None where a name is no address."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return None


class Guard:
    """Wraps the app.

    `hosts` are names of this server, beside its addresses. A server that `is_local` listens on this
    machine only; `allows_remote` lets pages show images from https addresses.
    """

    def __init__(
        self, app: App, tokens: Tokens, hosts: Iterable[str], *, is_local: bool, allows_remote: bool
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = {"localhost", *hosts}
        self._is_local = is_local
        remote = " https:" if allows_remote else ""
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            f"img-src 'self'{remote}; media-src 'self'{remote}; form-action 'self'; "
            "base-uri 'none'; frame-ancestors 'none'"
        )
        self._headers = {"content-security-policy": policy, **HEADERS}
        self._running: Counter[str] = Counter()  # requests of each visitor
        self._rates: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, when

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        outgoing = self._with_headers(send)
        try:
            request = Request(scope)
            self._check(request.method, request.headers)
            cookie = self._tokens.read("cookie", request.cookies.get(COOKIE))
            scope["visitor"] = None if cookie is None else Visitor(*cookie)
            self._check_rate(scope)
            with self._at_once(scope["visitor"]):
                scope["body"] = await _read_body(receive, _most_body(scope))
                await self._app(scope, receive, outgoing)
        except PageError as refused:
            kind = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            start = {"type": "http.response.start", "status": refused.status, "headers": kind}
            await outgoing(start)
            await outgoing({"type": "http.response.body", "body": f"{refused}\n".encode()})

    def _check(self, method: str, headers: Mapping[str, str]) -> None:
        host = headers.get("host", "")
        if not self._is_ours(_split(f"//{host}", "Host").hostname or ""):
            raise PageError("unknown-host", status=421)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise PageError("bad-header", status=400, header="Content-Length")
        if int(length[:12]) > MOST_BODY:
            raise PageError("too-long", status=413, most=f"{MOST_BODY:,}")
        if method in ("GET", "HEAD"):
            return
        if method != "POST":
            raise PageError("bad-method", status=405)
        said = headers.get("origin", "null")  # browsers say "null" where there is no origin
        origin = _split("" if said == "null" else said, "Origin")
        is_same = origin.netloc == host and origin.scheme in ("http", "https")
        # Browsers add this header themselves; those of before 2023 may lack it.
        if not is_same or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise PageError("other-site", status=403)

    def _is_ours(self, name: str) -> bool:
        """Return whether a name is of this server; other names that resolve here are not."""
        if name in self._hosts:
            return True
        loopback = is_loopback(name)
        return loopback is not None and (loopback or not self._is_local)

    def _check_rate(self, scope: MutableMapping[str, Any]) -> None:
        """Limit the requests a second of each visitor, and of each address without a cookie."""
        visitor: Visitor | None = scope["visitor"]
        client = visitor.run if visitor else f"at {(scope.get('client') or ('?',))[0]}"
        now = time.monotonic()
        left, then = self._rates.pop(client, (BURST, now))
        left = min(left + (now - then) * RATE, BURST)
        self._rates[client] = (max(left - 1.0, 0.0), now)
        if len(self._rates) > MOST_CLIENTS:
            self._rates.popitem(last=False)
        if left < 1.0:
            raise PageError("too-many", status=429)

    @contextmanager
    def _at_once(self, visitor: Visitor | None) -> Iterator[None]:
        """Limit the requests of a visitor at one time: slow forms take up connections."""
        if visitor is None:
            yield
            return
        if self._running[visitor.run] >= MOST_AT_ONCE:
            raise PageError("too-many", status=429)
        self._running[visitor.run] += 1
        try:
            yield
        finally:
            self._running -= Counter([visitor.run])

    def _with_headers(self, send: Send) -> Send:
        async def outgoing(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", []))
                known = {name.lower() for name, _ in given}
                more = [(name.encode(), value.encode()) for name, value in self._headers.items()]
                message["headers"] = given + [each for each in more if each[0] not in known]
            await send(message)

        return outgoing


def _split(text: str, header: str) -> SplitResult:
    """Take an address apart; refuse a malformed one, with one line in the log.

    What was sent is not repeated there: strangers would write the log.
    """
    try:
        found = urlsplit(text)
        if "@" not in found.netloc and not (found.path or found.query or found.fragment):
            return found
    except ValueError:  # of brackets that do not match, among others
        pass
    LOG.warning("A request was refused: its header %s is malformed.", header)
    raise PageError("bad-header", status=400, header=header)


def _most_body(scope: MutableMapping[str, Any]) -> int:
    """Return how long a body may be; without a cookie only the login form is read."""
    if scope["visitor"] is not None:
        return MOST_BODY
    if scope["method"] == "POST" and scope["path"] != LOGIN:
        raise PageError("not-let-in", status=403)
    return MOST_LOGIN if scope["method"] == "POST" else 0


async def _read_body(receive: Receive, most: int) -> bytes:
    """Read a body that is short; `TimedProtocol` closes the connection of a slow one."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise PageError("broken-off", status=400)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise PageError("too-long", status=413, most=f"{most:,}")
        if not message.get("more_body", False):
            return b"".join(parts)


class TimedProtocol(H11Protocol):
    """HTTP that closes connections with slow requests, and those of clients that hold too many.

    uvicorn waits without end, and refuses newcomers when all connections are taken. Here a request
    has one deadline, from its first byte to its last; and when connections get scarce, the one that
    has waited longest of the client that holds the most gives way to the newcomer. Browsers finish
    a request in milliseconds, so they get in, whatever others hold.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override,unused-ignore]
        super().connection_made(transport)
        self.began = self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None
        self._set_clock(runs=True)
        _make_room(self.connections, self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_clock(runs=self.is_incomplete())

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_clock(runs=False)
        super().connection_lost(exc)

    def _set_clock(self, *, runs: bool) -> None:
        if runs and self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_WITHIN, self.transport.close)
        elif not runs and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def is_incomplete(self) -> bool:
        """Return whether the rest of a request, or all of the next one, has still to come."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def holder(self) -> str:
        """Return who holds this connection: the visitor that the guard found, or an address."""
        visitor: Any = dict(self.scope or {}).get("visitor")
        if visitor is not None:
            return f"visitor {visitor.run}"
        host = self.client[0] if self.client else "?"
        # A client with one address of IPv6 has all that begin with the same 64 bits.
        return ":".join(host.split(":")[:4]) if ":" in host else host


def _make_room(connections: Iterable[Any], newcomer: TimedProtocol) -> None:
    """Close one connection that waits for its client, where a client holds too many."""
    now = [each for each in connections if not each.transport.is_closing()]
    if len(now) <= MOST_OF_ONE:
        return
    held: dict[str, list[TimedProtocol]] = {}
    for each in now:
        if each is not newcomer and each.is_incomplete():
            held.setdefault(each.holder(), []).append(each)
    own = held.get(newcomer.holder(), [])
    if len(own) >= MOST_OF_ONE:
        min(own, key=lambda each: each.began).transport.close()
    elif len(now) > MOST_CONNECTIONS - SPARE and held:
        most = max(held.values(), key=lambda theirs: len(theirs))
        min(most, key=lambda each: each.began).transport.close()
