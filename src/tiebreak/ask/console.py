"""The conversation in a terminal: one question a screen, one key an answer."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TextIO, TypeVar

import typer
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tiebreak.ask.log import UNSURE
from tiebreak.ask.results import Choices, Contradiction, Progress, Question, choices_of
from tiebreak.ask.session import Session
from tiebreak.wording import printable

LONG = 2_000  # characters of a text that are shown unless all are asked for
FEW = 5  # workers named a label
EARLIER = 9  # answers that can be undone by one key
LOOK_AGAIN = 0.05  # seconds, while the worker chooses
UNREADABLE = "�"

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


class Keys:
    """Keys, one at a time: from a terminal without Enter, or the characters of anything else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._ahead = ""  # keys that came together with the last one

    def read(self) -> str | None:
        """Wait for the next key; None where no more will come."""
        if not self._is_terminal:  # blanks and line ends between keys mean nothing
            while (key := self._stream.read(1)).isspace():
                pass
            return key or None
        if not self._ahead:
            try:
                self._ahead = typer.getchar()
            except (EOFError, OSError):  # Ctrl-D, or the terminal is gone
                return None
            if self._ahead[:1] in ("\x1b", "\x00", "\xe0"):  # an arrow or the like
                self._ahead = UNREADABLE
        key, self._ahead = self._ahead[:1], self._ahead[1:]
        return key or None

    def forget(self) -> None:
        """Drop keys that were struck before anything was shown. What a file holds all counts."""
        self._ahead = ""
        if self._is_terminal and sys.platform != "win32":
            import termios

            termios.tcflush(self._stream.fileno(), termios.TCIFLUSH)


