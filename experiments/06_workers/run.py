"""Measure intervals of workers, Gibbs sampling and decisions.

    python experiments/06_workers/run.py [part …]

Each part is kept in `results.json` as it ends; `report.py` turns that file into pages. The ten
datasets lie in the folder that TIEBREAK_DATA names.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parent))

import deciding
from common import run_parts
from deciding import DATASETS, load

import tiebreak as tb
from tiebreak.data.ids import Ids
from tiebreak.inference.worker_summary import Interval

HERE = Path(__file__).parent
N_CROWDS = 40
FIRST_SEED = 100  # constants were chosen on crowds 0 to 39
N_GIBBS = 40  # of them, with Gibbs sampling
SETTINGS = ((2, 3), (2, 10), (4, 5))  # classes, votes a task
MANY = 5  # crowds of many workers
LEVEL = 0.9
FEW_DRAWS = {"n_chains": 2, "n_warmup": 100, "n_draws": 200}  # on the ten datasets


class Drawn(NamedTuple):
    """A crowd drawn from the model's own prior."""

    responses: tb.Responses
    share: np.ndarray  # of classes
    confusion: np.ndarray  # (worker, truth, answer), in the order of `responses.workers`


def draw(n_tasks: int, n_workers: int, n_classes: int, n_votes: int, seed: int) -> Drawn:
    """Draw shares, confusions ("diagonal" prior), classes and responses."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.ones(n_classes))
    truth = rng.choice(n_classes, size=n_tasks, p=share)
    prior = np.ones((n_classes, n_classes)) + (n_classes - 1.0) * np.eye(n_classes)
    confusion = np.stack([[rng.dirichlet(row) for row in prior] for _ in range(n_workers)])
    task = np.repeat(np.arange(n_tasks), n_votes)
    worker = np.concatenate([rng.choice(n_workers, n_votes, replace=False) for _ in range(n_tasks)])
    label = [
        rng.choice(n_classes, p=confusion[w, truth[t]]) for t, w in zip(task, worker, strict=True)
    ]
    names = (Ids(list(range(n))) for n in (n_tasks, n_workers, n_classes))
    return Drawn(tb.Responses.from_codes(task, worker, label, *names), share, confusion)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def plain_intervals(model: Any) -> tuple[Any, Any]:
    """Intervals as variational Bayes has them: Dirichlet and Beta, classes taken as known."""
    alpha, beta = model._state.parameters
    beta = beta.transpose(0, 2, 1)  # (worker, truth, answer)
    size = beta.sum(axis=2, keepdims=True)
    mean = beta / size
    variance = mean * (1.0 - mean) / (size + 1.0)
    right = np.diagonal(mean, axis1=1, axis2=2)
    share = alpha / alpha.sum()
    accuracy = right @ share
    of_share = (np.diag(share) - np.outer(share, share)) / (alpha.sum() + 1.0)
    spread = np.diagonal(variance, axis1=1, axis2=2) @ share**2
    spread = spread + ((right @ of_share) * right).sum(axis=1)
    return Interval.of(accuracy, spread, LEVEL), Interval.of(mean, variance, LEVEL)


def cover(drawn: Drawn, accuracy: tuple, confusion: tuple) -> dict[str, float]:
    """Return how many intervals hold the truth, and how wide those of accuracy are."""
    truth = np.diagonal(drawn.confusion, axis1=1, axis2=2) @ drawn.share
    (low, high), (cell_low, cell_high) = accuracy, confusion
    inside = (drawn.confusion >= cell_low) & (drawn.confusion <= cell_high)
    return {
        "cells": float(inside.mean()),
        "accuracy": float(((truth >= low) & (truth <= high)).mean()),
        "width": float((high - low).mean()),
    }


def of_table(drawn: Drawn, table: Any) -> dict[str, float]:
    return cover(
        drawn,
        (table.accuracy_low, table.accuracy_high),
        (table.confusion_low, table.confusion_high),
    )


def coverage() -> dict[str, Any]:
    found = {}
    for n_classes, n_votes in SETTINGS:
        rows: dict[str, list[dict[str, float]]] = {}
        seconds: dict[str, list[float]] = {}
        hats = []
        for seed in range(FIRST_SEED, FIRST_SEED + N_CROWDS):
            drawn = draw(150, 12, n_classes, n_votes, seed)
            model, fit_s = timed(lambda: tb.VariationalBayes().fit(drawn.responses))  # noqa: B023
            table, table_s = timed(model.workers_table)
            plain = plain_intervals(model)
            rows.setdefault("vb", []).append(cover(drawn, plain[0][1:], plain[1][1:]))
            rows.setdefault("corrected", []).append(of_table(drawn, table))
            em = tb.DawidSkene(smoothing=1.0).fit(drawn.responses)
            rows.setdefault("ds", []).append(of_table(drawn, em.workers_table()))
            seconds.setdefault("fit", []).append(fit_s)
            seconds.setdefault("table", []).append(table_s)
            if seed >= FIRST_SEED + N_GIBBS:
                continue
            gibbs, gibbs_s = timed(lambda: tb.GibbsSampler().fit(drawn.responses))  # noqa: B023
            rows.setdefault("gibbs", []).append(of_table(drawn, gibbs.workers_table()))
            seconds.setdefault("gibbs", []).append(gibbs_s)
            hats.append(gibbs.r_hat_)
        found[f"K={n_classes}, {n_votes} votes"] = {
            **{name: _means(each) for name, each in rows.items()},
            "ms": {name: 1e3 * float(np.median(each)) for name, each in seconds.items()},
            "unmixed": int(np.sum(np.array(hats) > 1.05)),
        }
    return found


def many_workers() -> dict[str, Any]:
    """Crowds with more cells than are solved together."""
    found = {}
    for n_classes, n_votes, n_workers in ((2, 3, 300), (2, 5, 300), (4, 5, 60)):
        rows = []
        plain_rows = []
        seconds = []
        for seed in range(MANY):
            drawn = draw(1500, n_workers, n_classes, n_votes, 1000 + seed)
            model, fit_s = timed(lambda: tb.VariationalBayes().fit(drawn.responses))  # noqa: B023
            table, table_s = timed(model.workers_table)
            rows.append(of_table(drawn, table))
            plain = plain_intervals(model)
            plain_rows.append(cover(drawn, plain[0][1:], plain[1][1:]))
            seconds.append((fit_s, table_s))
        fit_s, table_s = np.median(seconds, axis=0)
        found[f"K={n_classes}, {n_votes} votes, {n_workers} workers"] = {
            "vb": _means(plain_rows),
            "corrected": _means(rows),
            "ms": {"fit": 1e3 * fit_s, "table": 1e3 * table_s},
        }
    return found


def datasets() -> dict[str, Any]:
    """Gibbs beside variational Bayes on the ten datasets, and what the table of workers costs."""
    found = {}
    for name in DATASETS:
        responses, gold = load(name)
        model, fit_s = timed(lambda: tb.VariationalBayes(calibrate="none").fit(responses))  # noqa: B023
        table, table_s = timed(model.workers_table)
        sampler = tb.GibbsSampler(**FEW_DRAWS)
        gibbs, gibbs_s = timed(lambda: sampler.fit(responses))  # noqa: B023
        words = [word.split(" towards")[0] for word in table.verdict]
        row: dict[str, Any] = {
            "vb": _scores(model, gold),
            "gibbs": _scores(gibbs, gold),
            "r_hat": gibbs.r_hat_,
            "seconds": {"fit": fit_s, "table": table_s, "gibbs": gibbs_s},
            "verdicts": {word: words.count(word) for word in sorted(set(words))},
        }
        found[name] = row
        print(name, row, flush=True)
    return found


def _scores(model: Any, gold: tb.Gold) -> dict[str, float]:
    labels = model.labels_
    return {
        "accuracy": tb.evaluate.accuracy(labels, gold),
        "f": tb.evaluate.f_score(labels, gold),
        "log_loss": tb.evaluate.log_loss(labels, gold, floor=1e-4),
        "ece10": tb.evaluate.calibration_error(labels, gold, 10),
    }


def _means(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "coverage": coverage,
    "many_workers": many_workers,
    "datasets": datasets,
    "costs": deciding.costs,
    "abstaining": deciding.abstaining,
    "quantiles": deciding.quantiles,
    "promises": deciding.promises,
    "more_votes": deciding.more_votes,
}


if __name__ == "__main__":
    tb.GibbsSampler(n_draws=20).fit([("a", "b", 0), ("c", "b", 1)])  # compiles
    run_parts(HERE, PARTS)
