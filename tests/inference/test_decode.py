"""Joint decoding breaks no hard link, and is the likeliest labelling where that is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.test_exact_links import (
    BACKENDS,
    Drawn,
    exact,
    infer,
    link_codes,
    linked_scores,
    score_of,
    settle,
)
from oracles import enumeration

import tiebreak as tb
from tiebreak import simulate
from tiebreak.inference.tasks.coupling import ascents as joint
from tiebreak.inference.tasks.coupling import fit as decoding
from tiebreak.kernels import reference
from tiebreak.links import graph as link_graph


@BACKENDS
@settings(max_examples=100, deadline=None)
@given(linked_scores())
def test_the_decoded_labelling_is_the_likeliest(backend: Any, drawn: Drawn) -> None:
    u, links, gold = drawn
    n_tasks, n_classes = u.shape
    model, *_ = settle(drawn, backend)
    known = joint.known_tasks(model.implied)
    label = np.array([gold.get(i, int(u[i].argmax())) for i in range(n_tasks)])
    label[known.task] = known.label
    label[model.task] = decoding.decode(model)
    score = score_of(u, links, gold)
    best = max(score(y) for y in enumeration.labellings(n_tasks, n_classes, {}))
    assert score(tuple(label.tolist())) == pytest.approx(best, abs=1e-9)


@BACKENDS
@pytest.mark.parametrize("seed", range(4))
def test_large_loopy_components_are_decoded_without_a_broken_link(seed: int, backend: Any) -> None:
    rng = np.random.default_rng(seed)
    n_tasks = 150
    n_classes = 4
    truth = rng.integers(0, n_classes, n_tasks)
    pairs = rng.integers(0, n_tasks, (450, 2))
    apart = {(min(p), max(p)) for p in pairs.tolist() if truth[p[0]] != truth[p[1]]}
    links = link_codes([(i, j, False, np.nan) for i, j in sorted(apart)])
    model = exact(links, n_tasks, n_classes, None, backend)
    assert model.plan.report.large == 1
    u = rng.normal(0, 2, (n_tasks, n_classes))
    q = np.full(u.shape, 1.0 / n_classes)
    for _ in range(5):
        infer(model, u, q)
    label = np.zeros(n_tasks, dtype=np.int32)
    label[model.task] = decoding.decode(model)
    assert not link_graph.violated(label, links).any()


def test_hard_links_break_no_link_on_a_simulated_crowd() -> None:
    crowd = simulate.crowd(300, 12, 5, responses_per_task=3, accuracy=(0.4, 0.7), random_state=3)
    links = simulate.links(crowd.gold, 250, random_state=3)
    model = tb.VariationalBayes().fit(crowd.responses, links=links)
    assert model.violations_ is not None
    assert len(model.violations_) == 0
    plain = tb.VariationalBayes().fit(crowd.responses)
    better = tb.evaluate.accuracy(model.labels_, crowd.gold)
    assert better > tb.evaluate.accuracy(plain.labels_, crowd.gold)


def test_marginal_decoding_may_break_a_link_that_joint_decoding_keeps() -> None:
    # Three classes, two tasks that cannot agree, each with most of its weight on class 0.
    model = exact(link_codes([(0, 1, False, np.nan)]), 2, 3, None, reference)
    u = np.log(np.array([[0.9, 0.05, 0.05], [0.9, 0.05, 0.05]]))
    q = np.full(u.shape, 1 / 3)
    infer(model, u, q)
    assert q[0].argmax() == q[1].argmax() == 0
    decoded = decoding.decode(model)
    assert decoded[0] != decoded[1]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_two_classes_any_graph_without_a_broken_link(seed: int) -> None:
    crowd = simulate.crowd(40, 6, 2, responses_per_task=3, random_state=seed)
    links = simulate.links(crowd.gold, 60, random_state=seed)
    model = tb.VariationalBayes(calibrate="none").fit(crowd.responses, links=links)
    assert model.violations_ is not None
    assert len(model.violations_) == 0
    assert model.link_report_ is not None
    assert model.link_report_.approximate == 0
