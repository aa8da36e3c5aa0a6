"""Run experiment 07: gold on juries and crowds, by every method.

TIEBREAK_DATA=… TIEBREAK_JURIES=… python experiments/07_juries/run.py [--datasets …] [--collect]
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tiebreak.inference.best_worker import BestWorker

from tiebreak.gold import GoldCodes
from tiebreak.inference import (
    comparison,
    gold_weights,
    opinion_weights,
    overturned,
    stages,
    vb,
)
from tiebreak.inference.calibration import DEPENDENCE, Honesty
from tiebreak.inference.inputs import Inputs, read_and_check_inputs
from tiebreak.inference.problem import Patterns
from tiebreak.kernels.arrays import softmax

sys.path.append(str(Path(__file__).parents[1]))
from common import Experiment, read_config

FOLDER = Path(__file__).parent
CONFIG = read_config(FOLDER)
FLOOR = 1e-4  # of probabilities, in log-loss
SIX = "Vanilla"  # the prompt of the six judges of llmbar


class Case(NamedTuple):
    dataset: str
    method: str  # "all": every method sees the same gold
    size: int
    seed: int


class Loaded(NamedTuple):
    """A dataset, and plain VB on it, which is the same for every draw of gold."""

    responses: Any
    truth: Any  # gold of tasks with responses
    plain: Any
    terms: Any
    other: Any  # the worker model with the highest bound, and its plain fit; None: the plain one


@cache
def load(name: str) -> Loaded:
    import tiebreak as tb

    root = Path(os.environ["TIEBREAK_JURIES" if name in CONFIG["juries"] else "TIEBREAK_DATA"])
    if name in CONFIG["simulated"]:
        return prepare(*simulated(name))
    folder = root / name.removesuffix("_six")
    gold = tb.read_gold(folder / "gold.csv")
    with warnings.catch_warnings(action="ignore"):
        if name in ("llmbar", "llmbar_six"):
            responses = tb.Responses.from_rows(last_rows(folder, only_six=name == "llmbar_six"))
        else:
            responses = tb.read_responses(folder / "responses.csv")
    return prepare(responses.with_classes(gold.classes), gold)


def prepare(responses: Any, gold: Any) -> Loaded:
    """Fit plain VB, and the worker model with the highest bound."""
    known = gold.on(responses.tasks, responses.classes)
    answered = np.diff(responses.start)[known.task] > 0
    truth = GoldCodes(known.task[answered], known.label[answered])
    auto = estimator()
    inputs = read_and_check_inputs(responses, None, None)
    patterns = Patterns(stages.lay_out(responses))
    plain = auto._plain(patterns, inputs, "confusion")
    other = auto._other_model(patterns, inputs)
    terms = opinion_weights.make_terms(plain.problem, plain.run.beliefs, DEPENDENCE)
    return Loaded(responses, truth, plain, terms, other)


def simulated(name: str) -> tuple[Any, Any]:
    """Make a jury of 12 on 800 tasks of three classes.

    *apart*: each errs alone. *together*: on half of the tasks all who err give the same wrong
    label. *star*: so too, and one judge is right on .92 of the tasks, alone. *herd*: on 45 % of
    the tasks eleven judges give the same wrong label, and one judge does not.
    """
    import tiebreak as tb

    rng = np.random.default_rng(7)
    n_tasks = 800
    truth = rng.integers(0, 3, n_tasks)
    wrong = (truth + rng.integers(1, 3, n_tasks)) % 3
    together = rng.random(n_tasks) < {"sim_apart": 0.0, "sim_herd": 1.0}.get(name, 0.5)
    herd = rng.random(n_tasks) < 0.45
    rows = []
    for judge in range(12):
        is_star = judge == 0 and name in ("sim_star", "sim_herd")
        right = rng.random(n_tasks) < (0.92 if is_star else rng.uniform(0.6, 0.8))
        if name == "sim_herd" and not is_star:
            right = np.where(rng.random(n_tasks) < 0.1, right, ~herd)
        own = (truth + rng.integers(1, 3, n_tasks)) % 3
        said = np.where(right, truth, np.where(together & (not is_star), wrong, own))
        rows += [(f"t{i}", f"j{judge}", f"c{k}") for i, k in enumerate(said.tolist())]
    labels = {f"t{i}": f"c{k}" for i, k in enumerate(truth.tolist())}
    return tb.Responses.from_rows(rows), tb.Gold.from_dict(labels)


def estimator() -> Any:
    import tiebreak as tb

    return tb.Auto(backend="numba", n_threads=1)


def last_rows(folder: Path, *, only_six: bool) -> list[tuple[str, str, str]]:
    """Return the last verdict of each judge on each task, whatever the order: repeats="last"."""
    with (folder / "responses.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    judges = {row["worker"] for row in rows}
    if only_six:
        judges = set(six_of(judges))
    last = {(row["task"], row["worker"]): row["label"] for row in rows if row["worker"] in judges}
    return [(task, worker, label) for (task, worker), label in last.items()]


def six_of(judges: set[str]) -> list[str]:
    """Return one judge of each model, all with the same prompt."""
    return sorted(judge for judge in judges if judge.endswith(f"/{SIX}"))


def cases() -> list[Case]:
    seeds = range(CONFIG["first_seed"], CONFIG["first_seed"] + CONFIG["seeds"])
    return [
        Case(dataset, "all", size, seed)
        for dataset in CONFIG["datasets"]
        for size in CONFIG["sizes"]
        for seed in seeds
    ]


def work(case: Case) -> dict[str, Any]:
    loaded = load(case.dataset)
    truth = loaded.truth
    n_gold = len(truth.task)
    rng = np.random.default_rng([case.seed, case.size])
    known = np.zeros(n_gold, dtype=bool)
    known[rng.choice(n_gold, min(case.size, n_gold // 2), replace=False)] = True
    gold = GoldCodes(truth.task[known], truth.label[known])
    rest = GoldCodes(truth.task[~known], truth.label[~known])
    found: dict[str, Any] = {}
    with warnings.catch_warnings(action="ignore"):
        for name, method in METHODS.items():
            q = method(loaded, gold)
            found[name] = score(limited(loaded, gold, q) if name in LIMITED else q, rest)
        if case.size in auto_sizes(case.dataset):
            start = time.perf_counter()
            q, weights = by_auto(loaded, gold)
            q = limited(loaded, gold, q)
            seconds = time.perf_counter() - start
            found["auto"] = {**score(q, rest), "weights": weights, "seconds": round(seconds, 2)}
    return {**case._asdict(), "found": found}


def auto_sizes(dataset: str) -> list[int]:
    sizes = CONFIG["auto"]
    if dataset.startswith("llmbar"):
        return list(sizes["llmbar"])
    is_jury = dataset in CONFIG["juries"] + CONFIG["simulated"]
    return list(sizes["juries" if is_jury else "crowds"])


def score(q: Any, rest: Any) -> dict[str, float]:
    label = q.label if isinstance(q, Labelled) else q.argmax(axis=1)
    q = q.q if isinstance(q, Labelled) else q
    share = np.maximum(q[rest.task, rest.label], FLOOR)
    return {
        "accuracy": round(float((label[rest.task] == rest.label).mean()), 5),
        "log_loss": round(float(-np.log(share).mean()), 5),
    }


class Labelled(NamedTuple):
    """Probabilities, and labels that scaling does not change."""

    q: Any
    label: Any


def limited(loaded: Loaded, gold: Any, found: Any) -> Labelled:
    """Do what every `fit` does last: where gold contradicts the crowd, labels are less sure."""
    label = found.label if isinstance(found, Labelled) else found.argmax(axis=1)
    q = found.q if isinstance(found, Labelled) else found
    inputs = Inputs(loaded.responses, None, None, None, None, gold, None)
    return Labelled(overturned.limit(inputs, q, label)[0], label)


def by_vb(plain: Any, gold: Any, gold_weight: Any = "auto") -> Labelled:
    """Do what `VariationalBayes.fit` does after plain VB."""
    problem, run = plain
    table = gold_weights.find(gold_weight, gold, Patterns(problem.tasks), problem.n_classes)
    problem = problem._replace(gold_weight=table)
    stopping = estimator()._stopping
    found = stages.fit_gold(problem, run, run.beliefs, gold, stopping, Honesty())
    return Labelled(found.q, vb.class_probabilities(problem, found.run.q).argmax(axis=1))


def by_pool(loaded: Loaded, gold: Any) -> Any:
    opinion = opinion_weights.learn(loaded.terms, gold)
    return softmax(loaded.terms.scores(opinion, loaded.plain.problem.backend) + opinion.offset)


def by_best(loaded: Loaded, gold: Any) -> Any:
    plain = loaded.plain
    return softmax(BestWorker.of(plain.problem.tasks, plain.shares, gold).scores())


def by_shares(loaded: Loaded, gold: Any) -> Any:
    return vb.majority(loaded.plain.problem.tasks, loaded.responses.n_classes)


def by_votes(loaded: Loaded, gold: Any) -> Any:
    return softmax(comparison.vote_scores(loaded.plain, gold, DEPENDENCE))


METHODS = {
    "mv": by_shares,
    "votes": by_votes,
    "vb_once": lambda loaded, gold: by_vb(loaded.plain, gold, 1),
    "vb": lambda loaded, gold: by_vb(loaded.plain, gold),
    "best": by_best,
    "pool": by_pool,
}


LIMITED = ("vb", "pool")  # with `gold_weight=1` gold is no sample, and limits nothing


def by_auto(loaded: Loaded, gold: Any) -> tuple[Any, dict[str, float]]:
    """Do what `Auto.fit` does after plain fits; also return how much each method counts."""
    auto = estimator()
    members = auto._methods(loaded.plain, loaded.other, gold)
    auto._weigh(members, gold)
    everything = np.arange(loaded.responses.n_tasks, dtype=np.int32)
    of_vb = by_vb(loaded.plain, gold)
    scores = auto._pooled_scores(members, of_vb, gold, len(everything))
    return softmax(scores), {each.name: round(each.weight, 4) for each in auto.members_}


def cell_of(case: Case) -> str:
    return f"{case.dataset} {case.size}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Keep the figures of every draw by method; of auto, mean weights and how long it took."""
    kept: dict[str, Any] = {}
    for name in rows[0]["found"]:
        of_method = [row["found"][name] for row in rows]
        kept[name] = {key: [each[key] for each in of_method] for key in ("accuracy", "log_loss")}
        if name == "auto":
            names = of_method[0]["weights"]
            kept[name]["weights"] = {
                each: round(float(np.mean([row["weights"][each] for row in of_method])), 3)
                for each in names
            }
            kept[name]["seconds"] = float(np.median([each["seconds"] for each in of_method]))
    return kept


if __name__ == "__main__":
    Experiment(FOLDER, CONFIG, cases, work, cell_of, summary).main()
