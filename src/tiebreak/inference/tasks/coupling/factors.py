"""Factors: exact and approximate inference of variables that constraints and links tie.

A variable is a task, or the tasks that hard links make one. A factor is a count (how many of its
literals hold, each worth so much) or a table over two variables. Canonical form first: a literal
whose truth is known leaves and shifts the counts; two literals of one variable make steps of two;
one literal left is a row of scores, two are a table. Then each component is inferred on its own:

    one count alone    a counter passed along the literals and back, all groups side by side
    small              elimination, batched over components of one shape; a count is a chain of
                       counters, so that tables stay small however long the group
    large              damped loopy belief propagation

Four tasks, two classes; exactly one of 0, 1, 2 is class 1; 2 and 3 are not both class 1:

>>> counts = [Count([0, 1, 2], [[0, 1]] * 3, [-np.inf, 0, -np.inf, -np.inf])]
>>> counts.append(Count([2, 3], [[0, 1]] * 2, [0, 0, -np.inf]))
>>> network = build(counts, [], np.ones((4, 2), dtype=bool))
>>> [(each.kind, each.nodes.shape) for each in network.groups]
[('small', (1, 4))]
>>> found = network.infer(np.zeros((4, 2)))
>>> found.q[:, 1].round(3).tolist(), np.exp(found.log_z).round(3).tolist()  # of five labellings
([0.4, 0.4, 0.2, 0.4], [5.0])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.links.graph import AnyCodes, components

ALONE, SMALL, LARGE = "alone", "small", "large"  # how a component is inferred
LARGEST_TABLE = 20_000  # entries of one clique
LARGEST_COMPONENT = 400_000  # of all cliques of a component: 10 ms
MOST_LOOPS = 300  # of a component that is worth a look
LARGEST_BATCH = 4_000_000  # of the cliques of components that are inferred side by side
SWEEPS = 300  # of messages in large components
DAMPING = 0.5
SETTLED = 1e-7  # change of messages
LOWEST = -1e4  # log of a message
SECONDS = 60.0  # for the joint labels of one component
CHAIN = 3  # literals from which on a count has counters
Steps = npt.NDArray[np.int64]


class Count(NamedTuple):
    """How many literals hold: class k of nodes[i] adds steps[i][k], a sum c is worth value[c]."""

    nodes: Any  # (n,)
    steps: Any  # (n, n_classes)
    value: Any  # (n + 1,) log; −∞ where it cannot be
    id: int = -1  # the constraint, whose probability of being broken is asked for


class Pair(NamedTuple):
    """Two variables and the log of what each two classes are worth."""

    left: int
    right: int
    table: Any  # (n_classes, n_classes)
    id: int = -1


class CountFactors(NamedTuple):
    """CountFactors, end to end: factor f has the literals start[f] … start[f + 1] − 1."""

    start: Offsets
    node: AnyCodes
    step: Steps  # (n_literals, n_classes)
    value: AnyCodes  # (n,) the code of its values
    values: list[Floats]  # distinct ones; the last one of each holds for all larger sums
    id: AnyCodes  # (n,)

    @property
    def owner(self) -> Offsets:
        """The factor of each literal."""
        return np.repeat(np.arange(len(self.value)), np.diff(self.start))


class PairFactors(NamedTuple):
    """Tables over two variables."""

    left: AnyCodes
    right: AnyCodes
    table: AnyCodes  # (n,) the code of its table
    tables: list[Floats]  # distinct ones
    id: AnyCodes


class NetworkBeliefs(NamedTuple):
    """What inference says at some scores."""

    q: Floats  # (n_nodes, n_classes)
    log_z: Floats  # (n_components,) approximate where messages are
    broken: dict[int, float]  # by id of a soft factor: the probability that it is broken
    settled: bool = True


class _Intern:
    """Distinct arrays by code."""

    def __init__(self) -> None:
        self.arrays: list[Floats] = []
        self.code: dict[tuple[tuple[int, ...], bytes], int] = {}

    def add(self, array: Floats) -> int:
        array = np.ascontiguousarray(array, dtype=np.float64) + 0.0
        key = array.shape, array.tobytes()
        if key not in self.code:
            self.code[key] = len(self.arrays)
            self.arrays.append(array)
        return self.code[key]


def _capped(value: Floats) -> Floats:
    """Drop sums that are worth the same as the last one kept: a counter need not go further."""
    last = len(value) - 1
    while last > 0 and value[last - 1] == value[last]:
        last -= 1
    return value[: last + 1]


def _at(value: Floats, sums: npt.NDArray[Any]) -> Floats:
    return np.asarray(value[np.minimum(sums, len(value) - 1)])


# -- canonical form --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AlikeComponents:
    """Components of one shape, inferred side by side."""

    kind: str
    nodes: AnyCodes  # (n_components, n_nodes)
    component: AnyCodes  # (n_components,)
    ids: AnyCodes  # (n_components, n_factors) of factors
    value: Floats | None = None  # of counts alone: the same for all
    step: Steps | None = None  # of counts alone: (n_components, n_nodes, n_classes)
    shape: Shape | None = None
    factors: tuple[Count | Pair, ...] = ()  # of one component, by place in `nodes`


@dataclass(frozen=True, eq=False)
class FactorNetwork:
    """Variables in canonical form, by component; what is free is a component of one."""

    n_classes: int
    unary: Floats  # (n_nodes, n_classes) what single literals add to scores; −∞: impossible
    constant: float  # what factors add whose literals are all known
    groups: list[AlikeComponents]
    component: AnyCodes  # (n_nodes,)
    n_components: int
    stuck: list[tuple[int, int]]  # factors that are broken whatever happens, and a node of each
    soft: list[tuple[int, int, Mask]]  # id, node, classes that break a soft factor of one literal
    settled_soft: dict[int, float] = field(default_factory=dict)  # known: broken or not

    @cached_property
    def alone(self) -> AnyCodes:
        """The nodes that no factor reaches."""
        is_free = np.ones(len(self.component), dtype=bool)
        for group in self.groups:
            is_free[group.nodes] = False
        return np.flatnonzero(is_free)

    @property
    def report(self) -> dict[str, int]:
        """How many components are inferred in which way."""
        found = dict.fromkeys((ALONE, SMALL, LARGE), 0)
        for group in self.groups:
            found[group.kind] += len(group.component)
        return found

    def infer(
        self, scores: Floats, memory: Memory | None = None, sweeps: int = SWEEPS
    ) -> NetworkBeliefs:
        """Return class probabilities of all nodes, and log Z of each component: [eq:constrained].

        `memory` keeps the messages of large components, where the next inference begins; `sweeps`
        is how often they are passed at most.
        """
        scores = scores + self.unary
        q = np.empty(scores.shape)
        log_z = np.zeros(self.n_components)
        alone = self.alone
        q[alone] = _shares(scores[alone])
        log_z[self.component[alone]] = _log_sum(scores[alone])
        broken = dict(self.settled_soft)
        settled = True
        for group in self.groups:
            own = scores.take(group.nodes, axis=0)
            if group.kind == ALONE:
                assert group.value is not None
                assert group.step is not None
                told, z, wrong = count_messages(own, group.step, group.value)
                q[group.nodes] = _shares(told + own)
                log_z[group.component] = z
                if np.isfinite(group.value).all():
                    broken |= _by_id(group.ids[:, 0], wrong)
            elif group.kind == SMALL:
                assert group.shape is not None
                q[group.nodes], log_z[group.component], wrong = group.shape.infer(own)
                for at, factor in enumerate(group.shape.watched):
                    broken |= _by_id(group.ids[:, factor], wrong[:, at])
            else:
                given = own[0], group.factors, memory, int(group.component[0]), sweeps
                q[group.nodes[0]], bethe, wrong_of, is_settled = propagate(*given)
                log_z[group.component] = bethe
                broken |= {int(group.ids[0, f]): p for f, p in wrong_of.items()}
                settled &= is_settled
        for factor, node, breaks in self.soft:
            broken[factor] = float(q[node, breaks].sum())
        broken.pop(-1, None)
        return NetworkBeliefs(q, log_z, broken, settled)

    def infeasible(self) -> tuple[int, int] | None:
        """Return a factor, or −1 and a node, of what cannot be; None where all can hold."""
        if self.stuck:
            return self.stuck[0]
        empty = np.flatnonzero(np.isneginf(self.unary).all(axis=1))
        if len(empty):
            return -1, int(empty[0])
        # A count alone whose literals are all open leaves something; so does one class for all.
        allowed = ~np.isneginf(self.unary)
        first = allowed.argmax(axis=1)
        tries = [np.where(allowed[:, k], k, first) for k in range(self.n_classes)]
        for group in self.groups:
            if group.kind == ALONE or not all(self.breaks(group, each).any() for each in tries):
                continue
            own = np.where(np.isneginf(self.unary[group.nodes]), -np.inf, 0.0)
            if group.shape is not None:
                bad = np.flatnonzero(np.isneginf(group.shape.infer(own)[1]))
            else:
                bad = np.flatnonzero([by_program(own[0], group.factors) is None])
            if len(bad):
                return -1, int(group.nodes[bad[0], 0])
        return None

    def condensed(self, like: Floats) -> tuple[FactorNetwork, Floats, Floats]:
        """Return one component for all that are alike, and how many nodes and components each is.

        `like`, (n_nodes,), is what else tells nodes apart.
        """
        nodes = np.ones(len(self.component))
        of_component = np.ones(self.n_components)
        groups = []
        for group in self.groups:
            if group.kind == LARGE:
                groups.append(group)
                continue
            parts: list[Any] = [self.unary[group.nodes], like[group.nodes]]
            parts += [] if group.step is None else [group.step]
            key = np.concatenate([part.reshape(len(group.nodes), -1) for part in parts], axis=1)
            _, first, n = np.unique(key, axis=0, return_index=True, return_counts=True)
            nodes[group.nodes] = of_component[group.component] = 0.0
            nodes[group.nodes[first]] = n[:, None]
            of_component[group.component[first]] = n
            step = None if group.step is None else group.step[first]
            fewer = {each: getattr(group, each)[first] for each in ("nodes", "component", "ids")}
            groups.append(replace(group, step=step, **fewer))
        return replace(self, groups=groups), nodes, of_component

    def decode(self, scores: Floats, q: Floats) -> AnyCodes:
        """Return labels that break no hard factor.

        Each component keeps its likeliest classes where they break nothing, and has its likeliest
        joint labelling where they do: [eq:constraint-decode].
        """
        scores = scores + self.unary
        label = q.argmax(axis=1).astype(np.int32)
        for group in self.groups:
            bad = np.flatnonzero(self.breaks(group, label))
            if not len(bad):
                continue
            own = scores[group.nodes[bad]]
            if group.kind == ALONE:
                assert group.value is not None
                assert group.step is not None
                label[group.nodes[bad]] = best_counts(own, group.step[bad], group.value)
            elif group.kind == SMALL:
                assert group.shape is not None
                label[group.nodes[bad]] = group.shape.decode(own)
            else:
                found = by_program(own[0], group.factors)
                if found is not None:
                    label[group.nodes[0]] = found
        return np.asarray(label)

    def breaks(self, group: AlikeComponents, label: AnyCodes) -> Mask:
        """Say which components of a group have labels that break a hard factor."""
        own = label[group.nodes]
        if group.kind == ALONE:
            assert group.value is not None
            assert group.step is not None
            sums = np.take_along_axis(group.step, own[..., None].astype(np.int64), 2)[..., 0].sum(1)
            return np.isneginf(_at(group.value, sums))
        worth = np.zeros(len(own))
        for factor in group.factors:
            worth = worth + worth_of(factor, own)
        return np.isneginf(worth)


def worth_of(factor: Count | Pair, label: AnyCodes) -> Floats:
    """Return what a factor is worth by labels, (..., n_nodes)."""
    if isinstance(factor, Pair):
        return np.asarray(factor.table[label[..., factor.left], label[..., factor.right]])
    sums = sum(
        step[label[..., node]] for node, step in zip(factor.nodes, factor.steps, strict=True)
    )
    return _at(np.asarray(factor.value), np.asarray(sums))


def _by_id(ids: AnyCodes, wrong: Floats) -> dict[int, float]:
    kept = ids >= 0
    return dict(zip(ids[kept].tolist(), wrong[kept].tolist(), strict=True))


def build(counts: Sequence[Count], pairs: Sequence[Pair], allowed: Mask) -> FactorNetwork:
    """Bring single factors into canonical form: see `canonical`."""
    n_classes = allowed.shape[1]
    sizes = np.array([len(each.nodes) for each in counts], np.int64)
    no_steps = np.empty((0, n_classes), np.int64)
    steps = (np.asarray(each.steps).reshape(-1, n_classes) for each in counts)
    laid = CountFactors(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([np.empty(0, np.int64), *(np.asarray(each.nodes) for each in counts)]),
        np.concatenate([no_steps, *steps]),
        np.arange(len(counts)),
        [np.asarray(each.value, np.float64) for each in counts],
        np.array([each.id for each in counts], np.int64),
    )
    ends = np.array([[each.left, each.right, each.id] for each in pairs], np.int64).reshape(-1, 3)
    tables = [np.asarray(each.table, np.float64) for each in pairs]
    both = PairFactors(ends[:, 0], ends[:, 1], np.arange(len(pairs)), tables, ends[:, 2])
    return canonical(laid, both, allowed)


def canonical(counts: CountFactors, pairs: PairFactors, allowed: Mask) -> FactorNetwork:
    """Bring factors into canonical form: see the head of this module."""
    n_nodes = len(allowed)
    values, tables = _Intern(), _Intern()
    codes = np.array([values.add(_capped(each)) for each in counts.values], np.int64)
    counts = counts._replace(value=codes[counts.value], values=values.arrays)
    codes = np.array([tables.add(each) for each in pairs.tables], np.int64)
    pairs = pairs._replace(table=codes[pairs.table], tables=tables.arrays)
    allowed = allowed.copy()
    unary = np.zeros(allowed.shape)
    constant = 0.0
    counts = _literals_of_a_node_together(counts, n_nodes)
    soft: list[tuple[int, int, Mask]] = []
    known_soft: dict[int, float] = {}
    stuck: list[tuple[int, int]] = []
    is_loop = pairs.left == pairs.right  # hard links have made both ends one
    for e in np.flatnonzero(is_loop).tolist():
        node, row = int(pairs.left[e]), np.diag(tables.arrays[pairs.table[e]])
        unary[node] += row
        allowed[node] &= ~np.isneginf(row)
        if np.isfinite(row).all() and (row < 0.0).any():
            soft.append((int(pairs.id[e]), node, row < 0.0))
    left, right, table = (each[~is_loop] for each in pairs[:3])
    pairs = PairFactors(left, right, table, tables.arrays, pairs.id[~is_loop])
    while True:  # what is known makes more known
        before = int(allowed.sum())
        counts = _without_known_literals(counts, values, allowed)
        _forbid(counts, allowed)
        _forbid_by_pairs(pairs, allowed)
        if int(allowed.sum()) == before:
            break
        if not allowed.any(axis=1).all():
            break
    size = np.diff(counts.start)
    for f in np.flatnonzero(size == 0).tolist():
        worth = float(counts.values[counts.value[f]][0])
        if worth == -np.inf:
            stuck.append((int(counts.id[f]), -1))
        else:
            constant += worth
            known_soft[int(counts.id[f])] = float(worth < 0.0)
    for f in np.flatnonzero(size == 1).tolist():
        at = counts.start[f]
        node, value = int(counts.node[at]), counts.values[counts.value[f]]
        row = _at(value, counts.step[at])
        unary[node] += row
        if np.isfinite(row).all() and (row < 0.0).any():
            soft.append((int(counts.id[f]), node, row < 0.0))
    twos = np.flatnonzero(size == 2)
    at = counts.start[twos]
    sums = counts.step[at][:, :, None] + counts.step[at + 1][:, None, :]
    made = [
        tables.add(_at(counts.values[value], each))
        for value, each in zip(counts.value[twos], sums, strict=True)
    ]
    pairs = PairFactors(
        np.concatenate([pairs.left, counts.node[at]]),
        np.concatenate([pairs.right, counts.node[at + 1]]),
        np.concatenate([pairs.table, np.array(made, np.int64)]),
        tables.arrays,
        np.concatenate([pairs.id, counts.id[twos]]),
    )
    known = allowed.sum(axis=1) <= 1
    gone = known[pairs.left] | known[pairs.right]
    for e in np.flatnonzero(gone).tolist():
        a, b, table = int(pairs.left[e]), int(pairs.right[e]), tables.arrays[pairs.table[e]]
        if known[a] and known[b]:
            if allowed[a].any() and allowed[b].any():
                worth = float(table[allowed[a].argmax(), allowed[b].argmax()])
                if worth == -np.inf:
                    stuck.append((int(pairs.id[e]), a))
                else:
                    constant += worth
                    known_soft[int(pairs.id[e])] = float(worth < 0.0)
            continue
        node, row = (
            (b, table[allowed[a].argmax()]) if known[a] else (a, table[:, allowed[b].argmax()])
        )
        unary[node] += row
        if np.isfinite(row).all() and (row < 0.0).any():
            soft.append((int(pairs.id[e]), node, row < 0.0))
    left, right, table = (each[~gone] for each in pairs[:3])
    pairs = PairFactors(left, right, table, tables.arrays, pairs.id[~gone])
    unary[~allowed] = -np.inf
    counts = _keep(counts, size > 2)
    return _plan(counts, pairs, unary, constant, stuck, soft, known_soft)


def _keep(counts: CountFactors, chosen: Mask) -> CountFactors:
    size = np.diff(counts.start)
    literal = np.repeat(chosen, size)
    return counts._replace(
        start=np.concatenate([[0], np.cumsum(size[chosen])]),
        node=counts.node[literal],
        step=counts.step[literal],
        value=counts.value[chosen],
        id=counts.id[chosen],
    )


def _literals_of_a_node_together(counts: CountFactors, n_nodes: int) -> CountFactors:
    """Add up the steps of literals that one factor has of one node."""
    if not len(counts.node):
        return counts
    owner = counts.owner
    key = owner * n_nodes + counts.node
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    if len(first) == len(key):
        return counts
    steps = np.add.reduceat(counts.step[order], first)
    size = np.bincount(owner[order[first]], minlength=len(counts.value))
    start = np.concatenate([[0], np.cumsum(size)])
    return counts._replace(start=start, node=counts.node[order[first]], step=steps)


def _without_known_literals(counts: CountFactors, values: _Intern, allowed: Mask) -> CountFactors:
    """Drop literals whose step is known, and shift the counts by it."""
    can = allowed[counts.node]
    least = np.where(can, counts.step, np.iinfo(np.int64).max).min(axis=1, initial=1 << 40)
    most = np.where(can, counts.step, -1).max(axis=1, initial=-1)
    gone = least >= most
    if not gone.any():
        return counts
    shift = np.bincount(counts.owner[gone], np.maximum(most[gone], 0), len(counts.value))
    value = counts.value.copy()
    for code, by in sorted(
        {*zip(value[shift > 0].tolist(), shift[shift > 0].tolist(), strict=True)}
    ):
        old = values.arrays[code]
        rest = _capped(old[min(int(by), len(old) - 1) :])
        value[(counts.value == code) & (shift == by)] = values.add(rest)
    size = np.bincount(counts.owner[~gone], minlength=len(value))
    return counts._replace(
        start=np.concatenate([[0], np.cumsum(size)]),
        node=counts.node[~gone],
        step=counts.step[~gone],
        value=value,
    )


def _forbid(counts: CountFactors, allowed: Mask) -> None:
    """Take away classes whose step leaves no sum that a hard factor allows."""
    if not len(counts.node):
        return
    can = allowed[counts.node]
    owner = counts.owner
    least = np.where(can, counts.step, 1 << 40).min(axis=1)
    most = np.where(can, counts.step, -1).max(axis=1)
    low = np.bincount(owner, least, len(counts.value)).astype(np.int64)
    high = np.bincount(owner, most, len(counts.value)).astype(np.int64)
    for code in np.unique(counts.value).tolist():
        value = counts.values[code]
        if not np.isneginf(value).any():
            continue
        fine = np.concatenate([[0], np.cumsum(~np.isneginf(value))])
        own = np.flatnonzero(counts.value[owner] == code)
        of = owner[own]
        # of the literal's class: the other literals add between `from_` and `to`
        from_ = (low[of] - least[own])[:, None] + counts.step[own]
        to = (high[of] - most[own])[:, None] + counts.step[own]
        last = len(value) - 1
        inside = fine[np.minimum(to, last) + 1] - fine[np.minimum(from_, last)]
        at, k = np.nonzero((inside <= 0) & can[own])
        allowed[counts.node[own[at]], k] = False


def _forbid_by_pairs(pairs: PairFactors, allowed: Mask) -> None:
    """Take away classes that no class of the other end goes with."""
    for code, table in enumerate(pairs.tables):
        fine = ~np.isneginf(table)
        own = np.flatnonzero(pairs.table == code)
        if fine.all() or not len(own):
            continue
        left, right = pairs.left[own], pairs.right[own]
        for here, there, goes in ((left, right, fine), (right, left, fine.T)):
            possible = (allowed[there][:, None, :] & goes[None]).any(axis=2)
            at, k = np.nonzero(allowed[here] & ~possible)
            allowed[here[at], k] = False


def _plan(
    counts: CountFactors,
    pairs: PairFactors,
    unary: Floats,
    constant: float,
    stuck: list[tuple[int, int]],
    soft: list[tuple[int, int, Mask]],
    known_soft: dict[int, float],
) -> FactorNetwork:
    """Say how each component is inferred, those of one shape together."""
    n_nodes, n_classes = unary.shape
    size = np.diff(counts.start)
    first = np.repeat(counts.node[counts.start[:-1]], size)
    component = components(
        n_nodes,
        np.concatenate([first, pairs.left]).astype(np.int32),
        np.concatenate([counts.node, pairs.right]).astype(np.int32),
    )
    n_components = int(component.max(initial=-1)) + 1
    of_count = component[counts.node[counts.start[:-1]]]
    of_pair = component[pairs.left]
    n_counts = np.bincount(of_count, minlength=n_components)
    n_pairs = np.bincount(of_pair, minlength=n_components)
    is_binary = counts.step.max(axis=1, initial=0) <= 1
    binary = np.bincount(counts.owner, ~is_binary, len(size)) == 0
    alone = (n_counts[of_count] == 1) & (n_pairs[of_count] == 0) & binary
    groups = list(_counts_alone(counts, of_count, np.flatnonzero(alone)))
    one_pair = (n_pairs[of_pair] == 1) & (n_counts[of_pair] == 0)
    asked = pairs.id >= 0
    for code, mark in _distinct(pairs.table[one_pair], asked[one_pair]):
        own = np.flatnonzero(one_pair & (pairs.table == code) & (asked == mark))
        nodes = np.column_stack([pairs.left[own], pairs.right[own]])
        factors = (Pair(0, 1, pairs.tables[code], mark - 1),)
        shape = shape_of(2, n_classes, factors)
        ids = pairs.id[own, None]
        groups.append(_group(nodes, of_pair[own], ids, shape, factors))
    groups += _loose(counts, pairs, component, ~alone, ~one_pair, n_classes)
    return FactorNetwork(
        n_classes, unary, constant, groups, component, n_components, stuck, soft, known_soft
    )


def _distinct(*columns: npt.NDArray[Any]) -> list[Any]:
    """Return the distinct rows of some columns."""
    return sorted({*zip(*(column.tolist() for column in columns), strict=True)})


def _group(
    nodes: AnyCodes, component: AnyCodes, ids: AnyCodes, shape: Shape | None, factors: Any
) -> AlikeComponents:
    kind = LARGE if shape is None else SMALL
    return AlikeComponents(kind, nodes, component, ids, shape=shape, factors=tuple(factors))


def _counts_alone(
    counts: CountFactors, component: AnyCodes, chosen: Offsets
) -> Iterable[AlikeComponents]:
    """Lay counts that are components of their own side by side, by values and size."""
    size = np.diff(counts.start)
    for value, n in _distinct(counts.value[chosen], size[chosen]):
        own = chosen[(counts.value[chosen] == value) & (size[chosen] == n)]
        place = counts.start[own, None] + np.arange(n)
        nodes, step = counts.node[place], counts.step[place]
        ids = counts.id[own, None]
        yield AlikeComponents(ALONE, nodes, component[own], ids, counts.values[value], step)


def _loose(
    counts: CountFactors,
    pairs: PairFactors,
    component: AnyCodes,
    with_count: Mask,
    with_pair: Mask,
    n_classes: int,
) -> list[AlikeComponents]:
    """Plan components of several factors, each shape once."""
    own_factors: dict[int, list[tuple[Any, ...]]] = {}
    for f in np.flatnonzero(with_count).tolist():
        first = int(counts.start[f])
        at = slice(first, int(counts.start[f + 1]))
        c = int(component[counts.node[first]])
        own_factors.setdefault(c, []).append((at, int(counts.value[f]), int(counts.id[f])))
    for e in np.flatnonzero(with_pair).tolist():
        c = int(component[pairs.left[e]])
        own_factors.setdefault(c, []).append((e, int(pairs.table[e]), int(pairs.id[e])))
    alike: dict[Any, list[tuple[int, list[int], list[int]]]] = {}
    for c, given in own_factors.items():
        number: dict[int, int] = {}
        key: list[Any] = []
        for where, code, _ in given:
            if isinstance(where, slice):
                nodes, what = counts.node[where].tolist(), counts.step[where].tobytes()
            else:
                nodes, what = [int(pairs.left[where]), int(pairs.right[where])], b""
            key.append((tuple(number.setdefault(v, len(number)) for v in nodes), what, code))
        ids = [factor for *_, factor in given]
        marks = tuple(factor >= 0 for factor in ids)
        alike.setdefault((tuple(key), marks), []).append((c, list(number), ids))
    groups = []
    for (key, marks), found in alike.items():
        factors: list[Count | Pair] = []
        for (ends, what, code), mark in zip(key, marks, strict=True):
            if what:
                steps = np.frombuffer(what, np.int64).reshape(len(ends), n_classes)
                factors.append(Count(ends, steps, counts.values[code], mark - 1))
            else:
                factors.append(Pair(ends[0], ends[1], pairs.tables[code], mark - 1))
        nodes = np.array([each for _, each, _ in found])
        n_loops = sum(len(_nodes(factor)) - 1 for factor in factors) - nodes.shape[1] + 1
        shape = None
        if n_loops <= MOST_LOOPS:
            shape = shape_of(nodes.shape[1], n_classes, tuple(factors))
        rows = [np.arange(len(found))]  # large ones one by one
        rows = rows if shape is not None else [rows[0][i : i + 1] for i in range(len(found))]
        of = np.array([c for c, *_ in found])
        each_id = np.array([each for *_, each in found])
        groups += [_group(nodes[i], of[i], each_id[i], shape, factors) for i in rows]
    return groups


# -- one count: forward, backward ------------------------------------------------------------------


def _log_sum(x: Floats) -> Floats:
    """Return the log of the sum over the last axis; scipy's is slower by far for short axes."""
    if x.shape[-1] == 2:
        return np.asarray(np.logaddexp(x[..., 0], x[..., 1]))
    most = x.max(axis=-1)
    safe = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(x - safe[..., None]).sum(axis=-1)) + safe)


