"""Logs of evaluations: which graders answer the same question, and whose verdict counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tables.formats.answers import answers, notes_of, read
from tables.said import refused

import tiebreak as tb

Check = tuple[str, str, bool]  # type and value of an assertion, and whether the output passed


def _result(test: int, checks: list[Check], provider: str = "openai:a", **more: Any) -> Any:
    parts = [
        {"pass": ok, "score": float(ok), "reason": "", "assertion": {"type": kind, "value": value}}
        for kind, value, ok in checks
    ]
    passed = all(ok for *_, ok in checks)
    grading = {"pass": passed, "score": 0.5, "reason": "", "componentResults": parts}
    at = {"testIdx": test, "promptIdx": 0, "provider": {"id": provider}, "vars": {"q": f"{test}"}}
    return {**at, "success": passed, "gradingResult": grading, **more}


def _promptfoo(path: Path, results: list[Any]) -> Path:
    path.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": results}}))
    return path


def _thirty(path: Path) -> Path:
    """Write 30 tests of three different checks, of which 14 fail by one of the three."""
    results = []
    for i in range(30):
        oks = [True, True, True]
        if i < 14:
            oks[i % 3] = False
        kinds = [("contains", "yes"), ("is-json", ""), ("llm-rubric", "is polite")]
        results.append(_result(i, [(*kind, ok) for kind, ok in zip(kinds, oks, strict=True)]))
    return _promptfoo(path, results)


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_a_test_that_promptfoo_failed_stays_failed(tmp_path: Path) -> None:
    responses = read(_thirty(tmp_path / "r.json"))
    labels = tb.VariationalBayes().fit(responses).labels_
    failed = {task for task, label in labels.best().items() if label == "fail"}
    assert failed == {f"test {i} | openai:a | prompt 0" for i in range(14)}
    assert list(responses.workers) == ["promptfoo"]


def test_promptfoo_names_the_checks_that_are_not_read(tmp_path: Path) -> None:
    said = notes_of(_thirty(tmp_path / "r.json"))
    for name in ("contains", "is-json", "llm-rubric", "question="):
        assert name in said


def test_assertions_of_one_type_are_judges_of_one_output(tmp_path: Path) -> None:
    judged = [("llm-rubric", "rubric 0", True), ("llm-rubric", "rubric 1", False)]
    results = [_result(0, [*judged, ("contains", "x", True)], who) for who in ("a:x", "b:y")]
    found = answers(read(_promptfoo(tmp_path / "r.json", results), question="llm-rubric"))
    assert found == {
        (f"test 0 | {who} | prompt 0", f"llm-rubric: rubric {i}"): label
        for who in ("a:x", "b:y")
        for i, label in enumerate(("pass", "fail"))
    }


def test_a_judge_is_named_by_its_model_and_its_second_verdict_is_a_run(tmp_path: Path) -> None:
    result = _result(0, [("llm-rubric", "r", ok) for ok in (True, False, True)])
    graders: list[Any] = ["openai:gpt", {"id": "anthropic:claude"}, "openai:gpt"]
    for part, grader in zip(result["gradingResult"]["componentResults"], graders, strict=True):
        part["assertion"]["provider"] = grader
    path = _promptfoo(tmp_path / "r.json", [result])
    responses = read(path, question="llm-rubric")
    assert set(responses.workers) == {"anthropic:claude", "openai:gpt"}
    assert responses.n_repeats == 1


def test_an_unknown_question_of_promptfoo_lists_those_there_are(tmp_path: Path) -> None:
    with refused("no-question", question="rubric"):
        read(_thirty(tmp_path / "r.json"), question="rubric")


def _inspect(path: Path, scores: list[dict[str, Any]]) -> Path:
    samples = [
        {
            "id": f"s{i}",
            "epoch": 1,
            "input": "q",
            "target": "t",
            "scores": {name: {"value": value} for name, value in each.items()},
        }
        for i, each in enumerate(scores)
    ]
    path.write_text(json.dumps({"version": 2, "eval": {"task": "t"}, "samples": samples}))
    return path


def test_scorers_of_inspect_that_share_no_value_are_no_judges_of_one_question(
    tmp_path: Path,
) -> None:
    path = _inspect(
        tmp_path / "log.json",
        [{"match": "C", "judge": "I", "length": 112}, {"match": "I", "judge": "C", "length": 80}],
    )
    with refused("several-questions", questions={"match, judge": 4, "length": 2}):
        read(path)
    assert set(read(path, question="match, judge").workers) == {"match", "judge"}
    assert set(read(path, question="length").workers) == {"length"}


def test_one_scorer_of_inspect_can_be_chosen(tmp_path: Path) -> None:
    path = _inspect(tmp_path / "log.json", [{"a": "C", "b": "I"}, {"a": "I", "b": "I"}])
    assert set(read(path).workers) == {"a", "b"}
    assert answers(read(path, question="b")) == {("s0", "b"): "I", ("s1", "b"): "I"}
