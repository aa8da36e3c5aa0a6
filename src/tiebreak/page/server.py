"""The server: one process that listens, hangs up on who dawdles, and logs no secret."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
from collections.abc import Iterable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tiebreak.errors import OptionError
from tiebreak.page.guard import Rules
from tiebreak.page.room import Room
from tiebreak.page.routes import make_app
from tiebreak.page.tokens import SHORTEST, Visitor

REQUEST_WITHIN = 10.0  # seconds until a request must be there, head and body
MOST_CONNECTIONS = 800  # at once
OPEN_FILES = 4_096  # what they and a burst of 2,048 newcomers need; often 1,024 are allowed
MOST_OF_ONE = 100  # of one address, without a cookie, that are waiting for the rest of a request
SPARE = 100  # connections kept free for who comes next
SWITCH = 0.0005  # seconds after which a fit lets a request go on, instead of 0.005
KEPT_ALIVE = 15  # seconds that an idle connection stays open


class TimedProtocol(H11Protocol):
    """HTTP that hangs up on who does not finish a request, or holds too many connections.

    uvicorn waits without end, and refuses newcomers when all connections are taken. Here a request
    has one deadline, from its first byte to its last; and where connections get scarce, the one
    that has waited longest of whoever holds the most gives way to the newcomer. A browser that
    means it is done in milliseconds, so it gets in, whatever others hold.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override,unused-ignore]
        """Start the clock; make room where connections are scarce."""
        super().connection_made(transport)
        self.began = self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None
        self._start_clock()
        _make_room(self.connections, self)

    def data_received(self, data: bytes) -> None:
        """Stop the clock where a request is complete, start it where another begins."""
        super().data_received(data)
        if not self.is_incomplete():
            self._stop_clock()
        elif self._deadline is None:
            self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def is_incomplete(self) -> bool:
        """Say whether the rest of a request, or all of the next one, has still to come."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def holder(self) -> str:
        """Say who holds this connection: the visitor that the guard found, or else an address."""
        scope: dict[str, Any] = dict(self.scope or {})
        visitor: Visitor | None = scope.get("visitor")
        if visitor is not None:
            return f"visitor {visitor.run}"
        host = self.client[0] if self.client else "?"
        # Who has one address of IPv6 has all that begin with the same 64 bits.
        return ":".join(host.split(":")[:4]) if ":" in host else host

    def hang_up(self) -> None:
        """Close the connection, whatever it waits for."""
        self._stop_clock()
        self.transport.close()

    def _start_clock(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_WITHIN, self._time_is_over)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _time_is_over(self) -> None:
        self._deadline = None
        if self.is_incomplete():
            self.transport.close()


def _make_room(connections: Iterable[Any], newcomer: TimedProtocol) -> None:
    """Hang up on one connection that waits for its client, where somebody holds too many."""
    now = [each for each in connections if not each.transport.is_closing()]
    if len(now) <= MOST_OF_ONE:
        return
    held: dict[str, list[TimedProtocol]] = {}
    for each in now:
        if each is not newcomer and each.is_incomplete():
            held.setdefault(each.holder(), []).append(each)
    own = held.get(newcomer.holder(), [])
    if len(own) >= MOST_OF_ONE:
        min(own, key=_began).hang_up()
    elif len(now) > MOST_CONNECTIONS - SPARE and held:
        most = max(held.values(), key=lambda theirs: len(theirs))
        min(most, key=_began).hang_up()


def _began(connection: TimedProtocol) -> float:
    return connection.began


def check_binding(host: str, token: str | None) -> bool:
    """Say whether a host is this machine only; refuse to be open to others without a token."""
    is_local = host == "localhost" or _is_loopback(host)
    if not is_local and token is None:
        raise OptionError(
            f"--host {host} lets others reach this server: choose who by --token TEXT, at least "
            f"{SHORTEST} characters."
        )
    if token is not None and (len(token) < SHORTEST or not token.isprintable()):
        raise OptionError(f"--token needs at least {SHORTEST} characters, so none can guess it.")
    return is_local


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise OptionError(
            f"Port {port} of {host} cannot be had ({error.strerror}). Name another: --port N."
        ) from error
    return listening


def address(listening: socket.socket, host: str) -> str:
    """Return where a browser finds the server."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{listening.getsockname()[1]}"


def run(room: Room, rules: Rules, listening: socket.socket) -> None:
    """Serve until a signal ends it; the desk must have been started."""
    sys.setswitchinterval(SWITCH)
    _allow_open_files()
    config = uvicorn.Config(
        make_app(room, rules),  # type: ignore[arg-type,unused-ignore]  # scopes are mappings
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,  # addresses hold tokens
        server_header=False,
        proxy_headers=True,  # of a proxy on this machine only, which is the default
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEPT_ALIVE,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=16 * 1024,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _allow_open_files() -> None:
    """Let this process have enough files open, as far as the system lets it."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
