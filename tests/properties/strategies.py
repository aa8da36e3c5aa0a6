"""Random small crowds, with links and known labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from tiebreak.data import GoldCodes, Ids, Responses
from tiebreak.inference import POINT, ClassPrior, ConfusionMatrices, Independent, Problem, lay_out
from tiebreak.kernels import Backend, reference
from tiebreak.links.graph import LinkCodes


class Crowd(NamedTuple):
    responses: Responses
    links: LinkCodes
    gold: GoldCodes
    class_prior: np.ndarray
    confusion_prior: np.ndarray  # (1, answer, truth)


def to_links(pairs: list[tuple[int, int, bool]]) -> LinkCodes:
    """Keep each unordered pair of different tasks once."""
    kept = {(min(i, j), max(i, j)): must for i, j, must in pairs if i != j}
    ends = np.array(sorted(kept), dtype=np.int32).reshape(-1, 2)
    must = np.array([kept[pair] for pair in sorted(kept)], dtype=bool)
    return LinkCodes(ends[:, 0], ends[:, 1], must, None, None, np.arange(len(ends)))


def weighted(links: LinkCodes, rng: np.random.Generator) -> LinkCodes:
    return links._replace(weight=rng.uniform(0.1, 3.0, len(links.left)))


@st.composite
def crowds(draw: st.DrawFn, max_tasks: int = 6, max_classes: int = 3) -> Crowd:
    n_tasks = draw(st.integers(2, max_tasks))
    n_workers = draw(st.integers(1, 4))
    n_classes = draw(st.integers(2, max_classes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answered = rng.random((n_tasks, n_workers)) < draw(st.sampled_from([0.3, 0.7, 1.0]))
    task, worker = (part.astype(np.int32) for part in np.nonzero(answered))
    truth = rng.integers(0, n_classes, n_tasks)
    noise = rng.integers(0, n_classes, len(task))
    label = np.where(rng.random(len(task)) < 0.6, truth[task], noise).astype(np.int32)
    responses = Responses.from_codes(
        task, worker, label, Ids(range(n_tasks)), Ids(range(n_workers)), Ids(range(n_classes))
    )
    ends = st.integers(0, n_tasks - 1)
    pairs = draw(st.lists(st.tuples(ends, ends, st.booleans()), max_size=6))
    known = np.flatnonzero(rng.random(n_tasks) < 0.25).astype(np.int32)
    return Crowd(
        responses,
        to_links(pairs),
        GoldCodes(known, truth[known].astype(np.int32)),
        rng.uniform(0.5, 3.0, n_classes),
        rng.uniform(0.5, 4.0, (1, n_classes, n_classes)),
    )


def problem_of(crowd: Crowd, backend: Backend = reference) -> Problem:
    workers = ConfusionMatrices(crowd.confusion_prior, crowd.responses.n_workers)
    tasks = Independent(ClassPrior(crowd.class_prior))
    return Problem(lay_out(crowd.responses), tasks, workers, backend)


def point_problem_of(crowd: Crowd, smoothing: float) -> Problem:
    """Return Dawid and Skene's problem: counts read as shares."""
    n_classes = crowd.responses.n_classes
    prior = np.full((1, n_classes, n_classes), smoothing)
    workers = ConfusionMatrices(prior, crowd.responses.n_workers, prior, read=POINT)
    tasks = Independent(ClassPrior(prior[0, 0], POINT))
    return problem_of(crowd)._replace(tasks=tasks, workers=workers)
