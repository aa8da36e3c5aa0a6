"""A note where labels hang on which of two modes plain VB ended in."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.data import Responses
from tiebreak.errors import InputNote
from tiebreak.inference import FitState, climb, near_modes, stages

SAID = "Responses alone do not settle"


def two_camps(n_classes: int = 2, seed: int = 0, n_tasks: int = 200) -> Responses:
    """Draw five workers who are right, and five who swap the first two classes, equally sure."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    swapped = np.arange(n_classes)
    swapped[:2] = [1, 0]
    rows = []
    for i, k in enumerate(truth):
        for w in range(10):
            named = k if w % 2 else swapped[k]
            label = named if rng.random() < 0.8 else rng.integers(n_classes)
            rows.append((f"t{i}", f"w{w}", f"c{label}"))
    return Responses.from_rows(rows)


def notes_of(responses: Responses, **given: object) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputNote)
        tb.VariationalBayes().fit(responses, **given)
    return [str(each.message) for each in caught if SAID in str(each.message)]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_two_camps_of_equal_weight_are_named_with_the_labels_that_hang_on_them(
    n_classes: int, seed: int
) -> None:
    said = notes_of(two_camps(n_classes, seed))
    assert len(said) == 1
    assert "what is 'c0' and what is 'c1'" in said[0] or "what is 'c1' and what is 'c0'" in said[0]
    found = re.search(r"changes ([\d,]+) labels of 200", said[0])
    assert found is not None
    assert int(found[1]) == pytest.approx(200 * 2 / n_classes, rel=0.3)


def test_a_crowd_that_agrees_is_left_in_peace() -> None:
    for seed in range(5):
        crowd = tb.simulate.crowd(200, 10, 3, responses_per_task=5, random_state=seed)
        assert not notes_of(crowd.responses)


def test_where_nothing_but_the_start_names_classes_nothing_is_said() -> None:
    responses = two_camps()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputNote)
        tb.VariationalBayes(confusion_prior="uniform").fit(responses)
    assert not [each for each in caught if SAID in str(each.message)]


def test_the_fit_stays_as_it_is() -> None:
    responses = two_camps()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        looked = tb.VariationalBayes().fit(responses)
        with mock.patch.object(near_modes, "note_near_mode"):
            plain = tb.VariationalBayes().fit(responses)
    assert np.array_equal(looked.probabilities_, plain.probabilities_)
    assert looked.bounds_ == plain.bounds_
    assert looked.n_iter_ == plain.n_iter_


def test_gold_links_and_large_crowds_take_no_second_look() -> None:
    responses = two_camps()
    assert not notes_of(responses, gold={"t0": "c0", "t1": "c1"})
    links = {"left": ["t0"], "right": ["t1"], "link": ["must"]}
    assert not notes_of(responses, links=links)
    with mock.patch.object(near_modes, "LARGEST", responses.n_responses - 1):
        assert not notes_of(responses)


def test_a_second_look_takes_at_most_half_the_sweeps() -> None:
    n_sweeps = []

    def counted(*given: object) -> FitState:
        state = climb(*given)  # type: ignore[arg-type]
        n_sweeps.append(state.n_sweeps)
        return state

    for seed in range(5):
        n_sweeps.clear()
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(stages, "climb", counted)
            patch.setattr(near_modes, "climb", counted)
            warnings.simplefilter("ignore")
            tb.VariationalBayes().fit(two_camps(4, seed))
        assert len(n_sweeps) == 2
        assert n_sweeps[1] <= n_sweeps[0] // 2


@pytest.mark.data
def test_on_the_ten_datasets_it_fires_on_web_alone() -> None:
    """Web's labels lie in a mode whose bound is lower than that of the one with classes swapped."""
    root = Path(os.environ["TIEBREAK_DATA"])
    tables = sorted(root.glob("*/responses.csv"))
    fired = [each.parent.name for each in tables if notes_of(tb.read_responses(each))]
    assert fired == ["web"]
