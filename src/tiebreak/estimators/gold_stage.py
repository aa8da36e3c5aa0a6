"""The stage of gold: what known labels change about the committee's probabilities.

    X_n(k) = b_k + t ℓ(p_n)_k + Σ_m d_m ℓ(q^m_n)_k + s ℓ(h_n)_k + Σ_r a_w 3/2 ([k = c_r] − 1/K)

ℓ is the log, at least log .001, centred over k; p the pool, q^m the members and honest VB, h the
word of the likely best worker: [eq:committee-gold]. Each weight has a normal prior around what the
committee is without gold: t around 1, all others around 0. How narrow these priors are is not
chosen: probabilities are averaged over several widths λ, weighted by how well each predicts known
tasks that are left out, so that nothing switches on at any number of labels. Leaving out one task
at a time depends on no order of gold and needs no further fits: [eq:left-out].

Who is right most often on 50 known tasks is often not the best worker. So each worker of a task is
heard with the chance that it is the best of those who answered, given known tasks: where one is far
ahead, it is heard alone; where several are level, each has its share: [eq:likely-best].

    h_r = Pr(accuracy of r's worker > that of all others on the task)
    accuracy ~ Beta(right + 4 mean, wrong + 4 (1 − mean))

    three workers, right on 45, 44 and 30 of 50 known tasks:    heard for .62, .38 and .00
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import betainc, betaincinv

from tiebreak.data.gold import GoldCodes
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import (
    ByTask,
    Codes,
    Floats,
    Offsets,
    part_of,
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

# Of the likely best:
WEIGHT_OF_OTHERS = 4.0  # known tasks: so much the mean of all workers counts for each of them
MAY_ERR = 0.05  # the share that even classes have beside the word of the best worker
N_BINS = 64  # of accuracies
N_BEST = 8  # workers: bins are narrow where their accuracies lie
LEVELS = np.linspace(0.02, 0.98, 17)
CELLS = 2_000_000  # held at a time
LEAST = 1e-300


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


def centred_log(q: Floats) -> Floats:
    """Return ℓ: the log of probabilities, none below .001, with mean 0 over classes."""
    return centred(np.log(np.maximum(q, LEAST_SHARE)))


def centred(logs: Floats) -> Floats:
    """Return logs with mean 0 over classes, the last axis."""
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True))


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
    heard = [each[gold.task] for each in opinions]
    heard.append(best.words_without_own(tasks, n_classes, gold))
    said = _votes(tasks, n_classes) if words is None else words
    laid = KnownTasks.of(heard, tasks, gold, said)
    worker, first_worker = laid.worker, len(heard)
    first_class = first_worker + len(worker)
    losses: list[float] = []
    found: list[Floats] = []
    variances: list[Floats] = []
    for ridge in RIDGES:
        known = laid.with_ridge(ridge)
        if len(np.unique(gold.label)) < 2:
            known.strength[1:] = FIXED
        if knows_shares:
            known.strength[first_class:] = FIXED
        x = known.minimum(found[-1] if found else known.centre)
        inverse = known.inverse(x)
        losses.append(known.left_out_loss(x, inverse))
        found.append(x)
        variance = np.full(n_workers, 1.0 / ridge)
        diagonal = inverse if inverse.ndim == 1 else np.diag(inverse)
        variance[worker] = diagonal[first_worker:first_class]
        variances.append(variance)
    share = np.sqrt(RIDGES) * np.exp((min(losses) - np.array(losses)) / 2.0)
    share /= share.sum()
    counts = np.flatnonzero(share >= LEAST_WEIGHT)
    x = np.array(found)[counts]
    by_worker = np.zeros((len(counts), n_workers))
    by_worker[:, worker] = x[:, first_worker:first_class]
    return GoldStage(
        share[counts] / share[counts].sum(),
        x[:, : len(opinions)],
        x[:, len(opinions)],
        by_worker,
        x[:, first_class:],
        np.array(variances)[counts],
        best,
        words,
    )


def _votes(tasks: ByTask, n_classes: int) -> Floats:
    """Return one vote by code, (n_codes, n_classes); rows sum to 0."""
    one = VOTE * (np.eye(n_classes) - 1.0 / n_classes)
    return np.tile(one, (tasks.n_codes // n_classes, 1))


class KnownTasks(NamedTuple):
    """Known tasks as a linear model: X = design @ x, with a normal prior of each weight."""

    design: Any  # (n_known · n_classes, n_weights), dense or sparse: rows by task, then class
    label: Codes
    worker: Codes  # (n_seen,) those with responses on known tasks
    n_classes: int
    centre: Floats  # (n_weights,) means of the prior,
    strength: Floats  # and 1 / variances

    @classmethod
    def of(cls, heard: list[Floats], tasks: ByTask, gold: GoldCodes, said: Floats) -> KnownTasks:
        """Lay out what is heard of known tasks, (n_known, n_classes) each, votes, and classes.

        `said`, (n_codes, n_classes), is what each response says.
        """
        n_known, n_classes = heard[0].shape
        start, code = responses_on(tasks, gold.task)
        weight = weights_or_ones(weights_on(tasks, gold.task), len(code))
        place = np.repeat(np.arange(n_known), np.diff(start))
        worker, column = np.unique(code // n_classes, return_inverse=True)
        rows = place[:, None] * n_classes + np.arange(n_classes)
        values = (weight[:, None] * said[code]).ravel()
        where = rows.ravel(), np.repeat(column, n_classes)
        votes = sparse.csr_array((values, where), shape=(n_known * n_classes, len(worker)))
        whole = [centred_log(each).reshape(-1, 1) for each in heard]
        offsets = np.tile(np.eye(n_classes), (n_known, 1))
        n_weights = len(worker) + len(whole) + n_classes
        if votes.shape[0] * n_weights <= DENSE_CELLS and n_weights <= MOST_FOR_NEWTON:
            design: Any = np.hstack([*whole, votes.toarray(), offsets])
        else:
            parts = [*map(sparse.csr_array, whole), votes, sparse.csr_array(offsets)]
            design = sparse.hstack(parts, format="csr")
        centre = np.zeros(n_weights)
        centre[0] = 1.0
        seen = worker.astype(np.int32)
        return cls(design, gold.label, seen, n_classes, centre, np.zeros(n_weights))

    def with_ridge(self, ridge: float) -> KnownTasks:
        """Return the same with a prior of this width."""
        n_members = len(self.centre) - len(self.worker) - self.n_classes - 2
        of_heard = [OF_POOL, *[OF_MEMBER] * n_members, OF_BEST]
        of_workers, of_classes = np.full(len(self.worker), ridge), np.full(self.n_classes, OF_CLASS)
        scale = max(1.0, ridge)
        strength = [scale * np.array(of_heard), of_workers, scale * of_classes]
        return self._replace(strength=np.concatenate(strength))

    def cost(self, x: Floats) -> tuple[float, Floats, Floats]:
        """Return the penalised log-loss, its gradient, and the scores."""
        scores = np.asarray(self.design @ x).reshape(-1, self.n_classes)
        places = np.arange(len(scores))
        norm = np.logaddexp.reduce(scores, axis=1)
        away = x - self.centre
        cost = (norm - scores[places, self.label]).sum() + 0.5 * (self.strength * away**2).sum()
        gradient = self.design.T @ self.residual(scores).ravel() + self.strength * away
        return float(cost), np.asarray(gradient), scores

    def residual(self, scores: Floats) -> Floats:
        """Return q − y."""
        residual = softmax(scores)
        residual[np.arange(len(scores)), self.label] -= 1.0
        return residual

    def minimum(self, x: Floats) -> Floats:
        """Return the one minimum of a convex cost: by Newton's steps, of many weights by L-BFGS."""
        x = np.where(self.strength >= FIXED, self.centre, x)
        if len(x) > MOST_FOR_NEWTON:
            precise = {"maxiter": 1000, "gtol": 1e-9, "ftol": 1e-15}
            how = {"jac": True, "method": "L-BFGS-B", "options": precise}
            return np.asarray(minimize(lambda at: self.cost(at)[:2], x, **how).x)
        cost, gradient, scores = self.cost(x)
        for _ in range(STEPS):
            if np.abs(gradient).max() < SETTLED * len(self.label):
                break
            step = -np.linalg.solve(self.curvature(scores), gradient)
            slope = float(gradient @ step)
            size = 1.0
            while True:
                ahead = self.cost(x + size * step)
                if ahead[0] <= cost + 1e-4 * size * slope + ROUNDING * abs(cost) or size < 1e-6:
                    break
                size /= 2.0
            x = x + size * step
            cost, gradient, scores = ahead
        return x

    def curvature(self, scores: Floats) -> Floats:
        """Return the second derivatives: Σ_i A_iᵀ (diag q_i − q_i q_iᵀ) A_i, and the prior's."""
        weighed, means = self._weighed(scores)
        found = weighed.T @ self.design - means.T @ means
        found = found if isinstance(found, np.ndarray) else found.toarray()
        found[np.diag_indices(len(found))] += self.strength
        return np.asarray(found)

    def _weighed(self, scores: Floats) -> tuple[Any, Any]:
        """Return the design with rows by their probability, and its sum over classes by task."""
        q, design = softmax(scores), self.design
        if isinstance(design, np.ndarray):
            weighed = design * q.reshape(-1, 1)
            return weighed, weighed.reshape(len(q), self.n_classes, -1).sum(axis=1)
        weighed = design.multiply(q.reshape(-1, 1)).tocsr()
        one_each = sparse.kron(sparse.eye_array(len(q)), np.ones((1, self.n_classes)), format="csr")
        return weighed, one_each @ weighed

    def inverse(self, x: Floats) -> Floats:
        """Return the inverse of the curvature; of its diagonal alone where many learn."""
        scores = self.cost(x)[2]
        if len(x) <= MOST_FOR_NEWTON:
            return np.asarray(np.linalg.inv(self.curvature(scores)))
        weighed, means = self._weighed(scores)
        square = np.asarray(self.design.multiply(weighed).sum(axis=0)).ravel()
        of_means = np.asarray(means.multiply(means).sum(axis=0)).ravel()
        return np.asarray(1.0 / (square - of_means + self.strength))

    def left_out_loss(self, x: Floats, inverse: Floats) -> float:
        """Return the summed log-loss of known tasks, each by what the others teach: [eq:left-out].

        One Newton step takes a task out of the fit: its scores move by M (I − W M)⁻¹ (q − y), where
        M is A H⁻¹ Aᵀ of the task's rows A, H the curvature and W = diag q − q qᵀ.
        """
        one = np.eye(self.n_classes)
        scores = np.asarray(self.design @ x).reshape(-1, self.n_classes)
        q, residual = softmax(scores), self.residual(scores)
        spread = q[:, :, None] * one - q[:, :, None] * q[:, None, :]
        moved = np.empty_like(scores)
        for place in range(len(q)):
            rows = self.design[place * self.n_classes : (place + 1) * self.n_classes]
            by_inverse = rows @ inverse if inverse.ndim == 2 else rows.multiply(inverse)
            leverage = by_inverse @ rows.T
            leverage = leverage if isinstance(leverage, np.ndarray) else leverage.toarray()
            moved[place] = leverage @ np.linalg.solve(
                one - spread[place] @ leverage, residual[place]
            )
        left_out = softmax(scores + moved)[np.arange(len(q)), self.label]
        return float(-np.log(np.maximum(left_out, LEAST_LEFT_OUT)).sum())


