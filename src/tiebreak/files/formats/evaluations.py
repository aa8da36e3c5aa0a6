"""Logs of evaluations: Inspect (JSON or .eval) and promptfoo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tiebreak.files.formats.protocol import (
    Head,
    IdType,
    Number,
    Record,
    RecordPlace,
    Records,
    first_text,
    need,
    optional,
)
from tiebreak.files.formats.rows import Rows
from tiebreak.ids import composed

PASS = "pass"
FAIL = "fail"
VERDICT = "verdict"  # the question whose answers are those of the tool


class Inspect:
    """Samples with `scores` by scorer; each epoch of a sample is a run.

    Scorers that share a value, such as C and I, judge the same question. One that shares none with
    the others measures something else, such as a length, and is a question of its own.
    """

    name = "inspect"
    title = "Inspect log"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        is_log = head.has("samples", "eval") and isinstance(head.record.get("samples"), list)
        return is_log or head.has("id", "epoch", "scores")

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        question_of = _scorer_questions(records, rows.options.question)
        for place, sample in _samples(records, "samples"):
            task = need(sample, "id", IdType, place)
            epoch = need(sample, "epoch", int, place)
            scores = need(sample, "scores", (dict, type(None)), place) or {}
            if not scores:
                rows.drop("samples without a score")
            for scorer in scores:
                value = need(need(scores, scorer, dict, place), "value", object, place)
                for name, label in _named_values(value):
                    if rows.wants(name or question_of[scorer]):
                        rows.add(place, task, scorer, label, run=epoch)
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


def _named_values(value: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield a score without a name, or each of several named scores."""
    if not isinstance(value, Mapping):
        yield None, value
        return
    yield from ((str(name), one) for name, one in value.items())


class Promptfoo:
    """Results with `gradingResult`.

    A test has several assertions, and passes where promptfoo says so: by default all of them must
    pass, so they are no votes on one question. Its verdict is what is read. Assertions of
    one type over one output, such as rubrics graded by different models, are read as judges where
    the caller asks for that type as the question.
    """

    name = "promptfoo"
    title = "promptfoo results"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        inner = head.record.get("results")
        if isinstance(inner, Mapping):
            inner = inner.get("results")
        first = inner[0] if isinstance(inner, list) and inner else head.record
        return isinstance(first, Mapping) and "gradingResult" in first

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        rows.default_question = VERDICT
        for place, result in _samples(records, "results"):
            task = _output_name(place, result)
            grading = need(result, "gradingResult", (dict, type(None)), place)
            if grading is None:
                rows.drop("results without grading")
                continue
            if rows.wants(VERDICT):
                _add_verdict(rows, place, task, "promptfoo", grading)
            n_by_judge: Counter[str] = Counter()
            for part in optional(grading, "componentResults", list, place) or []:
                assertion = optional(part, "assertion", dict, place)
                if assertion is None:
                    continue  # what a set of assertions comes to; its parts follow
                kind = optional(assertion, "type", str, place) or "assertion"
                if rows.wants(kind):
                    judge = _judge(place, assertion, kind)
                    more = {"run": n_by_judge[judge]} if n_by_judge[judge] else {}
                    n_by_judge[judge] += 1
                    _add_verdict(rows, place, task, judge, part, **more)
            rows.add_text(task, first_text(optional(result, "vars", dict, place) or {}))


def _add_verdict(
    rows: Rows, place: RecordPlace, task: str, judge: str, part: Record, **more: Any
) -> None:
    passed = need(part, "pass", bool, place)
    score = optional(part, "score", Number, place)
    confidence = _confidence(score, passed=passed)
    rows.add(place, task, judge, PASS if passed else FAIL, confidence=confidence, **more)


def _confidence(score: object, *, passed: bool) -> float | None:
    """Turn a score, which is low where an answer failed, into confidence in the verdict."""
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        return None
    return float(score if passed else 1.0 - score)


def _samples(records: Records, key: str) -> Iterator[tuple[RecordPlace, Record]]:
    """Yield the samples of a log, or the records where each is a sample already."""
    for place, record in records():
        inner: Any = record.get(key)
        if isinstance(inner, Mapping):
            inner = need(inner, key, list, place)
        if inner is None:
            yield place, record
            continue
        for number, sample in enumerate(need({key: inner}, key, list, place), start=1):
            yield place._replace(number=number), sample


def _output_name(place: RecordPlace, result: Record) -> str:
    """Name what was graded: the output of a provider for a prompt and a test."""
    provider = optional(result, "provider", (str, dict), place)
    is_object = isinstance(provider, Mapping)
    name = optional(provider, "id", str, place) if is_object else provider
    test = optional(result, "testIdx", int, place)
    prompt = optional(result, "promptIdx", int, place) or 0
    number = place.number if test is None else test
    return composed((f"test {number}", name or "provider", f"prompt {prompt}"))


def _judge(place: RecordPlace, assertion: Record, kind: str) -> str:
    """Name who graded: the model that did, else the metric, else the type and its value."""
    grader = optional(assertion, "provider", (str, dict), place)
    if isinstance(grader, Mapping):
        grader = optional(grader, "id", str, place)
    metric = optional(assertion, "metric", str, place)
    value = assertion.get("value")
    return str(grader or metric or (kind if value is None else f"{kind}: {str(value)[:60]}"))
