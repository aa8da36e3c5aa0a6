"""Simulated crowds: what was asked for is what is drawn, and the same seed draws it again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from tiebreak import Gold, simulate
from tiebreak.errors import OptionError


@given(
    n_tasks=st.integers(1, 30),
    n_workers=st.integers(1, 12),
    n_classes=st.integers(2, 12),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_every_task_gets_as_many_different_workers_as_asked(
    n_tasks: int, n_workers: int, n_classes: int, share: float, seed: int
) -> None:
    each = 1 + round(share * (n_workers - 1))
    drawn = simulate.crowd(
        n_tasks, n_workers, n_classes, responses_per_task=each, random_state=seed
    )
    responses = drawn.responses
    assert (responses.n_tasks, responses.n_workers) == (n_tasks, n_workers)
    assert responses.n_responses == n_tasks * each
    assert np.bincount(responses.task_of_each()).tolist() == [each] * n_tasks
    pairs = set(
        zip(responses.task_of_each().tolist(), responses.worker_of_each().tolist(), strict=True)
    )
    assert len(pairs) == responses.n_responses
    assert responses.label_of_each().min() >= 0
    assert responses.label_of_each().max() < n_classes
    assert list(responses.classes) == sorted(responses.classes, key=str)
    assert drawn.gold.tasks == responses.tasks
    _, first = np.unique(responses.worker_of_each(), return_index=True)
    assert first.tolist() == sorted(first)  # workers stand in order of first appearance


@pytest.mark.parametrize("each", [2, 4])  # both ways to draw: few of five workers, and most
def test_every_set_of_workers_is_equally_likely(each: int) -> None:
    n_tasks, n_workers = 60_000, 5
    responses = simulate.crowd(
        n_tasks, n_workers, responses_per_task=each, random_state=1
    ).responses
    chosen = responses.worker_of_each().reshape(n_tasks, each)
    _, counts = np.unique(chosen, axis=0, return_counts=True)
    sets = list(itertools.combinations(range(n_workers), each))
    assert len(counts) == len(sets)
    expected = n_tasks / len(sets)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_labels_follow_the_confusion_matrices() -> None:
    confusion = np.array(
        [
            [[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]],
            [[0.1, 0.8, 0.1], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]],
        ]
    )
    drawn = simulate.crowd(60_000, 2, 3, responses_per_task=2, confusion=confusion, random_state=0)
    r = drawn.responses
    seen = np.zeros((2, 3, 3))
    np.add.at(seen, (r.worker_of_each(), drawn.gold.label[r.task_of_each()], r.label_of_each()), 1)
    shares = seen / seen.sum(axis=2, keepdims=True)
    assert np.abs(shares - confusion).max() < 0.02
    assert (seen[confusion == 0.0] == 0).all()  # what is impossible never happens
    assert np.allclose(drawn.confusion, confusion, rtol=0, atol=1e-15)


class Fixed:
    """A generator that always draws the same number."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self, size: int) -> np.ndarray:
        return np.full(size, self.number)


@pytest.mark.parametrize(("number", "expected"), [(0.0, 1), (np.nextafter(1.0, 0.0), 2)])
def test_what_is_impossible_is_not_drawn_at_the_very_ends(number: float, expected: int) -> None:
    n_workers = 1000
    theta = np.tile([0.0, 0.5, 0.5, 0.0], (n_workers, 4, 1))
    worker = np.arange(n_workers, dtype=np.int32)
    truth = np.full(n_workers, 3, dtype=np.int32)
    drawn = simulate._draw_labels(theta, worker, truth, Fixed(number))  # type: ignore[arg-type]
    assert set(drawn.tolist()) == {expected}


def test_classes_follow_the_prior_and_bear_the_names_given() -> None:
    drawn = simulate.crowd(
        30_000, 3, 3, responses_per_task=1, class_prior=[0.6, 0.1, 0.3],
        classes=["no", "perhaps", "yes"], random_state=0,
    )  # fmt: skip
    shares = np.bincount(drawn.gold.label) / 30_000
    assert np.abs(shares - drawn.class_prior).max() < 0.02
    assert list(drawn.responses.classes) == ["no", "perhaps", "yes"] == list(drawn.gold.classes)


