"""Factors: exact and approximate inference of variables that constraints and links tie.

A variable is a task, or the tasks that hard links make one. There is one kind of factor, a count:
each class of a variable adds a whole number, and the factor is worth so much by the sum. "Exactly
one of these is a cat" adds 1 for a cat and is worth 0 at 1, −∞ elsewhere. Relations of two tasks
are counts, too: a adds k, b adds K − 1 − l, and the sum is K − 1 where k = l, more where k > l.

Canonical form first: a literal whose share is known leaves and shifts the sum; literals of one
variable become one; one literal left is a row of scores. Then each component is inferred alone:

    one count    a counter passed along the literals and back, all groups side by side
    small        elimination; a count is a chain of counters, so that tables stay small however
                 long the group
    large        damped loopy belief propagation

Four tasks, two classes; exactly one of 0, 1, 2 is class 1; 2 and 3 are not both class 1:

>>> values = np.array([[-np.inf, 0, -np.inf], [0, 0, -np.inf]])
>>> step = np.tile([0, 1], (5, 1))
>>> counts = CountFactors(
...     np.array([0, 3, 5]), np.array([0, 1, 2, 2, 3]), step, np.arange(2), values
... )
>>> network = canonical(counts, np.ones((4, 2), dtype=bool))
>>> network.report
{'alone': 0, 'small': 1, 'large': 0}
>>> found = network.infer(np.zeros((4, 2)))
>>> found.q[:, 1].round(3).tolist(), np.exp(found.log_z).round(3).tolist()  # of five labellings
([0.4, 0.4, 0.2, 0.4], 5.0)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tiebreak.kernels import reference
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.kernels.network import Cliques
from tiebreak.links.elimination import Factor, lay_cliques, shape_of
from tiebreak.links.graph import AnyCodes, components

LARGEST_TABLE = 20_000  # entries of one clique
LARGEST_COMPONENT = 400_000  # of all cliques of a component: 10 ms
MOST_LOOPS = 300  # of a component that is worth a look
COMPILED = 1_000_000  # entries of tables; below, NumPy is as fast
SWEEPS = 300  # of messages in large components
DAMPING = 0.5
SETTLED = 1e-7  # change of messages
LOWEST = -1e4  # log of a message
SECONDS = 60.0  # for the joint labels of one component, and for finding a smallest conflict
LARGEST_PROGRAM = 1_000_000  # nodes times classes: beyond, nobody waits for an answer
PROVED = 2  # HiGHS: that there are none
FAR = 1 << 30  # beyond all steps
LEAST_SCORE = -1e6  # in the place of −∞, which has no odds
Steps = npt.NDArray[np.signedinteger[Any]]
Memory = dict[int, list["_Messages"]]  # by the first node of a large component


class CountFactors(NamedTuple):
    """Factor f has the literals start[f] … start[f + 1] − 1: node[i] of class k adds step[i, k].

    A sum s is worth values[value[f], s]; the last column stands for all larger sums.
    """

    start: Offsets
    node: AnyCodes
    step: Steps  # (n_literals, n_classes)
    value: AnyCodes  # (n,) the row of its values
    values: Floats  # (n_values, n_sums) log; −∞ where it cannot be

    @property
    def n(self) -> int:
        """How many factors there are (`len` counts the fields)."""
        return len(self.value)

    @property
    def owner(self) -> Offsets:
        """The factor of each literal."""
        return np.repeat(np.arange(self.n), np.diff(self.start))

    def at(self, f: AnyCodes, sums: AnyCodes) -> Floats:
        """Return what factors are worth at sums."""
        return np.asarray(self.values[self.value[f], np.minimum(sums, self.values.shape[1] - 1)])

    def worth(self, label: AnyCodes) -> Floats:
        """Return what each factor is worth by the labels of nodes."""
        steps = self.step[np.arange(len(self.node)), label[self.node]]
        sums = np.bincount(self.owner, steps, self.n).astype(np.int64)
        return self.at(np.arange(self.n), sums)

    def select(self, f: Any) -> CountFactors:
        """Return the factors at these places, or under this mask."""
        f = np.arange(self.n)[f]
        size = np.diff(self.start)[f]
        start = np.concatenate([[0], np.cumsum(size)])
        literal = np.repeat(self.start[f] - start[:-1], size) + np.arange(start[-1])
        return CountFactors(
            start, self.node[literal], self.step[literal], self.value[f], self.values
        )

    def components(self, n_nodes: int) -> AnyCodes:
        """Return the component of each node."""
        first = self.node[self.start[self.owner]]
        return components(n_nodes, first.astype(np.int32), self.node.astype(np.int32))


def joined(parts: Sequence[CountFactors]) -> CountFactors:
    """Return the factors of several tables, one after the other."""
    width = max(part.values.shape[1] for part in parts)
    values = [
        np.pad(part.values, ((0, 0), (0, width - part.values.shape[1])), mode="edge")
        for part in parts
    ]
    n_literals = np.cumsum([0, *(len(part.node) for part in parts)])
    n_values = np.cumsum([0, *(len(part.values) for part in parts)])
    starts = [part.start[1:] + n for part, n in zip(parts, n_literals, strict=False)]
    return CountFactors(
        np.concatenate([[0], *starts]),
        np.concatenate([part.node for part in parts]),
        np.concatenate([part.step for part in parts]),
        np.concatenate([part.value + n for part, n in zip(parts, n_values, strict=False)]),
        np.concatenate(values),
    )


def of_links(left: AnyCodes, right: AnyCodes, log_odds: Floats, n_classes: int) -> CountFactors:
    """Return links as factors; `log_odds` that the ends are equal, ±∞ of hard ones."""
    distinct, code = np.unique(log_odds, return_inverse=True)
    is_equal = np.arange(2 * n_classes - 1) == n_classes - 1
    values = np.where(is_equal == (distinct[:, None] > 0.0), 0.0, -np.abs(distinct[:, None]))
    up = np.arange(n_classes, dtype=np.int32)
    ends = np.column_stack([left, right]).ravel()
    step = np.tile(np.stack([up, up[::-1]]), (len(left), 1))
    return CountFactors(2 * np.arange(len(left) + 1), ends, step, code, values)


# -- canonical form --------------------------------------------------------------------------------


class Beliefs(NamedTuple):
    """What inference says at some scores."""

    q: Floats  # (n_nodes, n_classes)
    log_z: float  # approximate where messages are
    broken: Floats  # (n_factors,) the probability that each is worth less than 0
    settled: bool = True


@dataclass(frozen=True, eq=False)
class FactorNetwork:
    """Variables in canonical form, by component; what is free is a component of one."""

    given: CountFactors
    counts: CountFactors  # the same, without literals that are known
    unary: Floats  # (n_nodes, n_classes) what single literals add to scores; −∞: impossible
    why: AnyCodes  # (n_nodes, n_classes) the factor that made each impossible, or −1
    component: AnyCodes  # (n_nodes,)
    groups: list[Group]

    @property
    def report(self) -> dict[str, int]:
        """How many components are inferred in which way."""
        kinds = {"alone": Alone, "small": Small, "large": Large}
        return {
            name: sum(each.n for each in self.groups if isinstance(each, kind))
            for name, kind in kinds.items()
        }

    def infer(self, scores: Floats, memory: Memory | None = None, sweeps: int = SWEEPS) -> Beliefs:
        """Return class probabilities of all nodes, and log Z: [eq:constrained].

        `memory` keeps the messages of large components, where the next inference begins; `sweeps`
        is how often they are passed at most.
        """
        scores = np.maximum(scores, LEAST_SCORE) + self.unary
        q = _shares(scores)
        log_z = _log_sum(scores)
        size = np.diff(self.counts.start)
        known = np.flatnonzero(size == 0)
        worth = self.counts.at(known, 0 * known)
        broken = np.zeros(len(size))
        broken[known] = worth < 0.0
        total, settled = float(worth.sum()), True
        for group in self.groups:
            given = scores.take(group.nodes, axis=0), {} if memory is None else memory, sweeps
            q[group.nodes], found, broken[group.factors], is_settled = group.infer(*given)
            log_z[group.nodes] = 0.0
            total += float(found.sum())
            settled &= is_settled
        single = np.flatnonzero(size == 1)
        literal = self.counts.start[single]
        breaks = self.counts.at(single[:, None], self.counts.step[literal]) < 0.0
        broken[single] = np.where(breaks, q[self.counts.node[literal]], 0.0).sum(axis=1)
        return Beliefs(q, float(total + log_z.sum()), broken, settled)

    def decode(self, scores: Floats, q: Floats) -> AnyCodes:
        """Return labels that break no hard factor.

        Each component keeps its likeliest classes where they break nothing, and has its likeliest
        joint labelling where they do: [eq:constraint-decode].
        """
        possible = np.where(np.isneginf(self.unary), -np.inf, q)
        label: AnyCodes = possible.argmax(axis=1).astype(np.int32)
        self._repair(label, scores + self.unary, self._broken(label))
        return label

    def impossible(self) -> int | None:
        """Return a node of what cannot hold together; None where all can."""
        stuck = self._stuck()
        if len(stuck):
            return int(self.given.node[self.given.start[stuck[0]]])
        allowed = ~np.isneginf(self.unary)
        empty = np.flatnonzero(~allowed.any(axis=1))
        if len(empty):
            return int(empty[0])
        # Most rules can hold where all tasks have one class, as far as that is allowed.
        tries = [np.where(each, k, allowed.argmax(axis=1)) for k, each in enumerate(allowed.T)]
        is_broken = np.logical_and.reduce([self._broken(label) for label in tries])
        label = tries[0].astype(np.int32)
        undecided = self._repair(label, np.where(allowed, 0.0, -np.inf), is_broken)
        left = np.flatnonzero((self._broken(label) & is_broken & ~undecided)[self.component])
        return int(left[0]) if len(left) else None

    def chain(self, node: int) -> list[int]:
        """Return the factors that lead to a contradiction at a node, first ones first.

        All around it, where there is none that propagation sees.
        """
        found: list[int] = self._stuck()[:1].tolist()
        waiting = self._nodes(found[0]) if found else [node]
        if not found and not np.isneginf(self.unary[node]).all():
            component = self.given.components(len(self.unary))
            first = self.given.node[self.given.start[:-1]]
            return list(np.flatnonzero(component[first] == component[node]).tolist())
        seen: set[int] = set()
        while waiting:
            node = waiting.pop(0)
            if node not in seen:
                seen.add(node)
                for f in self.why[node][self.why[node] >= 0].tolist():
                    waiting += self._nodes(f)
                    found += [] if f in found else [f]
        return found[::-1]

    def _nodes(self, f: int) -> list[int]:
        return list(self.given.node[self.given.start[f] : self.given.start[f + 1]].tolist())

    def _stuck(self) -> AnyCodes:
        """Return the factors that are broken whatever happens."""
        known = np.flatnonzero(np.diff(self.counts.start) == 0)
        return known[np.isneginf(self.counts.at(known, 0 * known))]

    def _broken(self, label: AnyCodes) -> Mask:
        """Say of which components labels break a hard factor, or are impossible."""
        counts = self.counts
        bad = np.isneginf(counts.worth(label)) & (np.diff(counts.start) > 0)
        nodes = np.flatnonzero(np.isneginf(self.unary[np.arange(len(label)), label]))
        nodes = np.concatenate([nodes, counts.node[counts.start[:-1][bad]]])
        found = np.zeros(len(label), dtype=bool)
        found[self.component[nodes]] = True
        return found

    def _repair(self, label: AnyCodes, scores: Floats, is_broken: Mask) -> Mask:
        """Give broken components their likeliest joint labels; return which were not decided."""
        undecided = np.zeros(len(is_broken), dtype=bool)
        for group in self.groups:
            is_bad = is_broken[self.component[group.nodes]]
            if is_bad.any():
                found = group.decode(scores[group.nodes])
                if found is None:
                    undecided[self.component[group.nodes]] = True
                else:
                    label[group.nodes] = np.where(is_bad, found, label[group.nodes])
        return undecided


def canonical(counts: CountFactors, allowed: Mask) -> FactorNetwork:
    """Bring factors into canonical form: see the head of this module."""
    given = counts
    allowed = allowed.copy()
    why = np.full(allowed.shape, -1)
    counts = _one_literal_a_node(counts, len(allowed))
    n_allowed = -1
    while allowed.sum() != n_allowed and allowed.any(axis=1).all():  # what is known makes more so
        n_allowed = allowed.sum()
        counts = _without_known_literals(counts, allowed)
        _forbid(counts, allowed, why)
    values, code = np.unique(counts.values, axis=0, return_inverse=True)
    counts = counts._replace(value=code.ravel()[counts.value], values=values)
    unary = np.where(allowed, 0.0, -np.inf)
    size = np.diff(counts.start)
    single = np.flatnonzero(size == 1)
    literal = counts.start[single]
    np.add.at(unary, counts.node[literal], counts.at(single[:, None], counts.step[literal]))
    tied = np.flatnonzero(size > 1)
    component = counts.select(tied).components(len(allowed))
    return FactorNetwork(given, counts, unary, why, component, [*_groups(counts, tied, component)])


def _one_literal_a_node(counts: CountFactors, n_nodes: int) -> CountFactors:
    """Add up the steps of literals that one factor has of one node."""
    key, place = np.unique(counts.owner * n_nodes + counts.node, return_inverse=True)
    if len(key) == len(counts.node):
        return counts
    step = np.zeros((len(key), counts.step.shape[1]), np.int64)
    np.add.at(step, place, counts.step)
    owner, node = np.divmod(key, n_nodes)
    start = np.searchsorted(owner, np.arange(counts.n + 1))
    return counts._replace(start=start, node=node, step=step)


def _reach(counts: CountFactors, allowed: Mask) -> tuple[AnyCodes, AnyCodes]:
    """Return the least and the most that each literal may add."""
    can = allowed[counts.node]
    least = np.where(can, counts.step, FAR).min(axis=1, initial=FAR)
    return least.astype(np.int64), np.where(can, counts.step, -1).max(axis=1, initial=-1)


def _without_known_literals(counts: CountFactors, allowed: Mask) -> CountFactors:
    """Drop literals whose step is known, and shift the sums by it."""
    least, most = _reach(counts, allowed)
    gone = least >= most
    if not gone.any():
        return counts
    owner, n_sums = counts.owner, counts.values.shape[1]
    shift = np.bincount(owner[gone], np.maximum(most[gone], 0), counts.n).astype(np.int64)
    key, code = np.unique(
        counts.value * n_sums + np.minimum(shift, n_sums - 1), return_inverse=True
    )
    old, by = np.divmod(key, n_sums)
    values = counts.values[old[:, None], np.minimum(by[:, None] + np.arange(n_sums), n_sums - 1)]
    start = np.searchsorted(owner[~gone], np.arange(counts.n + 1))
    return CountFactors(start, counts.node[~gone], counts.step[~gone], code, values)


def _forbid(counts: CountFactors, allowed: Mask, why: AnyCodes) -> None:
    """Take away classes whose step leaves no sum that a hard factor allows."""
    least, most = _reach(counts, allowed)
    owner, last = counts.owner, counts.values.shape[1] - 1
    low, high = (np.bincount(owner, each, counts.n).astype(np.int64) for each in (least, most))
    n_fine = np.pad(np.cumsum(~np.isneginf(counts.values), axis=1), ((0, 0), (1, 0)))
    # The other literals of its factor add between `from_` and `to`, with the literal's own step.
    from_ = (low[owner] - least)[:, None] + counts.step
    to = (high[owner] - most)[:, None] + counts.step
    code = counts.value[owner, None]
    fine = n_fine[code, np.minimum(to, last) + 1] - n_fine[code, np.minimum(from_, last)]
    at, k = np.nonzero((fine <= 0) & allowed[counts.node])
    why[counts.node[at], k] = owner[at]
    allowed[counts.node[at], k] = False


def _groups(counts: CountFactors, tied: AnyCodes, component: AnyCodes) -> Iterator[Group]:
    """Say how each component is inferred, those of one shape together."""
    size = np.diff(counts.start)
    of_factor = component[counts.node[counts.start[tied]]]
    is_wide = np.bincount(counts.owner, counts.step.max(axis=1, initial=0) > 1, counts.n) > 0
    is_one = np.bincount(of_factor, minlength=len(component))[of_factor] == 1
    is_one &= ~is_wide[tied] | (size[tied] == 2)
    alone = tied[is_one]
    kinds = np.column_stack([counts.value[alone], size[alone]])
    for code, n in np.unique(kinds, axis=0).tolist():
        own = alone[(kinds == (code, n)).all(axis=1)]
        place = counts.start[own, None] + np.arange(n)
        value = _capped(counts.values[code])
        yield Alone(counts.node[place], own[:, None], counts.step[place], value)

    # Components of several factors, each shape once
    loose = tied[~is_one]
    node, start = counts.node.tolist(), counts.start.tolist()
    by_component: dict[int, list[int]] = {}
    for f, c in zip(loose.tolist(), of_factor[~is_one].tolist(), strict=True):
        by_component.setdefault(c, []).append(f)
    alike: dict[Any, list[tuple[list[int], list[int]]]] = {}
    for own in by_component.values():
        number: dict[int, int] = {}
        key = []
        for f in own:
            ends = node[start[f] : start[f + 1]]
            scope = tuple(number.setdefault(v, len(number)) for v in ends)
            step = counts.step[start[f] : start[f + 1]].tobytes()
            key.append((scope, step, int(counts.value[f])))
        alike.setdefault(tuple(key), []).append((list(number), own))
    planned: list[Any] = []
    summed_out: list[AnyCodes] = []
    asked: list[AnyCodes] = []
    for found in alike.values():
        nodes, factors = (np.array(each) for each in zip(*found, strict=True))
        local = counts.select(factors[0])
        place = np.argsort(nodes[0])
        local = local._replace(node=place[np.searchsorted(nodes[0], local.node, sorter=place)])
        shape = None
        if len(local.node) - local.n - nodes.shape[1] + 1 <= MOST_LOOPS:
            cards, tables = tables_of(local, nodes.shape[1])
            shape = shape_of(cards, tables, LARGEST_TABLE, LARGEST_COMPONENT)
        if shape is None:  # large ones one by one
            for i in range(len(nodes)):
                yield Large(nodes[i : i + 1], factors[i : i + 1], local)
            continue
        soft = factors[:, np.isfinite(local.values[local.value]).all(axis=1)]
        numbers = sum(map(np.size, asked)) + np.arange(soft.size).reshape(soft.shape)
        places = sum(map(np.size, summed_out)) + np.arange(nodes.size).reshape(nodes.shape)
        planned.append((shape, places, numbers))
        summed_out.append(nodes)
        asked.append(soft)
    if planned:
        nodes, soft = (np.concatenate([each.ravel() for each in of]) for of in (summed_out, asked))
        yield Small(nodes, soft, lay_cliques(planned), sum(map(len, summed_out)))


def _capped(value: Floats) -> Floats:
    """Drop sums that are worth the same as the last one kept: a counter need not go further."""
    differ = np.flatnonzero(value != value[-1])
    return value[: differ[-1] + 2] if len(differ) else value[:1]


def _at(value: Floats, sums: npt.NDArray[Any]) -> Floats:
    return np.asarray(value[np.minimum(sums, len(value) - 1)])


# -- one count: forward, backward ------------------------------------------------------------------


def _over(add: np.ufunc, x: Floats) -> Floats:
    """Return a sum, or maximum, over the last axis: NumPy takes 20 times as long for short ones."""
    return np.asarray(reduce(add, np.moveaxis(x, -1, 0)) if x.shape[-1] < 10 else add.reduce(x, -1))


def _log_sum(x: Floats) -> Floats:
    """Return the log of the sum over the last axis."""
    if x.shape[-1] == 2:
        return np.asarray(np.logaddexp(x[..., 0], x[..., 1]))
    most = _over(np.maximum, x)
    safe = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(_over(np.add, np.exp(x - safe[..., None]))) + safe)


def _shares(logs: Floats) -> Floats:
    """Return the softmax over the last axis."""
    with np.errstate(invalid="ignore"):
        if logs.shape[-1] == 2:
            gap = logs[..., 1] - logs[..., 0]
            return np.stack([expit(-gap), expit(gap)], axis=-1)
        return np.asarray(np.exp(logs - _log_sum(logs)[..., None]))


@dataclass(frozen=True, eq=False)
class Alone:
    """Components of one count each, with the same values, side by side."""

    nodes: AnyCodes  # (n_components, n)
    factors: AnyCodes  # (n_components, 1)
    step: Steps  # (n_components, n, n_classes); none above 1 where there are more than two nodes
    value: Floats

    def infer(
        self, scores: Floats, memory: Memory, sweeps: int
    ) -> tuple[Floats, Floats, Floats, bool]:
        told, log_z, broken = count_messages(scores, self.step, self.value)
        return _shares(told + scores), log_z, broken[:, None], True

    @property
    def n(self) -> int:
        return len(self.nodes)

    def decode(self, scores: Floats) -> AnyCodes:
        """Return the likeliest joint labels."""
        step, n = self.step, scores.shape[1]
        if n == 2:
            sums = step[:, 0, :, None] + step[:, 1, None, :]
            joint = scores[:, 0, :, None] + scores[:, 1, None, :] + _at(self.value, sums)
            best = joint.reshape(len(joint), -1).argmax(axis=1)
            return np.column_stack(np.divmod(best, scores.shape[2])).astype(np.int32)
        inside = np.where(step == 1, scores, -np.inf)
        outside = np.where(step == 0, scores, -np.inf)
        with np.errstate(invalid="ignore"):
            gain = np.nan_to_num(inside.max(axis=2) - outside.max(axis=2), nan=0.0)
        order = np.argsort(-gain, axis=1, kind="stable")
        sums = np.cumsum(np.clip(np.take_along_axis(gain, order, 1), -1e300, 1e300), axis=1)
        worth = np.pad(sums, ((0, 0), (1, 0))) + _at(self.value, np.arange(n + 1))
        holds = np.argsort(order, axis=1) < worth.argmax(axis=1)[:, None]
        return np.asarray(np.where(holds, inside.argmax(axis=2), outside.argmax(axis=2)), np.int32)


def count_messages(scores: Floats, step: Steps, value: Floats) -> tuple[Floats, Floats, Floats]:
    """Return what counts with the same values say to their nodes: [eq:count-messages].

    scores and step are (n_groups, n, n_classes); also returned are log Z and the probability that
    a count is broken, (n_groups,). A counter is passed along the literals and back; it stops where
    sums are worth the same.
    """
    n_groups, n, n_classes = scores.shape
    if is_of_one(value, step):
        start = np.arange(0, n_groups * n + 1, n)
        flat = scores.reshape(-1, n_classes), step.reshape(-1, n_classes)
        told, log_z = one_messages(flat[0], flat[1], start, value)
        return told.reshape(scores.shape), log_z, np.zeros(n_groups)
    sizes = range(int(step.max(initial=0)) + 1)
    cap = len(value) - 1
    onward = [np.minimum(np.arange(cap + 1) + s, cap) for s in sizes]
    adds = np.stack([_log_sum(np.where(step == s, scores, -np.inf)) for s in sizes])
    forward = np.full((n + 1, n_groups, cap + 1), -np.inf)
    forward[0, :, 0] = 0.0
    for i in range(n):
        for s in sizes:
            moved = forward[i] + adds[s, :, i, None]
            kept = max(cap + 1 - s, 0)  # the others stop at the cap
            if kept:
                np.logaddexp(forward[i + 1, :, s:], moved[:, :kept], out=forward[i + 1, :, s:])
            if kept <= cap:
                stopped = forward[i + 1, :, cap], _log_sum(moved[:, kept:])
                forward[i + 1, :, cap] = np.logaddexp(*stopped)
    told = np.empty((len(sizes), n_groups, n))
    backward = np.broadcast_to(value, (n_groups, cap + 1))
    for i in range(n - 1, -1, -1):
        arrived = [backward[:, onward[s]] for s in sizes]
        for s in sizes:
            told[s, :, i] = _log_sum(forward[i] + arrived[s])
        backward = np.logaddexp.reduce([adds[s, :, i, None] + arrived[s] for s in sizes])
    end = forward[n] + value
    log_z = _log_sum(end)
    with np.errstate(invalid="ignore"):
        broken = np.exp(_log_sum(np.where(value < 0.0, end, -np.inf)) - log_z)
    message = np.take_along_axis(told, step.transpose(2, 0, 1), axis=0).transpose(1, 2, 0)
    return message, log_z, broken


def is_of_one(value: Floats, step: Steps) -> bool:
    """Say whether a count allows none, one or both, and no more: messages are closed then."""
    return bool(len(value) == 3 and np.isneginf(value[2]) and step.max(initial=0) <= 1)


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


# -- small components: elimination -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Small:
    """Components of several counts that are summed out, all together."""

    nodes: AnyCodes  # (n_nodes,)
    factors: AnyCodes  # (n_asked,) soft ones: whether they are broken is asked
    cliques: Cliques
    n: int  # how many components

    def infer(
        self, scores: Floats, memory: Memory, sweeps: int
    ) -> tuple[Floats, Floats, Floats, bool]:
        q, broken = np.zeros(scores.shape), np.zeros(len(self.factors))
        nothing = np.zeros(len(self.factors))
        _, log_z = self._backend().eliminate(scores, self.cliques, nothing, q, broken)
        return q, np.array([log_z]), broken, True

    def decode(self, scores: Floats) -> AnyCodes:
        """Return the likeliest joint labels."""
        label = np.zeros(len(scores), dtype=np.int32)
        nothing = np.zeros(len(self.factors))
        self._backend().decode_cliques(scores, self.cliques, nothing, label)
        return label

    def _backend(self) -> Any:
        if len(self.cliques.up) < COMPILED:
            return reference
        from tiebreak.kernels import compiled

        return compiled


def tables_of(counts: CountFactors, n_nodes: int) -> tuple[list[int], list[Factor]]:
    """Return numbers of states, of nodes and counters, and tables over them: one component's."""
    cards = [counts.step.shape[1]] * n_nodes
    tables: list[Factor] = []
    for f in range(counts.n):
        own = slice(counts.start[f], counts.start[f + 1])
        value = _capped(counts.values[counts.value[f]])
        ends, steps = counts.node[own].tolist(), counts.step[own]
        sums: Any = steps[0]  # of the literals so far, by the classes of `scope`
        scope: tuple[int, ...] = (ends[0],)
        for node, step in zip(ends[1:], steps[1:], strict=True):
            if len(ends) > 2:  # a counter goes between, so that no table has more than three axes
                states = np.arange(min(int(sums.max()) + 1, len(value)))
                counter = np.where(states == np.minimum(sums, states[-1])[..., None], 0.0, -np.inf)
                cards.append(len(states))
                tables.append(((*scope, len(cards) - 1), counter, None))
                scope, sums = (len(cards) - 1,), states
            sums, scope = sums[:, None] + step, (*scope, node)
        worth = _at(value, sums)
        tables.append((scope, worth, worth < 0.0 if np.isfinite(value).all() else None))
    return cards, tables


