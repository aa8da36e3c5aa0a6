"""How many are needed, and how sure one can be."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from refusals import refused

from tiebreak.data import Responses
from tiebreak.errors import OptionError
from tiebreak.research import theory

sys.path.append(str(Path(__file__).parents[3] / "experiments" / "01_theory_bounds"))
plans: Any = importlib.import_module("plans")


def crowd_of(
    n_workers: int = 1, accuracy: float = 0.9, n_tasks: int = 20_000
) -> theory.Assumptions:
    return theory.Assumptions(
        class_prior=[0.5, 0.5],
        confusion=[[accuracy, 1 - accuracy], [1 - accuracy, accuracy]],
        n_tasks=n_tasks,
        n_workers=n_workers,
    )


@pytest.mark.parametrize("label_error", [0.5, 1e-3, 1e-6])
def test_one_worker_fewer_than_needed_is_too_few(label_error: float) -> None:
    needed = plans.needed(crowd_of(), label_error=label_error)
    assert needed is not None
    enough = theory.bounds(crowd_of(needed))
    too_few = theory.bounds(crowd_of(needed - 1))
    assert enough.worst_label_error < label_error <= too_few.worst_label_error


def test_a_smaller_target_needs_more_workers() -> None:
    loose, strict = (plans.needed(crowd_of(), label_error=x) for x in (0.5, 1e-6))
    assert loose is not None
    assert strict is not None
    assert loose < strict


def test_one_response_fewer_than_needed_is_too_few() -> None:
    crowd = crowd_of(200, accuracy=0.85, n_tasks=100_000)
    needed = plans.needed(crowd, "responses")
    assert needed is not None
    at = [theory.with_responses_per_task(crowd, needed - less) for less in (0, 1)]
    assert at[0].responses_per_task == pytest.approx(needed)
    assert at[0].most_responses == needed
    enough, too_few = (theory.bounds(crowd).worst_label_error for crowd in at)
    assert enough < 0.5 <= too_few


def test_one_task_fewer_than_needed_is_too_few() -> None:
    crowd = crowd_of(60)
    needed = plans.needed(crowd, "tasks")
    assert needed is not None
    enough, too_few = (
        theory.bounds(replace(crowd, n_tasks=needed - less)).worst_label_error for less in (0, 1)
    )
    assert enough < 0.5 <= too_few


def test_a_hopeless_plan_has_no_number() -> None:
    assert plans.needed(crowd_of(accuracy=0.55, n_tasks=1000), most=10_000) is None


def test_links_save_workers() -> None:
    links = theory.LinkedTasks(
        must=2, cannot=[[0, 0], [0, 0]], truth=[0, 1], n_tasks=10_000, strength=5.0
    )
    crowd = replace(crowd_of(), start=theory.AssumedStart(0.02, 0.02, label_error=0.05))
    alone = plans.needed(crowd)
    together = plans.needed(crowd, links=links)
    assert alone is not None
    assert together is not None
    assert together < alone


@pytest.mark.parametrize("n", [0, 4])
def test_more_responses_a_task_than_workers_are_refused(n: int) -> None:
    with refused(OptionError, "responses-per-task"):
        theory.with_responses_per_task(crowd_of(3), n)


def test_scaling_keeps_the_shares_of_the_kinds() -> None:
    crowd = theory.Assumptions(
        class_prior=[0.5, 0.5],
        confusion=[[[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.3, 0.7]]],
        n_tasks=10,
        n_workers=[3, 1],
        most_responses=2,
    )
    assert plans.with_workers(crowd, 40).n_workers.tolist() == [30, 10]
    assert plans.with_workers(crowd, 40).most_responses == 20
    assert plans.with_workers(crowd, 1).total_workers == 1
    assert plans.with_workers(crowd, 4).n_workers.tolist() == [3, 1]


@pytest.mark.parametrize("version", ["sharp", "plain"])
def test_the_surest_probability_is_where_the_proof_ends(version: str) -> None:
    crowd = crowd_of(60) if version == "sharp" else crowd_of(1000, n_tasks=300_000)
    surest = plans.probability_all_right(crowd, version=version)
    assert 0.95 < surest < 1

    def proves(probability: float) -> bool:
        asked = replace(crowd, failure_probability=1 - probability)
        return theory.bounds(asked, version=version).labels_right

    assert proves(1 - 1.06 * (1 - surest))
    assert not proves(1 - 0.9 * (1 - surest))


def test_nothing_is_proved_about_a_poor_crowd() -> None:
    assert plans.probability_all_right(crowd_of(5, accuracy=0.6)) == 0


def test_a_fitted_model_lends_its_estimates() -> None:
    rows = [("a", "u", "x"), ("a", "v", "y"), ("b", "w", "x"), ("b", "u", "y"), ("c", "w", "y")]
    fitted = SimpleNamespace(
        class_prior_=np.array([0.4, 0.6]),
        confusion_=np.array([[[0.9, 0.1], [0.2, 0.8]]] * 3),
        responses_=Responses.from_rows(rows),
    )
    crowd = theory.assumptions_from(fitted, failure_probability=0.2)
    assert crowd.n_tasks == 3
    assert crowd.response_rate == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    assert crowd.most_responses == 2
    assert crowd.failure_probability == 0.2
    assert crowd.confusion[0].tolist() == [[0.9, 0.1], [0.2, 0.8]]


def test_a_model_of_one_class_is_refused() -> None:
    fitted = SimpleNamespace(
        class_prior_=np.ones(1),
        confusion_=np.ones((1, 1, 1)),
        responses_=Responses.from_rows([("a", "u", "x")]),
    )
    with refused(OptionError, "one-class-theory"):
        theory.assumptions_from(fitted)
