"""The app: which address does what, for whom; and the server."""

from __future__ import annotations

import ipaddress
import mimetypes
import socket
import statistics
import sys
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tiebreak.errors import OptionError, TiebreakError, sentence
from tiebreak.page import watch
from tiebreak.page.guard import (
    COOKIE,
    LOGIN,
    MOST_CONNECTIONS,
    MOST_NAME,
    SHORTEST,
    Guard,
    PageError,
    TimedProtocol,
    Visitor,
    clean_name,
)
from tiebreak.page.room import MEDIA, Room, Screen
from tiebreak.report import charts
from tiebreak.templating import environment
from tiebreak.wording import counted

TEMPLATES = environment("tiebreak.page")
mimetypes.add_type("text/javascript", ".js")  # some Windows machines say text/plain
MEDIA_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # a picture runs nothing
WEEK = 7 * 24 * 3600  # seconds that a cookie holds
MOST_OPTIONS = 500  # classes in a list to choose from
OPEN_FILES = 4_096  # for all connections and a burst of newcomers; often 1,024 are allowed
SWITCH = 0.0005  # seconds after which a fit lets a request go on, instead of 0.005
KEPT_ALIVE = 15  # seconds that an idle connection stays open


class Call(NamedTuple):
    """A request that was let in: from whom, and the fields of its form or query."""

    request: Request
    visitor: Visitor
    form: dict[str, str]

    @property
    def has_script(self) -> bool:
        """Whether htmx sent it, so that a part of a page suffices."""
        return self.request.headers.get("hx-request") == "true"

    def whole(self, name: str, default: str = "") -> int:
        """Read a number of 0 or more."""
        text = self.form.get(name) or default
        if not (text.isascii() and text.isdigit() and len(text) <= 12):
            raise PageError("bad-number")
        return int(text)

    def share(self, name: str, default: float) -> float:
        """Read a number between 0 and 1."""
        try:
            value = float(self.form.get(name) or default)
        except ValueError:
            return default
        return min(max(value, 0.0), 1.0) if value == value else default


