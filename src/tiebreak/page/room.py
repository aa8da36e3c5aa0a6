"""The room: who sits at the desk, what each person sees next, and what a task looks like."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
from markupsafe import Markup, escape

from tiebreak.ask import Answer, Desk, Question, Session
from tiebreak.ask.job import Job, by_code
from tiebreak.ask.spans import CLOSES, OPENS
from tiebreak.ask.storage import Seat
from tiebreak.errors import InputError, note
from tiebreak.page.guard import PageError, Tokens, Visitor
from tiebreak.templating import markdown

MOST_SESSIONS = 10_000  # kept in memory; a forgotten one is made again from its cookie
MOST_CLASSES = 5  # whose probabilities are shown for a task
IN_DOUBT = 0.05  # labels; with fewer expected to be wrong, nothing is left in doubt …
LEAST_ANSWERED = 20  # … after this many answers, which show whether the model can be trusted
LONG = 20_000  # characters of a text that are shown

# Files that may be served: pictures and sounds, nothing that a browser would run as a page.
MEDIA = {f".{kind}": f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif")}
MEDIA |= {f".{kind}": f"audio/{kind}" for kind in ("wav", "ogg", "flac")}
MEDIA |= {".jpg": "image/jpeg", ".svg": "image/svg+xml"}
MEDIA |= {".mp3": "audio/mpeg", ".oga": "audio/ogg", ".m4a": "audio/mp4"}


class Contents:
    """What tasks look like, by code of task, and where their files are.

    `found` are the columns of a table of texts: markdown, image, audio. Files are served from the
    folder `media`.
    """

    def __init__(
        self,
        found: Mapping[str, Mapping[Hashable, str]],
        job: Job,
        media: str | None = None,
        *,
        allows_remote: bool = False,
    ) -> None:
        self.job = job
        self.allows_remote = allows_remote
        self.columns = {
            name: by_code(values, job.responses.tasks)[0] for name, values in found.items()
        }
        self.media = None if media is None else Path(media).resolve()
        if self.media is not None and not self.media.is_dir():
            raise InputError("no-media-folder", folder=media)
        named = [
            name for kind in ("image", "audio") for name in self.columns.get(kind, {}).values()
        ]
        n_remote = sum(_is_remote(name) for name in named)
        if n_remote and not allows_remote:
            note("remote-media", n=n_remote)
        if len(named) > n_remote and self.media is None:
            raise InputError("media-needed")

    def show(self, task: Hashable) -> dict[str, Any]:
        """Return what a task looks like: any of image, audio, markdown, text; else its id."""
        code = self.job.code_of(task)
        told = {name: each[code] for name, each in self.columns.items() if code in each}
        image, audio = (self.address(told.get(name)) for name in ("image", "audio"))
        marked = told.get("markdown")
        text = self.job.texts.get(code)
        if text is None and not (image or audio):
            text = str(task)
        return {
            "image": image,
            "audio": audio,
            "markdown": None if marked is None else markdown_below(shortened(marked)),
            "text": None if text is None else self._marked(shortened(text)),
        }

    def _marked(self, text: str) -> str | Markup:
        """Return a text, with the span marked that is asked about."""
        if self.job.spans is None:
            return text
        html = str(escape(text)).replace(OPENS, "<mark>").replace(CLOSES, "</mark>")
        return Markup(html)

    def address(self, named: str | None) -> str | None:
        """Return where a browser finds a file; None if it may not have it."""
        if named is None:
            return None
        if _is_remote(named):
            return named if self.allows_remote and named.startswith("https://") else None
        return "/media/" + quote(named)

    def file(self, named: str) -> Path | None:
        """Return a file below the folder of media, None for anything else.

        Links are followed before its place is checked, so that none leads out.
        """
        if self.media is None or "\0" in named or Path(named).suffix.lower() not in MEDIA:
            return None
        try:
            path = (self.media / named).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            return None
        is_below = path.is_relative_to(self.media) and path.is_file()
        return path if is_below and os.access(path, os.R_OK) else None


def markdown_below(text: str) -> Markup:
    r"""Return Markdown as HTML whose headings stand below those of the page.

    >>> markdown_below("# A title")
    Markup('<h3 class="h1">A title</h3>\n')
    """
    html = re.sub(r"<h([1-6])>", r'<h3 class="h\1">', str(markdown(text)))
    return Markup(re.sub(r"</h[1-6]>", "</h3>", html))


def shortened(text: str) -> str:
    if len(text) <= LONG:
        return text
    return f"{text[:LONG]} … ({len(text) - LONG:,} more characters)"


def _is_remote(name: str) -> bool:
    return bool(urlsplit(name).scheme) or name.startswith("//")


class Room:
    """What all requests share.

    Every method holds the lock of the desk while it looks or writes, which takes milliseconds: fits
    run elsewhere.
    """

    def __init__(
        self,
        desk: Desk,
        tokens: Tokens,
        contents: Contents,
        *,
        shows_why: bool = False,
        guidelines: str = "",
    ) -> None:
        self.desk = desk
        self.tokens = tokens
        self.contents = contents
        self.guidelines = markdown_below(guidelines)
        self._shows_why = shows_why
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._seats = {seat.who: seat for seat in desk.storage.seats()}

    # Names

    def take_name(self, visitor: Visitor, who: str, *, again: bool) -> None:
        """Give a lead their name; `again`: they confirm that they are the lead of that name."""
        with self.desk.lock:
            self._refuse_in_use(who, "name-of-guest", is_lead=True, again=again)
            self._set_seat(Seat(who, visitor.run, None, is_lead=True))

    def invite(self, names: list[str], *, again: bool) -> list[tuple[str, str]]:
        """Return an invitation for each person; `again`: also for those invited before.

        A new invitation replaces the old one: the browser that came with that is out.
        """
        with self.desk.lock:
            for who in names:
                self._refuse_in_use(who, "name-of-lead", is_lead=False, again=again)
            keys = {who: secrets.token_hex(8) for who in names}
            for who, key in keys.items():
                self._set_seat(Seat(who, None, key, is_lead=False))
        return [(who, self.tokens.signed("invitation", [who, key])) for who, key in keys.items()]

    def _refuse_in_use(self, who: str, code: str, *, is_lead: bool, again: bool) -> None:
        """Refuse the name of somebody in the other role, and one in use unless it is confirmed."""
        seat = self._seats.get(who)
        if seat is not None and seat.is_lead != is_lead:
            raise PageError(code, who=who)
        if not again and (seat or any(each.who == who for each in self.desk.answers())):
            raise PageError("name-in-use", who=who)

    def join(self, who: str, key: str, visitor: Visitor | None) -> Visitor | None:
        """Let in an invited person: the first browser that comes, and that one again."""
        with self.desk.lock:
            seat = self._seats.get(who, Seat(who, None, key, is_lead=False))
            if seat.is_lead or seat.invitation != key:
                return None
            if seat.run is None:
                visitor = self.tokens.new_visitor(who, is_lead=False)
                self._set_seat(seat._replace(run=visitor.run))
                return visitor
            is_back = visitor is not None and (visitor.who, visitor.run) == (who, seat.run)
            return visitor if is_back else None

    def admits(self, visitor: Visitor) -> bool:
        """Return whether a visitor still has their name: a new invitation gives it to another."""
        if visitor.is_lead or visitor.who is None:
            return visitor.is_lead
        with self.desk.lock:
            seat = self._seats.get(visitor.who)
            if seat is None:  # the file was restored from a copy that is older than the cookie
                seat = Seat(visitor.who, visitor.run, None, is_lead=False)
                self._set_seat(seat)
        return not seat.is_lead and seat.run == visitor.run

    def may_see_why(self, visitor: Visitor) -> bool:
        return visitor.is_lead or self._shows_why

    def _set_seat(self, seat: Seat) -> None:
        with self.desk.storage.writing():
            self.desk.storage.set_seat(seat)
        self._seats[seat.who] = seat

    # Answers

    def act(
        self, visitor: Visitor, what: str = "ask", form: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Do what a form asks for; return what the person sees next, for question.html.

        When this returns, what was done is on the disk.
        """
        form = form or {}
        with self.desk.lock:
            session = self._session(visitor)
            said, about = "", None
            if what == "answer":
                question = self.question(form, visitor)
                about = session.answer(question, _choice(question, form.get("says", "")))
                said = "unsure" if about.says == "unsure" else "kept"
            elif what == "skip":
                session.skip(self.question(form, visitor))
                said = "skipped"
            elif what == "undo":
                about = session.undo(self._own(visitor, form) if "answer" in form else None)
                said = "undone" if about else "nothing-undone"
            elif what == "keep":
                session.keep(self._own(visitor, form))
                said = "both-kept"
            return self._screen(session, said) | {"about": about}

    def _screen(self, session: Session, said: str) -> dict[str, Any]:
        """Return a question, a contradiction to settle, or why there is nothing."""
        question = finished = None
        found = session.contradiction()
        progress = session.progress()
        # Where answers count as fallible, error rates are learnt from people who disagree: nobody
        # is talked out of that. Contradictions with their own answers they settle.
        if found is not None and progress.is_soft:
            found = found if any(each.who == session.who for each in found.earlier) else None
        if found is None:
            is_sure = progress.asked >= LEAST_ANSWERED and progress.wrong < IN_DOUBT
            if is_sure and progress.finished is None and said != "undone":
                finished = "sure"  # although there are questions to ask
            elif (question := session.next()) is None and not session.is_waiting():
                finished = session.progress().finished or "nothing"
        return {
            "progress": session.progress(),
            "question": question,
            "contradiction": found,
            "finished": finished,
            "said": said,
            "n_fits": len(self.desk.fits.history),
        }

    def reason(self, task: Hashable) -> dict[str, Any]:
        """Return what is believed of a task, who voted for what, and what moved the label."""
        job = self.desk.job
        with self.desk.lock:
            fit = self.desk.last_fit()
        q = fit.q[job.code_of(task)]
        votes = job.votes(task)
        rows = []
        for code in np.argsort(-q, kind="stable")[:MOST_CLASSES].tolist():
            label = job.responses.classes[code]
            rows.append((label, float(q[code]), [v.worker for v in votes if v.label == label]))
        return {"task": task, "rows": rows, "sentences": fit.model.explain(task).sentences}

    def sign(self, question: Question, visitor: Visitor) -> str:
        """Return a question as the form of one person carries it; nobody else can answer it.

        They can after a restart, too.
        """
        task, other, label = self.desk.job.keys(question.left, question.right, question.label)
        if question.members:
            task, other = self.desk.job.members_key(question.members), label
        said = [question.kind, task, other or label or "", question.token, visitor.who]
        return self.tokens.signed("question", said)

    def question(self, form: Mapping[str, str], visitor: Visitor) -> Question:
        """Return the question that a form carries, if it was asked of this person."""
        match self.tokens.read("question", form.get("question", "")):
            case [str(kind), str(left), str(other), str(token), str(who)]:
                pass
            case _:
                raise PageError("bad-question")
        if who != visitor.who:
            raise PageError("question-of-other")
        job = self.desk.job
        if kind == "which":
            tasks = json.loads(left)
            if other not in job.class_code or not {*tasks} - {None} <= job.code.keys():
                raise PageError("question-of-other-job")
            members = [None if each is None else job.name(each) for each in tasks]
            with self.desk.lock:
                session, label = self._session(visitor), job.class_name(other)
                question = session.question(members[0], label=label, members=members)
            return replace(question, token=token)
        known = {"same": job.code, "is": job.class_code}.get(kind)
        if left not in job.code or (known is not None and other not in known):
            raise PageError("question-of-other-job")
        with self.desk.lock:
            question = self._session(visitor).question(
                job.name(left),
                job.name(other) if kind == "same" else None,
                label=job.class_name(other) if kind == "is" else None,
            )
        return replace(question, token=token)

    def _session(self, visitor: Visitor) -> Session:
        session = self._sessions.pop(visitor.run, None)
        if session is None or session.who != visitor.who:
            session = self.desk.session(visitor.who or "", visitor.run)
        self._sessions[visitor.run] = session
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def _own(self, visitor: Visitor, form: Mapping[str, str]) -> int:
        """Return the answer that a form names; refuse another person's."""
        id = whole(form, "answer")
        event = self.desk.log.get(id)
        if event is not None and event.who != visitor.who and not visitor.is_lead:
            raise PageError("answer-of-other")
        return id

    # Labels set by hand

    def set_label(self, visitor: Visitor, task: Hashable, label: Hashable) -> Answer:
        """Set a label as known, in place of one that was set before."""
        with self.desk.lock, self.desk.session(visitor.who or "", by_hand=True) as session:
            if self.desk.job.code_of(task) in self.desk.job.given_labels():
                raise PageError("label-given", task=task)
            for answer in self.by_hand():
                if answer.left == task:
                    session.undo(answer)
            return session.answer(session.question(task), label)

    def unset_label(self, visitor: Visitor, id: int) -> Answer | None:
        with self.desk.lock, self.desk.session(visitor.who or "", by_hand=True) as session:
            if id not in {answer.id for answer in self.by_hand()}:
                raise PageError("label-gone")
            return session.undo(id)

    def by_hand(self) -> list[Answer]:
        """Return the labels that were set as known, the last first."""
        with self.desk.lock:
            made = self.desk.log.answers
            return [each for each in self.desk.answers() if made[each.id].is_by_hand][::-1]


def _choice(question: Question, choice: str) -> Hashable:
    """Return what a button says: its place among the choices, or that one cannot tell."""
    if choice == "unsure":
        return "unsure"
    place = int(choice) if choice.isascii() and choice.isdigit() else len(question.choices)
    if place >= len(question.choices):
        raise PageError("bad-answer")
    return question.choices[place]


def whole(form: Mapping[str, str], name: str, default: str = "") -> int:
    text = form.get(name) or default
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise PageError("bad-number")
    return int(text)
