"""Agreement of workers' errors: found where it was put in, not where it was not."""

from __future__ import annotations

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.data import Responses


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.6])
def test_the_correlation_put_in_is_found_with_gold(shared: float) -> None:
    crowd = tb.simulate.crowd(
        3000, 8, 3, responses_per_task=8, accuracy=0.75, shared=shared, random_state=1
    )
    model = tb.VariationalBayes().fit(crowd.responses)
    found = tb.judges.error_dependence(model, crowd.gold)
    assert found.mean_correlation == pytest.approx(shared, abs=0.05)
    low, high = found.interval
    assert low - 0.02 <= shared <= high + 0.02
    off = found.correlation[~np.eye(8, dtype=bool)]
    assert off.mean() == pytest.approx(shared, abs=0.05)
    expected = 8 / (1 + 7 * max(found.mean_correlation, 0.0))
    assert found.effective == pytest.approx(expected)
    assert found.effective_interval[0] <= found.effective <= found.effective_interval[1]


def test_a_pair_is_correlated_as_the_plain_formula_says() -> None:
    """One class, two workers: φ of two columns of 0 and 1 is Pearson's correlation."""
    rng = np.random.default_rng(0)
    errs = rng.random((60, 2)) < 0.4
    rows = [(f"t{i}", f"w{j}", "ab"[int(errs[i, j])]) for i in range(60) for j in range(2)]
    gold = dict.fromkeys((f"t{i}" for i in range(60)), "a")
    model = tb.MajorityVote().fit(Responses.from_rows(rows))
    found = tb.judges.error_dependence(model, gold)
    pearson = np.corrcoef(errs[:, 0], errs[:, 1])[0, 1]
    assert found.correlation[0, 1] == pytest.approx(pearson, abs=1e-12)


def test_without_gold_shared_errors_are_not_seen_and_that_is_said() -> None:
    crowd = tb.simulate.crowd(
        800, 7, 2, responses_per_task=7, accuracy=0.75, shared=0.6, random_state=2
    )
    model = tb.VariationalBayes().fit(crowd.responses)
    blind = tb.judges.error_dependence(model)
    seen = tb.judges.error_dependence(model, crowd.gold)
    assert blind.mean_correlation < seen.mean_correlation - 0.2
    assert "cannot be seen" in str(blind)
    assert "cannot be seen" not in str(seen)


def test_a_copy_is_found_and_good_workers_are_no_copies() -> None:
    crowd = tb.simulate.crowd(400, 6, 4, responses_per_task=6, accuracy=0.8, random_state=3)
    responses = crowd.responses
    label = responses.label_of_each().reshape(-1, 6)
    rows = [
        (responses.tasks[i], f"w{w}", responses.classes[k])
        for i in range(400)
        for w, k in enumerate([*label[i], label[i, 2]])
    ]
    model = tb.VariationalBayes().fit(Responses.from_rows(rows))
    for gold in (crowd.gold, None):
        copies = tb.judges.error_dependence(model, gold).copies
        assert [(each.left, each.right) for each in copies] == [("w2", "w6")]


def test_gold_of_other_tasks_is_refused() -> None:
    crowd = tb.simulate.crowd(20, 5, random_state=0)
    model = tb.MajorityVote().fit(crowd.responses)
    with pytest.raises(tb.InputError):
        tb.judges.error_dependence(model, {"elsewhere": "c0"})
