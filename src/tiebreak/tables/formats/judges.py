"""Files of LLM judges: batch APIs, pairwise verdicts, logs of evaluations."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tiebreak.data.ids import composed
from tiebreak.errors import InputError, OptionError
from tiebreak.tables.columns import LABEL
from tiebreak.tables.formats.records import (
    Format,
    IdType,
    Number,
    Rows,
    first_text,
    need,
    need_name,
    optional,
)
from tiebreak.tables.options import ReadingOptions
from tiebreak.tables.plain import Head, Record, Records
from tiebreak.tables.source import RecordPlace

LABEL_IN_TEXT = "label in text"  # what a format says that has labels inside of texts

# Batch APIs: lines with `custom_id` (the task) and the answer of a model (the worker).

SHORT = 60  # characters; a longer answer is prose, not a label
UNREADABLE = object()


def _read_batch(records: Records, rows: Rows) -> None:
    find = _finder(rows.options)
    split = _splitter(rows.options.task_pattern)
    example = ""
    n_unreadable = 0
    for at, record in records():
        task, of_id = split(at, need(record, "custom_id", IdType, at))
        for model, run, content in _answers(at, record, rows):
            label = find(content)
            if label is UNREADABLE:
                n_unreadable += 1
                example = example or content
                label = None
            more = dict(of_id)
            if run is not None:  # the number among the choices, and what the id says of the run
                more["run"] = f"{of_id['run']}.{run}" if "run" in of_id else run
            rows.add(at, task, model, label, **more)
    n = len(rows.task)
    is_chosen = rows.options.label_pattern or rows.options.label_pointer
    if n_unreadable and (n_unreadable == n or (not is_chosen and 2 * n_unreadable > n)):
        raise InputError("no-label-in-text", file=rows.name, n=n_unreadable, of=n, text=example)


def _splitter(text: str | None) -> Callable[[RecordPlace, Any], tuple[Any, dict[str, Any]]]:
    """Return a function from an id to the task, and to the run and order that the id tells."""
    if text is None:
        return lambda at, name: (name, {})
    pattern = _compiled("task_pattern", text)
    odd = set(pattern.groupindex) - {"task", "run", "order"}
    if odd or not pattern.groups or (pattern.groupindex and "task" not in pattern.groupindex):
        raise OptionError("task-pattern-groups", pattern=text)

    def split(at: RecordPlace, name: Any) -> tuple[Any, dict[str, Any]]:
        found = pattern.search(str(name))
        if found is None:
            raise InputError("task-pattern-misses", at=at, id=name, pattern=text)
        parts: dict[str, Any] = {role: part for role, part in found.groupdict().items() if part}
        return parts.pop("task", found[1]), parts

    return split


def _compiled(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise OptionError("bad-pattern", option=option, pattern=text, reason=error) from None


def _answers(at: RecordPlace, record: Record, rows: Rows) -> Iterator[tuple[str, int | None, str]]:
    """Yield model, run (where several answers were asked for) and text of each answer."""
    if "result" in record:
        result = need(record, "result", dict, at)
        if result.get("type") != "succeeded":
            rows.drop(f"requests that ended as {result.get('type')!r}")
            return
        message = need(result, "message", dict, at)
        parts = need(message, "content", list, at)
        texts = [optional(part, "text", str, at) or "" for part in parts]
        yield need_name(message, "model", at), None, "".join(texts)
        return
    response = need(record, "response", (dict, type(None)), at)
    if record.get("error") or response is None or response.get("status_code", 200) != 200:
        rows.drop("requests that failed")
        return
    body = need(response, "body", dict, at)
    choices = need(body, "choices", list, at)
    model = need_name(body, "model", at)
    for number, choice in enumerate(choices):
        message = need(choice, "message", dict, at)
        content = need(message, "content", (str, type(None)), at) or ""
        yield model, number if len(choices) > 1 else None, content


def _finder(options: ReadingOptions) -> Callable[[str], Any]:
    """Return a function from text to label, or to UNREADABLE."""
    if options.label_pattern is not None and options.label_pointer is not None:
        raise OptionError("pattern-and-pointer")
    if options.label_pattern is not None:
        pattern = _compiled("label_pattern", options.label_pattern)

        def by_pattern(content: str) -> Any:
            found = pattern.search(content)
            return UNREADABLE if found is None else found[1 if pattern.groups else 0].strip()

        return by_pattern
    if options.label_pointer is None:
        return _by_itself
    pointer = options.label_pointer
    if not pointer.startswith("/"):
        raise OptionError("bad-pointer", pointer=pointer)
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]

    def by_pointer(content: str) -> Any:
        value = _json_in(content)
        for step in steps:
            if isinstance(value, Mapping) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                return UNREADABLE
        return value if isinstance(value, str | int | float | bool) else UNREADABLE

    return by_pointer


def _by_itself(content: str) -> Any:
    """Take a short text as the label; of a JSON object the one key that names a label."""
    value = _json_in(content)
    if isinstance(value, Mapping):
        named = [k for k in value if str(k).casefold() in {LABEL.name, *LABEL.others}]
        named = named or [k for k in value if str(k).casefold() in LABEL.weak]
        found = value[named[0]] if len(named) == 1 else UNREADABLE
        return found if isinstance(found, str | int | float | bool) else UNREADABLE
    text = content.strip()
    return text if text and len(text) <= SHORT and "\n" not in text else UNREADABLE


def _json_in(content: str) -> Any:
    """Read the JSON that an answer consists of, or that it holds between fences."""
    fenced = re.search(r"```(?:json)?\s*(.*?)```", content, re.DOTALL)
    try:
        return json.loads(fenced[1] if fenced else content)
    except (ValueError, RecursionError):
        return None


# MT-Bench pairs: which of two models answered better. The task is the question and the two models
# by name; a comparison shown the other way round is turned back, and `order` keeps which way.

FIRST, SECOND, TIE = "model_a", "model_b", "tie"
WORDS = {
    **dict.fromkeys(("a", "model_a", "model_1", "[[a]]", "assistant a"), FIRST),
    **dict.fromkeys(("b", "model_b", "model_2", "[[b]]", "assistant b"), SECOND),
    **dict.fromkeys(("tie", "c", "[[c]]", "draw", "both", "tie (bothbad)"), TIE),
}
SWAPPED = {FIRST: SECOND, SECOND: FIRST, TIE: TIE}
NO_ANSWER = ("error", "", "none")


def _is_pairs(head: Head) -> bool:
    models = head.has("model_a", "model_b") or head.has("model_1", "model_2")
    return models and ("winner" in head.keys or "g1_winner" in head.keys)


def _read_pairs(records: Records, rows: Rows) -> None:
    for at, record in records():
        ending = ("a", "b") if "model_a" in record else ("1", "2")
        first, second = (need_name(record, f"model_{e}", at) for e in ending)
        is_turned = first > second
        keys = ("question_id", "id", "item", "prompt")
        question = need_name(record, next((k for k in keys if k in record), "question_id"), at)
        turn = optional(record, "turn", IdType, at)
        parts = [question, " vs ".join(sorted((first, second)))]
        task = composed(parts if turn in (None, "") else [*parts, f"turn {turn}"])
        judge = need(record, "judge", (str, list), at)
        if isinstance(judge, list):
            worker = composed([need_name({"judge": one}, "judge", at) for one in judge])
        else:
            worker = need_name(record, "judge", at)
        for winner, is_swapped in _winners(at, record):
            label = _verdict(at, winner, first, second)
            turned = SWAPPED.get(label) if is_turned and label else label
            order = "BA" if is_turned != is_swapped else "AB"
            rows.add(at, task, worker, turned, order=order)
    # The order says nothing where no judge saw any pair both ways: it was drawn, not repeated.
    seen: dict[tuple[Any, Any], Any] = {}
    orders = rows.more.get("order", [])
    answers = zip(rows.task, rows.worker, orders, strict=True)
    if all(seen.setdefault((task, who), order) == order for task, who, order in answers):
        rows.more.pop("order", None)


def _winners(at: RecordPlace, record: Record) -> Iterator[tuple[str, bool]]:
    """Yield each verdict, and whether the two answers were shown the other way round.

    Files of two games hold both, the second already turned back by the tool that wrote it.
    """
    if "g1_winner" not in record:
        yield need(record, "winner", str, at), False
        return
    yield need(record, "g1_winner", str, at), False
    if "g2_winner" in record:
        yield need(record, "g2_winner", str, at), True


def _verdict(at: RecordPlace, winner: str, first: str, second: str) -> str | None:
    if winner in (first, second):
        return FIRST if winner == first else SECOND
    word = winner.strip().casefold()
    if word in NO_ANSWER:
        return None
    if word not in WORDS:
        raise InputError("no-winner", at=at, value=winner)
    return WORDS[word]


# Inspect: samples with `scores` by scorer; each epoch of a sample is a run. Scorers that share a
# value, such as C and I, judge the same question. One that shares none with the others measures
# something else, such as a length, and is a question of its own.


def _is_inspect(head: Head) -> bool:
    is_log = head.has("samples", "eval") and isinstance(head.record.get("samples"), list)
    return is_log or head.has("id", "epoch", "scores")


def _read_inspect(records: Records, rows: Rows) -> None:
    question_of = _scorer_questions(records, rows.options.question)
    for at, sample in _samples(records, "samples"):
        task = need(sample, "id", IdType, at)
        epoch = need(sample, "epoch", int, at)
        scores = need(sample, "scores", (dict, type(None)), at) or {}
        if not scores:
            rows.drop("samples without a score")
        for scorer in scores:
            value = need(need(scores, scorer, dict, at), "value", object, at)
            named = value.items() if isinstance(value, Mapping) else [(None, value)]
            for name, label in named:
                if rows.wants(question_of[scorer] if name is None else str(name)):
                    rows.add(at, task, scorer, label, run=epoch)
        text = sample.get("input")
        rows.add_text(task, text if isinstance(text, str) else None)


def _scorer_questions(records: Records, asked: str | None) -> dict[str, str]:
    """Return which question each scorer answers: those that share a value answer the same."""
    values: dict[str, set[str]] = {}
    for _, sample in _samples(records, "samples"):
        scores = sample.get("scores") if isinstance(sample, Mapping) else None
        for scorer, score in scores.items() if isinstance(scores, Mapping) else ():
            value = score.get("value") if isinstance(score, Mapping) else None
            seen = values.setdefault(scorer, set())
            if not isinstance(value, Mapping):
                seen.add(str(value))
    if asked in values:  # one scorer of those that answer the same
        return {scorer: asked if scorer == asked else "other scorers" for scorer in values}
    groups: list[tuple[list[str], set[str]]] = []
    for scorer, seen in values.items():
        near = [group for group in groups if group[1] & seen]
        groups = [group for group in groups if group not in near]
        members = [name for group in near for name in group[0]]
        groups.append(([*members, scorer], seen.union(*(group[1] for group in near))))
    if len(groups) <= 1:
        return dict.fromkeys(values, "score")
    return {scorer: ", ".join(members) for members, _ in groups for scorer in members}


def _samples(records: Records, key: str) -> Iterator[tuple[RecordPlace, Record]]:
    """Yield the samples of a log, or the records where each is a sample already."""
    for at, record in records():
        inner: Any = record.get(key)
        if isinstance(inner, Mapping):
            inner = need(inner, key, list, at)
        if inner is None:
            yield at, record
            continue
        for number, sample in enumerate(need({key: inner}, key, list, at), start=1):
            yield at._replace(number=number), sample


# promptfoo: results with `gradingResult`. A test has several assertions, and passes where promptfoo
# says so: by default all of them must pass, so they are no votes on one question. Its verdict is
# what is read. Assertions of one type over one output, such as rubrics graded by different models,
# are read as judges where the caller asks for that type as the question.

VERDICT = "verdict"  # the question whose answers are those of the tool


def _is_promptfoo(head: Head) -> bool:
    inner = head.record.get("results")
    if isinstance(inner, Mapping):
        inner = inner.get("results")
    first = inner[0] if isinstance(inner, list) and inner else head.record
    return isinstance(first, Mapping) and "gradingResult" in first


def _read_promptfoo(records: Records, rows: Rows) -> None:
    rows.default_question = VERDICT
    for at, result in _samples(records, "results"):
        task = _output_name(at, result)
        grading = need(result, "gradingResult", (dict, type(None)), at)
        if grading is None:
            rows.drop("results without grading")
            continue
        if rows.wants(VERDICT):
            _add_verdict(rows, at, task, "promptfoo", grading)
        n_by_judge: Counter[str] = Counter()
        for part in optional(grading, "componentResults", list, at) or []:
            assertion = optional(part, "assertion", dict, at)
            if assertion is None:
                continue  # what a set of assertions comes to; its parts follow
            kind = optional(assertion, "type", str, at) or "assertion"
            if rows.wants(kind):
                judge = _grader(at, assertion, kind)
                more = {"run": n_by_judge[judge]} if n_by_judge[judge] else {}
                n_by_judge[judge] += 1
                _add_verdict(rows, at, task, judge, part, **more)
        rows.add_text(task, first_text(optional(result, "vars", dict, at) or {}))


def _add_verdict(
    rows: Rows, at: RecordPlace, task: str, judge: str, part: Record, **more: Any
) -> None:
    passed = need(part, "pass", bool, at)
    score = optional(part, "score", Number, at)
    if score is not None and not 0 <= score <= 1:
        score = None
    # A score is low where an answer failed; confidence is in the verdict.
    confidence = None if score is None else float(score if passed else 1.0 - score)
    rows.add(at, task, judge, "pass" if passed else "fail", confidence=confidence, **more)


def _output_name(at: RecordPlace, result: Record) -> str:
    """Name what was graded: the output of a provider for a prompt and a test."""
    provider = optional(result, "provider", (str, dict), at)
    name = optional(provider, "id", str, at) if isinstance(provider, Mapping) else provider
    test = optional(result, "testIdx", int, at)
    prompt = optional(result, "promptIdx", int, at) or 0
    number = at.number if test is None else test
    return composed((f"test {number}", name or "provider", f"prompt {prompt}"))


def _grader(at: RecordPlace, assertion: Record, kind: str) -> str:
    """Name who graded: the model that did, else the metric, else the type and its value."""
    grader = optional(assertion, "provider", (str, dict), at)
    if isinstance(grader, Mapping):
        grader = optional(grader, "id", str, at)
    metric = optional(assertion, "metric", str, at)
    value = assertion.get("value")
    return str(grader or metric or (kind if value is None else f"{kind}: {str(value)[:60]}"))


FORMATS = (
    Format(
        "batch-api",
        "batch API output",
        lambda head: head.has("custom_id", "response") or head.has("custom_id", "result"),
        _read_batch,
        (LABEL_IN_TEXT,),
    ),
    Format("mt-bench", "MT-Bench pairs", _is_pairs, _read_pairs),
    Format("inspect", "Inspect log", _is_inspect, _read_inspect),
    Format("promptfoo", "promptfoo results", _is_promptfoo, _read_promptfoo),
)
