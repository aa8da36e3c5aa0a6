"""The conversation in a terminal: one question a screen, one key an answer."""

from __future__ import annotations

import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tiebreak.ask.choices import Choices, choices_of
from tiebreak.ask.keys import Keys
from tiebreak.ask.log import UNSURE
from tiebreak.ask.results import Answer, Contradiction, Progress, Question
from tiebreak.ask.session import Session

LONG = 2_000  # characters of a text that are shown unless all are asked for
FEW = 5  # workers named a label
EARLIER = 9  # answers that can be undone by one key
LOOK_AGAIN = 0.05  # seconds, while the worker chooses

T = TypeVar("T")

OPENING = (
    "The questions that put most labels right come first; one key answers.\n"
    "Words beside the keys say what they do; undo (u) goes back as far as you like.\n"
    "Quit (q) at any time: answers are kept, and the same command goes on from there."
)
HELP = (
    "s same class   d different classes   y yes   n no   1 2 3, or a letter: the class\n"
    "? can't tell   n skip for now (k where n is no)   u undo   v votes\n"
    "t whole texts   h this help   q quit (answers are kept)"
)
WHY = {
    "budget": "The budget is used up.",
    "target": "The target is reached.",
    "worth": "No question is worth as much as you asked for.",
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
            "can't tell": self._answer,
            "skip": self._skip,
            "undo": self._undo,
            "votes": self._show_votes,
            "whole texts": self._show_whole,
            "help": self._help,
            "quit": self._quit,
        }
        self._key = ""

    def run(self) -> None:
        """Hold the conversation."""
        self._out.print(OPENING)
        self._replay()
        waiting = self._in_turn(self._session.contradiction)
        if waiting is not None:
            self._settle(waiting)
        while self._goes_on and (question := self._next()) is not None:
            if question is not self._shown:
                self._show(question)
            choices = choices_of(question)
            self._key = self._read_choice(choices)
            command = choices.commands.get(self._key)
            if command is None:
                self._answer(question)
            else:
                self._actions[command](question)

    def _replay(self) -> None:
        """Show how far the fits of earlier runs are made again."""
        if self._out.is_terminal:
            with self._out.status("reading the answers") as status:
                for done, of in self._session.replay():
                    status.update(f"fitting as before: {done:,} of {of:,}")
        if self._session.desk.background is not None:
            with self._out.status("fitting"):
                self._session.desk.start()

    def _in_turn(self, do: Callable[..., T], *arguments: Any) -> T:
        """Do something with the session while the worker that may fit beside it does not."""
        with self._session.desk.lock:
            return do(*arguments)

    def _change(self, do: Callable[..., T], *arguments: Any) -> T:
        """Record something, and let the worker know."""
        made = self._in_turn(do, *arguments)
        if self._session.desk.background is not None:
            self._session.desk.background.wake(self._session.who)
        return made

    def _next(self) -> Question | None:
        with self._out.status("choosing questions"):
            question, is_waiting = self._in_turn(self._look)
            while is_waiting:
                time.sleep(LOOK_AGAIN)
                question, is_waiting = self._in_turn(self._look)
        return question

    def _look(self) -> tuple[Question | None, bool]:
        return self._session.next(), self._session.is_waiting()

    def _read_choice(self, choices: Choices) -> str:
        """Return the next key that answers or commands; a long number has several keys."""
        single = [key for key in choices.by_key if len(key) == 1]
        first = sorted({key[0] for key in choices.by_key if len(key) > 1})
        allowed = [*single, *first, *choices.commands]
        while True:
            key = self._read(allowed)
            if key not in first:
                return key
            while len(key) < choices.width:
                key += self._read([str(digit) for digit in range(10)], or_end="")
            if key in choices.by_key:
                return key
            self._out.print(f"{key} is not a class here; the numbers go to {choices.last_number}")

    def _read(self, allowed: list[str], or_end: str = "q") -> str:
        """Return the next key among those allowed; the end of all keys is q."""
        while (key := self._keys.read()) is not None:
            if key.lower() in allowed:
                return key.lower()
            if not key.isspace():
                self._out.print(f"{printable(key)} is not a key here; one of: {' '.join(allowed)}")
        return or_end or "q"

    def _answer(self, question: Question) -> None:
        says = UNSURE if self._key == "?" else choices_of(question).by_key[self._key]
        answer = self._change(self._session.answer, question, says)
        self._out.print(f"  {printable(str(answer.says))}", style="bold")
        if answer.contradiction is not None:
            self._settle(answer.contradiction)

    def _skip(self, question: Question) -> None:
        self._in_turn(self._session.skip, question)
        self._out.print("  skipped")

    def _undo(self, _: Question) -> None:
        undone = self._change(self._session.undo)
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
        numbers = [str(number) for number in range(1, len(earlier) + 1)]
        undo_one = f"1–{len(earlier)} undo an earlier one   " if len(earlier) > 1 else ""
        undo_one = "1 undo the earlier one   " if len(earlier) == 1 else undo_one
        self._out.print(f"u undo this answer   {undo_one}k keep all: answers may then be wrong")
        key = self._read(["u", "k", *numbers, "q"])
        if key == "k":
            self._change(self._session.keep, found.answer)
            self._out.print("  kept")
        elif key == "q":
            self._goes_on = False
        else:
            which = found.answer if key == "u" else earlier[int(key) - 1]
            undone = self._change(self._session.undo, which)
            self._out.print(f"  undone: {written(undone)}" if undone else "")

    def _show(self, question: Question, *, whole: bool = False) -> None:
        self._keys.forget()  # a key struck before this is seen answers nothing
        self._out.print()
        progress = self._in_turn(self._session.progress)
        self._out.print(status_line(progress, question.gain), style="bold")
        self._out.print(_panel(question.left, question.left_text, whole=whole))
        if question.right is not None:
            self._out.print(_panel(question.right, question.right_text, whole=whole))
        choices = choices_of(question)
        if question.kind in ("label", "vote"):
            self._list_classes(choices)
        self._out.print(f"{self._asks(question)}  {choices.prompt()}")
        self._shown = question

    def _asks(self, question: Question) -> str:
        """Return the question in words."""
        if question.kind == "same":
            return f"{self._session.wording or 'same class'}?"
        if question.kind == "is":
            text = self._session.class_text(question.label)
            meaning = "" if text is None else f" ({printable(text)})"
            return f"is this {printable(str(question.label))}{meaning}?"
        return "which class?"

    def _list_classes(self, choices: Choices) -> None:
        for key, name in choices.by_key.items():
            if key.isdigit():
                text = self._session.class_text(name)
                letter = next((k for k, n in choices.by_key.items() if n == name and k != key), "")
                keys = f"{key} {letter}".ljust(choices.width + 2)
                meaning = "" if text is None else f": {printable(text)}"
                self._out.print(f"  {keys} {printable(str(name))}{meaning}")

    def _show_whole(self, question: Question) -> None:
        self._show(question, whole=True)

    def _show_votes(self, question: Question) -> None:
        for task in question.tasks:
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
        parts.append(in_words(gain))
    if progress.is_soft:
        parts.append("answers may err")
    return " · ".join(parts)


def in_words(gain: float) -> str:
    """Say what an answer brings.

    >>> in_words(3.2), in_words(0.46)
    ('this corrects about 3.2', '46 % chance to correct one')
    """
    if gain >= 1.0:
        return f"this corrects about {gain:.1f}"
    return f"{100.0 * gain:.0f} % chance to correct one"


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
