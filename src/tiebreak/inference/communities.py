"""Communities: kinds of workers whose priors and shares are learnt from the crowd.

After Venanzi, Guiver, Kazai, Kohli and Shokouhi (2014). Between sweeps the rows of each kind climb
the bound by Minka's fixed point for Dirichlets, its share by the mean responsibility (type-II
maximum likelihood); the bound says how many communities there are. A community has one count of
right answers and one of each wrong answer, whatever the class: where every cell is learnt, classes
lose their names (Music genre falls from .79 to .32). A crowd learnt this way has a larger bound
than three fixed kinds, and labels that are no better: see docs/worker-models.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import psi

from tiebreak.inference.climb import FitState, Problem, Stopping, climb
from tiebreak.inference.workers.kinds import Kinds
from tiebreak.kernels.layout import Floats

N_COMMUNITIES = (2, 3, 4, 5)
TOLERANCE = 1e-3  # of the sweeps before anything is learnt
N_ROUNDS = 60  # of sweeps and learning
N_SWEEPS = 3  # in a round
N_STEPS = 3  # of Minka's fixed point, after each round
GAIN = 0.1  # nats: a round that gains less is the last
SMALLEST = 1e-2  # count of a prior, so that no answer becomes impossible
LARGEST = 1e4
LEAST_SHARE = 1e-6  # of a community


def learn(problem: Problem, q: Floats, stopping: Stopping) -> tuple[Kinds, FitState]:
    """Learn 2, 3, 4 and 5 communities on plain responses; return those of the largest bound.

    Parameters
    ----------
    problem
        Plain responses; its workers are three kinds. Tasks settle with these first, and the
        communities start between the first of them and the last.

    Returns
    -------
    The communities, and where the sweeps that learnt them ended.
    """
    kinds = problem.workers
    assert isinstance(kinds, Kinds)  # as the model of this name is made
    settled = climb(problem, FitState(q=q), stopping._replace(tol=TOLERANCE))
    found = [_learn(problem, starting(kinds, n), settled, stopping) for n in N_COMMUNITIES]
    return max(found, key=lambda each: each[1].bounds[-1])


def starting(kinds: Kinds, n_communities: int) -> Kinds:
    """Return communities at equal steps from the first kind to the last, with equal shares."""
    steps = np.linspace(0.0, 1.0, n_communities)[:, None, None]
    n_cells = _tied(np.ones_like(kinds.priors[0]))
    good = _tied(kinds.priors[0]) / n_cells
    flat = _tied(kinds.priors[-1]) / n_cells
    priors = (1.0 - steps) * good + steps * flat
    weight = np.full(n_communities, 1.0 / n_communities)
    return replace(kinds, priors=priors, weight=weight)


def _learn(
    problem: Problem, workers: Kinds, settled: FitState, stopping: Stopping
) -> tuple[Kinds, FitState]:
    few = stopping._replace(max_iter=min(N_SWEEPS, stopping.max_iter), accelerate=False)
    state = settled
    bounds: tuple[float, ...] = ()
    for _ in range(N_ROUNDS):
        learnt = workers
        now = problem._replace(workers=learnt)
        state = climb(now, FitState(q=state.q, remote=state.remote), few)
        before, bounds = bounds, bounds + state.bounds
        if before and bounds[-1] - before[-1] < GAIN:
            break
        workers = update(workers, state.parameters[-1])
    return learnt, state._replace(bounds=bounds)


def update(kinds: Kinds, parameters: Floats) -> Kinds:
    """Return communities that explain the counts of their workers better: [eq:communities]."""
    share = kinds.responsibility(parameters)
    counts = parameters - kinds.prior
    weight = np.maximum(share.mean(axis=0), LEAST_SHARE)
    priors = np.stack(
        [_fixed_point(row, counts, share[:, c]) for c, row in enumerate(kinds.priors)]
    )
    return replace(kinds, priors=priors, weight=weight / weight.sum())


def _fixed_point(prior: Floats, counts: Floats, share: Floats) -> Floats:
    """Return a community's prior, (answer, class), after some steps of Minka's fixed point."""
    for _ in range(N_STEPS):
        total = prior.sum(axis=0)
        above = np.einsum("w,wls->ls", share, psi(prior + counts) - psi(prior))
        below = share @ (psi(total + counts.sum(axis=1)) - psi(total))
        every = np.broadcast_to(below, above.shape)
        step = _tied(prior * above) / np.maximum(_tied(prior * every), np.finfo(float).tiny)
        prior = np.clip(prior * step, SMALLEST, LARGEST)
    return prior


def _tied(cells: Floats) -> Floats:
    """Return sums over cells that are one parameter: the diagonal, and the rest of each answer.

    >>> _tied(np.array([[5.0, 1.0, 1.0], [2.0, 5.0, 2.0], [1.0, 1.0, 5.0]]))
    array([[15.,  2.,  2.],
           [ 4., 15.,  4.],
           [ 2.,  2., 15.]])
    """
    right = np.trace(cells)
    wrong = cells.sum(axis=1) - np.diagonal(cells)
    return np.asarray(np.where(np.eye(len(cells), dtype=bool), right, wrong[:, None]))
