"""The report of tasks in sequences: doubtful spans in their sentences, and who marked what."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb
from tiebreak.report.measure import measure

WORDS = ("Ada", "met", "Alan", "<Turing>", ".")
SAID = {
    "ann": ("B-PER", "O", "B-PER", "I-PER", "O"),
    "bob": ("B-PER", "O", "B-PER", "I-PER", "O"),
    "cy": ("B-PER", "O", "O", "B-ORG", "O"),
}


def fitted(n: int = 12, *, with_text: bool = True, **options: Any) -> tb.VariationalBayes:
    """Fit sentences of which the first, third, … were seen by cy alone."""
    columns: dict[str, list[Any]] = {"task": [], "sequence": [], "text": []}
    rows = []
    for s in range(n):
        for t, word in enumerate(WORDS):
            columns["task"].append(f"{s}:{t}")
            columns["sequence"].append(f"s{s}")
            columns["text"].append(word)
            who = ("cy",) if s % 2 else tuple(SAID)
            rows += [(f"{s}:{t}", w, SAID[w][t]) for w in who]
    if not with_text:
        del columns["text"]
    how = tb.SequenceOptions(model="none", **options)
    with warnings.catch_warnings(action="ignore"):
        model = tb.VariationalBayes(sequence_options=how)
        return model.fit(rows, sequences=tb.Sequences.from_table(columns))


@pytest.fixture(scope="module")
def model() -> tb.VariationalBayes:
    return fitted()


def test_sentences_come_with_the_most_doubtful_spans_first(model: tb.VariationalBayes) -> None:
    found = measure(model)["sections"]["spans"]
    assert model.spans_ is not None
    sure = [span.probability for span in model.spans_]
    assert found["n_spans"] == len(sure)
    assert found["n_doubtful"] == sum(p < 0.9 for p in sure if p is not None) > 0
    stated = [each["probability"] for each in found["sentences"]]
    assert stated == sorted(stated)
    assert stated[0] == pytest.approx(min(p for p in sure if p is not None))
    shown = [each["sequence"] for each in found["sentences"]]
    assert len(shown) == len(set(shown))
    for each in found["sentences"]:
        assert "".join(piece["text"] for piece in each["pieces"]) == " ".join(WORDS)
        own = {(s.text, s.label) for s in model.spans_ if s.sequence == each["sequence"]}
        assert {(p["text"], p["kind"]) for p in each["pieces"] if "kind" in p} == own


def test_who_marked_what_is_said_once_for_those_who_agree(model: tb.VariationalBayes) -> None:
    sentences = measure(model)["sections"]["spans"]["sentences"]
    marked = {
        tuple(said["workers"]): said["spans"] for each in sentences for said in each["marked"]
    }
    assert marked[("cy",)] == [
        {"text": "Ada", "kind": "PER"},
        {"text": "<Turing>", "kind": "ORG"},
    ]
    several = [who for who in marked if len(who) > 1]
    assert all(who == ("ann", "bob") for who in several)


def test_the_page_shows_spans_and_runs_nothing(model: tb.VariationalBayes, tmp_path: Path) -> None:
    page = model.report(tmp_path / "r.html").read_text()
    assert 'id="spans"' in page
    assert '<mark class="kind-' in page
    assert "&lt;Turing&gt;" in page
    assert "<Turing>" not in page


def test_without_texts_doubtful_spans_are_a_table() -> None:
    found = measure(fitted(with_text=False, tags="none"))["sections"]["spans"]
    assert found["sentences"] == []
    stated = [each["probability"] for each in found["spans"]]
    assert stated == sorted(stated)
    assert {each["label"] for each in found["spans"]} <= {"O", "B-PER", "I-PER", "B-ORG"}


def test_models_without_sequences_have_no_such_section() -> None:
    model = tb.VariationalBayes().fit([("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "y")])
    assert measure(model)["sections"]["spans"] is None
