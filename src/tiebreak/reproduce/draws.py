"""Draws: the labels and links that one Monte Carlo run gives to the methods.

Each run draws once, for the largest number of labels and links; smaller numbers are the first of
that draw. So what a run gives at one number does not depend on which other numbers are tried.
"""

from __future__ import annotations

import functools
import warnings
import zlib
from typing import NamedTuple

import numpy as np

from tiebreak import datasets
from tiebreak.errors import FileError
from tiebreak.gold import Gold, GoldCodes
from tiebreak.ids import Ids
from tiebreak.inference.dawid_skene import DawidSkene
from tiebreak.inference.majority_vote import MajorityVote
from tiebreak.inference.variational_bayes import VariationalBayes
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.layout import Offsets as Indexes
from tiebreak.links import Links
from tiebreak.responses import Responses
from tiebreak.selection.draws import PairCodes, bvsb_pairs, random_pairs

SEED = 2021  # of all draws, with the dataset's name and the number of the run
BACKEND = "numba"  # compiled, also where one small fit would not repay it: there are many
UNIFORM_PRIOR = ("web",)  # as in the paper; all others have the diagonal prior


class FittedDataset(NamedTuple):
    """A dataset and what needs no draw: its truth in codes, and what the plain methods find."""

    name: str
    responses: Responses
    gold: Gold
    truth: GoldCodes
    plain: dict[str, Codes]  # the label of every task by mv, ds and vb
    q: Floats  # class probabilities by VB, (n_tasks, n_classes)

    @property
    def n_gold(self) -> int:
        """How many tasks can be scored, and drawn."""
        return len(self.gold)


class Draw(NamedTuple):
    """What one run gives, most of it first: places in gold, and pairs of such places."""

    labels: Indexes
    random: PairCodes
    bvsb: PairCodes


def numbers_given(n_gold: int, n_steps: int) -> tuple[int, ...]:
    """Return the paper's N_C: from 0 to half of the gold tasks in equal steps.

    >>> numbers_given(800, 8)
    (0, 50, 100, 150, 200, 250, 300, 350, 400)
    """
    numbers = np.linspace(0.0, n_gold // 2, n_steps + 1).round().astype(int)
    return tuple(dict.fromkeys(numbers.tolist()))


def fingerprint(dataset: datasets.Dataset) -> str:
    """Return a short sum of responses and gold, to tell whether finished runs used the same."""
    responses = dataset.responses
    found = 0
    for codes in (
        responses.task_of_each(),
        responses.worker_of_each(),
        responses.label_of_each(),
        dataset.gold.label,
    ):
        found = zlib.crc32(np.ascontiguousarray(codes).tobytes(), found)
    return f"{found:08x}"


@functools.lru_cache(maxsize=1)  # runs come dataset by dataset
def crowd(name: str, expected: str) -> FittedDataset:
    """Load a dataset, whose fingerprint is known, and fit the methods that no draw changes."""
    with warnings.catch_warnings(action="ignore"):
        dataset = datasets.load(name)
        if fingerprint(dataset) != expected:
            raise FileError(f"The files of {name} changed while it was run. Start again.")
        gold = dataset.gold
        responses = dataset.responses.with_classes(gold.classes)
        vb = VariationalBayes(confusion_prior=prior_of(name), backend=BACKEND, n_threads=1)
        ds = DawidSkene(backend=BACKEND, n_threads=1)
        plain = {
            "mv": MajorityVote().fit(responses).labels_.label,
            "ds": ds.fit(responses).labels_.label,
            "vb": vb.fit(responses).labels_.label,
        }
    truth = gold.on(responses.tasks, responses.classes)
    return FittedDataset(name, responses, gold, truth, plain, vb.probabilities_)


def prior_of(name: str) -> str:
    """Return the prior on confusions that the paper gives a dataset."""
    return "uniform" if name in UNIFORM_PRIOR else "diagonal"


@functools.lru_cache(maxsize=2)
def draw(name: str, expected: str, run: int) -> Draw:
    """Draw the labels and links of a run among the gold tasks; the same for the same run."""
    of = crowd(name, expected)
    most = of.n_gold // 2
    for_labels, for_random, for_bvsb = np.random.default_rng(
        [SEED, zlib.crc32(of.name.encode()), run]
    ).spawn(3)
    return Draw(
        for_labels.permutation(of.n_gold)[:most],
        random_pairs(of.n_gold, most, for_random),
        bvsb_pairs(of.q[of.truth.task], most, random_state=for_bvsb),
    )


def labels_given(of: FittedDataset, drawn: Draw, n: int) -> Gold:
    """Return the first n labels of a draw."""
    at = drawn.labels[:n]
    return Gold(Ids(of.gold.tasks.take(at)), of.gold.label[at], of.gold.classes, at)


def links_given(of: FittedDataset, pairs: PairCodes, n: int) -> Links:
    """Return the first n pairs of a draw, linked by what gold says."""
    left, right = pairs.first(n)
    is_must = of.truth.label[left] == of.truth.label[right]
    task = of.truth.task
    return Links(task[left], task[right], is_must, of.responses.tasks, np.arange(len(left)))