class _Pages:
    """What answers requests."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.desk = room.desk

    def routes(self) -> list[Route | Mount]:
        people = [
            ("GET", "/ask", self.ask_part),
            ("POST", "/answer", self.answer),
            ("POST", "/skip", self.skip),
            ("POST", "/undo", self.undo),
            ("POST", "/keep", self.keep),
            ("GET", "/why", self.why),
            ("GET", "/changed", self.changed),
            ("GET", "/media/{path:path}", self.media),
        ]
        leads = [
            ("GET", "/watch", self.watch),
            ("GET", "/progress", self.progress),
            ("GET", "/tasks", self.tasks),
            ("GET", "/explain", self.explain),
            ("POST", "/label", self.set_label),
            ("POST", "/label/undo", self.unset_label),
            ("GET", "/people", self.people),
            ("POST", "/invite", self.invite),
            ("GET", "/download/{name}", self.download),
        ]
        return [
            Mount("/static", StaticFiles(packages=[("tiebreak.page", "static")])),
            Route("/charts.css", lambda _: Response(charts.stylesheet(), media_type="text/css")),
            Route(LOGIN, self.invitation, methods=["GET"]),
            Route(LOGIN, self.join, methods=["POST"]),
            Route("/", self.ask, methods=["GET"]),
            Route("/name", self._for(self.name, lead=True, named=False), methods=["POST"]),
            *(Route(path, self._for(do), methods=[method]) for method, path, do in people),
            *(Route(path, self._for(do, lead=True), methods=[m]) for m, path, do in leads),
        ]

    def _for(
        self, handler: Callable[[Call], Response], *, lead: bool = False, named: bool = True
    ) -> Callable[[Request], Awaitable[Response]]:
        """Let in those who may use an address; handlers run in threads."""

        def checked(request: Request, form: dict[str, str]) -> Response:
            visitor: Visitor | None = request.scope["visitor"]
            if visitor is None:
                raise PageError("not-let-in", status=403)
            if not self.room.admits(visitor):
                raise PageError("used-invitation", status=403)
            if named and visitor.who is None:
                return RedirectResponse("/", status_code=303)
            if lead and not visitor.is_lead:
                raise PageError("leads-only", status=403)
            return handler(Call(request, visitor, form))

        async def answer(request: Request) -> Response:
            return await run_in_threadpool(checked, request, await read_form(request))

        return answer

    # Coming in

    def invitation(self, request: Request) -> Response:
        """Show whom an invitation is for.

        The form that follows uses it, not a look at it: chats and mail programs look at links.
        """
        signed = request.query_params.get("invitation", "")
        who, _ = self._invited(signed)
        return self._page("join.html", who=who, invitation=signed)

    async def join(self, request: Request) -> Response:
        form = await read_form(request)
        who, key = self._invited(form.get("invitation", ""))
        visitor = await run_in_threadpool(self.room.join, who, key, request.scope["visitor"])
        if visitor is None:
            raise PageError("used-invitation", status=403)
        return self._with_cookie(request, visitor, RedirectResponse("/", status_code=303))

    def _invited(self, signed: str) -> tuple[str, str]:
        invited = self.room.tokens.invited(signed)
        if invited is None:
            raise PageError("bad-invitation", status=403)
        return invited

    async def ask(self, request: Request) -> Response:
        """Show the question; first let in whoever brings the token."""
        said = request.query_params.get("token")
        if said is None:
            return await self._for(self._ask, named=False)(request)
        if not self.room.tokens.is_token(said):
            raise PageError("old-address", status=403)
        known: Visitor | None = request.scope["visitor"]
        visitor = self.room.tokens.new_visitor(known and known.who, is_lead=True)
        # Not a redirect: after a click on another site a browser would not send a strict cookie.
        return self._with_cookie(request, visitor, self._page("welcome.html"))

    def _ask(self, call: Call) -> Response:
        if call.visitor.who is None:
            return self._page("name.html", problem="", is_in_use=False)
        return self._screen(call, self.room.screen(call.visitor), whole=True)

    def name(self, call: Call) -> Response:
        if call.visitor.who is not None:
            raise PageError("has-name", status=403)
        who = clean_name(call.form.get("who", ""))
        try:
            if who is None:
                raise PageError("bad-name", status=400, most=MOST_NAME)
            self.room.take_name(call.visitor, who, again="again" in call.form)
        except PageError as error:
            is_in_use = error.code == "name-in-use"
            return self._page("name.html", error.status, problem=str(error), is_in_use=is_in_use)
        visitor = call.visitor._replace(who=who)
        return self._with_cookie(call.request, visitor, RedirectResponse("/", status_code=303))

    def _with_cookie(self, request: Request, visitor: Visitor, response: Response) -> Response:
        response.set_cookie(
            COOKIE,
            self.room.tokens.cookie(visitor),
            max_age=WEEK,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    # Answering

    def ask_part(self, call: Call) -> Response:
        return self._screen(call, self.room.screen(call.visitor))

    def answer(self, call: Call) -> Response:
        said = (call.form.get("question", ""), call.form.get("says", ""))
        return self._screen(call, self.room.answer(call.visitor, *said))

    def skip(self, call: Call) -> Response:
        return self._screen(call, self.room.skip(call.visitor, call.form.get("question", "")))

    def undo(self, call: Call) -> Response:
        id = call.whole("answer") if "answer" in call.form else None
        return self._screen(call, self.room.undo(call.visitor, id))

    def keep(self, call: Call) -> Response:
        return self._screen(call, self.room.keep(call.visitor, call.whole("answer")))

    def why(self, call: Call) -> Response:
        if not self.room.may_see_why(call.visitor):
            raise PageError("leads-only", status=403)
        reasons = self.room.why(call.visitor, call.form.get("question", ""))
        return self._page("why.html", call=call, reasons=reasons, back="/")

    def explain(self, call: Call) -> Response:
        reasons = [self.room.reason(self.desk.job.responses.tasks[self._task(call)])]
        return self._page("why.html", call=call, reasons=reasons, back="/watch")

    def changed(self, call: Call) -> Response:
        """Say how many labels changed, once there is a fit that knows more."""
        since = call.whole("since", "0")
        history = self.desk.fits.history[since:]
        n = sum(point.n_changed for point in history) if history else None
        return self._page("changed.html", since=since, n_changed=n, is_first=False)

    def media(self, call: Call) -> Response:
        path = self.room.contents.file(call.request.path_params["path"])
        if path is None:
            raise PageError("no-file", status=404)
        headers = {"content-security-policy": MEDIA_POLICY, "cache-control": "private"}
        return FileResponse(path, media_type=MEDIA[path.suffix.lower()], headers=headers)

    def _screen(self, call: Call, screen: Screen, *, whole: bool = False) -> Response:
        if not (whole or call.has_script):
            return RedirectResponse("/", status_code=303)
        return self._page("ask.html" if whole else "question.html", call=call, screen=screen)

    # Watching

    def watch(self, call: Call, said: str = "", about: object = None) -> Response:
        """Show how far the labels are; `said`: what was done to a label just now."""
        with self.desk.lock:
            outlook = watch.outlook(self.desk)
        follows = call.request.query_params.get("follow") == "1"
        values: dict[str, Any] = {
            "outlook": outlook,
            "follows": follows,
            "said": said,
            "about": about,
        }
        return self._page("watch.html", call=call, **values, **self._listed(call))

    def progress(self, call: Call) -> Response:
        with self.desk.lock:
            outlook = watch.outlook(self.desk)
        return self._page("progress.html", outlook=outlook, follows=True)

    def tasks(self, call: Call) -> Response:
        return self._page("tasks.html", **self._listed(call))

    def _listed(self, call: Call) -> dict[str, Any]:
        """Return the tasks that the query asks for, and links to the pages around."""
        query = call.request.query_params
        searched = Call(call.request, call.visitor, dict(query))
        classes = self.desk.job.responses.classes
        at = query.get("label", "")
        chosen = int(at) if at.isascii() and at.isdigit() and int(at[:9]) < len(classes) else None
        wanted = watch.Wanted(
            query.get("words", "").strip()[:200],
            None if chosen is None else classes[chosen],
            query.get("worker", "").strip()[:200],
            searched.share("low", 0.0),
            searched.share("high", 1.0),
            searched.whole("page", "0"),
        )
        with self.desk.lock:
            fit = self.desk.last_fit()
        found = watch.listing(self.desk, fit, wanted)
        kept = {"words": wanted.words, "worker": wanted.worker, "low": wanted.low}
        kept |= {"high": wanted.high, **({} if chosen is None else {"label": chosen})}
        return {
            "found": found,
            "wanted": wanted,
            "classes": list(classes)[:MOST_OPTIONS],
            "page_link": lambda page: f"/watch?{urlencode({**kept, 'page': page})}#tasks",
        }

    def set_label(self, call: Call) -> Response:
        crowd = self.desk.job.responses
        task, label = self._task(call), call.whole("label")
        if label >= crowd.n_classes:
            raise PageError("no-task", status=400)
        about = self.room.set_label(call.visitor, crowd.tasks[task], crowd.classes[label])
        return self.watch(call, "set", about)

    def _task(self, call: Call) -> int:
        task = call.whole("task")
        if task >= self.desk.job.responses.n_tasks:
            raise PageError("no-task", status=400)
        return task

    def unset_label(self, call: Call) -> Response:
        return self.watch(call, "unset", self.room.unset_label(call.visitor, call.whole("answer")))

    def people(self, call: Call, made: Iterable[tuple[str, str]] = ()) -> Response:
        """Show who answers how much and how well; `made`: new invitations."""
        with self.desk.lock:
            found = watch.people(self.desk)
        base = f"{call.request.url.scheme}://{call.request.headers['host']}{LOGIN}?invitation="
        invited = [(who, base + signed) for who, signed in made]
        return self._page("people.html", call=call, people=found, invited=invited)

    def invite(self, call: Call) -> Response:
        lines = [line for line in call.form.get("who", "").splitlines() if line.strip()]
        names = {clean_name(line): None for line in lines}
        known = [who for who in names if who is not None]
        if None in names or not known:
            raise PageError("bad-name", status=400, most=MOST_NAME)
        return self.people(call, self.room.invite(known, again="again" in call.form))

    def download(self, call: Call) -> Response:
        """Send a table; for the fused labels the worker thread fits to all answers."""
        table, _, form = call.request.path_params["name"].partition(".")
        if table not in watch.TABLES or form not in watch.FORMATS:
            raise PageError("no-file", status=404)
        headers = {"content-disposition": f'attachment; filename="{table}.{form}"'}
        data = watch.download(self.desk, table, form)
        return Response(data, media_type=watch.FORMATS[form], headers=headers)

    def _page(
        self, template: str, status: int = 200, call: Call | None = None, **values: Any
    ) -> HTMLResponse:
        visitor = None if call is None else call.visitor
        is_part = call is not None and call.has_script
        shared = {"room": self.room, "visitor": visitor, "is_part": is_part}
        return page(template, status, **shared, **values)


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Fill in a template. Halves of characters, which no file may hold, become question marks."""
    text = TEMPLATES.get_template(template).render(values)
    return HTMLResponse(text.encode("utf-8", "replace"), status_code=status)


