"""The conversation in a terminal: two tasks, one key an answer."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tiebreak.ask.keys import Keys
from tiebreak.ask.log import Says
from tiebreak.ask.results import Answer, Contradiction, Progress, Question
from tiebreak.ask.session import Session

LONG = 2_000  # characters of a text that are shown unless all are asked for
FEW = 5  # workers named a label
EARLIER = 9  # answers that can be undone by one key

ANSWERS: dict[str, Says] = {"s": "same", "d": "different", "?": "unsure"}
HELP = (
    "s same class   d different classes   ? can't tell   n skip for now\n"
    "u undo   v votes   t whole texts   h this help   q quit (answers are kept)"
)
WHY = {
    "budget": "The budget is used up.",
    "target": "The target is reached.",
    "nothing": "Nothing is left that is worth asking.",
}


def new_console() -> Console:
    """Return a console on stderr that shows texts as they are."""
    return Console(stderr=True, markup=False, emoji=False, highlight=False)


class Conversation:
    """Ask until the session is finished, the person quits, or no more keys come."""

    def __init__(self, session: Session, keys: Keys, out: Console) -> None:
        self._session = session
        self._keys = keys
        self._out = out
        self._shown: Question | None = None
        self._goes_on = True
        self._actions: dict[str, Callable[[Question], None]] = {
            **dict.fromkeys(ANSWERS, self._answer),
            "n": self._skip,
            "u": self._undo,
            "v": self._show_votes,
            "t": self._show_whole,
            "h": self._help,
            "q": self._quit,
        }
        self._key = ""

    def run(self) -> None:
        """Hold the conversation."""
        self._out.print(HELP)
        self._replay()
        waiting = self._session.contradiction()
        if waiting is not None:
            self._settle(waiting)
        while self._goes_on and (question := self._next()) is not None:
            if question is not self._shown:
                self._show(question)
            self._key = self._read("".join(self._actions))
            self._actions[self._key](question)

    def _replay(self) -> None:
        """Show how far the fits of earlier runs are made again."""
        if self._out.is_terminal:
            with self._out.status("reading the answers") as status:
                for done, of in self._session.replay():
                    status.update(f"fitting as before: {done:,} of {of:,}")

    def _next(self) -> Question | None:
        if not self._out.is_terminal:
            return self._session.next()
        with self._out.status("choosing questions"):
            return self._session.next()

    def _read(self, allowed: str) -> str:
        """Return the next key among those allowed; the end of all keys is q."""
        while (key := self._keys.read()) is not None:
            if key.lower() in allowed:
                return key.lower()
            if not key.isspace():
                self._out.print(f"{printable(key)} is not a key here; one of: {' '.join(allowed)}")
        return "q"

    def _answer(self, question: Question) -> None:
        answer = self._session.answer(question, ANSWERS[self._key])
        self._out.print(f"  {answer.says}", style="bold")
        if answer.contradiction is not None:
            self._settle(answer.contradiction)

    def _skip(self, question: Question) -> None:
        self._session.skip(question)
        self._out.print("  skipped")

    def _undo(self, _: Question) -> None:
        undone = self._session.undo()
        self._out.print("  nothing to undo" if undone is None else f"  undone: {written(undone)}")

    def _help(self, _: Question) -> None:
        self._out.print(HELP)

    def _quit(self, _: Question) -> None:
        self._goes_on = False

    def _settle(self, found: Contradiction) -> None:
        """Show a contradiction and let the person choose what gives."""
        earlier = found.earlier[:EARLIER]
        self._keys.forget()
        self._out.print(f"This contradicts what was said before: {printable(found.chain)}.")
        for number, answer in enumerate(earlier, start=1):
            self._out.print(
                f"  {number}  {written(answer)}  ({printable(answer.who)}, {answer.at})"
            )
        numbers = "".join(str(number) for number in range(1, len(earlier) + 1))
        undo_one = f"1–{len(earlier)} undo an earlier one   " if len(earlier) > 1 else ""
        undo_one = "1 undo the earlier one   " if len(earlier) == 1 else undo_one
        self._out.print(f"u undo this answer   {undo_one}k keep all: links may then be wrong")
        key = self._read("uk" + numbers + "q")
        if key == "k":
            self._session.keep(found.answer)
            self._out.print("  kept")
        elif key == "q":
            self._goes_on = False
        else:
            undone = self._session.undo(found.answer if key == "u" else earlier[int(key) - 1])
            self._out.print(f"  undone: {written(undone)}" if undone else "")

    def _show(self, question: Question, *, whole: bool = False) -> None:
        self._keys.forget()  # a key struck before this is seen answers nothing
        self._out.print()
        self._out.print(status_line(self._session.progress(), question.gain), style="bold")
        self._out.print(_panel(question.left, question.left_text, whole=whole))
        self._out.print(_panel(question.right, question.right_text, whole=whole))
        self._out.print("same class?  s d ?  n u v t h q")
        self._shown = question

    def _show_whole(self, question: Question) -> None:
        self._show(question, whole=True)

    def _show_votes(self, question: Question) -> None:
        for task in (question.left, question.right):
            self._out.print(f"  {printable(str(task))}: {self._votes_of(task)}")

    def _votes_of(self, task: Hashable) -> str:
        votes = self._session.votes(task)
        if not votes:
            return "no votes"
        by_label = Counter(vote.label for vote in votes).most_common()
        return " · ".join(
            f"{printable(str(label))} {n} ({_few([v.worker for v in votes if v.label == label])})"
            for label, n in by_label
        )


def status_line(progress: Progress, gain: float) -> str:
    """Say where the session stands, in one line."""
    of_budget = "" if progress.budget is None else f" of {progress.budget:,}"
    wrong = f"about {progress.wrong:,.1f} of {progress.n_tasks:,} labels still wrong"
    parts = [f"Question {progress.asked + 1:,}{of_budget}", wrong]
    if gain == gain:
        parts.append(f"this answer puts {gain:.2f} right")
    if progress.is_soft:
        parts.append("answers may err")
    return " · ".join(parts)


def written(answer: Answer) -> str:
    """Write an answer as a = b."""
    return printable(str(answer))


def printable(text: str) -> str:
    r"""Replace what a terminal would obey instead of show.

    >>> printable("red \x1b[31m alert")
    'red �[31m alert'
    """
    return "".join(
        "�" if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t" else c for c in text
    )


def _panel(task: Hashable, text: str | None, *, whole: bool) -> Panel:
    name = printable(str(task))
    if text is None:
        return Panel(Text(name))
    body = printable(text)
    more = ""
    if len(body) > LONG and not whole:
        more = f"{len(body) - LONG:,} more characters: t shows all"
        body = body[:LONG] + " …"
    return Panel(Text(body), title=Text(name), title_align="left", subtitle=Text(more))


def _few(workers: list[Any]) -> str:
    shown = ", ".join(printable(str(worker)) for worker in workers[:FEW])
    n_more = len(workers) - FEW
    return f"{shown} and {n_more:,} more" if n_more > 0 else shown
