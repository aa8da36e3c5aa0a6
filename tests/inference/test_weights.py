"""Responses that carry a weight: everywhere the same as giving them so many times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.responses import Responses

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
    with pytest.raises(tb.ResponseError, match="above 0 and finite"):
        weighted(weight)
