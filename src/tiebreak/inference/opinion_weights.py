"""Weights of a log opinion pool: how much each worker's word counts, learnt from known tasks.

Workers who err together must not be added up as if they erred apart, and what they have in common
is seen on known tasks only. So what VB makes of responses is scaled as a whole, and votes are added
to it, one weight per worker, as predicts known labels best: [eq:opinion-pool].

    X_i(k) = b_k + t τ_i Σ_r ℓ_r(k) + Σ_r v_w u_r(k)

    ℓ_r(k) = log E[θ_w](k, l), centred over k: what VB makes of label l by worker w
    u_r(k) = 1.5 ([k = l] − 1 / K): a plain vote

τ_i is the design effect of task i; t, one number, and v, one per worker, are what gold adds.
Without gold t is 1 and v is 0: honest VB. The penalty on v is found by cross-validation.

Why votes, and not v_w ℓ_r: VB knows workers by the crowd's own consensus. A good judge who is at
odds with a crowd that errs together has ℓ near 0, or a wrong one, and no weight on that helps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from tiebreak.gold import GoldCodes
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.dirichlet import KnownShares
from tiebreak.inference.folds import deal
from tiebreak.inference.vb import Beliefs, Problem
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import (
    ByTask,
    Codes,
    Floats,
    Mask,
    part_of,
    responses_on,
    weights_on,
    weights_or_ones,
)

VOTE = 1.5  # log-odds of one vote before gold weighs it: right four times of five, or so
RIDGES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3)  # tried for v, strongest first
N_FOLDS = 4
LEAST_SHARE = 1e-3  # what a label is given at least, where log-losses are compared
LEAST_TO_CHOOSE = 12  # known tasks; with fewer the strongest ridge is kept
SPREAD = 1.0  # of the prior on t around 1
OFFSET_RIDGE = 2.0  # on b, around the log shares of classes
FIXED = 1e9  # a ridge under which nothing moves
TASKS_OF_VB = 60.0  # so many known tasks are VB's class shares worth beside those of gold
MOST_FOR_NEWTON = 1_500  # parameters; beyond, L-BFGS, and intervals by the diagonal alone
DENSE_CELLS = 4_000_000
STEPS = 60
SETTLED = 1e-6  # of the gradient
INTERVAL = 1.959964  # standard deviations: 95 %


class Terms(NamedTuple):
    """What responses say, before any weight: a table by code, and the scale of each task."""

    tasks: ByTask
    table: Floats  # ℓ, (n_codes, n_classes), rows sum to 0
    scale: Floats  # τ, (n_tasks,)
    shares: Floats  # (n_classes,) of classes, as VB has them
    knows_shares: bool = False  # of classes, as in crowds of rules: offsets are not learnt

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.table.shape[1])

    @property
    def n_workers(self) -> int:
        """How many workers there are."""
        return len(self.table) // self.n_classes

    def votes(self) -> Floats:
        """Return u by code, (n_codes, n_classes): one vote each; rows sum to 0."""
        one = VOTE * (np.eye(self.n_classes) - 1.0 / self.n_classes)
        return np.tile(one, (self.n_workers, 1))

    def of_tasks(self, some: Codes) -> Terms:
        """Return the terms of some tasks."""
        return self._replace(
            tasks=part_of(self.tasks, some, self.n_classes), scale=self.scale[some]
        )

    def scale_of_workers(self) -> Floats:
        """Return the mean τ over the responses of each worker; over tasks where there are none."""
        worker = self.tasks.code // self.n_classes
        of_each = np.repeat(self.scale, np.diff(self.tasks.start))
        given = np.bincount(worker, minlength=self.n_workers)
        total = np.bincount(worker, weights=of_each, minlength=self.n_workers)
        mean = float(self.scale.mean()) if len(self.scale) else 1.0
        return np.where(given > 0, total / np.maximum(given, 1), mean)

    def scores(self, found: Opinion, backend: Backend) -> Floats:
        """Return X without the offsets b, (n_tasks, n_classes).

        Where gold overturns VB's label, it is no surer than so many overturned labels can show.
        """
        nothing = np.zeros(self.n_classes)
        together = backend.score_tasks(self.tasks, nothing, self.table)
        by_code = np.repeat(found.extra, self.n_classes)[:, None]
        apart = backend.score_tasks(self.tasks, nothing, by_code * self.votes())
        scores = (found.multiplier * self.scale)[:, None] * together + apart
        if found.overturned is None or self.n_classes < 2:
            return np.asarray(scores)
        before = self.scale[:, None] * together + np.log(self.shares)
        is_other = (scores + found.offset).argmax(axis=1) != before.argmax(axis=1)
        scores[is_other] = _limited(scores[is_other] + found.offset, found.overturned)
        scores[is_other] -= found.offset
        return np.asarray(scores)

    def together(self, backend: Backend) -> Floats:
        """Return τ Σ ℓ, (n_tasks, n_classes): what honest VB makes of the responses."""
        scores = backend.score_tasks(self.tasks, np.zeros(self.n_classes), self.table)
        return np.asarray(self.scale[:, None] * scores)


class Opinion(NamedTuple):
    """What was learnt of known tasks."""

    multiplier: float  # t
    extra: Floats  # v, (n_workers,)
    offset: Floats  # b, (n_classes,)
    ridge: float
    multiplier_variance: float
    extra_variance: Floats  # (n_workers,)
    covariance: Floats  # (n_workers,) of t and v
    overturned: int | None = None  # known tasks whose label is not VB's; None: nothing is limited


class _Known(NamedTuple):
    """Known tasks as a linear model: X = design @ (t, v, b), rows by task, then class."""

    design: Any  # (n_tasks · n_classes, 1 + n_seen + n_classes), dense or sparse
    label: Codes
    worker: Codes  # (n_seen,) those with responses on known tasks
    n_classes: int

    def keep(self, chosen: Mask) -> _Known:
        """Return some of the tasks."""
        rows = np.repeat(chosen, self.n_classes)
        return self._replace(design=self.design[rows], label=self.label[chosen])


class _Penalty(NamedTuple):
    """½ Σ strength · (x − centre)²."""

    centre: Floats
    strength: Floats


def make_terms(problem: Problem, beliefs: Beliefs, dependence: float) -> Terms:
    """Return the terms of responses, as plain VB has them."""
    n_classes = problem.n_classes
    table = np.log(vb.confusion(problem, beliefs)).transpose(0, 2, 1).reshape(-1, n_classes)
    table = table - table.mean(axis=1, keepdims=True)
    scale = Calibration(dependence).scale(calibration.n_responses(problem.tasks))
    shares = problem.states.mean(beliefs.alpha)
    return Terms(problem.tasks, table, scale, shares, isinstance(problem.states, KnownShares))


def learn(terms: Terms, gold: GoldCodes, random_state: int | None = None) -> Opinion:
    """Return the weights that predict known labels best: [eq:opinion-fit].

    Where gold has one class only nothing can be learnt: whoever says that class looks perfect.
    """
    if len(np.unique(gold.label)) < 2:
        return unlearnt(terms)
    known = _lay_out(terms, gold)
    ridge = _choose_ridge(known, terms, random_state)
    penalty = _penalty(known, terms, ridge)
    found = _minimise(known, penalty, penalty.centre)
    opinion = _opinion(terms, known, penalty, found, ridge)
    return opinion._replace(overturned=_overturned(terms, known, found))


def unlearnt(terms: Terms) -> Opinion:
    """Return what is believed before any known task: honest VB."""
    n_workers = terms.n_workers
    loose = np.full(n_workers, 1.0 / RIDGES[0])
    offset = _centred(np.log(terms.shares))
    nothing = np.zeros(n_workers)
    return Opinion(1.0, nothing, offset, RIDGES[0], SPREAD**2, loose, nothing)


def weigh_opinions(terms: Terms, opinions: Floats, gold: GoldCodes) -> tuple[Floats, Floats]:
    """Return weights of whole opinions, and class offsets, that predict known labels best.

    `opinions`, (n_known, n_classes, n_opinions), are scores that are centred over classes. Weights
    have a normal prior around 1, as t has; without two classes in gold nothing is learnt.
    """
    n_known, n_classes, n_opinions = opinions.shape
    if len(np.unique(gold.label)) < 2:
        return np.ones(n_opinions), _centred(np.log(terms.shares))
    design = np.concatenate(
        [opinions.reshape(-1, n_opinions), np.tile(np.eye(n_classes), (n_known, 1))], axis=1
    )
    known = _Known(design, gold.label, np.empty(0, dtype=np.int32), n_classes)
    prior = _penalty(known, terms, RIDGES[0])  # of t and b: nobody has a weight of its own here
    penalty = _Penalty(
        np.concatenate([np.ones(n_opinions), prior.centre[1:]]),
        np.concatenate([np.full(n_opinions, prior.strength[0]), prior.strength[1:]]),
    )
    found = _minimise(known, penalty, penalty.centre)
    return found[:n_opinions], found[n_opinions:]


def log_losses(scores: Floats, label: Codes) -> Floats:
    """Return the log-loss of each known task; a wrong one costs at most log 1,000."""
    shares = softmax(scores)[np.arange(len(label)), label]
    return np.asarray(-np.log(np.maximum(shares, LEAST_SHARE)))


def _lay_out(terms: Terms, gold: GoldCodes) -> _Known:
    from scipy import sparse

    n_classes = terms.n_classes
    start, code = responses_on(terms.tasks, gold.task)
    weight = weights_or_ones(weights_on(terms.tasks, gold.task), len(code))
    place = np.repeat(np.arange(len(gold.task)), np.diff(start))
    worker, column = np.unique(code // n_classes, return_inverse=True)
    rows = place[:, None] * n_classes + np.arange(n_classes)
    shape = (len(gold.task) * n_classes, len(worker))
    cells = (rows.ravel(), np.repeat(column, n_classes))
    apart = sparse.csr_array(((weight[:, None] * terms.votes()[code]).ravel(), cells), shape=shape)
    values = (weight[:, None] * terms.table[code]).ravel()
    base = np.bincount(rows.ravel(), weights=values, minlength=shape[0])
    base *= np.repeat(terms.scale[gold.task], n_classes)
    offsets = sparse.csr_array(np.tile(np.eye(n_classes), (len(gold.task), 1)))
    design = sparse.hstack([sparse.csr_array(base[:, None]), apart, offsets], format="csr")
    if shape[0] * design.shape[1] <= DENSE_CELLS:
        design = design.toarray()
    return _Known(design, gold.label, worker.astype(np.int32), n_classes)


def _penalty(known: _Known, terms: Terms, ridge: float) -> _Penalty:
    """Centre t at 1, v at 0, b at the class shares of gold and VB together."""
    n_classes = known.n_classes
    n_seen = len(known.worker)
    of_gold = np.zeros(n_classes)
    offset_ridge = FIXED
    if not terms.knows_shares:
        of_gold = np.bincount(known.label, minlength=n_classes).astype(np.float64)
        offset_ridge = OFFSET_RIDGE
    offset = _centred(np.log(of_gold + TASKS_OF_VB * terms.shares))
    return _Penalty(
        np.concatenate([[1.0], np.zeros(n_seen), offset]),
        np.concatenate(
            [[1.0 / SPREAD**2], np.full(n_seen, ridge), np.full(n_classes, offset_ridge)]
        ),
    )


def _centred(logs: Floats) -> Floats:
    return np.asarray(logs - logs.mean())


def _choose_ridge(known: _Known, terms: Terms, random_state: int | None) -> float:
    """Return the strongest ridge within one standard error of the least held-out log-loss.

    The least one itself is chosen with noise: with 50 known tasks it is often far too weak.
    """
    if len(known.label) < LEAST_TO_CHOOSE:
        return RIDGES[0]
    fold = deal(known.label, N_FOLDS, random_state)
    loss = np.zeros((len(RIDGES), len(known.label)))
    for number in range(N_FOLDS):
        asked = fold == number
        learnt = known.keep(~asked)
        held_out = known.keep(asked)
        x = _penalty(learnt, terms, RIDGES[0]).centre
        for place, ridge in enumerate(RIDGES):
            x = _minimise(learnt, _penalty(learnt, terms, ridge), x)
            scores = np.asarray(held_out.design @ x).reshape(-1, known.n_classes)
            loss[place, asked] = log_losses(scores, held_out.label)
    behind = loss - loss[loss.mean(axis=1).argmin()]
    error = behind.std(axis=1, ddof=1) / np.sqrt(len(known.label))
    return RIDGES[int(np.argmax(behind.mean(axis=1) <= error))]


def _overturned(terms: Terms, known: _Known, x: Floats) -> int:
    """Count the known tasks to which gold gives another label than honest VB does."""
    first = known.design[:, [0]]
    base = first if isinstance(first, np.ndarray) else first.toarray()
    before = base.reshape(-1, known.n_classes) + np.log(terms.shares)
    after = np.asarray(known.design @ x).reshape(-1, known.n_classes)
    return int(np.count_nonzero(before.argmax(axis=1) != after.argmax(axis=1)))


def _limited(scores: Floats, n: int) -> Floats:
    """Lower the highest score of each task until its probability is at most (n + 2) / (n + 3).

    The rule of succession: so sure are n right answers, where two of three are expected to be.

    >>> softmax(_limited(np.array([[9.0, 0.0]]), 47)).round(3).tolist()
    [[0.98, 0.02]]
    """
    found = scores.copy()
    place = np.arange(len(scores))
    top = scores.argmax(axis=1)
    rest = scores.copy()
    rest[place, top] = -np.inf
    most = np.logaddexp.reduce(rest, axis=1) + np.log(n + 2.0)
    found[place, top] = np.minimum(scores[place, top], most)
    return found


def _cost(known: _Known, penalty: _Penalty, x: Floats) -> tuple[float, Floats, Floats]:
    """Return the penalised log-loss, its gradient, and the probabilities."""
    scores = np.asarray(known.design @ x).reshape(-1, known.n_classes)
    places = np.arange(len(scores))
    q = softmax(scores)
    norm = np.logaddexp.reduce(scores, axis=1)
    away = x - penalty.centre
    cost = (norm - scores[places, known.label]).sum() + 0.5 * (penalty.strength * away**2).sum()
    residual = q.copy()
    residual[places, known.label] -= 1.0
    gradient = known.design.T @ residual.ravel() + penalty.strength * away
    return float(cost), np.asarray(gradient), q


def _minimise(known: _Known, penalty: _Penalty, x: Floats) -> Floats:
    """Return the one minimum of a convex cost: by Newton's steps, or by L-BFGS where many learn."""
    if len(x) > MOST_FOR_NEWTON:
        found = minimize(lambda at: _cost(known, penalty, at)[:2], x, jac=True, method="L-BFGS-B")
        return np.asarray(found.x)
    cost, gradient, q = _cost(known, penalty, x)
    for _ in range(STEPS):
        if np.abs(gradient).max() < SETTLED * len(known.label):
            break
        step = -np.linalg.solve(_curvature(known, penalty, q), gradient)
        slope = float(gradient @ step)
        size = 1.0
        while True:
            ahead = _cost(known, penalty, x + size * step)
            if ahead[0] <= cost + 1e-4 * size * slope or size < 1e-6:
                break
            size /= 2.0
        x = x + size * step
        cost, gradient, q = ahead
    return x


