"""Exports: labels and questions in the form in which annotation tools import them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tiebreak.data.ids import Ids
from tiebreak.data.labels import Labels
from tiebreak.errors import InputError, OptionError, note
from tiebreak.tables.formats.annotation import StudioTasks, studio_value
from tiebreak.tables.source import format_of_name
from tiebreak.tables.write import Target, open_target, write_table

AGENT = "tiebreak"
TOOLS = ("label-studio", "argilla", "prodigy")
QUESTIONS = {  # by kind: in words, and the answers to choose from, where these are no classes
    "same": ("Are these two of the same class?", ("same", "different")),
    "is": ("Is this {}?", ("yes", "no")),
    "label": ("Which class is this?", ()),
}
DELIMITERS = {"csv": ",", "tsv": "\t"}

Records = Iterable[dict[str, Any]]


class Shown(NamedTuple):
    """What the tool calls its question and its field of text."""

    question: str | None = None  # "label", or what the export of the tool tells
    field: str | None = None  # "text", or the same


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
    if to not in TOOLS:
        raise OptionError.unknown("to", to, TOOLS)
    if studio is None:
        _write(target, _labels(labels, texts or {}, shown, to), to)
    else:
        _write(target, _for_studio_tasks(labels, shown, studio), to)


def write_questions(
    target: Target,
    questions: Iterable[Any],
    to: str,
    classes: Sequence[str],
    texts: Mapping[Any, str] | None = None,
) -> None:
    """Write questions for "label-studio", "argilla" or "prodigy".

    A question has a kind ("label", "same", "is"), a task, and another task, a label or a worker.
    `texts` maps tasks to what people see; a task without one shows its id.
    """
    if to not in TOOLS:
        raise OptionError.unknown("to", to, TOOLS)
    by_text = {str(task): text for task, text in (texts or {}).items()}
    _write(target, (_question(each, to, classes, by_text) for each in questions), to)


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


def _predictions(
    labels: Labels, texts: Mapping[Hashable, str]
) -> Iterator[tuple[Hashable, str, float | None, str]]:
    """Yield each task, its label, its probability and its text."""
    by_text = {str(task): text for task, text in texts.items()}
    if texts and not any(str(task) in by_text for task in labels.tasks):
        raise InputError("texts-of-other-tasks")
    names = Ids(labels.classes.take(labels.label))
    for i, (task, label) in enumerate(zip(labels.tasks, names, strict=True)):
        sure = None if labels.probability is None else round(float(labels.probability[i]), 6)
        yield task, str(label), sure, by_text.get(str(task), str(task))


def _labels(labels: Labels, texts: Mapping[Hashable, str], shown: Shown, to: str) -> Records:
    """Make what the tool shows as labelled: predictions, suggestions, or a chosen option."""
    question, field = shown.question or "label", shown.field or "text"
    options = [{"id": str(name), "text": str(name)} for name in labels.classes]
    for task, label, sure, text in _predictions(labels, texts):
        if to == "label-studio":
            prediction = _studio_prediction(label, sure, question, field, "choices")
            yield {"data": {field: text, "task": task}, "predictions": [prediction]}
        elif to == "argilla":
            suggestion = {"value": label, "score": sure, "agent": AGENT}
            yield _argilla(str(task), {field: text}, suggestions={question: suggestion})
        else:  # the choice interface
            meta = {"task": task, "probability": sure, "source": AGENT}
            yield {field: text, "options": options, "accept": [label], "meta": meta}


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
    known = [one for one in _predictions(labels, {}) if str(one[0]) in studio.by_id]
    if not known:
        raise InputError("no-task-labelled", file=studio.name)
    if len(known) < len(labels.tasks):
        note("tasks-left-out", n=len(labels.tasks) - len(known), file=studio.name)
    for given, label, sure, _ in known:
        task, data = studio.by_id[str(given)]
        prediction = _studio_prediction(label, sure, name, shown.field or field, kind)
        yield {"id": task, "data": data, "predictions": [{"task": task, **prediction}]}


def _studio_prediction(
    label: str, sure: float | None, question: str, field: str, kind: str
) -> dict[str, Any]:
    value = studio_value(kind, label)
    result = {"from_name": question, "to_name": field, "type": kind, "value": value}
    return {"model_version": AGENT, "score": sure, "result": [result]}


def _argilla(task: str, fields: dict[str, Any], **more: dict[str, Any]) -> dict[str, Any]:
    """Make a record as `dataset.records.from_json` reads them."""
    empty: dict[str, Any] = {"metadata": {}, "suggestions": {}, "responses": {}, "vectors": {}}
    return {"id": task, "fields": fields, **empty, **more}


def _question(
    asked: Any, to: str, classes: Sequence[str], texts: Mapping[str, str]
) -> dict[str, Any]:
    """Make what the tool asks; answers hold ids: gold `task`, links `left` and `right`."""
    words, choices = QUESTIONS.get(asked.kind, QUESTIONS["label"])
    choices = choices or tuple(classes)
    text = texts.get(str(asked.task), str(asked.task))
    shown = {"question": words.format(asked.label), "text": text}
    ids = {"task": asked.task, "class": asked.label if asked.kind == "is" else None}
    named = (asked.task, asked.label)
    if asked.kind == "same":
        shown["other"] = texts.get(str(asked.other), str(asked.other))
        ids = {"left": asked.task, "right": asked.other}
        named = (asked.task, asked.other)
    ids = {k: v for k, v in {**ids, "worker": asked.worker}.items() if v is not None}
    if to == "label-studio":  # choices are data: a configuration shows them by value="$choices"
        return {"data": {**shown, **ids, "choices": [{"value": word} for word in choices]}}
    if to == "argilla":
        name = ":".join([asked.kind, *(str(each) for each in named if each is not None)])
        return _argilla(name, shown, metadata={k: str(v) for k, v in ids.items()})
    text = "\n\n".join(shown[name] for name in ("text", "other") if name in shown)
    options = [{"id": word, "text": word} for word in choices]
    return {"text": text, "label": shown["question"], "options": options, "meta": ids}
