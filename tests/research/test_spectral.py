"""A start from moments: right where moments suffice, majority and a reason where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiebreak as tb
from tiebreak.research import spectral, spectral_start

Rows = list[tuple[str, str, str]]

pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.ConvergenceWarning")


def counted_from_votes(crowd: tb.Responses) -> np.ndarray:
    """Return the confusions that shares of votes imply, (worker, truth, answer)."""
    q = tb.MajorityVote().fit(crowd).probabilities_
    counts = np.zeros((crowd.n_workers, crowd.n_classes, crowd.n_classes))
    np.add.at(counts, (crowd.worker_of_each(), crowd.label_of_each()), q[crowd.task_of_each()])
    return np.asarray((counts / counts.sum(axis=1, keepdims=True)).transpose(0, 2, 1))


def some_confusions(rng: np.random.Generator, n: int, n_classes: int, right: float) -> np.ndarray:
    """Draw confusions [.., truth, answer] that are right with at least this probability."""
    wrong = rng.dirichlet(np.ones(n_classes), size=(n, n_classes))
    return (1.0 - right) * wrong + right * np.eye(n_classes)


# Moments


@given(
    n_classes=st.integers(2, 6),
    seed=st.integers(0, 2**32 - 1),
    n_votes=st.lists(st.floats(0.2, 20.0), min_size=4, max_size=4),
)
@settings(max_examples=40)
def test_exact_moments_give_back_the_groups(
    n_classes: int, seed: int, n_votes: list[float]
) -> None:
    rng = np.random.default_rng(seed)
    columns = some_confusions(rng, 3, n_classes, right=0.4).transpose(0, 2, 1)
    prior = 0.5 / n_classes + 0.5 * rng.dirichlet(np.ones(n_classes))
    # Whatever the joint numbers of votes are, they are factors of the moments.
    pairs = np.einsum("k,ilk,jmk->ijlm", prior, columns, columns)
    pairs *= np.array([[1.0, *n_votes[:2]], [n_votes[0], 1.0, n_votes[2]], [*n_votes[1:3], 1.0]])[
        :, :, None, None
    ]
    triples = n_votes[3] * np.einsum("k,ak,bk,ck->abc", prior, *columns)
    found = spectral.groups_of(pairs, triples, rng)
    assert np.allclose(found.class_prior, prior, atol=1e-5)
    assert np.allclose(found.confusion, columns, atol=1e-5)


def test_moments_are_the_averages_over_tasks() -> None:
    votes = np.random.default_rng(0).integers(0, 3, (3, 50, 4)).astype(float)
    votes[:, 20:30] = 0.0  # tasks without responses count, too
    pairs, triples = spectral.moments(votes)
    assert np.allclose(pairs, np.einsum("anl,bnm->ablm", votes, votes) / 50)
    assert np.allclose(triples, np.einsum("na,nb,nc->abc", *votes) / 50)


def test_votes_are_counted_by_group() -> None:
    rows = [("a", "ann", "x"), ("a", "bob", "y"), ("a", "cat", "x"), ("b", "bob", "x")]
    votes = spectral.count_votes(tb.Responses.from_rows(rows), np.array([0, 1, 0]))
    assert votes.tolist() == [[[2, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 0]]]


@given(st.integers(0, 2**32 - 1), st.integers(3, 12))
@settings(max_examples=30)
def test_groups_have_similarly_many_responses(seed: int, n_workers: int) -> None:
    rng = np.random.default_rng(seed)
    n_each = rng.integers(1, 30, n_workers)
    rows = [(f"t{i}", f"w{w}", "xy"[w % 2]) for w, n in enumerate(n_each) for i in range(n)]
    crowd = tb.Responses.from_rows(rows)
    group = spectral.split_workers(crowd, rng)
    load = np.bincount(group[crowd.worker_of_each()], minlength=3)
    assert load.min() > 0
    assert np.ptp(load) <= n_each.max()


def test_a_worker_with_few_responses_is_lent_those_of_the_group() -> None:
    crowd = tb.simulate.crowd(500, 9, 2, responses_per_task=9, random_state=0).responses
    seldom = [(task, "seldom", "c0") for task in crowd.tasks.take(np.arange(4))]
    joined = tb.Responses.from_columns(
        [*crowd.tasks.take(crowd.task_of_each()), *(row[0] for row in seldom)],
        [*crowd.workers.take(crowd.worker_of_each()), *(row[1] for row in seldom)],
        [*crowd.classes.take(crowd.label_of_each()), *(row[2] for row in seldom)],
    )
    rng = np.random.default_rng(0)
    group = spectral.split_workers(joined, rng)
    votes = spectral.count_votes(joined, group)
    groups = spectral.groups_of(*spectral.moments(votes), rng)
    theta = spectral.worker_confusions(joined, votes, group, groups)
    distance = np.abs(theta - groups.confusion[group]).max(axis=(1, 2))
    assert 0.01 < distance[9] <= 4 / (4 + 10 * 2)  # own responses against ten for each class
    assert distance[:9].max() > 0.1  # the others speak for themselves


# Recovery


@pytest.mark.parametrize("kind", ["even errors", "any errors"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_on_dense_crowds_confusions_are_three_times_closer_than_those_of_votes(
    n_classes: int, kind: str
) -> None:
    drawn = some_confusions(np.random.default_rng(1), 30, n_classes, right=0.3)
    crowd = tb.simulate.crowd(
        2000,
        30,
        n_classes,
        responses_per_task=30,
        confusion=drawn if kind == "any errors" else None,
        random_state=n_classes,
    )
    rng = np.random.default_rng(0)
    group = spectral.split_workers(crowd.responses, rng)
    votes = spectral.count_votes(crowd.responses, group)
    groups = spectral.groups_of(*spectral.moments(votes), rng)
    found = spectral.worker_confusions(crowd.responses, votes, group, groups).transpose(0, 2, 1)
    by_votes = np.abs(counted_from_votes(crowd.responses) - crowd.confusion).mean()
    assert np.abs(found - crowd.confusion).mean() < by_votes / 3.0
    assert np.abs(groups.class_prior - crowd.class_prior).max() < 0.06
    assert np.allclose(found.sum(axis=2), 1.0)


# The best start


@pytest.mark.parametrize(("seed", "winner"), [(6, 0), (13, 1), (34, 2)])
def test_the_start_with_the_highest_bound_wins(seed: int, winner: int) -> None:
    crowd = tb.simulate.crowd(
        600, 30, 3, responses_per_task=6, accuracy=(0.3, 0.7), random_state=seed
    )
    splits = [
        spectral.estimate(crowd.responses, rng)
        for rng in np.random.default_rng(0).spawn(spectral.N_SPLITS)
    ]
    bounds = [
        tb.VariationalBayes(init=q, max_iter=spectral.CANDIDATE_SWEEPS).fit(crowd.responses).bounds_
        for q in (cast("Any", "majority"), *splits)
    ]
    assert np.argmax([each[-1] for each in bounds]) == winner
    assert spectral_start(crowd.responses, random_state=0).bounds_ == bounds[winner]


def test_a_start_with_swapped_classes_is_named_by_what_labels_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = tb.simulate.crowd(400, 9, 3, responses_per_task=9, random_state=0)
    right = spectral.estimate

    def swapped(crowd: tb.Responses, rng: np.random.Generator) -> np.ndarray:
        return np.ascontiguousarray(right(crowd, rng)[:, [1, 2, 0]])

    monkeypatch.setattr(spectral, "estimate", swapped)
    monkeypatch.setattr(spectral, "max", lambda a, b, key: b, raising=False)  # splits always win
    model = spectral_start(crowd.responses, confusion_prior="uniform", random_state=0)
    assert (model.labels_.label == crowd.gold.label).mean() > 0.9


def test_a_start_that_empties_a_class_is_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = tb.simulate.crowd(400, 9, 3, responses_per_task=9, random_state=0)
    right = spectral.estimate

    def without_one(crowd: tb.Responses, rng: np.random.Generator) -> np.ndarray:
        q = right(crowd, rng)
        q[:, 1] += 0.999 * q[:, 2]
        q[:, 2] *= 0.001
        return q

    monkeypatch.setattr(spectral, "estimate", without_one)
    with pytest.warns(tb.InputNote, match="majority: the smallest class seems to have 0 of 400"):
        spectral_start(crowd.responses, confusion_prior="uniform", random_state=0)


def test_the_same_seed_gives_the_same_start_and_another_seed_another_split() -> None:
    crowd = tb.simulate.crowd(
        600, 30, 3, responses_per_task=6, accuracy=(0.3, 0.7), random_state=34
    )
    first, again, other = (spectral_start(crowd.responses, random_state=s) for s in (0, 0, 1))
    assert np.array_equal(first.probabilities_, again.probabilities_)
    assert first.bounds_ == again.bounds_
    assert first.bounds_ != other.bounds_


def test_links_and_gold_follow_a_spectral_start() -> None:
    crowd = tb.simulate.crowd(200, 12, 2, responses_per_task=8, random_state=0)
    links = tb.simulate.links(crowd.gold, 40, random_state=0)
    start = spectral_start(crowd.responses, random_state=0)
    fitted = tb.VariationalBayes().fit(crowd.responses, links=links, start=start)
    plain = tb.VariationalBayes().fit(crowd.responses, links=links)
    assert not fitted.violations_
    assert np.allclose(fitted.probabilities_, plain.probabilities_, atol=1e-3)


# Where moments do not suffice


def rows_of(patterns: str, n: int = 60) -> Rows:
    """Answer n tasks by each pattern: "xy-" means x by the first worker, y by the second."""
    return [
        (f"{pattern} {i}", f"w{w}", label)
        for pattern in patterns.split()
        for i in range(n)
        for w, label in enumerate(pattern)
        if label != "-"
    ]


FAILURES = {
    "2 workers gave responses, and 3 groups": rows_of("xx yy xy"),
    "no task in common": rows_of("x-- y-- -x- -y- --x --y"),
    "do not tell the 2 classes apart .condition number": rows_of("xxx yyx"),
    "contradict each other: .* eigenvalue -": rows_of("xxx yyy xxy yyx -xy -yx x-x y-y"),
    "no task has responses of all three groups": rows_of("xx- yy- x-x y-y -xx -yy"),
    "third moments of the votes show only 1 of 2 classes": rows_of("xxx yy- y-y -yy"),
    "the smallest class seems to have 30 of 60 tasks, .* at least 40": rows_of("xxx yyy", n=30),
    "65 classes, .* at most 64": [
        (f"t{i}", f"w{w}", f"class {i:02}") for i in range(65) for w in range(3)
    ],
}


@pytest.mark.parametrize("reason", FAILURES)
def test_a_crowd_without_a_spectral_start_falls_back_to_majority_and_says_why(reason: str) -> None:
    rows = FAILURES[reason]
    with pytest.warns(tb.InputNote, match=f"so the start is majority: .*{reason}") as told:
        model = spectral_start(rows, random_state=0)
    assert "no-spectral-start" in [getattr(each.message, "code", "") for each in told]
    plain = tb.VariationalBayes(calibrate="none", max_iter=30).fit(rows)
    assert np.array_equal(model.probabilities_, plain.probabilities_)
    assert model.bounds_ == plain.bounds_


def test_noise_that_cannot_be_matched_to_classes_falls_back_and_says_so() -> None:
    rng = np.random.default_rng(94)
    wrong = rng.dirichlet(np.full(4, 0.7), size=(3, 4))
    crowd = tb.simulate.crowd(
        *(800, 3, 4), responses_per_task=3, confusion=0.6 * wrong + 0.4 * np.eye(4), random_state=94
    )
    with pytest.warns(tb.InputNote, match="majority: .* cannot be matched to the classes"):
        model = spectral_start(crowd.responses, random_state=0)
    plain = tb.VariationalBayes(calibrate="none", max_iter=30).fit(crowd.responses)
    assert model.bounds_ == plain.bounds_


@pytest.mark.parametrize(
    "columns",
    [
        [[0.5, 0.6, 0.4], [0.5, 0.4, 0.6], [-0.1, -0.2, -0.1]],  # nobody answers the third
        [[0.8, -0.2, 0.1], [0.1, -0.8, 0.1], [0.1, 0.0, 0.8]],  # less than nothing
    ],
)
def test_components_that_are_no_probabilities_cannot_be_matched(
    columns: list[list[float]],
) -> None:
    found = np.array(columns)
    with pytest.raises(spectral.Unsuited, match="cannot be matched"):
        spectral.match(found, spectral.shares(found))


def test_two_components_never_get_the_same_class() -> None:
    claims = np.array([[0.30, 0.40, 0.1], [0.36, 0.60, 0.1], [0.34, 0.00, 0.8]])
    assert claims.argmax(axis=0).tolist() == [1, 1, 2]  # two claim the second class most
    assert claims.argmax(axis=1).tolist() == [1, 1, 2]  # two classes like the second most
    assert spectral.assign(spectral.shares(claims)).tolist() == [0, 1, 2]


def test_one_split_that_fails_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = tb.simulate.crowd(300, 9, 2, responses_per_task=9, random_state=0)
    once = iter([True, False, False])
    right = spectral.estimate

    def failing(crowd: tb.Responses, rng: np.random.Generator) -> np.ndarray:
        if next(once):
            raise spectral.Unsuited("planted")
        return right(crowd, rng)

    monkeypatch.setattr(spectral, "estimate", failing)
    spectral_start(crowd.responses, random_state=0)  # no note


def test_one_class_needs_no_start() -> None:
    with pytest.warns(tb.InputNote, match="so every task gets it"):
        spectral_start([("a", "ann", "x"), ("b", "bob", "x")])


# Real crowds


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "prior"),
    [("bluebird", "diagonal"), ("rte", "diagonal"), ("dog", "diagonal"), ("web", "uniform")],
)
def test_real_crowds_end_where_they_end_from_majority(
    name: str, prior: str, data_dir: Path
) -> None:
    responses = tb.read_responses(data_dir / name / "responses.csv")
    gold = tb.read_gold(data_dir / name / "gold.csv")
    scores = [
        tb.evaluate.f_score(
            tb.VariationalBayes(confusion_prior=prior).fit(responses, start=start).labels_,
            gold,
            average="macro",
        )
        for start in (None, spectral_start(responses, confusion_prior=prior, random_state=0))
    ]
    assert scores[1] == pytest.approx(scores[0], abs=0.005)
