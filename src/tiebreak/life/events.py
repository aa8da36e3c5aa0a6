"""A stream of events: responses, links and gold in, labels out, so that no kill loses anything.

Events are JSON objects, one a line:

{"seq": 17, "task": "a", "worker": "ann", "label": "cat"}      a response
{"seq": 18, "left": "a", "right": "b", "link": "must"}         a link: must or cannot
{"seq": 19, "task": "a", "gold": "cat"}                        the class of a task is known
{"seq": 20, "ask": "a"}                                        what is the label of a task?

An event is in the journal before it counts, and counts before it is acknowledged (`{"done": seq}`).
After a kill the model file and the journal together hold all that was acknowledged; what the sender
sends again has a `seq` that was seen, and is left out.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.labels import Label
from tiebreak.errors import FileError, InputError, InputNote, OptionError, TiebreakError
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.life import model_file
from tiebreak.life.online import Stream
from tiebreak.life.update import require_keep
from tiebreak.links import Links
from tiebreak.tables.locks import Lock

SUFFIX = ".journal"
NOTHING_SEEN = -1
EVERY = 1_000  # events between two answers
SAVE_EVERY = 100_000  # events between two saves
OPEN_TASKS = 100_000  # with keep="counts"
WORDS = {
    **dict.fromkeys(("must", "same"), "must"),
    **dict.fromkeys(("cannot", "different"), "cannot"),
    "duplicate": "duplicate",
}


class Response(NamedTuple):
    """A worker gave a label to a task."""

    seq: int
    task: Hashable
    worker: Hashable
    label: Hashable


class Link(NamedTuple):
    """Two tasks must, or cannot, be the same class."""

    seq: int
    left: Hashable
    right: Hashable
    word: str  # must, cannot or duplicate
    weight: float | None = None
    who: Hashable = None

    def as_links(self) -> Links:
        """Return a table of this link."""
        return Links.from_columns(
            [self.left],
            [self.right],
            [self.word],
            None if self.weight is None else [self.weight],
            None if self.who is None else [self.who],
            sampling="pairs",
        )


class KnownClass(NamedTuple):
    """The class of a task is known."""

    seq: int
    task: Hashable
    label: Hashable


class LabelRequest(NamedTuple):
    """Somebody wants to know the label of a task."""

    seq: int
    task: Hashable


Event = Response | Link | KnownClass | LabelRequest


def read_event(line: bytes) -> Event:
    """Read one line; what is wrong with it is said in an InputError.

    >>> read_event(b'{"seq": 1, "task": "a", "worker": "ann", "label": "cat"}')
    Response(seq=1, task='a', worker='ann', label='cat')
    """
    try:
        found = json.loads(line)
    except ValueError as error:
        raise InputError(f"This is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise InputError('An event is a JSON object, such as {"seq": 1, "ask": "a"}.')
    seq = found.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        raise InputError(f'An event needs a whole number "seq", 0 or more; got {seq!r}.')
    if "ask" in found:
        return LabelRequest(seq, _id(found, "ask"))
    if "left" in found or "right" in found:
        return _link(seq, found)
    if "gold" in found:
        return KnownClass(seq, _id(found, "task"), _id(found, "gold"))
    return Response(seq, _id(found, "task"), _id(found, "worker"), _id(found, "label"))


def _link(seq: int, found: dict[str, Any]) -> Link:
    word = found.get("link")
    if word not in WORDS:
        raise InputError(f'"link" must be must or cannot; got {word!r}.')
    weight: Any = found.get("weight")
    if "weight" in found and not (_is_number(weight) and 0.0 < weight < math.inf):
        raise InputError(f'"weight" must be above 0 and finite; got {weight!r}.')
    left, right = _id(found, "left"), _id(found, "right")
    return Link(seq, left, right, WORDS[word], weight, found.get("who"))


def _id(found: dict[str, Any], name: str) -> Hashable:
    """Return an id: text that is not empty, or a number."""
    if name not in found:
        raise InputError(f"An event of this kind needs {name!r}; it has {', '.join(found)}.")
    value = found[name]
    is_text = isinstance(value, str) and value != ""
    if not is_text and not isinstance(value, bool) and not _is_number(value):
        raise InputError(f"{name!r} must be text or a number; got {value!r}.")
    return value  # type: ignore[no-any-return]  # text, a number, or true and false


def _is_number(value: object) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and math.isfinite(value)  # type: ignore[arg-type]


class Journal:
    """A file beside the model file that holds batches of events since the last save.

    A batch is its lines and one `{"end": seq}`; lines after the last end were not acknowledged.
    The journal holds the lock of the model, as every update and save does, so that nobody else
    writes into it meanwhile. Where somebody holds it for longer than `wait` seconds, that is an
    error.
    """

    def __init__(self, model: Path, *, wait: float = 0.0) -> None:
        self.lock = Lock(model, "tiebreak stream", wait=wait)
        real = self.lock.target  # one journal, whichever link names the model
        self.path = real.with_name(real.name + SUFFIX)
        try:
            self._file = self.path.open("a+b")
        except OSError as error:
            self.lock.release()
            raise FileError(f"{self.path} cannot be written: {error.strerror}.") from None

    def batches(self) -> list[list[bytes]]:
        """Return the batches that were written to their end; what follows them is cut off."""
        self._file.seek(0)
        found: list[list[bytes]] = []
        lines: list[bytes] = []
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            if line.startswith(b'{"end": '):
                found.append(lines)
                lines = []
                whole = self._file.tell()
            else:
                lines.append(line)
        self._file.truncate(whole)
        return found

    def append(self, lines: list[bytes], seq: int) -> None:
        """Write a batch to the disk, and come back when it is there."""
        end = json.dumps({"end": seq}).encode() + b"\n"
        whole = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
        try:
            self._file.write(b"".join([*whole, end]))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror}.") from None

    def clear(self) -> None:
        """Forget all batches: the model file holds what they said."""
        self._file.truncate(0)
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Give the lock back; an empty journal is removed."""
        with contextlib.suppress(OSError):
            if self.path.stat().st_size == 0:
                self.path.unlink()
        self._file.close()
        self.lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Settings(NamedTuple):
    """How a stream runs."""

    every: int = EVERY
    save_every: int = SAVE_EVERY
    keep: str | None = None  # None: as the model file has it
    n_open: int = OPEN_TASKS


