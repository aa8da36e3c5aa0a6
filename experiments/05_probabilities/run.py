"""Measure probabilities and worker models on the ten datasets, the juries and simulated crowds.

    python experiments/05_probabilities/run.py [part …]

Each part is kept in `results.json` as it ends; `report.py` turns that file into pages. The ten
datasets lie in the folder that TIEBREAK_DATA names, the juries in that of TIEBREAK_JURIES.
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from common import NAMES, by_bound, run_parts

import tiebreak as tb
from tiebreak.data.ids import Ids

HERE = Path(__file__).parent
DATASETS = tuple(NAMES)
ONE_ORDER = "llmbar, last order"  # 65 judges; as the file is read, each of two orders is one
JUDGES_OF = (ONE_ORDER, "llmbar", "rewardbench2", "tc_toxicity_zh", "tc_policy_en")
JURIES = (*JUDGES_OF, "ws_trec", "ws_sms")
FLOOR = 1e-4
JUDGES = 0.5  # dependence of LLM judges
N_GOLD = (10, 50, 100)
SEEDS = range(30)  # six draws are not enough: their means differ by 0.06 from those of thirty
N_CROWDS = 40
N_SIMULATED = 4  # crowds of each kind
WORKER_MODELS = ("confusion", "coin", "kinds", "subtypes", "kinds+subtypes", "communities")


@cache
def load(name: str) -> tuple[tb.Responses, tb.Gold]:
    root = os.environ["TIEBREAK_DATA" if name in DATASETS else "TIEBREAK_JURIES"]
    folder = Path(root) / name.split(",")[0]
    gold = tb.read_gold(folder / "gold.csv")
    if name == ONE_ORDER:
        with (folder / "responses.csv").open(encoding="utf-8", newline="") as file:
            rows = [(row["task"], row["worker"], row["label"]) for row in csv.DictReader(file)]
        return tb.Responses.from_rows(rows, repeats="last"), gold
    repeats = {} if name in DATASETS else {"repeats": "last"}
    return tb.read_responses(folder / "responses.csv", **repeats), gold


def figures(model: Any, gold: Any, given: Any = None) -> dict[str, float]:
    """Return accuracy, calibration errors, log-loss, and confidence less accuracy."""
    labels = model.labels_
    accuracy = tb.evaluate.accuracy(labels, gold, given=given)
    return {
        "accuracy": accuracy,
        "ece10": tb.evaluate.calibration_error(labels, gold, 10, given=given),
        "ece15": tb.evaluate.calibration_error(labels, gold, 15, given=given),
        "log_loss": tb.evaluate.log_loss(labels, gold, given=given, floor=FLOOR),
    }


def without_gold() -> dict[str, Any]:
    """Plain VB: as the model says, at 0.35, at 0.5; labels must be the same."""
    found = {}
    for name in (*DATASETS, *JURIES):
        responses, gold = load(name)
        by_option = {}
        labels = []
        for key, options in (
            ("none", {"calibrate": "none"}),
            ("0.35", {}),
            ("0.5", {"dependence": JUDGES}),
        ):
            model = tb.VariationalBayes(**options).fit(responses)
            labels.append(model.labels_.label)
            by_option[key] = figures(model, gold)
        by_option["labels_changed"] = int(sum((each != labels[0]).sum() for each in labels[1:]))
        found[name] = by_option
    return found


def some_of(gold: tb.Gold, n: int, seed: int) -> dict[Any, Any]:
    chosen = np.random.default_rng(seed).permutation(len(gold))[:n]
    return {gold.tasks[int(i)]: gold.classes[int(gold.label[i])] for i in chosen}


def with_gold() -> dict[str, Any]:
    """Calibrate by some gold or links on plain VB's scores, against the best ρ for all gold."""
    from tiebreak.inference import calibration
    from tiebreak.inference.calibration import Calibration

    found = {}
    for name in (*DATASETS, *JUDGES_OF):
        scores, n_each, truth = scores_of(name)
        grid = [Calibration(rho) for rho in (0.0, *np.logspace(-3, 0, 40))]
        best = min(loss(scores, each.scale(n_each), truth) for each in grid)
        row: dict[str, Any] = {"best": best}
        expected = 0.35 if name in DATASETS else JUDGES
        row["0"] = loss(scores, Calibration(expected).scale(n_each), truth)
        for n in N_GOLD:
            for kind, make in (("gold", gold_evidence), ("links", link_evidence)):
                losses = []
                for seed in SEEDS:
                    used, evidence = make(truth, n, seed)
                    tasks = evidence.tasks()
                    among = evidence.among(tasks)
                    fitted = calibration.fit(scores[tasks], n_each[tasks], among, expected)
                    rest = np.setdiff1d(np.arange(len(truth)), used)
                    losses.append(loss(scores[rest], fitted.scale(n_each[rest]), truth[rest]))
                row[f"{kind} {n}"] = float(np.mean(losses))
        found[name] = row
    return found


