"""Measure the committee beside the vote: see README.md."""

from __future__ import annotations

import csv
import gzip
import json
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tiebreak as tb
from tiebreak.data.gold import GoldCodes
from tiebreak.data.ids import Ids
from tiebreak.estimators import committee, gold_stage
from tiebreak.inference.door import lay_out
from tiebreak.inference.workers.one_class import rows_to_fix
from tiebreak.kernels.contract import choose_backend

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
FLOOR = 1e-4  # of a probability, before its log is taken
GOLD_SIZES = (10, 25, 50, 100)
LARGE = ("trec", "product", "tc_policy_en")  # left out with links, for time
OTHERS = (
    "data-scales/care_asset",
    "data-sequences/pico",
    "data-sequences/weak_BC5CDR",
    "data-sequences/weak_LaptopReview",
    "data-sequences/weak_NCBI-Disease",
)
Rows = list[tuple[str, str, str]]
Row = dict[str, Any]


class Data(NamedTuple):
    """A crowd and the true class of some of its tasks."""

    name: str
    rows: Rows
    truth: dict[str, str]

    @property
    def classes(self) -> list[str]:
        return sorted({label for *_, label in self.rows} | set(self.truth.values()))

    def responses(self) -> tb.Responses:
        return tb.Responses.from_rows(self.rows).with_classes(Ids(self.classes))


def read(kind: str) -> Iterator[Data]:
    """Yield the datasets of TIEBREAK_DATA, or the juries of TIEBREAK_JURIES."""
    root = Path(os.environ["TIEBREAK_JURIES" if kind == "juries" else "TIEBREAK_DATA"])
    for folder in sorted(path.parent for path in root.glob("*/gold.csv")):
        said = {}  # the last answer of a worker to a task counts
        for row in _table(folder / "responses.csv"):
            if row["label"]:
                said[row["task"], row["worker"]] = row["label"]
        truth = {row["task"]: row["label"] for row in _table(folder / "gold.csv")}
        yield Data(folder.name, [(*key, label) for key, label in said.items()], truth)


def _table(path: Path) -> Iterator[dict[str, str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def seeded(*parts: Any) -> np.random.Generator:
    """Return a generator that is the same for the same words and numbers."""
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in parts])


class Scores(NamedTuple):
    accuracy: float
    loss: float


def score(model: Any, truth: dict[str, str], *, shares_ties: bool = False) -> Scores:
    """Return how often labels are right, and the log-loss; ties of votes count by their share."""
    code = {task: place for place, task in enumerate(model.tasks_)}
    known = [(code[task], label) for task, label in truth.items() if task in code]
    at = np.array([place for place, _ in known])
    class_of = {label: k for k, label in enumerate(model.classes_)}
    label = np.array([class_of[label] for _, label in known])
    q = model.probabilities_[at]
    own = q[np.arange(len(at)), label]
    right = model.labels_.label[at] == label
    if shares_ties:
        top = q >= q.max(axis=1, keepdims=True) - 1e-12
        right = top[np.arange(len(at)), label] / top.sum(axis=1)
    return Scores(float(right.mean()), float(-np.log(np.clip(own, FLOOR, 1.0)).mean()))


def compare(data: Data) -> Row:
    """Fit the methods to a crowd; return their scores, times, and what differs from the vote."""
    crowd = data.responses()
    row: Row = {}
    for name, model in (
        ("vote", tb.MajorityVote()),
        ("vb", tb.VariationalBayes()),
        ("ds", tb.DawidSkene()),
        ("kinds", tb.VariationalBayes(worker_model="kinds")),
        ("careful", tb.Auto(members=("votes", "first-step"))),
        ("auto", tb.Auto()),
    ):
        began = time.perf_counter()
        model.fit(crowd)
        row[f"{name}_s"] = time.perf_counter() - began
        found = score(model, data.truth, shares_ties=name == "vote")
        row |= {name: found.accuracy, f"{name}_loss": found.loss}
        if name == "auto":
            row |= {"n_differ": model.from_vote_.n_differ, **_came_true(model, data.truth)}
            row["members"] = {each.name: each.n_differ for each in model.members_}
    return row


