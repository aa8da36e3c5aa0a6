"""Experiments: the paper's three, in one series of cases that can stop and go on at any time.

All three share their draws. At each number N_C of labels or links,

(a) VB-LC has N_C random labels, VB-ILC N_C random links; MV, DS and VB have nothing;
(b) VB-ILC has N_C links chosen by BVSB, beside those at random;
(c) VB-ILC has the links that follow from the labels that VB-LC has.

Every finished case is one line of `runs.jsonl`, see `runner`. A case depends on its dataset, run
and number alone, so a series that was stopped ends with the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tiebreak import datasets
from tiebreak._version import __version__
from tiebreak.errors import OptionError
from tiebreak.reproduce import draws, methods
from tiebreak.reproduce.runner import RUNS, Progress, Row, run_cases


class About(NamedTuple):
    """What a dataset is here; runs of another copy or version are not taken over."""

    title: str
    n_classes: int
    n_gold: int
    fingerprint: str


class Case(NamedTuple):
    """One draw of one dataset, up to one number of labels or links."""

    dataset: str
    run: int
    n_given: int
    crowd: str  # the fingerprint of the dataset
    version: str


class Reproduction(NamedTuple):
    """What is to be run: datasets by name, Monte Carlo runs, steps of N_C after 0."""

    about: dict[str, About]
    n_runs: int = 20
    n_steps: int = 8

    @classmethod
    def of(cls, names: Sequence[str], n_runs: int = 20, n_steps: int = 8) -> Reproduction:
        """Look at the datasets; one that is not here is an error that says how to get it."""
        if n_runs < 1:
            raise OptionError(f"runs must be 1 or more; got {n_runs}.")
        if n_steps < 2:
            raise OptionError(
                f"steps must be 2 or more, to compare few with many links; got {n_steps}."
            )
        for name in names:
            datasets.path(name)  # tell of all before any is read
        return cls({name: _look_at(name) for name in names}, n_runs, n_steps)

    def cases(self) -> list[Case]:
        """Return all cases, dataset by dataset and run by run, the largest numbers first."""
        return [
            Case(name, run, n_given, about.fingerprint, __version__)
            for name, about in self.about.items()
            for run in range(self.n_runs)
            for n_given in reversed(self.numbers(name))
        ]

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return the numbers of labels and links that a dataset is given."""
        return draws.numbers_given(self.about[name].n_gold, self.n_steps)


def _look_at(name: str) -> About:
    found = datasets.load(name)
    classes = found.responses.with_classes(found.gold.classes).n_classes
    return About(found.info.title, classes, len(found.gold), draws.fingerprint(found))


def run(
    plan: Reproduction, folder: Path, *, jobs: int = 1, progress: Progress | None = None
) -> list[Row]:
    """Run what is not finished yet in the folder, and return the rows of all cases in order."""
    return run_cases(plan.cases(), work, folder / RUNS, jobs=jobs, progress=progress)


def work(case: Case) -> Row:
    """Run one case: fit and score every method."""
    start = time.perf_counter()
    source = case.dataset, case.crowd
    scores = methods.score_all(draws.crowd(*source), draws.draw(*source, case.run), case.n_given)
    seconds = round(time.perf_counter() - start, 3)
    return {**case._asdict(), "seconds": seconds, "scores": scores}
