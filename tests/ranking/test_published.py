"""Real verdicts: figures that evalica publishes, and halves of the prompts against each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ranking.arenas import PLAIN

import tiebreak as tb
from tiebreak.data import FIRST, SECOND, TIE, PairVerdicts, encode
from tiebreak.tables import pairs as tables_of_pairs

pytestmark = [pytest.mark.data, pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")]

# bradley_terry in llmfao-golden.csv of dustalov/evalica (Apache-2.0): a tie is half a win of each.
EVALICA = {
    "GPT 4": 0.04121787368330589,
    "Platypus-2 Instruct (70B)": 0.02923317841210955,
    "command": 0.028852056443071993,
    "Dolly v2 (3B)": 0.006293634508067855,
}


def read(sets_dir: Path, name: str) -> PairVerdicts:
    path = sets_dir / "data-pairs" / name
    if not path.exists():
        pytest.skip(f"{name} is not there")
    return tables_of_pairs.read_pairs(path)


def test_plain_strengths_are_those_that_evalica_publishes(sets_dir: Path) -> None:
    pairs = read(sets_dir, "llmfao.csv")
    tie = pairs.verdict == TIE
    rows = np.concatenate([np.flatnonzero(~tie), np.flatnonzero(tie), np.flatnonzero(tie)])
    n_ties = int(tie.sum())
    verdict = pairs.verdict[rows].copy()
    verdict[len(rows) - 2 * n_ties : len(rows) - n_ties] = FIRST
    verdict[len(rows) - n_ties :] = SECOND
    weight = np.where(tie[rows], 0.5, 1.0)
    halved = replace(pairs.take(rows), verdict=verdict, weight=weight)
    model = tb.BradleyTerry(**PLAIN, spread=float("inf")).fit(halved)
    share = np.exp(model.strengths_) / np.exp(model.strengths_).sum()
    found = dict(zip(model.items_, share, strict=True))
    for item, expected in EVALICA.items():
        assert found[item] == pytest.approx(expected, rel=1e-4)


def test_halves_of_the_prompts_agree_as_far_as_intervals_say(sets_dir: Path) -> None:
    pairs = read(sets_dir, "mtbench_people.csv")
    code, questions = encode([str(each).split(".")[0] for each in pairs.prompts])
    pairs = replace(pairs, prompt=code[pairs.prompt], prompts=questions)
    rng = np.random.default_rng(0)
    a, b = np.triu_indices(len(pairs.items), 1)
    hits: dict[str, list[float]] = {"independent": [], "default": []}
    for _ in range(6):
        half = rng.permutation(np.arange(len(questions)) % 2)[pairs.prompt]
        for name, options in (("independent", PLAIN), ("default", {})):
            parts = [pairs.take(np.flatnonzero(half == each)) for each in (0, 1)]
            one, two = (tb.BradleyTerry(**options).fit(part) for part in parts)
            c = one.covariance_ + two.covariance_
            apart = (one.strengths_ - two.strengths_)[a] - (one.strengths_ - two.strengths_)[b]
            error = np.sqrt(c[a, a] + c[b, b] - 2.0 * c[a, b])
            hits[name].append(float((np.abs(apart) <= 1.645 * error).mean()))
    assert np.mean(hits["default"]) >= 0.84
    assert np.mean(hits["independent"]) < 0.75
