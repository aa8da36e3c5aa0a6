"""Chains: tasks in sequences, whose class depends on the class of the task before.

    y_1 ~ π,   y_n | y_n−1 = j ~ A_j,   A_j ~ Dirichlet(τ₀),   w_n | y_n = k ~ ω_k        [eq:chain]

What may not follow (`I-X` after `O`) has probability exactly 0. Words, where tasks have some, are
one more worker, whose answer is the word itself. Workers who look back are many workers: `ann`
after she said `B-X` is one, `ann` after `O` another, [eq:look-back]; their codes are made here, and
no other code knows. Soft links between sequences pull through a field.

Four tasks, a b c in one sequence and d alone; ann says O B I, and bob, who left out b, O I:

    task                 a   b   c  |  d
    draws of π           1   0   0  |  1          what follows draws from the row before it
    ann answers after    -   O   B  |  -          (worker, previous answer): two of her K + 1 selves
    bob answers after    -       -                no answer before: `-`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, psi

from tiebreak.data.gold import GoldCodes
from tiebreak.data.sequences import SequenceCodes
from tiebreak.data.tags import Rules
from tiebreak.errors import LinkError
from tiebreak.inference import dirichlet
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.climb import FitState, Problem
from tiebreak.inference.known import Known
from tiebreak.inference.tasks import Independent, Inferred, OwnRows, Parameters
from tiebreak.inference.tasks.coupling.plan import log_odds_of
from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.kernels.numpy_chains import Field
from tiebreak.links.graph import LinkCodes

SoftLinks = tuple[LinkCodes, float | None]  # and the error rate of those without weight

STEPS = 1.0  # τ₀: pseudo-counts of each step that is possible
WORDS = 0.1  # pseudo-counts of each word in each class


class Potentials(NamedTuple):
    """What sequences are inferred from: log scores (n, K) and log steps (K, K)."""

    score: Floats
    step: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class MarkovChains(Independent):
    """Rows in sequences, one after the other; all of them are own rows."""

    name: str  # "none", or "chain" with "+back", "+words"
    start: Offsets  # (n_sequences + 1,)
    follows: Mask
    word: Codes | None = None  # (n_own,)
    n_words: int = 0
    field: Field | None = None
    backend: Backend = None
    n_threads: int = 1

    @property
    def is_learnt(self) -> bool:
        """Whether steps are; else what is possible is equally likely, and no word counts."""
        return self.name != "none"

    # The seam

    @property
    def prior(self) -> Parameters:
        """α₀, then τ₀, and ω₀ where there are words, (word, class)."""
        if not self.is_learnt:
            return (self.shares.prior,)
        steps = np.where(self.follows, STEPS, 1.0)  # 1 where impossible: log Γ(1) = 0
        if self.word is None:
            return (self.shares.prior, steps)
        return (self.shares.prior, steps, np.full((self.n_words, self.shares.n_classes), WORDS))

    @property
    def exact(self) -> bool:
        return self.field is None  # with links a sweep depends on the q before it

    def log_evidence(self, parameters: Parameters) -> float:
        """Return log B(α) and Σ_j log B(τ_j), Σ_k log B(ω_k), each less that of its prior."""
        found = super().log_evidence(parameters)
        if self.is_learnt:
            ends = parameters[1], self.prior[1]
            one, other = (self._log_beta_of_steps(each) for each in ends)
            found += one - other
        if self.word is not None:
            ends = parameters[2], self.prior[2]
            after, before = (float(dirichlet.log_beta(each, 0).sum()) for each in ends)
            found += after - before
        return found

    def infer(self, parameters: Parameters, score: Floats, q: Floats, memory: Any) -> Inferred:
        score, step = self.potentials(parameters, score)
        found = np.empty_like(q) if self.field is None else q.copy()  # links read q as it stands
        pairs, value = self.forward_backward(score, step, found, self.field)
        if self.field is not None:  # ⟨u, q⟩ held what links say, at each turn: say it once
            value += self._linked_value(found)
        if not self.is_learnt:
            return Inferred(found, (), value)
        value -= float((pairs * np.where(self.follows, step, 0.0)).sum())
        return Inferred(found, (pairs, *self._count_words(found)), value)

    def tally(self, q: Floats) -> Parameters:
        if not self.is_learnt:
            return ()
        later = np.ones(len(q), dtype=bool)
        later[self.start[:-1]] = False
        here = np.flatnonzero(later)
        return (q[here - 1].T @ q[here] * self.follows, *self._count_words(q))

    def value(self, q: Floats) -> None:
        return

    def conclude(
        self, parameters: Parameters, score: Floats | None, scale: Floats, q: Floats, memory: Any
    ) -> Inferred:
        """Return q as it is: sequences are scaled as a whole, by `scaled`, and not row by row."""
        if self.is_learnt or self.field is not None:
            return Inferred(q, memory=memory)
        return super().conclude(parameters, score, scale, q, memory)

    def scaled(
        self, parameters: Parameters, found: Potentials, calibration: Calibration, n: Floats
    ) -> Potentials:
        """Return potentials with steps and scores to powers: [eq:chain-scale].

        What is said of a row shares its errors with what else is said of it, with its word and with
        what is said of a row beside it: each of these counts as one answer more. Scores have the
        design effect of all these on average over their sequence; the class prior and steps that of
        answers alone. All is one chain, so that rows and spans stay consistent. `n` is how many
        responses each row has.
        """
        first, last, size = self.start[:-1], self.start[1:] - 1, np.diff(self.start)
        is_answered = (n > 0).astype(np.float64)
        others = np.add.reduceat(np.maximum(n - 1.0, 0.0), first) / size
        of_all = 2.0 * np.add.reduceat(is_answered, first)  # each is beside two, but at an end
        more = (of_all - is_answered[first] - is_answered[last]) / size
        more += self.word is not None
        of_score = np.repeat(calibration.scale(1.0 + others + more), size)[:, None]
        score = of_score * found.score
        of_prior = calibration.scale(1.0 + others)[:, None] - of_score[first]
        score[first] += of_prior * self.log_prior(parameters)
        of_step = float(calibration.scale(np.array([1.0 + others @ size / len(n)]))[0])
        return Potentials(score, np.where(self.follows, of_step * found.step, -np.inf))

    # Inside

    def potentials(
        self, parameters: Parameters, score: Floats, q: Floats | None = None
    ) -> Potentials:
        """Return what is inferred from: scores with words, and with links as q stands."""
        if self.word is not None and self.is_learnt:
            score = score + dirichlet.expected_log(parameters[2], 0)[self.word]
        if q is not None and self.field is not None:
            of_links = self.field.weight[:, None] * q[self.field.other]
            score = score + _sum_within(of_links, self.field.start)
        return Potentials(score, self.log_step(parameters))

    def log_step(self, parameters: Parameters) -> Floats:
        """Return E[log A], −∞ where a step is impossible."""
        logs = np.zeros(self.follows.shape)
        if self.is_learnt:
            steps = parameters[1]
            total = np.where(self.follows, steps, 0.0).sum(axis=1, keepdims=True)
            logs = psi(steps) - psi(np.maximum(total, 1e-300))
        return np.where(self.follows, logs, -np.inf)

    def transitions(self, parameters: Parameters) -> Floats:
        """Return E[A], (n_classes, n_classes): rows sum to 1."""
        steps = np.where(self.follows, parameters[1] if self.is_learnt else 1.0, 0.0)
        return np.asarray(steps / steps.sum(axis=1, keepdims=True))

    def best_path(self, found: Potentials) -> Codes:
        """Return the class of each own row on the likeliest path of its sequence."""
        path: Codes = self.backend.best_path(found.score, self.start, found.step)
        return path

    def forward_backward(
        self, score: Floats, step: Floats, q: Floats, field: Field | None = None
    ) -> tuple[Floats, float]:
        """Overwrite q; return Σ ξ and Σ (log Z_s − ⟨u, q_s⟩)."""
        found = self.backend.forward_backward(score, self.start, step, q, field, self.n_threads)
        assert found.impossible < 0  # known labels were checked
        return found.pairs, found.value

    def _log_beta_of_steps(self, steps: Floats) -> float:
        possible = np.where(self.follows, steps, 0.0).sum(axis=1)
        return float(gammaln(steps).sum() - gammaln(possible[possible > 0.0]).sum())

    def _count_words(self, q: Floats) -> Parameters:
        if self.word is None:
            return ()
        columns = [np.bincount(self.word, column, self.n_words) for column in q.T]
        return (np.stack(columns, axis=1),)

    def _linked_value(self, q: Floats) -> float:
        """Return Σ over links of weight · P(equal)."""
        assert self.field is not None
        row = np.repeat(np.arange(len(q)), np.diff(self.field.start))
        equal = np.einsum("rk,rk->r", q[row], q[self.field.other])
        return float(self.field.weight @ equal) / 2.0


def potentials_of(problem: Problem, state: FitState) -> Potentials:
    """Return what sequences are inferred from where a fit ended."""
    tasks, own = problem.tasks, problem.tasks.own
    assert isinstance(tasks, MarkovChains)
    assert own is not None
    score = own.score(problem, problem.logs(state.parameters))
    return tasks.potentials(state.parameters, score, state.q[own.at])


def with_chains(
    plain: Problem,
    codes: SequenceCodes,
    rules: Rules,
    known: Known,
    *,
    kind: str,
    links: SoftLinks | None = None,
) -> Problem:
    """Return the problem with its tasks in sequences, and with known rows.

    `kind` is "none" (what is possible, nothing learnt), or "chain" with "+back", "+words".
    """
    problem = known.on(plain)
    n_rows, n_classes = problem.rows.n_tasks, problem.n_classes
    at, start = codes.row, codes.start
    if links is not None:  # what is linked and in no sequence is a sequence of its own
        others = np.setdiff1d(links[0].tasks(), at).astype(np.int32)
        at = np.concatenate([at, others])
        start = np.concatenate([start, start[-1] + 1 + np.arange(len(others))])
    is_first = np.zeros(len(at), dtype=bool)
    is_first[start[:-1]] = True
    if "+back" in kind:
        problem = looking_back(problem, codes)
    fixed = np.zeros((len(at), n_classes))
    fixed[is_first] = np.where(rules.first, 0.0, -np.inf)
    label = np.full(n_rows, -1, dtype=np.int32)
    label[known.task] = known.label
    is_known = np.flatnonzero(label[at] >= 0)
    others_of = np.arange(n_classes) != label[at[is_known], None]
    fixed[is_known] = np.where(others_of, -np.inf, fixed[is_known])
    draws = None if kind == "none" else is_first.astype(np.float64)
    own = OwnRows(
        at, layout.part_of(problem.rows, at, n_classes), draws, fixed if fixed.any() else None
    )
    word = None
    if "+words" in kind and codes.word is not None:
        word = np.concatenate([codes.word, np.full(len(at) - len(codes.row), codes.n_words - 1)])
    tasks = MarkovChains(
        shares=problem.tasks.shares,
        own=own,
        name=kind,
        start=start,
        follows=rules.follows,
        word=None if word is None else word.astype(np.int32),
        n_words=codes.n_words,
        field=None if links is None else _field(at, n_rows, *links, n_classes=n_classes),
        backend=problem.backend,
        n_threads=problem.n_threads,
    )
    return problem._replace(tasks=tasks)


def looking_back(problem: Problem, codes: SequenceCodes) -> Problem:
    """Return the problem with workers who look back: [eq:look-back].

    The answer l of worker w after answer d (K: none) has code (w (K + 1) + d) K + l.
    """
    rows, n_classes = problem.rows, problem.n_classes
    n_workers = rows.n_codes // n_classes
    worker, label = np.divmod(rows.code.astype(np.int64), n_classes)
    before = codes.previous(rows.task_of_each(), worker, label, n_classes)
    code = (worker * (n_classes + 1) + before) * n_classes + label
    given = rows.start, code.astype(np.int32), rows.role, rows.n_codes * (n_classes + 1), n_classes
    each = np.repeat(np.arange(n_workers, dtype=np.int32), n_classes + 1)
    return problem._replace(
        rows=layout.lay_out(*given, rows.weight), workers=problem.workers.select(each)
    )


def contradiction(rules: Rules, codes: SequenceCodes, gold: GoldCodes) -> tuple[int, int] | None:
    """Return two known rows, side by side, whose labels cannot follow each other; None: all can.

    A label that cannot come first is twice the same row. Across a row that is not known anything
    goes: each class has one that leads to it.
    """
    label = np.full(codes.n_rows, -1, dtype=np.int32)
    label[gold.task] = gold.label
    said = label[codes.row]
    is_first = codes.is_first
    wrong = is_first & (said >= 0) & ~rules.first[said]
    later = np.flatnonzero(~is_first)
    later = later[(said[later] >= 0) & (said[later - 1] >= 0)]
    wrong[later] = ~rules.follows[said[later - 1], said[later]]
    if not wrong.any():
        return None
    n = int(np.flatnonzero(wrong)[0])
    return int(codes.row[n if is_first[n] else n - 1]), int(codes.row[n])


def _sum_within(rows: Floats, start: Offsets) -> Floats:
    sums = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    return np.asarray(sums[start[1:]] - sums[start[:-1]])


def _field(
    at: Codes, n_rows: int, links: LinkCodes, error: float | None, *, n_classes: int
) -> Field:
    log_odds, hard = log_odds_of(links, error, n_classes)
    if hard.any():
        raise LinkError("hard-links-in-sequences", n=int(hard.sum()))
    place = np.full(n_rows, -1, dtype=np.int32)
    place[at] = np.arange(len(at))
    each = np.arange(len(at), dtype=np.int32)
    laid = layout.by_group(
        each, each, 0.0, (place[links.left], place[links.right], log_odds), len(at)
    )
    return Field(laid.start, laid.other, laid.weight)