# -- large components: messages --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Large:
    """One component that is too large to sum out: damped loopy belief propagation."""

    nodes: AnyCodes  # (1, n_nodes)
    factors: AnyCodes  # (1, n_factors)
    counts: CountFactors  # their nodes by place in `nodes`
    n = 1

    def infer(
        self, scores: Floats, memory: Memory, sweeps: int
    ) -> tuple[Floats, Floats, Floats, bool]:
        """Pass messages until they settle; log Z is Bethe's."""
        (scores,) = scores
        batches = memory.setdefault(int(self.nodes[0, 0]), [])
        if not batches:
            batches += self._batches()
        settled = False
        for _ in range(sweeps):
            total = _total(scores, batches)
            moved = max(batch.update(total) for batch in batches)
            if moved <= SETTLED:
                settled = True
                break
        total = _total(scores, batches)
        own = _log_sum(total)
        log_z = own.sum()
        broken = np.zeros(self.factors.shape)
        for batch in batches:
            _, z, broken[0, batch.f] = batch.say(total[batch.counts.node] - batch.told)
            log_z += z.sum() - own[batch.counts.node].sum()
        return np.exp(total - own[:, None])[None], np.array([log_z]), broken, settled

    def decode(self, scores: Floats) -> AnyCodes | None:
        """Return the likeliest joint labels; None: not in time."""
        found = by_program(scores[0], self.counts)
        return None if found is None else found[None]

    def _batches(self) -> Iterator[_Messages]:
        """Lay factors of one value, and one size where that matters, side by side."""
        counts = self.counts
        is_wide = np.bincount(counts.owner, counts.step.max(axis=1) > 1, counts.n) > 0
        size = np.diff(counts.start)
        for code in np.unique(counts.value).tolist():
            value = _capped(counts.values[code])
            closed = len(value) == 3 and np.isneginf(value[2])
            kind = np.where(closed & ~is_wide, 0, size)
            for n in np.unique(kind[counts.value == code]).tolist():
                f = np.flatnonzero((counts.value == code) & (kind == n))
                yield _Messages(f, counts.select(f), value, n)


