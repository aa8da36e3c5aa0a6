"""Exports: labels in the form in which annotation tools import predictions or suggestions."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from tiebreak.errors import InputError, OptionError
from tiebreak.files.atomic_write import Target, open_target
from tiebreak.ids import Ids
from tiebreak.labels import Labels

AGENT = "tiebreak"


class Shown(NamedTuple):
    """How the tool calls what it shows and asks: its question and its field of text."""

    question: str = "label"
    field: str = "text"


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
) -> None:
    """Write labels with their probabilities for "label-studio", "argilla" or "prodigy".

    `texts` maps tasks to what people see; a task without one shows its id.
    """
    if to not in EXPORTS:
        raise OptionError.unknown("to", to, tuple(EXPORTS))
    pieces = EXPORTS[to](labels, texts or {}, shown or Shown())
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
            "from_name": shown.question,
            "to_name": shown.field,
            "type": "choices",
            "value": {"choices": [one.label]},
        }
        prediction = {"model_version": AGENT, "score": one.probability, "result": [result]}
        data = {shown.field: one.text, "task": one.task}
        return {"data": data, "predictions": [prediction]}

    return _listed(record(one) for one in _predictions(labels, texts))


def _argilla(labels: Labels, texts: Mapping[Hashable, str], shown: Shown) -> Iterator[str]:
    """Write records with `suggestions`, as `dataset.records.from_json` reads them."""

    def record(one: Prediction) -> dict[str, Any]:
        suggestion = {"value": one.label, "score": one.probability, "agent": AGENT}
        return {
            "id": str(one.task),
            "fields": {shown.field: one.text},
            "metadata": {},
            "suggestions": {shown.question: suggestion},
            "responses": {},
            "vectors": {},
        }

    return _listed(record(one) for one in _predictions(labels, texts))


def _prodigy(labels: Labels, texts: Mapping[Hashable, str], shown: Shown) -> Iterator[str]:
    """Write tasks of the choice interface with the label chosen, one a line."""
    options = [{"id": str(name), "text": str(name)} for name in labels.classes]
    for one in _predictions(labels, texts):
        record = {
            shown.field: one.text,
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