@cache
def scores_of(name: str) -> tuple[Any, Any, Any]:
    """Return plain VB's class scores of gold's tasks, their responses, and the truth."""
    responses, gold = load(name)
    model = tb.VariationalBayes(calibrate="votes", dependence=0.0).fit(responses)
    known = gold.on(model.tasks_, model.classes_)
    q = model.probabilities_[known.task]
    n_each = np.diff(responses.start)[known.task].astype(float)
    return np.log(np.maximum(q, 1e-300)), n_each, known.label


def gold_evidence(truth: Any, n: int, seed: int) -> tuple[Any, Any]:
    from tiebreak.data.gold import GoldCodes
    from tiebreak.inference.calibration import Evidence

    chosen = np.sort(np.random.default_rng(seed).permutation(len(truth))[:n]).astype(np.int32)
    return chosen, Evidence(None, np.empty(0), GoldCodes(chosen, truth[chosen]))


def link_evidence(truth: Any, n: int, seed: int) -> tuple[Any, Any]:
    from tiebreak.inference.calibration import TRUSTED_ERROR, Evidence

    classes = Ids(range(int(truth.max()) + 1))
    known = tb.Gold(Ids(range(len(truth))), truth, classes, row=np.arange(len(truth)))
    links = tb.simulate.links(known, n, random_state=seed).on(known.tasks)
    evidence = Evidence(links, np.full(n, TRUSTED_ERROR), None)
    return np.empty(0, dtype=np.int64), evidence


def loss(scores: Any, scale: Any, truth: Any) -> float:
    from tiebreak.kernels.arrays import softmax

    q = softmax(scale[:, None] * scores)
    return tb.evaluate.Scored(truth, truth, q.shape[1], None, q).log_loss(FLOOR)


def model_right() -> dict[str, Any]:
    """Draw crowds from the model itself: confidence less accuracy, and log-loss."""
    found = {}
    for n_classes, votes in ((2, 3), (2, 10), (2, 12), (4, 5), (4, 12)):
        rows: dict[str, list[tuple[float, float]]] = {}
        for seed in range(N_CROWDS):
            responses, gold = from_prior(n_classes, votes, seed)
            for key, options, n in (
                ("none", {"calibrate": "none"}, 0),
                ("auto 0", {}, 0),
                ("auto 10", {}, 10),
                ("auto 100", {}, 100),
            ):
                given = some_of(gold, n, seed) if n else None
                model = tb.VariationalBayes(gold_weight=1, **options).fit(responses, gold=given)
                rows.setdefault(key, []).append(over_confidence(model, gold, given))
        found[f"K={n_classes}, {votes} votes"] = {
            key: np.mean(values, axis=0).tolist() for key, values in rows.items()
        }
    return found


def over_confidence(model: Any, gold: tb.Gold, given: Any) -> tuple[float, float]:
    known = gold.on(model.tasks_, model.classes_)
    keep = np.array([given is None or gold.tasks[i] not in given for i in range(len(gold))])
    task = known.task[keep]
    right = model.labels_.label[task] == known.label[keep]
    stated = model.labels_.probability[task]
    return (
        float(stated.mean() - right.mean()),
        tb.evaluate.log_loss(model.labels_, gold, given=given, floor=FLOOR),
    )


def from_prior(n_classes: int, votes: int, seed: int) -> tuple[tb.Responses, tb.Gold]:
    rng = np.random.default_rng(seed)
    prior = np.ones((n_classes, n_classes)) + (n_classes - 1) * np.eye(n_classes)
    theta = np.array([[rng.dirichlet(row) for row in prior] for _ in range(12)])
    shares = rng.dirichlet(np.ones(n_classes))
    drawn = tb.simulate.crowd(
        400,
        12,
        n_classes,
        responses_per_task=votes,
        class_prior=shares,
        confusion=theta,
        random_state=rng,
    )
    return drawn.responses, drawn.gold


def simulated_crowds() -> Iterator[tuple[str, int, tb.Responses, tb.Gold]]:
    """Draw crowds that err apart, together, of three kinds, with subtypes, one-class voters."""
    for seed in range(N_SIMULATED):
        rng = np.random.default_rng(100 + seed)
        n_classes = 2 + seed % 3
        common = {"responses_per_task": 6, "random_state": rng}
        for kind in ("apart", "together", "kinds", "subtypes", "one class"):
            options: dict[str, Any] = dict(common)
            if kind == "together":
                options["shared"] = 0.4
            if kind == "kinds":
                options["confusion"] = three_kinds(n_classes, rng)
            if kind == "subtypes":
                yield kind, seed, *subtypes(n_classes, rng)
                continue
            drawn = tb.simulate.crowd(600, 24, n_classes, **options)
            if kind == "one class":
                yield kind, seed, one_class(drawn, rng), drawn.gold
            else:
                yield kind, seed, drawn.responses, drawn.gold


