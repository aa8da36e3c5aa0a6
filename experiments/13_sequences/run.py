"""Measure sequences and networks: see README.md. `python run.py simulated texts sleep networks`."""

from __future__ import annotations

import csv
import gzip
import os
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak as tb

SETS = Path(os.environ.get("TIEBREAK_SETS", "sets")) / "data-sequences"
KINDS = ("X", "Y")
MODELS = {
    "none": tb.SequenceOptions(model="none"),
    "chain": tb.SequenceOptions(model="chain", words=False),
    "auto": tb.SequenceOptions(),
}
Rows = list[tuple[str, str, str]]
Truth = dict[str, str]


# Crowds that are drawn


def draw_texts(rng: np.random.Generator, n: int = 150) -> tuple[tb.Sequences, list[list[str]]]:
    """Draw sentences: tags of spans of two kinds, and words of which half tell the kind."""
    texts: list[list[str]] = []
    columns: dict[str, list[Any]] = {"task": [], "sequence": [], "text": []}
    for s in range(n):
        tags: list[str] = []
        length = int(rng.integers(8, 25))
        while len(tags) < length:
            kind = rng.choice(["O", *KINDS], p=[0.8, 0.12, 0.08])
            size = 1 if kind == "O" else int(rng.integers(1, 5))
            tags += ["O"] if kind == "O" else [f"B-{kind}"] + [f"I-{kind}"] * (size - 1)
        texts.append(tags)
        for t, tag in enumerate(tags):
            columns["task"].append(f"{s}:{t}")
            columns["sequence"].append(s)
            told = tag[-1] if rng.random() < 0.5 else "any"
            columns["text"].append(f"{told}{min(int(rng.zipf(1.6)), 60)}")
    return tb.Sequences.from_table(columns), texts


