"""The conversation in a terminal: one question a screen, one key an answer."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TextIO

import typer
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tiebreak.ask.log import UNSURE
from tiebreak.ask.results import Choices, Contradiction, Progress, Question, Vote
from tiebreak.ask.session import Session
from tiebreak.wording import printable

LONG = 2_000  # characters of a text that are shown unless all are asked for
FEW = 5  # workers named a label
EARLIER = 9  # answers that can be undone by one key
LOOK_AGAIN = 0.05  # seconds, while the worker chooses
UNREADABLE = "�"

OPENING = (
    "The questions that correct most labels come first; one key answers.\n"
    "Words beside the keys say what they do; undo (u) goes back as far as you like.\n"
    "Quit (q) at any time: answers are kept; run the same command again to continue."
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
        self._desk = session.desk
        self._keys = keys
        self._out = out

    def run(self) -> None:
        self._out.print(OPENING)
        if self._desk.background is not None:
            with self._out.status("fitting"):
                self._desk.start()
        waiting = self._session.contradiction()
        goes_on = waiting is None or self._settle(waiting)
        shown = None
        while goes_on and (question := self._next()) is not None:
            if question is not shown:
                self._show(question)
                shown = question
            goes_on = self._do(question)

    def _do(self, question: Question) -> bool:
        """Do what the next key asks for, a command or an answer; return whether to go on."""
        choices = question.keys
        key = self._read_choice(choices)
        command = choices.commands.get(key)
        if command is None or command == "can't tell":
            says = UNSURE if command else choices.by_key[key]
            answer = self._session.answer(question, says)
            self._out.print(f"  {printable(str(answer.says))}", style="bold")
            return answer.contradiction is None or self._settle(answer.contradiction)
        if command == "skip":
            self._session.skip(question)
            self._out.print("  skipped")
        elif command == "undo":
            undone = self._session.undo()
            said = "nothing to undo" if undone is None else f"undone: {printable(str(undone))}"
            self._out.print(f"  {said}")
        elif command == "votes":
            for task in question.tasks:
                self._out.print(f"  {printable(str(task))}: {_in_line(self._session.votes(task))}")
        elif command == "whole texts":
            self._show(question, whole=True)
        elif command == "help":
            self._out.print(HELP)
        return command != "quit"

    def _next(self) -> Question | None:
        with self._out.status("choosing questions"):
            while True:
                with self._desk.lock:  # or the worker could choose between the two
                    question, is_waiting = self._session.next(), self._session.is_waiting()
                if question is not None or not is_waiting:
                    return question
                time.sleep(LOOK_AGAIN)

    def _read_choice(self, choices: Choices) -> str:
        """Return the next key that answers or commands; a long number has several keys."""
        single = [key for key in choices.by_key if len(key) == 1]
        first = sorted({key[0] for key in choices.by_key if len(key) > 1})
        while True:
            key = self._read([*single, *first, *choices.commands])
            while key[0] in first and len(key) < choices.width:
                digit = self._read(list("0123456789"))
                if digit == "q":  # no more keys
                    return digit
                key += digit
            if key in choices.by_key or key in choices.commands:
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

    def _settle(self, found: Contradiction) -> bool:
        """Show a contradiction and let the person choose what to undo; return whether to go on."""
        earlier = found.earlier[:EARLIER]
        self._keys.forget()
        self._out.print(f"This contradicts what was said before: {printable(found.chain)}.")
        by_key = {str(number): answer for number, answer in enumerate(earlier, start=1)}
        for number, answer in by_key.items():
            said = f"{printable(str(answer))}  ({printable(answer.who)}, {answer.at})"
            self._out.print(f"  {number}  {said}")
        undo_one = f"1–{len(earlier)} undo an earlier one   " if len(earlier) > 1 else ""
        undo_one = "1 undo the earlier one   " if len(earlier) == 1 else undo_one
        self._out.print(f"u undo this answer   {undo_one}k keep all: answers may then be wrong")
        key = self._read(["u", "k", *by_key, "q"])
        if key == "k":
            self._session.keep(found.answer)
            self._out.print("  kept")
        elif key != "q":
            undone = self._session.undo(by_key.get(key, found.answer))
            self._out.print(f"  undone: {printable(str(undone))}" if undone else "")
        return key != "q"

    def _show(self, question: Question, *, whole: bool = False) -> None:
        self._keys.forget()  # a key struck before this is seen answers nothing
        progress = self._session.progress()
        self._out.print()
        self._out.print(status_line(progress, question.gain), style="bold")
        job, choices = self._desk.job, question.keys
        for task in question.tasks:
            text = job.texts.get(job.code_of(task))
            self._out.print(_panel(task, text, whole=whole))

        def named(name: Hashable, before: str, after: str = "") -> str:
            text = job.class_text(name)
            meaning = "" if text is None else f"{before}{printable(text)}{after}"
            return f"{printable(str(name))}{meaning}"

        asks = "which class?" if job.spans is None else "what is marked?"
        if question.kind == "same":
            asks = f"{job.wording or 'same class'}?"
        elif question.kind == "which":
            for name in question.choices:
                keys = " ".join(choices.keys_of(name)).ljust(choices.width + 2)
                self._out.print(f"  {keys} {printable(str(name))}")
            asks = f"which is {named(question.label, ' (', ')')}?"
        elif question.kind == "is":
            asks = f"is this {named(question.label, ' (', ')')}?"
        else:
            for name in question.choices:
                keys = " ".join(choices.keys_of(name)).ljust(choices.width + 2)
                self._out.print(f"  {keys} {named(name, ': ')}")
        self._out.print(f"{asks}  {choices.prompt()}")


def status_line(progress: Progress, gain: float) -> str:
    of_budget = "" if progress.budget is None else f" of {progress.budget:,}"
    wrong = f"about {progress.wrong:,.1f} of {progress.n_tasks:,} labels still wrong"
    parts = [f"Question {progress.asked + 1:,}{of_budget}", wrong]
    if gain == gain:
        parts.append(in_words(gain))
    if progress.is_soft:
        parts.append("answers may err")
    return " · ".join(parts)


def in_words(gain: float) -> str:
    """Return what an answer is expected to bring.

    >>> in_words(3.2), in_words(0.46)
    ('this corrects about 3.2', '46 % chance to correct one')
    """
    if gain >= 1.0:
        return f"this corrects about {gain:.1f}"
    return f"{100.0 * gain:.0f} % chance to correct one"


def _panel(task: Hashable, text: str | None, *, whole: bool) -> Panel:
    name = Text(printable(str(task)))
    if text is None:
        return Panel(name)
    body, more = printable(text), ""
    if len(body) > LONG and not whole:
        more = f"{len(body) - LONG:,} more characters: t shows all"
        body = body[:LONG] + " …"
    return Panel(Text(body), title=name, title_align="left", subtitle=Text(more))


def _in_line(votes: Sequence[Vote]) -> str:
    """Return votes by label, the most frequent first, each with a few workers."""
    shown = []
    for label, n in Counter(vote.label for vote in votes).most_common():
        workers = [printable(str(vote.worker)) for vote in votes if vote.label == label]
        more = f" and {n - FEW:,} more" if n > FEW else ""
        shown.append(f"{printable(str(label))} {n} ({', '.join(workers[:FEW])}{more})")
    return " · ".join(shown) or "no votes"
