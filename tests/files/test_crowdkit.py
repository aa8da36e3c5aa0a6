"""Frames of crowd-kit, and what docs/from-crowdkit.md says of its calls."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tiebreak as tb

CROWD = tb.simulate.crowd(80, 9, 3, random_state=1)


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return a frame as crowd-kit's datasets have it."""
    votes = CROWD.responses
    return pd.DataFrame(
        {
            "task": votes.tasks.take(votes.task_of_each()),
            "worker": votes.workers.take(votes.worker_of_each()),
            "label": votes.classes.take(votes.label_of_each()),
        }
    )


@pytest.fixture
def crowdkit() -> Any:
    """Return crowd-kit, where it is installed (requirements/bench.txt)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("crowdkit.aggregation")


def test_a_frame_is_read(frame: pd.DataFrame) -> None:
    found = tb.from_crowdkit(frame)
    assert found.n_responses == len(frame)
    assert sorted(map(str, found.tasks)) == sorted(set(frame["task"]))


def test_the_former_name_of_workers_is_known(frame: pd.DataFrame) -> None:
    found = tb.from_crowdkit(frame.rename(columns={"worker": "performer"}))
    assert list(found.workers) == list(tb.from_crowdkit(frame).workers)


def test_repeated_answers_count_as_often_as_they_are_given() -> None:
    frame = pd.DataFrame({"task": ["a"] * 3, "worker": ["w", "w", "v"], "label": ["x", "x", "y"]})
    with pytest.warns(tb.InputNote, match="each counts as one more"):
        assert tb.from_crowdkit(frame).n_responses == 3
    with pytest.warns(tb.InputNote, match="the last one counts"):
        assert tb.from_crowdkit(frame, repeats="last").n_responses == 2


@pytest.mark.parametrize(
    ("columns", "cause"),
    [
        (["worker", "left", "right", "label"], "comparisons of pairs, which BradleyTerry ranks"),
        (["task", "worker", "text"], "texts, which ROVER and TextRASA merge"),
        (["task", "worker", "segmentation"], "segmentations"),
        (["item", "rater", "answer"], "this one has 'item', 'rater', 'answer'"),
    ],
)
def test_other_frames_are_refused_by_name(columns: list[str], cause: str) -> None:
    with pytest.raises(tb.InputError, match=cause):
        tb.from_crowdkit(pd.DataFrame({name: ["x"] for name in columns}))


def test_the_page_is_right_about_crowdkit(frame: pd.DataFrame, crowdkit: Any) -> None:
    metrics = pytest.importorskip("crowdkit.metrics.data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = crowdkit.DawidSkene(n_iter=200, tol=0.0).fit(frame)
        alpha = metrics.alpha_krippendorff(frame)
        ours = tb.DawidSkene(max_iter=200, tol=0.0, accelerate=False, smoothing=0.0).fit(frame)
    labels = ours.labels_.to_frame("pandas").set_index("task")["label"]
    assert (labels == theirs.labels_[labels.index]).all()
    probas = theirs.probas_.loc[list(ours.tasks_), list(ours.classes_)].to_numpy()
    assert np.abs(probas - ours.probabilities_).max() < 1e-5
    errors = theirs.errors_
    for w, worker in enumerate(ours.workers_):
        for k, answer in enumerate(ours.classes_):
            if (worker, answer) in errors.index:
                there = errors.loc[(worker, answer), list(ours.classes_)].to_numpy()
                assert np.abs(there - ours.confusion_[w, :, k]).max() < 1e-5
    assert tb.judges.krippendorff_alpha(frame, n_resamples=0).value == pytest.approx(alpha)
