"""Measure scales: see README.md."""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

import tiebreak as tb
from tiebreak.data.ids import Ids
from tiebreak.data.scale import coincidences, share_of_orders

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from common import run_parts  # noqa: E402

FLOOR = 1e-4  # of a probability, before its log is taken
DRAWS = int(os.environ.get("DRAWS", "200"))
GOLD_SIZES = (25, 50, 100)

CROWDS: dict[str, dict[str, Any]] = {
    "four judges": {"kind": "points", "n_tasks": 200, "n_workers": 4},
    "mixed, 200 x 4": {"kind": "mixed", "n_tasks": 200, "n_workers": 4},
    "mixed, 200 x 2": {"kind": "mixed", "n_tasks": 200, "n_workers": 2},
    "mixed, 300 x 10": {"kind": "mixed", "n_tasks": 300, "n_workers": 10},
    "mixed, 600 tasks, 40 workers": {
        "kind": "mixed",
        "n_tasks": 600,
        "n_workers": 40,
        "each": 5,
    },
    "noisy, 200 x 5": {"kind": "noisy", "n_tasks": 200, "n_workers": 5},
    "compressed, 200 x 5": {"kind": "compressed", "n_tasks": 200, "n_workers": 5},
    "mixed, errors shared": {"kind": "mixed", "n_tasks": 200, "n_workers": 5, "shared": 0.6},
    "mixed, K = 10": {"kind": "mixed", "n_tasks": 200, "n_workers": 5, "n_levels": 10},
}
# Spread of biases and of the log of gains, range of blurs, lapses.
KINDS = {
    "mixed": (0.6, 0.25, 0.3, 1.1, 0.05),
    "noisy": (0.2, 0.1, 0.8, 2.0, 0.1),
    "compressed": (0.3, 0.5, 0.3, 0.8, 0.02),
    "lenient": (0.4, 0.2, 0.3, 0.9, 0.02),
}


class Drawn(NamedTuple):
    """A simulated crowd, its levels as they are, and the truth."""

    responses: tb.Responses
    gold: tb.Gold
    n_levels: int


def draw(
    rng: np.random.Generator,
    kind: str,
    n_tasks: int,
    n_workers: int,
    each: int | None = None,
    n_levels: int = 5,
    truth: str = "uniform",
    shared: float = 0.0,
    order: np.ndarray[Any, Any] | None = None,
) -> Drawn:
    """Draw a crowd of readers of a scale, or "nominal": confusions without any order."""
    share = np.full(n_levels, 1.0 / n_levels)
    if truth == "drawn":
        share = rng.dirichlet(np.full(n_levels, 1.5))
    level = rng.choice(n_levels, n_tasks, p=share)
    middle, size = (n_levels - 1) / 2.0, (n_levels - 1) / 4.0
    each = each or n_workers
    task = np.repeat(np.arange(n_tasks), each)
    worker = np.concatenate([rng.permutation(n_workers)[:each] for _ in range(n_tasks)])
    if kind == "points":
        bias = np.resize([0, -1, 0, 1], n_workers)
        said = level[task] + bias[worker] + rng.choice([-1, 0, 0, 0, 1], len(task))
    elif kind == "nominal":
        right = rng.uniform(0.3, 0.9, n_workers)
        rows = rng.dirichlet(np.full(n_levels, 0.6), (n_workers, n_levels))
        rows = (1.0 - right)[:, None, None] * rows + right[:, None, None] * np.eye(n_levels)
        below = np.cumsum(rows, axis=2)[worker, level[task]]
        said = (rng.random(len(task))[:, None] > below).sum(axis=1)
    else:
        of_bias, of_gain, low, high, lapse = KINDS[kind]
        bias = rng.normal(0.0, of_bias * size, n_workers) + (0.8 * size) * (kind == "lenient")
        middle_gain = -0.3 if kind == "compressed" else 0.0
        gain = np.exp(rng.normal(middle_gain, of_gain, n_workers))
        blur = rng.uniform(low, high, n_workers) * size**0.75
        seen = (level + shared * size * rng.normal(size=n_tasks))[task]
        read = middle + bias[worker] + gain[worker] * (seen - middle)
        said = np.rint(read + blur[worker] * rng.normal(size=len(task)))
        lapses = rng.random(len(task)) < lapse
        said[lapses] = rng.integers(0, n_levels, lapses.sum())
    said = np.clip(said, 0, n_levels - 1).astype(np.int32)
    names = np.arange(n_levels) if order is None else order
    tasks, workers = Ids(np.arange(n_tasks)), Ids(np.arange(n_workers))
    classes = Ids(np.arange(1, n_levels + 1))
    responses = tb.Responses.from_codes(
        task, worker, names[said].astype(np.int32), tasks, workers, classes
    )
    gold = tb.Gold.from_columns(tasks.values, names[level] + 1)
    return Drawn(responses, gold, n_levels)