def _curvature(known: _Known, penalty: _Penalty, q: Floats) -> Floats:
    """Return the second derivatives: Σ_i A_iᵀ (diag q_i − q_i q_iᵀ) A_i, and the penalty's."""
    design = known.design
    is_dense = isinstance(design, np.ndarray)
    weighed = design * q.reshape(-1, 1) if is_dense else design.multiply(q.reshape(-1, 1)).tocsr()
    square = weighed.T @ design
    means = _add_classes(weighed, known.n_classes)
    found = square - means.T @ means
    found = found if is_dense else found.toarray()
    found[np.diag_indices(len(found))] += penalty.strength
    return np.asarray(found)


def _add_classes(rows: Any, n_classes: int) -> Any:
    """Add up the rows of each task."""
    if isinstance(rows, np.ndarray):
        return rows.reshape(-1, n_classes, rows.shape[1]).sum(axis=1)
    from scipy import sparse

    n_tasks = rows.shape[0] // n_classes
    one_each = sparse.kron(sparse.eye_array(n_tasks), np.ones((1, n_classes)), format="csr")
    return one_each @ rows


def _opinion(terms: Terms, known: _Known, penalty: _Penalty, x: Floats, ridge: float) -> Opinion:
    """Name what was found; spreads are those of the normal distribution around the minimum."""
    n_seen = len(known.worker)
    extra = np.zeros(terms.n_workers)
    extra[known.worker] = x[1 : 1 + n_seen]
    variance = np.full(terms.n_workers, 1.0 / ridge)
    covariance = np.zeros(terms.n_workers)
    if len(x) > MOST_FOR_NEWTON:
        variance[known.worker] = 1.0 / penalty.strength[1 : 1 + n_seen]
        return Opinion(float(x[0]), extra, x[1 + n_seen :], ridge, SPREAD**2, variance, covariance)
    inverse = np.linalg.inv(_curvature(known, penalty, _cost(known, penalty, x)[2]))
    variance[known.worker] = np.diag(inverse)[1 : 1 + n_seen]
    covariance[known.worker] = inverse[0, 1 : 1 + n_seen]
    of_t = float(inverse[0, 0])
    return Opinion(float(x[0]), extra, x[1 + n_seen :], ridge, of_t, variance, covariance)
