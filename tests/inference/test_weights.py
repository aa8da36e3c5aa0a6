"""Responses that carry a weight: everywhere the same as giving them so many times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.data import Responses
from tiebreak.inference.workers.one_class import count_agreement, rows_to_fix
from tiebreak.research import spectral

CROWD = tb.simulate.crowd(60, 7, 3, responses_per_task=4, random_state=4)
LINKS = tb.simulate.links(CROWD.gold, 25, random_state=4)
TIMES = np.random.default_rng(0).integers(1, 4, CROWD.responses.n_responses)


def weighted(weight: Any) -> Responses:
    was = CROWD.responses
    columns = (was.task_of_each(), was.worker_of_each(), was.label_of_each())
    ids = (was.tasks, was.workers, was.classes)
    task, worker, label = columns
    return Responses.from_codes(task, worker, label, *ids, weight=weight)


def repeated() -> Responses:
    was = CROWD.responses
    columns = (was.task_of_each(), was.worker_of_each(), was.label_of_each())
    ids = (was.tasks, was.workers, was.classes)
    task, worker, label = (np.repeat(each, TIMES) for each in columns)
    return Responses.from_codes(task, worker, label, *ids)


MODELS = [
    tb.MajorityVote(),
    tb.DawidSkene(),
    tb.VariationalBayes(calibrate="none"),
    tb.VariationalBayes(worker_model="coin", calibrate="none"),
    tb.VariationalBayes(link_options=tb.MeanFieldOptions(strength=1.0)),
    tb.VariationalBayes(worker_model="kinds", calibrate="none"),
    tb.VariationalBayes(worker_model="kinds+subtypes", calibrate="none"),
    tb.VariationalBayes(worker_model="communities", calibrate="none"),
]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:40])
def test_a_weight_of_two_is_the_response_given_twice(model: Any, backend: str) -> None:
    takes_links = isinstance(model, tb.VariationalBayes)
    given: dict[str, Any] = {"links": LINKS} if takes_links else {}
    model.set_params(backend=backend)
    one = model.fit(weighted(TIMES.astype(float)), **given)
    probabilities = one.probabilities_
    other = model.fit(repeated(), **given)
    assert np.abs(probabilities - other.probabilities_).max() < 1e-6


def test_weights_of_one_change_nothing() -> None:
    model = tb.VariationalBayes().fit(weighted(np.ones(CROWD.responses.n_responses)))
    plain = tb.VariationalBayes().fit(CROWD.responses)
    assert (model.probabilities_ == plain.probabilities_).all()


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_a_weight_must_be_positive(wrong: float) -> None:
    weight = np.ones(CROWD.responses.n_responses)
    weight[3] = wrong
    with pytest.raises(tb.errors.ResponseError, match="above 0 and finite"):
        weighted(weight)


def rules(weight: float) -> Responses:
    """Make a crowd where one-class voters have most responses by weight, but not by rows."""
    rng = np.random.default_rng(0)
    rows = [(f"t{i}", f"rule{i % 2}", "xy"[i % 2]) for i in range(20)]
    rows += [(f"t{i}", f"w{j}", "xy"[int(rng.integers(2))]) for i in range(20) for j in range(3)]
    weights = np.array([weight] * 20 + [1.0] * 60)
    task, worker, label = zip(*rows, strict=True)
    return Responses.from_columns(list(task), list(worker), list(label), weight=weights)


def rules_repeated(times: int) -> Responses:
    once = rules(1.0)
    is_rule = np.char.startswith(np.array(list(once.workers)), "rule")[once.worker_of_each()]
    n = np.where(is_rule, times, 1)
    columns = (once.task_of_each(), once.worker_of_each(), once.label_of_each())
    task, worker, label = (np.repeat(each, n) for each in columns)
    return Responses.from_codes(task, worker, label, once.tasks, once.workers, once.classes)


def test_rules_are_found_by_weight() -> None:
    assert rows_to_fix(rules(1.0)) is None
    found = rows_to_fix(rules(5.0))
    expected = rows_to_fix(rules_repeated(5))
    assert found is not None
    assert expected is not None
    assert (found == expected).all()


def test_a_workers_own_repeats_are_not_the_agreement_of_others() -> None:
    once = count_agreement(rules(1.0))
    for crowd in (rules(5.0), rules_repeated(5)):
        agree, asked = count_agreement(crowd)
        is_rule = np.array([str(name).startswith("rule") for name in crowd.workers])
        assert np.allclose(agree[is_rule], 5 * once[0][is_rule])
        assert np.allclose(asked[is_rule], 5 * once[1][is_rule])


def test_notes_count_votes_by_weight() -> None:
    by_weight = weighted(TIMES.astype(float)).weigh_labels()
    assert np.allclose(by_weight, repeated().weigh_labels())


def test_a_spectral_start_counts_by_weight() -> None:
    crowd = tb.simulate.crowd(300, 12, 2, responses_per_task=8, random_state=1).responses
    columns = (crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each())
    ids = (crowd.tasks, crowd.workers, crowd.classes)
    times = np.random.default_rng(0).integers(1, 4, crowd.n_responses)
    by_weight = Responses.from_codes(*columns, *ids, weight=times.astype(float))
    task, worker, label = (np.repeat(each, times) for each in columns)
    starts = [
        spectral.estimate(each, np.random.default_rng(0))
        for each in (by_weight, Responses.from_codes(task, worker, label, *ids))
    ]
    assert np.abs(starts[0] - starts[1]).max() < 1e-9
