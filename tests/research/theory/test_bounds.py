"""The recursion, its versions, and what it says when it says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from tiebreak.errors import LinkError, OptionError
from tiebreak.research import theory


def crowd_of(**changed: Any) -> theory.Assumptions:
    values: dict[str, Any] = {
        "class_prior": [0.5, 0.5],
        "confusion": [[0.9, 0.1], [0.12, 0.88]],
        "n_tasks": 20_000,
        "n_workers": 60,
        "failure_probability": 0.1,
        "start": theory.AssumedStart(
            class_prior_error=0.02, confusion_error=0.015, label_error=0.05
        ),
    }
    return theory.Assumptions(**(values | changed))


# What the bounds depend on


def test_kinds_of_workers_are_worth_as_many_single_workers() -> None:
    matrices = [[[0.9, 0.1], [0.12, 0.88]], [[0.85, 0.15], [0.1, 0.9]]]
    rates = [0.9, 1.0]
    kinds = crowd_of(confusion=matrices, n_workers=[30, 40], response_rate=rates, most_responses=65)
    apart = crowd_of(
        confusion=np.repeat(matrices, [30, 40], axis=0),
        n_workers=1,
        response_rate=np.repeat(rates, [30, 40]),
        most_responses=65,
    )
    ours = theory.bounds(kinds)
    theirs = theory.bounds(apart)
    assert not ours.vacuous
    np.testing.assert_allclose(ours.label_exponent, theirs.label_exponent, rtol=1e-9)
    np.testing.assert_allclose(ours.confusion_error, theirs.confusion_error, rtol=1e-9)
    assert ours.evidence_failure == pytest.approx(theirs.evidence_failure)


def test_renaming_classes_changes_nothing() -> None:
    crowd = crowd_of(class_prior=[0.4, 0.6])
    swapped = crowd_of(class_prior=[0.6, 0.4], confusion=[[0.88, 0.12], [0.1, 0.9]])
    ours = theory.bounds(crowd)
    theirs = theory.bounds(swapped)
    assert not ours.vacuous
    np.testing.assert_allclose(ours.label_exponent, theirs.label_exponent)


@given(
    n_workers=st.integers(1, 80),
    n_tasks=st.integers(1, 50_000),
    accuracy=st.floats(0.51, 0.99),
    rate=st.floats(0.05, 1.0),
    version=st.sampled_from(["sharp", "plain"]),
)
def test_bounds_are_probabilities_whatever_the_crowd(
    n_workers: int, n_tasks: int, accuracy: float, rate: float, version: str
) -> None:
    confusion = [[accuracy, 1 - accuracy], [1 - accuracy, accuracy]]
    crowd = crowd_of(n_workers=n_workers, n_tasks=n_tasks, confusion=confusion, response_rate=rate)
    found = theory.bounds(crowd, n_iter=3, version=version)
    for errors in (found.label_error, found.class_prior_error, found.confusion_error):
        assert ((errors >= 0) & (errors <= 1)).all()
    assert found.vacuous == str(found).startswith("vacuous: ")


def test_a_rougher_start_never_helps() -> None:
    exponents = [
        theory.bounds(
            crowd_of(start=theory.AssumedStart(confusion_error=error)), n_iter=1, threshold=0.3
        ).label_exponent[0]
        for error in (0.0, 0.01, 0.02, 0.05, 0.2)
    ]
    assert np.all(np.diff(exponents) <= 0)
    assert exponents[-1] == -np.inf


def test_more_responses_at_once_never_help() -> None:
    free = crowd_of(response_rate=0.9)
    capped = crowd_of(response_rate=0.9, most_responses=56)
    ours, theirs = (theory.bounds(crowd, n_iter=1, threshold=0.3) for crowd in (capped, free))
    assert ours.label_exponent[0] > theirs.label_exponent[0] + 0.5


def test_the_best_threshold_is_at_least_as_good_as_any() -> None:
    crowd = crowd_of()
    best = theory.bounds(crowd)
    for threshold in (0.1, 0.3, 0.5):
        assert best.worst_label_error <= theory.bounds(crowd, threshold=threshold).worst_label_error


def test_the_sharp_bounds_are_far_smaller_than_the_plain_ones() -> None:
    crowd = crowd_of(n_workers=800, n_tasks=300_000, confusion=[[0.9, 0.1], [0.1, 0.9]])
    plain = theory.bounds(crowd, version="plain")
    sharp = theory.bounds(crowd, threshold=0.5)
    assert not plain.vacuous
    assert sharp.label_exponent[-1] > 1.5 * plain.label_exponent[-1]
    assert sharp.evidence_failure < plain.evidence_failure


# Links


def linked(**changed: Any) -> theory.LinkedTasks:
    values: dict[str, Any] = {"must": [1], "cannot": [[0, 1]], "truth": [0], "strength": 2.0}
    return theory.LinkedTasks(**(values | changed))


def test_links_lower_the_bound_of_linked_tasks_and_of_parameters() -> None:
    crowd = crowd_of()
    alone = theory.bounds(crowd, threshold=0.3)
    found = theory.bounds(crowd, links=linked(n_tasks=15_000), threshold=0.3)
    gain = found.label_error[1:] / found.linked_label_error[1:]
    np.testing.assert_allclose(gain, np.exp(2.0 * 2.0), rtol=1e-3)  # two links, strength 2
    assert (found.class_prior_error < alone.class_prior_error).all()
    assert found.linked_label_error[-1] < alone.label_error[-1]


def test_where_every_task_is_linked_the_unlinked_bound_does_not_count() -> None:
    found = theory.bounds(crowd_of(), links=linked(n_tasks=20_000))
    assert found.worst_label_error == found.linked_label_error[-1] < found.label_error[-1]


def test_the_least_supported_kind_sets_the_bound() -> None:
    both = linked(must=[1, 3], cannot=[[0, 0], [0, 0]], truth=[0, 1])
    found = theory.bounds(crowd_of(), links=both, n_iter=1)
    assert found.link_support[0] == pytest.approx(1 - 2 * 0.05)


def test_a_cannot_link_is_worth_nothing_until_every_wrong_class_is_linked() -> None:
    assert theory.link_support(0, [0, 3, 0], 0, 0.0) == 0
    assert theory.link_support(0, [0, 3, 1], 0, 0.0) == 1


def test_the_printed_theorem_lets_cannot_links_only_hurt() -> None:
    printed = theory.bounds(crowd_of(), links=linked(must=[0]), n_iter=1, version="printed")
    assert printed.link_support[0] < 0


def test_pairs_are_counted_by_the_class_of_the_other_end() -> None:
    truth = [0, 0, 1, 2, 1]
    found = theory.LinkedTasks.from_pairs(
        [0, 0, 0, 4], [1, 2, 3, 2], [True, False, False, True], truth, n_classes=3, strength=1.0
    )
    rows = {
        (int(own), int(must), tuple(cannot.tolist())): int(n)
        for own, must, cannot, n in zip(
            found.truth, found.must, found.cannot, found.n_tasks, strict=True
        )
    }
    assert rows == {
        (0, 1, (0, 1, 1)): 1,  # task 0
        (0, 1, (0, 0, 0)): 1,  # task 1
        (1, 1, (1, 0, 0)): 1,  # task 2
        (2, 0, (1, 0, 0)): 1,  # task 3
        (1, 1, (0, 0, 0)): 1,  # task 4
    }


def test_links_that_contradict_the_truth_are_refused() -> None:
    with refused(LinkError, "false-links"):
        theory.LinkedTasks.from_pairs([0], [1], [True], [0, 1], n_classes=2, strength=1.0)
    with refused(LinkError, "false-cannot-link"):
        linked(cannot=[[1, 0]])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cannot": [[0, 1, 0]]}, "links-classes"),
        ({"n_tasks": 30_000}, "links-tasks"),
    ],
)
def test_links_must_fit_the_assumptions(changed: dict[str, Any], message: str) -> None:
    with refused(OptionError, message):
        theory.bounds(crowd_of(), links=linked(**changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"truth": [2]}, "wrong-value truth"),
        ({"truth": [0, 1]}, "wrong-value cannot"),
        ({"must": [-1]}, "wrong-value must"),
        ({"must": [0.5]}, "wrong-value must"),
        ({"strength": 0.0}, "wrong-value link strength"),
        ({"strength": float("nan")}, "wrong-value link strength"),
    ],
)
def test_wrong_linked_tasks_are_refused(changed: dict[str, Any], message: str) -> None:
    with refused(OptionError, message):
        linked(**changed)


def test_an_unknown_version_of_the_support_is_refused() -> None:
    with refused(OptionError, "wrong-value version"):
        theory.link_support(1, [0, 0], 0, 0.1, "fixed")  # type: ignore[arg-type]


# As printed


def test_the_printed_probability_says_nothing_whatever_the_crowd() -> None:
    found = theory.bounds(crowd_of(n_workers=5000), version="printed")
    assert found.evidence_failure > 1  # erratum 16
    assert found.probability == 0
    assert found.vacuous


def test_the_printed_f_is_undefined_for_the_default_prior_and_good_workers() -> None:
    good = crowd_of(confusion=[[0.84, 0.16], [0.16, 0.84]], n_workers=5000)
    assert theory.bounds(good, version="printed").label_exponent[0] == -np.inf  # erratum 22
    exact = theory.AssumedStart(class_prior_error=0.0, confusion_error=0.0)
    poor = replace(good, confusion=np.array([[[0.8, 0.2], [0.2, 0.8]]]), start=exact)
    assert theory.bounds(poor, version="printed").label_exponent[0] > -np.inf


# Vacuous, and why


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"n_workers": 3}, "vacuous: the chance that some task gets less than"),
        (
            {"start": theory.AssumedStart(confusion_error=0.2)},
            "vacuous: the true class is only known to lead by -inf nats at iteration 1",
        ),
        (
            {"n_workers": 30},
            "vacuous: the true class is only known to lead by -3.09 nats at iteration 1",
        ),
        ({"n_tasks": 2000, "n_workers": 60}, "vacuous: the true class is only known to lead by"),
    ],
)
def test_a_vacuous_bound_says_why(changed: dict[str, Any], reason: str) -> None:
    found = theory.bounds(crowd_of(**changed))
    assert found.vacuous
    assert str(found).startswith(reason)


def test_a_bound_that_says_something_is_a_promise() -> None:
    found = str(theory.bounds(crowd_of()))
    assert found.startswith("every label is right (error below ")
    assert found.endswith("with probability at least 0.9")


def test_a_bound_between_a_half_and_one_proves_no_label() -> None:
    crowd = crowd_of(n_workers=60)
    for n_tasks in range(3000, 20_000, 200):
        found = theory.bounds(replace(crowd, n_tasks=n_tasks), n_iter=2, threshold=0.3)
        if 0.5 <= found.worst_label_error < 1:
            break
    assert not found.vacuous
    assert not found.labels_right
    assert str(found).startswith("no label is proved right")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_iter": 0}, "wrong-value n_iter"),
        ({"threshold": 1.0}, "wrong-value threshold"),
        ({"threshold": 0.3, "version": "plain"}, "fixed-threshold"),
    ],
)
def test_wrong_options_are_refused(arguments: dict[str, Any], message: str) -> None:
    with refused(OptionError, message):
        theory.bounds(crowd_of(), **arguments)


# Assumptions


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"confusion": [[1.0, 0.0], [0.1, 0.9]]}, "perfect-worker"),
        ({"confusion": [[0.9, 0.2], [0.1, 0.9]]}, "wrong-value confusion"),
        ({"confusion": [[0.9, 0.1]]}, "wrong-value confusion"),
        ({"confusion": [[0.9], [0.1, 0.9]]}, "wrong-value confusion"),
        ({"confusion": [[1.0]], "class_prior": [1.0]}, "one-class-theory"),
        ({"confusion": [[float("nan"), 0.1], [0.1, 0.9]]}, "perfect-worker"),
        ({"class_prior": [0.5, 0.4]}, "wrong-value class_prior"),
        ({"class_prior": [1.0, 0.0]}, "wrong-value class_prior"),
        ({"class_prior": [1.0]}, "wrong-value class_prior"),
        ({"n_tasks": 0}, "wrong-value n_tasks"),
        ({"n_tasks": 2.5}, "wrong-value n_tasks"),
        ({"n_workers": 0}, "wrong-value n_workers"),
        ({"n_workers": [3, 4]}, "wrong-value n_workers"),
        ({"response_rate": 0.0}, "wrong-value response_rate"),
        ({"response_rate": 1.1}, "wrong-value response_rate"),
        ({"failure_probability": 1.0}, "wrong-value failure_probability"),
        ({"class_prior_counts": 0.4}, "wrong-value class_prior_counts"),
        ({"class_prior_counts": [1, 1, 1]}, "wrong-value class_prior_counts"),
        ({"confusion_counts": (0.2, 1)}, "wrong-value confusion_counts"),
        ({"confusion_counts": "flat"}, "theory-counts"),
        ({"confusion_counts": [1, 1, 1]}, "wrong-value confusion_counts"),
        ({"most_responses": 0}, "wrong-value most_responses"),
    ],
)
def test_wrong_assumptions_are_refused(changed: dict[str, Any], message: str) -> None:
    with refused(OptionError, message):
        crowd_of(**changed)


@pytest.mark.parametrize(
    ("name", "value"),
    [("confusion_error", -0.1), ("label_error", 1.5), ("confusion_total", 0.0)],
)
def test_a_wrong_start_is_refused(name: str, value: float) -> None:
    with refused(OptionError, f"wrong-value start {name}"):
        theory.AssumedStart(**{name: value})


def test_prior_counts_are_spelt_out() -> None:
    assert crowd_of().confusion_counts[0].tolist() == [[2, 1], [1, 2]]
    assert crowd_of(confusion_counts="uniform").confusion_counts[0].tolist() == [[1, 1], [1, 1]]
    assert crowd_of(confusion_counts=(5, 2)).confusion_counts[0].tolist() == [[5, 2], [2, 5]]


def test_assumptions_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="read-only"):
        crowd_of().confusion[0, 0, 0] = 1.0