class Conversation:
    """Ask until the session is finished, the person quits, or no more keys come."""

    def __init__(self, session: Session, keys: Keys, out: Console) -> None:
        self._session = session
        self._keys = keys
        self._out = out
        self._shown: Question | None = None
        self._goes_on = True

    def run(self) -> None:
        """Hold the conversation."""
        self._out.print(OPENING)
        if self._session.desk.background is not None:
            with self._out.status("fitting"):
                self._session.desk.start()
        waiting = self._in_turn(self._session.contradiction)
        if waiting is not None:
            self._settle(waiting)
        while self._goes_on and (question := self._next()) is not None:
            if question is not self._shown:
                self._show(question)
            choices = choices_of(question)
            key = self._read_choice(choices)
            self._do(question, choices.commands.get(key), choices.by_key.get(key))

    def _do(self, question: Question, command: str | None, says: Hashable) -> None:
        """Do what a key asks for: a command, or an answer."""
        if command is None or command == "can't tell":
            answer = self._change(self._session.answer, question, UNSURE if command else says)
            self._out.print(f"  {printable(str(answer.says))}", style="bold")
            if answer.contradiction is not None:
                self._settle(answer.contradiction)
        elif command == "skip":
            self._in_turn(self._session.skip, question)
            self._out.print("  skipped")
        elif command == "undo":
            undone = self._change(self._session.undo)
            said = "nothing to undo" if undone is None else f"undone: {printable(str(undone))}"
            self._out.print(f"  {said}")
        elif command == "votes":
            for task in question.tasks:
                self._out.print(f"  {printable(str(task))}: {self._votes_of(task)}")
        elif command == "whole texts":
            self._show(question, whole=True)
        elif command == "help":
            self._out.print(HELP)
        else:
            self._goes_on = False

    def _in_turn(self, do: Callable[..., T], *arguments: Any) -> T:
        """Do something with the session while the worker thread does not use it."""
        with self._session.desk.lock:
            return do(*arguments)

    def _change(self, do: Callable[..., T], *arguments: Any) -> T:
        """Record something, and let the worker know."""
        made = self._in_turn(do, *arguments)
        self._session.desk.wake(self._session.who)
        return made

    def _next(self) -> Question | None:
        def look() -> tuple[Question | None, bool]:
            return self._session.next(), self._session.is_waiting()

        with self._out.status("choosing questions"):
            question, is_waiting = self._in_turn(look)
            while is_waiting:
                time.sleep(LOOK_AGAIN)
                question, is_waiting = self._in_turn(look)
        return question

    def _read_choice(self, choices: Choices) -> str:
        """Return the next key that answers or commands; a long number has several keys."""
        single = [key for key in choices.by_key if len(key) == 1]
        first = sorted({key[0] for key in choices.by_key if len(key) > 1})
        while True:
            key = self._read([*single, *first, *choices.commands])
            if key not in first:
                return key
            while len(key) < choices.width:
                digit = self._read(list("0123456789"))
                if digit == "q":  # no more keys
                    return digit
                key += digit
            if key in choices.by_key:
                return key
            last = max(int(each) for each in choices.by_key if each.isdigit())
            self._out.print(f"{key} is not a class here; the numbers go to {last}")

    def _read(self, allowed: list[str]) -> str:
        """Return the next key among those allowed; the end of all keys is q."""
        while (key := self._keys.read()) is not None:
            if key.lower() in allowed:
                return key.lower()
            if not key.isspace():
                self._out.print(f"{printable(key)} is not a key here; one of: {' '.join(allowed)}")
        return "q"

    def _settle(self, found: Contradiction) -> None:
        """Show a contradiction and let the person choose what to undo."""
        earlier = found.earlier[:EARLIER]
        self._keys.forget()
        self._out.print(f"This contradicts what was said before: {printable(found.chain)}.")
        for number, answer in enumerate(earlier, start=1):
            said = f"{printable(str(answer))}  ({printable(answer.who)}, {answer.at})"
            self._out.print(f"  {number}  {said}")
        undo_one = f"1–{len(earlier)} undo an earlier one   " if len(earlier) > 1 else ""
        undo_one = "1 undo the earlier one   " if len(earlier) == 1 else undo_one
        self._out.print(f"u undo this answer   {undo_one}k keep all: answers may then be wrong")
        numbers = [str(number) for number in range(1, len(earlier) + 1)]
        key = self._read(["u", "k", *numbers, "q"])
        if key == "k":
            self._change(self._session.keep, found.answer)
            self._out.print("  kept")
        elif key == "q":
            self._goes_on = False
        else:
            which = found.answer if key == "u" else earlier[int(key) - 1]
            undone = self._change(self._session.undo, which)
            self._out.print(f"  undone: {printable(str(undone))}" if undone else "")

    def _show(self, question: Question, *, whole: bool = False) -> None:
        self._keys.forget()  # a key struck before this is seen answers nothing
        self._out.print()
        progress = self._in_turn(self._session.progress)
        self._out.print(status_line(progress, question.gain), style="bold")
        self._out.print(_panel(question.left, question.left_text, whole=whole))
        if question.right is not None:
            self._out.print(_panel(question.right, question.right_text, whole=whole))
        choices = choices_of(question)
        asks = "which class?"
        if question.kind == "same":
            asks = f"{self._session.desk.job.wording or 'same class'}?"
        elif question.kind == "is":
            text = self._session.desk.job.class_text(question.label)
            meaning = "" if text is None else f" ({printable(text)})"
            asks = f"is this {printable(str(question.label))}{meaning}?"
        else:
            self._list_classes(choices)
        self._out.print(f"{asks}  {choices.prompt()}")
        self._shown = question

    def _list_classes(self, choices: Choices) -> None:
        for key, name in choices.by_key.items():
            if key.isdigit():
                text = self._session.desk.job.class_text(name)
                letter = next((k for k, n in choices.by_key.items() if n == name and k != key), "")
                keys = f"{key} {letter}".ljust(choices.width + 2)
                meaning = "" if text is None else f": {printable(text)}"
                self._out.print(f"  {keys} {printable(str(name))}{meaning}")

    def _votes_of(self, task: Hashable) -> str:
        votes = self._session.votes(task)
        by_label = Counter(vote.label for vote in votes).most_common()
        shown = [
            f"{printable(str(label))} {n} ({_few([v.worker for v in votes if v.label == label])})"
            for label, n in by_label
        ]
        return " · ".join(shown) or "no votes"


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
