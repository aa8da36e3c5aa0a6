"""Choosing a worker model: worker_model="auto".

Kinds of workers and subtypes of classes rescue crowds on which one prior fails, and cost nothing on
most others. Which member fits is asked of the crowd itself, on plain responses: eight short runs,
of which the largest bound is kept; from some tens of gold tasks on, the one that predicts gold
best. No constant of any member is learnt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tiebreak.gold import GoldCodes
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import TRUSTED_ERROR, Calibration
from tiebreak.inference.vb import Problem, Run, Stopping
from tiebreak.inference.worker_models import PLAIN, one_class
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.options import LinkOptions, MeanFieldOptions
from tiebreak.responses import Responses

MEMBERS = (PLAIN, "kinds", "subtypes", "kinds+subtypes")
N_SEEDS = 3  # of members whose start draws
TOLERANCE = 1e-3  # of the short runs
LEAST_GOLD = 20  # tasks: from here on gold chooses
LEAD = 3.0  # nats by which another member must lead the plain one: odds of 20 to 1


class Tried(NamedTuple):
    """A member that was run, and what it would change."""

    worker_model: str
    seed: int
    bound: float
    gold_log_likelihood: float | None  # of gold tasks from responses alone; None: too few
    n_changed: int  # labels on plain responses that differ from those of the chosen member


class Choice(NamedTuple):
    """The member chosen, where its run on plain responses ended, and all that were tried."""

    worker_model: str
    q: Floats  # (n_tasks, n_states)
    tried: tuple[Tried, ...]


class _Candidate(NamedTuple):
    worker_model: str
    seed: int
    run: Run
    label: Codes
    gold: float | None

    @property
    def value(self) -> float:
        return self.run.bounds[-1] if self.gold is None else self.gold


def choose(
    problem_of: Callable[[str], Problem],
    start: Floats | None,
    gold: GoldCodes | None,
    stopping: Stopping,
    *,
    members: tuple[str, ...] = MEMBERS,
    first_seed: int = 0,
    dependence: float = 0.0,
) -> Choice:
    """Run the members on plain responses and keep the best.

    Parameters
    ----------
    problem_of
        Makes the problem of a member: no links, nothing known.
    start
        (n_tasks, n_classes) where q starts; None: at the votes.
    dependence
        How much errors are shared: gold's likelihood is that of honest probabilities.
    """
    best: _Candidate | None = None
    plain: _Candidate | None = None
    tried = []
    for name in members:
        problem = problem_of(name)
        n_seeds = N_SEEDS if problem.n_states > problem.n_classes else 1
        for seed in range(first_seed, first_seed + n_seeds):
            found = _run(problem, name, seed, start, gold, stopping, dependence)
            tried.append(found._replace(run=found.run._replace(q=np.empty((0, 0)))))
            if name == PLAIN:
                plain = found
            if best is None or found.value > best.value:
                best = found  # only two q are held at a time
    assert best is not None  # there is at least one member
    if plain is not None and best.value < plain.value + LEAD:
        best = plain
    copies = problem.copies
    return Choice(best.worker_model, best.run.q, tuple(_told(each, best, copies) for each in tried))


def members_for(responses: Responses, options: LinkOptions | None) -> tuple[str, ...]:
    """Return the members that can be fitted: mean field has no subtypes, nor has a crowd of rules.

    Rules are workers who can say one class only; only the plain member is cured of their collapse.
    """
    if one_class.rows_to_fix(responses) is not None:
        return (PLAIN,)
    if isinstance(options, MeanFieldOptions):
        return tuple(name for name in MEMBERS if "subtypes" not in name)
    return MEMBERS


def _run(
    problem: Problem,
    name: str,
    seed: int,
    start: Floats | None,
    gold: GoldCodes | None,
    stopping: Stopping,
    dependence: float,
) -> _Candidate:
    by_class = vb.majority(problem.responses, problem.n_classes) if start is None else start
    q = vb.to_states(problem, by_class, seed)
    short = stopping._replace(tol=max(stopping.tol, TOLERANCE))
    run = vb.ascend(problem, q, **short._asdict())
    label, _ = problem.backend.likeliest(vb.class_probabilities(problem, run.q))
    predicted = None
    if gold is not None and len(gold.task) >= LEAST_GOLD:
        predicted = _gold_log_likelihood(problem, run, gold, dependence)
    return _Candidate(name, seed, run, label, predicted)


def _gold_log_likelihood(problem: Problem, run: Run, gold: GoldCodes, dependence: float) -> float:
    """Return how well responses alone predict gold; one wrong task costs at most log 100."""
    scores = calibration.scaled_scores(problem, run.beliefs, Calibration(dependence), gold.task)
    shares = softmax(scores)[np.arange(len(gold.task)), gold.label]
    return float(np.log(np.maximum(shares, TRUSTED_ERROR)).sum())


def _told(candidate: _Candidate, chosen: _Candidate, copies: Floats | None) -> Tried:
    differs = candidate.label != chosen.label
    n_changed = differs.sum() if copies is None else copies[differs].sum()
    return Tried(
        candidate.worker_model,
        candidate.seed,
        candidate.run.bounds[-1],
        candidate.gold,
        int(n_changed),
    )
