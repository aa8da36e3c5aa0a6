"""Exports: labels in the form in which annotation tools import predictions or suggestions."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from tiebreak.errors import InputError, OptionError, note
from tiebreak.files.atomic_write import Target, open_target
from tiebreak.files.formats.label_studio import StudioTasks, value_of
from tiebreak.ids import Ids
from tiebreak.labels import Labels
from tiebreak.wording import agreeing, counted

AGENT = "tiebreak"


class Shown(NamedTuple):
    """How the tool calls what it shows and asks: its question and its field of text."""

    question: str | None = None  # "label", or what the export of the tool tells
    field: str | None = None  # "text", or the same


class Prediction(NamedTuple):
    """One label, and what to show beside it."""

    task: Hashable
    label: str
    probability: float | None
    text: str


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
    if to not in EXPORTS:
        raise OptionError.unknown("to", to, tuple(EXPORTS))
    if studio is None:
        pieces = EXPORTS[to](labels, texts or {}, shown or Shown())
    else:
        pieces = _for_studio_tasks(labels, shown or Shown(), studio)
    with open_target(target) as out:
        for piece in pieces:
            out.write(piece.encode())


def _predictions(labels: Labels, texts: Mapping[Hashable, str]) -> Iterator[Prediction]:
    by_text = {str(task): text for task, text in texts.items()}
    if texts and not any(str(task) in by_text for task in labels.tasks):
        raise InputError("No text is of a task that has a label. Check the ids of both files.")
    names = Ids(labels.classes.take(labels.label))
    for i, (task, label) in enumerate(zip(labels.tasks, names, strict=True)):
        sure = None if labels.probability is None else round(float(labels.probability[i]), 6)
        yield Prediction(task, str(label), sure, by_text.get(str(task), str(task)))


def _listed(records: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Write records as one JSON list, a line each."""
    before = "[\n"
    for record in records:
        yield before + json.dumps(record, ensure_ascii=False, default=str)
        before = ",\n"
    yield "\n]\n"


def _label_studio(labels: Labels, texts: Mapping[Hashable, str], shown: Shown) -> Iterator[str]:
    """Write tasks with `predictions`, which Label Studio shows as pre-annotations."""

    def record(one: Prediction) -> dict[str, Any]:
        result = {
            "from_name": shown.question or "label",
            "to_name": shown.field or "text",
            "type": "choices",
            "value": {"choices": [one.label]},
        }
        prediction = {"model_version": AGENT, "score": one.probability, "result": [result]}
        data = {shown.field or "text": one.text, "task": one.task}
        return {"data": data, "predictions": [prediction]}

    return _listed(record(one) for one in _predictions(labels, texts))


def _for_studio_tasks(labels: Labels, shown: Shown, studio: StudioTasks) -> Iterator[str]:
    """Write predictions for tasks that are in Label Studio: with their ids and all their data."""
    question, field, kind = _studio_question(shown, studio)
    known = [one for one in _predictions(labels, {}) if str(one.task) in studio.by_id]
    if not known:
        raise InputError(
            f"{studio.name} has no task that has a label. Check the ids of both files."
        )
    n_others = len(labels.tasks) - len(known)
    if n_others:
        tasks = counted(n_others, "task")
        note(f"{tasks} of the labels {agreeing(n_others, 'be')} not in {studio.name}: left out.")

    def record(one: Prediction) -> dict[str, Any]:
        task, data = studio.by_id[str(one.task)]
        value = value_of(kind, one.label)
        result = {"from_name": question, "to_name": field, "type": kind, "value": value}
        made = {"task": task, "model_version": AGENT, "score": one.probability, "result": [result]}
        return {"id": task, "data": data, "predictions": [made]}

    return _listed(record(one) for one in known)


def _studio_question(shown: Shown, studio: StudioTasks) -> tuple[str, str, str]:
    """Return the question that labels answer, what it is about, and its type."""
    there = studio.questions
    listed = ", ".join(map(repr, there))
    if shown.question is not None and there and shown.question not in there:
        raise InputError(
            f"{studio.name} has no question {shown.question!r}. Its questions are: {listed}."
        )
    if shown.question is None and len(there) > 1:
        raise InputError(
            f"{studio.name} holds {len(there)} questions: {listed}. Say which one the labels "
            "answer with --question NAME."
        )
    name = shown.question or next(iter(there), "label")
    field, kind = there.get(name, (shown.field or "text", "choices"))
    return name, shown.field or field, kind


def _argilla(labels: Labels, texts: Mapping[Hashable, str], shown: Shown) -> Iterator[str]:
    """Write records with `suggestions`, as `dataset.records.from_json` reads them."""

    def record(one: Prediction) -> dict[str, Any]:
        suggestion = {"value": one.label, "score": one.probability, "agent": AGENT}
        return {
            "id": str(one.task),
            "fields": {shown.field or "text": one.text},
            "metadata": {},
            "suggestions": {shown.question or "label": suggestion},
            "responses": {},
            "vectors": {},
        }

    return _listed(record(one) for one in _predictions(labels, texts))


def _prodigy(labels: Labels, texts: Mapping[Hashable, str], shown: Shown) -> Iterator[str]:
    """Write tasks of the choice interface with the label chosen, one a line."""
    options = [{"id": str(name), "text": str(name)} for name in labels.classes]
    for one in _predictions(labels, texts):
        record = {
            shown.field or "text": one.text,
            "options": options,
            "accept": [one.label],
            "meta": {"task": one.task, "probability": one.probability, "source": AGENT},
        }
        yield json.dumps(record, ensure_ascii=False, default=str) + "\n"


EXPORTS: dict[str, Callable[[Labels, Mapping[Hashable, str], Shown], Iterator[str]]] = {
    "label-studio": _label_studio,
    "argilla": _argilla,
    "prodigy": _prodigy,
}
