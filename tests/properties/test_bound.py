"""The bound never falls, at any step, and stays below the exact evidence."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.bound import bound_terms
from oracles.dawid_skene import objective
from properties.strategies import (
    Crowd,
    crowds,
    groups_of,
    point_problem_of,
    problem_of,
    weighted,
    with_roles,
)

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import vb
from tiebreak.inference.known import clamp
from tiebreak.inference.tasks.mean_field import MeanField
from tiebreak.kernels import reference
from tiebreak.links.graph import LinkCodes, close

STRENGTHS = st.sampled_from([0.1, 1.0, 5.0, 50.0])


def half_steps(problem: vb.Problem, q: np.ndarray, n_sweeps: int = 6) -> list[float]:
    """Return the bound, term by term, after every half of every sweep."""
    q = q.copy()
    beliefs = vb.implied_beliefs(problem, q)
    bounds = [bound_terms(problem, q, beliefs).total]
    for _ in range(n_sweeps):
        swept = vb.update_tasks(problem, problem.open(q), beliefs)
        bounds.append(bound_terms(problem, q, beliefs).total)
        beliefs = vb.update_beliefs(problem, swept.counts, swept.totals)
        bounds.append(bound_terms(problem, q, beliefs).total)
        short = vb.bound_after_update(problem, beliefs, swept.entropy)
        assert abs(short - bounds[-1]) < 1e-8 * (1 + abs(short))
    return bounds


def assert_never_falls(bounds: list[float]) -> None:
    assert np.diff(bounds).min(initial=0.0) >= -1e-9 * (1 + max(map(abs, bounds)))


def link_problem(
    crowd: Crowd, links: LinkCodes, strength: float, schedule: str, gold: GoldCodes | None
) -> vb.Problem:
    groups = groups_of(links, crowd.responses.n_classes)
    problem = with_roles(problem_of(crowd), gold, groups.task)
    model = MeanField(groups, strength, problem.tasks.role, reference, schedule)
    return problem._replace(links=model)


def signed_links(crowd: Crowd, links: LinkCodes, strength: float) -> list[tuple[int, int, float]]:
    if links.weight is not None:
        signed = np.where(links.must, links.weight, -links.weight) * strength
        return list(zip(links.left.tolist(), links.right.tolist(), signed.tolist(), strict=True))
    group = close(crowd.responses.n_tasks, links)
    cannot = set(zip(group.left.tolist(), group.right.tolist(), strict=True))
    pairs = []
    for i in range(crowd.responses.n_tasks):
        for j in range(i + 1, crowd.responses.n_tasks):
            a, b = sorted((int(group.group[i]), int(group.group[j])))
            if a == b:
                pairs.append((i, j, strength))
            elif (a, b) in cannot:
                pairs.append((i, j, -strength))
    return pairs


def log_evidence(
    crowd: Crowd, gold: GoldCodes | None, links: list[tuple[int, int, float]]
) -> float:
    responses = crowd.responses
    rows = list(
        zip(
            responses.task_of_each().tolist(),
            responses.worker_of_each().tolist(),
            responses.label_of_each().tolist(),
            strict=True,
        )
    )
    by_truth = crowd.confusion_prior.transpose(0, 2, 1)
    prior = np.repeat(by_truth, responses.n_workers, axis=0)
    known = {} if gold is None else dict(zip(gold.task.tolist(), gold.label.tolist(), strict=True))
    every = enumeration.labellings(responses.n_tasks, responses.n_classes, known)
    return enumeration.log_total(
        lambda y: (
            enumeration.log_joint(y, rows, crowd.class_prior, prior)
            + enumeration.link_sum(y, links)
        ),
        every,
    )


@given(crowds(), st.booleans())
def test_bound_never_falls(crowd: Crowd, knows: bool) -> None:
    gold = crowd.gold if knows else None
    problem = with_roles(problem_of(crowd), gold)
    q = clamp(vb.majority(problem.tasks, problem.n_classes), gold)
    assert_never_falls(half_steps(problem, q))


@given(crowds(), st.booleans())
def test_bound_stays_below_the_exact_evidence(crowd: Crowd, knows: bool) -> None:
    gold = crowd.gold if knows else None
    problem = with_roles(problem_of(crowd), gold)
    run = vb.ascend(problem, clamp(vb.majority(problem.tasks, problem.n_classes), gold))
    assert run.bounds[-1] <= log_evidence(crowd, gold, []) + 1e-9


@given(crowds(), STRENGTHS, st.sampled_from(["in-turn", "damped"]), st.booleans(), st.booleans())
def test_bound_never_falls_with_links(
    crowd: Crowd, strength: float, schedule: str, knows: bool, weigh: bool
) -> None:
    if not len(crowd.links.left):
        return
    links = weighted(crowd.links, np.random.default_rng(1)) if weigh else crowd.links
    gold = crowd.gold if knows else None
    problem = link_problem(crowd, links, strength, schedule, gold)
    q = clamp(vb.majority(problem.tasks, problem.n_classes), gold)
    assert_never_falls(half_steps(problem, q))


@settings(max_examples=60)
@given(crowds(max_tasks=5), STRENGTHS, st.booleans(), st.booleans())
def test_bound_with_links_stays_below_the_exact_evidence(
    crowd: Crowd, strength: float, knows: bool, weigh: bool
) -> None:
    if not len(crowd.links.left):
        return
    links = weighted(crowd.links, np.random.default_rng(1)) if weigh else crowd.links
    gold = crowd.gold if knows else None
    problem = link_problem(crowd, links, strength, "in-turn", gold)
    q = clamp(vb.majority(problem.tasks, problem.n_classes), gold)
    run = vb.ascend(problem, q, max_iter=50)
    evidence = log_evidence(crowd, gold, signed_links(crowd, links, strength))
    assert run.bounds[-1] <= evidence + 1e-8 * (1 + abs(evidence))


@given(crowds(), st.booleans(), st.sampled_from([0.0, 0.01, 1.0]))
def test_dawid_skene_objective_never_falls(crowd: Crowd, knows: bool, smoothing: float) -> None:
    gold = crowd.gold if knows else None
    problem = with_roles(point_problem_of(crowd, smoothing), gold)
    q = clamp(vb.majority(problem.tasks, problem.n_classes), gold)
    known = (
        None if gold is None else dict(zip(gold.task.tolist(), gold.label.tolist(), strict=True))
    )
    objectives = []
    for n_sweeps in range(1, 9):
        run = vb.ascend(problem, q, tol=0.0, max_iter=n_sweeps)
        shares = problem.states.mean(run.beliefs.alpha), vb.confusion(problem, run.beliefs)
        objectives.append(objective(crowd.responses, *shares, known, smoothing))
        assert run.bounds[-1] <= objectives[-1] + 1e-9 * (1 + abs(objectives[-1]))
    assert_never_falls(run.bounds)
    assert_never_falls(objectives)
