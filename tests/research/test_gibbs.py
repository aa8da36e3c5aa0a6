"""Gibbs sampling: what enumeration says, within the noise of draws; and when it has not mixed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles import enumeration
from refusals import refused
from scipy.special import logsumexp

import tiebreak as tb
from tiebreak import simulate
from tiebreak.research import gibbs

N_TASKS = 6
N_RUNS = 24
MOST_ERRORS = 4.5  # standard errors: one of a hundred figures is that far off once in 300 tests


def rows_of(n_classes: int, seed: int) -> list[tuple[int, int, int]]:
    """A few workers on a few tasks, one of them twice on one task."""
    rng = np.random.default_rng(seed)
    rows = [(t, w, int(rng.integers(n_classes))) for t in range(N_TASKS) for w in range(3)]
    kept = [row for row in rows if rng.random() < 0.8]
    named = {(0, 0, 0), *((k, 1, k) for k in range(n_classes)), (5, 2, 0), (1, 0, 0), (2, 2, 0)}
    others = [row for row in kept if (row[0], row[1]) not in {(t, w) for t, w, _ in named}]
    return sorted([*named, *others])


def responses_of(rows: list[tuple[int, int, int]]) -> tb.Responses:
    return tb.Responses.from_rows(rows)


def exact(
    rows: list[tuple[int, int, int]],
    n_classes: int,
    allowed: Callable[[tuple[int, ...]], float] = lambda y: 0.0,
    known: dict[int, int] | None = None,
    units: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda y: y,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of classes and E[θ], (worker, truth, answer), by enumeration."""
    prior = np.ones((n_classes, n_classes)) + (n_classes - 1.0) * np.eye(n_classes)
    priors = np.stack([prior] * 3)
    every = list(enumeration.labellings(N_TASKS, n_classes, known or {}))
    scores = []
    for y in every:
        of_all = enumeration.log_joint(y, rows, np.ones(n_classes), priors)
        # Copies of one task are one draw from the class prior, not several.
        of_units = _log_shares(units(y), n_classes) - _log_shares(y, n_classes)
        scores.append(of_all + of_units + allowed(y))
    weight = np.exp(np.array(scores) - logsumexp(scores))
    q = np.zeros((N_TASKS, n_classes))
    confusion = np.zeros_like(priors)
    for y, chance in zip(every, weight, strict=True):
        q[np.arange(N_TASKS), y] += chance
        counts = priors.copy()
        for task, worker, label in rows:
            counts[worker, y[task], label] += 1.0
        confusion += chance * counts / counts.sum(axis=2, keepdims=True)
    return q, confusion


def _log_shares(y: tuple[int, ...], n_classes: int) -> float:
    return enumeration.log_beta(np.ones(n_classes) + np.bincount(y, minlength=n_classes))


def assert_agrees(
    expected: tuple[np.ndarray, np.ndarray], rows: list[tuple[int, int, int]], **given: Any
) -> None:
    """Compare the means of independent runs with the truth, in standard errors."""
    options = given.pop("options", {})
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", tb.errors.ConvergenceWarning
        )  # one short chain is not to be told
        runs = [_sampler(seed, options).fit(responses_of(rows), **given) for seed in range(N_RUNS)]
    for truth, name in zip(expected, ("probabilities_", "confusion_"), strict=True):
        found = np.stack([getattr(run, name) for run in runs])
        error = found.std(axis=0, ddof=1) / np.sqrt(N_RUNS)
        apart = np.abs(found.mean(axis=0) - truth)
        assert (apart <= MOST_ERRORS * error + 1e-9).all(), (apart / (error + 1e-12)).max()


def _sampler(seed: int, options: dict[str, Any]) -> tb.GibbsSampler:
    return tb.GibbsSampler(n_chains=1, n_warmup=100, n_draws=700, random_state=seed, **options)


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (2, 1), (3, 2)])
def test_it_agrees_with_enumeration(n_classes: int, seed: int) -> None:
    rows = rows_of(n_classes, seed)
    assert_agrees(exact(rows, n_classes), rows)


def test_it_agrees_with_enumeration_with_gold() -> None:
    rows = rows_of(3, 3)
    assert_agrees(exact(rows, 3, known={0: 2, 4: 0}), rows, gold={0: 2, 4: 0})


@pytest.mark.parametrize("n_classes", [2, 3])
def test_hard_links_of_pairs_agree_with_enumeration(n_classes: int) -> None:
    rows = rows_of(n_classes, 4)

    def allowed(y: tuple[int, ...]) -> float:
        return 0.0 if y[0] == y[1] and y[1] != y[2] and y[2] != y[3] else -np.inf

    links = tb.Links.from_pairs(must=[(0, 1)], cannot=[(1, 2), (2, 3)], sampling="pairs")
    assert_agrees(exact(rows, n_classes, allowed), rows, links=links)