def three_kinds(n_classes: int, rng: Any) -> Any:
    """A third are good, a third middling, a third answer by fixed shares."""
    is_right = np.eye(n_classes, dtype=bool)
    good = np.where(is_right, 4.5 * n_classes, 0.5)
    middling = np.where(is_right, n_classes, 1.0)
    flat = np.tile(n_classes * rng.dirichlet(np.ones(n_classes)) + 0.2, (n_classes, 1))
    kinds = [(good, middling, flat)[w % 3] for w in range(24)]
    return np.array([[rng.dirichlet(row) for row in kind] for kind in kinds])


def subtypes(n_classes: int, rng: Any) -> tuple[tb.Responses, tb.Gold]:
    """Each class has an easy and a hard subtype; on hard tasks workers confuse alike."""
    easy = rng.uniform(0.7, 0.9, 24)
    rows = []
    truth = rng.integers(n_classes, size=600)
    hard = rng.random(600) < 0.25
    for i, k in enumerate(truth):
        other = (k + 1) % n_classes
        for w in rng.choice(24, 6, replace=False):
            right = 0.4 if hard[i] else easy[w]
            wrong = other if hard[i] else (k + rng.integers(1, n_classes)) % n_classes
            rows.append((f"t{i}", f"w{w}", f"c{k if rng.random() < right else wrong}"))
    gold = tb.Gold.from_dict({f"t{i}": f"c{k}" for i, k in enumerate(truth)})
    return tb.Responses.from_rows(rows), gold


def one_class(drawn: Any, rng: Any) -> tb.Responses:
    """Half of the workers are rules: of what they said, only one class of each is kept."""
    responses = drawn.responses
    label = responses.label_of_each()
    worker = responses.worker_of_each()
    only = np.where(np.arange(24) % 2, rng.integers(responses.n_classes, size=24), -1)
    keep = (only[worker] < 0) | (only[worker] == label)
    task = responses.task_of_each()[keep]
    return tb.Responses.from_codes(
        task,
        worker[keep],
        label[keep],
        responses.tasks,
        responses.workers,
        responses.classes,
    )


def simulated() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, seed, responses, gold in simulated_crowds():
        row: dict[str, Any] = {}
        for key, options in (("none", {"calibrate": "none"}), ("vb", {})):
            row[key] = figures(tb.VariationalBayes(**options).fit(responses), gold)
        model = by_bound(responses)
        row["auto"] = figures(model, gold)
        row["chosen"] = model.worker_model
        row["majority"] = tb.evaluate.accuracy(tb.MajorityVote().fit(responses).labels_, gold)
        found[f"{kind}/{seed}"] = row
    return found


def worker_models() -> dict[str, Any]:
    found = {}
    for name in (*DATASETS, *JURIES):
        responses, gold = load(name)
        dependence = 0.35 if name in DATASETS else JUDGES
        row: dict[str, Any] = {}
        for key in WORKER_MODELS:
            model = tb.VariationalBayes(worker_model=key, dependence=dependence).fit(responses)
            row[key] = figures(model, gold)
        model = by_bound(responses, dependence=dependence)
        row["auto"] = figures(model, gold)
        row["chosen"] = model.worker_model
        row["majority"] = tb.evaluate.accuracy(tb.MajorityVote().fit(responses).labels_, gold)
        found[name] = row
    return found


def trust() -> dict[str, Any]:
    """Six judges that err together and one person who errs apart, all right equally often."""
    found = {}
    for n_classes in (2, 4):
        for right in (0.7, 0.8, 0.9):
            rows = [_panel(n_classes, right, seed) for seed in range(10)]
            found[f"K={n_classes}, {right:g}"] = np.mean(rows, axis=0).tolist()
    return found


