"""A start from moments of the votes instead of their shares.

Workers are split into three groups at random. Given the class of a task the votes of the groups
are independent, so that their joint second and third moments reveal how each group confuses the
classes, without a first guess of any label. From the groups follows each worker, and from the
workers a first q. After Zhang, Chen, Zhou and Jordan 2014, as derived in
experiments/01_theory_bounds/spectral.md.

A mixture of K columns μ_h with weights p_h has second moment Σ p_h μ_h μ_hᵀ and third moment
Σ p_h μ_h ⊗ μ_h ⊗ μ_h. Whitened by the second, the third has orthogonal parts, which the power
method finds one after the other; Anandkumar, Ge, Hsu, Kakade and Telgarsky 2014.
"""

from __future__ import annotations

import warnings
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import tiebreak as tb
from tiebreak.arguments import SEED, checks
from tiebreak.errors import note
from tiebreak.research import messages  # noqa: F401

N_GROUPS = 3
N_SPLITS = 3
CANDIDATE_SWEEPS = 30  # after 10 a worse optimum can still be ahead
MAX_CLASSES = 64  # the work grows with the fourth power: here some seconds
MAX_CONDITION = 1e8
MIN_TASKS = 40  # found in the smallest class; about 50 truly, since the smallest looks smaller
SHRINKAGE = 10  # responses per class that the group's confusions count for

FLOOR = 1e-6  # no probability is estimated below
MIN_EIGENVALUE = 1e-10  # of the largest
MIN_STRENGTH = 1e-6  # of the largest so far; the root of how rare a class may be
N_STARTS = 10
MAX_STEPS = 100
CONVERGED = 1e-12  # largest change of a unit vector

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[Any]


class Unsuited(Exception):
    """The moments do not determine a mixture; the message says why."""


class Groups(NamedTuple):
    """How common classes are, and how each group confuses them: [eq:spectral-components]."""

    class_prior: Floats  # (n_classes,)
    confusion: Floats  # (group, answer, truth), columns sum to 1
    size: Floats  # (group,) votes of the group on a task on which the other two voted


