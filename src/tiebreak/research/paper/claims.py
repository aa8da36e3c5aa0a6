"""Claims: what the paper says, with verdicts computed from the runs by rules that are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.research.paper.runs import METHODS, Floats, Measured, Results

# Differences of macro-F, except MANY: a share of links.
CLEAR = 0.02
CLOSE = 0.01
SMALL = 0.02
MANY = 0.02
PLAIN = ("mv", "ds", "vb")

WORDS = {True: "holds", False: "fails", None: "too few runs"}


class Estimate(NamedTuple):
    """A mean over runs with its 95 % interval; with one run the interval is not known: nan."""

    mean: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there were runs enough for an interval."""
        return bool(np.isfinite(self.low))

    def __str__(self) -> str:
        if not self.is_known:
            return f"{self.mean:+.4f}"
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


def estimate(of_runs: Floats) -> Estimate:
    """Return the mean of one number a run, with Student's 95 % interval.

    >>> print(estimate(np.array([0.1, 0.2, 0.3])))
    +0.2000 [-0.0484, +0.4484]
    """
    mean, half = (float(each) for each in band(of_runs[:, None])[:, 0])
    return Estimate(mean, mean - half, mean + half)


def band(of_runs: Floats) -> Floats:
    """Return mean and half width of the 95 % interval of each column: (2, n_columns)."""
    from scipy.special import stdtrit

    n_runs = len(of_runs)
    if n_runs < 2:
        return np.stack([of_runs.mean(axis=0), np.full(of_runs.shape[1], np.nan)])
    error = of_runs.std(axis=0, ddof=1) / np.sqrt(n_runs)
    return np.stack([of_runs.mean(axis=0), stdtrit(n_runs - 1, 0.975) * error])


def is_above(value: Estimate) -> bool | None:
    """Tell whether a difference is positive; with one run only that it is not can be told."""
    if value.mean <= 0.0:
        return False
    return value.low > 0.0 if value.is_known else None


def is_at_least(value: Estimate) -> bool | None:
    """Tell whether a difference is not wholly below 0."""
    if value.mean >= 0.0:
        return True
    return value.high >= 0.0 if value.is_known else None


# When a claim holds, in words and of an estimate; None where runs are too few to say.
RULES: dict[str, tuple[str, Callable[[Estimate], bool | None]]] = {
    "above": (
        "the mean paired difference over the upper half of N_C is positive, and its 95 % "
        "interval excludes 0",
        is_above,
    ),
    "clearly": (
        f"above, and by more than {CLEAR}",
        lambda value: is_above(value) if value.mean > CLEAR else False,
    ),
    "at least": ("the 95 % interval of that difference is not wholly below 0", is_at_least),
    "close, about equal": (
        f"that difference is within {CLOSE}",
        lambda value: abs(value.mean) <= CLOSE,
    ),
    "improves": (
        "the upper half of N_C is above the lower half, which has N_C = 0 in it",
        is_above,
    ),
    "fewer broken": ("as above, for the share of broken links; equal is not fewer", is_above),
    "many broken": (
        f"more than {100 * MANY:g} % of the links, mean over the upper half",
        lambda value: value.mean > MANY,
    ),
    "no broken": ("none in any run, at any N_C", lambda value: value.mean == 0.0),
    "small gain": (f"that difference is at most {SMALL}", lambda value: value.mean <= SMALL),
    "below at first": (
        "lower at N_C = 0, where no run differs from another",
        lambda value: value.mean < 0.0,
    ),
}
Compared = list[tuple[str, Estimate]]  # what was compared, and what came out


class Finding(NamedTuple):
    """What one comparison on one dataset gave; `holds` is None where runs are too few to say."""

    dataset: str
    compared: str
    value: Estimate
    holds: bool | None


def everywhere(_name: str, _measured: Measured) -> bool:
    return True


class Claim(NamedTuple):
    """A claim of the paper, the rule it is judged by, and what is compared on a dataset."""

    text: str
    rule: str
    compare: Callable[[Measured], Compared]
    concerns: Callable[[str, Measured], bool] = everywhere


class Verdict(NamedTuple):
    """A claim with all its findings."""

    claim: Claim
    findings: list[Finding]

    @property
    def holds(self) -> bool | None:
        """Whether every finding holds; None where some could not be judged, or none was run."""
        found = [finding.holds for finding in self.findings]
        if False in found:
            return False
        return True if found and None not in found else None

    @property
    def word(self) -> str:
        return WORDS[self.holds] if self.findings else "not run"


def judge(results: Results) -> list[Verdict]:
    """Return the verdict on every claim, in the paper's order."""
    return [
        Verdict(
            claim,
            [
                Finding(name, compared, value, RULES[claim.rule][1](value))
                for name, measured in results.datasets.items()
                if claim.concerns(name, measured)
                for compared, value in claim.compare(measured)
            ],
        )
        for claim in CLAIMS
    ]


# What is compared


def upper_mean(measured: Measured, values: Floats) -> Floats:
    """Return the mean over the upper half of the numbers given, one a run."""
    return np.asarray(values[:, measured.is_upper].mean(axis=1))


def gain(measured: Measured, ours: str, theirs: str) -> Estimate:
    """Return how far macro-F of one method is ahead of another's in the upper half."""
    ahead = measured.of(ours) - measured.of(theirs)
    return estimate(upper_mean(measured, ahead))


def _ahead(ours: str, *theirs: str) -> Callable[[Measured], Compared]:
    return lambda measured: [(_minus(ours, each), gain(measured, ours, each)) for each in theirs]