def _total(scores: Floats, batches: list[_Messages]) -> Floats:
    total = scores.copy()
    for batch in batches:
        for k in range(scores.shape[1]):
            total[:, k] += np.bincount(batch.counts.node, batch.told[:, k], len(scores))
    return total


class _Messages:
    """Factors of one value, and what they tell their nodes; literals lie end to end."""

    def __init__(self, f: AnyCodes, counts: CountFactors, value: Floats, size: int) -> None:
        self.f, self.counts, self.value = f, counts, value
        self.size = size  # of all; 0: of none or one, whose messages are closed
        self.told = np.zeros(counts.step.shape)
        self.shares = np.ones(counts.step.shape)  # the same, not in logs

    def say(self, heard: Floats) -> tuple[Floats, Floats, Floats]:
        """Return messages, log Z and the probability of being broken, from what nodes say."""
        step = self.counts.step
        if not self.size:
            told, log_z = one_messages(heard, step, self.counts.start, self.value)
            return told, log_z, np.zeros(len(log_z))
        shape = (-1, self.size, heard.shape[1])
        told, *rest = count_messages(heard.reshape(shape), step.reshape(shape), self.value)
        return told.reshape(heard.shape), rest[0], rest[1]

    def update(self, total: Floats) -> float:
        """Take new messages, damped; return by how much they moved."""
        new, *_ = self.say(total[self.counts.node] - self.told)
        new = np.maximum(new - _over(np.maximum, new)[:, None], LOWEST)
        new = DAMPING * self.told + (1.0 - DAMPING) * new
        former, self.shares = self.shares, np.exp(new)
        self.told = new
        return float(np.abs(self.shares - former).max())