@checks(random_state=SEED)
def spectral_start(
    responses: Any, *, confusion_prior: Any = "diagonal", random_state: int | None = None
) -> tb.VariationalBayes:
    """Return a model to start from: the best of three random splits and of majority.

    Each start climbs for a few sweeps, and the one with the highest bound wins. Where no split
    works, majority is the start, and a note says why the first one failed.

    Parameters
    ----------
    responses
        As `VariationalBayes.fit` takes them.
    confusion_prior
        That of the model which starts here.
    random_state
        Seeds the splits and the power method: the same seed gives the same start.

    Examples
    --------
    >>> crowd = tb.simulate.crowd(300, 9, 2, responses_per_task=9, random_state=0)
    >>> start = tb.research.spectral_start(crowd.responses, random_state=0)
    >>> tb.VariationalBayes().fit(crowd.responses, start=start).converged_
    True
    """
    crowd = tb.MajorityVote().fit(responses).responses_  # read and checked

    def climb(q: Floats | None) -> tb.VariationalBayes:
        model = tb.VariationalBayes(
            init="majority" if q is None else q,
            confusion_prior=confusion_prior,
            max_iter=CANDIDATE_SWEEPS,
            calibrate="none",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit that starts here gives the notes again
            return model.fit(crowd).set_params(init="majority")

    best = climb(None)
    if crowd.n_classes == 1:
        return best
    reasons = []
    for rng in np.random.default_rng(random_state).spawn(N_SPLITS):
        try:
            model = climb(estimate(crowd, rng))
            _require_tasks(model.probabilities_.sum(axis=0))
            # [eq:spectral-name]: if labels name the classes otherwise, so does the start. The bound
            # cannot tell a start from one with two classes swapped where the prior treats all
            # classes alike, and moments swap those that are hard to tell.
            answers = np.zeros((crowd.n_classes, crowd.n_classes))  # (answer, truth)
            q = model.probabilities_[crowd.task_of_each()] * crowd.weight_of_each()[:, None]
            np.add.at(answers, crowd.label_of_each(), q)
            part = assign(shares(answers))
            if (part != np.arange(crowd.n_classes)).any():
                model = climb(np.ascontiguousarray(model.probabilities_[:, part]))
        except Unsuited as failure:
            reasons.append(str(failure))
        else:
            best = max(best, model, key=lambda each: each.bounds_[-1])  # majority wins if equal
    if len(reasons) == N_SPLITS:
        note("no-spectral-start", reason=reasons[0])
    return best


def _require_tasks(in_class: Floats) -> None:
    """Refuse classes with too few tasks, also those that a climb leaves empty.

    An optimum that gives up a class can have the highest bound, and it is no answer.
    """
    if in_class.min() < MIN_TASKS:
        raise Unsuited(
            f"the smallest class seems to have {in_class.min():.0f} of {in_class.sum():.0f} tasks, "
            f"and moments need at least {MIN_TASKS} in each"
        )


def estimate(crowd: tb.Responses, rng: np.random.Generator) -> Floats:
    """Return q as one random split of the workers shows it; raise Unsuited where it cannot."""
    if crowd.n_classes > MAX_CLASSES:
        raise Unsuited(
            f"there are {crowd.n_classes} classes, and the work grows with their fourth power; "
            f"at most {MAX_CLASSES} are allowed"
        )
    group = split_workers(crowd, rng)
    votes = count_votes(crowd, group)
    groups = groups_of(*moments(votes), rng)
    _require_tasks(groups.class_prior * crowd.n_tasks)
    log_confusion = np.log(worker_confusions(crowd, votes, group, groups))
    scores = np.tile(np.log(groups.class_prior), (crowd.n_tasks, 1))  # [eq:ds-task]
    of_each = log_confusion[crowd.worker_of_each(), crowd.label_of_each()]
    np.add.at(scores, crowd.task_of_each(), of_each * crowd.weight_of_each()[:, None])
    q = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def split_workers(crowd: tb.Responses, rng: np.random.Generator) -> Codes:
    """Return the group of each worker, drawn at random, groups with similarly many responses."""
    sizes = _n_responses(crowd)
    n_active = int(np.count_nonzero(sizes))
    if n_active < N_GROUPS:
        raise Unsuited(
            f"{n_active} workers gave responses, and {N_GROUPS} groups of workers are needed"
        )
    group = np.empty(len(sizes), dtype=np.int32)
    load = np.zeros(N_GROUPS)
    for w in rng.permutation(len(sizes)).tolist():
        group[w] = load.argmin()
        load[group[w]] += sizes[w]
    return group


def _n_responses(crowd: tb.Responses) -> Floats:
    n = np.bincount(crowd.worker_of_each(), crowd.weight_of_each(), crowd.n_workers)
    return n.astype(np.float64)


def count_votes(crowd: tb.Responses, group: Codes) -> Floats:
    """Return how often each group gave each label to each task, (group, n_tasks, n_classes)."""
    votes = np.zeros((N_GROUPS, crowd.n_tasks, crowd.n_classes))
    cell = (group[crowd.worker_of_each()], crowd.task_of_each(), crowd.label_of_each())
    np.add.at(votes, cell, crowd.weight_of_each())
    return votes


def moments(votes: Floats) -> tuple[Floats, Floats]:
    """Return the joint moments [eq:spectral-moments] of votes (group, n_tasks, n_classes).

    Pairs are (group, group, label, label), triples (label, label, label) of the three groups. Third
    moments visit, for each label, only the tasks to which the first group gave it: as much work as
    there are responses, whatever the number of tasks.
    """
    n_tasks, n_classes = votes.shape[1:]
    pairs = np.array([[left.T @ right for right in votes] for left in votes])
    triples = np.empty((n_classes,) * 3)
    first, second, third = votes
    for label in range(n_classes):
        given = np.flatnonzero(first[:, label])
        triples[label] = (second[given] * first[given, label, None]).T @ third[given]
    return pairs / n_tasks, triples / n_tasks


def groups_of(pairs: Floats, triples: Floats, rng: np.random.Generator) -> Groups:
    """Recover the class prior and the confusions of the groups from their moments."""
    for a, b in ((0, 1), (1, 2), (2, 0)):
        if not pairs[a, b].any():
            raise Unsuited("two of the three groups of workers have no task in common")
        condition = float(np.linalg.cond(pairs[a, b]))
        if not condition <= MAX_CONDITION:
            raise Unsuited(
                f"the votes of two groups of workers do not tell the {len(triples)} classes apart "
                f"(condition number {condition:.0e})"
            )
    if not triples.any():
        raise Unsuited("no task has responses of all three groups of workers")
    weights, columns = zip(*(_group(pairs, triples, c, rng) for c in range(N_GROUPS)), strict=True)
    prior = np.maximum(np.mean(weights, axis=0), FLOOR)
    size = np.array([each.sum(axis=0).mean() for each in columns])
    return Groups(prior / prior.sum(), shares(np.array(columns)), size)


def _group(
    pairs: Floats, triples: Floats, c: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return class shares and columns of group c: the others speak as it would.

    What a group is expected to answer, given the votes of another, is a matrix of second moments;
    with those the moments are symmetric: [eq:spectral-symmetric].
    """

    def translation(a: int, to: int) -> Floats:
        b = N_GROUPS - a - to
        return np.asarray(pairs[to, b] @ np.linalg.inv(pairs[a, b]))

    a, b = (c + 1) % N_GROUPS, (c + 2) % N_GROUPS
    from_a, from_b = translation(a, c), translation(b, c)
    second = from_a @ pairs[a, b] @ from_b.T
    in_order = triples.transpose(a, b, c)
    third = np.einsum("abk,ia,jb->ijk", in_order, from_a, from_b, optimize=True)
    weights, columns = components(second, third, rng)
    # Each group alone may be too small to know which component is which class, and three groups
    # could disagree on it; what all three answer on average is what the crowd answers.
    everyone = [columns if g == c else translation(c, g) @ columns for g in range(N_GROUPS)]
    part = match(columns, np.asarray(np.mean([shares(one) for one in everyone], axis=0)))
    return weights[part], columns[:, part]


def worker_confusions(crowd: tb.Responses, votes: Floats, group: Codes, groups: Groups) -> Floats:
    """Return each worker's confusions, (n_workers, answer, truth): [eq:spectral-worker].

    How often a worker answers and how common a class is are factors of a column, and columns are
    scaled to sum 1 in the end.

    Departs from Zhang et al.: workers are shrunk towards their group, [eq:spectral-lent], since
    moments of few responses are noise.
    """
    worker = crowd.worker_of_each()
    others = votes.sum(axis=0)[crowd.task_of_each()] - votes[group[worker], crowd.task_of_each()]
    joint = np.zeros((crowd.n_workers, crowd.n_classes, crowd.n_classes))
    np.add.at(joint, (worker, crowd.label_of_each()), others * crowd.weight_of_each()[:, None])
    sized = groups.confusion * groups.size[:, None, None]
    theta = np.empty_like(joint)
    for g in range(N_GROUPS):
        by_others = np.linalg.pinv((sized.sum(axis=0) - sized[g]).T)
        theta[group == g] = joint[group == g] @ by_others
    n_given = _n_responses(crowd)
    own = (n_given / (n_given + SHRINKAGE * crowd.n_classes))[:, None, None]
    return np.asarray(own * shares(theta) + (1.0 - own) * groups.confusion[group])


def components(second: Floats, third: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Take a mixture of as many parts as there are answers to pieces: [eq:spectral-components].

    Returns weights (h,), sum 1, and columns (answer, h). The moments may be known up to a factor
    each: only the columns' common factor then is lost.

    >>> columns = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> weights = np.array([0.6, 0.4])
    >>> second = np.einsum("h,ih,jh->ij", weights, columns, columns)
    >>> third = np.einsum("h,ih,jh,kh->ijk", weights, columns, columns, columns)
    >>> weights, columns = components(second, third, np.random.default_rng(0))
    >>> part = match(columns, shares(columns))
    >>> weights[part].round(6).tolist(), columns[:, part].round(6).tolist()
    ([0.6, 0.4], [[0.9, 0.2], [0.1, 0.8]])
    """
    # [eq:spectral-white]: Qᵀ M Q = I for the symmetric second moment M.
    value, vector = np.linalg.eigh((second + second.T) / 2.0)
    if not value[0] > MIN_EIGENVALUE * value[-1]:
        raise Unsuited(
            "the votes of the three groups of workers contradict each other: their second moments "
            f"have the eigenvalue {value[0]:.1e}, and all must be positive"
        )
    whitener = vector / np.sqrt(value)
    symmetric = sum(third.transpose(order) for order in permutations(range(3))) / 6.0
    left = np.einsum("abc,ai,bj,ck->ijk", symmetric, *[whitener] * 3, optimize=True)
    # [eq:spectral-power]: the strongest part is taken out, then the strongest of what is left.
    strength = np.empty(len(left))
    direction = np.empty(left.shape[:2])
    for h in range(len(left)):
        strength[h], v = strongest(left, rng)
        if not strength[h] > MIN_STRENGTH * strength[: h + 1].max():
            raise Unsuited(f"the third moments of the votes show only {h} of {len(left)} classes")
        direction[:, h] = v
        left = left - strength[h] * v[:, None, None] * v[:, None] * v
    weights = strength**-2.0
    return weights / weights.sum(), (vector * np.sqrt(value)) @ (direction * strength)


def strongest(cube: Floats, rng: np.random.Generator) -> tuple[float, Floats]:
    """Climb from random unit vectors by v ← T(I, v, v) / ‖·‖; return the largest T(v, v, v)."""
    v = rng.standard_normal((len(cube), N_STARTS))
    v /= np.linalg.norm(v, axis=0)
    for _ in range(MAX_STEPS):
        image = ((cube @ v) * v).sum(axis=1)
        new = image / np.maximum(np.linalg.norm(image, axis=0), np.finfo(np.float64).tiny)
        change = np.abs(new - v).max()
        v = new
        if change < CONVERGED:
            break
    strength = (v * ((cube @ v) * v).sum(axis=1)).sum(axis=0)
    best = int(strength.argmax())
    return float(strength[best]), v[:, best]


def match(columns: Floats, claims: Floats) -> npt.NDArray[np.int64]:
    """Return `assign` of the claims of components; refuse what no probabilities can be.

    >>> columns = np.array([[4.0, 16.0], [6.0, 4.0]])
    >>> match(columns, shares(columns)).tolist()
    [1, 0]
    """
    part = assign(claims)
    chosen = claims[np.arange(len(part)), part]
    if not (columns.sum(axis=0) > 0.0).all() or not (chosen > FLOOR).all():
        raise Unsuited(
            "what the votes show cannot be matched to the classes: some confusions come out "
            "negative, as from too few or too noisy responses"
        )
    return part


def assign(claims: Floats) -> npt.NDArray[np.int64]:
    """Return for each class the component that stands for it: [eq:spectral-match].

    Departs from Zhang et al., who give each component the class of its largest claim, so that
    two can get the same: here the product of all claims is the largest.

    Parameters
    ----------
    claims
        (answer, h), positive, columns sum to 1: what is answered where component h is the truth.

    >>> assign(np.array([[0.4, 0.8], [0.6, 0.2]])).tolist()
    [1, 0]
    """
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(-np.log(claims))[1], dtype=np.int64)


def shares(columns: Floats) -> Floats:
    """Return columns (…, answer, truth) made positive, each with sum 1 (even, if nothing is).

    >>> shares(np.array([[3.0, -1.0], [1.0, 2.0]])).round(3).tolist()
    [[0.75, 0.0], [0.25, 1.0]]
    """
    positive = np.maximum(columns, 0.0)
    total = positive.sum(axis=-2, keepdims=True)
    floored = np.maximum(positive / np.where(total > 0.0, total, 1.0), FLOOR)
    return np.asarray(floored / floored.sum(axis=-2, keepdims=True))