def _came_true(model: Any, truth: dict[str, str]) -> Row:
    """Return how many more labels than the vote's were expected to be right, and how many were."""
    votes = tb.MajorityVote().fit(model.responses_).probabilities_
    q = model.probabilities_
    expected = came = 0.0
    for place, task in enumerate(model.tasks_):
        top = votes[place] >= votes[place].max() - 1e-9
        label = int(model.labels_.label[place])
        if top[label] or task not in truth:
            continue
        right = np.array([name == truth[task] for name in model.classes_])
        expected += float(q[place, label] - q[place][top].mean())
        came += float(right[label]) - float(right[top].mean())
    return {"expected_right": expected, "came_true": came}


def part_sets() -> Iterator[Row]:
    for data in read("sets"):
        yield {"unit": data.name} | compare(data)


def part_juries() -> Iterator[Row]:
    for data in read("juries"):
        yield {"unit": data.name} | compare(data)


def part_others() -> Iterator[Row]:
    """Crowds that nothing was chosen on: phrases in sequences, and scores from 0 to 100 in fifths.

    Sequences are taken token by token, as a user would who knows nothing better.
    """
    for name in OTHERS:
        (responses,) = Path(os.environ["TIEBREAK_SETS"], name).glob("responses.csv*")
        said, known = (list(_table(path)) for path in (responses, _beside(responses, "gold.csv")))
        if "score" in said[0]:
            rows = [(row["task"], row["judge"], _fifth(row["score"])) for row in said]
            truth = {row["task"]: _fifth(row["score"]) for row in known}
        else:
            rows = [(row["task"], row["worker"], row["label"]) for row in said]
            truth = {row["task"]: row["label"] for row in known}
        yield {"unit": responses.parent.name} | compare(Data(name, rows, truth))


def _beside(path: Path, name: str) -> Path:
    (found,) = path.parent.glob(f"{name}*")
    return found


