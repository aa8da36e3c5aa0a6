"""Exports: labels, spans and questions in the form in which annotation tools import them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tiebreak.data.labels import Labels
from tiebreak.errors import InputError, OptionError, note
from tiebreak.tables.formats import find, read_marked, read_texts, records_of
from tiebreak.tables.formats.annotation import SINGLE_VALUES, annotations_of
from tiebreak.tables.formats.records import ID
from tiebreak.tables.formats.spans import tags_of, tokenised
from tiebreak.tables.read import SpanRow
from tiebreak.tables.read import read_texts as read_table_of_texts
from tiebreak.tables.source import format_of_name
from tiebreak.tables.write import Target, open_target, write_table

AGENT = "tiebreak"
TOOLS = ("label-studio", "argilla", "prodigy")
TOOLS_OF_SPANS = (*TOOLS, "doccano", "conll")
QUESTIONS = {  # by kind: in words, and the answers to choose from, where these are no classes
    "same": ("Are these two of the same class?", ("same", "different")),
    "is": ("Is this {}?", ("yes", "no")),
    "label": ("Which class is this?", ()),
}
DELIMITERS = {"csv": ",", "tsv": "\t"}

Records = Iterable[dict[str, Any]]
Labelled = tuple[Hashable, str, float | None]  # task, label, probability


def write_export(
    target: Target,
    labels: Labels,
    to: str,
    *,
    texts: Any = None,
    question: str | None = None,
    field: str | None = None,
) -> None:
    """Write labels with their probabilities for "label-studio", "argilla" or "prodigy".

    Parameters
    ----------
    texts
        What people see: a mapping of tasks to texts, a table of task and text, or an export of a
        tool. A task without a text shows its id. With an export of Label Studio, its predictions
        name the tasks that it has, and carry all their data.
    question, field
        What the tool calls its question and its field of text: as an export of it says, else
        "label" and "text".
    """
    _check_tool(to)
    found = None if texts is None or isinstance(texts, Mapping) else find(texts)
    if to == "label-studio":
        if found is not None and found.format is not None and found.format.name == to:
            write_records(target, _for_studio_tasks(labels, found, question, field), to)
            return
        note("label-studio-new-tasks")
    if found is not None:
        texts = read_table_of_texts(texts) if found.format is None else read_texts(texts)
    shown = {str(task): text for task, text in (texts or {}).items()}
    if shown and not any(str(task) in shown for task in labels.tasks):
        raise InputError("texts-of-other-tasks")
    write_records(target, _records_of(labels, to, shown, question or "label", field or "text"), to)


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
    _check_tool(to)
    by_text = {str(task): text for task, text in (texts or {}).items()}
    write_records(target, (_question(each, to, classes, by_text) for each in questions), to)


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


def _check_tool(to: str, tools: Sequence[str] = TOOLS) -> None:
    if to not in tools:
        raise OptionError.unknown("to", to, tools)


def write_records(target: Target, records: Records, to: str) -> None:
    """Write JSON lines for Prodigy, else one JSON list, with a record on each line."""
    is_list = to != "prodigy"
    with open_target(target) as out:
        out.write(b"[" if is_list else b"")
        for number, record in enumerate(records):
            line = json.dumps(record, ensure_ascii=False, default=str)
            before = ",\n" if number else "\n"
            out.write((before + line if is_list else line + "\n").encode())
        out.write(b"\n]\n" if is_list else b"")


def _labelled(labels: Labels) -> Iterator[Labelled]:
    names = labels.classes.take(labels.label)
    for i, (task, label) in enumerate(zip(labels.tasks, names, strict=True)):
        sure = None if labels.probability is None else round(float(labels.probability[i]), 6)
        yield task, str(label), sure


def _records_of(
    labels: Labels, to: str, texts: Mapping[str, str], question: str, field: str
) -> Records:
    """Make what the tool shows as labelled: predictions, suggestions, or a chosen option."""
    options = [{"id": str(name), "text": str(name)} for name in labels.classes]
    for task, label, sure in _labelled(labels):
        text = texts.get(str(task), str(task))
        if to == "label-studio":
            prediction = _prediction(label, sure, question, field, "choices")
            yield {"data": {field: text, "task": task}, "predictions": [prediction]}
        elif to == "argilla":
            suggestion = {"value": label, "score": sure, "agent": AGENT}
            yield _argilla(str(task), {field: text}, suggestions={question: suggestion})
        else:  # the choice interface
            meta = {"task": task, "probability": sure, "source": AGENT}
            yield {field: text, "options": options, "accept": [label], "meta": meta}


def _for_studio_tasks(
    labels: Labels, found: Any, question: str | None, field: str | None
) -> Records:
    """Make predictions for tasks that are in Label Studio: with their ids and all their data."""
    wanted = set(map(str, labels.tasks))
    tasks: dict[str, tuple[Any, Mapping[str, Any]]] = {}  # id and data
    questions: dict[str, tuple[str, str]] = {}  # to_name and type
    for task in records_of(found):
        task_id = task.need("id", *ID)
        if str(task_id) in wanted:
            tasks[str(task_id)] = task_id, task.need("data", dict)
        for annotation in annotations_of(task):
            for result in annotation.entries("result"):
                if (kind := result.values.get("type")) in (*SINGLE_VALUES, "pairwise"):
                    to_name = result.get("to_name", str) or "text"
                    questions.setdefault(result.need("from_name", str), (to_name, kind))
    if question is not None and questions and question not in questions:
        raise InputError("no-question", file=found.name, question=question, questions=[*questions])
    if question is None and len(questions) > 1:
        raise InputError("several-questions", file=found.name, questions=[*questions])
    name = question or next(iter(questions), "label")
    to_name, kind = questions.get(name, (field or "text", "choices"))
    known = [each for each in _labelled(labels) if str(each[0]) in tasks]
    if not known:
        raise InputError("no-task-labelled", file=found.name)
    if len(known) < len(labels.tasks):
        note("tasks-left-out", n=len(labels.tasks) - len(known), file=found.name)
    for labelled, label, sure in known:
        task_id, data = tasks[str(labelled)]
        prediction = _prediction(label, sure, name, field or to_name, kind)
        yield {"id": task_id, "data": data, "predictions": [{"task": task_id, **prediction}]}


def _prediction(
    label: str, sure: float | None, question: str, field: str, kind: str
) -> dict[str, Any]:
    """Make a prediction of Label Studio; each type of result has a form of its own."""
    value: dict[str, Any] = {kind: [label]}
    if kind == "pairwise":
        value = {"selected": label}
    elif kind == "taxonomy":
        value = {kind: [label.split(" / ")]}
    elif kind != "choices":
        number = float(label)
        value = {kind: int(number) if number.is_integer() else number}
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

    def text_of(task: Any) -> str:
        return texts.get(str(task), str(task))

    words, choices = QUESTIONS.get(asked.kind, QUESTIONS["label"])
    choices = choices or tuple(classes)
    shown = {"question": words.format(asked.label), "text": text_of(asked.task)}
    ids = {"task": asked.task, "class": asked.label if asked.kind == "is" else None}
    named = [asked.task, asked.label]
    if asked.kind == "same":
        shown["other"] = text_of(asked.other)
        ids = {"left": asked.task, "right": asked.other}
        named = [asked.task, asked.other]
    ids = {k: v for k, v in {**ids, "worker": asked.worker}.items() if v is not None}
    if to == "label-studio":  # choices are data: a configuration shows them by value="$choices"
        return {"data": {**shown, **ids, "choices": [{"value": word} for word in choices]}}
    if to == "argilla":
        name = ":".join([asked.kind, *(str(each) for each in named if each is not None)])
        return _argilla(name, shown, metadata={k: str(v) for k, v in ids.items()})
    text = "\n\n".join(shown[name] for name in ("text", "other") if name in shown)
    options = [{"id": word, "text": word} for word in choices]
    return {"text": text, "label": shown["question"], "options": options, "meta": ids}


# Spans, as `fuse --spans-out` writes them


def write_spans(
    target: Target,
    spans: dict[str, list[SpanRow]],
    to: str,
    *,
    texts: Any = None,
    below: float | None = None,
    question: str | None = None,
    field: str | None = None,
) -> int:
    """Write texts with their spans for a tool; return how many.

    Parameters
    ----------
    spans
        By text, as `read_spans` reads them.
    texts
        The texts: a table of task and text, or the export that they come from.
    below
        Only texts with a span below this probability: those to look at again.
    """
    _check_tool(to, TOOLS_OF_SPANS)
    if texts is None:
        raise InputError("spans-need-texts", to=to)
    tokens: dict[str, list[tuple[int, int]]] = {}
    if find(texts).format is None:
        shown = {str(name): text for name, text in read_table_of_texts(texts).items()}
    else:
        marked = read_marked(texts)
        shown = {str(name): text for name, text in marked.texts.items()}
        tokens = {str(name): ends for name, ends in marked.tokens.items()}
    if unknown := spans.keys() - shown.keys():
        raise InputError("texts-of-other-spans", n=len(unknown), name=min(unknown))
    names = list(shown)
    if below is not None:
        names = [n for n in names if any((s.probability or 0) < below for s in spans.get(n, ()))]
        if not names:
            raise InputError("no-span-below", below=below)
    if to == "conll":
        blocks = []
        for name in names:
            ends = tokens.get(name) or tokenised(shown[name])
            tags = tags_of(ends, [(s.begin, s.end, s.label) for s in sorted(spans.get(name, []))])
            words = (shown[name][a:b] for a, b in ends)
            blocks.append("".join(f"{w} {tag}\n" for w, tag in zip(words, tags, strict=True)))
        with open_target(target) as out:
            out.write("\n".join(blocks).encode())
        return len(names)
    given = question or "label", field or "text"
    write_records(
        target, (_spans_record(n, shown[n], spans.get(n, []), to, *given) for n in names), to
    )
    return len(names)


def _spans_record(
    name: str, text: str, spans: list[SpanRow], to: str, question: str, field: str
) -> dict[str, Any]:
    """Make what a tool shows: predictions, suggestions, or spans to accept."""
    sure = [span.probability for span in spans if span.probability is not None]
    least = min(sure) if sure else None
    plain = [{"start": s.begin, "end": s.end, "label": s.label} for s in spans]
    if to == "label-studio":
        results = [
            {
                "from_name": question, "to_name": field, "type": "labels", "score": s.probability,
                "value": {"start": s.begin, "end": s.end, "text": text[s.begin : s.end],
                          "labels": [s.label]},
            }
            for s in spans
        ]  # fmt: skip
        said = {"model_version": AGENT, "score": least, "result": results}
        return {"id": _as_id(name), "data": {field: text}, "annotations": [], "predictions": [said]}
    if to == "argilla":
        suggestion = {"value": plain, "score": None, "agent": AGENT}
        return _argilla(name, {field: text}, suggestions={question: suggestion})
    if to == "doccano":
        label = [[s.begin, s.end, s.label] for s in spans]
        return {"id": _as_id(name), "text": text, "label": label, "Comments": []}
    return {
        "text": text, "spans": plain, "meta": {"task": name, "probability": least},
        "_input_hash": _as_id(name), "_task_hash": _as_id(name), "_annotator_id": AGENT,
        "answer": "accept",
    }  # fmt: skip


def _as_id(name: str) -> Any:
    return int(name) if name.isascii() and name.isdigit() else name
