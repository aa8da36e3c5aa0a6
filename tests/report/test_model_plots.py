"""`model.plot`: pictures have the model's own numbers; accuracies and calibration are honest."""

from __future__ import annotations

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.errors import NotFittedError, OptionError
from tiebreak.report.accuracy import (
    CHANCE,
    RELIABLE,
    TOO_FEW,
    WORSE,
    calibration_curve,
    labels_to_score,
    worker_accuracy,
)
from tiebreak.report.plots import MOST_CLASSES, MOST_POINTS, OTHERS, merge_rare_classes, thinned

CROWD = tb.simulate.crowd(300, 10, 3, random_state=0)
MODEL = tb.VariationalBayes().fit(CROWD.responses)


def test_a_confusion_matrix_has_the_models_numbers() -> None:
    worker = MODEL.workers_[2]
    chart = MODEL.plot.confusion(worker)
    assert str(worker) in chart.title
    shown = [[float(str(cell)) for cell in row[1:]] for row in chart.rows]
    assert np.allclose(shown, MODEL.confusion_[2], atol=0.0051)
    assert chart.header == ("true class", *map(str, MODEL.classes_))


def test_without_a_worker_it_is_what_responses_say_on_average() -> None:
    shown = [[float(str(c)) for c in row[1:]] for row in MODEL.plot.confusion().rows]
    given = np.bincount(CROWD.responses.worker_of_each())
    average = np.average(MODEL.confusion_, axis=0, weights=given)
    assert np.allclose(shown, average, atol=0.0051)


def test_rare_classes_are_put_together_and_rows_still_sum_to_one() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(30), size=30)
    prior = rng.dirichlet(np.ones(30))
    names, merged = merge_rare_classes([str(k) for k in range(30)], prior, matrix)
    assert len(names) == MOST_CLASSES
    assert names[-1] == OTHERS
    assert np.allclose(merged.sum(axis=1), 1.0)


def test_workers_come_worst_first_and_all_of_few() -> None:
    rows = MODEL.plot.workers().rows
    shown = [float(str(row[2]).split()[0]) for row in rows]
    assert shown == sorted(shown)
    assert {row[0] for row in rows} == set(map(str, MODEL.workers_))


def test_of_many_workers_the_worst_and_the_busiest_are_drawn() -> None:
    chart = MODEL.plot.workers(most=4)
    assert len(chart.rows) == 4
    assert "4 of 10 workers" in chart.description
    with pytest.raises(OptionError):
        MODEL.plot.workers(most=0)


def test_the_bound_is_the_models() -> None:
    rows = MODEL.plot.bound().rows
    assert len(rows) == len(MODEL.bounds_)
    last = float(str(rows[-1][1]).replace(",", "").replace("−", "-"))
    assert last == pytest.approx(MODEL.bounds_[-1], abs=1e-4)
    assert int(str(rows[-1][0])) == MODEL.n_iter_


def test_a_long_climb_is_thinned_with_both_ends_kept() -> None:
    bounds = np.linspace(-900.0, -100.0, 5000).tolist()
    points = thinned(bounds, 4999)
    assert len(points) <= MOST_POINTS
    assert points[0] == (0, -900.0)
    assert points[-1] == (4999, -100.0)


def test_there_is_nothing_to_plot_before_a_fit() -> None:
    plots = tb.VariationalBayes().plot
    for draw in (plots.workers, plots.confusion, plots.calibration, plots.bound):
        with pytest.raises(NotFittedError):
            draw()


# Calibration


def test_the_curve_counts_every_known_label_once() -> None:
    points = calibration_curve(MODEL.labels_, CROWD.gold)
    right = sum(point["right"] * point["n"] for point in points)
    assert sum(point["n"] for point in points) == 300
    assert right / 300 == pytest.approx(tb.evaluate.accuracy(MODEL.labels_, CROWD.gold))
    assert all(point["low"] <= point["right"] <= point["high"] for point in points)


def test_its_gaps_are_those_of_the_calibration_error() -> None:
    points = calibration_curve(MODEL.labels_, CROWD.gold, bins=15)
    gap = sum(abs(point["stated"] - point["right"]) * point["n"] for point in points) / 300
    assert gap == pytest.approx(tb.evaluate.calibration_error(MODEL.labels_, CROWD.gold))


def test_gold_that_the_fit_was_given_is_not_proof_of_itself() -> None:
    model = tb.VariationalBayes().fit(CROWD.responses, gold=CROWD.gold)
    found = labels_to_score(model)
    assert found is not None
    assert found.is_fitted_again
    assert found.labels.label.tolist() == MODEL.labels_.label.tolist()
    assert model.plot.calibration().rows == MODEL.plot.calibration(CROWD.gold).rows


def test_of_truth_only_what_the_fit_has_not_seen_is_compared() -> None:
    known = list(CROWD.gold.to_dict().items())
    model = tb.VariationalBayes().fit(CROWD.responses, gold=dict(known[:100]))
    found = labels_to_score(model, CROWD.gold)
    assert found is not None
    assert list(found.gold.tasks) == [task for task, _ in known[100:]]


# Accuracies of workers


def test_intervals_hold_the_accuracy_and_shrink_with_responses() -> None:
    few = worker_accuracy(tb.VariationalBayes().fit(CROWD.responses))
    many_crowd = tb.simulate.crowd(3000, 10, 3, random_state=0)
    many = worker_accuracy(tb.VariationalBayes().fit(many_crowd.responses))
    for found in (few, many):
        assert (found.low <= found.accuracy).all()
        assert (found.accuracy <= found.high).all()
    assert (many.high - many.low).mean() < 0.5 * (few.high - few.low).mean()


def test_intervals_mostly_hold_the_truth() -> None:
    covered = []
    for seed in range(10):
        crowd = tb.simulate.crowd(200, 12, 2, responses_per_task=10, random_state=seed)
        found = worker_accuracy(tb.VariationalBayes().fit(crowd.responses))
        truth = crowd.gold.classes.codes(crowd.responses.classes)[crowd.gold.label]
        right = crowd.responses.label_of_each() == truth[crowd.responses.task_of_each()]
        worker = crowd.responses.worker_of_each()
        share = np.bincount(worker, right) / np.bincount(worker)
        covered.append(((found.low <= share) & (share <= found.high)).mean())
    assert np.mean(covered) > 0.9  # the share in the sample is closer than the true rate


def test_guessers_are_named_and_good_workers_are_not() -> None:
    accuracy = np.array([1 / 3, 1 / 3, 0.05, *[0.8] * 9])
    guessers = []
    for seed in range(10):
        crowd = tb.simulate.crowd(600, 12, 3, accuracy=accuracy, random_state=seed)
        model = tb.VariationalBayes(confusion_prior="uniform").fit(crowd.responses)
        verdict = dict(zip(model.workers_, worker_accuracy(model).verdict, strict=True))
        guessers += [verdict["w01"], verdict["w02"]]
        assert verdict["w03"] == WORSE
        assert {verdict[f"w{k:02d}"] for k in range(4, 13)} == {RELIABLE}
    # An interval of 90 % lies above the truth in one case of twenty, and a little more often.
    assert sum(said in (CHANCE, WORSE) for said in guessers) >= 16


def test_a_worker_with_few_responses_is_not_judged() -> None:
    votes = [(t, w, "x" if t % 2 else "y") for t in range(40) for w in ("ann", "bob")]
    votes += [(t, "eve", "x") for t in range(4)]
    model = tb.VariationalBayes().fit(votes)
    verdict = dict(zip(model.workers_, worker_accuracy(model).verdict, strict=True))
    assert verdict["eve"] == TOO_FEW