def test_duplicates_are_one_draw_from_the_class_prior() -> None:
    rows = rows_of(3, 5)

    def allowed(y: tuple[int, ...]) -> float:
        return 0.0 if y[0] == y[1] == y[2] else -np.inf

    def units(y: tuple[int, ...]) -> tuple[int, ...]:
        return (y[0], *y[3:])

    links = tb.Links.from_pairs(must=[(0, 1), (1, 2)], sampling="duplicates")
    assert_agrees(exact(rows, 3, allowed, units=units), rows, links=links)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_soft_links_agree_with_enumeration(n_classes: int) -> None:
    rows = rows_of(n_classes, 6)
    odds = np.log(0.9 / 0.1)
    pairs = [(0, 1, odds), (1, 2, -odds), (0, 3, odds), (3, 4, odds)]

    def allowed(y: tuple[int, ...]) -> float:
        return enumeration.link_sum(y, pairs)

    links = tb.Links.from_pairs(must=[(0, 1), (0, 3), (3, 4)], cannot=[(1, 2)], sampling="pairs")
    soft = {"link_options": tb.ExactLinkOptions(error=0.1)}
    assert_agrees(exact(rows, n_classes, allowed), rows, links=links, options=soft)


def test_a_component_that_is_cut_into_blocks_agrees_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gibbs, "MOST_LABELLINGS", 9)  # two nodes of three classes at once
    rows = rows_of(3, 7)
    apart = [(0, 1), (1, 2), (2, 3), (3, 4)]

    def allowed(y: tuple[int, ...]) -> float:
        return 0.0 if all(y[i] != y[j] for i, j in apart) else -np.inf

    links = tb.Links.from_pairs(cannot=apart, sampling="pairs")
    assert_agrees(exact(rows, 3, allowed), rows, links=links)


def test_the_seed_says_what_is_drawn() -> None:
    crowd = simulate.crowd(40, 6, 2, responses_per_task=4, random_state=0)
    q = [
        tb.GibbsSampler(random_state=seed).fit(crowd.responses).probabilities_ for seed in (1, 1, 2)
    ]
    assert (q[0] == q[1]).all()
    assert (q[0] != q[2]).any()


def test_chains_in_different_modes_are_reported() -> None:
    """Without a prior that says which class is which, every chain may name them otherwise."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    rows = [
        (t, w, int(truth[t] if rng.random() < 0.9 else 1 - truth[t]))
        for t in range(60)
        for w in range(5)
    ]
    model = tb.GibbsSampler(confusion_prior="uniform", n_chains=8, n_draws=100, n_warmup=50)
    start = tb.MajorityVote().fit(rows)
    start.probabilities_ = np.full((60, 2), 0.5)  # every chain begins anywhere
    with pytest.warns(tb.errors.ConvergenceWarning, match="have not mixed: R-hat is"):
        model.fit(rows, start=start)
    assert not model.converged_
    assert model.r_hat_ > gibbs.MIXED


def test_r_hat_shows_a_drift_within_a_chain() -> None:
    rng = np.random.default_rng(0)
    still = rng.normal(size=(4, 400, 1))
    drifting = still + np.linspace(0.0, 2.0, 400)[None, :, None]
    assert gibbs.r_hat(still)[0] < 1.01
    assert gibbs.r_hat(drifting)[0] > 1.1
    assert gibbs.r_hat(np.ones((4, 400, 1)))[0] == 1.0
    assert np.isinf(gibbs.r_hat(still[:, :3])[0])


def test_labels_break_no_hard_link() -> None:
    crowd = simulate.crowd(60, 6, 3, responses_per_task=2, accuracy=0.5, random_state=3)
    links = simulate.links(crowd.gold, 60, random_state=3)
    model = tb.GibbsSampler(n_draws=300).fit(crowd.responses, links=links)
    assert model.violations_ is not None
    assert len(model.violations_) == 0
    linked = tb.evaluate.accuracy(model.labels_, crowd.gold)
    assert linked > tb.evaluate.accuracy(tb.MajorityVote().fit(crowd.responses).labels_, crowd.gold)


def test_weighted_responses_count_as_often_as_they_weigh() -> None:
    """A weight of 2 is as good as the same answer twice, to every task and class."""
    rows = rows_of(2, 8)
    twice = [row for row in rows for _ in range(2)]
    tasks, workers, labels = (list(each) for each in zip(*rows, strict=True))
    plain = responses_of(rows)
    weighed = tb.Responses.from_codes(
        plain.tasks.codes(tasks),
        plain.workers.codes(workers),
        labels,
        plain.tasks,
        plain.workers,
        plain.classes,
        weight=np.full(len(rows), 2.0),
    )
    q, _ = exact(twice, 2)
    found = tb.GibbsSampler(n_draws=4000, random_state=1).fit(weighed)
    order = weighed.tasks.codes(list(range(N_TASKS)))
    assert np.abs(found.probabilities_[order] - q).max() < 0.02


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 0}, "wrong-value n_draws"),
        ({"n_chains": 0}, "wrong-value n_chains"),
        ({"link_options": tb.MeanFieldOptions()}, "gibbs-link-options"),
        ({"link_options": tb.ExactLinkOptions(error="learn")}, "gibbs-learnt-links"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with refused(tb.errors.OptionError, message):
        tb.GibbsSampler(**options).fit([("a", "w", 0), ("b", "w", 1)])


def test_a_bar_shows_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    tb.GibbsSampler(n_draws=200, progress=True).fit([("a", "w", 0), ("b", "w", 1)])
    assert "drawing" in capsys.readouterr().err
