"""`model.plot`: pictures have the model's own numbers; accuracies and calibration are honest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.errors import NotFittedError, OptionError

CROWD = tb.simulate.crowd(300, 10, 3, random_state=0)
MODEL = tb.VariationalBayes().fit(CROWD.responses)


def number(cell: object) -> float:
    """Read a number as it is written."""
    return float(str(cell).replace(",", "").replace("−", "-").split("\N{NO-BREAK SPACE}")[0])


def workers_of(model: Any) -> dict[object, tuple[Any, ...]]:
    """Return (accuracy, low, high, verdict) of each worker, as drawn."""
    rows = model.plot.workers(most=1000).rows
    return {row[0]: (*(number(cell) / 100 for cell in row[2:5]), str(row[5])) for row in rows}


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
    crowd = tb.simulate.crowd(600, 5, 30, random_state=0)
    chart = tb.VariationalBayes().fit(crowd.responses).plot.confusion()
    assert len(chart.rows) == 12
    assert (chart.header[-1], chart.rows[-1][0]) == ("all others", "all others")
    assert np.allclose([sum(map(number, row[1:])) for row in chart.rows], 1.0, atol=0.06)


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
    assert number(rows[-1][1]) == pytest.approx(MODEL.bounds_[-1], abs=1e-4)
    assert int(str(rows[-1][0])) == MODEL.n_iter_


@pytest.mark.filterwarnings("ignore::tiebreak.errors.ConvergenceWarning")
def test_a_long_climb_is_thinned_with_both_ends_kept() -> None:
    model = tb.VariationalBayes(tol=0.0, max_iter=500, accelerate=False).fit(CROWD.responses)
    rows = model.plot.bound().rows
    assert len(rows) <= 200 < len(model.bounds_)
    assert int(number(rows[-1][0])) == model.n_iter_
    for row, bound in ((rows[0], model.bounds_[0]), (rows[-1], model.bounds_[-1])):
        assert number(row[1]) == pytest.approx(bound, abs=1e-4)


def test_there_is_nothing_to_plot_before_a_fit() -> None:
    plots = tb.VariationalBayes().plot
    for draw in (plots.workers, plots.confusion, plots.calibration, plots.bound):
        with pytest.raises(NotFittedError):
            draw()


# Calibration


def test_the_curve_counts_every_known_label_once() -> None:
    rows = [tuple(map(number, row)) for row in MODEL.plot.calibration(CROWD.gold).rows]
    assert sum(n for *_, n in rows) == 300
    accuracy = sum(right * n for _, right, _, _, n in rows) / 300
    assert accuracy == pytest.approx(tb.evaluate.accuracy(MODEL.labels_, CROWD.gold), abs=1e-3)
    gap = sum(abs(stated - right) * n for stated, right, _, _, n in rows) / 300
    error = tb.evaluate.calibration_error(MODEL.labels_, CROWD.gold, 10)
    assert gap == pytest.approx(error, abs=2e-3)
    assert all(low <= right <= high for _, right, low, high, _ in rows)


def test_gold_that_the_fit_was_given_is_not_proof_of_itself() -> None:
    model = tb.VariationalBayes().fit(CROWD.responses, gold=CROWD.gold)
    assert model.plot.calibration().rows == MODEL.plot.calibration(CROWD.gold).rows


def test_of_truth_only_what_the_fit_has_not_seen_is_compared() -> None:
    known = list(CROWD.gold.to_dict().items())
    model = tb.VariationalBayes().fit(CROWD.responses, gold=dict(known[:100]))
    counts = [number(row[-1]) for row in model.plot.calibration(CROWD.gold).rows]
    assert sum(counts) == 200


# Accuracies of workers


def test_intervals_hold_the_accuracy_and_shrink_with_responses() -> None:
    widths = []
    for n_tasks in (300, 3000):
        crowd = tb.simulate.crowd(n_tasks, 10, 3, random_state=0)
        found = workers_of(tb.VariationalBayes().fit(crowd.responses)).values()
        assert all(low <= accuracy <= high for accuracy, low, high, _ in found)
        widths.append(np.mean([high - low for _, low, high, _ in found]))
    assert widths[1] < 0.5 * widths[0]


def test_intervals_mostly_hold_the_truth() -> None:
    covered = []
    for seed in range(10):
        crowd = tb.simulate.crowd(200, 12, 2, responses_per_task=10, random_state=seed)
        found = workers_of(tb.VariationalBayes().fit(crowd.responses))
        truth = crowd.gold.classes.codes(crowd.responses.classes)[crowd.gold.label]
        right = crowd.responses.label_of_each() == truth[crowd.responses.task_of_each()]
        worker = crowd.responses.worker_of_each()
        share = np.bincount(worker, right) / np.bincount(worker)
        for w, name in enumerate(crowd.responses.workers):
            _, low, high, _ = found[name]
            covered.append(low - 0.001 <= share[w] <= high + 0.001)
    assert np.mean(covered) > 0.9  # the share in the sample is closer than the true rate


def test_guessers_are_named_and_good_workers_are_not() -> None:
    accuracy = np.array([1 / 3, 1 / 3, 0.05, *[0.8] * 9])
    guessers = []
    for seed in range(10):
        crowd = tb.simulate.crowd(600, 12, 3, accuracy=accuracy, random_state=seed)
        model = tb.VariationalBayes(confusion_prior="uniform").fit(crowd.responses)
        verdict = {name: found[-1] for name, found in workers_of(model).items()}
        guessers += [verdict["w01"], verdict["w02"]]
        assert verdict["w03"] == "worse than chance"
        assert {verdict[f"w{k:02d}"] for k in range(4, 13)} == {"better than chance"}
    # An interval of 90 % lies above the truth in one case of twenty, and a little more often.
    assert sum(said in ("no better than chance", "worse than chance") for said in guessers) >= 16


def test_a_worker_with_few_responses_is_not_judged() -> None:
    votes = [(t, w, "x" if t % 2 else "y") for t in range(40) for w in ("ann", "bob")]
    votes += [(t, "eve", "x") for t in range(4)]
    assert workers_of(tb.VariationalBayes().fit(votes))["eve"][-1] == "too few to tell"
