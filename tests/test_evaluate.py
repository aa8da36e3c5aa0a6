"""Figures against worked numbers, against slow definitions, and on ragged inputs."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from sklearn.metrics import brier_score_loss, f1_score

import tiebreak as tb
from tiebreak import Gold, Labels, Links, evaluate
from tiebreak.errors import InputError, LinkError, OptionError

# The worked example of the specification: 8 tasks, class 3 of 4 occurs nowhere.
TRUTH = np.array([0, 0, 1, 1, 2, 2, 2, 0], np.int32)
GUESS = np.array([0, 1, 1, 1, 2, 0, 2, 0], np.int32)
Q = np.array(
    [
        [0.7, 0.2, 0.1],
        [0.31, 0.58, 0.11],
        [0.2, 0.71, 0.09],
        [0.1, 0.79, 0.11],
        [0.2, 0.21, 0.59],
        [0.5, 0.2, 0.3],
        [0.05, 0.05, 0.9],
        [0.91, 0.05, 0.04],
    ]
)
TASKS = "abcdefgh"
CLASSES = "pqrs"


def labels_of(tasks: str, classes: str, q: np.ndarray) -> Labels:
    """Labels with a probability of each class; the first of the likeliest is the label."""
    likeliest = [classes[k] for k in q.argmax(axis=1)]
    columns = {f"probability_{name}": q[:, k] for k, name in enumerate(classes)}
    return tb.read_labels({"task": list(tasks), "label": likeliest, **columns})


def worked_labels(n_classes: int = 3) -> Labels:
    return labels_of(TASKS, CLASSES[:n_classes], np.pad(Q, ((0, 0), (0, n_classes - 3))))


def worked_gold() -> Gold:
    return tb.read_gold({task: CLASSES[k] for task, k in zip(TASKS, TRUTH, strict=True)})


def plain_labels(**by_task: str) -> Labels:
    """Labels without any probability."""
    return tb.read_labels(by_task)


def test_f_scores_are_those_of_the_worked_example() -> None:
    scored = evaluate.Comparison(TRUTH, GUESS, 4)
    assert scored.accuracy() == pytest.approx(0.75, abs=1e-9)
    assert scored.macro_f("skip") == pytest.approx(0.7555555555555555, abs=1e-9)
    assert scored.macro_f("zero") == pytest.approx(0.5666666666666667, abs=1e-9)
    assert scored.f_by_class() == pytest.approx([2 / 3, 0.8, 0.8, np.nan], abs=1e-9, nan_ok=True)


def test_probability_figures_are_those_of_the_worked_example() -> None:
    scored = evaluate.Comparison(TRUTH, GUESS, 3, Q.max(axis=1), Q)
    assert scored.log_loss() == pytest.approx(0.5046684136808623, abs=1e-9)
    assert scored.brier_score() == pytest.approx(0.2778, abs=1e-9)
    assert scored.calibration_error(15) == pytest.approx(0.2075, abs=1e-9)


def test_functions_on_labels_give_the_same_figures() -> None:
    labels, gold = worked_labels(), worked_gold()
    assert evaluate.f_score(labels, gold) == pytest.approx(0.7555555555555555)
    assert evaluate.f_score(labels, gold, "micro") == evaluate.accuracy(labels, gold) == 0.75
    assert evaluate.f_score(worked_labels(4), gold, absent="zero") == pytest.approx(0.56666667)
    assert evaluate.log_loss(labels, gold) == pytest.approx(0.5046684136808623)
    assert evaluate.brier_score(labels, gold) == pytest.approx(0.2778)
    assert evaluate.calibration_error(labels, gold) == pytest.approx(0.2075)
    assert evaluate.f_by_class(worked_labels(4), gold) == pytest.approx(
        {"p": 2 / 3, "q": 0.8, "r": 0.8}
    )


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
def test_f_scores_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    truth, guess = np.array(pairs, np.int32).T
    scored = evaluate.Comparison(truth, guess, 5)
    every = list(range(5))
    per_class = f1_score(truth, guess, average=None, labels=every, zero_division=0.0)
    assert np.nan_to_num(scored.f_by_class()) == pytest.approx(per_class)
    assert scored.accuracy() == pytest.approx(f1_score(truth, guess, average="micro"))
    assert scored.macro_f() == pytest.approx(f1_score(truth, guess, average="macro"))


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30))
def test_brier_score_of_two_classes_is_twice_the_one_of_scikit_learn(
    rows: list[tuple[bool, float]],
) -> None:
    truth = np.array([is_one for is_one, _ in rows], np.int32)
    one = np.array([p for _, p in rows])
    q = np.stack([1 - one, one], axis=1)
    ours = evaluate.Comparison(truth, truth, 2, None, q).brier_score()
    assert ours == pytest.approx(2 * brier_score_loss(truth, one, pos_label=1), abs=1e-12)


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=40),
    st.integers(1, 20),
)
def test_calibration_error_is_the_weighted_gap_of_the_bins(
    rows: list[tuple[bool, float]], bins: int
) -> None:
    expected = 0.0
    for b in range(bins):
        inside = [(right, p) for right, p in rows if min(math.floor(bins * p), bins - 1) == b]
        if inside:
            share = sum(right for right, _ in inside) / len(inside)
            stated = sum(p for _, p in inside) / len(inside)
            expected += len(inside) / len(rows) * abs(share - stated)
    truth = np.array([right for right, _ in rows], np.int32)
    stated_all = np.array([p for _, p in rows])
    scored = evaluate.Comparison(truth, np.ones_like(truth), 2, stated_all)
    assert scored.calibration_error(bins) == pytest.approx(expected, abs=1e-12)


def test_only_tasks_with_gold_are_scored_and_the_rest_of_gold_is_not_covered() -> None:
    labels = plain_labels(a="x", b="y", c="x")
    figures = evaluate.report(labels, Gold.from_dict({"c": "x", "b": "x", "nowhere": "y"}))
    assert (figures.n_tasks, figures.n_gold) == (2, 3)
    assert figures.coverage == pytest.approx(2 / 3)
    assert figures.accuracy == 0.5


def test_ids_that_do_not_meet_are_an_error_that_shows_both() -> None:
    gold = Gold.from_dict({"task-1": "x"})
    with refused(InputError, "gold-without-labels") as caught:
        evaluate.accuracy(plain_labels(a="x", b="y"), gold)
    assert "same task ids" in str(caught.value)


def test_ids_of_a_file_meet_those_of_a_typed_table() -> None:
    labels = tb.read_labels({"task": [1, 2], "label": [10, 20]})
    assert evaluate.accuracy(labels, Gold.from_dict({"1": "10", "2": "10"})) == 0.5


def test_a_class_that_only_gold_uses_counts_as_a_class() -> None:
    labels = labels_of("ab", "xy", np.array([[0.75, 0.25], [0.25, 0.75]]))
    gold = Gold.from_dict({"a": "x", "b": "new"})
    assert evaluate.f_by_class(labels, gold) == {"x": 1.0, "y": 0.0, "new": 0.0}
    assert evaluate.f_score(labels, gold) == pytest.approx(1 / 3)
    floor = evaluate.LOG_LOSS_FLOOR
    assert evaluate.log_loss(labels, gold) == pytest.approx(-(np.log(0.75) + np.log(floor)) / 2)
    expected = ((0.25**2 + 0.25**2) + (0.25**2 + 0.75**2 + 1.0)) / 2
    assert evaluate.brier_score(labels, gold) == pytest.approx(expected)


def test_tasks_given_to_the_fit_are_not_scored() -> None:
    labels, gold = worked_labels(), worked_gold()
    known = Gold.from_dict({"b": "p", "f": "r", "elsewhere": "p"})  # the two wrong ones
    assert evaluate.accuracy(labels, gold, given=known) == 1.0
    figures = evaluate.report(labels, gold, given=known)
    assert (figures.n_tasks, figures.n_gold, figures.coverage) == (6, 6, 1.0)


def test_gold_that_was_all_given_leaves_nothing_to_score() -> None:
    with refused(InputError, "no-gold-to-score"):
        evaluate.f_score(worked_labels(), worked_gold(), given=worked_gold())


@pytest.mark.parametrize("figure", [evaluate.log_loss, evaluate.brier_score])
def test_figures_that_need_probabilities_say_how_to_get_them(figure: object) -> None:
    assert callable(figure)
    with refused(InputError, "labels-without-probability"):
        figure(plain_labels(a="x"), Gold.from_dict({"a": "x"}))


def test_calibration_needs_only_the_probability_of_the_label() -> None:
    labels = tb.read_labels([("a", "x", 0.75), ("b", "y", 0.75)])
    gold = Gold.from_dict({"a": "x", "b": "x"})
    assert evaluate.calibration_error(labels, gold) == pytest.approx(0.25)
    with refused(InputError, "labels-without-probability"):
        evaluate.calibration_error(plain_labels(a="x"), gold)


def test_the_probability_of_the_label_is_one_of_all_classes() -> None:
    labels = labels_of("ab", "xy", np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert labels.probability is None
    assert evaluate.calibration_error(labels, {"a": "x", "b": "x"}) == pytest.approx(0.25)


def test_wrong_options_are_refused_by_name() -> None:
    labels, gold = worked_labels(), worked_gold()
    with refused(OptionError, "wrong-value average"):
        evaluate.f_score(labels, gold, "mean")  # type: ignore[arg-type]
    with refused(OptionError, "wrong-value absent"):
        evaluate.f_score(labels, gold, absent="drop")  # type: ignore[arg-type]
    with refused(OptionError, "wrong-value bins"):
        evaluate.calibration_error(labels, gold, bins=0)


def test_broken_links_are_counted_as_given_and_in_the_closure() -> None:
    # The worked example of the specification: 5 given, 9 of the closure.
    labels = tb.read_labels({f"t{i}": label for i, label in enumerate("aababacc")})
    must, cannot = [(0, 1), (1, 2), (4, 5)], [(2, 4), (3, 0), (6, 7)]
    rows = [(f"t{i}", f"t{j}", kind) for kind, pairs in (("must", must), ("cannot", cannot))
            for i, j in pairs]  # fmt: skip
    broken = evaluate.violations(labels, Links.from_rows(rows))
    assert (broken.given, broken.closed) == (5, 9)
    assert len(broken.links) == 5


def test_links_to_tasks_without_label_are_an_error() -> None:
    with pytest.raises(LinkError) as caught:
        evaluate.violations(plain_labels(a="x"), Links.from_rows([("a", "z", "must")]))
    assert "'z'" in str(caught.value)


def test_report_holds_every_figure_and_goes_into_json() -> None:
    links = Links.from_rows([("a", "b", "must"), ("a", "h", "must"), ("c", "d", "cannot")])
    figures = evaluate.report(worked_labels(), worked_gold(), links)
    assert figures.macro_f == evaluate.f_score(worked_labels(), worked_gold())
    assert (figures.violated_given, figures.violated_closed) == (2, 3)
    assert None not in figures.to_dict().values()
    assert figures.to_dict()["f_by_class"].keys() == {"p", "q", "r"}
    assert pickle.loads(pickle.dumps(figures)) == figures


def test_report_leaves_out_what_the_labels_do_not_carry() -> None:
    figures = evaluate.report(plain_labels(a="x"), Gold.from_dict({"a": "x"}))
    missing = {name for name, value in figures.to_dict().items() if value is None}
    assert missing == {
        "log_loss", "brier_score", "calibration_error", "violated_given", "violated_closed"
    }  # fmt: skip


def test_tables_are_taken_as_they_are() -> None:
    labels = {"task": ["a", "b"], "label": ["x", "y"]}
    gold = {"task": ["a", "b"], "label": ["x", "x"]}
    links = {"left": ["a"], "right": ["b"], "link": ["must"]}
    figures = evaluate.report(labels, gold, links)
    assert (figures.accuracy, figures.violated_given) == (0.5, 1)


def test_nothing_follows_from_weighted_or_contradicting_links_but_each_counts() -> None:
    labels = plain_labels(a="x", b="x", c="y", d="x")
    links = {
        "left": ["a", "b", "a", "a", "d"],
        "right": ["b", "d", "d", "c", "c"],
        "link": ["must", "must", "cannot", "must", "must"],
        "weight": [None, None, None, 2.0, 1.0],
    }
    broken = evaluate.violations(labels, links)
    # a = b = d hold, so the cannot-link of a and d cannot; c is linked by weight only.
    assert (broken.given, broken.closed) == (3, 3)
    assert sorted(broken.links.pairs()) == [
        ("a", "c", "must"), ("a", "d", "cannot"), ("d", "c", "must")
    ]  # fmt: skip


def test_a_link_given_twice_is_broken_once() -> None:
    rows = [("a", "b", "must"), ("b", "a", "must")]
    broken = evaluate.violations(plain_labels(a="x", b="y"), Links.from_rows(rows))
    assert (broken.given, len(broken.links)) == (1, 1)


def test_the_floor_of_log_loss_is_what_an_impossible_truth_costs() -> None:
    labels = labels_of("ab", "xy", np.array([[1.0, 0.0], [0.5, 0.5]]))
    gold = Gold.from_dict({"a": "y", "b": "x"})
    expected = (-np.log(1e-4) + np.log(2.0)) / 2.0
    assert evaluate.log_loss(labels, gold, floor=1e-4) == pytest.approx(expected)
    with refused(OptionError, "wrong-value floor"):
        evaluate.log_loss(labels, gold, floor=0.0)
