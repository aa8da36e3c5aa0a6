"""The server: one process that listens, hangs up on who dawdles, and logs no secret."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tiebreak.errors import OptionError
from tiebreak.page.guard import Rules
from tiebreak.page.room import Room
from tiebreak.page.routes import make_app
from tiebreak.page.tokens import SHORTEST

HEADERS_WITHIN = 10.0  # seconds until the head of a request must be there
MOST_CONNECTIONS = 1_000  # at once; more are told to come back
SWITCH = 0.0005  # seconds after which a fit lets a request go on, instead of 0.005
KEPT_ALIVE = 15  # seconds that an idle connection stays open


class TimedProtocol(H11Protocol):
    """HTTP that hangs up on a client that does not finish the head of its request.

    uvicorn waits for it without end, so that a thousand slow clients would take all connections.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override,unused-ignore]
        """Start the clock."""
        super().connection_made(transport)
        self._deadline: asyncio.TimerHandle | None = None
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        """Stop the clock where a head is complete, start it where another begins."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_clock()
        elif self._deadline is None:
            self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _start_clock(self) -> None:
        self._deadline = self.loop.call_later(HEADERS_WITHIN, self._hang_up)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _hang_up(self) -> None:
        self._deadline = None
        if self.conn.their_state is h11.IDLE:
            self.transport.close()


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


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
