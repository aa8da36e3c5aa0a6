"""The app: which address does what, for whom; and the server."""

from __future__ import annotations

import mimetypes
import socket
import statistics
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tiebreak.errors import OptionError, TiebreakError, sentence
from tiebreak.page import guard, watch
from tiebreak.page.room import MEDIA, Room, whole
from tiebreak.report import charts
from tiebreak.templating import environment
from tiebreak.wording import clip, counted

Handler = Callable[[Request], Response]

TEMPLATES = environment("tiebreak.page")
mimetypes.add_type("text/javascript", ".js")  # some Windows machines say text/plain
MEDIA_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # a picture runs nothing
WEEK = 7 * 24 * 3600  # seconds that a cookie holds
MOST_OPTIONS = 500  # classes in a list to choose from
OPEN_FILES = 4_096  # for all connections and a burst of newcomers; often 1,024 are allowed
SWITCH = 0.0005  # seconds after which a fit lets a request go on, instead of 0.005
KEPT_ALIVE = 15  # seconds that an idle connection stays open


class Pages:
    """What answers requests. Handlers run in threads.

    They find the visitor, and the fields of the form or of the query, in `request.state`.
    """

    def __init__(self, room: Room) -> None:
        self.room = room
        self.desk = room.desk

    def routes(self) -> list[Route | Mount]:
        """Return which address does what; first those that anybody may open."""
        people: list[tuple[str, str, Handler]] = [
            *(("POST", f"/{what}", self.act) for what in ("answer", "skip", "undo", "keep")),
            ("GET", "/ask", self.act),
            ("GET", "/why", self.why),
            ("GET", "/changed", self.changed),
            ("GET", "/media/{path:path}", self.media),
        ]
        leads: list[tuple[str, str, Handler]] = [
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
            Route(guard.LOGIN, self.invitation, methods=["GET"]),
            Route(guard.LOGIN, self.join, methods=["POST"]),
            Route("/", self.start, methods=["GET"]),
            Route("/name", self._for(self.name, is_lead=True, is_named=False), methods=["POST"]),
            *(Route(path, self._for(do), methods=[method]) for method, path, do in people),
            *(Route(path, self._for(do, is_lead=True), methods=[m]) for m, path, do in leads),
        ]

    def _for(
        self,
        handler: Handler,
        *,
        is_lead: bool = False,
        is_named: bool = True,
    ) -> Handler:
        """Let in those who may use an address."""

        def checked(request: Request) -> Response:
            visitor: guard.Visitor | None = request.scope["visitor"]
            if visitor is None:
                raise guard.PageError("not-let-in", status=403)
            if not self.room.admits(visitor):
                raise guard.PageError("used-invitation", status=403)
            if is_named and visitor.who is None:
                return RedirectResponse("/", status_code=303)
            if is_lead and not visitor.is_lead:
                raise guard.PageError("leads-only", status=403)
            request.state.visitor = visitor
            request.state.form = read_form(request)
            return handler(request)

        return checked

    # Coming in

    def invitation(self, request: Request) -> Response:
        """Show whom an invitation is for.

        The form that follows uses it, not a look at it: chats and mail programs look at links.
        """
        signed = request.query_params.get("invitation", "")
        who, _ = self._invited(signed)
        return page("join.html", room=self.room, visitor=None, who=who, invitation=signed)

    def join(self, request: Request) -> Response:
        who, key = self._invited(read_form(request).get("invitation", ""))
        visitor = self.room.join(who, key, request.scope["visitor"])
        if visitor is None:
            raise guard.PageError("used-invitation", status=403)
        return self._with_cookie(request, visitor, RedirectResponse("/", status_code=303))

    def _invited(self, signed: str) -> tuple[str, str]:
        match self.room.tokens.read("invitation", signed):
            case [str(who), str(key)]:
                return who, key
        raise guard.PageError("bad-invitation", status=403)

    def start(self, request: Request) -> Response:
        """Show the question; first let in whoever brings the token."""
        said = request.query_params.get("token")
        if said is None:
            return self._for(self.ask, is_named=False)(request)
        if not self.room.tokens.is_token(said):
            raise guard.PageError("old-address", status=403)
        known: guard.Visitor | None = request.scope["visitor"]
        visitor = self.room.tokens.new_visitor(known and known.who, is_lead=True)
        # Not a redirect: after a click on another site a browser would not send a strict cookie.
        return self._with_cookie(request, visitor, page("welcome.html", visitor=None))

    def name(self, request: Request) -> Response:
        visitor, form = request.state.visitor, request.state.form
        if visitor.who is not None:
            raise guard.PageError("has-name", status=403)
        who = guard.clean_name(form.get("who", ""))
        try:
            if who is None:
                raise guard.PageError("bad-name", status=400, most=guard.MOST_NAME)
            self.room.take_name(visitor, who, again="again" in form)
        except guard.PageError as error:
            is_in_use = error.code == "name-in-use"
            shown = {"problem": str(error), "is_in_use": is_in_use, "visitor": None}
            return page("name.html", error.status, **shown)
        named = visitor._replace(who=who)
        return self._with_cookie(request, named, RedirectResponse("/", status_code=303))

    def _with_cookie(
        self, request: Request, visitor: guard.Visitor, response: Response
    ) -> Response:
        response.set_cookie(
            guard.COOKIE,
            self.room.tokens.cookie(visitor),
            max_age=WEEK,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    # Answering

    def ask(self, request: Request) -> Response:
        if request.state.visitor.who is None:
            return page("name.html", problem="", is_in_use=False, visitor=None)
        return self._page("ask.html", request, **self.room.act(request.state.visitor))

    def act(self, request: Request) -> Response:
        what = request.url.path.removeprefix("/")
        screen = self.room.act(request.state.visitor, what, request.state.form)
        if not has_script(request):
            return RedirectResponse("/", status_code=303)
        return self._page("question.html", request, **screen)

    def why(self, request: Request) -> Response:
        visitor = request.state.visitor
        if not self.room.may_see_why(visitor):
            raise guard.PageError("leads-only", status=403)
        tasks = self.room.question(request.state.form, visitor).tasks
        return self._page("why.html", request, reasons=map(self.room.reason, tasks), back="/")

    def explain(self, request: Request) -> Response:
        task = self.desk.job.responses.tasks[self._task(request)]
        return self._page("why.html", request, reasons=[self.room.reason(task)], back="/watch")

    def changed(self, request: Request) -> Response:
        since = whole(request.state.form, "since", "0")
        history = self.desk.fits.history[since:]
        n = sum(point.n_changed for point in history) if history else None
        return page("changed.html", since=since, n_changed=n, is_first=False)

    def media(self, request: Request) -> Response:
        path = self.room.contents.file(request.path_params["path"])
        if path is None:
            raise guard.PageError("no-file", status=404)
        headers = {"content-security-policy": MEDIA_POLICY, "cache-control": "private"}
        return FileResponse(path, media_type=MEDIA[path.suffix.lower()], headers=headers)

    # Watching

    def watch(self, request: Request, said: str = "", about: object = None) -> Response:
        """Show how far the labels are; `said`: what was done to a label just now."""
        shown = {**watch.outlook(self.desk), **self._listed(request), "said": said, "about": about}
        follows = request.query_params.get("follow") == "1"
        return self._page("watch.html", request, **shown, follows=follows)

    def progress(self, request: Request) -> Response:
        return page("progress.html", **watch.outlook(self.desk), follows=True)

    def tasks(self, request: Request) -> Response:
        return page("tasks.html", **self._listed(request))

    def _listed(self, request: Request) -> dict[str, Any]:
        found = watch.listing(self.desk, request.query_params)
        kept = {name: value for name, value in found["wanted"].items() if value is not None}
        return {
            **found,
            "classes": list(self.desk.job.responses.classes)[:MOST_OPTIONS],
            "page_link": lambda page: f"/watch?{urlencode({**kept, 'page': page})}#tasks",
        }

    def set_label(self, request: Request) -> Response:
        crowd = self.desk.job.responses
        task, label = self._task(request), whole(request.state.form, "label")
        if label >= crowd.n_classes:
            raise guard.PageError("no-task", status=400)
        visitor = request.state.visitor
        about = self.room.set_label(visitor, crowd.tasks[task], crowd.classes[label])
        return self.watch(request, "set", about)

    def unset_label(self, request: Request) -> Response:
        id = whole(request.state.form, "answer")
        return self.watch(request, "unset", self.room.unset_label(request.state.visitor, id))

    def _task(self, request: Request) -> int:
        task = whole(request.state.form, "task")
        if task >= self.desk.job.responses.n_tasks:
            raise guard.PageError("no-task", status=400)
        return task

    def people(self, request: Request, made: Iterable[tuple[str, str]] = ()) -> Response:
        """Show who answers how much and how well; `made`: new invitations."""
        base = f"{request.url.scheme}://{request.headers['host']}{guard.LOGIN}?invitation="
        invited = [(who, base + signed) for who, signed in made]
        return self._page("people.html", request, people=watch.people(self.desk), invited=invited)

    def invite(self, request: Request) -> Response:
        form = request.state.form
        lines = [line for line in form.get("who", "").splitlines() if line.strip()]
        names = [guard.clean_name(line) for line in lines]
        if not names or None in names:
            raise guard.PageError("bad-name", status=400, most=guard.MOST_NAME)
        known = list(dict.fromkeys(filter(None, names)))
        return self.people(request, self.room.invite(known, again="again" in form))

    def download(self, request: Request) -> Response:
        """Send a table; for the fused labels the worker thread fits to all answers."""
        table, _, form = request.path_params["name"].partition(".")
        if table not in watch.TABLES or form not in watch.FORMATS:
            raise guard.PageError("no-file", status=404)
        headers = {"content-disposition": f'attachment; filename="{table}.{form}"'}
        data = watch.download(self.desk, table, form)
        return Response(data, media_type=watch.FORMATS[form], headers=headers)

    def _page(self, template: str, request: Request, **values: Any) -> HTMLResponse:
        known = {"room": self.room, "visitor": request.state.visitor}
        return page(template, **known, is_part=has_script(request), **values)


def has_script(request: Request) -> bool:
    """Return whether htmx sent a request, so that a part of a page suffices."""
    return request.headers.get("hx-request") == "true"


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Fill in a template. Halves of characters, which no file may hold, become question marks."""
    text = TEMPLATES.get_template(template).render(values)
    return HTMLResponse(text.encode("utf-8", "replace"), status_code=status)


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


TEMPLATES.filters |= {
    "short": clip,
    "ago": ago,
    "counted": counted,
    "median": statistics.median,
}


def read_form(request: Request) -> dict[str, str]:
    """Read a form or a query; of fields given twice, the last."""
    if request.method != "POST":
        return dict(request.query_params)
    body = request.scope["body"].decode("utf-8", "replace")
    return {key: values[-1] for key, values in parse_qs(body, max_num_fields=20).items()}


def refused(request: Request, error: Exception) -> Response:
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
    is_local = host == "localhost" or bool(guard.is_loopback(host))
    if not is_local and token is None:
        raise OptionError("host-needs-token", host=host, least=guard.SHORTEST)
    if token is not None and (len(token) < guard.SHORTEST or not token.isprintable()):
        raise OptionError("weak-token", least=guard.SHORTEST)
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
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return f"http://{f'[{name}]' if ':' in name else name}:{listening.getsockname()[1]}"


def run(
    room: Room, listening: socket.socket, hosts: Iterable[str] = (), *, is_local: bool = True
) -> None:
    """Serve until a signal ends it; the desk must have been started."""
    handlers: dict[Any, Any] = dict.fromkeys((HTTPException, TiebreakError, Exception), refused)
    app = Starlette(routes=Pages(room).routes(), exception_handlers=handlers)
    remote = room.contents.allows_remote
    guarded = guard.Guard(app, room.tokens, hosts, is_local=is_local, allows_remote=remote)
    sys.setswitchinterval(SWITCH)
    _allow_open_files()
    config = uvicorn.Config(
        guarded,  # type: ignore[arg-type,unused-ignore]  # scopes are mappings
        http=guard.TimedProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,  # addresses hold tokens
        server_header=False,
        proxy_headers=True,  # of a proxy on this machine only, which is the default
        limit_concurrency=guard.MOST_CONNECTIONS,
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
