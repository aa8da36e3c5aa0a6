"""Davidson's model of verdicts on pairs, with judges and prompts: its maximum and its curvature.

[eq:davidson]: item a is shown first, b second, to judge j on prompt q, and the verdict is
softmax(η/2, −η/2, ν) over first, second and tie,

    η = exp(g_j) (s_a + v_aq − s_b − v_bq) + β·(x_a − x_b) + p + p_j        ν = t + t_j

The log likelihood is concave but for g, and its curvature is H = Jᵀ V J, with J = ∂(η, ν)/∂x. H
is [[A, Cᵀ], [C, D]], where D of the items on prompts is one block a prompt, as v of two prompts
meet in no row; without them, of judges, it is one block a judge. These are eliminated, [eq:schur]:
S = A − Cᵀ D⁻¹ C is all that is dense, and the corner of its inverse the covariance of strengths.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from tiebreak.data.pairs import TIE, PairVerdicts
from tiebreak.errors import OptionError
from tiebreak.kernels.layout import Codes, Floats, Offsets

PRIORS = {
    "beta": 1.0,
    "p": 1.0,
    "t": 10.0,
    "g": 0.09,
}  # variances; g runs away where it is left free
START = {"p_judge": 1.0, "t_judge": 1.0, "v": 0.5}  # variances that are learnt
FIXED = 1e4  # precision of the mean of g, which is 0: else sharpness and strengths trade places
MOST_DENSE = 6000  # parameters that are not eliminated: their matrix takes 288 MB
MOST_CELLS = 1 << 21  # of rows of C at a time
MOST_MARKED = 1 << 26  # cells of H that are marked to find the used ones; more are sorted
MOST_STEPS = 200
SMALL_STEP = 1e-6  # of the last step but one: steps get small quadratically
SMALL_CHANGE = 1e-3  # of the log of a variance
FARTHEST = 5.0  # of one step
NEAR = 0.05  # steps smaller than the last change of variances by this: the mode is found
ASIDE = 1e-3  # of the log of a variance
TOLD = 0.002  # a step from which on a change of slope is due to it, not to other variances
FLATTEST = 1e-4  # curvature over a log variance, as a share of the number of effects


class Parts(NamedTuple):
    """Which parts of the model there are; `spread` is the standard deviation of strengths."""

    judges: bool = False
    prompts: bool = False
    position: bool = False
    sharpness: bool = False
    spread: float = 3.0


class Fit(NamedTuple):
    """Where a fit ended. `at` has the place of each family of parameters in `x`."""

    at: dict[str, slice]
    x: Floats
    covariance: Floats  # of strengths
    diagonal: Floats  # variances of all parameters
    cross: dict[str, Floats]  # covariances of all parameters with p, and with t
    variance: dict[str, float]  # of effects, as learnt
    converged: bool
    has_ties: bool

    def of(self, family: str) -> Floats:
        """Return the parameters of a family; none where the model is without."""
        return self.x[self.at.get(family, slice(0, 0))]


class Column(NamedTuple):
    """A parameter for each row: its family, its number there, and how often it counts."""

    family: str
    code: Codes | Offsets  # (n_rows,)
    value: Any = 1.0  # one number, or one a row
    is_of_tie: bool = False  # in ν, not in η


class Davidson:
    """The model, on rows that are counted once.

    Parameters are one vector: first those that stay, then those of blocks, the smallest first. Of
    H only sums over rows change from step to step: where each sum goes is found out once.
    """

    def __init__(self, pairs: PairVerdicts, parts: Parts) -> None:
        rows, self.counts = equal_rows(pairs, parts)
        self.total = self.counts.sum(axis=0)
        self.has_ties = bool(self.counts[TIE].any())
        n, zero = len(pairs.items), np.zeros(len(rows), dtype=np.int64)
        columns = [Column("s", rows.first), Column("s", rows.second, -1.0)]
        if rows.sides is not None:
            columns += [Column("beta", zero + k, side) for k, side in enumerate(rows.sides.T)]
        if parts.position:
            columns.append(Column("p", zero))
        if self.has_ties:
            columns.append(Column("t", zero, is_of_tie=True))
        size = {"s": n, "beta": len(pairs.covariates), "p": 1, "t": 1}
        self.size, blocked = np.empty(0, dtype=np.int64), []  # of each block; families in blocks
        if parts.prompts and rows.prompt is not None:
            cell, self.size = _cells(rows, n)
            ends = np.split(cell, 2)
            columns += [Column("v", ends[0]), Column("v", ends[1], -1.0)]
            size["v"], blocked = int(self.size.sum()), ["v"]
        if parts.judges and rows.worker is not None:
            m = len(rows.workers)
            of_judges = ["g"] * parts.sharpness + ["p_judge"] * parts.position
            of_judges += ["t_judge"] * self.has_ties
            columns += [Column(each, rows.worker, 1.0, each == "t_judge") for each in of_judges]
            size |= dict.fromkeys(of_judges, m)
            if not blocked and not parts.sharpness:
                blocked, self.size = of_judges, np.full(m * bool(of_judges), len(of_judges))
        self._place(columns, size, blocked)
        self.precision = np.zeros(self.n_dense + int(self.size.sum()))
        for name, variance in (PRIORS | START | {"s": parts.spread**2}).items():
            if name in self.at:
                self.precision[self.at[name]] = 1.0 / variance
        # Sums that verdicts do not tell: of g and, where the prior is flat, of strengths.
        held = {"g": FIXED} | ({"s": 1.0 / n} if np.isinf(parts.spread) else {})
        self.held = {name: weight for name, weight in held.items() if name in self.at}

    def _place(self, columns: list[Column], size: dict[str, int], blocked: list[str]) -> None:
        """Number all parameters, and find where products of two columns go in H."""
        self.at: dict[str, slice] = {}
        self.n_dense = m = 0
        for name in dict.fromkeys(each.family for each in columns):
            if name not in blocked:
                self.at[name] = slice(m, m + size[name])
                m += size[name]
        self.n_dense = m
        if m > MOST_DENSE:
            raise OptionError("too-many-effects", n=m, most=MOST_DENSE)
        n = m + int(self.size.sum())
        for k, name in enumerate(blocked):  # of judges, parameters of one are side by side
            self.at[name] = slice(m + k, n, len(blocked))
        self.columns = [
            each._replace(code=np.arange(n)[self.at[each.family]][each.code]) for each in columns
        ]
        # H is U + Uᵀ: products of columns are added to the cells of U, which are found here, once.
        codes = [each.code for each in self.columns]
        self.products = [(a, b) for a in range(len(codes)) for b in range(a, len(codes))]
        keys = [
            np.minimum(codes[a], codes[b]) * n + np.maximum(codes[a], codes[b])
            for a, b in self.products
        ]
        cells, self.cell = _numbered(np.concatenate(keys), n * n)
        starts = np.searchsorted(cells, np.arange(n + 1) * n)
        self.upper = sparse.csr_array((np.zeros(len(cells)), cells % n, starts), (n, n))

    def look(self, x: Floats) -> ModelAt:
        """Return probabilities of verdicts, and the penalised log likelihood."""
        delta, other, nu = np.zeros((3, len(self.total)))
        sharp: Any = 1.0
        for family, code, value, is_of_tie in self.columns:
            if family == "g":
                sharp = np.exp(np.clip(x[code], -4.0, 4.0))
                continue
            to = nu if is_of_tie else delta if family in "sv" else other
            to += value * x[code]
        half = (sharp * delta + other) / 2.0
        if not self.has_ties:
            nu[:] = -np.inf
        scores = np.stack([half, -half, nu])
        scores -= scores.max(axis=0)
        p = np.exp(scores)
        norm = p.sum(axis=0)
        used = self.counts > 0.0
        likelihood = (self.counts[used] * (scores - np.log(norm))[used]).sum()
        penalty = self.precision @ np.square(x)
        penalty += sum(w * x[self.at[name]].sum() ** 2 for name, w in self.held.items())
        return ModelAt(x, p / norm, sharp, delta, float(likelihood - 0.5 * penalty))

    def slopes(self, here: ModelAt) -> tuple[Floats, Curvature]:
        """Return the gradient of the objective and, negated, its curvature."""
        first, second, tie = here.p
        residual = self.counts - self.total * here.p
        slope = (residual[0] - residual[1]) / 2.0, residual[TIE]
        ee = self.total * (first + second - (first - second) ** 2) / 4.0
        en = -self.total * (first - second) * tie / 2.0
        nn = self.total * tie * (1.0 - tie)
        weight = ((ee, en), (en, nn))
        value = [each.value for each in self.columns]
        if "g" in self.at:
            for k, each in enumerate(self.columns):
                if each.family in "svg":
                    value[k] = here.sharp * (here.delta if each.family == "g" else value[k])

        gradient = -self.precision * here.x
        for each, times in zip(self.columns, value, strict=True):
            gradient += np.bincount(each.code, times * slope[each.is_of_tie], len(here.x))
        kind = [int(each.is_of_tie) for each in self.columns]
        parts = [
            weight[kind[a]][kind[b]] * value[a] * value[b] * (0.5 if a == b else 1.0)
            for a, b in self.products
        ]
        upper, m = self.upper.copy(), self.n_dense
        upper.data = np.bincount(self.cell, np.concatenate(parts), len(upper.data))
        curvature = (upper + upper.T).tocsr()
        dense = curvature[:m, :m].toarray() + np.diag(self.precision[:m])
        for name, held in self.held.items():
            gradient[self.at[name]] -= held * here.x[self.at[name]].sum()
            dense[self.at[name], self.at[name]] += held
        return gradient, Curvature(dense, curvature[m:], self.precision[m:], self.size)

    def maximise(self) -> Fit:
        """Climb by Newton's steps, and learn variances of effects: [eq:pair-variances]."""
        learnt = {name: float(np.log(START[name])) for name in START if name in self.at}
        steps = {name: Secant(1.0 + len(self.precision[self.at[name]])) for name in learnt}
        here = self.look(np.zeros(len(self.precision)))
        change, settled, converged = 1.0, not learnt, False
        for _ in range(MOST_STEPS):
            gradient, curvature = self.slopes(here)
            step = curvature.solve(gradient)
            largest = float(np.abs(step).max())
            moves = not settled and largest < NEAR * change  # the slopes are those at the mode
            if moves:
                change, diagonal = 0.0, curvature.diagonal()
                for name, log in learnt.items():
                    squares = np.square(here.x[self.at[name]]) + diagonal[self.at[name]]
                    slope = float(squares.sum()) * np.exp(-log) - len(squares)
                    slope += 1.0 - np.exp(log / 2.0)  # the prior σ ~ Gamma(2, 1)
                    if name == "v":
                        slope -= self._log_det_change(here, curvature)
                    learnt[name] += (move := steps[name](log, slope))
                    change = max(change, abs(move))
                settled = change < SMALL_CHANGE
            here = self._climb(here, step)
            if moves:
                for name, log in learnt.items():
                    self.precision[self.at[name]] = np.exp(-log)
                here = self.look(here.x)
            converged = settled and largest < SMALL_STEP and not moves
            if converged:
                break
        _, curvature = self.slopes(here)
        cross = {}
        for name in {"p", "t"} & self.at.keys():
            unit = np.zeros(len(here.x))
            unit[self.at[name]] = 1.0
            cross[name] = curvature.solve(unit)
        s = self.at["s"]
        inverse, diagonal = curvature.inverse[s, s], curvature.diagonal()
        variance = {name: float(np.exp(log)) for name, log in learnt.items()}
        return Fit(self.at, here.x, inverse, diagonal, cross, variance, converged, self.has_ties)

    def _log_det_change(self, here: ModelAt, curvature: Curvature) -> float:
        """Return how log |H| changes with the log of the variance of v, as all parameters follow.

        EM leaves it out, and finds half of the variance where items have few verdicts on a prompt.
        """
        at = self.at["v"]
        pull = np.zeros(len(here.x))
        pull[at] = here.x[at] * self.precision[at]
        there = self.look(here.x + ASIDE * curvature.solve(pull))
        return (self.slopes(there)[1].log_det - curvature.log_det) / ASIDE

    def _climb(self, here: ModelAt, step: Floats) -> ModelAt:
        """Take a step, or the first of its halves that does not go down."""
        size = min(1.0, FARTHEST / max(float(np.abs(step).max()), 1e-300))
        for halving in range(30):
            found = self.look(here.x + size * 0.5**halving * step)
            if found.objective >= here.objective - 1e-12 * abs(here.objective):
                return found
        return here


