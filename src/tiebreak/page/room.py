"""The room: a desk, who sits at it, and what each of them sees next.

Every method takes the lock of the desk for as long as it looks or writes, which is milliseconds: a
fit is never among it.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from tiebreak.ask import Answer, Contradiction, Desk, Progress, Question, Session, Vote
from tiebreak.ask.log import BY_HAND
from tiebreak.ask.results import choices_for
from tiebreak.ask.storage import Seat
from tiebreak.errors import OptionError
from tiebreak.kernels.layout import Floats
from tiebreak.page.contents import Contents
from tiebreak.page.tokens import Tokens, Visitor

MOST_SESSIONS = 10_000  # kept in memory; one that was forgotten is made again from its cookie


class Screen(NamedTuple):
    """What somebody sees: a question, a contradiction to settle, or why there is nothing."""

    progress: Progress
    question: Question | None = None
    contradiction: Contradiction | None = None
    is_waiting: bool = False
    said: str = ""  # what became of the last key
    has_new: bool = False  # an answer was given or taken back: labels may change


class Reason(NamedTuple):
    """Why a task is asked about."""

    task: Hashable
    probabilities: list[tuple[Hashable, float]]  # the likeliest classes first
    votes: tuple[Vote, ...]


class Room:
    """What all requests share."""

    def __init__(
        self, desk: Desk, tokens: Tokens, contents: Contents, *, shows_why: bool = False
    ) -> None:
        self.desk = desk
        self.tokens = tokens
        self.contents = contents
        self._shows_why = shows_why
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._seats = {seat.who: seat for seat in desk.storage.seats()}

    def take_name(self, visitor: Visitor, who: str, *, again: bool) -> None:
        """Let a lead have a name; `again`: they say that the lead of that name is themselves."""
        with self.desk.lock:
            seat = self._seats.get(who)
            if seat is not None and not seat.is_lead:
                raise OptionError(f"{who} is the name of somebody who was invited. Take another.")
            if self._is_in_use(who) and not again:
                raise OptionError(
                    f"The name {who} is in use. Take another, or say that it is you who used it."
                )
            self._set_seat(Seat(who, visitor.run, None, is_lead=True))

    def invite(self, names: list[str], *, again: bool) -> list[tuple[str, str]]:
        """Return an invitation for each person; `again`: also for who was invited before.

        A new invitation takes the place of the old one: the browser that came with that is out.
        """
        made: list[tuple[str, str]] = []
        with self.desk.lock:
            for who in names:
                seat = self._seats.get(who)
                if seat is not None and seat.is_lead:
                    raise OptionError(f"{who} is the name of a lead. Choose another.")
                if self._is_in_use(who) and not again:
                    raise OptionError(
                        f"The name {who} is in use. Choose another for a second person, or say "
                        "that it is the same person again."
                    )
            for who in names:
                key = secrets.token_hex(8)
                self._set_seat(Seat(who, None, key, is_lead=False))
                made.append((who, self.tokens.invitation(who, key)))
        return made

    def join(self, who: str, key: str, visitor: Visitor | None) -> Visitor | None:
        """Let in who was invited: the first browser that comes, and that one again."""
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
        """Say whether a visitor still has their name: a new invitation gives it to another."""
        if visitor.is_lead or visitor.who is None:
            return visitor.is_lead
        seat = self._seats.get(visitor.who)
        if seat is None:  # the file was put back from a copy: the cookie is older than it
            with self.desk.lock:
                seat = self._seats.get(visitor.who)
                seat = seat or Seat(visitor.who, visitor.run, None, is_lead=False)
                self._set_seat(seat)
        return not seat.is_lead and seat.run == visitor.run

    def may_see_why(self, visitor: Visitor) -> bool:
        """Say whether somebody may see votes, who gave them, and probabilities."""
        return visitor.is_lead or self._shows_why

    def _is_in_use(self, who: str) -> bool:
        self.desk.catch_up()
        said = self.desk.log.answers.values()
        return who in self._seats or any(event.who == who for event in said)

    def _set_seat(self, seat: Seat) -> None:
        storage = self.desk.storage
        with storage.writing():
            storage.set_seat(seat)
        self._seats[seat.who] = seat

    def screen(self, visitor: Visitor, said: str = "", *, has_new: bool = False) -> Screen:
        """Return what a person sees next."""
        with self.desk.lock:
            session = self._session(visitor)
            found = session.contradiction()
            if found is not None and _is_to_settle(found, session):
                return Screen(session.progress(), contradiction=found, said=said, has_new=has_new)
            return self._next(session, said, has_new=has_new)

    def answer(self, visitor: Visitor, signed: str, choice: str) -> Screen:
        """Record an answer; what is returned is on the disk."""
        with self.desk.lock:
            session = self._session(visitor)
            question = self._question(signed, visitor)
            answer = session.answer(question, _choice(question, choice))
            self._wake(visitor)
            said = f"Kept: {answer}." if answer.says != "unsure" else "Kept: can't tell."
            found = answer.contradiction
            if found is not None and _is_to_settle(found, session):
                return Screen(
                    session.progress(),
                    contradiction=found,
                    said=f"{said} It contradicts what was said before.",
                    has_new=True,
                )
            return self._next(session, said, has_new=True)

    def skip(self, visitor: Visitor, signed: str) -> Screen:
        """Put a question off."""
        with self.desk.lock:
            session = self._session(visitor)
            session.skip(self._question(signed, visitor))
            return self._next(session, "Skipped: it comes back later.")

    def undo(self, visitor: Visitor, id: int | None = None) -> Screen:
        """Take back an answer, the last own one where none is named; its question comes next."""
        with self.desk.lock:
            session = self._session(visitor)
            self._refuse_answers_of_others(visitor, id)
            undone = session.undo(id)
            self._wake(visitor)
            said = "Nothing to undo." if undone is None else f"Undone: {undone}."
            return self._next(session, said, has_new=undone is not None)

    def keep(self, visitor: Visitor, id: int) -> Screen:
        """Let an answer stand beside those that it contradicts."""
        with self.desk.lock:
            session = self._session(visitor)
            self._refuse_answers_of_others(visitor, id)
            session.keep(id)
            self._wake(visitor)
            said = "Kept, with what it contradicts: answers may be wrong now."
            return self._next(session, said, has_new=True)

    def why(self, visitor: Visitor, signed: str) -> list[Reason]:
        """Return what is believed of the tasks of a question, and who voted for what."""
        question = self._question(signed, visitor)
        with self.desk.lock:
            q = self.desk.last_fit().q
        return [self._reason(task, q) for task in question.tasks]

    def leave(self, visitor: Visitor) -> None:
        """Give up what somebody reserved, for others to answer."""
        with self.desk.lock:
            session = self._sessions.pop(visitor.run, None)
            if session is not None:
                session.close()

    def set_label(self, visitor: Visitor, task: Hashable, label: Hashable) -> str:
        """Set a label as known, in place of one that was set before; say what became of it."""
        with self.desk.lock:
            session = self._by_hand(visitor)
            if any(known == task for known in self.given()):
                raise OptionError(f"The label of {task} was given from the start: it is known.")
            for answer in self.by_hand():
                if answer.left == task:
                    session.undo(answer)
            answer = session.answer(session.question(task), label)
            self._wake(visitor)
        if answer.contradiction is not None:
            return f"Set: {answer}. It contradicts answers: {answer.contradiction.chain}."
        return f"Set: {answer}."

    def unset_label(self, visitor: Visitor, id: int) -> str:
        """Take back a label that was set as known."""
        with self.desk.lock:
            if id not in {answer.id for answer in self.by_hand()}:
                raise OptionError("That label was taken back before.")
            undone = self._by_hand(visitor).undo(id)
            self._wake(visitor)
        return f"Undone: {undone}."

    def by_hand(self) -> list[Answer]:
        """Return the labels that were set as known, the last first."""
        with self.desk.lock:
            log = self.desk.log
            found = [each for each in self.desk.answers() if log.answers[each.id].is_by_hand]
        return found[::-1]

    def given(self) -> tuple[Hashable, ...]:
        """Return the tasks whose labels were given from the start."""
        gold = self.desk.job.gold
        return () if gold is None else tuple(gold.tasks)

    def sign(self, question: Question, visitor: Visitor) -> str:
        """Return a question as the form of one person carries it, who alone can answer it.

        They can after a restart, too.
        """
        _, left, right = self.desk.subject(question)
        if question.kind == "same":  # as they are shown, which a subject does not tell
            left = self.desk.job.key_of(question.left)
            right = self.desk.job.key_of(question.right)
        said = [question.kind, left, right, question.token, visitor.who]
        return self.tokens.signed("question", said)

    def _question(self, signed: str, visitor: Visitor) -> Question:
        found = self.tokens.read("question", signed)
        if found is None or len(found) != 5:
            raise OptionError("This question is not of this page. Load the page again.")
        kind, left, right, token, who = found
        if who != visitor.who:
            raise OptionError("This question was asked of somebody else. Load the page again.")
        job = self.desk.job
        if left not in job.code or (kind == "same" and right not in job.code):
            raise OptionError("This question is about another job. Load the page again.")
        return Question(
            job.name(left),
            job.name(right) if kind == "same" else None,
            kind=kind,
            label=job.class_name(right) if kind == "is" else None,
            choices=choices_for(kind, job.responses.classes),
            token=token,
        )

    def _reason(self, task: Hashable, q: Floats) -> Reason:
        job = self.desk.job
        row = q[job.code_of(task)]
        order = row.argsort()[::-1][:5].tolist()
        likely = [(job.responses.classes[code], float(row[code])) for code in order]
        return Reason(task, likely, job.votes(task))

    def _next(self, session: Session, said: str, *, has_new: bool = False) -> Screen:
        question = session.next()
        return Screen(
            session.progress(),
            question,
            is_waiting=session.is_waiting(),
            said=said,
            has_new=has_new,
        )

    def _session(self, visitor: Visitor) -> Session:
        session = self._sessions.pop(visitor.run, None)
        if session is None or session.who != visitor.who:
            session = self.desk.session(visitor.who or "", visitor.run)
        self._sessions[visitor.run] = session
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def _by_hand(self, visitor: Visitor) -> Session:
        return self.desk.session(visitor.who or "", f"{BY_HAND}{secrets.token_hex(6)}")

    def _refuse_answers_of_others(self, visitor: Visitor, id: int | None) -> None:
        event = None if id is None else self.desk.log.get(id)
        if event is not None and event.who != visitor.who and not visitor.is_lead:
            raise OptionError("That is an answer of somebody else: it is theirs, or a lead's.")

    def _wake(self, visitor: Visitor) -> None:
        if self.desk.background is not None:
            self.desk.background.wake(visitor.who)


def _is_to_settle(found: Contradiction, session: Session) -> bool:
    """Say whether a person is to settle a contradiction.

    Where answers count as fallible, that others said otherwise is what error rates are learnt
    from: nobody is to be talked out of it. What they said themselves they are asked about.
    """
    is_own = any(answer.who == session.who for answer in found.earlier)
    return is_own or not session.progress().is_soft


def _choice(question: Question, choice: str) -> Hashable:
    """Return what a button says: its place among the choices, or that one cannot tell."""
    if choice == "unsure":
        return "unsure"
    place = int(choice) if choice.isascii() and choice.isdigit() else len(question.choices)
    if place >= len(question.choices):
        raise OptionError("This is no answer to that question. Load the page again.")
    return question.choices[place]
