"""Verdicts on the claims of this experiment, computed from its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from common import NAMES, Difference, signed
from results import CLEAN, DATASETS, SIZES, WRONG, Results

MUSIC = "music_genre"
SLACK = 0.004  # of macro-F
MUSIC_SLACK = 0.01
HARD_WRONG = 0.10  # Music is judged only up to this share of wrong links
TIME_SHARE = 0.25


class Verdict(NamedTuple):
    """A claim, what was found, and whether it holds: None where something was not run."""

    claim: str
    found: str
    holds: bool | None
    judged: bool = True

    @property
    def word(self) -> str:
        if not self.judged:
            return "reported"
        return {None: "not finished", True: "holds", False: "**fails**"}[self.holds]


def verdicts(results: Results) -> list[Verdict]:
    """Return all verdicts, in the order of the page."""
    found = [hard_is_not_below_grid(results), hard_is_above_grid_on_average(results)]
    found += [hard_has_lower_log_loss(results), hard_breaks_nothing(results)]
    found += hard_is_fast(results)
    found += [
        soft_is_not_below(results, wrong, theirs) for wrong in WRONG for theirs in ("vb", "grid")
    ]
    found += [soft_on_music(results, wrong) for wrong in WRONG]
    return found + calibration(results)


def _judge(passes: list[bool], n_needed: int) -> bool | None:
    """Fail with the first failure; hold only when everything was run."""
    if not all(passes):
        return False
    return True if len(passes) == n_needed else None


def _where(dataset: str, size: float, *_: float) -> str:
    return f"{NAMES[dataset]}, {size:.0%}".replace("%", " %")


# Clean links


def _clean(results: Results) -> dict[tuple[str, float], Difference]:
    """Return hard − grid in macro-F where both were run."""
    apart = {
        (dataset, size): results.difference("macro_f", "hard", "grid", dataset, size, CLEAN)
        for dataset, size in product(DATASETS, SIZES)
    }
    return {cell: each for cell, each in apart.items() if not np.isnan(each.mean)}


def hard_is_not_below_grid(results: Results) -> Verdict:
    apart = _clean(results)
    claim = f"clean: macro-F of hard is nowhere more than {SLACK} below the grid's"
    if not apart:
        return Verdict(claim, "–", None)
    worst = min(apart, key=lambda cell: apart[cell].mean)
    passes = [each.mean >= -SLACK for each in apart.values()]
    found = f"{sum(passes)} of {len(passes)} cells; worst {apart[worst]} ({_where(*worst)})"
    return Verdict(claim, found, _judge(passes, len(DATASETS) * len(SIZES)))


def hard_is_above_grid_on_average(results: Results) -> Verdict:
    apart = _clean(results)
    claim = "clean: macro-F of hard is above the grid's on average"
    if not apart:
        return Verdict(claim, "–", None)
    mean = float(np.mean([each.mean for each in apart.values()]))
    complete = len(apart) == len(DATASETS) * len(SIZES)
    return Verdict(
        claim, f"{signed(mean)}, mean of {len(apart)} cells", mean > 0.0 if complete else None
    )


def hard_has_lower_log_loss(results: Results) -> Verdict:
    claim = "clean: log loss of hard is below the grid's on every dataset (mean of sizes)"
    losses = {
        dataset: [
            np.mean([results.mean("log_loss", method, dataset, size, CLEAN) for size in SIZES])
            for method in ("hard", "grid")
        ]
        for dataset in DATASETS
    }
    run = {name: pair for name, pair in losses.items() if not np.isnan(pair).any()}
    if not run:
        return Verdict(claim, "–", None)
    passes = [hard < grid for hard, grid in run.values()]
    nearest = max(run, key=lambda name: run[name][0] / run[name][1])
    hard, grid = run[nearest]
    found = f"{sum(passes)} of {len(passes)} datasets; "
    found += f"nearest {hard:.3f} against {grid:.3f} ({NAMES[nearest]})"
    return Verdict(claim, found, _judge(passes, len(DATASETS)))


def hard_breaks_nothing(results: Results) -> Verdict:
    cells = [results.of("violated", "hard", *cell, CLEAN) for cell in product(DATASETS, SIZES)]
    run = [cell for cell in cells if len(cell)]
    found = f"{int(sum(cell.sum() for cell in run)):,} broken in {sum(map(len, run)):,} fits"
    passes = [not cell.any() for cell in run]
    return Verdict("clean: labels of hard break no link", found, _judge(passes, len(cells)))


def hard_is_fast(results: Results) -> list[Verdict]:
    """Judge time per dataset and overall: sums over sizes of the median times of a fit."""
    seconds = {dataset: _seconds(results, dataset) for dataset in DATASETS}
    run = {name: pair for name, pair in seconds.items() if not np.isnan(pair).any()}
    claim = f"clean: hard takes at most {TIME_SHARE:g} of the grid's time"
    if not run:
        return [Verdict(claim, "–", None)]
    share = {name: float(pair[0] / pair[1]) for name, pair in run.items()}
    slowest = max(share, key=share.__getitem__)
    passes = [each <= TIME_SHARE for each in share.values()]
    each = f"{sum(passes)} of {len(passes)}; largest share {share[slowest]:.2f} ({NAMES[slowest]})"
    total = np.sum(list(run.values()), axis=0)
    overall = float(total[0] / total[1])
    complete = len(run) == len(DATASETS)
    return [
        Verdict(f"{claim}, on every dataset", each, _judge(passes, len(DATASETS))),
        Verdict(
            f"{claim}, all datasets together",
            f"{overall:.2f}: {total[0]:,.1f} s against {total[1]:,.1f} s",
            overall <= TIME_SHARE if complete else None,
        ),
    ]


def _seconds(results: Results, dataset: str) -> np.ndarray:
    cells = [
        [results.of("seconds", method, dataset, size, CLEAN) for size in SIZES]
        for method in ("hard", "grid")
    ]
    return np.array([sum(np.median(c) if len(c) else np.nan for c in row) for row in cells])


# Wrong links


def _within(apart: Difference) -> bool:
    return apart.mean >= -max(SLACK, 2.0 * apart.error)


def is_kept(results: Results, dataset: str, size: float, wrong: float) -> bool | None:
    """Say whether soft does what is asked of it in one cell; None where it was not run."""
    apart = {
        theirs: results.difference("macro_f", "soft", theirs, dataset, size, wrong)
        for theirs in ("vb", "grid")
    }
    if dataset == MUSIC:
        below = apart["vb"].mean
        return None if np.isnan(below) else below >= -MUSIC_SLACK
    if any(np.isnan(each.mean) for each in apart.values()):
        return None
    return all(map(_within, apart.values()))


def soft_is_not_below(results: Results, wrong: float, theirs: str) -> Verdict:
    others = [dataset for dataset in DATASETS if dataset != MUSIC]
    apart = _apart(results, others, wrong, theirs)
    name = {"vb": "VB", "grid": "the grid"}[theirs]
    claim = (
        f"{wrong:.0%} wrong: soft is not below {name} by more than {SLACK} or two standard errors, "
        "nine datasets"
    ).replace("%", " %")
    if not apart:
        return Verdict(claim, "–", None)
    passes = [_within(each) for each in apart.values()]
    worst = min(apart, key=lambda cell: apart[cell].mean)
    mean = float(np.mean([each.mean for each in apart.values()]))
    found = f"{sum(passes)} of {len(passes)} cells; mean {signed(mean)}; "
    found += f"worst {apart[worst]} ({_where(*worst)})"
    return Verdict(claim, found, _judge(passes, len(others) * len(SIZES)))


def soft_on_music(results: Results, wrong: float) -> Verdict:
    apart = _apart(results, [MUSIC], wrong, "vb")
    judged = wrong <= HARD_WRONG
    rule = f"is at most {MUSIC_SLACK} below VB"
    claim = f"{wrong:.0%} wrong: soft on Music {rule}".replace("%", " %")
    if not apart:
        return Verdict(claim, "–", None)
    worst = min(apart, key=lambda cell: apart[cell].mean)
    passes = [each.mean >= -MUSIC_SLACK for each in apart.values()]
    found = f"{sum(passes)} of {len(passes)} cells; worst {apart[worst]} ({_where(*worst)})"
    return Verdict(claim, found, _judge(passes, len(SIZES)), judged)


def _apart(
    results: Results, datasets: list[str], wrong: float, theirs: str
) -> dict[tuple[str, float], Difference]:
    cells: Iterator[tuple[str, float]] = product(datasets, SIZES)
    apart = {cell: results.difference("macro_f", "soft", theirs, *cell, wrong) for cell in cells}
    return {cell: each for cell, each in apart.items() if not np.isnan(each.mean)}


# Temperature


def calibration(results: Results) -> list[Verdict]:
    size = f"{SIZES[0]:.0%} clean links".replace("%", " %")

    def by_dataset(figure: Callable[[str], list[float]]) -> np.ndarray:
        rows = np.array([figure(dataset) for dataset in DATASETS])
        return rows[~np.isnan(rows).any(axis=1)]

    errors = by_dataset(
        lambda dataset: [
            results.mean("calibration_error", method, dataset, SIZES[0], CLEAN)
            for method in ("hard_uncalibrated", "hard")
        ]
    )
    changes = by_dataset(
        lambda dataset: [
            results.difference(
                "macro_f", "hard", "hard_uncalibrated", dataset, SIZES[0], CLEAN
            ).mean
        ]
    )
    complete = len(errors) == len(DATASETS)
    if not len(errors):
        return [Verdict(f"{size}: what honest probabilities do", "–", None)]
    before, after = errors.mean(axis=0)
    return [
        Verdict(
            f"{size}: honest probabilities at least halve the calibration error (mean of datasets)",
            f"{before:.3f} to {after:.3f}, mean of {len(errors)} datasets",
            bool(after <= before / 2.0) if complete else None,
        ),
        Verdict(
            f"{size}: it changes macro-F by −0.001 or better in the mean",
            signed(changes.mean()),
            bool(changes.mean() >= -0.001) if complete else None,
        ),
        Verdict(
            f"{size}: it lowers macro-F by more than {SLACK} on no dataset",
            f"worst {signed(changes.min())}",
            _judge((changes[:, 0] >= -SLACK).tolist(), len(DATASETS)),
        ),
    ]