class Secant:
    """Steps to where a slope is 0: the first as EM takes it, then by the last two slopes."""

    def __init__(self, size: float) -> None:
        self.size = self.curvature = size  # of the curvature, at most
        self.last: tuple[float, float] | None = None

    def __call__(self, at: float, slope: float) -> float:
        """Return the next step, of 1 at most."""
        if self.last is not None and abs(at - self.last[0]) > TOLD:
            found = -(slope - self.last[1]) / (at - self.last[0])
            self.curvature = float(np.clip(found, FLATTEST * self.size, self.size))
        self.last = (at, slope)
        return float(np.clip(slope / self.curvature, -1.0, 1.0))


class ModelAt(NamedTuple):
    """The model at some parameters."""

    x: Floats
    p: Floats  # (3, n_rows)
    sharp: Any  # one a row; 1 without sharpness
    delta: Floats  # differences of strengths
    objective: float


class Curvature:
    """H = [[A, Cᵀ], [C, D]], where D is one block a prompt, or a judge; `inverse` is that of S."""

    def __init__(self, dense: Floats, rows: Any, precision: Floats, size: Offsets) -> None:
        m = self.m = len(dense)
        self.rows = rows[:, :m]
        # Blocks of one size are solved together, as many as memory has room for.
        start = np.concatenate([[0], np.cumsum(size)])
        edges = [*np.unique(size, return_index=True)[1].tolist(), len(size)]
        self.blocks: list[tuple[slice, Floats]] = []  # parameters, and D⁻¹ of their blocks
        for begin, end in pairwise(edges):
            k = int(size[begin])
            for low in range(begin, end, step := max(1, MOST_CELLS // (k * m))):
                at = slice(int(start[low]), int(start[min(low + step, end)]))
                part = rows[at, slice(m + at.start, m + at.stop)].tocoo()
                d = np.zeros(((at.stop - at.start) // k, k, k))
                d[part.row // k, part.row % k, part.col % k] = part.data
                d[:, range(k), range(k)] += precision[at].reshape(-1, k)
                self.blocks.append((at, np.asarray(np.linalg.inv(d), dtype=np.float64)))
        self.log_det = -sum(float(np.linalg.slogdet(each)[1].sum()) for _, each in self.blocks)
        schur = dense.copy()
        for at, inverse in self.blocks:
            schur -= self.rows[at].T @ self._across(at, inverse)
        self.factor = cho_factor(schur)
        self.log_det += 2.0 * float(np.log(np.diag(self.factor[0])).sum())
        self.inverse = cho_solve(self.factor, np.eye(m))

    def _across(self, at: slice, inverse: Floats) -> Floats:
        """Return D⁻¹ C of some blocks."""
        c = self.rows[at].toarray().reshape(len(inverse), -1, self.m)
        return np.asarray((inverse @ c).reshape(-1, self.m))

    def solve(self, right: Floats) -> Floats:
        """Return H⁻¹ of a vector."""
        top, rest = right[: self.m].copy(), right[self.m :]
        for at, inverse in self.blocks:
            top -= self.rows[at].T @ _times(inverse, rest[at])
        found = np.empty(len(right))
        found[: self.m] = cho_solve(self.factor, top)
        for at, inverse in self.blocks:
            left = rest[at] - self.rows[at] @ found[: self.m]
            found[self.m :][at] = _times(inverse, left)
        return found

    def diagonal(self) -> Floats:
        """Return the diagonal of H⁻¹: variances."""
        found = np.empty(self.m + self.rows.shape[0])
        found[: self.m] = np.diag(self.inverse)
        for at, inverse in self.blocks:
            w = self._across(at, inverse)
            alone = np.diagonal(inverse, axis1=1, axis2=2).ravel()
            found[self.m :][at] = alone + ((w @ self.inverse) * w).sum(axis=1)
        return found


def _times(inverse: Floats, right: Floats) -> Floats:
    return np.asarray((inverse @ right.reshape(len(inverse), -1, 1)).ravel())


def _numbered(key: Offsets, n: int) -> tuple[Offsets, Offsets]:
    """Return the keys that there are below n, sorted, and the place of each row's key."""
    if n > MOST_MARKED:
        found = np.unique(key, return_inverse=True)
        return found[0], found[1]
    is_there = np.zeros(n, dtype=bool)
    is_there[key] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[key]


def _cells(rows: PairVerdicts, n_items: int) -> tuple[Offsets, Offsets]:
    """Number items on prompts, prompts of few items first: of all first items, then all second.

    Return also how many items each prompt has.
    """
    assert rows.prompt is not None
    prompt = rows.prompt.astype(np.int64) * n_items
    keys, key = np.unique(
        np.concatenate([prompt + rows.first, prompt + rows.second]), return_inverse=True
    )
    _, of_key, size = np.unique(keys // n_items, return_inverse=True, return_counts=True)
    order = np.lexsort((np.arange(len(keys)), of_key, size[of_key]))
    number = np.empty(len(keys), dtype=np.int64)
    number[order] = np.arange(len(keys))
    return number[key], np.sort(size)


def equal_rows(pairs: PairVerdicts, parts: Parts) -> tuple[PairVerdicts, Floats]:
    """Return the rows that differ in what the model sees, and their weights by verdict, (3, n)."""
    n_items = len(pairs.items)
    codes: list[tuple[Any, int]] = [(pairs.first, n_items), (pairs.second, n_items)]
    if parts.judges and pairs.worker is not None:
        codes.append((pairs.worker, len(pairs.workers)))
    if parts.prompts and pairs.prompt is not None:
        codes.append((pairs.prompt, len(pairs.prompts)))
    if pairs.sides is not None:
        found = np.unique(pairs.sides, axis=0, return_inverse=True)[1]
        codes.append((found, int(found.max()) + 1))
    key, n_keys = np.zeros(len(pairs), dtype=np.int64), 1
    for code, n in codes:
        if n_keys * n > 2**62:
            key, n_keys = np.unique(key, return_inverse=True)[1], len(pairs)
        key, n_keys = key * n + code, n_keys * n
    _, first, row = np.unique(key, return_index=True, return_inverse=True)
    counts = np.bincount(pairs.verdict * len(first) + row, pairs.weight, 3 * len(first))
    return pairs.take(first), counts.reshape(3, -1).astype(np.float64)
