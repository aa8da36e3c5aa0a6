"""The service: events in, labels out, with a journal and saves, so that no kill loses anything.

An event is in the journal before it counts, and counts before it is acknowledged (`{"done": seq}`).
After a kill the model file and the journal together hold all that was acknowledged; what the sender
sends again has a `seq` that was seen, and is left out.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.labels import Label
from tiebreak.errors import InputError, InputNote, OptionError, TiebreakError
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.life import model_file
from tiebreak.life.dropping import require_keep
from tiebreak.life.events import Event, KnownClass, LabelRequest, Link, Response, read_event
from tiebreak.life.journal import Journal
from tiebreak.life.online import Stream

NOTHING_SEEN = -1
EVERY = 1_000  # events between two answers
SAVE_EVERY = 100_000  # events between two saves
OPEN_TASKS = 100_000  # with keep="counts"


class Settings(NamedTuple):
    """How a stream runs."""

    every: int = EVERY
    save_every: int = SAVE_EVERY
    keep: str | None = None  # None: as the model file has it
    n_open: int = OPEN_TASKS


class StreamTotals(NamedTuple):
    """What a stream has done, for its last words."""

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
            self.tally = self.tally._replace(seen_before=self.tally.seen_before + 1)
            return
        self._pending.append((number, event, line))
        if len(self._pending) >= self._settings.every or isinstance(event, LabelRequest):
            self.flush()

    def flush(self) -> None:
        """Let the pending events count, and acknowledge them."""
        if not self._pending or not self._can_begin():
            return
        seq = self._pending[-1][1].seq
        n_events = len(self._pending)
        self._journal.append([line for _, _, line in self._pending], seq)
        self._apply()
        self._write(json.dumps({"done": seq}))
        self.tally = self.tally._replace(events=self.tally.events + n_events)
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

    def _can_begin(self) -> bool:
        """Tell whether there is a model, or a response to make one of."""
        is_one = any(isinstance(event, Response) for _, event, _ in self._pending)
        return self._stream is not None or is_one

    def _apply(self) -> None:
        """Let the pending events count; say which labels changed, and what was asked."""
        pending = self._pending
        self._pending = []
        self.seq = pending[-1][1].seq
        responses = [event for _, event, _ in pending if isinstance(event, Response)]
        touched: list[Any] = []
        stream = self._stream
        if stream is None:
            stream = self._fit_first(responses)
        elif responses:
            touched += self._add_responses(pending)
        for number, event, _ in pending:
            if isinstance(event, Link | KnownClass):
                touched += self._add_one(number, event)
        slots = np.unique(np.concatenate(touched)) if touched else np.empty(0, dtype=np.int32)
        if len(slots):
            self._write_labels(stream.visit(slots.astype(np.int32)))
        for _, event, _ in pending:
            if isinstance(event, LabelRequest):
                self._answer(event)

    def _fit_first(self, responses: list[Response]) -> Stream:
        """Fit the first responses of a new model."""
        columns = zip(*(event[1:] for event in responses), strict=True)
        # Of so little, doubts are certain.
        with warnings.catch_warnings(action="ignore", category=InputNote):
            model = VariationalBayes().fit(Responses.from_columns(*map(list, columns)))
        stream = self._begin(model)
        self._write_labels(stream.report_all())
        return stream

    def _add_responses(self, pending: list[tuple[int, Event, bytes]]) -> list[Any]:
        """Add the responses of a batch; where they are refused together, one by one."""
        stream = self._stream
        assert stream is not None
        rows = [(number, event) for number, event, _ in pending if isinstance(event, Response)]
        try:
            columns = zip(*(event[1:] for _, event in rows), strict=True)
            return [stream.add(*map(list, columns))]
        except TiebreakError:
            return [slots for number, event in rows for slots in self._add_one(number, event)]

    def _add_one(self, number: int, event: Response | Link | KnownClass) -> list[Any]:
        """Add one event; where it is refused, say so and go on."""
        stream = self._stream
        assert stream is not None
        try:
            if isinstance(event, Response):
                return [stream.add([event.task], [event.worker], [event.label])]
            if isinstance(event, KnownClass):
                return [stream.know([event.task], [event.label])]
            return [stream.link(event.as_links())]
        except TiebreakError as error:
            self._report_broken(number, error)
            return []

    def _check_ids(self, event: Event) -> None:
        """Refuse ids of another kind than the model has: 7 and "7" would be two tasks."""
        if self._stream is None:
            return
        kinds = _id_kinds(self._stream)
        for name, kind in kinds.items():
            value: Hashable = getattr(event, name, None)
            if value is not None and kind is not None and isinstance(value, str) != kind:
                wanted = "text" if kind else "numbers"
                raise InputError(f"Ids of this model are {wanted}; got {name} {value!r}.")

    def _answer(self, event: LabelRequest) -> None:
        stream = self._stream
        assert stream is not None
        found = stream.ask(event.task)
        if found is None:
            self._write(json.dumps({"task": event.task, "label": None}))
        else:
            self._write_labels([found])

    def _write_labels(self, labels: Iterable[Label]) -> None:
        n = 0
        for each in labels:
            n += 1
            row = {"task": each.task, "label": each.label, "probability": each.probability}
            self._write(json.dumps(row, ensure_ascii=False))
        self.tally = self.tally._replace(labels=self.tally.labels + n)

    def _report_broken(self, number: int, error: Exception) -> None:
        self.tally = self.tally._replace(broken=self.tally.broken + 1)
        where = f"line {number}" if number else "the journal"
        self._report(f"{where}: {error} Left out.")


def _id_kinds(stream: Stream) -> dict[str, bool | None]:
    """Say of the ids of events whether they are text here; None: there are none yet."""
    task = _is_text(stream.tasks.names)
    label = _is_text(list(stream.classes))
    worker = _is_text(list(stream.workers))
    return {"task": task, "left": task, "right": task, "worker": worker, "label": label}


def _is_text(names: Sequence[Hashable]) -> bool | None:
    return isinstance(names[0], str) if len(names) else None
