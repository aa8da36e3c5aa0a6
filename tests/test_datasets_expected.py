"""The ten datasets give what an independent implementation gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb

pytestmark = pytest.mark.data

NAMES = (
    "bluebird", "dog", "music_genre", "product", "rte",
    "sentence_polarity", "trec", "web", "zencrowd_india", "zencrowd_us",
)  # fmt: skip
METHODS: tuple[Any, ...] = (
    tb.MajorityVote(),
    tb.DawidSkene(smoothing=0.01),
    tb.VariationalBayes(confusion_prior="diagonal"),
    tb.VariationalBayes(confusion_prior="uniform"),
)


@pytest.mark.filterwarnings("ignore::tiebreak.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")  # such a crowd deserves a note
@pytest.mark.parametrize("name", NAMES)
def test_micro_and_macro_f_are_as_expected(name: str, data_dir: Path) -> None:
    expected = json.loads((data_dir / "expected.json").read_text())["datasets"][name]
    responses = tb.read_responses(data_dir / name / "responses.csv")
    gold = tb.read_gold(data_dir / name / "gold.csv")
    for method, (micro, macro) in zip(METHODS, expected, strict=True):
        labels = method.fit(responses).labels_
        assert tb.evaluate.f_score(labels, gold, average="micro") == pytest.approx(micro, abs=6e-4)
        assert tb.evaluate.f_score(labels, gold, average="macro") == pytest.approx(macro, abs=6e-4)
