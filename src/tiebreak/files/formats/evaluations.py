"""Logs of evaluations: Inspect (JSON or .eval) and promptfoo. Each grader is a worker."""

from __future__ import annotations

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


class Inspect:
    """Samples with `scores` by scorer; each epoch of a sample is a run."""

    name = "inspect"
    title = "Inspect log"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        is_log = head.has("samples", "eval") and isinstance(head.record.get("samples"), list)
        return is_log or head.has("id", "epoch", "scores")

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        for place, sample in _samples(records, "samples"):
            task = need(sample, "id", IdType, place)
            epoch = need(sample, "epoch", int, place)
            scores = need(sample, "scores", (dict, type(None)), place) or {}
            if not scores:
                rows.drop("samples without a score")
            for scorer in scores:
                value = need(need(scores, scorer, dict, place), "value", object, place)
                for question, label in _named_values(value):
                    if rows.wants(question):
                        rows.add(place, task, scorer, label, run=epoch)
            text = sample.get("input")
            rows.add_text(task, text if isinstance(text, str) else None)


def _named_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a score as one question, or each of several named scores."""
    if not isinstance(value, Mapping):
        yield "score", value
        return
    yield from ((str(name), one) for name, one in value.items())


class Promptfoo:
    """Results with `gradingResult`; each assertion that graded an output is a worker."""

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
        for place, result in _samples(records, "results"):
            task = _output_name(place, result)
            grading = need(result, "gradingResult", (dict, type(None)), place)
            if grading is None:
                rows.drop("results without grading")
                continue
            parts = optional(grading, "componentResults", list, place) or [grading]
            for part in parts:
                passed = need(part, "pass", bool, place)
                score = optional(part, "score", Number, place)
                label = PASS if passed else FAIL
                confidence = _confidence(score, passed=passed)
                rows.add(place, task, _assertion(place, part), label, confidence=confidence)
            rows.add_text(task, first_text(optional(result, "vars", dict, place) or {}))


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


def _assertion(place: RecordPlace, part: Record) -> str:
    """Name an assertion by its metric, else by its type and value."""
    assertion = optional(part, "assertion", dict, place)
    if assertion is None:
        return "promptfoo"
    metric = optional(assertion, "metric", str, place)
    if metric:
        return str(metric)
    kind = optional(assertion, "type", str, place) or "assertion"
    value = assertion.get("value")
    return kind if value is None else f"{kind}: {str(value)[:60]}"