def _shares(logs: Floats) -> Floats:
    """Return the softmax over the last axis."""
    with np.errstate(invalid="ignore"):
        if logs.shape[-1] == 2:
            gap = logs[..., 1] - logs[..., 0]
            return np.stack([expit(-gap), expit(gap)], axis=-1)
        return np.asarray(np.exp(logs - _log_sum(logs)[..., None]))


def count_messages(scores: Floats, step: Steps, value: Floats) -> tuple[Floats, Floats, Floats]:
    """Return what counts with the same values say to their nodes: [eq:count-messages].

    scores and step are (n_groups, n, n_classes); also returned are log Z and the probability that
    a count is broken, (n_groups,). A counter is passed along the literals and
    back; it stops where sums are worth the same. All odds of a group are shifted by one factor,
    which changes no message and keeps sums that the values allow from vanishing.
    """
    n_groups, n, n_classes = scores.shape
    if is_of_one(value, step):
        start = np.arange(0, n_groups * n + 1, n)
        flat = scores.reshape(-1, n_classes), step.reshape(-1, n_classes)
        told, log_z = one_messages(flat[0], flat[1], start, value)
        return told.reshape(scores.shape), log_z, np.zeros(n_groups)
    sizes = range(int(step.max(initial=0)) + 1)
    own = _log_sum(scores)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(scores - own[..., None], nan=-np.inf)
    log_w = np.stack(  # (step, group, literal): log probability that a literal adds so much
        [_log_sum(np.where(step == s, share, -np.inf)) for s in sizes]
    )
    shift = _shift(log_w[1] - log_w[0], value) if len(sizes) == 2 else np.zeros(n_groups)
    log_w = log_w - (np.array(sizes)[:, None] * shift)[:, :, None]
    top = log_w.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    weight = np.exp(log_w - top)
    norm = weight.sum(axis=0)
    weight /= np.where(norm > 0.0, norm, 1.0)
    with np.errstate(divide="ignore"):
        lost = (top + np.log(norm)).sum(axis=1)
    # What a sum is worth, the shift undone; the last state stands for all larger sums, so that
    # with a shift it has to count on.
    cap = len(value) - 1
    if shift.any() and value[-1] > -np.inf:
        cap = n
    values = _at(value, np.arange(cap + 1)) + np.arange(cap + 1) * shift[:, None]
    best = np.where(np.isfinite(values), values, -np.inf).max(axis=1)
    best = np.where(np.isfinite(best), best, 0.0)
    forward = np.zeros((n + 1, n_groups, cap + 1))
    forward[0, :, 0] = 1.0
    for i in range(n):
        for s in sizes:
            moved = forward[i] * weight[s, :, i, None]
            if s == 0:
                forward[i + 1] += moved
                continue
            whole = min(s, cap + 1)
            forward[i + 1, :, whole:] += moved[:, : cap + 1 - whole]
            forward[i + 1, :, cap] += moved[:, max(cap + 1 - whole, 0) :].sum(axis=1)
    backward = np.exp(values - best[:, None])
    onward = [np.minimum(np.arange(cap + 1) + s, cap) for s in sizes]
    told = np.empty((len(sizes), n_groups, n))
    end = forward[n] * backward
    for i in range(n - 1, -1, -1):
        arrived = [backward if s == 0 else backward[:, onward[s]] for s in sizes]
        for s in sizes:
            told[s, :, i] = np.einsum("gc,gc->g", forward[i], arrived[s])
        backward = np.sum([weight[s, :, i, None] * arrived[s] for s in sizes], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = end.sum(axis=1)
        log_z = np.log(total) + best + lost + own.sum(axis=1)
        is_broken = _at(value, np.arange(cap + 1)) < 0.0
        wrong = np.where(total > 0.0, end[:, is_broken].sum(axis=1) / total, 1.0)
        says = np.log(told) - (np.array(sizes)[:, None] * shift)[:, :, None]
    message = np.take_along_axis(says, step.transpose(2, 0, 1), axis=0).transpose(1, 2, 0)
    return message, log_z, wrong


def is_of_one(value: Floats, step: Steps | None) -> bool:
    """Say whether a count allows none, one or both, and no more: messages are closed then."""
    few = len(value) == 3 and np.isneginf(value[2])
    return bool(few and step is not None and step.max(initial=0) <= 1)


def one_messages(
    scores: Floats, step: Steps, start: Offsets, value: Floats
) -> tuple[Floats, Floats]:
    """Return what counts of none or one say to their literals, end to end, and log Z of each.

    With odds o_i that a literal holds: e^v₁ where it does, e^v₀ + e^v₁ Σ_{j≠i} o_j where it does
    not. The largest odds are left out of the sum that it is taken from, so that none is lost.
    """
    if scores.shape[1] == 2:  # one class is a member, and one is not
        is_first = step[:, 0] == 1
        holds = np.where(is_first, scores[:, 0], scores[:, 1])
        fails = np.where(is_first, scores[:, 1], scores[:, 0])
    else:
        holds, fails = (_log_sum(np.where(step == s, scores, -np.inf)) for s in (1, 0))
    log_odds = holds - fails
    size = np.diff(start)
    most = np.maximum.reduceat(log_odds, start[:-1])
    odds = np.exp(log_odds - np.repeat(most, size))
    top = np.flatnonzero(odds == 1.0)
    owner = np.repeat(np.arange(len(size)), size)
    top = top[np.diff(owner[top], prepend=-1) > 0]  # the first of each group
    without = odds.copy()
    without[top] = 0.0
    others = np.add.reduceat(without, start[:-1])
    rest = np.repeat(others, size) + 1.0 - odds
    rest[top] = others
    with np.errstate(divide="ignore"):
        of_none = np.logaddexp(value[0], value[1] + np.repeat(most, size) + np.log(rest))
        log_z = np.logaddexp(value[0], value[1] + most + np.log1p(others))
    told = np.where(step == 1, value[1], of_none[:, None])
    return told, log_z + np.add.reduceat(fails, start[:-1])


def _shift(log_odds: Floats, value: Floats) -> Floats:
    """Return by how much to lower the log-odds of each group.

    By the least that brings the usual number of literals that hold to one that is allowed.
    """
    n_groups, n = log_odds.shape
    allowed = np.flatnonzero(np.isfinite(_at(value, np.arange(n + 1))))
    usual = (log_odds > 0.0).sum(axis=1)
    if len(allowed) in (0, n + 1):
        return np.zeros(n_groups)
    nearest = allowed[np.abs(np.arange(n + 1)[:, None] - allowed).argmin(axis=1)][usual]
    off = np.flatnonzero(nearest != usual)
    shift = np.zeros(n_groups)
    if len(off):
        down = -np.sort(-np.clip(log_odds[off], -1e3, 1e3), axis=1)
        edges = np.pad(down, ((0, 0), (1, 1)), constant_values=((0, 0), (1e3, -1e3)))
        at = nearest[off]
        row = np.arange(len(off))
        shift[off] = np.clip(0.0, edges[row, at + 1], edges[row, at])
        expected = expit(log_odds[off] - shift[off, None]).sum(axis=1)
        above = expected > at + 1.0  # many alike: a little further
        shift[off] += np.where(above, np.log(expected / (at + 0.5)), 0.0)
    return shift


def best_counts(scores: Floats, step: Steps, value: Floats) -> AnyCodes:
    """Return the likeliest joint classes of literals that one count ties, (n_groups, n)."""
    inside = np.where(step == 1, scores, -np.inf)
    outside = np.where(step == 0, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        gain = np.nan_to_num(inside.max(axis=2) - outside.max(axis=2), nan=0.0)
    order = np.argsort(-gain, axis=1, kind="stable")
    sums = np.cumsum(np.clip(np.take_along_axis(gain, order, 1), -1e300, 1e300), axis=1)
    n = scores.shape[1]
    worth = np.pad(sums, ((0, 0), (1, 0))) + _at(value, np.arange(n + 1))
    m = worth.argmax(axis=1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(n)[None].repeat(len(order), 0), 1)
    holds = rank < m[:, None]
    return np.asarray(np.where(holds, inside.argmax(axis=2), outside.argmax(axis=2)), np.int32)


# -- small components: elimination -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shape:
    """Tables over the variables of a component, and the order in which these are summed out.

    Variables are its nodes, then counters, then one for each soft factor that is asked about: 1
    where the factor is broken.
    """

    n_nodes: int
    cards: list[int]
    tables: list[tuple[tuple[int, ...], Floats]]
    visits: list[int]
    watched: list[int]  # places of the factors that are asked about; their variables come last

    def infer(self, scores: Floats) -> tuple[Floats, Floats, Floats]:
        """Return q, log Z and the probabilities of being broken, of components side by side."""
        found = [self._sum(part) for part in self._parts(scores)]
        marginal, log_z, wrong = (np.concatenate(each) for each in zip(*found, strict=True))
        return marginal, log_z, wrong

    def decode(self, scores: Floats) -> AnyCodes:
        """Return the likeliest joint labels of components side by side."""
        return np.concatenate([self._maximise(part) for part in self._parts(scores)])

    def _parts(self, scores: Floats) -> list[Floats]:
        n_at_once = max(1, LARGEST_BATCH // max(clique_entries(self), 1))
        return [scores[low : low + n_at_once] for low in range(0, len(scores), n_at_once)]

    def _collect(self, scores: Floats, *, by_max: bool) -> tuple[list[Any], Floats]:
        """Sum, or maximise, out one variable after the other, one at a time."""
        place = {v: turn for turn, v in enumerate(self.visits)}
        buckets: list[list[tuple[tuple[int, ...], Floats]]] = [[] for _ in self.cards]
        for scope, table in self.tables:
            buckets[min(scope, key=place.__getitem__)].append((scope, table[None]))
        for node in range(self.n_nodes):
            buckets[node].append(((node,), scores[:, node]))
        cliques: list[Any] = [None] * len(self.cards)
        log_z = np.zeros(len(scores))
        for v in self.visits:
            rest = sorted({u for scope, _ in buckets[v] for u in scope} - {v}, key=place.get)  # type: ignore[arg-type]
            target = (v, *rest)
            joint = np.zeros([len(scores), *(self.cards[u] for u in target)])
            for scope, table in buckets[v]:
                joint += _spread(table, scope, target)
            message = joint.max(axis=1) if by_max else _log_sum(np.moveaxis(joint, 1, -1))
            cliques[v] = target, joint, message
            if rest:
                buckets[rest[0]].append((tuple(rest), message))
            else:
                log_z += message
        return cliques, log_z

    def _sum(self, scores: Floats) -> tuple[Floats, Floats, Floats]:
        cliques, log_z = self._collect(scores, by_max=False)
        beliefs: dict[int, Any] = {}
        marginal: dict[int, Floats] = {}
        for v in reversed(self.visits):
            target, joint, message = cliques[v]
            belief = joint
            if len(target) > 1:
                above_target, above = beliefs[target[1]]
                drop = tuple(i + 1 for i, u in enumerate(above_target) if u not in target)
                shared = tuple(u for u in above_target if u in target)
                seen = _log_sum_over(above, drop)
                seen = _spread(seen, shared, target[1:])
                with np.errstate(invalid="ignore"):
                    change = np.where(np.isneginf(message), 0.0, seen - message)
                belief = joint + change[:, None]
            beliefs[v] = target, belief
            flat = _log_sum_over(belief, tuple(range(2, belief.ndim)))
            with np.errstate(invalid="ignore"):
                marginal[v] = np.exp(flat - _log_sum(flat)[:, None])
        q = np.stack([marginal[v] for v in range(self.n_nodes)], axis=1)
        first = len(self.cards) - len(self.watched)
        wrong = np.empty((len(scores), len(self.watched)))
        for at in range(len(self.watched)):
            wrong[:, at] = marginal[first + at][:, 1]
        return q, log_z, wrong

    def _maximise(self, scores: Floats) -> AnyCodes:
        cliques, _ = self._collect(scores, by_max=True)
        chosen = np.zeros((len(scores), len(self.cards)), dtype=np.int32)
        row = np.arange(len(scores))
        for v in reversed(self.visits):
            target, joint, _ = cliques[v]
            given = joint[(row, slice(None), *(chosen[:, u] for u in target[1:]))]
            chosen[:, v] = given.argmax(axis=1)
        return chosen[:, : self.n_nodes]


def clique_entries(shape: Shape) -> int:
    """Return how many entries the cliques of one component have."""
    entries = 0
    near = _neighbours(shape.cards, [scope for scope, _ in shape.tables])
    for v in shape.visits:
        entries += shape.cards[v] * int(np.prod([shape.cards[u] for u in near[v]], dtype=np.int64))
        _take_out(near, v)
    return entries


def shape_of(n_nodes: int, n_classes: int, factors: tuple[Count | Pair, ...]) -> Shape | None:
    """Return how a component is eliminated; None where some table would be too large."""
    cards = [n_classes] * n_nodes
    tables: list[tuple[tuple[int, ...], Floats]] = []
    watched = [
        f
        for f, factor in enumerate(factors)
        if np.isfinite(_value(factor)).all() and factor.id >= 0
    ]
    asked: list[tuple[tuple[int, ...], Floats]] = []
    for f, factor in enumerate(factors):
        if isinstance(factor, Pair):
            last: tuple[tuple[int, ...], Floats] = (factor.left, factor.right), factor.table
        else:
            last = _chain(factor, cards, tables)
        (asked if f in watched else tables).append(last)
    for scope, table in asked:
        cards.append(2)
        is_broken = (table < 0.0).astype(int)[..., None]
        both = np.where(np.arange(2) == is_broken, table[..., None], -np.inf)
        tables.append(((*scope, len(cards) - 1), both))
    visits = elimination_order(cards, [scope for scope, _ in tables])
    return None if visits is None else Shape(n_nodes, cards, tables, visits, watched)


def _value(factor: Count | Pair) -> Floats:
    return np.asarray(factor.table if isinstance(factor, Pair) else factor.value)


def _chain(
    factor: Count, cards: list[int], tables: list[tuple[tuple[int, ...], Floats]]
) -> tuple[tuple[int, ...], Floats]:
    """Lay a counter between the literals of a count; return its last table."""
    cap = len(factor.value) - 1
    before = -1
    for i, (node, step) in enumerate(zip(factor.nodes, factor.steps, strict=True)):
        reached = np.minimum(step, cap)
        scope: tuple[int, ...] = (node,)
        if before >= 0:
            reached = np.minimum(np.arange(cards[before])[:, None] + step, cap)
            scope = (before, node)
        if i == len(factor.nodes) - 1:
            break
        table = np.where(np.arange(cap + 1) == reached[..., None], 0.0, -np.inf)
        cards.append(cap + 1)
        before = len(cards) - 1
        tables.append(((*scope, before), table))
    return scope, np.asarray(factor.value[reached])


def _neighbours(cards: list[int], scopes: list[tuple[int, ...]]) -> list[set[int]]:
    near: list[set[int]] = [set() for _ in cards]
    for scope in scopes:
        for v in scope:
            near[v].update(scope)
    for v, around in enumerate(near):
        around.discard(v)
    return near


def _take_out(near: list[set[int]], v: int) -> None:
    """Remove a variable and tie its neighbours to each other."""
    for u in near[v]:
        near[u] |= near[v]
        near[u] -= {u, v}


def elimination_order(cards: list[int], scopes: list[tuple[int, ...]]) -> list[int] | None:
    """Return an order to sum variables out, the smallest table next; None: one is too large."""
    import heapq

    near = _neighbours(cards, scopes)
    log_card = np.log(cards).tolist()
    size = [log_card[v] + sum(log_card[u] for u in around) for v, around in enumerate(near)]
    heap = [(each, v) for v, each in enumerate(size)]
    heapq.heapify(heap)
    is_left = [True] * len(cards)
    visits: list[int] = []
    most, entries = np.log(LARGEST_TABLE), 0.0
    while heap:
        now, v = heapq.heappop(heap)
        if not is_left[v] or now != size[v]:
            continue
        entries += np.exp(now)
        if now > most or entries > LARGEST_COMPONENT:
            return None
        is_left[v] = False
        visits.append(v)
        _take_out(near, v)
        for u in near[v]:
            new = log_card[u] + sum(log_card[w] for w in near[u])
            if new != size[u]:
                size[u] = new
                heapq.heappush(heap, (new, u))
    return visits


def _spread(table: Floats, scope: Sequence[int], target: Sequence[int]) -> Floats:
    """Lay `table`, (n, …) over `scope`, along the axes of `target`."""
    places = [target.index(v) for v in scope]
    order = sorted(range(len(scope)), key=places.__getitem__)
    shape = [1] * len(target)
    for i in order:
        shape[places[i]] = table.shape[i + 1]
    return table.transpose([0, *(i + 1 for i in order)]).reshape([len(table), *shape])


def _log_sum_over(x: Floats, axes: tuple[int, ...]) -> Floats:
    """Return the log of the sum over some axes."""
    if not axes:
        return x
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    moved = x.transpose([*kept, *axes])
    return _log_sum(moved.reshape([*moved.shape[: len(kept)], -1]))


# -- large components: messages --------------------------------------------------------------------


def propagate(
    scores: Floats,
    factors: tuple[Count | Pair, ...],
    memory: Memory | None = None,
    component: int = 0,
    sweeps: int = SWEEPS,
) -> tuple[Floats, float, dict[int, float], bool]:
    """Pass messages in one component until they settle: damped loopy belief propagation.

    Return q, Bethe's log Z, the probability that each soft factor is broken, and whether messages
    have settled.
    """
    memory = {} if memory is None else memory
    if component not in memory:
        alike = _alike(factors).values()
        memory[component] = [_Messages.of(each, scores.shape[1]) for each in alike]
    batches = memory[component]
    settled = False
    for _ in range(sweeps):
        total = _total(scores, batches)
        moved = max(batch.update(total) for batch in batches)
        if moved <= SETTLED:
            settled = True
            break
    total = _total(scores, batches)
    own = _log_sum(total)
    log_z = float(own.sum())
    broken: dict[int, float] = {}
    for batch in batches:
        _, z, wrong = batch.say(total[batch.nodes] - batch.told)
        log_z += float(z.sum() - own[batch.nodes].sum())
        broken |= dict(zip(batch.place, wrong.tolist(), strict=True))
    return np.exp(total - own[:, None]), log_z, broken, settled


def _total(scores: Floats, batches: list[_Messages]) -> Floats:
    total = scores.copy()
    for batch in batches:
        for k in range(scores.shape[1]):
            total[:, k] += np.bincount(batch.nodes, batch.told[:, k], len(scores))
    return total


def _alike(factors: tuple[Count | Pair, ...]) -> dict[Any, list[tuple[int, Count | Pair]]]:
    """Return factors by place that can be inferred together."""
    alike: dict[Any, list[tuple[int, Count | Pair]]] = {}
    for place, factor in enumerate(factors):
        value = _value(factor)
        n = 0
        if isinstance(factor, Count) and not is_of_one(value, factor.steps):
            n = len(factor.nodes)
        alike.setdefault((n, value.shape, value.tobytes()), []).append((place, factor))
    return alike


@dataclass(eq=False)
class _Messages:
    """Factors of one value, and what they tell their nodes; literals lie end to end."""

    place: list[int]
    start: Offsets  # (n_factors + 1,)
    nodes: AnyCodes  # (n_literals,)
    step: Steps | None  # (n_literals, n_classes); None: a table
    value: Floats
    told: Floats  # (n_literals, n_classes)
    of_one: bool

    @classmethod
    def of(cls, alike: list[tuple[int, Count | Pair]], n_classes: int) -> _Messages:
        """Lay factors side by side."""
        nodes = [np.asarray(_nodes(factor)) for _, factor in alike]
        step = None
        if isinstance(alike[0][1], Count):
            step = np.concatenate(
                [factor.steps for _, factor in alike if isinstance(factor, Count)]
            )
        value = _value(alike[0][1])
        start = np.concatenate([[0], np.cumsum([len(each) for each in nodes])])
        told = np.zeros((start[-1], n_classes))
        flat = np.concatenate(nodes)
        places = [place for place, _ in alike]
        return cls(places, start, flat, step, value, told, is_of_one(value, step))

    def say(self, heard: Floats) -> tuple[Floats, Floats, Floats]:
        """Return messages, log Z and the probability of being broken, from what nodes say."""
        if self.of_one and self.step is not None:
            told, z = one_messages(heard, self.step, self.start, self.value)
            return told, z, np.zeros(len(z))
        by_factor = heard.reshape(len(self.place), -1, heard.shape[1])
        if self.step is not None:
            told, z, wrong = count_messages(
                by_factor, self.step.reshape(by_factor.shape), self.value
            )
            return told.reshape(heard.shape), z, wrong
        left, right = by_factor[:, 0], by_factor[:, 1]
        to_left = _log_sum(self.value + right[:, None, :])
        to_right = _log_sum(self.value.T + left[:, None, :])
        joint = self.value + left[:, :, None] + right[:, None, :]
        z = _log_sum(joint.reshape(len(joint), -1))
        wrong = np.exp(joint[:, self.value < 0.0] - z[:, None]).sum(axis=1)
        return np.stack([to_left, to_right], axis=1).reshape(heard.shape), z, wrong

    def update(self, total: Floats) -> float:
        """Take new messages, damped; return by how much they moved."""
        new, *_ = self.say(total[self.nodes] - self.told)
        new = np.maximum(new - new.max(axis=-1, keepdims=True), LOWEST)
        new = DAMPING * self.told + (1.0 - DAMPING) * new
        moved = float(np.abs(np.exp(new) - np.exp(self.told)).max())
        self.told = new
        return moved


def _nodes(factor: Count | Pair) -> Any:
    return (factor.left, factor.right) if isinstance(factor, Pair) else factor.nodes


Memory = dict[int, list[_Messages]]  # by component


# -- integer programs ------------------------------------------------------------------------------


def by_program(scores: Floats, factors: Sequence[Count | Pair]) -> AnyCodes | None:
    """Return the likeliest labels that keep all hard factors, by HiGHS; None: there are none.

    x[node, class] is 0 or 1, one class per node. A count with a hole in what it allows, or with
    soft values, has one more such variable for each sum.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    n, n_classes = scores.shape
    cost: list[Any] = list(-np.clip(scores, -1e6, 1e6).ravel())
    upper = list(np.isfinite(scores).astype(float).ravel())
    rows: list[dict[int, float]] = []
    low: list[Any] = []
    high: list[Any] = []

    def bound(row: dict[int, float], least: float, most: float) -> None:
        rows.append(row)
        low.append(float(least))
        high.append(most)

    def extra(price: float) -> int:
        cost.append(price)
        upper.append(1.0)
        return len(cost) - 1

    for node in range(n):
        bound({node * n_classes + k: 1.0 for k in range(n_classes)}, 1.0, 1.0)
    for factor in factors:
        if isinstance(factor, Pair):
            for c in range(n_classes):
                for worth in np.unique(factor.table[c][factor.table[c] != 0.0]).tolist():
                    row = {factor.left * n_classes + c: 1.0}
                    for d in np.flatnonzero(factor.table[c] == worth).tolist():
                        row[factor.right * n_classes + d] = 1.0
                    if np.isfinite(worth):
                        row[extra(-worth)] = -1.0
                    bound(row, -np.inf, 1.0)
            continue
        steps = np.asarray(factor.steps)
        inside = {
            int(node) * n_classes + int(k): float(steps[i, k])
            for i, node in enumerate(factor.nodes)
            for k in np.flatnonzero(steps[i])
        }
        most = int(steps.max(axis=1).sum())
        value = _at(np.asarray(factor.value, float), np.arange(most + 1))
        allowed = np.flatnonzero(np.isfinite(value))
        is_span = len(allowed) > 0 and np.ptp(allowed) == len(allowed) - 1
        if is_span and (value[allowed] == value[allowed[0]]).all():
            bound(inside, float(allowed[0]), float(allowed[-1]))
            continue
        sums = {extra(-float(value[c])): float(c) for c in allowed.tolist()}
        bound({**inside, **{v: -c for v, c in sums.items()}}, 0.0, 0.0)
        bound(dict.fromkeys(sums, 1.0), 1.0, 1.0)
    at = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    entries = np.concatenate([list(row.values()) for row in rows])
    columns = np.concatenate([list(row) for row in rows])
    matrix = csr_array((entries, (at, columns)), shape=(len(rows), len(cost)))
    found = milp(
        cost,
        constraints=LinearConstraint(matrix, low, high),
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, upper),
        options={"time_limit": SECONDS, "mip_rel_gap": 0.0},
    )
    if found.x is None:
        return None
    return np.asarray(found.x[: n * n_classes].reshape(n, n_classes).argmax(axis=1), np.int32)
