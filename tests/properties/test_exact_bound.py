"""With links done exactly the bound never falls and stays below the exact evidence."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.test_exact_links import exact
from oracles.bound import bound_terms
from properties.strategies import Crowd, crowds, problem_of
from properties.test_bound import assert_never_falls, log_evidence

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import vb
from tiebreak.inference.known import clamp
from tiebreak.inference.tasks.coupling import ascents as joint
from tiebreak.inference.tasks.coupling import link_errors
from tiebreak.inference.tasks.coupling.infer import ExactLinks
from tiebreak.inference.tasks.coupling.link_errors import Answers, LearntRates
from tiebreak.kernels import reference


def bounds_of(
    crowd: Crowd,
    model: ExactLinks,
    gold: GoldCodes | None = None,
    n_sweeps: int = 6,
) -> list[float]:
    """Return the bound, term by term, after every half of every sweep but the first half."""
    known = joint.known_tasks(model.implied)
    problem = vb.with_nodes(problem_of(crowd), model, model.task, known)
    q = clamp(vb.majority(problem.tasks, problem.n_classes), known)
    beliefs = vb.implied_beliefs(problem, q)
    bounds = []
    for _ in range(n_sweeps):
        swept = vb.update_tasks(problem, problem.open(q), beliefs)
        model.spread(q)
        bounds.append(bound_terms(problem, q, beliefs).total)
        beliefs = vb.update_beliefs(problem, swept.counts, swept.totals)
        bounds.append(vb.bound_after_update(problem, beliefs, swept.entropy))
    return bounds


@settings(max_examples=80, deadline=None)
@given(crowds(max_tasks=5), st.booleans(), st.booleans())
def test_bound_of_soft_links_never_falls_and_stays_below_the_evidence(
    crowd: Crowd, knows: bool, learn: bool
) -> None:
    if not len(crowd.links.left):
        return
    n_classes = crowd.responses.n_classes
    weight = np.random.default_rng(0).uniform(0.2, 4.0, len(crowd.links.left))
    links = crowd.links._replace(weight=weight)
    gold = crowd.gold if knows else None
    model = exact(links, problem_of(crowd).tasks, n_classes, gold, reference)
    answers = Answers(links.must, np.zeros(len(weight), np.int32), 1)
    prior = link_errors.prior_rates(1, 1.0, 9.0)
    if learn:
        model.learn(LearntRates(answers, prior))
    bounds = bounds_of(crowd, model, gold)
    assert_never_falls(bounds)
    if not learn:
        signed = np.where(links.must, weight, -weight).tolist()
        pairs = list(zip(links.left.tolist(), links.right.tolist(), signed, strict=True))
        evidence = log_evidence(crowd, gold, pairs)
        assert bounds[-1] <= evidence + 1e-8 * (1 + abs(evidence))


@settings(max_examples=60, deadline=None)
@given(crowds(max_tasks=6), st.integers(0, 1000))
def test_bound_of_hard_links_never_falls(crowd: Crowd, seed: int) -> None:
    n_classes = crowd.responses.n_classes
    truth = np.random.default_rng(seed).integers(0, n_classes, crowd.responses.n_tasks)
    links = crowd.links._replace(must=truth[crowd.links.left] == truth[crowd.links.right])
    if not len(links.left):
        return
    model = exact(links, problem_of(crowd).tasks, n_classes, None, reference)
    assert_never_falls(bounds_of(crowd, model))
