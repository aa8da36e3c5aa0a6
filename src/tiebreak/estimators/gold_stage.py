"""The stage of gold: what known labels change about the committee's probabilities.

    X_n(k) = b_k + t ℓ(p_n)_k + Σ_m d_m ℓ(q^m_n)_k + s ℓ(h_n)_k + Σ_r a_w 3/2 ([k = c_r] − 1/K)

ℓ is the log, at least log .001, centred over k; p the pool, q^m the members and honest VB, h the
word of the likely best worker: [eq:committee-gold]. Each weight has a normal prior around what the
committee is without gold: t around 1, all others around 0. How narrow these priors are is not
chosen: probabilities are averaged over several widths λ, weighted by how well each predicts known
tasks that are left out, so that nothing switches on at any number of labels. Leaving out one task
at a time depends on no order of gold and needs no further fits: [eq:left-out].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from tiebreak.data.gold import GoldCodes
from tiebreak.estimators.likely_best import LikelyBest
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import (
    ByTask,
    Codes,
    Floats,
    responses_on,
    weights_on,
    weights_or_ones,
)

VOTE = 1.5  # log-odds of one vote where a is 1: right four times of five, or so
# λ is 1 / variance of a; t, d, s and b have these times λ, or times 1 where λ is below. Widths and
# LEAST_LEFT_OUT were chosen on the six juries; docs/default.md shows them on the ten datasets.
RIDGES = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
OF_POOL, OF_MEMBER, OF_BEST, OF_CLASS = 1.0, 3.0, 2.0, 5.0
LEAST_LEFT_OUT = 0.05  # what the true class of a left-out task has at least: one task is not all
FIXED = 1e9  # a weight that nothing moves
LEAST_SHARE = 1e-3  # of a class, before its log is taken
LEAST_WEIGHT = 0.01  # of a ridge that counts
MOST_FOR_NEWTON = 1_500  # weights; beyond, L-BFGS, and curvature by its diagonal alone
DENSE_CELLS = 4_000_000
STEPS = 60
SETTLED = 1e-13  # of the gradient, per known task: the order of tasks must leave no trace
ROUNDING = 1e-13  # of the cost: near the minimum a step gains less than can be seen
INTERVAL = 1.959964  # standard deviations: 95 %


class GoldStage(NamedTuple):
    """What was learnt of known labels: one row for each prior of a that counts."""

    share: Floats  # (n_ridges,) of each, sums to 1
    of_opinions: Floats  # t and d, (n_ridges, 1 + n_opinions)
    of_best: Floats  # s, (n_ridges,)
    of_workers: Floats  # a, (n_ridges, n_workers)
    of_classes: Floats  # b, (n_ridges, n_classes)
    variance: Floats  # of a, (n_ridges, n_workers)
    best: LikelyBest
    words: Floats | None = None  # (n_codes, n_classes) of responses on a scale; None: one vote each

    def probabilities(self, opinions: list[Floats], tasks: ByTask, backend: Backend) -> Floats:
        """Return what the pool and the opinions become, (n_tasks, n_classes)."""
        n_classes = self.of_classes.shape[1]
        logs = [centred_log(each) for each in opinions]
        word = centred_log(self.best.words(tasks, n_classes))
        q = np.zeros_like(word)
        said = _votes(tasks, n_classes) if self.words is None else self.words
        for row, share in enumerate(self.share):
            votes = np.repeat(self.of_workers[row], n_classes)[:, None] * said
            scores = backend.score_tasks(tasks, self.of_classes[row], votes)
            scores = scores + self.of_best[row] * word
            for weight, each in zip(self.of_opinions[row], logs, strict=True):
                scores += weight * each
            q += share * softmax(scores)
        return q

    def with_a_stranger(self) -> GoldStage:
        """Return the same with one more worker, of whom gold says nothing."""
        nothing = np.zeros((len(self.share), 1))
        words = self.words
        if words is not None:
            words = np.concatenate([words, np.zeros_like(words[: words.shape[1]])])
        return self._replace(
            of_workers=np.hstack([self.of_workers, nothing]),
            variance=np.hstack([self.variance, nothing]),
            best=LikelyBest(*(np.append(each, 0.0) for each in self.best)),
            words=words,
        )

    def weights(self) -> Floats:
        """Return a, (n_workers,), over all priors."""
        return np.asarray(self.share @ self.of_workers)

    def weight_intervals(self) -> Floats:
        """Return where a lies with 95 %, (n_workers, 2)."""
        mean = self.weights()
        spread = self.share @ (self.variance + (self.of_workers - mean) ** 2)
        half = INTERVAL * np.sqrt(spread)
        return np.column_stack([mean - half, mean + half])


class _Known(NamedTuple):
    """Known tasks as a linear model: X = design @ x, rows by task, then class."""

    design: Any  # (n_known · n_classes, n_weights), dense or sparse
    label: Codes
    worker: Codes  # (n_seen,) those with responses on known tasks
    n_classes: int
    n_opinions: int

    def with_ridge(self, ridge: float) -> tuple[Floats, Floats]:
        """Return the prior of the weights: their means and 1 / variances, by column."""
        n_seen = len(self.worker)
        centre = np.zeros(self.design.shape[1])
        centre[0] = 1.0
        whole = np.concatenate([[OF_POOL], np.full(self.n_opinions - 1, OF_MEMBER), [OF_BEST]])
        of_classes = np.full(self.n_classes, OF_CLASS)
        scale = max(1.0, ridge)
        return centre, np.concatenate([scale * whole, np.full(n_seen, ridge), scale * of_classes])


def centred_log(q: Floats) -> Floats:
    """Return ℓ: the log of probabilities, none below .001, with mean 0 over classes."""
    logs = np.log(np.maximum(q, LEAST_SHARE))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def learn(
    opinions: list[Floats],
    tasks: ByTask,
    gold: GoldCodes,
    words: Floats | None = None,
    *,
    knows_shares: bool = False,
) -> GoldStage:
    """Learn from known labels how far to go from the pool, the first of the opinions.

    Where all known labels are one class, t alone is learnt: that workers say it tells nothing of
    them. `words`, (n_codes, n_classes), is what each response says where classes are a scale, in
    the place of one vote. `knows_shares`: classes of a crowd of rules have known shares, so that b
    stays.
    """
    n_classes = opinions[0].shape[1]
    n_workers = tasks.n_codes // n_classes
    best = LikelyBest.of(tasks, n_classes, gold)
    known = _lay_out(opinions, tasks, gold, best.words_without_own(tasks, n_classes, gold), words)
    is_of_one = len(np.unique(gold.label)) < 2
    first_worker = len(opinions) + 1
    first_class = first_worker + len(known.worker)
    losses: list[float] = []
    found: list[Floats] = []
    variances: list[Floats] = []
    for ridge in RIDGES:
        centre, strength = known.with_ridge(ridge)
        if is_of_one:
            strength[1:] = FIXED
        if knows_shares:
            strength[first_class:] = FIXED
        x = _minimise(known, centre, strength, found[-1] if found else centre)
        inverse = _inverse(known, strength, _cost(known, centre, strength, x)[2])
        losses.append(_left_out_loss(known, x, inverse))
        found.append(x)
        variance = np.full(n_workers, 1.0 / ridge)
        diagonal = inverse if inverse.ndim == 1 else np.diag(inverse)
        variance[known.worker] = diagonal[first_worker:first_class]
        variances.append(variance)
    share = np.sqrt(RIDGES) * np.exp((min(losses) - np.array(losses)) / 2.0)
    share /= share.sum()
    counts = np.flatnonzero(share >= LEAST_WEIGHT)
    x = np.array(found)[counts]
    of_workers = np.zeros((len(counts), n_workers))
    of_workers[:, known.worker] = x[:, first_worker:first_class]
    return GoldStage(
        share[counts] / share[counts].sum(),
        x[:, : len(opinions)],
        x[:, len(opinions)],
        of_workers,
        x[:, first_class:],
        np.array(variances)[counts],
        best,
        words,
    )


def _votes(tasks: ByTask, n_classes: int) -> Floats:
    """Return one vote by code, (n_codes, n_classes); rows sum to 0."""
    one = VOTE * (np.eye(n_classes) - 1.0 / n_classes)
    return np.tile(one, (tasks.n_codes // n_classes, 1))


def _lay_out(
    opinions: list[Floats],
    tasks: ByTask,
    gold: GoldCodes,
    best: Floats,
    words: Floats | None = None,
) -> _Known:
    """Return the known tasks as a design: opinions, the best worker's word, votes, classes."""
    n_classes = best.shape[1]
    start, code = responses_on(tasks, gold.task)
    weight = weights_or_ones(weights_on(tasks, gold.task), len(code))
    place = np.repeat(np.arange(len(gold.task)), np.diff(start))
    worker, column = np.unique(code // n_classes, return_inverse=True)
    rows = place[:, None] * n_classes + np.arange(n_classes)
    shape = (len(gold.task) * n_classes, len(worker))
    said = _votes(tasks, n_classes) if words is None else words
    values = (weight[:, None] * said[code]).ravel()
    votes = sparse.csr_array((values, (rows.ravel(), np.repeat(column, n_classes))), shape=shape)
    whole = [centred_log(each[gold.task]).reshape(-1, 1) for each in opinions]
    whole.append(centred_log(best).reshape(-1, 1))
    offsets = np.tile(np.eye(n_classes), (len(gold.task), 1))
    n_weights = shape[1] + len(whole) + n_classes
    if shape[0] * n_weights <= DENSE_CELLS and n_weights <= MOST_FOR_NEWTON:
        design: Any = np.hstack([*whole, votes.toarray(), offsets])
    else:
        design = sparse.hstack(
            [*map(sparse.csr_array, whole), votes, sparse.csr_array(offsets)], format="csr"
        )
    return _Known(design, gold.label, worker.astype(np.int32), n_classes, len(opinions))


def _cost(
    known: _Known, centre: Floats, strength: Floats, x: Floats
) -> tuple[float, Floats, Floats]:
    """Return the penalised log-loss, its gradient, and the probabilities."""
    scores = np.asarray(known.design @ x).reshape(-1, known.n_classes)
    places = np.arange(len(scores))
    q = softmax(scores)
    norm = np.logaddexp.reduce(scores, axis=1)
    away = x - centre
    cost = (norm - scores[places, known.label]).sum() + 0.5 * (strength * away**2).sum()
    residual = q.copy()
    residual[places, known.label] -= 1.0
    gradient = known.design.T @ residual.ravel() + strength * away
    return float(cost), np.asarray(gradient), q


def _minimise(known: _Known, centre: Floats, strength: Floats, x: Floats) -> Floats:
    """Return the one minimum of a convex cost: by Newton's steps, or by L-BFGS where many learn."""
    x = np.where(strength >= FIXED, centre, x)
    if len(x) > MOST_FOR_NEWTON:
        precise = {"maxiter": 1000, "gtol": 1e-9, "ftol": 1e-15}
        found = minimize(
            lambda at: _cost(known, centre, strength, at)[:2],
            x,
            jac=True,
            method="L-BFGS-B",
            options=precise,
        )
        return np.asarray(found.x)
    cost, gradient, q = _cost(known, centre, strength, x)
    for _ in range(STEPS):
        if np.abs(gradient).max() < SETTLED * len(known.label):
            break
        step = -np.linalg.solve(_curvature(known, strength, q), gradient)
        slope = float(gradient @ step)
        size = 1.0
        while True:
            ahead = _cost(known, centre, strength, x + size * step)
            if ahead[0] <= cost + 1e-4 * size * slope + ROUNDING * abs(cost) or size < 1e-6:
                break
            size /= 2.0
        x = x + size * step
        cost, gradient, q = ahead
    return x


def _curvature(known: _Known, strength: Floats, q: Floats) -> Floats:
    """Return the second derivatives: Σ_i A_iᵀ (diag q_i − q_i q_iᵀ) A_i, and the prior's."""
    weighed, means = _weighed(known, q)
    found = weighed.T @ known.design - means.T @ means
    found = found if isinstance(found, np.ndarray) else found.toarray()
    found[np.diag_indices(len(found))] += strength
    return np.asarray(found)


def _weighed(known: _Known, q: Floats) -> tuple[Any, Any]:
    """Return the design with rows by their probability, and its sum over each task's classes."""
    design = known.design
    if isinstance(design, np.ndarray):
        weighed = design * q.reshape(-1, 1)
        return weighed, weighed.reshape(len(q), known.n_classes, -1).sum(axis=1)
    weighed = design.multiply(q.reshape(-1, 1)).tocsr()
    one_each = sparse.kron(sparse.eye_array(len(q)), np.ones((1, known.n_classes)), format="csr")
    return weighed, one_each @ weighed


def _inverse(known: _Known, strength: Floats, q: Floats) -> Floats:
    """Return the inverse of the curvature; of its diagonal alone where there are many weights."""
    if len(strength) <= MOST_FOR_NEWTON:
        return np.asarray(np.linalg.inv(_curvature(known, strength, q)))
    weighed, means = _weighed(known, q)
    square = np.asarray(known.design.multiply(weighed).sum(axis=0)).ravel()
    return np.asarray(1.0 / (square - np.asarray(means.multiply(means).sum(axis=0)) + strength))


def _left_out_loss(known: _Known, x: Floats, inverse: Floats) -> float:
    """Return the summed log-loss of known tasks, each by what the others teach: [eq:left-out].

    One Newton step takes a task out of the fit: its scores move by M (I − W M)⁻¹ (q − y), where M
    is A H⁻¹ Aᵀ of the task's rows A, H the curvature and W = diag q − q qᵀ.
    """
    n_classes = known.n_classes
    scores = np.asarray(known.design @ x).reshape(-1, n_classes)
    q = softmax(scores)
    residual = q.copy()
    residual[np.arange(len(q)), known.label] -= 1.0
    spread = q[:, :, None] * np.eye(n_classes) - q[:, :, None] * q[:, None, :]
    moved = np.empty_like(scores)
    for place in range(len(q)):
        rows = known.design[place * n_classes : (place + 1) * n_classes]
        by_inverse = rows @ inverse if inverse.ndim == 2 else rows.multiply(inverse)
        leverage = by_inverse @ rows.T
        leverage = leverage if isinstance(leverage, np.ndarray) else leverage.toarray()
        step = np.linalg.solve(np.eye(n_classes) - spread[place] @ leverage, residual[place])
        moved[place] = leverage @ step
    left_out = softmax(scores + moved)[np.arange(len(q)), known.label]
    return float(-np.log(np.maximum(left_out, LEAST_LEFT_OUT)).sum())
