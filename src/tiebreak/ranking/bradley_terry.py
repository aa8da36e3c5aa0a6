"""Bradley–Terry with ties: who is best, and how far to trust it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.special import ndtr
from scipy.stats import norm

from tiebreak.arguments import FLAG
from tiebreak.data.ids import Ids
from tiebreak.data.pairs import TIE, PairVerdicts
from tiebreak.errors import (
    ConvergenceWarning,
    InputError,
    NotFittedError,
    OptionError,
    note,
    sentence,
    warn,
)
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.options import require_number, require_word
from tiebreak.ranking.model import Davidson, Fit, Parts
from tiebreak.ranking.ranks import NODES, WEIGHTS, NextPair, next_pairs, rank_items
from tiebreak.tables.pairs import read_pairs
from tiebreak.wording import counted, first_few

FEW_PROMPTS = 8  # below, a note says that prompts cannot be generalised over
CONFOUNDED = 0.3  # correlation of order and strength from which a note says so
SURE = 0.95  # chance from which an item is called the best, and a judge one that prefers a place


class JudgeHabits(NamedTuple):
    """What is known of one judge: log odds, each with its interval; nan where the model is without.

    `first_place` is how much it prefers what is shown first, `ties` the log odds of a tie between
    two equal items against either of them, `sharpness` the factor of all differences. `cycles` is
    the share of triples of items on one prompt that it orders in a circle. `prefers_first`: surely,
    with an interval that holds for all judges at once.
    """

    worker: Hashable
    verdicts: float
    first_place: float
    first_place_low: float
    first_place_high: float
    ties: float
    ties_low: float
    ties_high: float
    sharpness: float
    sharpness_low: float
    sharpness_high: float
    cycles: float
    prefers_first: bool


@dataclass(eq=False)
class BradleyTerry:
    """Rank items by verdicts on pairs, with honest intervals.

    Davidson's model with ties. Judges differ in their fondness of ties and of what is shown first;
    items do better on some prompts than on others, so that verdicts on one prompt are no
    independent evidence.

    Parameters
    ----------
    judges
        Whether judges differ, where there are several.
    prompts
        Whether items vary from prompt to prompt: "auto" where some prompt has two verdicts on an
        item, which is needed to tell.
    sharpness
        Whether judges also differ in how sharply they tell items apart.
    position
        Whether the first place may have an advantage.
    covariates
        Names of columns with a number per side, such as "length": strengths are then those of items
        alike in it.
    spread
        Standard deviation of strengths before any verdict; `float("inf")` for a flat prior.
    level
        Of all intervals.
    together
        Whether to rank across groups of items that never meet. Only the prior relates them.

    Attributes
    ----------
    ranking_
        A `Ranking`: items with rank, interval of ranks, strength, chance of being best, tier.
    strengths_, covariance_
        By item, in the order of `items_`; strengths have mean 0 in each group.
    judges_
        `JudgeHabits` for each judge; empty without effects of judges.
    variance_
        Variances of effects, as learnt: `p_judge`, `t_judge` and `v`, of items on prompts.

    Examples
    --------
    >>> votes = [("gpt", "llama", "first"), ("llama", "gpt", "second"), ("bert", "gpt", "tie")]
    >>> votes += [("gpt", "bert", "first"), ("bert", "llama", "tie"), ("llama", "bert", "first")]
    >>> model = BradleyTerry(position=False).fit([*votes, ("llama", "gpt", "first")])
    >>> model.ranking_.item[0], model.probability_better("gpt", "llama") > 0.5
    ('gpt', True)
    """

    judges: bool = True
    prompts: bool | str = "auto"
    sharpness: bool = False
    position: bool = True
    covariates: Sequence[str] = ()
    spread: float = 3.0
    level: float = 0.9
    together: bool = False
    random_state: int = 0

    def fit(self, pairs: Any) -> Self:
        """Fit to verdicts: a path, a frame, or rows (first, second, verdict, worker, prompt)."""
        self._check()
        read = self.pairs_ = read_pairs(pairs, covariates=tuple(self.covariates))
        self.items_ = read.items
        self._group = groups_of(read)
        if self.together:
            self._group = np.zeros_like(self._group)
        self._parts = self._parts_of(read)
        counts = win_counts(read)
        self._note_limits(counts[1])
        self._fit = Davidson(read, self._parts).maximise()
        if not self._fit.converged:
            warn(sentence("ranking-not-converged", {}), ConvergenceWarning)
        self.strengths_, self.covariance_ = self._centred(self._fit)
        self.variance_ = dict(self._fit.variance)
        given = (self.items_, self.strengths_, self.covariance_, self._group, counts)
        self.ranking_ = rank_items(*given, self.level, self.random_state, read.frame)
        vars(self).pop("judges_", None)
        shown = self.strengths_[np.stack([read.first, read.second])]
        if self.position and np.ptp(shown) > 0.0:
            correlation = float(np.diff(shown.mean(axis=1))[0] / -2.0 / shown.std())
            if abs(correlation) > CONFOUNDED:
                note("order-goes-with-strength", correlation=correlation)
        return self

    def _check(self) -> None:
        for name in ("judges", "sharpness", "position", "together"):
            FLAG(name, getattr(self, name))
        if not isinstance(self.prompts, bool):
            require_word("prompts", self.prompts, ("auto",), "True", "False")
        require_number("level", self.level, "between 0 and 1, both excluded", above=0.0, below=1.0)
        if not (isinstance(self.spread, int | float) and self.spread > 0.0):
            raise OptionError.must_be("spread", "above 0; inf is a flat prior", self.spread)

    def _parts_of(self, pairs: PairVerdicts) -> Parts:
        """Decide which parts of the model these verdicts can tell."""
        judges = self.judges and pairs.worker is not None and np.ptp(pairs.worker) > 0
        prompts = False
        if self.prompts is True and pairs.prompt is None:
            raise OptionError("no-prompts")
        if self.prompts and pairs.prompt is not None:
            n_prompts = len(np.unique(pairs.prompt))
            key = pairs.prompt.astype(np.int64) * len(pairs.items)
            cells = np.concatenate([key + pairs.first, key + pairs.second])
            prompts = n_prompts > 1 and len(np.unique(cells)) < len(cells)
            if not prompts:
                note("prompts-not-told")
            elif n_prompts < FEW_PROMPTS:
                note("few-prompts", n=n_prompts)
        sharpness = self.sharpness and judges
        return Parts(bool(judges), prompts, self.position, bool(sharpness), float(self.spread))

    def _note_limits(self, share: Floats) -> None:
        """Say what limits this ranking; `share` is how many of its verdicts each item won."""
        n_groups = int(self._group.max()) + 1
        if n_groups > 1:
            note("items-never-meet", n=n_groups)
        if (self.pairs_.verdict == TIE).all():
            note("all-ties")
        ends = [self.items_[int(i)] for i in np.flatnonzero((share == 0.0) | (share == 1.0))]
        if ends and np.isinf(self.spread):
            raise InputError("no-finite-strength", items=ends)
        if ends:
            note("won-or-lost-all", items=ends)

    def _centred(self, fit: Fit) -> tuple[Floats, Floats]:
        """Return strengths and their covariance, with mean 0 in each group."""
        same = self._group[:, None] == self._group[None, :]
        centre = np.eye(len(same)) - same / same.sum(axis=1)
        return centre @ fit.of("s"), centre @ fit.covariance @ centre.T

    @property
    def _fitted(self) -> Fit:
        if "_fit" not in vars(self):
            raise NotFittedError("not-fitted", name=type(self).__name__)
        return self._fit

    def _codes(self, items: Any) -> Codes:
        self._fitted  # noqa: B018 - refuses a model that is not fitted
        names = Ids([items] if isinstance(items, str) or not hasattr(items, "__len__") else items)
        codes = self.items_.codes(names)
        if (codes < 0).any():
            raise InputError("no-such-item", item=names[int(codes.argmin())])
        return codes

    def probability_better(self, first: Hashable, second: Hashable) -> float:
        """Return the chance that the first item is truly the better one."""
        a, b = self._codes(first)[0], self._codes(second)[0]
        covariance = self.covariance_
        variance = covariance[a, a] + covariance[b, b] - 2.0 * covariance[a, b]
        error = np.sqrt(max(float(variance), 1e-300))
        return float(ndtr((self.strengths_[a] - self.strengths_[b]) / error))

    def predict(self, first: Any, second: Any, worker: Any = None) -> Floats:
        """Return P(first, second, tie) of verdicts on prompts that were not seen, (n, 3).

        Give one item, and judge, each or a column of them; None is any judge.
        """
        a, b = self._codes(first), self._codes(second)
        if worker is None:
            return self.predict_codes(a, b)
        is_one = isinstance(worker, str) or not hasattr(worker, "__len__")
        asked = [worker] * len(a) if is_one else worker
        return self.predict_codes(a, b, self.pairs_.workers.codes(asked))

    def predict_codes(self, first: Codes, second: Codes, judge: Codes | None = None) -> Floats:
        """Return the same by codes; a judge that is None or −1 is any judge.

        Averaged over what is not known: items on the prompt, strengths, and the judge.
        """
        fit, covariance = self._fitted, self.covariance_
        known = np.full(len(first), -1) if judge is None else judge
        (place, of_place), (nu, of_nu), (g, _) = (
            (value[known], variance[known]) for value, variance in map(self._of_judges, "ptg")
        )
        sharp = np.exp(g)
        eta = sharp * (fit.of("s")[first] - fit.of("s")[second]) + place
        variance = covariance[first, first] + covariance[second, second]
        variance += 2.0 * (fit.variance.get("v", 0.0) - covariance[first, second])
        of_eta = np.sqrt(sharp**2 * variance + of_place)
        nu = nu if fit.has_ties else np.full(len(first), -np.inf)
        found = np.zeros((len(first), 3))
        for z, weight in zip(NODES, WEIGHTS, strict=True):
            half = (eta + of_eta * z) / 2.0
            for y, more in zip(NODES, WEIGHTS, strict=True):
                tie = nu + np.sqrt(of_nu) * y
                found += weight * more * softmax(np.stack([half, -half, tie], axis=1))
        return found

    def _of_judges(self, name: str) -> tuple[Floats, Floats]:
        """Return an effect of each judge with what all share, and its variance; last, of any."""
        fit, n = self._fitted, len(self.pairs_.workers)
        own = name if name == "g" else f"{name}_judge"
        value, variance = np.zeros(n + 1), np.zeros(n + 1)
        variance[-1] = fit.variance.get(own, 0.0)
        if own in fit.at:
            value[:-1], variance[:-1] = fit.of(own), fit.diagonal[fit.at[own]]
        if name in fit.cross:
            value += fit.of(name)
            variance += fit.diagonal[fit.at[name]]
            if own in fit.at:
                variance[:-1] += 2.0 * fit.cross[name][fit.at[own]]
        return value, variance

    def next_pairs(self, n: int) -> list[NextPair]:
        """Return the pairs that are worth most to compare next, with the gain of each."""
        at = self._codes(self.ranking_.item)
        noise = 2.0 * self._fit.variance.get("v", 0.0)
        given = (self.strengths_[at], self.covariance_[np.ix_(at, at)], n, noise)
        return next_pairs(self.ranking_, *given)

    @cached_property
    def judges_(self) -> tuple[JudgeHabits, ...]:
        """What is known of each judge."""
        fit, pairs = self._fitted, self.pairs_
        if not self._parts.judges or pairs.worker is None:
            return ()
        n = len(pairs.workers)
        z = norm.ppf((1.0 + self.level) / 2.0)
        weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
        columns: list[Any] = [np.bincount(pairs.worker, weight, n)]
        prefers = np.zeros(n, dtype=bool)
        for name in ("p", "t", "g"):
            own = name if name == "g" else f"{name}_judge"
            value, variance = (each[:-1] for each in self._of_judges(name))
            if own not in fit.at:
                value = np.full(n, np.nan)
            error = np.sqrt(variance)
            if name == "p":
                prefers = value > norm.ppf(1.0 - (1.0 - SURE) / n) * error
            ends = (value, value - z * error, value + z * error)
            columns += [np.exp(each) for each in ends] if name == "g" else ends
        columns += [cycles(pairs), prefers]
        rows = zip(*(each.tolist() for each in columns), strict=True)
        return tuple(JudgeHabits(name, *row) for name, row in zip(pairs.workers, rows, strict=True))

    @property
    def interval_ratio_(self) -> float:
        """How many times wider intervals are than those of votes taken as independent."""
        if "v" not in self._fitted.variance:
            return 1.0
        plain = Davidson(self.pairs_, Parts(spread=float(self.spread))).maximise()
        variance = [np.diag(each) for each in (self.covariance_, self._centred(plain)[1])]
        return float(np.mean(np.sqrt(variance[0] / variance[1])))

    def summary(self) -> dict[str, Any]:
        """Return what the fit found, under names that a program can read."""
        fit, pairs, ranking = self._fitted, self.pairs_, self.ranking_
        spread = {name: float(np.sqrt(each)) for name, each in self.variance_.items()}
        same_tier = ranking.tier == ranking.shared_tier()
        return {
            "verdicts": len(pairs),
            "ties": int((pairs.verdict == TIE).sum()),
            "items": len(pairs.items),
            "judges": len(pairs.workers),
            "prompts": len(pairs.prompts),
            "first_place": float(fit.of("p")[0]) if self.position else None,
            "spread_of_places": spread.get("p_judge"),
            "spread_of_ties": spread.get("t_judge"),
            "spread_on_prompts": spread.get("v"),
            "interval_ratio": self.interval_ratio_,
            "covariates": dict(zip(pairs.covariates, fit.of("beta").tolist(), strict=True)),
            "groups": int(self._group.max()) + 1,
            "best": ranking.item[0],
            "probability_best": float(ranking.probability_best[0]),
            "alike": [str(ranking.item[int(i)]) for i in np.flatnonzero(same_tier)],
            "alike_ranks": [
                int(end(each[same_tier]))
                for end, each in ((np.min, ranking.rank_low), (np.max, ranking.rank_high))
                if same_tier.any()
            ],
            "prefer_first": [str(each.worker) for each in self.judges_ if each.prefers_first],
        }

    def describe(self) -> list[str]:
        """Say what the fit found, in a few lines."""
        n = self.summary()
        sizes = [f"{counted(n['verdicts'], 'verdict')} ({counted(n['ties'], 'tie')})"]
        sizes += [counted(n[f"{k}s"], k) for k in ("item", "judge", "prompt") if n[f"{k}s"]]
        differ = {"ties": n["spread_of_ties"], "place": n["spread_of_places"]}
        said = " and ".join(f"in {k} (sd {sd:.2f})" for k, sd in differ.items() if sd is not None)
        place, on_prompts = n["first_place"], n["spread_on_prompts"]
        habits = [] if place is None else [f"first place: {place:+.2f} (log odds)"]
        habits += [f"judges differ {said}"] * bool(said)
        lines = [", ".join(sizes), "; ".join(habits)]
        if on_prompts is not None:
            lines.append(
                f"items vary from prompt to prompt (sd {on_prompts:.2f}): intervals are "
                f"{n['interval_ratio']:.1f} times those of independent votes"
            )
        lines += [f"{name}: {value:+.3g} for one more" for name, value in n["covariates"].items()]
        if n["prefer_first"]:
            names = first_few(n["prefer_first"], 5)
            lines.append(f"surely prefer what is shown first: {names}")
        if n["groups"] == 1:
            sure = "" if n["probability_best"] >= SURE else "perhaps "
            best = f"{n['best']} is {sure}best (probability {n['probability_best']:.3f})"
            if n["alike"]:
                low, high = n["alike_ranks"]
                alike = first_few(n["alike"], 5)
                best += f"; {alike} are not told apart (ranks {low} to {high})"
            lines.append(best)
        return [line for line in lines if line]


def groups_of(pairs: PairVerdicts) -> Offsets:
    """Return the group of each item: items of two groups never meet, directly or by others."""
    n = len(pairs.items)
    met = sparse.csr_array((np.ones(len(pairs)), (pairs.first, pairs.second)), (n, n))
    return np.asarray(sparse.csgraph.connected_components(met, directed=False)[1], dtype=np.int64)


def win_counts(pairs: PairVerdicts) -> tuple[Floats, Floats]:
    """Return the verdicts on each item, and the share of them that it won; ties are half."""
    n = len(pairs.items)
    weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
    won = weight * np.array([1.0, 0.0, 0.5])[pairs.verdict]
    total = np.bincount(pairs.first, weight, n) + np.bincount(pairs.second, weight, n)
    wins = np.bincount(pairs.first, won, n) + np.bincount(pairs.second, weight - won, n)
    return np.asarray(total, dtype=np.float64), np.asarray(wins / np.maximum(total, 1e-300))


def cycles(pairs: PairVerdicts) -> Floats:
    """Return the share of triples on one prompt that each judge orders in a circle; nan: no triple.

    With A a judge's table of who beats whom on a prompt, tr(A³) / 3 triples are circles, of
    tr((A + Aᵀ)³) / 6 that were compared.
    """
    assert pairs.worker is not None
    n, n_judges = len(pairs.items), len(pairs.workers)
    n_prompts = max(len(pairs.prompts), 1)
    sitting = pairs.worker.astype(np.int64) * n_prompts
    sitting = (sitting if pairs.prompt is None else sitting + pairs.prompt) * n
    both = np.concatenate([sitting + pairs.first, sitting + pairs.second])
    nodes, node = np.unique(both, return_inverse=True)
    first, second = np.split(node, 2)
    sign = np.array([1.0, -1.0, 0.0])[pairs.verdict]
    net = sparse.coo_array((sign, (first, second)), (len(nodes), len(nodes))).tocsr()
    beats = ((net - net.T) > 0).astype(np.float64)
    met = beats + beats.T
    judge = nodes // n // n_prompts
    circles, triples = (
        np.bincount(judge, ((each @ each) * each.T).sum(axis=1) / parts, n_judges)
        for each, parts in ((beats, 3.0), (met, 6.0))
    )
    return np.where(triples > 0.5, circles / np.maximum(triples, 1.0), np.nan)
