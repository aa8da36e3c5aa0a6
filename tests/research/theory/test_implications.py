"""Every step of the theorems, with deviations as they really were: an implication, not a chance.

What the corrected theorems claim must hold on every crowd; what the paper prints does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from oracles import dense_vb
from research.theory.crowds import Drawn, draw, draw_exact, draw_posterior

from tiebreak.kernels import Floats, Offsets
from tiebreak.research import theory

N_CROWDS = 800
ROUNDING = 1e-12

Loss = Callable[[theory.Assumptions, theory.ParameterErrors], Floats | float]


@pytest.fixture(scope="module")
def crowds() -> list[Drawn]:
    return [draw(seed) for seed in range(N_CROWDS)]


def class_prior_excess(found: Drawn, bound: Floats) -> float:
    return float((found.parameter_errors(found.posterior).class_prior - bound).max())


def confusion_excess(found: Drawn, bound: Floats) -> float:
    return float((found.parameter_errors(found.posterior).confusion - bound).max())


def label_excess(found: Drawn, seed: int, loss: Loss) -> Floats:
    """How far the lead U that is claimed exceeds the true class's lead over each wrong one.

    In nats, for all tasks and wrong classes where U is defined.
    """
    crowd = found.crowd
    posterior = draw_posterior(found, seed)
    errors = found.parameter_errors(posterior)
    q = dense_vb.label(found.answers, posterior)
    log_prior = np.log(crowd.class_prior)
    counts = found.answers.sum(axis=(1, 2)).astype(int)
    lead = log_prior[found.truth, None] - log_prior + found.evidence
    for n in set(counts.tolist()):
        lost = loss(replace(crowd, most_responses=max(n, 1)), errors)
        here = counts == n
        by_class = np.broadcast_to(lost, (crowd.n_classes, crowd.n_classes))
        lead[here] += by_class[found.truth[here]]
    wrong = found.indicator == 0
    defined = wrong & np.isfinite(lead)
    log_q = np.log(q)
    real = log_q[np.arange(len(q)), found.truth, None] - log_q
    return np.asarray((lead - real)[defined])


def test_the_class_prior_is_always_within_its_bound(crowds: list[Drawn]) -> None:
    excess = [
        class_prior_excess(
            found, theory.plain.class_prior_error(found.crowd, found.deviations, found.label_errors)
        )
        for found in crowds
    ]
    assert max(excess) <= ROUNDING


def test_confusions_are_always_within_the_plain_bound(crowds: list[Drawn]) -> None:
    for found in crowds:
        rows = theory.plain.confusion_error(found.crowd, found.plain_deviations, found.label_errors)
        assert confusion_excess(found, rows[0]) <= ROUNDING
        assert (found.posterior.beta.sum(axis=2) - rows[1]).min() >= -1e-9


def test_confusions_are_always_within_the_sharp_bound(crowds: list[Drawn]) -> None:
    for found in crowds:
        rows = theory.sharp.confusion_error(found.crowd, found.deviations, found.label_errors)
        assert confusion_excess(found, rows[0]) <= ROUNDING
        assert (found.posterior.beta.sum(axis=2) - rows[1]).min() >= -1e-9


@pytest.mark.parametrize("seed", range(200))
def test_confusions_are_within_the_sharp_bound_when_only_labels_are_wrong(seed: int) -> None:
    found = draw_exact(seed)
    assert found.deviations.answers.max() < ROUNDING
    assert found.deviations.answered.max() < ROUNDING
    rows = theory.sharp.confusion_error(found.crowd, found.deviations, found.label_errors)
    assert confusion_excess(found, rows[0]) <= ROUNDING
    assert (found.posterior.beta.sum(axis=2) - rows[1]).min() >= -1e-9


@pytest.mark.parametrize("loss", [theory.plain.parameter_loss, theory.sharp.parameter_loss])
def test_labels_are_always_within_their_bound(crowds: list[Drawn], loss: Loss) -> None:
    excess = np.concatenate([label_excess(found, seed, loss) for seed, found in enumerate(crowds)])
    assert len(excess) > 50_000
    assert excess.max() <= 1e-9


def test_the_sharp_bounds_are_never_larger_than_the_plain_ones(crowds: list[Drawn]) -> None:
    for seed, found in enumerate(crowds):
        inputs = found.crowd, found.plain_deviations, found.label_errors
        ours = theory.sharp.confusion_error(*inputs)
        theirs = theory.plain.confusion_error(*inputs)
        assert (ours[0] - theirs[0]).max() <= ROUNDING
        errors = found.parameter_errors(draw_posterior(found, seed))
        lost = theory.plain.parameter_loss(found.crowd, errors)
        assert theory.sharp.parameter_loss(found.crowd, errors).min() >= lost - 1e-9


def test_a_single_f_as_printed_fails_for_some_labels(crowds: list[Drawn]) -> None:
    def single(crowd: theory.Assumptions, errors: theory.ParameterErrors) -> float:
        return float(theory.plain.parameter_loss(crowd, errors)) / 2  # erratum 14

    excess = np.concatenate(
        [label_excess(found, seed, single) for seed, found in enumerate(crowds)]
    )
    assert 20 < (excess > 1e-6).sum() < len(excess) / 2


def test_the_printed_class_prior_bound_fails_on_some_crowds(crowds: list[Drawn]) -> None:
    fails = sum(
        class_prior_excess(
            found,
            theory.printed.class_prior_error(found.crowd, found.deviations, found.label_errors),
        )
        > 1e-6
        for found in crowds
    )
    assert fails > 10


def test_the_printed_class_prior_bound_fails_where_one_class_is_frequent() -> None:
    """Erratum 20: K = 5, π = (.8, .05, …), flat prior, 200 tasks, no error but the prior's."""
    crowd = theory.Assumptions(
        class_prior=[0.8, 0.05, 0.05, 0.05, 0.05],
        confusion=np.full((5, 5), 0.1) + 0.5 * np.eye(5),
        n_tasks=200,
    )
    exact = theory.Deviations(np.zeros(5), np.zeros((1, 5, 5)), np.zeros((1, 5)))
    labels = theory.LabelErrors.same(0.0)
    expected = (200 * crowd.class_prior + 1) / 205
    true_error = np.abs(expected - crowd.class_prior).max()
    as_printed = theory.printed.class_prior_error(crowd, exact, labels).max()
    assert true_error == pytest.approx(0.0146, abs=5e-5)
    assert as_printed == pytest.approx(0.0061, abs=5e-5)
    assert theory.plain.class_prior_error(crowd, exact, labels).max() == pytest.approx(true_error)