class LikelyBest(NamedTuple):
    """How often each worker was right and wrong on known tasks, by weight."""

    right: Floats  # (n_workers,)
    wrong: Floats

    @classmethod
    def of(cls, tasks: ByTask, n_classes: int, gold: GoldCodes) -> LikelyBest:
        """Count right and wrong answers to known tasks."""
        n_workers = tasks.n_codes // n_classes
        start, code = responses_on(tasks, gold.task)
        weight = weights_or_ones(weights_on(tasks, gold.task), len(code))
        is_right = code % n_classes == np.repeat(gold.label, np.diff(start))
        right = np.bincount(code // n_classes, weights=weight * is_right, minlength=n_workers)
        wrong = np.bincount(code // n_classes, weights=weight * ~is_right, minlength=n_workers)
        return cls(np.asarray(right, np.float64), np.asarray(wrong, np.float64))

    def accuracy(self) -> Floats:
        """Return how accurate each worker is expected to be."""
        right, wrong = self._beta()
        return np.asarray(right / (right + wrong))

    def words(self, tasks: ByTask, n_classes: int) -> Floats:
        """Return (n_tasks, n_classes): each label with the chance that the best worker gave it."""
        right, wrong = self._beta()
        edges = self._edges()
        log_below, share = _chances(right, wrong, edges)
        found = np.full((tasks.n_tasks, n_classes), 1.0 / n_classes)
        size = np.diff(tasks.start)
        part = np.cumsum(size) * N_BINS // CELLS
        for number in np.unique(part):
            at = np.flatnonzero((part == number) & (size > 0)).astype(np.int32)
            if len(at):
                some = part_of(tasks, at, n_classes)
                worker = some.code // n_classes
                found[at] = _words(some, n_classes, log_below[worker], share[worker])
        return found

    def words_without_own(self, tasks: ByTask, n_classes: int, gold: GoldCodes) -> Floats:
        """Return the words on known tasks, each as if its own label were not known."""
        some = part_of(tasks, gold.task, n_classes)
        found = np.full((some.n_tasks, n_classes), 1.0 / n_classes)
        answered = np.flatnonzero(np.diff(some.start)).astype(np.int32)
        if not len(answered):
            return found
        some = part_of(some, answered, n_classes)
        task = some.task_of_each()
        worker = some.code // n_classes
        weight = weights_or_ones(some.weight, len(some.code))
        own_right = weight * (some.code % n_classes == gold.label[answered][task])
        # A worker may have several responses on one task: all of them are left out.
        runs = _run_of(task, worker, len(self.right))
        of_run = np.bincount(runs, weights=own_right)[runs]
        wrong_of_run = np.bincount(runs, weights=weight - own_right)[runs]
        all_right = self.right.sum() - np.bincount(task, weights=own_right)
        everything = (self.right + self.wrong).sum() - np.bincount(task, weights=weight)
        mean = ((all_right + 1.0) / (everything + 2.0))[task]
        right = self.right[worker] - of_run + WEIGHT_OF_OTHERS * mean
        wrong = self.wrong[worker] - wrong_of_run + WEIGHT_OF_OTHERS * (1.0 - mean)
        found[answered] = _words(some, n_classes, *_chances(right, wrong, self._edges()))
        return found

    def _beta(self) -> tuple[Floats, Floats]:
        """Return the parameters of accuracies: each worker is drawn to the mean of all."""
        mean = (self.right.sum() + 1.0) / ((self.right + self.wrong).sum() + 2.0)
        return self.right + WEIGHT_OF_OTHERS * mean, self.wrong + WEIGHT_OF_OTHERS * (1.0 - mean)

    def _edges(self) -> Floats:
        """Return the edges of bins: half of them even, half where the best workers lie.

        All who are level with the last of the best belong to them: order must not choose.
        """
        right, wrong = self._beta()
        accuracy = right / (right + wrong)
        least = np.sort(accuracy)[-N_BEST:][0]
        best = np.unique(np.column_stack([right, wrong])[accuracy >= least], axis=0).T
        likely = betaincinv(best[0][:, None], best[1][:, None], LEVELS)
        narrow = np.quantile(likely, np.linspace(0.0, 1.0, N_BINS // 2))
        return np.sort(np.concatenate([narrow, np.linspace(0.0, 1.0, N_BINS // 2 + 1)]))


def _chances(right: Floats, wrong: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Return by bin: log Pr(in a lower bin, or the lower half of this), Pr(in this) / Pr(below)."""
    below = betainc(right[:, None], wrong[:, None], edges)
    middle = np.maximum((below[:, 1:] + below[:, :-1]) / 2.0, LEAST)
    return np.log(middle), np.diff(below, axis=1) / middle


def _words(tasks: ByTask, n_classes: int, log_below: Floats, share: Floats) -> Floats:
    """Return the words on tasks that have responses, of which each has a row of chances.

    Several responses of a worker to one task share one chance.
    """
    task = tasks.task_of_each()
    size = np.diff(tasks.start)
    first = tasks.start[:-1]
    runs = _run_of(task, tasks.code // n_classes, tasks.n_codes // n_classes)
    turn = (1.0 / np.bincount(runs))[runs][:, None]
    every = np.add.reduceat(turn * log_below, first, axis=0)
    every = np.exp(every - every.max(axis=1, keepdims=True))
    chance = (turn * share * np.repeat(every, size, axis=0)).sum(axis=1)
    chance /= np.repeat(np.add.reduceat(chance, first), size)
    cell = task * n_classes + tasks.code % n_classes
    said = np.bincount(cell, weights=chance, minlength=tasks.n_tasks * n_classes)
    return np.asarray((1.0 - MAY_ERR) * said.reshape(-1, n_classes) + MAY_ERR / n_classes)


def _run_of(task: Offsets, worker: Codes, n_workers: int) -> Offsets:
    """Number the pairs of task and worker, (n_responses,)."""
    key = task * np.int64(n_workers) + worker
    return np.asarray(np.unique(key, return_inverse=True)[1])