def short(value: object, most: int) -> str:
    """Return a value as one line of at most so many characters.

    >>> short("a long name", 7)
    'a long…'
    """
    text = " ".join(str(value)[: 4 * most].split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def ago(at: str, now: datetime | None = None) -> str:
    """Return a time as people say it; after a week, as a date.

    >>> ago("2026-11-16T12:00:00Z", datetime(2026, 11, 16, 12, 5, tzinfo=UTC))
    '5 minutes ago'
    """
    when = datetime.fromisoformat(at)
    seconds = ((now or datetime.now(UTC)) - when).total_seconds()
    if seconds < 60:
        return "just now"
    for unit, size, most in (("minute", 60, 60), ("hour", 3600, 24), ("day", 86400, 7)):
        if seconds < size * most:
            return f"{counted(int(seconds // size), unit)} ago"
    return f"{when.day} {when:%B %Y}"


TEMPLATES.filters |= {"short": short, "ago": ago, "counted": counted, "median": statistics.median}


async def read_form(request: Request) -> dict[str, str]:
    """Read a form or a query; of fields given twice, the last."""
    if request.method != "POST":
        return dict(request.query_params)
    body = (await request.body()).decode("utf-8", "replace")
    return {key: values[-1] for key, values in parse_qs(body, max_num_fields=20).items()}


def refused(request: Request, error: Exception) -> Response:
    """Answer for anything that went wrong."""
    status, code, words = 500, "our-fault", sentence("our-fault", {})
    if isinstance(error, HTTPException):
        status = error.status_code
        code = "no-page" if status == 404 else "bad-method"
        words = sentence(code, {})
    elif isinstance(error, TiebreakError):
        default = 409 if isinstance(error, OptionError) else 503
        status, code, words = getattr(error, "status", default), error.code, str(error)
    return page("error.html", status, code=code, words=words, visitor=None)


def check_binding(host: str, token: str | None) -> bool:
    """Return whether a host is this machine only; refuse to be open to others without a token."""
    is_local = host == "localhost" or _is_loopback(host)
    if not is_local and token is None:
        raise OptionError("host-needs-token", host=host, least=SHORTEST)
    if token is not None and (len(token) < SHORTEST or not token.isprintable()):
        raise OptionError("weak-token", least=SHORTEST)
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
        raise OptionError("port-taken", port=port, host=host, reason=error.strerror) from error
    return listening


def address(listening: socket.socket, host: str) -> str:
    """Return where a browser finds the server."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{listening.getsockname()[1]}"


def run(
    room: Room, listening: socket.socket, hosts: Iterable[str] = (), *, is_local: bool = True
) -> None:
    """Serve until a signal ends it; the desk must have been started."""
    handlers: dict[Any, Any] = dict.fromkeys((HTTPException, TiebreakError, Exception), refused)
    app = Starlette(routes=_Pages(room).routes(), exception_handlers=handlers)
    remote = room.contents.allows_remote
    guard = Guard(app, room.tokens, hosts, is_local=is_local, allows_remote=remote)
    sys.setswitchinterval(SWITCH)
    _allow_open_files()
    config = uvicorn.Config(
        guard,  # type: ignore[arg-type,unused-ignore]  # scopes are mappings
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
