"""Measure runs, orders, shared errors, rates and routing on the juries.

    python experiments/08_panels/run.py [part …]

Each part is kept in `results.json` as it ends; `report.py` turns that file into tables of
docs/judges.md. The juries lie in the folder that TIEBREAK_JURIES names.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from common import RESULTS

import tiebreak as tb
from tiebreak.judges.dependence import shared_errors
from tiebreak.judges.known import gold_table, known_codes
from tiebreak.judges.rates import ClassRates
from tiebreak.research.paper.runner import made_on

HERE = Path(__file__).parent
JURIES = ("llmbar", "rewardbench2", "tc_toxicity_zh", "tc_policy_en")
CLASSES = {"llmbar": (0,), "rewardbench2": (0, 1, 2, 3), "tc_toxicity_zh": (0,)}
COMMON_CLASSES = 4  # of tc_policy_en, the most frequent
FLOOR = 1e-4
JUDGES = 0.5
N_DRAWS = 100
N_GOLD = 50
LEVEL = 0.9
GOLD_DRAWS = ("50", "100", "60, unequal")
FIRST_DRAW = 1000  # of gold for rates: draws from here on have chosen no constant
N_RATES = 1000  # draws: a coverage of .90 is then known within .01
N_SLOW = 60  # of these, for the estimates that take long
N_SIMULATED = 20  # juries of each kind
N_EACH = 50  # draws of gold of each
N_SLOW_EACH = 5


@cache
def load(name: str, repeats: str = "runs") -> tuple[tb.Responses, tb.Gold]:
    folder = Path(os.environ["TIEBREAK_JURIES"]) / name
    return tb.read_responses(folder / "responses.csv", repeats=repeats), tb.read_gold(
        folder / "gold.csv"
    )


@cache
def fitted(name: str) -> Any:
    return tb.VariationalBayes(dependence=JUDGES).fit(load(name)[0])


def figures(model: Any, gold: Any) -> dict[str, float]:
    return {
        "accuracy": tb.evaluate.accuracy(model.labels_, gold),
        "log_loss": tb.evaluate.log_loss(model.labels_, gold, floor=FLOOR),
    }


def runs() -> dict[str, Any]:
    """Score every way to settle repeats, files as they are."""
    found: dict[str, Any] = {}
    for name in JURIES:
        for repeats in ("last", "vote", "count", "runs"):
            responses, gold = load(name, repeats)
            model = tb.VariationalBayes(dependence=JUDGES).fit(responses)
            found.setdefault(name, {})[repeats] = figures(model, gold)
        shown = load(name)[0].runs
        assert shown is not None
        found[name]["run_correlation"] = shown.run_correlation
        found[name]["order_correlation"] = shown.order_correlation
    return found


def family_of(worker: str, name: str) -> str:
    if name == "llmbar":
        return worker.split("/")[0]
    first = re.split(r"[-_.\d:]", worker.lower())[0]
    return "claude" if first in ("sonnet", "haiku") else first


def groups() -> dict[str, Any]:
    """Score one discount for all judges of a family."""
    found: dict[str, Any] = {}
    for name in JURIES:
        responses, gold = load(name)
        families = {worker: family_of(str(worker), name) for worker in responses.workers}
        row: dict[str, Any] = {"families": len(set(families.values()))}
        for dependence in (0.0, 0.1, 0.3, 0.6, 1.0):
            crowd = tb.judges.share_discount(responses, families, dependence)
            model = tb.VariationalBayes(dependence=JUDGES).fit(crowd)
            row[str(dependence)] = figures(model, gold)
        found[name] = row
    return found


def shared() -> dict[str, Any]:
    """Count how often the intervals of 50 labels hold what all gold says."""
    found = {}
    for name in JURIES:
        responses, gold = load(name)
        task, label = known_codes(gold, responses.tasks, responses.classes)
        whole = shared_errors(gold_table(responses, task, label))
        hits = []
        drawn = []
        for seed in range(N_DRAWS):
            rows = np.random.default_rng(seed).choice(len(task), N_GOLD, replace=False)
            each = shared_errors(gold_table(responses, task[rows], label[rows]), whole.n_judges)
            low, high = each.effective_interval
            hits.append(
                (
                    each.interval[0] <= whole.correlation <= each.interval[1],
                    low <= whole.effective <= high,
                )
            )
            drawn.append((each.correlation, *each.interval))
        inside = np.mean(hits, axis=0)
        found[name] = {
            "correlation": whole.correlation,
            "effective": whole.effective,
            "n_judges": whole.n_judges,
            "drawn": np.mean(drawn, axis=0).tolist(),
            "holds_correlation": float(inside[0]),
            "holds_effective": float(inside[1]),
        }
    return found


def rates() -> dict[str, Any]:
    """Count how often intervals of 90 % hold the true share, on juries and simulated ones."""
    found: dict[str, Any] = {}
    for name, model, is_class, k in jury_cases():
        for how in GOLD_DRAWS:
            seeds = range(FIRST_DRAW, FIRST_DRAW + N_RATES)
            hits = _coverage(model, is_class, k, how, seeds, N_SLOW)
            found.setdefault(name, {}).setdefault(how, []).append(hits)
    for shared in (0.0, 0.3, 0.6):
        for number in range(N_SIMULATED):
            model, is_class, k = simulated_case(shared, 100 + number)
            first = FIRST_DRAW + number * N_EACH
            for how in GOLD_DRAWS:
                seeds = range(first, first + N_EACH)
                hits = _coverage(model, is_class, k, how, seeds, N_SLOW_EACH)
                key = f"simulated, shared {shared}"
                found.setdefault(key, {}).setdefault(how, []).append(hits)
    return found


def jury_cases() -> list[tuple[str, Any, Any, int]]:
    """Return the juries with a class each: model, which tasks are of the class, its code."""
    cases = []
    for name in JURIES:
        model = fitted(name)
        truth = known_truth(model, load(name)[1])
        common = np.argsort(-np.bincount(truth[truth >= 0]))[:COMMON_CLASSES].tolist()
        cases += [(name, model, truth == k, k) for k in CLASSES.get(name, common)]
    return cases


def simulated_case(shared: float, seed: int) -> tuple[Any, Any, int]:
    crowd = tb.simulate.crowd(1000, 6, responses_per_task=6, shared=shared, random_state=seed)
    model = tb.VariationalBayes(dependence=JUDGES).fit(crowd.responses)
    return model, known_truth(model, crowd.gold) == 0, 0


def known_truth(model: Any, gold: Any) -> Any:
    """Return the class of each task; −1 where it is not known."""
    task, label = known_codes(gold, model.tasks_, model.classes_)
    truth = np.full(len(model.tasks_), -1)
    truth[task] = label
    return truth


def _coverage(
    model: Any, truth: Any, k: int, how: str, seeds: Iterable[int], n_slow: int
) -> dict[str, list[float]]:
    """Return how often an interval holds the truth, and its width; slow ones on `n_slow` draws."""
    f = model.probabilities_[:, k]
    rows: dict[str, list[tuple[bool, float]]] = {}
    for number, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        n = int(how.split(",")[0])
        if how.endswith("unequal"):
            drawn = tb.judges.sample_tasks(model, n, random_state=seed)
            task, chance = drawn.task, drawn.probability
        else:
            task = rng.choice(len(f), n, replace=False).astype(np.int32)
            chance = np.full(n, n / len(f))
        said = np.asarray(model.labels_.label) == k
        each = ClassRates(f, said, task, truth[task] > 0.5, chance, LEVEL, rng)
        everyone = np.ones(len(f), dtype=bool)
        found: dict[str, Any] = {
            "ppi": each.prediction_powered(everyone),
            "gold": each.gold_alone(everyone),
        }
        if number < n_slow:
            found["posterior"] = each.posterior(everyone, is_part=False)
            if len(model.classes_) == 2:
                found["rogan-gladen"] = each.rogan_gladen(everyone)
        for method, estimate in found.items():
            if estimate is not None:
                hit = bool(estimate.low <= truth.mean() <= estimate.high)
                rows.setdefault(method, []).append((hit, estimate.high - estimate.low))
    return {method: np.mean(values, axis=0).tolist() for method, values in rows.items()}


def routing() -> dict[str, Any]:
    """Spend money on juries: a wrong label costs 1, a human's .1; 100 labels are known."""
    found = {}
    for name in JURIES:
        responses, gold = load(name)
        labels = gold.to_dict()
        rows = []
        for seed in range(6):
            keys = list(labels)
            drawn = np.random.default_rng(seed).choice(len(keys), 100, replace=False)
            some = {keys[i]: labels[keys[i]] for i in drawn.tolist()}
            model = tb.VariationalBayes(dependence=JUDGES).fit(responses, gold=some)
            plan = tb.decide.plan_routes(model, wrong=1.0, human=0.1)
            done = plan.rows("done")
            wrong = sum(
                label != labels[task]
                for task, label in zip(done["task"], done["label"], strict=True)
                if task in labels
            )
            n = len(labels)
            best = model.labels_.best()
            alone = sum(best[task] != labels[task] for task in labels)
            rows.append(
                (
                    plan.n_human / n,
                    1.0 - wrong / n,
                    (0.1 * plan.n_human + wrong + 0.1 * 100) / n,
                    (alone + 0.1 * 100) / n,
                )
            )
        mean = np.mean(rows, axis=0).tolist()
        names = ("to_human", "accuracy", "cost", "cost_all_done")
        found[name] = dict(zip(names, mean, strict=True)) | {"cost_three_humans": 0.3}
    return found


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "runs": runs,
    "groups": groups,
    "shared": shared,
    "routing": routing,
    "rates": rates,
}


def main() -> None:
    warnings.simplefilter("ignore")
    path = HERE / RESULTS
    kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name in sys.argv[1:] or PARTS:
        kept[name] = PARTS[name]()
        kept["made"] = made_on()
        path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        print(f"{name} done")


if __name__ == "__main__":
    main()
