"""Verdicts: rules on numbers that nobody measured, and the page that shows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from research.paper.made_up import NUMBERS, measured, results

from tiebreak.errors import FileError
from tiebreak.research.paper import as_markdown, claims, judge
from tiebreak.research.paper.claims import CLAIMS, Estimate, Verdict, estimate
from tiebreak.research.paper.runs import Measured, Results

RISING = np.array([0.80, 0.82, 0.84, 0.88, 0.90])
SCATTER = np.array([-0.002, -0.001, 0.001, 0.002])[:, None]  # one shift a run
NOISE = np.array([-0.2, 0.2, -0.2, 0.25])[:, None]
ONE_RUN = Estimate(0.5, np.nan, np.nan)


def verdict(text: str, **datasets: Measured) -> Verdict:
    """Judge the one claim that begins like this."""
    found = [each for each in judge(results(**datasets)) if each.claim.text.startswith(text)]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("rule", "value", "holds"),
    [
        ("above", Estimate(0.03, 0.01, 0.05), True),
        ("above", Estimate(0.03, 0.00, 0.06), False),
        ("above", Estimate(-0.03, -0.05, -0.01), False),
        ("above", ONE_RUN, None),
        ("above", Estimate(-0.5, np.nan, np.nan), False),
        ("clearly", Estimate(0.03, 0.01, 0.05), True),
        ("clearly", Estimate(0.02, 0.01, 0.03), False),
        ("clearly", Estimate(0.03, -0.01, 0.07), False),
        ("at least", Estimate(-0.01, -0.03, 0.01), True),
        ("at least", Estimate(-0.02, -0.03, -0.01), False),
        ("at least", Estimate(-0.5, np.nan, np.nan), None),
        ("close, about equal", Estimate(-0.01, -0.5, 0.5), True),
        ("close, about equal", Estimate(-0.011, -0.02, 0.0), False),
        ("close, about equal", Estimate(0.011, 0.0, 0.02), False),
        ("small gain", Estimate(0.02, 0.0, 0.04), True),
        ("small gain", Estimate(0.021, 0.0, 0.04), False),
        ("many broken", Estimate(0.021, 0.0, 0.04), True),
        ("many broken", Estimate(0.02, 0.0, 0.04), False),
    ],
)
def test_rules_hold_where_they_say(rule: str, value: Estimate, holds: bool | None) -> None:
    assert claims.RULES[rule][1](value) is holds


def test_an_interval_is_student_s() -> None:
    found = estimate(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert found == pytest.approx((3.0, 3.0 - 1.96324, 3.0 + 1.96324), abs=1e-4)  # t = 2.77645
    assert not estimate(np.array([1.0])).is_known


def test_halves_are_compared_run_by_run() -> None:
    shifted = RISING + 50 * SCATTER  # runs differ by far more than halves do
    found = verdict("VB-LC improves", dog=measured(vb_lc=shifted))
    assert found.holds is True
    assert found.findings[0].value.mean == pytest.approx(0.89 - 0.82)
    assert verdict("VB-ILC improves", dog=measured(vb_ilc=RISING[::-1])).holds is False


def test_only_the_upper_half_counts() -> None:
    late = np.where(np.array(NUMBERS) > 20, 0.85, 0.5) + SCATTER
    found = verdict("VB-ILC above MV", rte=measured(vb_ilc=late))
    assert found.holds is True
    assert [finding.value.mean for finding in found.findings] == pytest.approx([0.05] * 3)
    assert [f.compared for f in found.findings] == ["VB-ILC − MV", "VB-ILC − DS", "VB-ILC − VB"]


def test_a_claim_fails_where_one_comparison_fails() -> None:
    good = measured(vb_ilc=0.9, vb_lc=0.8)
    bad = measured(vb_ilc=0.8 + NOISE, vb_lc=0.79)
    found = verdict("VB-ILC above VB-LC on RTE", rte=good, product=bad, dog=bad)
    assert [(f.dataset, f.holds) for f in found.findings] == [("rte", True), ("product", False)]
    assert found.word == "fails"


def test_claims_about_many_classes_look_at_no_other_dataset() -> None:
    many = measured(n_classes=4, vb_lc=0.9)
    two = measured(n_classes=2, vb_lc=0.7)
    found = verdict("VB-LC above VB-ILC for K", dog=many, rte=two)
    assert [finding.dataset for finding in found.findings] == ["dog"]
    assert found.word == "holds"


def test_one_run_is_too_few_to_say() -> None:
    assert verdict("VB-LC improves", dog=measured(n_runs=1, vb_lc=RISING)).word == "too few runs"


def test_datasets_that_were_not_run_leave_a_claim_open() -> None:
    assert verdict("TREC: many broken", dog=measured()).word == "not run"


def test_bvsb_is_judged_against_random_links() -> None:
    better = measured(vb_ilc_bvsb=0.83 + SCATTER, broken={"vb_ilc": 0.1, "vb_ilc_bvsb": 0.02})
    assert verdict("BVSB clearly", dog=better).holds is True
    assert verdict("BVSB at least", web=better).holds is True
    fewer = verdict("BVSB breaks fewer", web=better)
    assert fewer.holds is True
    assert fewer.findings[0].value.mean == pytest.approx(0.08)
    assert verdict("BVSB breaks fewer", web=measured()).holds is False  # equal is not fewer
    worse = measured(vb_ilc_bvsb=0.79)
    assert verdict("BVSB at least", web=worse).holds is False


def test_label_derived_links_are_judged_against_labels() -> None:
    alike = measured(vb_ilc_derived=0.909, vb_lc=0.9)
    assert verdict("VB-ILC with label-derived links about", dog=alike).holds is True
    assert verdict("VB-ILC with label-derived links breaks", dog=alike).holds is True
    broken = measured(broken={"vb_ilc_derived": 0.1})
    assert verdict("VB-ILC with label-derived links breaks", dog=broken).holds is False


def test_zencrowd_is_judged_before_anything_is_given() -> None:
    first_below = np.array([0.7, 0.9, 0.9, 0.9, 0.9])
    found = verdict("ZenCrowd US", zencrowd_us=measured(vb=first_below))
    assert found.holds is True
    ahead_of_mv = measured(vb=first_below, mv=0.6)
    assert [f.holds for f in verdict("ZenCrowd US", zencrowd_us=ahead_of_mv).findings] == [
        False,
        True,
    ]


def test_trec_is_judged_by_broken_links_and_gains() -> None:
    trec = measured(broken={"vb_ilc": 0.03}, vb_ilc=0.81)
    assert verdict("TREC: many", trec=trec).holds is True
    assert verdict("TREC: small", trec=trec).holds is True
    assert verdict("TREC: many", trec=measured(broken={"vb_ilc": 0.01})).holds is False
    assert verdict("TREC: small", trec=measured(vb_ilc=0.9)).holds is False


def test_the_page_prints_rules_verdicts_and_numbers() -> None:
    page = as_markdown(results(rte=measured(vb_ilc=0.9, vb_lc=0.8, broken={"vb_ilc": 0.05})))
    for word, (words, _) in claims.RULES.items():
        assert f"- *{word}*: {words}." in page
    assert {claim.rule for claim in CLAIMS} <= set(claims.RULES)
    assert "| VB-ILC above VB-LC on RTE and Product | above | **holds** | 1 of 1" in page
    assert "| VB-ILC improves with N_C | improves | **fails** |" in page


def test_results_survive_their_file(tmp_path: Path) -> None:
    whole = results(rte=measured(vb_ilc=RISING + SCATTER, broken={"vb_ilc": 0.1}))
    whole.write(tmp_path / "results.json")
    again = Results.read(tmp_path / "results.json")
    assert as_markdown(again) == as_markdown(whole)
    (tmp_path / "results.json").write_text("[]")
    with refused(FileError, "no-results"):
        Results.read(tmp_path / "results.json")