def _grows(method: str) -> Callable[[Measured], Compared]:
    def compare(measured: Measured) -> Compared:
        values = measured.of(method)
        lower = values[:, ~measured.is_upper].mean(axis=1)
        value = estimate(upper_mean(measured, values) - lower)
        return [(f"{METHODS[method].title}: upper − lower half", value)]

    return compare


def _breaks_fewer(measured: Measured) -> Compared:
    less = measured.share_broken("vb_ilc") - measured.share_broken("vb_ilc_bvsb")
    compared = "share broken: " + _minus("vb_ilc", "vb_ilc_bvsb")
    return [(compared, estimate(upper_mean(measured, less)))]


def _breaks_none(measured: Measured) -> Compared:
    return [("share broken", estimate(measured.share_broken("vb_ilc_derived").mean(axis=1)))]


def _breaks_many(measured: Measured) -> Compared:
    return [("share broken", estimate(upper_mean(measured, measured.share_broken("vb_ilc"))))]


def _vb_at_first(measured: Measured) -> Compared:
    first = {name: measured.of(name)[:, 0] for name in ("vb", "mv", "ds")}
    return [(_minus("vb", each), estimate(first["vb"] - first[each])) for each in ("mv", "ds")]


def _minus(ours: str, theirs: str) -> str:
    return f"{METHODS[ours].title} − {METHODS[theirs].title}"


def _on(*names: str) -> Callable[[str, Measured], bool]:
    return lambda name, _measured: name in names


def _many_classes(_name: str, measured: Measured) -> bool:
    return measured.n_classes > 2


CLAIMS: Sequence[Claim] = (
    Claim("VB-LC improves with N_C", "improves", _grows("vb_lc")),
    Claim("VB-ILC improves with N_C", "improves", _grows("vb_ilc")),
    Claim("VB-LC above VB-ILC for K > 2", "above", _ahead("vb_lc", "vb_ilc"), _many_classes),
    Claim(
        "VB-ILC close to VB-LC on Sentence Polarity",
        "close, about equal",
        _ahead("vb_ilc", "vb_lc"),
        _on("sentence_polarity"),
    ),
    Claim(
        "VB-ILC above VB-LC on RTE and Product",
        "above",
        _ahead("vb_ilc", "vb_lc"),
        _on("rte", "product"),
    ),
    Claim("VB-ILC above MV, DS and VB as N_C grows", "above", _ahead("vb_ilc", *PLAIN)),
    Claim(
        "BVSB at least as good as random links on all ten",
        "at least",
        _ahead("vb_ilc_bvsb", "vb_ilc"),
    ),
    Claim(
        "BVSB clearly better than random links on Dog and TREC",
        "clearly",
        _ahead("vb_ilc_bvsb", "vb_ilc"),
        _on("dog", "trec"),
    ),
    Claim("BVSB breaks fewer links", "fewer broken", _breaks_fewer),
    Claim(
        "VB-ILC with label-derived links about equal to VB-LC",
        "close, about equal",
        _ahead("vb_ilc_derived", "vb_lc"),
    ),
    Claim("VB-ILC with label-derived links breaks no link", "no broken", _breaks_none),
    Claim(
        "ZenCrowd US: VB below MV and DS at first",
        "below at first",
        _vb_at_first,
        _on("zencrowd_us"),
    ),
    Claim("TREC: many broken links", "many broken", _breaks_many, _on("trec")),
    Claim(
        "TREC: small gains of VB-ILC over VB",
        "small gain",
        _ahead("vb_ilc", "vb"),
        _on("trec"),
    ),
)


# The page


def as_markdown(results: Results) -> str:
    """Return a page of the rules, the verdicts and every comparison."""
    verdicts = judge(results)
    about = results.about
    parts = [
        "# The paper's claims, judged",
        f"{len(results.datasets)} datasets, {about['runs']} Monte Carlo runs, N_C from 0 to half "
        f"of the gold tasks in {about['steps']} steps; tiebreak {about['version']}. Figures are "
        "macro-F over all gold tasks unless said otherwise. Every verdict is computed from "
        "results.json.",
        "## Rules",
        "\n".join(f"- *{name}*: {words}." for name, (words, _) in RULES.items()),
        "The upper half of N_C is what lies above a quarter of the gold tasks. A claim holds where "
        "it holds in every comparison.",
        "## Verdicts",
        table(("claim", "rule", "verdict", "found"), map(_verdict_row, verdicts)),
        "## Every comparison",
        table(
            ("claim", "dataset", "compared", "mean, 95 % interval", "verdict"),
            (_finding_row(each, found) for each in verdicts for found in each.findings),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _verdict_row(verdict: Verdict) -> tuple[str, ...]:
    claim = verdict.claim
    findings = verdict.findings
    n_held = sum(finding.holds is True for finding in findings)
    found = f"{n_held} of {len(findings)} comparisons" if findings else "–"
    against = [_shown(each) for each in findings if each.holds is False]
    if against:
        found += "; not " + "; ".join(against)
    return claim.text, claim.rule, f"**{verdict.word}**", found


def _shown(finding: Finding) -> str:
    return f"{finding.dataset} ({finding.compared}: {finding.value.mean:+.4f})"


def _finding_row(verdict: Verdict, finding: Finding) -> tuple[str, ...]:
    value = str(finding.value)
    return verdict.claim.text, finding.dataset, finding.compared, value, WORDS[finding.holds]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
