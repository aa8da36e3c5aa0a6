"""A start from moments of the votes instead of their shares.

Workers are split into three groups at random. Given the class of a task the votes of the groups
are independent, so that their joint second and third moments give away how each group confuses
the classes, without a first guess of any label: `tensor.py`. From the groups follows each worker,
and from the workers a first q. After Zhang, Chen, Zhou and Jordan 2014; docs/spectral.md derives
it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.errors import note
from tiebreak.inference import tensor, vb
from tiebreak.inference.tensor import FLOOR, Unsuited
from tiebreak.inference.vb import Problem
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import ByTask, Codes, Floats

N_GROUPS = 3
N_SPLITS = 3
CANDIDATE_SWEEPS = 30  # after 10 a worse optimum can still be ahead
MAX_CLASSES = 64  # the work grows with the fourth power: here some seconds
MAX_CONDITION = 1e8
MIN_TASKS = 40  # found in the smallest class; about 50 truly, since the smallest looks smaller
SHRINKAGE = 10  # responses per class that the group's confusions count for


class Moments(NamedTuple):
    """Joint moments of the votes of the three groups: [eq:spectral-moments]."""

    pairs: Floats  # (group, group, label, label)
    triples: Floats  # (label, label, label): first, second, third group


class Estimates(NamedTuple):
    """Point estimates: π, (n_classes,), and θ, (worker, truth, answer)."""

    class_prior: Floats
    confusion: Floats


class GroupEstimates(NamedTuple):
    """How common classes are, and how each group confuses them: [eq:spectral-components]."""

    class_prior: Floats  # (n_classes,)
    confusion: Floats  # (group, answer, truth), columns sum to 1
    size: Floats  # (group,) votes of the group on a task on which the other two voted


def start(problem: Problem, random_state: int | None = None) -> Floats:
    """Return the q to start from: the best of three random splits and of majority.

    Each start climbs for a few sweeps, and the one with the highest bound wins. Where no split
    works, majority is the start, and a note says why the first one failed.

    Parameters
    ----------
    problem
        Plain: every task is free.
    random_state
        Seeds the splits and the power method: same seed, same start.

    Returns
    -------
    (n_tasks, n_classes), rows sum to 1.
    """
    majority = vb.majority(problem.tasks, problem.n_classes)
    if problem.n_classes == 1:
        return majority
    candidates = []  # bound and start
    reasons = []
    for rng in np.random.default_rng(random_state).spawn(N_SPLITS):
        try:
            candidates.append(_try_split(problem, rng))
        except Unsuited as failure:
            reasons.append(str(failure))
    if not candidates:
        note(f"init='spectral' cannot be used here, so the start is majority: {reasons[0]}.")
        return majority
    candidates.insert(0, (_climb(problem, majority).bounds[-1], majority))  # wins if equal
    return max(candidates, key=lambda candidate: candidate[0])[1]


def _try_split(problem: Problem, rng: np.random.Generator) -> tuple[float, Floats]:
    """Return the bound that one split reaches, and the start that it gives.

    Implements [eq:spectral-name]: if labels name the classes otherwise, so does the start. Under
    a prior that treats all classes alike the bound cannot tell a start from one with two classes
    swapped, and moments swap those that are hard to tell.
    """
    q = task_probabilities(problem, estimate(problem, rng))
    run = _climb(problem, q)
    _require_tasks(run.beliefs.alpha - problem.states.prior)
    part = tensor.assign(tensor.shares(run.beliefs.beta.sum(axis=0)))
    if (part != np.arange(problem.n_classes)).any():
        q = np.ascontiguousarray(q[:, part])
        run = _climb(problem, q)
    return run.bounds[-1], q


def _climb(problem: Problem, q: Floats) -> vb.Run:
    return vb.ascend(problem, q, max_iter=CANDIDATE_SWEEPS)


def _require_tasks(in_class: Floats) -> None:
    """Refuse classes with too few tasks, also those that a climb leaves empty.

    An optimum that gives up a class can have the highest bound, and it is no answer.
    """
    if in_class.min() < MIN_TASKS:
        raise Unsuited(
            f"the smallest class seems to have {in_class.min():.0f} of {in_class.sum():.0f} tasks, "
            f"and moments need at least {MIN_TASKS} in each"
        )


def estimate(problem: Problem, rng: np.random.Generator) -> Estimates:
    """Estimate class prior and confusions from one random split of the workers.

    Raises
    ------
    Unsuited
        If the votes do not determine them; the message is the reason.
    """
    tasks = problem.tasks
    n_classes = problem.n_classes
    if n_classes > MAX_CLASSES:
        raise Unsuited(
            f"there are {n_classes} classes, and the work grows with their fourth power; "
            f"at most {MAX_CLASSES} are allowed"
        )
    group = split_workers(tasks, n_classes, rng)
    votes = count_votes(tasks, n_classes, group)
    groups = group_estimates(moments(votes), rng)
    _require_tasks(groups.class_prior * tasks.n_tasks)
    confusion = worker_confusions(problem, votes, group, groups)
    return Estimates(groups.class_prior, np.ascontiguousarray(confusion.transpose(0, 2, 1)))


def split_workers(tasks: ByTask, n_classes: int, rng: np.random.Generator) -> Codes:
    """Return the group of each worker, drawn at random, groups with similarly many responses."""
    n_responses = count_given(tasks, n_classes)
    n_active = int(np.count_nonzero(n_responses))
    if n_active < N_GROUPS:
        raise Unsuited(
            f"{n_active} workers gave responses, and {N_GROUPS} groups of workers are needed"
        )
    group = np.empty(len(n_responses), dtype=np.int32)
    load = [0.0] * N_GROUPS
    sizes = n_responses.tolist()
    for w in rng.permutation(len(sizes)).tolist():
        lightest = load.index(min(load))
        group[w] = lightest
        load[lightest] += sizes[w]
    return group


def count_given(tasks: ByTask, n_classes: int) -> Floats:
    """Return how many responses each worker gave, by weight, (n_workers,)."""
    worker = tasks.code // n_classes
    return np.bincount(worker, tasks.weight, tasks.n_codes // n_classes).astype(np.float64)


def count_votes(tasks: ByTask, n_classes: int, group: Codes) -> Floats:
    """Return how often each group gave each label to each task, (group, n_tasks, n_classes)."""
    task = tasks.task_of_each()
    row = group[tasks.code // n_classes].astype(np.int64) * tasks.n_tasks + task
    n_cells = N_GROUPS * tasks.n_tasks * n_classes
    votes = np.bincount(row * n_classes + tasks.code % n_classes, tasks.weight, n_cells)
    return votes.reshape(N_GROUPS, tasks.n_tasks, n_classes).astype(np.float64)


def moments(votes: Floats) -> Moments:
    """Return the moments [eq:spectral-moments] of votes (group, n_tasks, n_classes).

    Third moments visit, for each label, only the tasks to which the first group gave it: as much
    work as there are responses, whatever the number of tasks.
    """
    n_tasks, n_classes = votes.shape[1:]
    pairs = np.array([[left.T @ right for right in votes] for left in votes])
    triples = np.empty((n_classes,) * 3)
    first, second, third = votes
    for label in range(n_classes):
        given = np.flatnonzero(first[:, label])
        triples[label] = (second[given] * first[given, label, None]).T @ third[given]
    return Moments(pairs / n_tasks, triples / n_tasks)


def group_estimates(found: Moments, rng: np.random.Generator) -> GroupEstimates:
    """Recover the class prior and the confusions of the groups from their moments."""
    for a, b in ((0, 1), (1, 2), (2, 0)):
        _require_tellable(found.pairs[a, b])
    if not found.triples.any():
        raise Unsuited("no task has responses of all three groups of workers")
    parts = [_one_group(found, c, rng) for c in range(N_GROUPS)]
    prior = np.maximum(np.mean([part.weights for part in parts], axis=0), FLOOR)
    shares = np.array([tensor.shares(part.columns) for part in parts])
    size = np.array([part.columns.sum(axis=0).mean() for part in parts])
    return GroupEstimates(prior / prior.sum(), shares, size)


def _require_tellable(pair: Floats) -> None:
    """Refuse two groups whose joint votes cannot be inverted."""
    if not pair.any():
        raise Unsuited("two of the three groups of workers have no task in common")
    condition = float(np.linalg.cond(pair))
    if not condition <= MAX_CONDITION:
        raise Unsuited(
            f"the votes of two groups of workers do not tell the {len(pair)} classes apart "
            f"(condition number {condition:.0e})"
        )


def _one_group(found: Moments, c: int, rng: np.random.Generator) -> tensor.Components:
    """Let the other two groups, a and b, speak as group c would: [eq:spectral-symmetric]."""
    a = (c + 1) % N_GROUPS
    b = (c + 2) % N_GROUPS
    from_a = _translation(found, a, c)
    from_b = _translation(found, b, c)
    second = from_a @ found.pairs[a, b] @ from_b.T
    in_order = found.triples.transpose(a, b, c)
    third = np.einsum("abk,ia,jb->ijk", in_order, from_a, from_b, optimize=True)
    parts = tensor.components(second, third, rng)
    return tensor.match(parts, _claims(found, c, parts.columns))


def _translation(found: Moments, a: int, c: int) -> Floats:
    """Return what turns the votes of group a into those that group c is expected to give."""
    b = N_GROUPS - a - c
    return np.asarray(found.pairs[c, b] @ np.linalg.inv(found.pairs[a, b]))


def _claims(found: Moments, c: int, columns: Floats) -> Floats:
    """Return what the three groups answer on average, given the columns of group c.

    Each group alone may be too small to know which component is which class, and three groups
    could disagree on it; the average is that of the crowd.
    """
    everyone = [columns if g == c else _translation(found, c, g) @ columns for g in range(N_GROUPS)]
    return np.asarray(np.mean([tensor.shares(one) for one in everyone], axis=0))


def worker_confusions(
    problem: Problem, votes: Floats, group: Codes, groups: GroupEstimates
) -> Floats:
    """Return each worker's confusions, (n_workers, answer, truth): [eq:spectral-worker].

    How often a worker answers and how common a class is are factors of a column, and columns are
    scaled to sum 1 in the end.

    Departs from Zhang et al.: workers are shrunk towards their group, [eq:spectral-lent], since
    moments of few responses are noise.
    """
    n_classes = problem.n_classes
    theta = np.empty((problem.workers.n_workers, n_classes, n_classes))
    everyone = np.ones(problem.tasks.n_tasks, dtype=bool)
    sized = groups.confusion * groups.size[:, None, None]
    for g in range(N_GROUPS):
        a = (g + 1) % N_GROUPS
        b = (g + 2) % N_GROUPS
        others = votes[a] + votes[b]
        joint, _ = problem.backend.tally(others, problem.tasks, everyone, problem.n_threads)
        mine = group == g
        theta[mine] = joint.reshape(theta.shape)[mine] @ np.linalg.pinv((sized[a] + sized[b]).T)
    return _shrink(problem, tensor.shares(theta), groups.confusion[group])


def _shrink(problem: Problem, theta: Floats, theta_of_group: Floats) -> Floats:
    """Shrink the confusions of workers towards those of their groups: [eq:spectral-lent]."""
    n_responses = count_given(problem.tasks, problem.n_classes)
    own = n_responses / (n_responses + SHRINKAGE * problem.n_classes)
    own = own[:, None, None]
    return np.asarray(own * theta + (1.0 - own) * theta_of_group)


def task_probabilities(problem: Problem, estimates: Estimates) -> Floats:
    """Return the q that the estimates imply: [eq:ds-task]."""
    by_answer = np.log(estimates.confusion).transpose(0, 2, 1)
    table = np.ascontiguousarray(by_answer).reshape(-1, problem.n_classes)
    log_prior = np.log(estimates.class_prior)
    return softmax(problem.backend.score_tasks(problem.tasks, log_prior, table))
