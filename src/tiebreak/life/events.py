"""A stream of events: responses, links and gold in, labels out, so that no kill loses anything.

Events are JSON objects, one a line:

{"seq": 17, "task": "a", "worker": "ann", "label": "cat"}      a response
{"seq": 18, "left": "a", "right": "b", "link": "must"}         a link: must, cannot or duplicate
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
from tiebreak.life import messages, model_file  # noqa: F401  # messages are registered
from tiebreak.life.online import Stream
from tiebreak.life.update import require_keep
from tiebreak.links import Links
from tiebreak.tables.locks import Lock

SUFFIX = ".journal"
NOTHING_SEEN = -1
EVERY = 1_000  # events between two answers
SAVE_EVERY = 100_000  # events between two saves
OPEN_TASKS = 100_000  # with keep="counts"
WORDS = {"must": "must", "same": "must", "cannot": "cannot", "different": "cannot"}
WORDS["duplicate"] = "duplicate"
IDS = {  # what each kind of event names
    "response": ("task", "worker", "label"),
    "link": ("left", "right"),
    "gold": ("task", "gold"),
    "ask": ("ask",),
}
NAMED = {"worker": "worker", "label": "label", "gold": "label"}  # all others name a task
MOST_WHOLE = 2**63  # whole numbers from here on are no ids


class StreamEvent(NamedTuple):
    """One line."""

    seq: int
    kind: str
    ids: dict[str, Hashable]
    word: str = ""  # of a link: must, cannot or duplicate
    weight: float | None = None
    who: Hashable = None

    def links(self) -> Links:
        return Links.from_columns(
            [self.ids["left"]],
            [self.ids["right"]],
            [self.word],
            None if self.weight is None else [self.weight],
            None if self.who is None else [self.who],
            sampling="pairs",
        )


def read_event(line: bytes) -> StreamEvent:
    """Read one line; what is wrong with it is said in an InputError.

    >>> read_event(b'{"seq": 1, "task": "a", "worker": "ann", "label": "cat"}').ids
    {'task': 'a', 'worker': 'ann', 'label': 'cat'}
    """
    try:
        found = json.loads(line)
    except ValueError as error:
        raise InputError("event-not-json", reason=error) from None
    if not isinstance(found, dict):
        raise InputError("event-no-object")
    seq = found.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        raise InputError("event-seq", value=seq)
    kind = "response"
    if "ask" in found:
        kind = "ask"
    elif "left" in found or "right" in found:
        kind = "link"
    elif "gold" in found:
        kind = "gold"
    ids: dict[str, Hashable] = {}
    for name in IDS[kind]:
        if name not in found:
            raise InputError("event-without", name=name, names=list(found))
        value = found[name]
        is_id = isinstance(value, bool) or (isinstance(value, str) and value != "")
        if isinstance(value, int | float) and math.isfinite(value):
            is_id = isinstance(value, float) or abs(value) < MOST_WHOLE
        if not is_id:
            raise InputError("event-id", name=name, value=value)
        ids[name] = value
    if kind != "link":
        return StreamEvent(seq, kind, ids)
    word = found.get("link")
    if word not in WORDS:
        raise InputError("event-link", value=word)
    weight: Any = found.get("weight")
    if "weight" in found:
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not (is_number and 0.0 < weight < math.inf):
            raise InputError("event-weight", value=weight)
    return StreamEvent(seq, kind, ids, WORDS[word], weight, found.get("who"))


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
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> FileError:
        return FileError("journal-not-written", path=self.path, reason=error.strerror)

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
            raise self._unwritable(error) from None

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
        Takes each message about a line that is broken.
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
        self._types: dict[str, type] = {}  # of ids: 7 and "7" would be two tasks
        self._pending: list[tuple[int, StreamEvent, bytes]] = []  # number of the line, event, line
        self._n_since_save = 0
        self.seq = NOTHING_SEEN
        self.tally = StreamTotals()
        if path.exists():
            model = model_file.load(path)
            if not isinstance(model, VariationalBayes):
                raise OptionError("no-stream-of", path=path, name=type(model).__name__)
            if settings.keep is None and model._carried is not None:
                self._keep = "counts"
            self.seq = int(model._stream_notes.get("seq", NOTHING_SEEN))
            self._begin(model).restore(model._stream_notes)
        require_keep(self._keep)
        for lines in journal.batches():
            events = [(0, read_event(line), line) for line in lines]
            self._pending = [each for each in events if each[1].seq > self.seq]
            if self._pending:
                self._apply()
        if self.seq != NOTHING_SEEN:
            self._write(json.dumps({"done": self.seq}))

    def _begin(self, model: VariationalBayes) -> Stream:
        named = {"task": model.tasks_, "worker": model.workers_, "label": model.classes_}
        self._types |= {what: type(names[0]) for what, names in named.items() if len(names)}
        n_open = self._settings.n_open if self._keep == "counts" else None
        self._stream = Stream(model, n_open=n_open)
        return self._stream

    def take(self, number: int, line: bytes) -> None:
        """Take one line; the `every`-th event, or a question, makes the batch count."""
        if not line.strip():
            return
        try:
            event = read_event(line)
            for name, value in event.ids.items():
                kind = self._types.setdefault(NAMED.get(name, "task"), type(value))
                if type(value) is not kind:
                    raise InputError("event-type", name=name, value=value, kind=kind)
        except InputError as error:
            self._report_broken(number, error)
            return
        last = self._pending[-1][1].seq if self._pending else self.seq
        if event.seq <= last:
            self.tally.seen_before += 1
            return
        self._pending.append((number, event, line))
        if len(self._pending) >= self._settings.every or event.kind == "ask":
            self.flush()

    def flush(self) -> None:
        """Let the pending events count, and acknowledge them."""
        can_begin = any(event.kind == "response" for _, event, _ in self._pending)
        if not self._pending or (self._stream is None and not can_begin):
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
        rows = [(number, event) for number, event, _ in pending if event.kind == "response"]
        others = [(n, event) for n, event, _ in pending if event.kind in ("link", "gold")]
        columns = [[event.ids[name] for _, event in rows] for name in IDS["response"]]
        touched: list[Any] = []
        stream = self._stream
        if stream is None:
            # Of so little, doubts are certain.
            with warnings.catch_warnings(action="ignore", category=InputNote):
                model = VariationalBayes().fit(Responses.from_columns(*columns))
            stream = self._begin(model)
            self._write_labels(stream.report_all())
        elif rows:
            try:
                touched.append(stream.add(*columns))
            except TiebreakError:  # refused together: one by one
                others = rows + others
        for number, event in others:
            try:
                touched.append(_add(stream, event))
            except TiebreakError as error:
                self._report_broken(number, error)
        slots = np.unique(np.concatenate(touched)) if touched else np.empty(0, np.int32)
        if len(slots):
            self._write_labels(stream.visit(slots))
        for _, event, _ in pending:
            if event.kind == "ask":
                label = stream.ask(event.ids["ask"])
                if label is None:
                    self._write(json.dumps({"task": event.ids["ask"], "label": None}))
                else:
                    self._write_labels([label])

    def _write_labels(self, labels: Iterable[Label]) -> None:
        for each in labels:
            self.tally.labels += 1
            self._write(json.dumps(each._asdict(), ensure_ascii=False))

    def _report_broken(self, number: int, error: Exception) -> None:
        self.tally.broken += 1
        where = f"line {number}" if number else "the journal"
        self._report(f"{where}: {error} Left out.")


def _add(stream: Stream, event: StreamEvent) -> Any:
    ids = event.ids
    if event.kind == "response":
        return stream.add([ids["task"]], [ids["worker"]], [ids["label"]])
    if event.kind == "gold":
        return stream.know([ids["task"]], [ids["gold"]])
    return stream.link(event.links())
