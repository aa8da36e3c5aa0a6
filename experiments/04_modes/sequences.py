"""Make the asked sequences: today's adaptive questions in a warm session, answers from gold.

    python experiments/04_modes/sequences.py

Made by the code of commit c3df4e1 (`init=` was its warm start).
Writes `sequences.npz` beside this file. For each dataset and seed: task codes of left and right and
whether they are the same, in the order asked; six checkpoints (numbers of questions) with the
macro-F and a hash of the labels of the warm session there.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from pathlib import Path

import numpy as np

import tiebreak as tb
from tiebreak import evaluate

HERE = Path(__file__).parent
DATASETS = [
    "bluebird",
    "rte",
    "zencrowd_us",
    "zencrowd_india",
    "sentence_polarity",
    "product",
    "trec",
    "dog",
    "web",
    "music_genre",
]
ROUNDS = 16
LEAST = 20  # questions a round
SHARE = 0.5  # of the gold tasks, at most
CHECKPOINTS = 6
SEEDS = range(3)


def load(name):
    folder = Path(os.environ["TIEBREAK_DATA"]) / name
    gold = tb.read_gold(folder / "gold.csv")
    responses = tb.read_responses(folder / "responses.csv").with_classes(gold.classes)
    return responses, gold, gold.on(responses.tasks, responses.classes)


def model(**options):
    return tb.VariationalBayes(backend="numba", n_threads=1, gold_weight=1, **options)


def score(responses, truth, label):
    return evaluate.Scored(truth.label, label[truth.task], responses.n_classes).macro_f()


def digest(label):
    return hashlib.sha256(np.ascontiguousarray(label, dtype=np.int32).tobytes()).hexdigest()[:16]


def links_of(responses, left, right, must):
    return tb.Links.from_columns(responses.tasks.take(left), responses.tasks.take(right), must)


def rounds_of(n_gold):
    """Return the numbers of questions after each round."""
    most = int(SHARE * n_gold)
    size = max(LEAST, -(-most // ROUNDS))
    stops = list(range(size, most, size))
    return [*stops, most]


def ask(responses, gold, truth, seed):
    rng = np.random.default_rng(seed)
    names = list(gold.tasks)
    known = np.full(responses.n_tasks, -1)
    known[truth.task] = truth.label
    fitted = model().fit(responses)
    left, right = np.empty(0, np.int32), np.empty(0, np.int32)
    stops = rounds_of(len(names))
    at = np.unique(np.linspace(1, len(stops), CHECKPOINTS).round().astype(int)) - 1
    marks = []
    for turn, stop in enumerate(stops):
        asked = tb.selection.pairs(fitted, stop - len(left), "adaptive", names, rng)
        left = np.append(left, responses.tasks.codes(list(asked.left))).astype(np.int32)
        right = np.append(right, responses.tasks.codes(list(asked.right))).astype(np.int32)
        must = known[left] == known[right]
        fitted = model(init=fitted).fit(responses, links=links_of(responses, left, right, must))
        if turn in at:
            label = fitted.labels_.label
            marks.append((len(left), score(responses, truth, label), digest(label)))
    return left, right, must, marks


def main():
    out = {}
    for name in DATASETS:
        data = load(name)
        for seed in SEEDS:
            start = time.perf_counter()
            left, right, must, marks = ask(*data, seed)
            key = f"{name}/{seed}"
            out[f"{key}/left"], out[f"{key}/right"], out[f"{key}/must"] = left, right, must
            out[f"{key}/n"] = np.array([m[0] for m in marks], np.int32)
            out[f"{key}/warm"] = np.array([m[1] for m in marks])
            out[f"{key}/hash"] = np.array([m[2] for m in marks])
            seconds = time.perf_counter() - start
            print(key, [(m[0], round(m[1], 3)) for m in marks], f"{seconds:.1f} s", flush=True)
    np.savez_compressed(HERE / "sequences.npz", **out)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