def _panel(n_classes: int, right: float, seed: int) -> list[float]:
    judges = tb.simulate.crowd(
        1000, 6, n_classes, responses_per_task=6, accuracy=right, shared=0.4, random_state=seed
    )
    person = tb.simulate.crowd_for(
        judges.gold, 1, responses_per_task=1, accuracy=right, random_state=1000 + seed
    )
    crowds = (judges.responses, person.responses)
    rows = [
        (crowd.tasks[int(t)], name + str(w), crowd.classes[int(k)])
        for crowd, name in zip(crowds, ("judge", "person"), strict=True)
        for t, w, k in zip(
            crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each(), strict=True
        )
    ]
    responses = tb.Responses.from_rows(rows)
    gold = judges.gold
    alone = tb.evaluate.accuracy(tb.MajorityVote().fit(person.responses).labels_, gold)
    fits = [
        tb.VariationalBayes(trust=each).fit(responses)
        for each in (None, {"person0": 50.0}, {"person0": 500.0})
    ]
    return [alone, *(tb.evaluate.accuracy(fit.labels_, gold) for fit in fits)]


def few_responses() -> dict[str, Any]:
    """Tasks and workers with few responses: accuracy of majority, VB and Dawid-Skene."""
    found = {}
    for per_task in (1.25, 1.5, 1.75, 2.0, 3.0):
        for per_worker in (1, 2, 4, 6, 8, 16):
            rows = [
                _sparse(n_classes, per_task, per_worker, seed)
                for n_classes in (2, 4)
                for seed in range(200, 212)
            ]
            found[f"{per_task:g} {per_worker}"] = np.mean(rows, axis=0).tolist()
    return found


def _sparse(n_classes: int, per_task: float, per_worker: float, seed: int) -> list[float]:
    """Draw 300 tasks; workers are right with 0.5 to 0.95, and guess else."""
    rng = np.random.default_rng((seed, n_classes))
    truth = rng.choice(n_classes, 300, p=rng.dirichlet(np.full(n_classes, 5.0)))
    n_workers = max(4, int(300 * per_task / per_worker))
    right = rng.uniform(0.5, 0.95, n_workers)
    rows = []
    for task, true in enumerate(truth):
        n = int(per_task) + int(rng.random() < per_task % 1.0)
        for worker in rng.choice(n_workers, min(n, n_workers), replace=False):
            is_known = rng.random() < right[worker]
            rows.append((task, int(worker), int(true if is_known else rng.integers(n_classes))))
    responses = tb.Responses.from_rows(rows)
    gold = tb.Gold.from_dict({task: int(true) for task, true in enumerate(truth)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that responses are few, and that classes go amiss
        fits = [
            model.fit(responses)
            for model in (tb.MajorityVote(), tb.VariationalBayes(), tb.DawidSkene())
        ]
    return [tb.evaluate.accuracy(fit.labels_, gold) for fit in fits]


def near_modes() -> dict[str, Any]:
    """Where the second look of plain VB finds another mode, and what it costs (best of seven)."""
    from tiebreak.inference import near_modes as second_look

    found = {}
    look = second_look.find_near_mode
    for name in (*DATASETS, *JURIES):
        responses, _ = load(name)
        took: list[float] = []
        ends: list[Any] = []

        def timed(*given: Any, took: list[float] = took, ends: list[Any] = ends) -> Any:
            begin = time.process_time()
            ends.append(look(*given))
            took.append(time.process_time() - begin)
            return ends[-1]

        whole = []
        with mock.patch.object(second_look, "find_near_mode", timed):
            for _ in range(7):
                begin = time.process_time()
                tb.VariationalBayes().fit(responses)
                whole.append(time.process_time() - begin)
        alone = min(each - own for each, own in zip(whole, took, strict=True))
        end = ends[-1]
        found[name] = {
            "share_of_time": min(took) / alone,
            "behind": None if end is None else end.behind,
            "labels_changed": 0 if end is None else end.n_changed,
            "tasks": responses.n_tasks,
        }
    return found


def reliability() -> dict[str, Any]:
    """Pool the labels of the ten datasets: stated probability and share right, by tenths."""
    found = {}
    for key, options in (("none", {"calibrate": "none"}), ("0.35", {})):
        stated = []
        right = []
        for name in DATASETS:
            responses, gold = load(name)
            model = tb.VariationalBayes(**options).fit(responses)
            known = gold.on(model.tasks_, model.classes_)
            stated.append(model.labels_.probability[known.task])
            right.append(model.labels_.label[known.task] == known.label)
        p = np.concatenate(stated)
        ok = np.concatenate(right)
        tenth = np.minimum((10 * p).astype(int), 9)
        found[key] = [
            [float(p[tenth == t].mean()), float(ok[tenth == t].mean()), int((tenth == t).sum())]
            for t in range(10)
            if (tenth == t).sum() >= 20
        ]
    return found


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "without_gold": without_gold,
    "with_gold": with_gold,
    "model_right": model_right,
    "simulated": simulated,
    "worker_models": worker_models,
    "trust": trust,
    "few_responses": few_responses,
    "reliability": reliability,
    "near_modes": near_modes,
}


if __name__ == "__main__":
    run_parts(HERE, PARTS)