@pytest.mark.parametrize(
    ("accuracy", "expected"),
    [(0.8, [0.8, 0.8, 0.8]), ((0.9, 0.9), [0.9, 0.9, 0.9]), ([0.5, 0.7, 1.0], [0.5, 0.7, 1.0])],
)
def test_accuracy_may_be_one_number_a_range_or_one_a_worker(
    accuracy: float | tuple[float, float] | list[float], expected: list[float]
) -> None:
    drawn = simulate.crowd(5, 3, 4, responses_per_task=1, accuracy=accuracy, random_state=0)
    diagonal = np.diagonal(drawn.confusion, axis1=1, axis2=2)
    by_name = [int(str(name)[1:]) - 1 for name in drawn.responses.workers]
    assert np.allclose(diagonal, np.array(expected)[by_name, None])
    assert np.allclose(drawn.confusion.sum(axis=2), 1.0)


def test_a_range_of_accuracy_gives_each_worker_their_own() -> None:
    drawn = simulate.crowd(5, 50, accuracy=(0.6, 0.9), random_state=0)
    right = drawn.confusion[:, 0, 0]
    assert len(set(right)) == 50
    assert 0.6 <= right.min() < right.max() <= 0.9


def test_the_same_seed_draws_the_same_crowd_and_another_seed_another() -> None:
    first, again, other = (simulate.crowd(200, random_state=seed) for seed in (7, 7, 8))
    assert np.array_equal(first.responses.label_of_each(), again.responses.label_of_each())
    assert np.array_equal(first.responses.worker_of_each(), again.responses.worker_of_each())
    assert np.array_equal(first.gold.label, again.gold.label)
    assert not np.array_equal(first.responses.label_of_each(), other.responses.label_of_each())


def test_names_are_padded_so_that_sorting_keeps_their_order() -> None:
    responses = simulate.crowd(1000, 10, 11, random_state=0).responses
    assert (responses.tasks[0], responses.tasks[999]) == ("t0001", "t1000")
    assert sorted(map(str, responses.workers))[::9] == ["w01", "w10"]
    assert (responses.classes[0], responses.classes[10]) == ("c00", "c10")


