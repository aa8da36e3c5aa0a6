"""What the runs share: real datasets, asked sequences, simulated crowds."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tiebreak as tb
from tiebreak import evaluate
from tiebreak.data import Responses

HERE = Path(__file__).parent
SEQUENCES = HERE / "sequences.npz"

N_TASKS = 400  # of a simulated crowd
N_WORKERS = 20
N_VOTES = 5
ONE_ERROR = 0.5  # of tasks of crowds that err together: all who err on one say the same
HARD = 0.3  # of tasks of crowds of two classes that err together: half the right answers turn wrong


class Dataset(NamedTuple):
    responses: Any
    gold: Any
    task: np.ndarray  # codes of the gold tasks
    label: np.ndarray  # their classes

    def score(self, model: Any) -> float:
        """Return the macro-F of a model's labels."""
        found = model.labels_.label[self.task]
        return evaluate.Scored(self.label, found, self.responses.n_classes).macro_f()

    def accuracy(self, model: Any) -> float:
        return float((model.labels_.label[self.task] == self.label).mean())

    def classes_of_tasks(self) -> np.ndarray:
        """Return the class of every task, −1 where gold does not say."""
        known = np.full(self.responses.n_tasks, -1)
        known[self.task] = self.label
        return known

    def links(self, left: np.ndarray, right: np.ndarray, must: np.ndarray, **options: Any) -> Any:
        tasks = self.responses.tasks
        return tb.Links.from_columns(tasks.take(left), tasks.take(right), must, **options)


def dataset_of(responses: Any, gold: Any) -> Dataset:
    truth = gold.on(responses.tasks, responses.classes)
    return Dataset(responses, gold, truth.task, truth.label)


@cache
def load(name: str) -> Dataset:
    folder = Path(os.environ["TIEBREAK_DATA"]) / name
    gold = tb.read_gold(folder / "gold.csv")
    responses = tb.read_responses(folder / "responses.csv").with_classes(gold.classes)
    return dataset_of(responses, gold)


def model(**options: Any) -> Any:
    return tb.VariationalBayes(backend="numba", n_threads=1, **options)


class Checkpoint(NamedTuple):
    """Questions asked so far, and the macro-F of the warm session that asked them."""

    left: np.ndarray
    right: np.ndarray
    must: np.ndarray
    warm: float


def checkpoints(name: str, seed: int) -> list[Checkpoint]:
    """Return the stored sequence of a dataset and seed, each checkpoint in an order of its own."""
    stored = np.load(SEQUENCES)
    key = f"{name}/{seed}"
    asked = [stored[f"{key}/{part}"] for part in ("left", "right", "must")]
    found = []
    for n, warm in zip(stored[f"{key}/n"].tolist(), stored[f"{key}/warm"].tolist(), strict=True):
        order = np.random.default_rng([seed, n]).permutation(n)
        found.append(Checkpoint(*(column[:n][order] for column in asked), warm))
    return found


def groups_of_one_class(data: Dataset, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Chain random tasks of one class in groups of 2 to 10, until this share of them is linked."""
    rng = np.random.default_rng(seed)
    left: list[int] = []
    right: list[int] = []
    for each in np.unique(data.label):
        mine = rng.permutation(data.task[data.label == each])
        mine = mine[: int(share * len(mine))]
        begin = 0
        while begin < len(mine) - 1:
            size = int(rng.integers(2, 11))
            group = mine[begin : begin + size]
            left += group[:-1].tolist()
            right += group[1:].tolist()
            begin += size
    return np.array(left), np.array(right)


def simulated(n_classes: int, *, together: bool, seed: int) -> Dataset:
    """Draw a crowd whose workers err apart, or together.

    Together: on half of the tasks all who err give one wrong class. With two classes there is only
    one; there, half of the right answers on 30 % of the tasks turn wrong.
    """
    rng = np.random.default_rng([seed, n_classes, together])
    least = 0.55 if n_classes == 2 else 0.45
    crowd = tb.simulate.crowd(
        N_TASKS,
        N_WORKERS,
        n_classes,
        responses_per_task=N_VOTES,
        accuracy=(least, 0.85),
        random_state=rng,
    )
    drawn = crowd.responses
    data = dataset_of(drawn, crowd.gold)
    if not together:
        return data
    truth = data.classes_of_tasks()
    task = drawn.task_of_each()
    label = np.array(drawn.label_of_each())
    wrong_class = (truth + 1 + rng.integers(n_classes - 1, size=N_TASKS)) % n_classes
    if n_classes == 2:
        turns = (rng.random(N_TASKS) < HARD)[task] & (rng.random(len(task)) < 0.5)
    else:
        turns = (rng.random(N_TASKS) < ONE_ERROR)[task] & (label != truth[task])
    label = np.where(turns, wrong_class[task], label).astype(np.int32)
    codes = (np.asarray(task), np.asarray(drawn.worker_of_each()), label)
    responses = Responses.from_codes(*codes, drawn.tasks, drawn.workers, drawn.classes)
    return dataset_of(responses, crowd.gold)
