"""worker_model="auto": which member is chosen, and that the fit is that member's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.inference import model_choice
from tiebreak.responses import Responses
from tiebreak.simulate import Crowd


def crowd_of_kinds(seed: int = 1) -> Crowd:
    """Draw a crowd of which half are experts and half give one label whatever the class."""
    theta = np.empty((24, 4, 4))
    theta[:12] = 0.02
    theta[:12, np.arange(4), np.arange(4)] = 0.94
    theta[12:] = [0.85, 0.05, 0.05, 0.05]
    return tb.simulate.crowd(300, 24, 4, responses_per_task=5, confusion=theta, random_state=seed)


def test_auto_takes_kinds_where_workers_are_of_kinds() -> None:
    crowd = crowd_of_kinds()
    model = tb.VariationalBayes(worker_model="auto").fit(crowd.responses)
    assert model.worker_model_ == "kinds"
    tried = model.models_tried_
    assert tried is not None
    assert len(tried) == 8
    best = max(tried, key=lambda each: each.bound)
    assert best.worker_model == model.worker_model_
    assert best.n_changed == 0


def test_auto_is_the_fit_of_the_member_it_chose() -> None:
    crowd = crowd_of_kinds()
    links = tb.simulate.links(crowd.gold, 40, random_state=0)
    auto = tb.VariationalBayes(worker_model="auto").fit(crowd.responses, links=links)
    named = tb.VariationalBayes(worker_model="kinds").fit(crowd.responses, links=links)
    assert np.abs(auto.probabilities_ - named.probabilities_).max() < 1e-4
    assert auto.labels_.best() == named.labels_.best()


def test_a_member_that_hardly_leads_is_not_taken() -> None:
    crowd = tb.simulate.crowd(200, 10, 2, responses_per_task=4, random_state=5)
    model = tb.VariationalBayes(worker_model="auto").fit(crowd.responses)
    tried = model.models_tried_
    assert tried is not None
    plain = next(each for each in tried if each.worker_model == "confusion")
    best = max(each.bound for each in tried)
    is_plain = best < plain.bound + model_choice.LEAD
    assert (model.worker_model_ == "confusion") == is_plain


def test_gold_chooses_from_twenty_tasks_on() -> None:
    crowd = crowd_of_kinds(2)
    names = [crowd.gold.classes[k] for k in crowd.gold.label]
    known = dict(zip(crowd.gold.tasks, names, strict=True))
    few = dict(list(known.items())[:19])
    many = dict(list(known.items())[:20])
    by_bound = tb.VariationalBayes(worker_model="auto").fit(crowd.responses, gold=few)
    by_gold = tb.VariationalBayes(worker_model="auto").fit(crowd.responses, gold=many)
    assert by_bound.models_tried_ is not None
    assert by_gold.models_tried_ is not None
    assert all(each.gold_log_likelihood is None for each in by_bound.models_tried_)
    assert all(each.gold_log_likelihood is not None for each in by_gold.models_tried_)


def test_going_on_keeps_the_member_that_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = crowd_of_kinds()
    first = tb.VariationalBayes(worker_model="auto").fit(crowd.responses)
    monkeypatch.setattr(model_choice, "choose", None)  # it must not be asked again
    links = tb.simulate.links(crowd.gold, 10, random_state=0)
    more = tb.VariationalBayes(worker_model="auto").fit(crowd.responses, links=links, start=first)
    assert more.worker_model_ == first.worker_model_
    assert more.models_tried_ == first.models_tried_


def test_mean_field_chooses_among_members_without_subtypes() -> None:
    crowd = crowd_of_kinds()
    links = tb.simulate.links(crowd.gold, 10, random_state=0)
    model = tb.VariationalBayes(worker_model="auto", link_options=tb.MeanFieldOptions())
    model.fit(crowd.responses, links=links)
    assert model.models_tried_ is not None
    assert {each.worker_model for each in model.models_tried_} == {"confusion", "kinds"}


def test_weights_count_where_gold_and_subtypes_meet() -> None:
    rows = [(f"t{i}", f"w{j}", "xy"[(i + (j == 2)) % 2]) for i in range(30) for j in range(3)]
    crowd = Responses.from_rows(rows)
    doubled = replace(crowd, weight=np.full(crowd.n_responses, 2.0))
    fits = [
        tb.VariationalBayes(worker_model="subtypes", calibrate="none", random_state=1).fit(
            each, gold={"t0": "x", "t1": "y"}
        )
        for each in (crowd, doubled)
    ]
    assert np.abs(fits[0].probabilities_ - fits[1].probabilities_).max() > 1e-6