Group = Alone | Small | Large


# -- integer programs ------------------------------------------------------------------------------


def by_program(scores: Floats, counts: CountFactors) -> AnyCodes | None:
    """Return the likeliest labels that keep all hard factors, by HiGHS; None: not in time.

    The likeliest single ones, where there are none.
    x[node, class] is 0 or 1, one class per node. A count with a hole in what it allows, or with
    soft values, has one more such variable for each sum.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    n, n_classes = scores.shape
    if scores.size > LARGEST_PROGRAM:
        return None
    cost: list[Any] = list(-np.clip(scores, -1e6, 1e6).ravel())
    upper = list(np.isfinite(scores).astype(float).ravel())
    rows: list[dict[int, float]] = []
    bounds: list[tuple[float, float]] = []

    def bound(row: dict[int, float], least: float, most: float) -> None:
        rows.append(row)
        bounds.append((least, most))

    def extra(price: float) -> int:
        cost.append(price)
        upper.append(1.0)
        return len(cost) - 1

    for node in range(n):
        bound({node * n_classes + k: 1.0 for k in range(n_classes)}, 1.0, 1.0)
    for f in range(counts.n):
        own = slice(counts.start[f], counts.start[f + 1])
        value, steps = counts.values[counts.value[f]], counts.step[own]
        first = counts.node[own] * n_classes
        if len(steps) == 2:  # of each class of one end, with what it goes badly
            table = _at(value, steps[0][:, None] + steps[1])
            for c in range(n_classes):
                for worth in np.unique(table[c][table[c] != 0.0]).tolist():
                    row = {int(first[0]) + c: 1.0}
                    for d in np.flatnonzero(table[c] == worth).tolist():
                        row[int(first[1]) + d] = 1.0
                    if np.isfinite(worth):
                        row[extra(-worth)] = -1.0
                    bound(row, -np.inf, 1.0)
            continue
        at, k = np.nonzero(steps)
        inside = dict(
            zip((first[at] + k).tolist(), steps[at, k].astype(float).tolist(), strict=True)
        )
        worths = _at(value, np.arange(steps.max(axis=1).sum() + 1))
        allowed = np.flatnonzero(np.isfinite(worths))
        is_span = len(allowed) > 0 and np.ptp(allowed) == len(allowed) - 1
        if is_span and (worths[allowed] == worths[allowed[0]]).all():
            bound(inside, float(allowed[0]), float(allowed[-1]))
            continue
        sums = {extra(-float(worths[c])): float(c) for c in allowed.tolist()}
        bound({**inside, **{v: -c for v, c in sums.items()}}, 0.0, 0.0)
        bound(dict.fromkeys(sums, 1.0), 1.0, 1.0)
    at = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    entries = np.concatenate([list(row.values()) for row in rows])
    columns = np.concatenate([list(row) for row in rows])
    matrix = csr_array((entries, (at, columns)), shape=(len(rows), len(cost)))
    found = milp(
        cost,
        constraints=LinearConstraint(matrix, *np.array(bounds).T),
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, upper),
        options={"time_limit": SECONDS, "mip_rel_gap": 0.0},
    )
    if found.x is None:
        return scores.argmax(axis=1) if found.status == PROVED else None
    return np.asarray(found.x[: n * n_classes].reshape(n, n_classes).argmax(axis=1), np.int32)


# -- what cannot hold ------------------------------------------------------------------------------


def smallest_conflict(counts: CountFactors, allowed: Mask) -> list[int]:
    """Return the places of factors that cannot hold together, none of which can be spared.

    Empty where all can hold, as far as that is decided in time.

    >>> values = np.array([[-np.inf, 0.0, -np.inf], [-np.inf, 0.0, 0.0]])  # exactly one; known
    >>> step, start = np.tile([0, 1], (4, 1)), np.array([0, 2, 3, 4])
    >>> counts = CountFactors(start, np.array([0, 1, 0, 1]), step, np.array([0, 1, 1]), values)
    >>> smallest_conflict(counts, np.ones((2, 2), dtype=bool))
    [2, 1, 0]
    """

    def contradiction(chosen: list[int]) -> list[int]:
        network = canonical(counts.select(np.array(chosen, dtype=np.int64)), allowed)
        node = network.impossible()
        return [] if node is None else [chosen[i] for i in network.chain(node)]

    left = contradiction(list(range(counts.n)))
    last = monotonic() + SECONDS
    size = len(left) // 2
    while size and monotonic() < last:  # whole pieces first, then one by one
        at = 0
        while at < len(left) and monotonic() < last:
            kept = set(contradiction(left[:at] + left[at + size :]))
            left, at = ([f for f in left if f in kept], at) if kept else (left, at + size)
        size //= 2
    return contradiction(left) or left
