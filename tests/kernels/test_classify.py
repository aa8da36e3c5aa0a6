"""Labels by workers as they are known: compiled ones are those of the reference."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.test_tasks import assert_same, some_crowd

from tiebreak.kernels import compiled, layout, reference
from tiebreak.kernels.contract import Backend

DEPENDENCE = 0.35
MULTIPLIER = 0.8


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 20, 43])
def test_compiled_labels_equal_the_reference(
    n_classes: int, weights: bool, n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "RESPONSES_PER_CHUNK", 500)  # several chunks
    tasks, _, log_prior, log_table = some_crowd(n_classes, 700, 20, weights=weights)
    q, label, top = compiled.classify(
        tasks, log_prior, log_table, n_classes, DEPENDENCE, MULTIPLIER, n_threads
    )
    expected = reference.classify(tasks, log_prior, log_table, n_classes, DEPENDENCE, MULTIPLIER)
    assert_same(q, expected[0])
    assert np.array_equal(label, expected[1])
    assert_same(top, expected[2])
    assert label.dtype == np.int32
    assert np.array_equal(top, q.max(axis=1))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("n_classes", "n_states"), [(1, 3), (2, 4), (2, 20), (4, 20), (11, 22)])
def test_compiled_labels_of_classes_with_subtypes_equal_the_reference(
    n_classes: int, n_states: int, sparse: bool
) -> None:
    tasks, _, log_prior, log_table = some_crowd(n_states, 700, 20, sparse=sparse)
    scores = reference.score_tasks(tasks, log_prior, log_table)
    has_class = np.isfinite(scores).any(axis=1)
    part = layout.part_of(tasks, np.flatnonzero(has_class).astype(np.int32), n_states)
    logs = log_prior, log_table
    q, label, top = compiled.classify(part, *logs, n_classes, DEPENDENCE, MULTIPLIER)
    expected = reference.classify(part, *logs, n_classes, DEPENDENCE, MULTIPLIER)
    assert q.shape == (len(part.role), n_classes)
    assert_same(q, expected[0])
    assert np.array_equal(label, expected[1])
    assert_same(top, expected[2])
    few = np.exp(scores[has_class].reshape(len(q), n_classes, -1)).sum(axis=2)
    by_hand = (
        few ** (MULTIPLIER / (1.0 + DEPENDENCE * np.maximum(np.diff(part.start) - 1, 0)))[:, None]
    )
    assert np.abs(q - by_hand / by_hand.sum(axis=1, keepdims=True)).max() < 1e-9


@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_classes_that_are_impossible_have_no_share(n_classes: int) -> None:
    tasks, _, log_prior, log_table = some_crowd(n_classes, 700, 20, sparse=True)
    scores = reference.score_tasks(tasks, log_prior, log_table)
    has_class = np.isfinite(scores).any(axis=1)
    assert not has_class.all()
    with np.errstate(invalid="ignore"):
        expected = reference.classify(
            tasks, log_prior, log_table, n_classes, DEPENDENCE, MULTIPLIER
        )
    q, label, top = compiled.classify(
        tasks, log_prior, log_table, n_classes, DEPENDENCE, MULTIPLIER
    )
    assert_same(q[has_class], expected[0][has_class])
    assert (q[has_class] == 0.0).any()
    assert np.array_equal(label, expected[1])
    assert np.isnan(q[~has_class]).all()  # as in the reference: nothing can be said
    assert np.isnan(top[~has_class]).all()
    assert np.isnan(expected[2][~has_class]).all()


@pytest.mark.parametrize("n_classes", [2, 3, 4, 10, 20])
@pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
def test_the_first_of_equally_likely_classes_is_the_label(backend: Backend, n_classes: int) -> None:
    tasks, _, log_prior, log_table = some_crowd(n_classes, 700, 20)
    tied = np.zeros_like(log_table)
    tied[:, 0] = -1.0  # all but the first are alike
    q, label, top = backend.classify(tasks, np.zeros_like(log_prior), tied, n_classes, 0.35, 1.0)
    has_responses = np.diff(tasks.start) > 0
    assert (label[has_responses] == 1).all()
    assert (label[~has_responses] == 0).all()
    assert np.array_equal(top, q.max(axis=1))
    hardly = np.zeros_like(log_table)
    hardly[:, -1] = 1e-18  # less than any probability can show
    q, label, _ = backend.classify(tasks, np.zeros_like(log_prior), hardly, n_classes, 0.35, 1.0)
    assert (label == 0).all()


def test_scores_count_for_less_where_there_are_more_responses() -> None:
    start = np.array([0, 1, 4], dtype=np.int64)
    code = np.zeros(4, dtype=np.int32)
    tasks = layout.lay_out(start, code, np.zeros(2, dtype=np.int8), 2, 2)
    table = np.array([[1.0, 0.0], [0.0, 1.0]])
    for backend in (reference, compiled):
        q, label, _ = backend.classify(tasks, np.zeros(2), table, 2, 0.25, 2.0)
        odds = np.log(q[:, 0] / q[:, 1])
        assert_same(odds, np.array([2.0, 2.0 * 3.0 / 1.5]))
        assert label.tolist() == [0, 0]