def read_spans(tags: list[str]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for i, tag in enumerate(tags):
        letter, _, kind = tag.partition("-")
        if letter == "B":
            found.append((i, i, kind))
        elif letter == "I" and found and found[-1][1:] == (i - 1, kind):
            found[-1] = (found[-1][0], i, kind)
    return found


def mark_as_person(rng: np.random.Generator, tags: list[str], skill: float) -> list[str]:
    """Miss spans, move their ends, take one kind for the other, mark what is none."""
    said = ["O"] * len(tags)
    marked = [each for each in read_spans(tags) if rng.random() < skill]
    if rng.random() > skill:
        first = int(rng.integers(len(tags)))
        marked.append((first, first + int(rng.integers(3)), str(rng.choice(KINDS))))
    for first, last, kind in marked:
        if rng.random() > skill:
            last += int(rng.integers(-1, 3))
        if rng.random() > skill:
            first -= int(rng.integers(0, 2))
        kind = kind if rng.random() < skill else str(rng.choice(KINDS))
        for i in range(max(first, 0), min(last, len(tags) - 1) + 1):
            said[i] = f"I-{kind}" if i > max(first, 0) else f"B-{kind}"
    return said


def people(seed: int, n_each: int) -> tuple[Rows, tb.Sequences, Truth]:
    rng = np.random.default_rng(seed)
    sequences, texts = draw_texts(rng)
    skill = rng.uniform(0.5, 0.9, 12)
    rows: Rows = []
    for s, tags in enumerate(texts):
        for w in rng.choice(len(skill), n_each, replace=False):
            said = mark_as_person(rng, tags, skill[w])
            rows += [(f"{s}:{t}", f"w{w}", tag) for t, tag in enumerate(said)]
    return (
        rows,
        sequences,
        {f"{s}:{t}": tag for s, x in enumerate(texts) for t, tag in enumerate(x)},
    )


def rules(seed: int, n_rules: int = 4) -> tuple[Rows, tb.Sequences, Truth]:
    """Draw rules that look words up: right or wrong on a word everywhere."""
    rng = np.random.default_rng(seed)
    sequences, texts = draw_texts(rng)
    assert sequences.word is not None
    assert sequences.words is not None
    word = sequences.word.tolist()
    truth = [tag for tags in texts for tag in tags]
    rows: Rows = []
    for w in range(n_rules):
        knows = rng.random(len(sequences.words)) < 0.6
        wrong = rng.random(len(sequences.words)) < 0.05
        before = "O"
        for i, task in enumerate(sequences.tasks):
            kind = truth[i][-1] if knows[word[i]] else "O"
            kind = str(rng.choice(KINDS)) if wrong[word[i]] else kind
            is_first = str(task).endswith(":0")
            goes_on = not is_first and kind != "O" and before[-1] == kind
            before = "O" if kind == "O" else f"{'I' if goes_on else 'B'}-{kind}"
            rows.append((str(task), f"rule{w}", before))
    return rows, sequences, dict(zip(map(str, sequences.tasks), truth, strict=True))


def epochs(seed: int, share: float) -> tuple[Rows, tb.Sequences, Truth]:
    """Draw nights of stages that last, which each of five scorers saw some of."""
    rng = np.random.default_rng(seed)
    stages = ("N2", "N3", "REM", "W")
    rows: Rows = []
    truth: Truth = {}
    for night in range(12):
        stage = 0
        for t in range(300):
            stage = stage if rng.random() < 0.93 else int(rng.integers(4))
            truth[f"{night}:{t}"] = stages[stage]
            for w in range(5):
                if rng.random() < share:
                    said = stage if rng.random() < 0.75 else int(rng.integers(4))
                    rows.append((f"{night}:{t}", f"s{w}", stages[said]))
    tasks = list(truth)
    return rows, tb.Sequences.from_columns(tasks, [task.split(":")[0] for task in tasks]), truth


# Figures


def f1(model: Any, sequences: tb.Sequences, truth: Truth) -> tuple[float, float]:
    """Return strict and relaxed F1 of spans; where classes are no tags, accuracy twice."""
    label = model.labels_.best()
    if not any(each.startswith("B-") for each in truth.values()):
        right = float(np.mean([label[task] == each for task, each in truth.items()]))
        return right, right
    rows = [(task, "truth", each) for task, each in truth.items()]
    rows += [(task, "labels", str(label[task])) for task in truth]
    found = tb.judges.span_agreement(rows, sequences)
    return found.strict, found.relaxed


def calibration(model: Any, truth: Truth) -> tuple[float, float]:
    """Return the log-loss of the truth, and how far probabilities of labels are off."""
    place = {str(task): i for i, task in enumerate(model.tasks_)}
    code = {str(name): k for k, name in enumerate(model.classes_)}
    at = np.array([place[task] for task in truth])
    true = np.array([code.get(each, -1) for each in truth.values()])
    q = model.probabilities_[at]
    stated = q[np.arange(len(at)), model.labels_.label[at]]
    of_true = np.where(true >= 0, q[np.arange(len(at)), true], 0.0)
    log_loss = float(-np.log(np.maximum(of_true, 1e-6)).mean())
    return log_loss, expected_error(stated, model.labels_.label[at] == true)


def expected_error(stated: Any, right: Any) -> float:
    """Return the mean gap between stated and found shares, in ten bins."""
    stated = np.asarray(stated, dtype=float)
    place = np.minimum((10 * stated).astype(int), 9)
    gap = np.bincount(place, stated - np.asarray(right, dtype=float), 10)
    return float(np.abs(gap).sum() / max(len(stated), 1))


def error_of_spans(model: Any, sequences: tb.Sequences, truth: Truth) -> float:
    tasks = list(map(str, sequences.tasks))
    true: set[tuple[str, str, str]] = set()
    for low, high in zip(sequences.start[:-1].tolist(), sequences.start[1:].tolist(), strict=True):
        tags = [truth.get(task, "O") for task in tasks[low:high]]
        true |= {(tasks[low + a], tasks[low + b], kind) for a, b, kind in read_spans(tags)}
    spans = [each for each in model.spans_ if str(each.first) in truth]
    right = [(str(s.first), str(s.last), str(s.label)) in true for s in spans]
    return expected_error([s.probability for s in spans], right)


def simulated() -> None:
    """Print none, chain, auto (strict F1 or accuracy); log-loss and error of VB and auto; spans."""
    cases: dict[str, Any] = {
        "people, 5 a text": lambda seed: people(seed, 5),
        "people, 2 a text": lambda seed: people(seed, 2),
        "people, 1 a text": lambda seed: people(seed, 1),
        "rules": rules,
        "epochs, all": lambda seed: epochs(seed, 1.0),
        "epochs, .3": lambda seed: epochs(seed, 0.3),
        "epochs, .1": lambda seed: epochs(seed, 0.1),
    }
    for name, draw in cases.items():
        rows_of: list[list[float]] = []
        picked: Counter[str] = Counter()
        for seed in range(5):
            rows, sequences, truth = draw(seed)
            fits = {
                model: tb.VariationalBayes(sequence_options=how).fit(rows, sequences=sequences)
                for model, how in MODELS.items()
            }
            plain = tb.VariationalBayes().fit(
                tb.Responses.from_rows(rows).with_tasks(sequences.tasks)
            )
            auto = fits["auto"]
            picked[auto.sequence_model_] += 1
            figures = [f1(each, sequences, truth)[0] for each in fits.values()]
            figures += [*calibration(plain, truth), *calibration(auto, truth)]
            has_tags = any(each.startswith("B-") for each in truth.values())
            figures.append(error_of_spans(auto, sequences, truth) if has_tags else np.nan)
            rows_of.append(figures)
        mean = np.mean(rows_of, axis=0).round(3).tolist()
        lost = float(np.max([row[0] - row[2] for row in rows_of]))
        print(name, *mean, f"lost at most {lost:.3f}", dict(picked), flush=True)


# Crowds that are there


def read_rows(name: str, what: str) -> list[dict[str, str]]:
    for path, opener in ((f"{what}.csv", open), (f"{what}.csv.gz", gzip.open)):
        if (SETS / name / path).exists():
            with opener(SETS / name / path, "rt", newline="") as file:
                return list(csv.DictReader(file))
    return []


def read(name: str) -> tuple[tb.Sequences, Rows, Truth]:
    tasks = read_rows(name, "tasks")
    columns = {key: [row[key] for row in tasks] for key in ("task", "sequence")}
    columns["position"] = [int(row["position"]) for row in tasks]  # type: ignore[misc]
    if any(row.get("text") for row in tasks):
        columns["text"] = [row["text"] for row in tasks]
    said = [(row["task"], row["worker"], row["label"]) for row in read_rows(name, "responses")]
    truth = {row["task"]: row["label"] for row in read_rows(name, "gold")}
    return tb.Sequences.from_table(columns), said, truth


def texts() -> None:
    """Print strict and relaxed F1 of plain VB and auto, log-loss and errors of both; spans."""
    for name in ("pico", "weak_LaptopReview", "weak_NCBI-Disease", "weak_BC5CDR"):
        sequences, rows, truth = read(name)
        for n_each in (None, 3, 2, 1) if name == "pico" else (None,):
            some = rows if n_each is None else thinned(rows, sequences, n_each)
            plain = tb.VariationalBayes(sequence_options=MODELS["none"])
            fits = [plain.fit(some, sequences=sequences)]
            fits.append(tb.VariationalBayes().fit(some, sequences=sequences))
            for each in fits:
                found = [*f1(each, sequences, truth), *calibration(each, truth)]
                found.append(error_of_spans(each, sequences, truth))
                print(name, n_each or "", each.sequence_model_, *np.round(found, 3), flush=True)


def thinned(rows: Rows, sequences: tb.Sequences, n_each: int, seed: int = 0) -> Rows:
    """Keep so many workers a sequence."""
    rng = np.random.default_rng(seed)
    of_task = dict(zip(map(str, sequences.tasks), sequences.sequence_of_each(), strict=True))
    who: dict[int, set[str]] = defaultdict(set)
    for task, worker, _ in rows:
        who[int(of_task[task])].add(worker)
    kept = {s: set(rng.permutation(sorted(each))[:n_each]) for s, each in sorted(who.items())}
    return [row for row in rows if row[1] in kept[int(of_task[row[0]])]]


def sleep() -> None:
    """Print accuracy where four of five scorers agree, by the share of labels that is kept."""
    both = [read("sleep_dodh"), read("sleep_dodo")]
    rows = [
        (f"{n}{task}", f"{n}{w}", said)
        for n, (_, some, _) in enumerate(both)
        for task, w, said in some
    ]
    columns = [each.columns() for each, *_ in both]
    sequences = tb.Sequences.from_columns(
        *(
            [f"{n}{value}" for n, each in enumerate(columns) for value in each[name].to_pylist()]
            for name in ("task", "sequence")
        )
    )
    said: dict[str, list[str]] = defaultdict(list)
    for task, _, label in rows:
        said[task].append(label)
    most = {task: Counter(each).most_common(1)[0] for task, each in said.items()}
    truth = {task: label for task, (label, n) in most.items() if n >= 4}
    for share in (0.05, 0.1, 0.2, 0.5):
        for seed in range(5 if share == 0.1 else 1):
            kept = np.random.default_rng(seed).random(len(rows)) < share
            some = [row for row, is_kept in zip(rows, kept, strict=True) if is_kept]
            model = tb.VariationalBayes().fit(some, sequences=sequences)
            choice = [each.n_sweeps for each in model.sequence_choice_]
            print(
                share, seed, round(f1(model, sequences, truth)[0], 4), model.sequence_model_, choice
            )


def networks() -> None:
    """Print accuracy of plain VB and with neighbours, by responses a task."""
    for name in ("net_cora", "net_citeseer"):
        edges, truth = read_network(name)
        tasks, classes = list(truth), sorted(set(truth.values()))
        for per_task in (1, 2, 5):
            found = []
            for seed in range(3):
                rows = answers(np.random.default_rng(seed), truth, classes, per_task)
                crowd = tb.Responses.from_rows(rows).with_tasks(tb.data.Ids(tasks))
                links = tb.Links.from_rows([(a, b, "near") for a, b in edges])
                fits = (
                    tb.VariationalBayes().fit(crowd),
                    tb.VariationalBayes().fit(crowd, links=links),
                )
                labels = [each.labels_.best() for each in fits]
                found.append([np.mean([x[t] == truth[t] for t in tasks]) for x in labels])
            print(name, per_task, *np.mean(found, axis=0).round(3), flush=True)


def read_network(name: str) -> tuple[list[tuple[str, str]], Truth]:
    edges = [(row["left"], row["right"]) for row in read_rows(name, "edges")]
    return edges, {row["task"]: row["label"] for row in read_rows(name, "gold")}


def answers(rng: np.random.Generator, truth: Truth, classes: list[str], per_task: int) -> Rows:
    """Draw ten workers of accuracy .35 to .75, each with a likeliest way to be wrong."""
    accuracy = rng.uniform(0.35, 0.75, 10)
    wrong = rng.dirichlet(np.ones(len(classes) - 1), (10, len(classes)))
    rows: Rows = []
    for task, label in truth.items():
        k = classes.index(label)
        others = [each for each in classes if each != label]
        for w in np.flatnonzero(rng.random(10) < per_task / 10):
            is_right = rng.random() < accuracy[w]
            rows.append(
                (task, f"w{w}", label if is_right else str(rng.choice(others, p=wrong[w, k])))
            )
    return rows


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:]:
        {"simulated": simulated, "texts": texts, "sleep": sleep, "networks": networks}[part]()