def _fifth(score: str) -> str:
    return str(min(int(float(score) // 20), 4))


def part_panels() -> Iterator[Row]:
    """Panels of some judges, all answers or 60 % of them, at most 400 tasks, five draws each."""
    for data in read("juries"):
        sizes = (10, 20) if data.name.startswith("ws") else (3, 4, 5)
        for size in sizes:
            draws = [
                compare(panel)
                for share in (1.0, 0.6)
                for draw in range(5)
                if (panel := _panel(data, size, share, draw)) is not None
            ]
            yield {"unit": f"{data.name} {size}"} | _mean(draws)


def _panel(data: Data, size: int, share: float, draw: int) -> Data | None:
    rng = seeded(data.name, size, share, draw)
    workers = np.unique([worker for _, worker, _ in data.rows])
    tasks = np.unique([task for task, *_ in data.rows])
    chosen = set(rng.choice(workers, min(size, len(workers)), replace=False).tolist())
    some = set(rng.choice(tasks, min(400, len(tasks)), replace=False).tolist())
    rows = [
        row
        for row, keep in zip(data.rows, rng.random(len(data.rows)) < share, strict=True)
        if keep and row[0] in some and row[1] in chosen
    ]
    return _kept(data, rows) if len(rows) >= 50 else None


def part_thinned() -> Iterator[Row]:
    """The ten datasets with 2, 3 and 5 responses a task, at most 1,000 tasks, two draws."""
    for data in read("sets"):
        for n_responses in (2, 3, 5):
            draws = [compare(_thin(data, n_responses, draw)) for draw in range(2)]
            yield {"unit": f"{data.name} {n_responses}"} | _mean(draws)


def _thin(data: Data, n_responses: int, draw: int) -> Data:
    rng = seeded(data.name, n_responses, draw)
    tasks = np.unique([task for task, *_ in data.rows])
    some = set(rng.choice(tasks, min(1000, len(tasks)), replace=False).tolist())
    by_task: dict[str, Rows] = {}
    for row in data.rows:
        if row[0] in some:
            by_task.setdefault(row[0], []).append(row)
    rows = [
        given[place]
        for given in by_task.values()
        for place in rng.permutation(len(given))[:n_responses]
    ]
    return _kept(data, rows)


def _kept(data: Data, rows: Rows) -> Data:
    tasks = {task for task, *_ in rows}
    truth = {task: label for task, label in data.truth.items() if task in tasks}
    return Data(data.name, rows, truth)


def _mean(draws: list[Row]) -> Row:
    numbers = [name for name, value in draws[0].items() if not isinstance(value, dict)]
    return {name: float(np.mean([draw[name] for draw in draws])) for name in numbers}


def part_simulated() -> Iterator[Row]:
    """Forty crowds of workers who are right .6 to .95 of the time; forty from VB's own prior."""
    for kind in ("easy", "prior"):
        for draw in range(40):
            rng = seeded(kind, draw)
            n_classes = int(rng.choice([2, 3, 4]))
            n_responses = int(rng.choice([3, 5, 8]))
            n_workers = int(rng.choice([n_responses + 2, 20, 40]))
            shares = rng.dirichlet(np.full(n_classes, 3.0 if kind == "easy" else 1.0))
            confusion = None
            if kind == "prior":
                counts = np.ones((n_classes, n_classes)) + (n_classes - 1) * np.eye(n_classes)
                confusion = np.array(
                    [[rng.dirichlet(row) for row in counts] for _ in range(n_workers)]
                )
            crowd = tb.simulate.crowd(
                500,
                n_workers,
                n_classes,
                responses_per_task=n_responses,
                class_prior=shares,
                confusion=confusion,
                random_state=rng,
            )
            given = crowd.responses
            truth: Any = crowd.gold.to_dict()
            columns = (given.task_of_each(), given.worker_of_each(), given.label_of_each())
            names = (given.tasks, given.workers, given.classes)
            rows: Any = [
                tuple(ids[int(each)] for ids, each in zip(names, row, strict=True))
                for row in zip(*columns, strict=True)
            ]
            yield {"unit": f"{kind} {draw}"} | compare(Data(kind, rows, truth))


def part_orders() -> Iterator[Row]:
    """Shuffle rows, rename tasks, workers and classes, turn gold round: ten ways each."""
    for kind in ("sets", "juries"):
        for data in read(kind):
            worst = 0.0
            n_other = 0
            known = dict(sorted(data.truth.items())[:50])
            for gold in (None, known):
                base = tb.Auto().fit(data.responses(), gold=gold)
                for draw in range(5):
                    found = _in_another_order(data, gold, draw)
                    gap, other = _differences(base, found, draw)
                    worst = max(worst, gap)
                    n_other += other
            yield {"unit": data.name, "worst": worst, "labels_that_differ": n_other}


def _new_name(word: str, draw: int) -> str:
    return f"{zlib.crc32(f'{word} {draw}'.encode()):08x}{word}"


def _in_another_order(data: Data, gold: dict[str, str] | None, draw: int) -> Any:
    rng = seeded(data.name, draw)
    rows: Any = [
        tuple(_new_name(word, draw) for word in data.rows[place])
        for place in rng.permutation(len(data.rows))
    ]
    known = None
    if gold is not None:
        pairs = [(_new_name(task, draw), _new_name(label, draw)) for task, label in gold.items()]
        known = dict(pairs[place] for place in rng.permutation(len(pairs)))
    classes = sorted(_new_name(label, draw) for label in data.classes)
    return tb.Auto().fit(tb.Responses.from_rows(rows).with_classes(Ids(classes)), gold=known)


def _differences(base: Any, found: Any, draw: int) -> tuple[float, int]:
    """Return the largest difference of probabilities, and labels that differ without a tie."""
    task = found.tasks_.codes([_new_name(name, draw) for name in base.tasks_])
    label = found.classes_.codes([_new_name(name, draw) for name in base.classes_])
    q = found.probabilities_[task][:, label]
    sure = np.sort(base.probabilities_, axis=1)
    is_tie = sure[:, -1] - sure[:, -2] <= 1e-9
    same = base.labels_.label == np.argsort(label)[found.labels_.label[task]]
    return float(np.abs(q - base.probabilities_).max()), int((~same & ~is_tie).sum())


def part_gold() -> Iterator[Row]:
    """Known labels of the juries and the datasets: three draws, tasks that are not known."""
    for kind in ("juries", "sets"):
        for data in read(kind):
            crowd = tb.Responses.from_rows(data.rows)
            there = set(crowd.tasks)
            tasks = sorted(task for task in data.truth if task in there)
            row: Row = {"unit": data.name, "kind": kind}
            for size in GOLD_SIZES:
                if 2 * size > len(tasks):
                    continue
                found = [_with_gold(crowd, tasks, data.truth, size, draw) for draw in range(3)]
                row[f"auto_{size}"] = float(np.mean([each.accuracy for each in found]))
                row[f"auto_{size}_loss"] = float(np.mean([each.loss for each in found]))
            yield row


def _with_gold(
    crowd: tb.Responses, tasks: list[str], truth: dict[str, str], size: int, draw: int
) -> Scores:
    order = np.random.default_rng(draw).permutation(len(tasks))
    known = {tasks[place]: truth[tasks[place]] for place in order[:size]}
    model = tb.Auto().fit(crowd, gold=known)
    classes = set(model.classes_)
    rest = {task: truth[task] for task in tasks if task not in known and truth[task] in classes}
    return score(model, rest)


def part_first_labels() -> Iterator[Row]:
    """How far the first, second, …, tenth label moves any task that is not known: 20 draws.

    Members do not hear gold, so that they are fitted once.
    """
    for data in read("juries"):
        crowd = data.responses()
        base = tb.Auto().fit(crowd)
        names = ("first-step", "even", "kinds")
        opinions = [base.probabilities_]
        opinions += [tb.Auto(members=(name,)).fit(crowd).probabilities_ for name in names]
        opinions.append(tb.VariationalBayes(calibrate="votes").fit(crowd).probabilities_)
        tasks = lay_out(crowd)
        truth = tb.Gold.from_dict(data.truth).on(crowd.tasks, crowd.classes)
        knows_shares = rows_to_fix(crowd) is not None
        backend = choose_backend("auto", crowd.n_responses)
        moves = np.zeros((20, 10))
        for draw in range(20):
            order = seeded("first", data.name, draw).permutation(len(truth.task))
            before = base.probabilities_
            for size in range(1, 11):
                at = np.sort(order[:size])
                known = GoldCodes(truth.task[at], truth.label[at])
                stage = gold_stage.learn(opinions, tasks, known, knows_shares=knows_shares)
                q = stage.probabilities(opinions, tasks, backend)
                gap = np.abs(q - before).max(axis=1)
                gap[known.task] = 0.0
                moves[draw, size - 1] = gap.max()
                before = q
        by_label = {str(n + 1): float(moves[:, n].max()) for n in range(10)}
        yield {"unit": data.name, "above_.2": float((moves > 0.2).mean()), "most": by_label}


def part_links() -> Iterator[Row]:
    """True links of 4, 20 and 80 % of the tasks, and the same with a tenth of them wrong."""
    for kind in ("sets", "juries"):
        for data in read(kind):
            if data.name in LARGE or data.name.startswith("ws"):
                continue
            crowd = data.responses()
            row: Row = {"unit": data.name, "plain": score(tb.Auto().fit(crowd), data.truth)[0]}
            for share in (0.04, 0.2, 0.8):
                for wrong in (0.0, 0.1):
                    found = [_linked(data, crowd, share, wrong, size) for size in (2, 5)]
                    for name in found[0]:
                        mean = float(np.mean([each[name] for each in found]))
                        row[f"{name}_{share}_{wrong}"] = mean
            yield row


def _draw_links(data: Data, crowd: tb.Responses, share: float, wrong: float, size: int) -> tb.Links:
    """Link groups of tasks of one class, and pairs of two, each half of the linked tasks."""
    rng = seeded("links", data.name, share, size)
    there = set(crowd.tasks)
    tasks = sorted(task for task in data.truth if task in there)
    order = [tasks[place] for place in rng.permutation(len(tasks))]
    half = int(share / 2.0 * len(order))
    must: list[tuple[str, str]] = []
    for label in data.classes:
        alike = [task for task in order[:half] if data.truth[task] == label]
        for low in range(0, len(alike) - size + 1, size):
            must += [(alike[low], other) for other in alike[low + 1 : low + size]]
    rest = order[half : 2 * half]
    pairs = zip(rest[::2], rest[1::2], strict=False)
    cannot = [(a, b) for a, b in pairs if data.truth[a] != data.truth[b]]
    if wrong:
        n_wrong = round(wrong * (len(must) + len(cannot)))
        for _ in range(n_wrong):
            a, b = (order[int(place)] for place in rng.integers(len(order), size=2))
            if a != b:
                (cannot if data.truth[a] == data.truth[b] else must).append((a, b))
    return tb.Links.from_pairs(must=must, cannot=cannot)


def _linked(data: Data, crowd: tb.Responses, share: float, wrong: float, size: int) -> Row:
    """Fit both methods with links of which some are wrong."""
    links = _draw_links(data, crowd, share, wrong, size)
    options = tb.ExactLinkOptions(error=wrong) if wrong else None
    row: Row = {}
    for name, model in (
        ("auto", tb.Auto(link_options=options, on_contradiction="drop")),
        ("vb", tb.VariationalBayes(link_options=options, on_contradiction="drop")),
    ):
        model.fit(crowd, links=links)
        found = score(model, data.truth)
        row |= {name: found.accuracy, f"{name}_loss": found.loss}
        if not wrong:
            row[f"{name}_broken"] = 0 if model.violations_ is None else len(model.violations_)
    return row


def part_omega() -> Iterator[Row]:
    """The weight of kinds with true links: the line between 1 and 3, and both ends of it."""
    line = committee.weight_of_kinds
    weights = {"line": line, "one": lambda _: 1.0, "three": lambda _: 3.0}
    for kind in ("sets", "juries"):
        for data in read(kind):
            if data.name in LARGE or data.name.startswith("ws"):
                continue
            crowd = data.responses()
            row: Row = {"unit": data.name}
            for name, weight in weights.items():
                committee.weight_of_kinds = weight
                for share in (0.04, 0.2, 0.8):
                    fits = []
                    for size in (2, 5):
                        links = _draw_links(data, crowd, share, 0.0, size)
                        model = tb.Auto(on_contradiction="drop").fit(crowd, links=links)
                        fits.append(score(model, data.truth))
                    row[f"{name}_{share}"] = float(np.mean([each.accuracy for each in fits]))
                    row[f"{name}_{share}_loss"] = float(np.mean([each.loss for each in fits]))
            committee.weight_of_kinds = line
            yield row


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    name.removeprefix("part_"): made
    for name, made in list(globals().items())
    if name[:5] == "part_"
}


def main() -> None:
    warnings.simplefilter("ignore")
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name in sys.argv[1:] or PARTS:
        rows = []
        for row in PARTS[name]():
            rows.append(_short(row))
            print(name, json.dumps(rows[-1]), flush=True)
        results[name] = rows
        text = ",\n".join(f' "{part}": {_lines(found)}' for part, found in results.items())
        RESULTS.write_text(f"{{\n{text}\n}}\n", "utf-8")


def _lines(rows: list[Row]) -> str:
    return "[\n  " + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]"


def _short(value: Any) -> Any:
    """Keep four digits of what is below 1, and one of larger numbers."""
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, float):
        return float(f"{value:.2e}") if 0.0 < abs(value) < 1e-4 else round(value, 4)
    return value


if __name__ == "__main__":
    main()
