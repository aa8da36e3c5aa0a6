"""Tables beside the claims: scores, schedules, exact links."""

from __future__ import annotations

import numpy as np

from tiebreak.research.paper.claims import estimate, gain, table, upper_mean
from tiebreak.research.paper.runs import METHODS, Measured, Results

N_STRENGTHS = 12  # of the paper's grid
KINDS = {"random": "random", "bvsb": "BVSB", "derived": "label-derived"}
SCHEDULES = ("vb_ilc", "vb_ilc_in_turn", "exact")


def more_tables(results: Results) -> list[str]:
    return [part + "\n" for part in (*_scores(results), *_schedules(results), *_exact(results))]


def _scores(results: Results) -> list[str]:
    """Show macro-F over all gold tasks, and over those whose label nobody was given."""
    methods = [name for name, method in METHODS.items() if method.only is None]
    titles = [METHODS[method].title for method in methods]
    return [
        "## Scores",
        "Macro-F, mean over runs and the upper half of N_C: over all gold tasks, and below it over "
        "those whose label the run did not give to VB-LC, the same tasks for every method.",
        table(
            ("dataset", "tasks", *titles),
            (
                (name, tasks, *(_mean(measured, method, figure) for method in methods))
                for name, measured in results.datasets.items()
                for tasks, figure in (("all", "macro_f"), ("without label", "macro_f_free"))
            ),
        ),
    ]


def _mean(measured: Measured, method: str, figure: str) -> str:
    return f"{upper_mean(measured, measured.of(method, figure)).mean():.4f}"


def _schedules(results: Results) -> list[str]:
    """Show broken links by schedule: the paper's all at once, in turn, and exact."""
    chosen = {name: each for name, each in results.datasets.items() if each.has(*SCHEDULES)}
    if not chosen:
        return []
    return [
        "## Broken links and the schedule",
        "The paper updates all tasks at once, and such updates can swap for ever between two "
        "states. The same random links, updated in turn and inferred exactly, mean over the upper "
        "half of N_C. *Unsettled* is the share of the twelve strengths of the grid whose updates "
        "did not settle.",
        table(
            ("dataset", "method", "links broken, %", "unsettled, %", "macro-F"),
            (_schedule_row(n, each, m) for n, each in chosen.items() for m in SCHEDULES),
        ),
    ]


def _schedule_row(name: str, measured: Measured, method: str) -> tuple[str, ...]:
    broken = 100.0 * upper_mean(measured, measured.share_broken(method)).mean()
    unsettled = "–"
    if "unsettled" in measured.figures[method]:
        share = measured.of(method, "unsettled") / N_STRENGTHS
        unsettled = f"{100.0 * upper_mean(measured, share).mean():.1f}"
    macro_f = _mean(measured, method, "macro_f")
    return name, METHODS[method].title, f"{broken:.2f}", unsettled, macro_f


def _exact(results: Results) -> list[str]:
    """Show what exact links change: macro-F beside the paper's, and links broken."""
    pairs = (
        ("exact", "vb_ilc"),
        ("exact_bvsb", "vb_ilc_bvsb"),
        ("exact_derived", "vb_ilc_derived"),
    )
    return [
        "## Exact links beside the paper's",
        "Macro-F of exact links minus that of the paper's VB-ILC on the same links, upper half of "
        "N_C: all gold tasks, and only those whose label VB-LC was not given. Then links broken, "
        "exact and paper's.",
        table(
            ("dataset", "links", "all tasks", "tasks without given label", "broken, %"),
            (
                _exact_row(name, measured, ours, theirs)
                for name, measured in results.datasets.items()
                for ours, theirs in pairs
            ),
        ),
    ]


def _exact_row(name: str, measured: Measured, ours: str, theirs: str) -> tuple[str, ...]:
    free = measured.of(ours, "macro_f_free") - measured.of(theirs, "macro_f_free")
    broken = [
        f"{100.0 * np.mean(upper_mean(measured, measured.share_broken(method))):.2f}"
        for method in (ours, theirs)
    ]
    return (
        name,
        KINDS[METHODS[ours].given],
        str(gain(measured, ours, theirs)),
        str(estimate(upper_mean(measured, free))),
        " / ".join(broken),
    )
