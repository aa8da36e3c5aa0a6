"""Random small crowds, with links and known labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.data.ids import Ids
from tiebreak.inference import vb
from tiebreak.inference.dirichlet import POINT, ClassPrior
from tiebreak.inference.tasks import mean_field
from tiebreak.inference.workers import ConfusionMatrices
from tiebreak.kernels import reference
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByGroup
from tiebreak.links.graph import LinkCodes, imply


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


def groups_of(links: LinkCodes, n_classes: int) -> ByGroup:
    """Lay out links for mean field, closed where they have no weights."""
    if links.weight is None:
        return mean_field.closed_groups(imply(links, n_classes))
    return mean_field.given_groups(links)


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


def problem_of(crowd: Crowd, backend: Backend = reference) -> vb.Problem:
    role = vb.roles(crowd.responses.n_tasks, None, None)
    tasks = vb.lay_out(crowd.responses, role)
    workers = ConfusionMatrices(crowd.confusion_prior, crowd.responses.n_workers)
    return vb.Problem(tasks, ClassPrior(crowd.class_prior), workers, backend)


def point_problem_of(crowd: Crowd, smoothing: float) -> vb.Problem:
    """Return Dawid and Skene's problem: counts read as shares."""
    n_classes = crowd.responses.n_classes
    prior = np.full((1, n_classes, n_classes), smoothing)
    workers = ConfusionMatrices(prior, crowd.responses.n_workers, prior, read=POINT)
    problem = problem_of(crowd)
    return problem._replace(states=ClassPrior(prior[0, 0], POINT), workers=workers)


def with_roles(problem: vb.Problem, gold: GoldCodes | None, linked: object = None) -> vb.Problem:
    role = vb.roles(problem.tasks.n_tasks, gold, linked)  # type: ignore[arg-type]
    return problem._replace(tasks=problem.tasks._replace(role=role))
