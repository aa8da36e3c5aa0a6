"""Exports: labels and questions in the form in which annotation tools import them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tiebreak.data.ids import Ids
from tiebreak.data.labels import Labels
from tiebreak.errors import InputError, OptionError, note
from tiebreak.tables.formats.annotation import StudioTasks, studio_value
from tiebreak.tables.source import format_of_name
from tiebreak.tables.write import Target, open_target, write_table

AGENT = "tiebreak"
WORDS = {"same": ("same", "different"), "is": ("yes", "no")}
DELIMITERS = {"csv": ",", "tsv": "\t"}

Records = Iterator[dict[str, Any]]


class Shown(NamedTuple):
    """What the tool calls its question and its field of text."""

    question: str | None = None  # "label", or what the export of the tool tells
    field: str | None = None  # "text", or the same


class Prediction(NamedTuple):
    """One label, and what to show beside it."""

    task: Hashable
    label: str
    probability: float | None
    text: str


class AskedOf(NamedTuple):
    """A question: its kind, and what it names."""

    kind: str
    task: Hashable
    other: Hashable | None = None
    label: Hashable | None = None
    worker: Hashable | None = None

    @property
    def id(self) -> str:
        """What tells the question from others."""
        named = (self.task, self.other) if self.kind == "same" else (self.task, self.label)
        return ":".join([self.kind, *(str(each) for each in named if each is not None)])

    def words(self) -> str:
        """Return the question in words."""
        if self.kind == "same":
            return "Are these two of the same class?"
        return f"Is this {self.label}?" if self.kind == "is" else "Which class is this?"


class ShownQuestion(NamedTuple):
    """A question with what people see."""

    asked: AskedOf
    text: str
    other_text: str | None
    choices: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """Return what is shown, and the ids: gold goes by `task`, links by `left` and `right`."""
        found: dict[str, Any] = {"question": self.asked.words(), "text": self.text}
        if self.other_text is not None:
            found.update(other=self.other_text, left=self.asked.task, right=self.asked.other)
        else:
            found["task"] = self.asked.task
        named = {"class": self.asked.label if self.asked.kind == "is" else None}
        named["worker"] = self.asked.worker
        return {**found, **{name: value for name, value in named.items() if value is not None}}


def write_export(
    target: Target,
    labels: Labels,
    to: str,
    *,
    texts: Mapping[Hashable, str] | None = None,
    shown: Shown | None = None,
    studio: StudioTasks | None = None,
) -> None:
    """Write labels with their probabilities for "label-studio", "argilla" or "prodigy".

    `texts` maps tasks to what people see; a task without one shows its id. `studio` has the tasks
    of Label Studio that labels are about: predictions then name them, and carry all their data.
    """
    shown = shown or Shown()
    if to not in LABELS_TO:
        raise OptionError.unknown("to", to, tuple(LABELS_TO))
    if studio is None:
        records = LABELS_TO[to](labels, texts or {}, shown)
    else:
        records = _for_studio_tasks(labels, shown, studio)
    _write(target, records, to)


def write_questions(
    target: Target,
    questions: Sequence[AskedOf],
    to: str,
    classes: Sequence[str],
    texts: Mapping[Any, str] | None = None,
) -> None:
    """Write questions for "label-studio", "argilla" or "prodigy".

    `texts` maps tasks to what people see; a task without one shows its id.
    """
    if to not in QUESTIONS_TO:
        raise OptionError.unknown("to", to, tuple(QUESTIONS_TO))
    by_text = {str(task): text for task, text in (texts or {}).items()}
    shown = [
        ShownQuestion(
            asked,
            by_text.get(str(asked.task), str(asked.task)),
            by_text.get(str(asked.other), str(asked.other)) if asked.kind == "same" else None,
            WORDS.get(asked.kind, tuple(classes)),
        )
        for asked in questions
    ]
    _write(target, map(QUESTIONS_TO[to], shown), to)


@contextmanager
def writing_texts(target: str) -> Iterator[Callable[[Hashable, str], None]]:
    """Write task and text as they come, so that texts of any size need no memory."""
    kind, is_packed = format_of_name(target)
    if kind not in DELIMITERS or is_packed:
        raise OptionError("texts-format", file=target)
    seen: set[Hashable] = set()
    with open_target(target) as out:
        text_out = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text_out, delimiter=DELIMITERS[kind], lineterminator="\n")
        writer.writerow(("task", "text"))

        def keep(task: Hashable, text: str) -> None:
            if task not in seen:
                seen.add(task)
                writer.writerow((task, text))

        yield keep
        if not seen:
            raise InputError("no-texts", file=target)
        text_out.detach()


def write_known(target: str, source: str, gold: Mapping[Hashable, Hashable]) -> None:
    """Write the labels that a file marks as true."""
    if not gold:
        raise InputError("no-known-labels", source=source, file=target)
    write_table(target, {"task": list(gold), "label": list(gold.values())})


def _write(target: Target, records: Records, to: str) -> None:
    """Write records a line each, as one JSON list but for Prodigy."""
    before, between, end = ("", "\n", "\n") if to == "prodigy" else ("[\n", ",\n", "\n]\n")
    with open_target(target) as out:
        for record in records:
            line = json.dumps(record, ensure_ascii=False, default=str)
            out.write((before + line).encode())
            before = between
        out.write(end.encode() if before == between else b"" if to == "prodigy" else b"[\n\n]\n")


def _predictions(labels: Labels, texts: Mapping[Hashable, str]) -> Iterator[Prediction]:
    by_text = {str(task): text for task, text in texts.items()}
    if texts and not any(str(task) in by_text for task in labels.tasks):
        raise InputError("texts-of-other-tasks")
    names = Ids(labels.classes.take(labels.label))
    for i, (task, label) in enumerate(zip(labels.tasks, names, strict=True)):
        sure = None if labels.probability is None else round(float(labels.probability[i]), 6)
        yield Prediction(task, str(label), sure, by_text.get(str(task), str(task)))


def _labels_to_studio(labels: Labels, texts: Mapping[Hashable, str], shown: Shown) -> Records:
    """Make tasks with `predictions`, which Label Studio shows as pre-annotations."""
    field = shown.field or "text"
    for one in _predictions(labels, texts):
        prediction = _studio_prediction(one, shown.question or "label", field, "choices")
        yield {"data": {field: one.text, "task": one.task}, "predictions": [prediction]}


def _for_studio_tasks(labels: Labels, shown: Shown, studio: StudioTasks) -> Records:
    """Make predictions for tasks that are in Label Studio: with their ids and all their data."""
    there = studio.questions
    if shown.question is not None and there and shown.question not in there:
        raise InputError(
            "no-question", file=studio.name, question=shown.question, questions=list(there)
        )
    if shown.question is None and len(there) > 1:
        raise InputError("several-questions", file=studio.name, questions=list(there))
    name = shown.question or next(iter(there), "label")
    field, kind = there.get(name, (shown.field or "text", "choices"))
    known = [one for one in _predictions(labels, {}) if str(one.task) in studio.by_id]
    if not known:
        raise InputError("no-task-labelled", file=studio.name)
    if len(known) < len(labels.tasks):
        note("tasks-left-out", n=len(labels.tasks) - len(known), file=studio.name)
    for one in known:
        task, data = studio.by_id[str(one.task)]
        prediction = _studio_prediction(one, name, shown.field or field, kind)
        yield {"id": task, "data": data, "predictions": [{"task": task, **prediction}]}


def _studio_prediction(one: Prediction, question: str, field: str, kind: str) -> dict[str, Any]:
    value = studio_value(kind, one.label)
    result = {"from_name": question, "to_name": field, "type": kind, "value": value}
    return {"model_version": AGENT, "score": one.probability, "result": [result]}


def _argilla(task: str, fields: dict[str, Any], **more: dict[str, Any]) -> dict[str, Any]:
    """Make a record as `dataset.records.from_json` reads them."""
    empty: dict[str, Any] = {"metadata": {}, "suggestions": {}, "responses": {}, "vectors": {}}
    return {"id": task, "fields": fields, **empty, **more}


def _labels_to_argilla(labels: Labels, texts: Mapping[Hashable, str], shown: Shown) -> Records:
    for one in _predictions(labels, texts):
        suggestion = {"value": one.label, "score": one.probability, "agent": AGENT}
        suggestions = {shown.question or "label": suggestion}
        yield _argilla(str(one.task), {shown.field or "text": one.text}, suggestions=suggestions)


def _labels_to_prodigy(labels: Labels, texts: Mapping[Hashable, str], shown: Shown) -> Records:
    """Make tasks of the choice interface with the label chosen."""
    options = [{"id": str(name), "text": str(name)} for name in labels.classes]
    for one in _predictions(labels, texts):
        meta = {"task": one.task, "probability": one.probability, "source": AGENT}
        accept = [one.label]
        yield {shown.field or "text": one.text, "options": options, "accept": accept, "meta": meta}


def _question_to_studio(one: ShownQuestion) -> dict[str, Any]:
    """Make a task whose choices are data: a configuration shows them with value="$choices"."""
    return {"data": {**one.data(), "choices": [{"value": word} for word in one.choices]}}


def _question_to_argilla(one: ShownQuestion) -> dict[str, Any]:
    data = one.data()
    fields: dict[str, Any] = {
        name: data.pop(name) for name in ("question", "text", "other") if name in data
    }
    return _argilla(one.asked.id, fields, metadata={k: str(v) for k, v in data.items()})


def _question_to_prodigy(one: ShownQuestion) -> dict[str, Any]:
    data = one.data()
    text = "\n\n".join(data.pop(name) for name in ("text", "other") if name in data)
    options = [{"id": word, "text": word} for word in one.choices]
    return {"text": text, "label": data.pop("question"), "options": options, "meta": data}


LABELS_TO: dict[str, Callable[[Labels, Mapping[Hashable, str], Shown], Records]] = {
    "label-studio": _labels_to_studio,
    "argilla": _labels_to_argilla,
    "prodigy": _labels_to_prodigy,
}
QUESTIONS_TO: dict[str, Callable[[ShownQuestion], dict[str, Any]]] = {
    "label-studio": _question_to_studio,
    "argilla": _question_to_argilla,
    "prodigy": _question_to_prodigy,
}