def score(labels: Any, gold: Any, given: Any = None) -> dict[str, float]:
    """Return the figures of labels."""
    found = {
        "accuracy": tb.evaluate.accuracy(labels, gold, given=given),
        "mae": tb.evaluate.mean_absolute_error(labels, gold, given=given),
        "kappa": tb.evaluate.weighted_kappa(labels, gold, given=given),
    }
    if labels.probabilities is not None:
        found["loss"] = tb.evaluate.log_loss(labels, gold, given=given, floor=FLOOR)
    if labels.scores is not None:
        found["cover"] = tb.evaluate.interval_coverage(labels, gold, given=given)
    return found


def rounded_mean(responses: tb.Responses, n_levels: int) -> dict[Any, int]:
    """Return the mean answer of each task, rounded."""
    task = responses.task_of_each()
    values = np.array([float(name) for name in responses.classes])[responses.label_of_each()]
    total = np.bincount(task, minlength=responses.n_tasks)
    mean = np.bincount(task, values, responses.n_tasks) / np.maximum(total, 1)
    level = np.clip(np.rint(mean), 1, n_levels).astype(int)
    return dict(zip(responses.tasks, level.tolist(), strict=True))


def of_mapping(labels: dict[Any, int], gold: Any, given: Any = None) -> dict[str, float]:
    return score(tb.read_labels(labels), gold, given)


