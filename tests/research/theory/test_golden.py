"""Worked numbers, to their tolerance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiebreak.research import theory

GOLDEN = Path(__file__).parents[2] / "golden" / "theory.json"
VECTORS = json.loads(GOLDEN.read_text("utf-8"))["vectors"]


def bounds_of(inputs: dict[str, Any]) -> theory.Bounds:
    start = theory.AssumedStart(
        class_prior_error=inputs["eps_pi0"],
        confusion_error=inputs["eps_gamma0"],
        label_error=inputs.get("eps_q0", 0.5),
        class_prior_total=inputs.get("alpha_bar_init"),
        confusion_total=inputs["beta_bar_init"],
    )
    crowd = theory.Assumptions(
        class_prior=inputs["pi"],
        confusion=inputs["gamma"],
        n_tasks=inputs["N"],
        n_workers=inputs["M"],
        response_rate=inputs["mu"],
        failure_probability=inputs["nu"],
        start=start,
    )
    links = None
    if "links" in inputs:
        must, cannot, truth = zip(*inputs["links"], strict=True)
        links = theory.LinkedTasks(must=must, cannot=cannot, truth=truth, strength=inputs["eta"])
    return theory.bounds(
        crowd,
        links=links,
        n_iter=inputs["T"],
        version="sharp" if inputs["sharp"] else "plain",
        threshold=inputs.get("frac"),
    )


@pytest.mark.parametrize("name", ["bounds_plain", "bounds_sharp", "bounds_links"])
def test_bounds_match_the_worked_numbers(name: str) -> None:
    expected = VECTORS[name]["expected"]
    tol = VECTORS[name]["tol"]
    found = bounds_of(VECTORS[name]["inputs"])
    steps = expected["steps"]

    def same(value: Any, want: Any) -> None:
        np.testing.assert_allclose(value, want, rtol=tol, atol=1e-12)

    same(found.assumptions.class_prior_gap, expected["D_pi"])
    same(found.assumptions.evidence_per_worker, expected["D_gamma"])
    same(found.evidence_failure, expected["p_fail_E1"])
    same(found.deviations.tasks, expected["g_pi"])
    same(found.deviations.answers[0], expected["g_gamma_m0"])
    same(found.deviations.answered[0], expected["s_m0"])
    same(found.label_exponent, [step["U"] for step in steps])
    same(np.log(found.label_error), np.log([step["eps_q"] for step in steps]))
    same(found.class_prior_error, [step["eps_pi"] for step in steps])
    same(found.confusion_error, [step["eps_gamma"] for step in steps])
    if steps[0]["W"] is not None:
        same(np.log(found.linked_label_error), np.log([step["eps_q_con"] for step in steps]))
        same(found.link_support, [min(step["W"]) for step in steps])


@pytest.mark.parametrize(
    ("version", "key"),
    [
        ("corrected", "corrected"),
        ("printed", "paper"),
        ("printed, wrong classes only", "paper_fixed_min"),
        ("proof's last line", "paper_proof_last_line"),
    ],
)
def test_link_support_matches_the_worked_numbers(version: theory.SupportVersion, key: str) -> None:
    inputs = VECTORS["w_n"]["inputs"]
    expected = VECTORS["w_n"]["expected"]
    found = theory.link_support(
        inputs["n_ml"], inputs["n_cl_by_class"], inputs["true_class"], inputs["eps"], version
    )
    assert found == pytest.approx(expected[key], abs=1e-12)
