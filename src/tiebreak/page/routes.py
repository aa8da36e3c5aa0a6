"""Routes: which address does what, for whom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import resources

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tiebreak.errors import OptionError, TiebreakError
from tiebreak.markup import Markup, join, tag
from tiebreak.page import ask_view, layout, people_view, watch_view, watching
from tiebreak.page.contents import TYPES
from tiebreak.page.exchange import (
    Form,
    base_of,
    error_page,
    has_script,
    not_found,
    our_fault,
    read_form,
    share,
    table_bytes,
    visitor_of,
    whole,
)
from tiebreak.page.guard import COOKIE, LOGIN, Guard, Rules
from tiebreak.page.room import Room, Screen
from tiebreak.page.tokens import MOST_NAME, Visitor, clean_name
from tiebreak.page.watching import Wanted
from tiebreak.wording import counted

STATIC = {
    "htmx.min.js": "text/javascript",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
MEDIA_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # a picture runs nothing
FORMATS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
WEEK = 7 * 24 * 3600  # seconds that a cookie holds
NOT_INVITED = "This invitation is not of this server. Ask for a new one."
NOT_ADMITTED = (
    "This invitation was used in another browser, or a new one took its place. Ask for a new one."
)

Handler = Callable[[Request], Awaitable[Response]]


class Pages:
    """What answers requests."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._tokens = room.tokens

    def routes(self) -> list[Route]:
        """Return every address, whether it needs a name, and whether it is for leads."""
        get = ["GET"]
        post = ["POST"]
        return [
            Route("/static/{name}", self.static, methods=get),
            Route(LOGIN, self.join, methods=get),
            Route(LOGIN, self.begin, methods=post),
            Route("/name", self._posted(self.name, needs_name=False, lead=True), methods=post),
            Route("/", self.ask, methods=get),
            Route("/ask", self._for(self.ask_part), methods=get),
            Route("/answer", self._posted(self.answer), methods=post),
            Route("/skip", self._posted(self.skip), methods=post),
            Route("/undo", self._posted(self.undo), methods=post),
            Route("/keep", self._posted(self.keep), methods=post),
            Route("/leave", self._posted(self.leave), methods=post),
            Route("/why", self._for(self.why), methods=get),
            Route("/changed", self._for(self.changed), methods=get),
            Route("/media/{path:path}", self._for(self.media), methods=get),
            Route("/watch", self._for(self.watch, lead=True), methods=get),
            Route("/progress", self._for(self.progress, lead=True), methods=get),
            Route("/tasks", self._for(self.tasks, lead=True), methods=get),
            Route("/label", self._posted(self.set_label, lead=True), methods=post),
            Route("/label/undo", self._posted(self.unset_label, lead=True), methods=post),
            Route("/people", self._for(self.people, lead=True), methods=get),
            Route("/invite", self._posted(self.invite, lead=True), methods=post),
            Route("/download/{name}", self._for(self.download, lead=True), methods=get),
        ]

    # Coming in

    async def static(self, request: Request) -> Response:
        """Send a file of the page itself; these are no secret."""
        name = request.path_params["name"]
        if name == "page.css":
            return Response(layout.style(), media_type="text/css")
        if name not in STATIC:
            return error_page(404, "There is no such file.")
        data = resources.files("tiebreak.page").joinpath("static", name).read_bytes()
        return Response(data, media_type=STATIC[name])

    async def join(self, request: Request) -> Response:
        """Show whom an invitation is for.

        It is used by the form that follows, not by looking: chats and mail programs look at links.
        """
        signed = request.query_params.get("invitation", "")
        invited = self._tokens.invited(signed)
        if invited is None:
            return error_page(403, NOT_INVITED)
        form = tag(
            "form",
            tag("input", type="hidden", name="invitation", value=signed),
            tag("button", f"Begin as {invited[0]}", type="submit"),
            method="post",
            action=LOGIN,
        )
        return HTMLResponse(layout.document("Welcome", tag("h1", "Welcome"), form))

    async def begin(self, request: Request) -> Response:
        """Let in who was invited, in one browser."""
        form = await read_form(request)
        invited = self._tokens.invited(form.get("invitation"))
        if invited is None:
            return error_page(403, NOT_INVITED)
        visitor = await run_in_threadpool(self._room.join, *invited, visitor_of(request))
        if visitor is None:
            return error_page(403, NOT_ADMITTED)
        return self._with_cookie(request, visitor, RedirectResponse("/", status_code=303))

    async def ask(self, request: Request) -> Response:
        """Show the question; first of all let in whoever brings the token."""
        said = request.query_params.get("token")
        if said is not None:
            if not self._tokens.is_token(said):
                return error_page(403, "This address is not of this server, or of an earlier run.")
            known = visitor_of(request)
            who = known.who if known is not None else None
            return self._welcome(request, self._tokens.new_visitor(who, is_lead=True))
        return await self._for(self._ask_page, needs_name=False)(request)

    async def _ask_page(self, request: Request, visitor: Visitor) -> Response:
        if visitor.who is None:
            return self._name_page(visitor)
        screen = await run_in_threadpool(self._room.screen, visitor)
        part = ask_view.show(self._room, visitor, screen)
        keys = tag(
            "label",
            tag("input", type="checkbox", id="keys", checked=True),
            " single keys answer",
            class_="note keys",
        )
        return HTMLResponse(layout.document("Ask", part, keys, visitor=visitor, here="/"))

    def _welcome(self, request: Request, visitor: Visitor) -> Response:
        """Set the cookie on a page that goes on by itself.

        Not a redirect: after a click on another site a browser would not send a strict cookie.
        """
        onwards = tag("p", tag("a", "Go on", href="/"))
        page = layout.document("Welcome", tag("h1", "Welcome"), onwards, goes_to="/")
        return self._with_cookie(request, visitor, HTMLResponse(page))

    def _with_cookie(self, request: Request, visitor: Visitor, response: Response) -> Response:
        response.set_cookie(
            COOKIE,
            self._tokens.cookie(visitor),
            max_age=WEEK,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    def _name_page(self, visitor: Visitor, problem: str = "", status: int = 200) -> HTMLResponse:
        field = tag(
            "label",
            tag("span", "Your name, as others will see it"),
            tag("input", name="who", required=True, maxlength=MOST_NAME, autocomplete="nickname"),
        )
        again = tag(
            "label", tag("input", type="checkbox", name="again", value="1"), " That was me."
        )
        form = layout.form(
            self._tokens,
            visitor,
            "/name",
            field,
            again if status == 409 else None,
            tag("button", "Begin", type="submit"),
            class_="filter",
        )
        words = tag("p", problem, role="alert") if problem else None
        title = tag("h1", "Who answers?")
        page = layout.document("Who answers?", title, words, form)
        return HTMLResponse(page, status_code=status)

    async def name(self, request: Request, visitor: Visitor, form: Form) -> Response:
        """Take the name of a lead who has none yet."""
        if visitor.who is not None:
            return error_page(403, "You have a name already.")
        who = clean_name(form.get("who", ""))
        if who is None:
            return self._name_page(visitor, f"A name has 1 to {MOST_NAME} characters.")
        try:
            again = "again" in form
            await run_in_threadpool(lambda: self._room.take_name(visitor, who, again=again))
        except OptionError as error:
            return self._name_page(visitor, str(error), 409)
        return self._with_cookie(
            request, visitor._replace(who=who), RedirectResponse("/", status_code=303)
        )

    # Answering

    async def ask_part(self, request: Request, visitor: Visitor) -> Response:
        """Send the question again, or the next where one was chosen meanwhile."""
        screen = await run_in_threadpool(self._room.screen, visitor)
        return HTMLResponse(ask_view.show(self._room, visitor, screen))

    async def answer(self, request: Request, visitor: Visitor, form: Form) -> Response:
        """Record an answer."""
        said = (form.get("question", ""), form.get("says", ""))
        return self._screen(
            request, visitor, await run_in_threadpool(self._room.answer, visitor, *said)
        )

    async def skip(self, request: Request, visitor: Visitor, form: Form) -> Response:
        """Put a question off."""
        question = form.get("question", "")
        return self._screen(
            request, visitor, await run_in_threadpool(self._room.skip, visitor, question)
        )

    async def undo(self, request: Request, visitor: Visitor, form: Form) -> Response:
        """Take back an answer."""
        id = whole(form["answer"]) if "answer" in form else None
        return self._screen(request, visitor, await run_in_threadpool(self._room.undo, visitor, id))

    async def keep(self, request: Request, visitor: Visitor, form: Form) -> Response:
        """Let an answer stand beside what it contradicts."""
        id = whole(form.get("answer", ""))
        return self._screen(request, visitor, await run_in_threadpool(self._room.keep, visitor, id))

    async def leave(self, request: Request, visitor: Visitor, form: Form) -> Response:
        """Give up what was reserved."""
        await run_in_threadpool(self._room.leave, visitor)
        return HTMLResponse(layout.document("Bye", tag("h1", "Bye"), visitor=None))

    async def why(self, request: Request, visitor: Visitor) -> Response:
        """Show votes and probabilities of the tasks that are asked about."""
        if not self._room.may_see_why(visitor):
            return error_page(403, "This view is for the lead.")
        question = request.query_params.get("question", "")
        part = ask_view.why(await run_in_threadpool(self._room.why, visitor, question))
        if has_script(request):
            return HTMLResponse(part)
        back = tag("p", tag("a", "Back to the question", href="/"))
        page = layout.document("Why", tag("h1", "Why this"), part, back, visitor=visitor)
        return HTMLResponse(page)

    async def changed(self, request: Request, visitor: Visitor) -> Response:
        """Say how many labels changed, once there is a fit that knows more."""
        since = whole(request.query_params.get("since", "0"))
        history = self._room.desk.fits.history
        if len(history) <= since:
            return HTMLResponse(ask_view.will_change(since, ask_view.SLOW_POLL))
        n_changed = sum(point.n_changed for point in history[since:])
        part = ask_view.changed(n_changed)
        return HTMLResponse(join([part, layout.say(f"{counted(n_changed, 'label')} changed.")]))

    async def media(self, request: Request, visitor: Visitor) -> Response:
        """Send a picture or a sound from below the folder of media."""
        named = request.path_params["path"]
        path = await run_in_threadpool(self._room.contents.file, named)
        if path is None:
            return error_page(404, "There is no such file.")
        return FileResponse(
            path,
            media_type=TYPES[path.suffix.lower()],
            headers={"content-security-policy": MEDIA_POLICY, "cache-control": "private"},
        )

    # Watching

    async def watch(self, request: Request, visitor: Visitor) -> Response:
        """Show how far the labels are."""
        return HTMLResponse(await run_in_threadpool(self._watch_page, request, visitor))

    async def tasks(self, request: Request, visitor: Visitor) -> Response:
        """Send the list of tasks alone."""
        return HTMLResponse(await run_in_threadpool(self._task_list, request, visitor))

    async def progress(self, request: Request, visitor: Visitor) -> Response:
        """Send numbers and curve alone, to who follows them."""
        with self._room.desk.lock:
            outlook = watching.outlook(self._room.desk)
        return HTMLResponse(watch_view.progress(outlook, follows=True))

    def _watch_page(self, request: Request, visitor: Visitor, said: str = "") -> str:
        desk = self._room.desk
        with desk.lock:
            outlook = watching.outlook(desk)
            fit = desk.last_fit()
        wanted = self._wanted(request)
        listing = watching.listing(desk, fit, wanted)
        follows = request.query_params.get("follow") == "1"
        view = watch_view.show(self._room, visitor, outlook, listing, wanted, follows=follows)
        words = tag("p", said, role="status", class_="notice") if said else None
        return layout.document("Watch", words, view, visitor=visitor, here="/watch")

    def _task_list(self, request: Request, visitor: Visitor) -> Markup:
        desk = self._room.desk
        with desk.lock:
            fit = desk.last_fit()
        wanted = self._wanted(request)
        listing = watching.listing(desk, fit, wanted)
        return watch_view.tasks(self._room, visitor, listing, wanted)

    def _wanted(self, request: Request) -> Wanted:
        said = request.query_params
        classes = self._room.desk.job.responses.classes
        place = said.get("label", "")
        is_place = place.isascii() and place.isdigit() and int(place[:9]) < len(classes)
        return Wanted(
            said.get("words", "").strip()[:200],
            classes[int(place)] if is_place else None,
            said.get("worker", "").strip()[:200],
            share(said.get("low"), 0.0),
            share(said.get("high"), 1.0),
            whole(said.get("page") or "0"),
        )

    async def set_label(self, request: Request, visitor: Visitor, form: Form) -> Response:
        """Set a label as known."""
        crowd = self._room.desk.job.responses
        task = whole(form.get("task", ""))
        label = whole(form.get("label", ""))
        if task >= crowd.n_tasks or label >= crowd.n_classes:
            return error_page(400, "There is no such task or class.")
        said = await run_in_threadpool(
            self._room.set_label, visitor, crowd.tasks[task], crowd.classes[label]
        )
        return HTMLResponse(await run_in_threadpool(self._watch_page, request, visitor, said))

    async def unset_label(self, request: Request, visitor: Visitor, form: Form) -> Response:
        """Take back a label that was set by hand."""
        id = whole(form.get("answer", ""))
        said = await run_in_threadpool(self._room.unset_label, visitor, id)
        return HTMLResponse(await run_in_threadpool(self._watch_page, request, visitor, said))

    async def people(self, request: Request, visitor: Visitor) -> Response:
        """Show who answers how much and how well."""
        return HTMLResponse(await run_in_threadpool(self._people_page, request, visitor))

    def _people_page(
        self, request: Request, visitor: Visitor, invited: list[tuple[str, str]] | None = None
    ) -> str:
        with self._room.desk.lock:
            found = watching.people(self._room.desk)
        addresses = [
            (who, f"{base_of(request)}{LOGIN}?invitation={signed}") for who, signed in invited or ()
        ]
        view = people_view.show(self._room, visitor, found, addresses)
        return layout.document("People", view, visitor=visitor, here="/people")

    async def invite(self, request: Request, visitor: Visitor, form: Form) -> Response:
        """Make invitations, each for one person."""
        names = [clean_name(line) for line in form.get("who", "").splitlines() if line.strip()]
        known = list(dict.fromkeys(who for who in names if who is not None))
        if None in names or not known:
            return error_page(400, f"A name has 1 to {MOST_NAME} characters.")
        again = "again" in form
        made = await run_in_threadpool(lambda: self._room.invite(known, again=again))
        page = await run_in_threadpool(self._people_page, request, visitor, made)
        return HTMLResponse(page)

    async def download(self, request: Request, visitor: Visitor) -> Response:
        """Send labels or links as a table; for the fused labels the worker fits to all answers."""
        what, _, form = request.path_params["name"].partition(".")
        if what not in ("labels", "links", "known") or form not in FORMATS:
            return error_page(404, "There is no such file.")
        data = await run_in_threadpool(table_bytes, self._room, what, form)
        name = f'attachment; filename="{what}.{form}"'
        return Response(data, media_type=FORMATS[form], headers={"content-disposition": name})

    # What all share

    def _screen(self, request: Request, visitor: Visitor, screen: Screen) -> Response:
        if not has_script(request):
            return RedirectResponse("/", status_code=303)
        part = ask_view.show(self._room, visitor, screen)
        return HTMLResponse(join([part, layout.say(screen.said)]))

    def _for(
        self,
        handler: Callable[[Request, Visitor], Awaitable[Response]],
        *,
        needs_name: bool = True,
        lead: bool = False,
    ) -> Handler:
        """Let in who may see a view."""

        async def checked(request: Request) -> Response:
            visitor = visitor_of(request)
            if visitor is None:
                return error_page(
                    403, "Open the address that `tiebreak serve` printed, or ask a lead."
                )
            if not await run_in_threadpool(self._room.admits, visitor):
                return error_page(403, NOT_ADMITTED)
            if needs_name and visitor.who is None:
                return RedirectResponse("/", status_code=303)
            if lead and not visitor.is_lead:
                return error_page(403, "This view is for the lead.")
            try:
                return await handler(request, visitor)
            except TiebreakError as error:
                return error_page(409 if isinstance(error, OptionError) else 503, str(error))

        return checked

    def _posted(
        self,
        handler: Callable[[Request, Visitor, Form], Awaitable[Response]],
        *,
        needs_name: bool = True,
        lead: bool = False,
    ) -> Handler:
        """Let through a form that came from a page of this visitor."""

        async def checked(request: Request, visitor: Visitor) -> Response:
            form = await read_form(request)
            if not self._tokens.is_csrf(form.get("csrf", ""), visitor):
                return error_page(403, "This form is not of this page. Load the page again.")
            return await handler(request, visitor, form)

        return self._for(checked, needs_name=needs_name, lead=lead)


def make_app(room: Room, rules: Rules) -> Guard:
    """Return the whole application, behind its guard."""
    app = Starlette(
        routes=Pages(room).routes(),
        exception_handlers={HTTPException: not_found, Exception: our_fault},
    )
    return Guard(app, room.tokens, rules)