@pytest.mark.parametrize("seed", [105, 1320, 1564])
def test_the_printed_confusion_bound_fails_on_some_crowds(seed: int) -> None:
    """Erratum 21: the posterior total in the denominator counts the responses twice."""
    found = draw(seed)
    inputs = found.crowd, found.plain_deviations, found.label_errors
    total = found.posterior.beta.sum(axis=2)
    as_printed = theory.printed.confusion_error(*inputs, posterior_total=total)
    assert confusion_excess(found, as_printed[0]) > 1e-3
    assert confusion_excess(found, theory.plain.confusion_error(*inputs)[0]) <= ROUNDING


@pytest.mark.parametrize("seed", range(50))
def test_link_support_bounds_what_neighbours_say_and_is_attained(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    error = float(rng.uniform(0, 0.5))
    n_must = int(rng.integers(0, 4))
    n_cannot = rng.integers(0, 4, n_classes)
    n_cannot[0] = 0  # class 0 is the task's own
    bound = theory.link_support(n_must, n_cannot, 0, error)
    doubt = rng.uniform(0, error, n_must + n_cannot.sum())
    classes = np.repeat(np.arange(n_classes), n_cannot + np.eye(n_classes, dtype=int)[0] * n_must)
    other = rng.dirichlet(np.ones(n_classes), len(classes))
    other[np.arange(len(classes)), classes] = 0
    other /= np.maximum(other.sum(axis=1, keepdims=True), 1e-300)
    q = (1 - doubt[:, None]) * np.eye(n_classes)[classes] + doubt[:, None] * other
    sign = np.where(classes == 0, 1.0, -1.0)
    said = (sign[:, None] * (q[:, :1] - q[:, 1:])).sum(axis=0)
    assert said.min() >= bound - ROUNDING
    assert worst_neighbours(n_must, n_cannot, error) == pytest.approx(bound)


def worst_neighbours(n_must: int, n_cannot: Offsets, error: float) -> float:
    """Sum what neighbours say when each errs as badly as it may against some wrong class."""
    sums = [
        n_must * (1 - 2 * error) + own * (1 - 2 * error) - (n_cannot.sum() - own) * error
        for own in n_cannot[1:]
    ]
    return float(min(sums))