def test_a_crowd_for_known_classes_sorts_them() -> None:
    gold = Gold.from_dict({"a": "z", "b": "y", "c": "z"})
    drawn = simulate.crowd_for(gold, 2, responses_per_task=2, accuracy=1.0, random_state=0)
    assert list(drawn.responses.classes) == ["y", "z"]
    assert drawn.responses.label_of_each().tolist() == [1, 1, 0, 0, 1, 1]
    assert drawn.class_prior.tolist() == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tasks": 0}, "wrong-value n_tasks"),
        ({"n_classes": 1}, "wrong-value n_classes"),
        ({"n_workers": 0}, "wrong-value n_workers"),
        ({"n_workers": 4, "responses_per_task": 5}, "wrong-value responses_per_task"),
        ({"responses_per_task": 0}, "wrong-value responses_per_task"),
        ({"accuracy": 1.5}, "wrong-value accuracy"),
        ({"accuracy": (0.9, 0.6)}, "wrong-value accuracy"),
        ({"accuracy": float("nan")}, "wrong-value accuracy"),
        ({"accuracy": [0.5, 0.6, 0.7]}, "wrong-value accuracy"),
        ({"class_prior": [0.5, 0.6]}, "wrong-value class_prior"),
        ({"class_prior": [1.0]}, "wrong-value class_prior"),
        ({"confusion": np.eye(3)}, "wrong-value confusion"),
        ({"confusion": np.full((2, 2), 0.4)}, "wrong-value confusion"),
        ({"classes": ["b", "a"]}, "wrong-value classes"),
        ({"classes": ["a", "a"]}, "wrong-value classes"),
        ({"classes": ["a"]}, "wrong-value classes"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with refused(OptionError, message):
        simulate.crowd(**{"n_tasks": 10, **options})  # type: ignore[arg-type]


def test_unranking_runs_through_all_pairs_once() -> None:
    n = 50
    left, right = simulate.unrank_pairs(np.arange(n * (n - 1) // 2))
    pairs = sorted(zip(left.tolist(), right.tolist(), strict=True))
    assert pairs == list(itertools.combinations(range(n), 2))


@given(st.integers(2, 2**31))
def test_unranking_is_exact_where_floats_are_not(j: int) -> None:
    first = j * (j - 1) // 2  # the place of (0, j), just after (j - 2, j - 1)
    left, right = simulate.unrank_pairs(np.array([first - 1, first, first + j - 1]))
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [
        (j - 2, j - 1), (0, j), (j - 1, j)
    ]  # fmt: skip


def codes_of(gold: Gold, n: int, **options: float) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Return the pairs linked and, for each, whether it tells the truth."""
    codes = simulate.links(gold, n, random_state=0, **options).on(gold.tasks)
    left, right = codes.left.tolist(), codes.right.tolist()
    truth = gold.label[codes.left] == gold.label[codes.right]
    pairs = [(min(pair), max(pair)) for pair in zip(left, right, strict=True)]
    return pairs, codes.must == truth


def test_links_are_different_pairs_that_tell_the_truth() -> None:
    gold = simulate.crowd(40, n_classes=3, random_state=0).gold
    pairs, honest = codes_of(gold, 500)
    assert len(set(pairs)) == 500
    assert all(i < j for i, j in pairs)
    assert honest.all()


def test_all_pairs_can_be_linked_but_not_one_more() -> None:
    gold = simulate.crowd(20, random_state=0).gold
    pairs, _ = codes_of(gold, 190)
    assert len(set(pairs)) == 190
    with refused(OptionError, "wrong-value n"):
        simulate.links(gold, 191)
    assert len(simulate.links(gold, 0)) == 0


def test_as_many_links_are_wrong_as_asked() -> None:
    gold = simulate.crowd(1000, random_state=0).gold
    assert codes_of(gold, 10_000, wrong=0.3)[1].mean() == pytest.approx(0.7, abs=0.02)
    assert not codes_of(gold, 100, wrong=1.0)[1].any()
    with refused(OptionError, "wrong-value wrong"):
        simulate.links(gold, 1, wrong=1.1)


def test_links_among_a_million_tasks_need_no_list_of_pairs() -> None:
    n = 1_000_000
    gold = simulate.crowd(n, 1, responses_per_task=1, random_state=0).gold
    assert len(simulate.links(gold, 100, random_state=0)) == 100


def test_shared_errors_coincide_and_leave_each_workers_accuracy() -> None:
    """Given the class, errors of two workers correlate by about `shared`, with two classes too."""
    for n_classes in (2, 4):
        right = np.array([0.6, 0.7, 0.8, 0.8])
        drawn = simulate.crowd(
            20_000, 4, n_classes, responses_per_task=4, accuracy=right, shared=0.5, random_state=1
        )
        responses = drawn.responses
        label = responses.label_of_each().reshape(-1, 4)
        assert (responses.worker_of_each().reshape(-1, 4) == np.arange(4)).all()
        errs = label != drawn.gold.label[:, None]
        assert np.abs(1.0 - errs.mean(axis=0) - right).max() < 0.015
        assert abs(np.corrcoef(errs[:, 2], errs[:, 3])[0, 1] - 0.5) < 0.03
        both = errs[:, 2] & errs[:, 3]
        same = (label[both, 2] == label[both, 3]).mean()
        assert same > 0.75


def test_without_shared_errors_a_crowd_is_what_it_was() -> None:
    plain = simulate.crowd(50, 5, 3, random_state=4)
    zero = simulate.crowd(50, 5, 3, shared=0.0, random_state=4)
    assert np.array_equal(plain.responses.code, zero.responses.code)


def test_shared_keeps_confusions_that_differ_by_worker() -> None:
    rng = np.random.default_rng(0)
    theta = rng.dirichlet([2.0, 1.0, 1.0], size=(3, 3))
    drawn = simulate.crowd(
        30_000, 3, 3, responses_per_task=3, confusion=theta, shared=1.0, random_state=2
    )
    label = drawn.responses.label_of_each().reshape(-1, 3)
    for w in range(3):
        for k in range(3):
            found = np.bincount(label[drawn.gold.label == k, w], minlength=3)
            assert np.abs(found / found.sum() - drawn.confusion[w, k]).max() < 0.02


def test_a_share_that_is_no_probability_is_refused() -> None:
    with refused(OptionError, "wrong-value shared"):
        simulate.crowd(10, 5, shared=1.5)
