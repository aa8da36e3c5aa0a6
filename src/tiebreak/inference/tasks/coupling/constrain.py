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
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Floats, Mask
from tiebreak.links import factors
from tiebreak.links.constraints import (
    LEARN,
    ORDER,
    RELATIONS,
    SAME,
    Constraints,
    Literals,
    allowed_counts,
)
from tiebreak.links.factors import Beliefs, CountFactors, FactorNetwork, Memory
from tiebreak.links.graph import AnyCodes, Implications, first_members

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
DEPTH = 4  # of its acceleration
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
    at: AnyCodes = field(init=False)  # (n_counts,) the constraints that are no rates
    counts: CountFactors = field(init=False)  # of tasks
    may_be_empty: Mask = field(init=False)  # which values are of groups of which none may be so
    variable: AnyCodes = field(init=False)  # (n_tasks,)
    flip: AnyCodes = field(init=False)  # (n_tasks,) 1: the other one of two classes
    _made: dict[Any, Tied] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        variable = np.arange(self.n_tasks, dtype=np.int64)
        flip = np.zeros(self.n_tasks, dtype=np.int8)
        if self.implied is not None:
            implied = self.implied
            variable[implied.task] = self._first_of_group()[implied.group]
            flip[implied.task] = implied.flip
        object.__setattr__(self, "variable", variable)
        object.__setattr__(self, "flip", flip)
        object.__setattr__(self, "at", np.flatnonzero(~self.table.is_rate()))
        self._count()

    def _count(self) -> None:
        """Lay constraints out as counts, with one row of values for all that are alike."""
        table, literals, n_classes = self.table, self.literals, self.n_classes
        size = np.diff(table.start)
        step = literals.member.astype(np.int32)
        for code, text in enumerate(table.rules):
            first = table.start[:-1][table.rule == code] if text in RELATIONS else ()
            for f in first:
                rank = self._ranks(int(f)) if text == ORDER else np.arange(n_classes)
                step[f], step[f + 1] = rank, n_classes - 1 - rank
        label = table.labels[np.minimum(table.start[:-1], len(table.labels) - 1)]
        owner = np.repeat(np.arange(len(table)), size)
        n_others = np.bincount(owner, table.labels != label[owner], len(table))
        kinds = np.column_stack(
            [table.rule, size, np.nan_to_num(table.weights(), nan=np.inf), n_others == 0]
        )
        distinct, value = np.unique(kinds[self.at], axis=0, return_inverse=True)
        texts = [table.rules[int(rule)] for rule, *_ in distinct]
        keeps = [
            _kept_sums(text, int(n), n_classes)
            for text, (_, n, *_) in zip(texts, distinct, strict=True)
        ]
        width = max((len(each) for each in keeps), default=1)
        values = np.zeros((len(keeps), width))
        for row, keep, weight in zip(values, keeps, distinct[:, 2], strict=True):
            row[:] = -weight
            row[np.flatnonzero(keep)] = 0.0
            row[len(keep) :] = row[len(keep) - 1]
        is_span = [re.fullmatch(r"0-\d+", text) is not None for text in texts]
        codes = np.zeros(len(table), np.int64)
        codes[self.at] = value.ravel()
        counts = CountFactors(table.start, literals.task, step, codes, values).select(self.at)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "may_be_empty", np.array(is_span, bool) & (distinct[:, 3] == 1))

    def _ranks(self, literal: int) -> AnyCodes:
        """Return the place of each class in the order that a constraint names, or all have."""
        rank, labels = self.literals.rank, self.table.labels[literal]
        if labels >= 0:
            found = self.literals.classes.codes(list(self.table.sets[labels][1]))
            rank = None
            if len(np.unique(found[found >= 0])) == self.n_classes:
                rank = np.empty(self.n_classes, dtype=np.int64)
                rank[found[found >= 0]] = np.arange(self.n_classes)
        if rank is None:
            f = int(np.searchsorted(self.table.start, literal, "right")) - 1
            raise ConstraintError("constraint-no-order", where=self.table.where(f))
        return rank

    def _first_of_group(self) -> AnyCodes:
        """Return the first task of each group that links tie."""
        assert self.implied is not None
        implied = self.implied
        return implied.task[first_members(implied.group, len(implied.group_class))]

    def broken(self, label: AnyCodes) -> Mask:
        """Return which constraints labels break; rates are about probabilities."""
        found = np.zeros(len(self.table), dtype=bool)
        found[self.at] = self.counts.worth(label) < 0.0
        return found

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
        the log-odds that their ends are equal; None: the hard ones. Constraints are the first
        factors of the network, in the order of `at`.
        """
        with_gold &= self.gold is not None or self.implied is not None
        key = (none, with_gold, with_constraints)
        if edges is None and key in self._made:
            return self._made[key]
        is_flipped = self.flip[self.counts.node] == 1
        step = self.counts.step
        if is_flipped.any():
            step = np.where(is_flipped[:, None], step[:, ::-1], step)
        values = self.counts.values.copy()
        values[self.may_be_empty, 0] -= none
        node = self.variable[self.counts.node]
        counts = self.counts._replace(node=node, step=step, values=values)
        links = factors.of_links(*(self._hard_edges() if edges is None else edges), self.n_classes)
        component = factors.joined([counts, links]).components(self.n_tasks)
        is_reached = np.zeros(self.n_tasks, dtype=bool)
        is_reached[component[counts.node]] = True
        is_reached = is_reached[component]
        nodes = np.flatnonzero(is_reached & (self.variable == np.arange(self.n_tasks)))
        links = links.select(is_reached[links.node[::2]])
        both = factors.joined([counts, links]) if with_constraints else links
        place = np.full(self.n_tasks, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        allowed = np.ones((len(nodes), self.n_classes), dtype=bool)
        if with_gold:
            self._know(allowed, place)
        network = factors.canonical(both._replace(node=place[both.node]), allowed)
        members = np.flatnonzero(is_reached[self.variable])
        made = Tied(network, nodes, members, place[self.variable[members]], self.flip[members])
        if edges is None:
            self._made[key] = made
        return made

    def _hard_edges(self) -> Edges:
        """Return cannot-links between variables."""
        if self.implied is None:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        implied, first = self.implied, self._first_of_group()
        return first[implied.left], first[implied.right], np.full(len(implied.left), -np.inf)

    def _know(self, allowed: Mask, place: AnyCodes) -> None:
        """Take away the classes that known labels exclude."""
        known = [] if self.gold is None else [(self.gold.task, self.gold.label)]
        known += [] if self.implied is None else [self.implied.known_labels()]
        for task, label in known:
            label = np.where(self.flip[task] == 1, 1 - label, label)
            at = place[self.variable[task]]
            allowed[at[at >= 0]] &= np.arange(self.n_classes) == label[at >= 0, None]


def _kept_sums(text: str, n: int, n_classes: int) -> Mask:
    """Return which sums of n literals keep a rule; of relations, K − 1 says that both are alike."""
    if text not in RELATIONS:
        return allowed_counts(text, n)
    sums = np.arange(2 * n_classes - 1)
    if text == ORDER:
        return np.asarray(sums >= n_classes - 1)
    return np.asarray((sums == n_classes - 1) == (text == SAME))


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


class _Inference:
    """Joint inference of all tasks, at scores tilted alike."""

    def __init__(self, tied: Tied, scores: Floats, of_node: Floats | None = None) -> None:
        self.tied, self.scores = tied, scores
        self.of_node = tied.add_up(scores[tied.member]) if of_node is None else of_node
        self.memory: Memory = {}
        alone = np.ones(len(scores), dtype=bool)
        alone[tied.member] = False
        self.alone = np.flatnonzero(alone)

    def at(self, tilt: Floats, sweeps: int = factors.SWEEPS) -> Beliefs:
        """Infer with `tilt`, (n_classes,), added to the scores of every task."""
        tied = self.tied
        found = tied.network.infer(self._of_node(tilt), self.memory, sweeps)
        q = np.empty(self.scores.shape)
        q[tied.member] = tied.exchanged(found.q[tied.node])
        alone = self.scores[self.alone] + tilt
        q[self.alone] = softmax(alone)
        log_z = float(np.logaddexp.reduce(alone, axis=1).sum()) + found.log_z
        return found._replace(q=q, log_z=log_z)

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
        tilts = np.broadcast_to(tilt, (len(self.tied.member), len(tilt)))
        return self.of_node + self.tied.add_up(tilts)


def learn_prior(posterior: _Inference, prior: _Inference, n_classes: int) -> tuple[Floats, float]:
    """Learn the class prior under the constraints; return its tilt, and the bound it reached.

    Implements [eq:constraint-prior]: ln π_k += ln((n_k + 1) / (m_k + 1)), n_k the counts expected
    from responses and m_k those of the prior alone.
    """
    tilt = np.zeros(n_classes)
    tilts: list[Floats] = []
    steps: list[Floats] = []
    for _ in range(ROUNDS):
        n, _ = posterior.totals(tilt, MESSAGES)
        m, _ = prior.totals(tilt, MESSAGES)
        step = np.log((n + 1.0) / (m + 1.0))
        if np.abs(step).max() < SETTLED:
            break
        tilts, steps = [*tilts[-DEPTH:], tilt], [*steps[-DEPTH:], step]
        ahead = tilt + step
        if len(steps) > 1:  # Anderson's acceleration
            turns, moves = np.diff(steps, axis=0), np.diff(tilts, axis=0)
            share = np.linalg.lstsq(turns.T, step, rcond=1e-9)[0]
            ahead = ahead - share @ (moves + turns)
        tilt = np.clip(ahead, tilt - LARGEST_STEP, tilt + LARGEST_STEP)
    return tilt, posterior.totals(tilt)[1] - prior.totals(tilt)[1]


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
        of_prior = np.broadcast_to(log_prior, scores.shape)
        prior = _Inference(rules.network(with_gold=False, edges=edges), of_prior)
        hard = (
            inference if weight == 0.0 else _Inference(rules.network(edges=edges), scores, of_node)
        )
        learnt, bound = learn_prior(hard, prior, len(tilt))
        free_nets = (
            rules.network(with_gold=each, with_constraints=False, edges=edges)
            for each in (True, False)
        )
        free = _Inference(next(free_nets), scores, of_node)
        without = _Inference(next(free_nets), of_prior)
        evidence = bound - learn_prior(free, without, len(tilt))[1]
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
    wrong = np.where(np.isnan(weights[rules.at]), 0.0, found.broken[: len(rules.at)])
    doubtful = np.argsort(-wrong, kind="stable")[: int((wrong > 0.5).sum())]
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
                table.select(rules.at[doubtful]), wrong[doubtful]
            ),
        },
    )


def choose_none(rules: ConstraintCodes, scores: Floats, of_known: Floats) -> str | float:
    """Return how often groups are empty, as known labels say that the constraints do not see."""
    gold = rules.gold
    assert gold is not None  # who calls has some
    if len(gold.task) < LEAST_KNOWN or not rules.may_be_empty.any():
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
            prior = _Inference(inference.tied, np.broadcast_to(log_prior, scores.shape))
            tilt, _ = learn_prior(inference, prior, rules.n_classes)
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
