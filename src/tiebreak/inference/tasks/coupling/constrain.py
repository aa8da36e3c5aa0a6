"""Constraints at the end: class scores of any method in, labels and probabilities that keep rules.

A fit and its calibration know nothing of constraints; their scores are conditioned once. Inside a
fit a structural constraint needs its normaliser, and without it does harm: docs/constraints.md.
Here the prior is normalised, p(y | π) = Π π(y_i) φ(y) / Z₀(π), and learnt only where it is asked
for, or where known labels say so: [eq:constraint-prior].
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.errors import ConstraintError, note
from tiebreak.inference.calibration import least_share
from tiebreak.inference.tasks.coupling import factors
from tiebreak.inference.tasks.coupling.factors import (
    CountFactors,
    FactorNetwork,
    Memory,
    PairFactors,
)
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Floats, Mask
from tiebreak.links.constraints import (
    LEARN,
    ORDER,
    RATE,
    RELATIONS,
    SAME,
    Constraints,
    Literals,
    allowed_counts,
)
from tiebreak.links.graph import AnyCodes, Implications, components, first_members

if TYPE_CHECKING:
    from tiebreak.inference.tasks.coupling.linked import Joint, Linked

Edges = tuple[AnyCodes, AnyCodes, Floats]  # variables at both ends, log-odds that they are equal
TINY = 1e-300
NONES: tuple[str | float, ...] = (0.0, 2.0, LEARN)  # that known labels choose among
LEAST_KNOWN = 50  # labels, from which on they choose
# Nats on the known labels, to leave the first choice; 500 draws of 50 labels of Product and both
# ZenCrowd crowds: none of 1,500 made log-loss worse by more than .005, with 2 or more.
LEAST_GAIN = 2.0
ROUNDS = 50  # of learning the prior,
MESSAGES = 4  # passed in each: they settle together
SETTLED = 1e-3
LARGEST_STEP = 2.0
LEAST_TASKS = 50  # on fewer, evidence against rules can be chance
LARGEST_TILT = 1500.0  # beyond what the log of any probability is
RATE_ROUNDS = 50  # where there are several
RATE_EXACT = 1e-9


class ConstraintReport(NamedTuple):
    """What constraints did."""

    alone: int  # components that are one count: exact
    small: int  # exact, by elimination
    large: int  # approximate, by messages
    evidence: float | None  # log odds that responses give to the rules, all together
    none: str | float | None  # how often groups are empty: "learn", or the weight of not being it
    n_broken_before: int  # constraints that labels without them break
    n_broken: int  # and with them: soft ones
    n_moved: int  # labels that are others without them
    settled: bool = True  # messages in large components

    @property
    def exact(self) -> int:
        """How many components were inferred exactly."""
        return self.alone + self.small

    @property
    def approximate(self) -> int:
        """How many components were inferred approximately."""
        return self.large


@dataclass(frozen=True, eq=False)
class DoubtfulConstraints:
    """Soft constraints that are more likely wrong than right, most doubtful first."""

    constraints: Constraints
    probability: Floats  # that each is wrong

    def __len__(self) -> int:
        return len(self.probability)


@dataclass(frozen=True, eq=False)
class ConstraintCodes:
    """Constraints in the codes of a crowd, with the links and known labels that act beside them.

    A variable is a task, or the tasks that hard links make one, by the code of the first.
    """

    table: Constraints
    literals: Literals
    n_tasks: int
    n_classes: int
    gold: GoldCodes | None
    implied: Implications | None
    variable: AnyCodes = field(init=False)  # (n_tasks,)
    flip: AnyCodes = field(init=False)  # (n_tasks,) 1: the other one of two classes
    _made: dict[Any, Tied] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        variable = np.arange(self.n_tasks, dtype=np.int64)
        flip = np.zeros(self.n_tasks, dtype=np.int8)
        if self.implied is not None:
            implied = self.implied
            first = implied.task[first_members(implied.group, len(implied.group_class))]
            variable[implied.task] = first[implied.group]
            flip[implied.task] = implied.flip
        object.__setattr__(self, "variable", variable)
        object.__setattr__(self, "flip", flip)

    def network(
        self,
        none: float = 0.0,
        *,
        with_gold: bool = True,
        with_constraints: bool = True,
        edges: Edges | None = None,
    ) -> Tied:
        """Return the network of all variables that constraints reach.

        `none` is the weight of a group not being empty; `edges` are links between variables, with
        the log-odds that their ends are equal; None: the hard ones.
        """
        with_gold &= self.gold is not None or self.implied is not None
        key = (none, with_gold, with_constraints)
        if edges is None and key in self._made:
            return self._made[key]
        left, right, odds = self._hard_edges() if edges is None else edges
        of_literal = np.where(self.literals.task >= 0, self.variable[self.literals.task], 0)
        size = np.diff(self.table.start)
        is_rate = self.table.is_rate()
        literal = np.repeat(~is_rate, size)
        nodes = np.unique(of_literal[literal])
        if len(left):
            first = np.repeat(of_literal[self.table.start[:-1][~is_rate]], size[~is_rate])
            ends = np.concatenate([first, left]), np.concatenate([of_literal[literal], right])
            component = components(self.n_tasks, *(end.astype(np.int32) for end in ends))
            reached = np.zeros(component.max() + 1, dtype=bool)
            reached[component[nodes]] = True
            nodes = np.flatnonzero(reached[component] & (self.variable == np.arange(self.n_tasks)))
            inside = reached[component[left]]
            left, right, odds = left[inside], right[inside], odds[inside]
        place = np.full(self.n_tasks, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        step = self.literals.member.astype(np.int64)
        own = [each for each in self.table.rules if each in RELATIONS]
        if self.flip.any():
            flipped = self.flip[self.literals.task] == 1
            step[flipped] = step[flipped][:, ::-1]
        is_relation = np.isin(self.table.rule, [*map(self.table.rules.index, own)])
        is_count = ~is_rate & ~is_relation & with_constraints
        counts = self._counts(is_count, place[of_literal], step, none)
        chosen = np.flatnonzero(is_relation & with_constraints)
        pairs = self._pairs(chosen, place[of_literal])
        pairs = _with_links(pairs, place[left], place[right], odds, self.n_classes)
        allowed = np.ones((len(nodes), self.n_classes), dtype=bool)
        if with_gold:
            self._know(allowed, place)
        members = np.flatnonzero(place[self.variable] >= 0)
        node = place[self.variable[members]]
        network = factors.canonical(counts, pairs, allowed)
        made = Tied(network, nodes, members, node, self.flip[members])
        if edges is None:
            self._made[key] = made
        return made

    def _hard_edges(self) -> Edges:
        """Return cannot-links between variables."""
        if self.implied is None or not len(self.implied.left):
            none = np.empty(0, dtype=np.int64)
            return none, none, np.empty(0)
        implied = self.implied
        first = implied.task[first_members(implied.group, len(implied.group_class))]
        odds = np.full(len(implied.left), -np.inf)
        return first[implied.left], first[implied.right], odds

    def _know(self, allowed: Mask, place: AnyCodes) -> None:
        """Take away the classes that known labels exclude."""
        known: list[tuple[AnyCodes, AnyCodes]] = []
        if self.gold is not None:
            label = np.where(self.flip[self.gold.task] == 1, 1 - self.gold.label, self.gold.label)
            known.append((self.variable[self.gold.task], label))
        if self.implied is not None:
            task, label = self.implied.known_labels()
            known.append((self.variable[task], np.where(self.flip[task] == 1, 1 - label, label)))
        for variable, label in known:
            at = place[variable]
            allowed[at[at >= 0]] &= np.arange(self.n_classes) == label[at >= 0, None]

    def _counts(self, chosen: Mask, node: AnyCodes, step: Any, none: float) -> CountFactors:
        """Return constraints that count, with one array of values for all that are alike."""
        table = self.table
        size, weight = np.diff(table.start), table.weights()
        literal = np.repeat(chosen, size)
        may_be_empty = self.may_be_empty()
        kinds = np.column_stack([table.rule, size, np.nan_to_num(weight, nan=-1.0), may_be_empty])
        distinct, at, code = np.unique(
            kinds[chosen], axis=0, return_index=True, return_inverse=True
        )
        ids = np.flatnonzero(chosen)
        values = [self.value_of(int(ids[i])) for i in at]
        for value, (*_, is_group) in zip(values, distinct.tolist(), strict=True):
            value[0] -= none * is_group
        start = np.concatenate([[0], np.cumsum(size[chosen])])
        return CountFactors(start, node[literal], step[literal], code.ravel(), values, ids)

    def broken(self, label: AnyCodes) -> Mask:
        """Return which constraints labels break; rates are about probabilities."""
        table = self.table
        size = np.diff(table.start)
        owner = np.repeat(np.arange(len(table)), size)
        holds = self.literals.member[np.arange(len(owner)), label[self.literals.task]]
        sums = np.bincount(owner, holds, len(table)).astype(np.int64)
        found = np.zeros(len(table), dtype=bool)
        for rule, n in sorted({*zip(table.rule.tolist(), size.tolist(), strict=True)}):
            at = np.flatnonzero((table.rule == rule) & (size == n))
            text = table.rules[rule]
            if text.startswith(RATE):
                continue
            if text not in RELATIONS:
                found[at] = ~allowed_counts(text, n)[sums[at]]
                continue
            a, b = (label[self.literals.task[table.start[at] + each]] for each in (0, 1))
            if text == ORDER:
                ranks = [self._ranks(int(table.labels[table.start[f]]), f) for f in at.tolist()]
                found[at] = [rank[x] < rank[y] for rank, x, y in zip(ranks, a, b, strict=True)]
            else:
                found[at] = (a != b) == (text == SAME)
        return found

    def may_be_empty(self) -> Mask:
        """Return which constraints are groups of which none or some may be of a class."""
        table = self.table
        texts = np.array([bool(re.fullmatch(r"0-\d+", each)) for each in table.rules], dtype=bool)
        size = np.diff(table.start)
        first = np.repeat(table.labels[np.minimum(table.start[:-1], len(table.labels) - 1)], size)
        owner = np.repeat(np.arange(len(table)), size)
        is_alike = np.bincount(owner, first != table.labels, len(table)) == 0
        return np.asarray(texts[table.rule] & is_alike if len(texts) else is_alike)

    def _pairs(self, chosen: AnyCodes, node: AnyCodes) -> PairFactors:
        """Return the tables of relations between two tasks."""
        table = self.table
        first = table.start[:-1][chosen]
        flips = self.flip[self.literals.task[np.column_stack([first, first + 1]).ravel()]]
        weight = np.nan_to_num(table.weights()[chosen], nan=-1.0)
        kinds = np.column_stack(
            [table.rule[chosen], table.labels[first], weight, flips.reshape(-1, 2)]
        )
        distinct, at, code = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
        tables = [
            self.value_of(int(chosen[i]))[:: -1 if a else 1, :: -1 if b else 1]
            for i, (*_, a, b) in zip(at, distinct.tolist(), strict=True)
        ]
        return PairFactors(node[first], node[first + 1], code.ravel(), tables, chosen)

    def value_of(self, f: int) -> Floats:
        """Return what a constraint is worth by count, (n + 1,), or by the classes of its tasks."""
        table = self.table
        text, weight = table.rules[table.rule[f]], table.weights()[f]
        wrong = -np.inf if np.isnan(weight) else -weight
        at = table.start[f]
        if text == ORDER:
            rank = self._ranks(int(table.labels[at]), f)
            keeps = rank[:, None] >= rank
        elif text in RELATIONS:
            keeps = np.eye(self.n_classes, dtype=bool) == (text == SAME)
        else:
            keeps = allowed_counts(text, int(table.start[f + 1] - at))
        return np.where(keeps, 0.0, wrong)

    def _ranks(self, labels: int, f: int) -> AnyCodes:
        """Return the place of each class in the order that a constraint names, or all have."""
        rank = self.literals.rank
        if labels >= 0:
            listed = self.table.sets[labels][1]
            found = self.literals.classes.codes(list(listed))
            rank = None
            if len(np.unique(found[found >= 0])) == self.n_classes:
                rank = np.empty(self.n_classes, dtype=np.int64)
                rank[found[found >= 0]] = np.flatnonzero(found >= 0)
        if rank is None:
            raise ConstraintError("constraint-no-order", where=self.table.where(f))
        return rank


def _with_links(
    pairs: PairFactors, left: AnyCodes, right: AnyCodes, odds: Floats, n_classes: int
) -> PairFactors:
    """Add links: tables that are 0 where the link holds."""
    distinct, code = np.unique(odds, return_inverse=True)
    eye = np.eye(n_classes, dtype=bool)
    tables = [np.where(eye == (each > 0.0), 0.0, -abs(each)) for each in distinct.tolist()]
    return PairFactors(
        np.concatenate([pairs.left, left]),
        np.concatenate([pairs.right, right]),
        np.concatenate([pairs.table, code + len(pairs.tables)]),
        pairs.tables + tables,
        np.concatenate([pairs.id, np.full(len(odds), -1)]),
    )


class Tied(NamedTuple):
    """A network of variables and the tasks that are its members."""

    network: FactorNetwork
    variable: AnyCodes  # (n_nodes,) the code of each
    member: AnyCodes  # (n_members,) tasks
    node: AnyCodes  # (n_members,)
    flip: AnyCodes  # (n_members,)

    def add_up(self, of_members: Floats) -> Floats:
        """Return for each node the sum over its members, (n_nodes, n_classes)."""
        of_members = self.exchanged(of_members)
        return np.column_stack(
            [np.bincount(self.node, column, len(self.variable)) for column in of_members.T]
        )

    def exchanged(self, rows: Floats) -> Floats:
        """Return rows of the members with the two classes of flipped ones exchanged."""
        return np.where(self.flip[:, None] == 1, rows[:, ::-1], rows) if self.flip.any() else rows


class Conditioned(NamedTuple):
    """Inference of all tasks at scores that are tilted by one row."""

    q: Floats
    log_z: float
    broken: dict[int, float]
    settled: bool


class _Inference:
    """Joint inference of all tasks, at scores tilted alike."""

    def __init__(self, tied: Tied, scores: Floats, of_node: Floats | None = None) -> None:
        self.tied, self.scores = tied, scores
        self.of_node = tied.add_up(scores[tied.member]) if of_node is None else of_node
        self.memory: Memory = {}
        alone = np.ones(len(scores), dtype=bool)
        alone[tied.member] = False
        self.alone = np.flatnonzero(alone)
        self.has_flips = bool(tied.flip.any())
        self.n_members = np.bincount(tied.node, minlength=len(tied.variable))[:, None]

    def at(self, tilt: Floats, sweeps: int = factors.SWEEPS) -> Conditioned:
        """Infer with `tilt`, (n_classes,), added to the scores of every task."""
        tied = self.tied
        found = tied.network.infer(self._of_node(tilt), self.memory, sweeps)
        q = np.empty(self.scores.shape)
        q[tied.member] = tied.exchanged(found.q[tied.node])
        alone = self.scores[self.alone] + tilt
        q[self.alone] = softmax(alone)
        log_z = _log_sum(alone).sum() + found.log_z.sum() + tied.network.constant
        return Conditioned(q, float(log_z), found.broken, found.settled)

    def totals(self, tilt: Floats, sweeps: int = factors.SWEEPS) -> tuple[Floats, float]:
        """Return the expected number of tasks of each class, and log Z."""
        found = self.at(tilt, sweeps)
        return found.q.sum(axis=0), found.log_z

    def decode(self, tilt: Floats, q: Floats) -> AnyCodes:
        """Return labels of the members that break no hard constraint."""
        tied = self.tied
        of_node = np.zeros(self.of_node.shape)
        of_node[tied.node] = tied.exchanged(q[tied.member])
        label = tied.network.decode(self._of_node(tilt), of_node)
        return np.asarray(label[tied.node] ^ tied.flip, dtype=np.int32)

    def _of_node(self, tilt: Floats) -> Floats:
        if not tilt.any():
            return self.of_node
        if not self.has_flips:
            return self.of_node + self.n_members * tilt
        tied = self.tied
        return self.of_node + tied.add_up(np.broadcast_to(tilt, (len(tied.member), len(tilt))))


class _Prior:
    """The same of the prior under the constraints alone: one component for all that are alike."""

    def __init__(self, tied: Tied, n_alone: int, n_classes: int) -> None:
        self.tied, self.n_alone, self.memory = tied, n_alone, Memory()
        n_members = np.bincount(tied.node, minlength=len(tied.variable))
        n_flipped = np.bincount(tied.node, tied.flip, len(tied.variable))
        like = n_members + n_flipped / (1.0 + n_members.max(initial=0))
        self.network, of_node, self.of_component = tied.network.condensed(like)
        self.weight = of_node[tied.node]
        self.n_classes = n_classes

    def totals(self, log_prior: Floats, sweeps: int = factors.SWEEPS) -> tuple[Floats, float]:
        """Return the expected number of tasks of each class, and log Z₀."""
        tied = self.tied
        rows = np.broadcast_to(log_prior, (len(tied.member), self.n_classes))
        found = self.network.infer(tied.add_up(rows), self.memory, sweeps)
        q = tied.exchanged(found.q[tied.node])
        free = softmax(log_prior[None])[0]
        total = np.nan_to_num(q * self.weight[:, None]).sum(axis=0) + self.n_alone * free
        log_z = float(
            (np.where(self.of_component > 0.0, found.log_z, 0.0) * self.of_component).sum()
        )
        log_z += self.n_alone * float(_log_sum(log_prior)) + self.network.constant
        return total, log_z


def _log_sum(x: Floats) -> Any:
    return np.logaddexp.reduce(x, axis=-1)


def learn_prior(posterior: Any, prior: Any, log_prior: Floats) -> tuple[Floats, float]:
    """Learn the class prior under the constraints; return its tilt, and the bound it reached.

    Implements [eq:constraint-prior]: ln π_k += ln((n_k + 1) / (m_k + 1)), n_k the counts expected
    from responses and m_k those of the prior alone.
    """
    tilt = np.zeros_like(log_prior)
    before = None
    for _ in range(ROUNDS):
        n, _ = posterior.totals(tilt, MESSAGES)
        m, _ = prior.totals(log_prior + tilt, MESSAGES)
        step = np.log((n + 1.0) / (m + 1.0))
        if np.abs(step).max() < SETTLED:
            break
        ahead = tilt + step
        if before is not None:  # Anderson's acceleration, of depth one
            turn = step - before[1]
            share = float(turn @ step) / max(float(turn @ turn), TINY)
            ahead = ahead - share * (tilt - before[0] + turn)
        before = tilt, step
        tilt = np.clip(ahead, tilt - LARGEST_STEP, tilt + LARGEST_STEP)
    return tilt, posterior.totals(tilt)[1] - prior.totals(log_prior + tilt)[1]


# -- the stage -------------------------------------------------------------------------------------


def constrain(
    rules: ConstraintCodes,
    q: Floats,
    label: AnyCodes,
    *,
    linked: Linked | None = None,
    joint: Joint | None = None,
    of_known: Floats | None = None,
) -> tuple[Floats, AnyCodes, dict[str, Any]]:
    """Condition class probabilities on constraints, and decode.

    Parameters
    ----------
    q, label
        (n_tasks, n_classes) and (n_tasks,) without constraints; known tasks are certain.
    linked, joint
        Links that were inferred exactly, and the scores of their nodes.
    of_known
        (n_gold, n_classes) probabilities of known tasks that do not know it.

    Returns
    -------
    Probabilities, labels, and results by the names they get.
    """
    table, gold = rules.table, rules.gold
    scores = np.log(np.maximum(q, TINY))
    if gold is not None:
        is_known = np.arange(rules.n_classes) == gold.label[:, None]
        scores[gold.task] = np.where(is_known, 0.0, -np.inf)
    edges = None if linked is None or joint is None else _edges(rules, linked, joint)
    none = table.none
    if none is None and edges is None and gold is not None and of_known is not None:
        none = choose_none(rules, scores, of_known)
    weight = float(none) if isinstance(none, int | float) else 0.0
    tied = rules.network(weight, edges=edges)
    of_node = (
        None if linked is None or joint is None else _of_node(rules, tied, scores, linked, joint)
    )
    inference = _Inference(tied, scores, of_node)
    tilt = np.zeros(rules.n_classes)
    log_prior = np.log(np.maximum(q.mean(axis=0), TINY))
    evidence = None
    rates = table.rates()
    if len(table) > len(rates):
        prior = _Prior(rules.network(with_gold=False, edges=edges), len(inference.alone), len(tilt))
        hard = (
            inference if weight == 0.0 else _Inference(rules.network(edges=edges), scores, of_node)
        )
        learnt, bound = learn_prior(hard, prior, log_prior)
        free_nets = (
            rules.network(with_gold=each, with_constraints=False, edges=edges)
            for each in (True, False)
        )
        free = _Inference(next(free_nets), scores, of_node)
        without = _Prior(next(free_nets), len(inference.alone), len(tilt))
        evidence = float(bound - learn_prior(free, without, log_prior)[1])
        if none == LEARN:
            tilt = learnt
        if evidence < 0.0 and len(tied.member) >= LEAST_TASKS:
            note("constraints-against-responses", evidence=evidence, n=len(table) - len(rates))
    if rates:
        tilt = tilt_to_rates(inference, tilt, rules, rates)
    found = inference.at(tilt)
    new = label.copy() if not tilt.any() else found.q.argmax(axis=1).astype(label.dtype)
    new[tied.member] = inference.decode(tilt, found.q)
    broken = table.select(rules.broken(new))
    weights = table.weights()
    doubtful = {f: p for f, p in found.broken.items() if p > 0.5 and weights[f] == weights[f]}
    order = sorted(doubtful, key=lambda f: -doubtful[f])
    report = ConstraintReport(
        **tied.network.report,
        evidence=evidence,
        none=none,
        n_broken_before=int(rules.broken(label).sum()),
        n_broken=len(broken),
        n_moved=int((new != label).sum()),
        settled=found.settled,
    )
    n_hard = int(np.isnan(broken.weights()).sum())
    if n_hard:
        note("constraints-broken", n=n_hard)
    return (
        found.q,
        new,
        {
            "constraint_report_": report,
            "own_probabilities_": q,
            "doubtful_constraints_": DoubtfulConstraints(
                table.select(np.array(order, dtype=np.int64)),
                np.array([doubtful[f] for f in order]),
            ),
        },
    )


def choose_none(rules: ConstraintCodes, scores: Floats, of_known: Floats) -> str | float:
    """Return how often groups are empty, as known labels say that the constraints do not see."""
    gold = rules.gold
    assert gold is not None  # who calls has some
    if len(gold.task) < LEAST_KNOWN or not rules.may_be_empty().any():
        return 0.0
    scores = scores.copy()
    scores[gold.task] = np.log(np.maximum(of_known, TINY))
    log_prior = np.log(np.maximum(softmax(scores).mean(axis=0), TINY))
    losses = []
    for none in NONES:
        weight = none if isinstance(none, float) else 0.0
        inference = _Inference(rules.network(weight, with_gold=False), scores)
        tilt = np.zeros(rules.n_classes)
        if none == LEARN:
            prior = _Prior(inference.tied, len(inference.alone), rules.n_classes)
            tilt, _ = learn_prior(inference, prior, log_prior)
        q = inference.at(tilt).q[gold.task, gold.label]
        losses.append(-np.log(np.maximum(q, least_share(rules.n_classes))).sum())
    best = int(np.argmin(losses))
    return NONES[best] if losses[best] < losses[0] - LEAST_GAIN else NONES[0]


def tilt_to_rates(
    inference: _Inference,
    tilt: Floats,
    rules: ConstraintCodes,
    rates: list[tuple[int, Any, float, float]],
) -> Floats:
    """Tilt scores by the least that brings the share of each class between its bounds."""
    from scipy.optimize import brentq

    n_tasks = len(inference.scores)
    for _ in range(RATE_ROUNDS):
        moved = False
        for f, name, low, high in rates:
            k = int(rules.literals.classes.codes([name])[0])

            def share(by: float, k: int = k, tilt: Floats = tilt) -> float:
                at = tilt.copy()
                at[k] += by
                return float(inference.totals(at)[0][k] / n_tasks)

            now = share(0.0)
            if low - RATE_EXACT <= now <= high + RATE_EXACT:
                continue
            wish = low if now < low else high
            end = LARGEST_TILT if now < low else -LARGEST_TILT
            most = share(end)
            if (most < low) if now < low else (most > high):
                where = rules.table.where(f)
                raise ConstraintError("constraint-rate", label=name, nearest=most, where=where)
            tilt = tilt.copy()
            tilt[k] += float(brentq(lambda by: share(by) - wish, 0.0, end, xtol=1e-9))  # noqa: B023
            moved = True
        if not moved:
            break
    return tilt


def _edges(rules: ConstraintCodes, linked: Linked, joint: Joint) -> Edges:
    """Return the links between the nodes of exact links, by variable."""
    plan, implied = linked.plan, linked.implied
    odds = plan.coupling(joint.log_odds)
    kept = odds != 0.0
    group_of_node = np.empty(plan.network.n_nodes, dtype=np.int64)
    is_open = plan.node >= 0
    group_of_node[plan.node[is_open]] = np.flatnonzero(is_open)
    first = implied.task[first_members(implied.group, len(implied.group_class))]
    variable = first[group_of_node]
    return variable[plan.left[kept]], variable[plan.right[kept]], odds[kept]


def _of_node(
    rules: ConstraintCodes, tied: Tied, scores: Floats, linked: Linked, joint: Joint
) -> Floats:
    """Return the scores of variables, those of linked ones as links have added them up."""
    of_node = tied.add_up(scores[tied.member])
    implied = linked.implied
    at = np.flatnonzero(np.isin(tied.variable, implied.task))
    node = linked.plan.node[implied.group[np.searchsorted(implied.task, tied.variable[at])]]
    of_node[at[node >= 0]] = joint.scores[node[node >= 0]]
    return of_node
