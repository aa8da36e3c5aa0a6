"""Communities: what is learnt between sweeps climbs the bound, and finds kinds that are there."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from properties.strategies import Crowd, crowds

import tiebreak as tb
from tiebreak.inference import (
    CrowdFacts,
    Independent,
    Kinds,
    Problem,
    Stopping,
    communities,
    crowd_model,
    lay_out,
)
from tiebreak.kernels import reference


def problem_of(responses: tb.Responses) -> Problem:
    model = crowd_model("communities", CrowdFacts.of_responses(responses))
    return Problem(lay_out(responses), Independent(model.states), model.workers, reference)


@settings(max_examples=25)
@given(crowd=crowds())
def test_sweeps_and_learning_never_lower_the_bound(crowd: Crowd) -> None:
    problem = problem_of(crowd.responses)
    stopping = Stopping(1e-6, 500, accelerate=False)
    _, state = communities.learn(problem, problem.votes(), stopping)
    steps = np.diff(state.bounds)
    assert steps.min(initial=0.0) >= -0.02  # a floor and a ceiling of counts may cost a little


def test_a_learnt_prior_is_the_one_that_workers_were_drawn_from() -> None:
    """Two communities, many workers, known classes: Minka's fixed point finds their Dirichlets."""
    rng = np.random.default_rng(0)
    truth = np.array([[20.0, 2.0], [2.0, 20.0]])  # [answer, class] of the good ones
    other = np.array([[6.0, 6.0], [6.0, 6.0]])
    counts = np.empty((600, 2, 2))
    for w in range(600):
        for k in range(2):
            shares = rng.dirichlet((truth if w % 2 else other)[:, k])
            counts[w, :, k] = rng.multinomial(200, shares)
    start = np.array([[[9.0, 1.0], [1.0, 9.0]], [[2.0, 2.0], [2.0, 2.0]]])
    kinds = Kinds(start, np.full(2, 0.5), 600)
    for _ in range(200):
        kinds = communities.update(kinds, kinds.prior + counts)
    assert np.abs(kinds.weight - 0.5).max() < 0.05
    assert np.abs(kinds.priors[0] / truth - 1.0).max() < 0.3
    assert np.abs(kinds.priors[1] / other - 1.0).max() < 0.3


def test_cells_of_one_parameter_stay_alike() -> None:
    crowd = tb.simulate.crowd(150, 9, 4, random_state=2)
    problem = problem_of(crowd.responses)
    stopping = Stopping(1e-6, 500, accelerate=False)
    learnt, _ = communities.learn(problem, problem.votes(), stopping)
    right = learnt.priors[:, np.arange(4), np.arange(4)]
    assert np.ptp(right, axis=1).max() < 1e-9
    wrong = learnt.priors[:, 0, 1:]
    assert np.ptp(wrong, axis=1).max() < 1e-9


def test_communities_are_fitted_with_links_and_gone_on_from() -> None:
    crowd = tb.simulate.crowd(200, 10, 3, random_state=0)
    links = tb.simulate.links(crowd.gold, 40, random_state=0)
    first = tb.VariationalBayes(worker_model="communities").fit(crowd.responses)
    again = tb.VariationalBayes(worker_model="communities")
    again.fit(crowd.responses, links=links, start=first)
    assert tb.evaluate.accuracy(again.labels_, crowd.gold) > 0.85
    assert again._communities is first._communities