@dataclass
class StreamTotals:
    """Totals for the closing message."""

    events: int = 0
    labels: int = 0
    seen_before: int = 0
    broken: int = 0


class Service:
    """One stream into one model file.

    Parameters
    ----------
    path
        The model file; where there is none yet, the first batch is fitted and makes one.
    write
        Takes each line that goes out.
    report
        Takes each word on a line that is broken.
    """

    def __init__(
        self,
        path: Path,
        settings: Settings,
        write: Callable[[str], None],
        report: Callable[[str], None],
        journal: Journal,
    ) -> None:
        self._path = path
        self._settings = settings
        self._write = write
        self._report = report
        self._journal = journal
        self._stream: Stream | None = None
        self._keep = settings.keep or "responses"
        self._pending: list[tuple[int, Event, bytes]] = []
        self._n_since_save = 0
        self.seq = NOTHING_SEEN
        self.tally = StreamTotals()
        self._open()

    def _open(self) -> None:
        """Load the model file, and go through what the journal holds since."""
        if self._path.exists():
            model = model_file.load(self._path)
            if not isinstance(model, VariationalBayes):
                raise OptionError(
                    f"{self._path} holds a {type(model).__name__}; only VariationalBayes takes a "
                    "stream. Fit one: tiebreak fuse RESPONSES --method vb --save MODEL.tbm"
                )
            if self._settings.keep is None and model._carried is not None:
                self._keep = "counts"
            notes = model._stream_notes
            self.seq = int(notes.get("seq", NOTHING_SEEN))
            self._begin(model).restore(notes)
        require_keep(self._keep)
        for lines in self._journal.batches():
            events = [(0, read_event(line), line) for line in lines]
            self._pending = [each for each in events if each[1].seq > self.seq]
            if self._pending:
                self._apply()
        if self.seq != NOTHING_SEEN:
            self._write(json.dumps({"done": self.seq}))

    def _begin(self, model: VariationalBayes) -> Stream:
        n_open = self._settings.n_open if self._keep == "counts" else None
        self._stream = Stream(model, n_open=n_open)
        return self._stream

    def take(self, number: int, line: bytes) -> None:
        """Take one line; the `every`-th event, or a question, makes the batch count."""
        if not line.strip():
            return
        try:
            event = read_event(line)
            self._check_ids(event)
        except InputError as error:
            self._report_broken(number, error)
            return
        last = self._pending[-1][1].seq if self._pending else self.seq
        if event.seq <= last:
            self.tally.seen_before += 1
            return
        self._pending.append((number, event, line))
        if len(self._pending) >= self._settings.every or isinstance(event, LabelRequest):
            self.flush()

    def flush(self) -> None:
        """Let the pending events count, and acknowledge them."""
        is_one = any(isinstance(event, Response) for _, event, _ in self._pending)
        if not self._pending or (self._stream is None and not is_one):  # nothing to begin with
            return
        seq = self._pending[-1][1].seq
        n_events = len(self._pending)
        self._journal.append([line for _, _, line in self._pending], seq)
        self._apply()
        self._write(json.dumps({"done": seq}))
        self.tally.events += n_events
        self._n_since_save += n_events
        if self._n_since_save >= self._settings.save_every:
            self.save()

    def end(self) -> None:
        """Let all that is left count, and save."""
        self.flush()
        self.save()

    def save(self) -> None:
        """Catch up, write the model file, and clear the journal."""
        if self._stream is None:
            return
        self._write_labels(self._stream.catch_up())
        model, changed = self._stream.publish()
        self._write_labels(changed)  # first: what is saved counts as reported
        self._write(json.dumps({"done": self.seq}))
        notes = {"seq": self.seq, **self._stream.notes()}
        model_file.save(model, self._path, "responses", notes, self._journal.lock)
        self._journal.clear()
        self._n_since_save = 0

    def _apply(self) -> None:
        """Let the pending events count; say which labels changed, and what was asked."""
        pending = self._pending
        self._pending = []
        self.seq = pending[-1][1].seq
        rows = [(number, event) for number, event, _ in pending if isinstance(event, Response)]
        columns = [list(column) for column in zip(*(event[1:] for _, event in rows), strict=True)]
        touched: list[Any] = []
        if self._stream is None:
            # Of so little, doubts are certain.
            with warnings.catch_warnings(action="ignore", category=InputNote):
                model = VariationalBayes().fit(Responses.from_columns(*columns))
            self._write_labels(self._begin(model).report_all())
        elif rows:
            try:
                touched.append(self._stream.add(*columns))
            except TiebreakError:  # refused together: one by one
                touched += [self._add(number, event) for number, event in rows]
        for number, event, _ in pending:
            if isinstance(event, Link | KnownClass):
                touched.append(self._add(number, event))
        stream = self._stream
        assert stream is not None  # it has begun
        slots = np.unique(np.concatenate(touched)) if touched else np.empty(0, np.int32)
        if len(slots):
            self._write_labels(stream.visit(slots))
        for _, event, _ in pending:
            if isinstance(event, LabelRequest):
                found = stream.ask(event.task)
                if found is None:
                    self._write(json.dumps({"task": event.task, "label": None}))
                else:
                    self._write_labels([found])

    def _add(self, number: int, event: Response | Link | KnownClass) -> Any:
        """Add one event, and return the slots that it touches; where it is refused, say so."""
        stream = self._stream
        assert stream is not None  # it has begun
        try:
            if isinstance(event, Response):
                return stream.add([event.task], [event.worker], [event.label])
            if isinstance(event, KnownClass):
                return stream.know([event.task], [event.label])
            return stream.link(event.as_links())
        except TiebreakError as error:
            self._report_broken(number, error)
            return np.empty(0, dtype=np.int32)

    def _check_ids(self, event: Event) -> None:
        """Refuse ids of another kind than the model has: 7 and "7" would be two tasks."""
        if self._stream is None:
            return
        tasks = self._stream.tasks.slot
        known = {"task": tasks, "left": tasks, "right": tasks}
        known |= {"worker": self._stream.workers, "label": self._stream.classes}
        for name, names in known.items():
            value: Hashable = getattr(event, name, None)
            is_text = isinstance(next(iter(names), value), str)
            if value is not None and isinstance(value, str) != is_text:
                wanted = "text" if is_text else "numbers"
                raise InputError(f"Ids of this model are {wanted}; got {name} {value!r}.")

    def _write_labels(self, labels: Iterable[Label]) -> None:
        for each in labels:
            self.tally.labels += 1
            row = {"task": each.task, "label": each.label, "probability": each.probability}
            self._write(json.dumps(row, ensure_ascii=False))

    def _report_broken(self, number: int, error: Exception) -> None:
        self.tally.broken += 1
        where = f"line {number}" if number else "the journal"
        self._report(f"{where}: {error} Left out.")