def means(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Average the figures of several draws."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: float(np.mean([row[name] for row in rows if name in row])) for name in names}


def flat(**methods: dict[str, float]) -> dict[str, float]:
    return {f"{name} {what}": v for name, row in methods.items() for what, v in row.items()}


def crowds() -> dict[str, Any]:
    """Fit simulated crowds without gold: rounded mean, VB, the scale."""
    found = {}
    for title, options in CROWDS.items():
        rows = []
        for seed in range(DRAWS):
            rng = np.random.default_rng([seed, 1])
            made = draw(rng, truth=("uniform", "drawn")[seed % 2], **options)
            scale = f"1..{made.n_levels}"
            plain = tb.VariationalBayes(n_threads=1).fit(made.responses)
            model = tb.VariationalBayes(scale=scale, n_threads=1).fit(made.responses)
            median = {task: int(level) for task, level in model.decide("absolute").best().items()}
            rows.append(
                flat(
                    mean=of_mapping(rounded_mean(made.responses, made.n_levels), made.gold),
                    vb=score(plain.labels_, made.gold),
                    scale=score(model.labels_, made.gold),
                    median=of_mapping(median, made.gold),
                )
            )
        found[title] = {"draws": DRAWS, **means(rows)}
        print(title, found[title], flush=True)
    return found


def orders() -> dict[str, Any]:
    """Test orders: how often they are taken where there is one, and where levels are shuffled."""
    found = {}
    sizes: dict[str, dict[str, Any]] = {
        "200 x 4": {"n_tasks": 200, "n_workers": 4},
        "100 x 2": {"n_tasks": 100, "n_workers": 2},
        "compressed, 200 x 4": {"kind": "compressed", "n_tasks": 200, "n_workers": 4},
        "noisy, 200 x 4": {"kind": "noisy", "n_tasks": 200, "n_workers": 4},
        "600 tasks, 40 workers": {"n_tasks": 600, "n_workers": 40, "each": 5},
        "K = 10, 200 x 5": {"n_tasks": 200, "n_workers": 5, "n_levels": 10},
        "K = 6, 200 x 4": {"n_tasks": 200, "n_workers": 4, "n_levels": 6},
        "no order, 200 x 4": {"kind": "nominal", "n_tasks": 200, "n_workers": 4},
    }
    for title, options in sizes.items():
        taken, shuffled, apart = [], [], []
        for seed in range(DRAWS):
            given: dict[str, Any] = {"kind": "mixed", **options}
            given["truth"] = ("uniform", "drawn")[seed % 2]
            made = draw(np.random.default_rng([seed, 2]), **given)
            share = share_of_orders(coincidences(made.responses))
            taken.append(share is not None and share <= 0.035)
            rng = np.random.default_rng([seed, 3])
            order = rng.permutation(made.n_levels)
            while (np.diff(order) > 0).all() or (np.diff(order) < 0).all():
                order = rng.permutation(made.n_levels)
            made = draw(np.random.default_rng([seed, 2]), **given, order=order)
            share = share_of_orders(coincidences(made.responses))
            shuffled.append(share is not None and share <= 0.035)
            if shuffled[-1]:  # elsewhere "auto" is plain VB
                plain = tb.VariationalBayes(n_threads=1).fit(made.responses)
                auto = tb.VariationalBayes(scale="auto", n_threads=1).fit(made.responses)
                one, other = (tb.evaluate.accuracy(m.labels_, made.gold) for m in (auto, plain))
                apart.append(one - other)
        gain = float(np.sum(apart)) / DRAWS
        found[title] = {
            "draws": DRAWS,
            "taken": float(np.mean(taken)),
            "shuffled": float(np.mean(shuffled)),
            "accuracy of auto less VB, shuffled": gain,
        }
        print(title, found[title], flush=True)
    return found


# Real sets


def read_web() -> Drawn:
    folder = Path(os.environ["TIEBREAK_DATA"]) / "web"
    responses = tb.read_responses(folder / "responses.csv")
    return Drawn(responses, tb.read_gold(folder / "gold.csv"), 5)


def read_care(step: int) -> tuple[tb.Responses, dict[Any, float]]:
    folder = Path(os.environ["TIEBREAK_SETS"]) / "data-scales" / "care_asset"
    responses = tb.read_responses(folder / "responses.csv", scale=f"0..100/{step}")
    with (folder / "gold.csv").open() as file:
        return responses, {row["task"]: float(row["score"]) for row in csv.DictReader(file)}


def draw_gold(gold: tb.Gold, n: int, seed: int) -> tb.Gold:
    """Draw known tasks."""
    chosen = np.random.default_rng([seed, n]).choice(len(gold), n, replace=False)
    names = gold.to_dict()
    tasks = list(names)
    return tb.Gold.from_dict({tasks[i]: names[tasks[i]] for i in np.sort(chosen)})


def web() -> dict[str, Any]:
    """Fit Web: all of it, nine tenths of it, with links, and the times of both models."""
    made = read_web()
    found: dict[str, Any] = {}
    for name, options in {"vb": {}, "scale": {"scale": "1..5"}}.items():
        times = []
        for _ in range(6):
            start = time.perf_counter()
            model = tb.VariationalBayes(n_threads=1, **options).fit(made.responses)
            times.append(time.perf_counter() - start)
        found[name] = score(model.labels_, made.gold) | {"seconds": float(np.median(times[1:]))}
        links = tb.simulate.links(made.gold, 600, random_state=0)
        linked = tb.VariationalBayes(n_threads=1, **options).fit(made.responses, links=links)
        broken = tb.evaluate.violations(linked.labels_, links).given
        found[f"{name}, 600 links"] = score(linked.labels_, made.gold) | {"broken": broken}
        rows = []
        for seed in range(5):
            kept = np.random.default_rng(seed).random(made.responses.n_responses) < 0.9
            part = some_of(made.responses, kept)
            model = tb.VariationalBayes(n_threads=1, **options).fit(part)
            rows.append(score(model.labels_, made.gold))
        found[f"{name}, 90 %"] = means(rows) | {"each": [row["accuracy"] for row in rows]}
    found["auto"] = score(tb.Auto().fit(made.responses).labels_, made.gold)
    found["auto, scale"] = score(tb.Auto(scale="1..5").fit(made.responses).labels_, made.gold)
    return found


def some_of(responses: tb.Responses, kept: np.ndarray[Any, Any]) -> tb.Responses:
    return tb.Responses.from_codes(
        responses.task_of_each()[kept],
        responses.worker_of_each()[kept],
        responses.label_of_each()[kept],
        responses.tasks,
        responses.workers,
        responses.classes,
    )


def sets() -> Iterator[tuple[str, int, Drawn]]:
    """Yield Web and three simulated juries, some draws of each."""
    for seed in range(6):
        yield "web", seed, read_web()
    for title, options in {
        "lenient": {"kind": "lenient"},
        "mixed": {"kind": "mixed"},
        "mixed, K = 10": {"kind": "mixed", "n_levels": 10},
    }.items():
        for seed in range(6):
            rng = np.random.default_rng([seed, 4])
            yield title, seed, draw(rng, n_tasks=600, n_workers=6, **options)


def line(made: Drawn, known: tb.Gold) -> dict[Any, int]:
    """Label by a cumulative logit of the mean answer, fitted to gold."""
    mean = np.array(list(mean_answer(made.responses).values()))
    z = (mean - mean.mean()) / (mean.std() + 1e-9)
    label = np.array([int(float(str(each))) - 1 for each in known.to_dict().values()])
    task = made.responses.tasks.codes(known.tasks)
    share = (np.bincount(label, minlength=made.n_levels) + 0.5) / (len(label) + 0.5 * made.n_levels)
    below = np.cumsum(share)[:-1]
    cut = np.log(below / (1.0 - below))
    gap = np.log(np.maximum(np.diff(cut), 0.05))

    def chances(p: Any, at: Any) -> Any:
        cuts = np.cumsum(np.r_[p[0], np.exp(p[1:-1])])
        under = expit(cuts - (at * p[-1])[:, None])
        under = np.c_[np.zeros(len(at)), under, np.ones(len(at))]
        return np.maximum(np.diff(under, axis=1), 1e-9)

    def cost(p: Any) -> float:
        prior = ((p[1:-1] - gap) ** 2).sum() / 0.49 + (p[-1] - 1.0) ** 2 + (p[0] - cut[0]) ** 2 / 9
        return float(prior / 2 - np.log(chances(p, z[task])[np.arange(len(label)), label]).sum())

    best = minimize(cost, np.r_[cut[0], gap, 1.0], method="L-BFGS-B").x
    level = chances(best, z).argmax(axis=1) + 1
    return dict(zip(made.responses.tasks, level.tolist(), strict=True))


def mean_answer(responses: tb.Responses) -> dict[Any, float]:
    task = responses.task_of_each()
    values = np.array([float(str(name)) for name in responses.classes])[responses.label_of_each()]
    total = np.bincount(task, minlength=responses.n_tasks)
    mean = np.bincount(task, values, responses.n_tasks) / np.maximum(total, 1)
    mean[total == 0] = values.mean()
    return dict(zip(responses.tasks, mean.tolist(), strict=True))


def gold() -> dict[str, Any]:
    """Fit with 25, 50 and 100 known tasks, which are not scored."""
    rows: dict[str, list[dict[str, float]]] = {}
    for title, seed, made in sets():
        scale = f"1..{made.n_levels}"
        for n in GOLD_SIZES:
            known = draw_gold(made.gold, n, seed)
            fits = {
                "vb": tb.VariationalBayes(n_threads=1),
                "auto": tb.Auto(n_threads=1),
                "scale": tb.VariationalBayes(scale=scale, n_threads=1),
                "auto_scale": tb.Auto(scale=scale, n_threads=1),
            }
            figures = {
                name: score(each.fit(made.responses, gold=known).labels_, made.gold, known)
                for name, each in fits.items()
            }
            figures["line"] = of_mapping(line(made, known), made.gold, known)
            rows.setdefault(f"{title}, {n} gold", []).append(flat(**figures))
        print(title, seed, flush=True)
    return {title: {"draws": len(of), **means(of)} for title, of in rows.items()}


def points_off(labels: dict[Any, Any], truth: dict[Any, float], known: Any = ()) -> float:
    """Return how many points labels are off in the mean, on tasks that are not known."""
    scored = [task for task in truth if task not in known and task in labels]
    return float(np.mean([abs(float(labels[task]) - truth[task]) for task in scored]))


def care() -> dict[str, Any]:
    """Fit care_asset, points from 0 to 100, with and without 50 known tasks."""
    found: dict[str, Any] = {}
    for step in (20, 10):
        responses, truth = read_care(step)
        scale = f"0..100/{step}"
        options: dict[str, Any] = {"scale": scale, "n_threads": 1}

        model = tb.VariationalBayes(**options).fit(responses)
        found[f"{step}, no gold"] = {
            "mean answer": points_off(mean_answer(responses), truth),
            "median": points_off(model.decide("absolute").best(), truth),
            "score": points_off(dict(zip(model.tasks_, model.scores_, strict=True)), truth),
        }
        rows = []
        for seed in range(6):
            chosen = np.random.default_rng([seed, 50]).choice(len(truth), 50, replace=False)
            tasks = list(truth)
            known = {tasks[i]: truth[tasks[i]] for i in np.sort(chosen)}
            model = tb.VariationalBayes(**options).fit(responses, gold=known)
            auto = tb.Auto(**options).fit(responses, gold=known)
            of_mean = mean_answer(responses)
            x = np.array([of_mean[task] for task in known])
            slope, level = np.polyfit(x, np.array(list(known.values())), 1)
            by_line = {task: level + slope * value for task, value in of_mean.items()}
            rows.append(
                {
                    "line": points_off(by_line, truth, known),
                    "median": points_off(model.decide("absolute").best(), truth, known),
                    "mode": points_off(model.labels_.best(), truth, known),
                    "auto, median": points_off(auto.decide("absolute").best(), truth, known),
                }
            )
        found[f"{step}, 50 gold"] = means(rows)
        print(found, flush=True)
    return found


def taken() -> dict[str, Any]:
    """Ask of every real set whether it is a scale."""
    found: dict[str, Any] = {}
    for variable in ("TIEBREAK_DATA", "TIEBREAK_JURIES"):
        for folder in sorted(Path(os.environ[variable]).iterdir()):
            file = next(folder.glob("responses.csv*"), None) if folder.is_dir() else None
            if file is None:
                continue
            responses = tb.read_responses(file)
            try:
                scale = tb.VariationalBayes(scale="auto", max_iter=1).fit(responses).scale_
                found[folder.name] = {"taken": scale is not None}
            except tb.InputError as error:
                found[folder.name] = {"taken": False, "why": error.code}
            print(folder.name, found[folder.name], flush=True)
    return found


PARTS = {
    "web": web,
    "taken": taken,
    "orders": orders,
    "crowds": crowds,
    "gold": gold,
    "care": care,
}

if __name__ == "__main__":
    run_parts(HERE, PARTS)
