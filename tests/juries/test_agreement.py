"""Agreement against published worked examples, other packages, and plain loops."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np
import pytest
from scipy.stats import t as student

import tiebreak as tb
from tiebreak import Responses
from tiebreak.judges import (
    agreement_report,
    cohen_kappas,
    count_labels,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from tiebreak.simulate import crowd

Level = Literal["nominal", "ordinal"]

# K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections A, B and C.
BINARY = ["0100000000", "1110010100"]
MEG_AND_OWEN = ["aabbdcccedda", "babbbccceddd"]
FOUR_OBSERVERS = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]

# J. L. Fleiss, Measuring nominal scale agreement among many raters (1971), table 1.
FLEISS = """
0 0 0 6 0|0 3 0 0 3|0 1 4 0 1|0 0 0 0 6|0 3 0 3 0|2 0 4 0 0|0 0 4 0 2|2 0 3 1 0|2 0 0 4 0
0 0 0 0 6|1 0 0 5 0|1 1 0 4 0|0 3 3 0 0|1 0 0 5 0|0 2 0 3 1|0 0 5 0 1|3 0 0 1 2|5 1 0 0 0
0 2 0 4 0|1 0 2 0 3|0 0 0 0 6|0 1 0 5 0|0 2 0 1 3|2 0 0 4 0|1 0 0 4 1|0 5 0 1 0|4 0 0 0 2
0 2 0 4 0|1 0 5 0 0|0 0 0 0 6
"""


def rows_of(coders: list[str]) -> list[tuple[str, str, str]]:
    return [
        (f"u{unit}", f"w{coder}", value)
        for coder, values in enumerate(coders)
        for unit, value in enumerate(values)
        if value != "."
    ]


def fleiss_example() -> Responses:
    tasks = FLEISS.strip().replace("\n", "|").split("|")
    rows = []
    for t, counts in enumerate(tasks):
        labels = [k for k, n in enumerate(counts.split()) for _ in range(int(n))]
        rows += [(t, w, label) for w, label in enumerate(labels)]
    return Responses.from_rows(rows)


@pytest.mark.parametrize(
    ("coders", "level", "published"),
    [
        (BINARY, "nominal", 0.0952),  # printed as 0.095
        (MEG_AND_OWEN, "nominal", 0.6920),  # 0.692
        (FOUR_OBSERVERS, "nominal", 0.7434),  # 0.743
        (FOUR_OBSERVERS, "ordinal", 0.8154),  # 0.815
    ],
)
def test_alpha_equals_the_published_examples(
    coders: list[str], level: Level, published: float
) -> None:
    counts = count_labels(tb.read_responses(rows_of(coders)))
    assert krippendorff_alpha(counts, level).value == pytest.approx(published, abs=5e-5)


def test_fleiss_kappa_equals_the_published_example() -> None:
    counts = count_labels(fleiss_example())
    assert counts.table.sum(axis=0) == pytest.approx([26, 26, 30, 55, 43])
    assert fleiss_kappa(counts) == pytest.approx(0.4302, abs=5e-5)  # printed as 0.430
    assert percent_agreement(counts) == pytest.approx(0.5556, abs=5e-5)  # 0.555


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_alpha_equals_the_package_krippendorff(level: Level) -> None:
    package = pytest.importorskip("krippendorff")
    random = np.random.default_rng(3)
    for _ in range(30):
        table = random.integers(0, 5, (6, 25)).astype(float)
        table[random.random(table.shape) < 0.4] = np.nan
        rows = [(u, w, int(table[w, u])) for w, u in np.argwhere(~np.isnan(table)).tolist()]
        ours = krippendorff_alpha(count_labels(tb.read_responses(rows)), level)
        theirs = package.alpha(reliability_data=table, level_of_measurement=level)
        assert ours.value == pytest.approx(theirs, abs=1e-12)


def test_alpha_equals_the_sum_over_all_pairs_of_labels() -> None:
    rows = rows_of(FOUR_OBSERVERS)
    by_task: dict[str, list[int]] = {}
    for task, _, label in rows:
        by_task.setdefault(task, []).append(int(label))
    units = [labels for labels in by_task.values() if len(labels) > 1]
    pooled = [label for labels in units for label in labels]
    observed = sum(
        sum(a != b for a, b in itertools.permutations(labels, 2)) / (len(labels) - 1)
        for labels in units
    )
    expected = sum(a != b for a, b in itertools.permutations(pooled, 2)) / (len(pooled) - 1)
    found = krippendorff_alpha(count_labels(tb.read_responses(rows)))
    assert found.value == pytest.approx(1 - observed / expected, abs=1e-12)


def test_cohen_kappa_equals_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    drawn = crowd(60, 5, 3, responses_per_task=3, random_state=1).responses
    found = cohen_kappas(drawn)
    label = np.full((drawn.n_workers, drawn.n_tasks), -1)
    label[drawn.worker_of_each(), drawn.task_of_each()] = drawn.label_of_each()
    assert len(found.first) == 10
    for a, b, n, kappa in zip(found.first, found.second, found.n_shared, found.kappa, strict=True):
        both = (label[a] >= 0) & (label[b] >= 0)
        assert n == both.sum()
        theirs = metrics.cohen_kappa_score(label[a, both], label[b, both])
        assert kappa == pytest.approx(theirs, abs=1e-12)


def test_the_interval_covers_the_alpha_of_the_tasks_that_it_was_drawn_from() -> None:
    everything = crowd(20_000, 50, 3, random_state=0).responses
    labels = everything.label_of_each().reshape(20_000, -1)
    whole = krippendorff_alpha(count_labels(everything)).value
    random = np.random.default_rng(0)
    inside = 0
    for _ in range(60):
        few = labels[random.choice(20_000, 150, replace=False)]
        rows = [(t, w, int(k)) for (t, w), k in np.ndenumerate(few)]
        found = krippendorff_alpha(count_labels(tb.read_responses(rows)))
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= whole <= found.high
    assert 52 <= inside <= 60  # 57 are expected


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_the_interval_is_the_jackknife(level: Level) -> None:
    rows = rows_of(FOUR_OBSERVERS)
    found = krippendorff_alpha(tb.read_responses(rows), level)
    tasks = sorted({task for task, *_ in rows if sum(task == each[0] for each in rows) > 1})
    left = [
        krippendorff_alpha(tb.read_responses([r for r in rows if r[0] != out]), level).value
        for out in tasks
    ]
    n = len(tasks)
    error = math.sqrt((n - 1) / n * sum((each - np.mean(left)) ** 2 for each in left))
    half = error * float(student.ppf(0.975, n - 1))
    assert found.low == pytest.approx(found.value - half)


def test_labels_that_are_numbers_are_ordered_by_size_not_as_text() -> None:
    rows = rows_of(["112a2a", "212a2a"])
    rows = [(task, worker, label.replace("a", "10")) for task, worker, label in rows]
    found = agreement_report(rows)
    assert found.alpha_ordinal is not None
    same = agreement_report(rows, order=["1", "2", "10"]).alpha_ordinal
    other = agreement_report(rows, order=["1", "10", "2"]).alpha_ordinal
    assert same is not None
    assert other is not None
    assert found.alpha_ordinal.value == same.value != other.value


def test_order_must_name_every_class_once() -> None:
    rows = [("a", "x", "lo"), ("a", "y", "hi")]
    with pytest.raises(tb.errors.OptionError) as refused:
        agreement_report(rows, order=["lo"])
    assert refused.value.code == "order-not-classes"
    assert refused.value.fields == {"classes": ("hi", "lo"), "order": ("lo",)}


def test_one_class_only_has_no_alpha() -> None:
    found = agreement_report([("a", "x", 1), ("a", "y", 1)])
    assert math.isnan(found.alpha.value)
    assert math.isnan(found.fleiss_kappa)
    assert found.percent == 1.0


def test_spammers_and_copies_are_found_and_nobody_else() -> None:
    drawn = crowd(400, 12, 3, responses_per_task=8, accuracy=(0.7, 0.9), random_state=5).responses
    rows = [
        (int(t), int(w), int(k))
        for t, w, k in zip(
            drawn.task_of_each(), drawn.worker_of_each(), drawn.label_of_each(), strict=True
        )
    ]
    random = np.random.default_rng(0)
    rows += [(t, 100, int(random.integers(3))) for t in range(0, 400, 4)]  # guesses
    rows += [(t, 101, 0) for t in range(1, 400, 4)]  # always the same
    rows += [(t, 102, k) for t, w, k in rows if w == 3]  # copies worker 3
    found = agreement_report(rows)
    assert {found.workers[each.worker] for each in found.spam} == {100, 101}
    pairs = [{found.workers[each.first], found.workers[each.second]} for each in found.copies]
    assert pairs == [{3, 102}]


def test_an_honest_crowd_has_no_suspects() -> None:
    for seed in range(5):
        drawn = crowd(500, 30, 4, responses_per_task=6, random_state=seed).responses
        found = agreement_report(drawn)
        assert not found.spam
        assert not found.copies
