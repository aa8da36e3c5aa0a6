"""Linked tasks, inferred jointly, component by component: belief propagation and elimination.

The open groups of linked tasks are nodes (`plan.py`). The score of a node is the sum over its
members of log prior and responses; of a member that is flipped (two classes) with the classes
exchanged; of one with subtypes over its class, [eq:subtype-links]. Nodes are inferred jointly, and
each member gets its q back from its node. At the end each gets one class, such that no hard link is
broken: components without loops and small loopy ones their likeliest joint labelling; in large
loopy ones each node takes its best class that its neighbours allow, and what is left broken is
repaired.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tiebreak.inference.climb import Problem
from tiebreak.inference.known import Known
from tiebreak.inference.tasks import Independent, Inferred, OwnRows, Parameters
from tiebreak.inference.tasks.coupling.link_errors import LearntErrors, rates_of
from tiebreak.inference.tasks.coupling.plan import (
    LinkReport,
    Plan,
    log_odds_of,
    odds_of_copies,
    plan,
)
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import entropy, for_each, likeliest, softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByGroup, Codes, Floats, Mask
from tiebreak.kernels.network import Network, tree_spans
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes, components
from tiebreak.options import ExactLinkOptions

DAMPING = 0.3
FIRST_PASSES = 40  # of messages in large components in the first sweep; later one per sweep
CONVERGED = 1e-3  # change of beliefs below which messages count as converged
SETTLED = 1e-9  # the same where no sweep follows
LAST_DAMPINGS = (0.5, 0.8)  # tried where messages still move at the end,
LAST_PASSES = 200  # so many passes each
FALLBACK_SWEEPS = 100
REPAIR_ROUNDS = 200  # of labels that break a hard link in large components
NO_LABEL = -1
LARGEST_WEIGHT = 50.0  # of a link in the fallback, where a hard one has no finite weight


class Joint(NamedTuple):
    """Joint inference of the nodes at one set of scores: what a sweep leaves for the next.

    Its arrays are overwritten by the next sweep that goes on from it.
    """

    scores: Floats  # (n_nodes, n_classes)
    belief: Floats  # (n_nodes, n_classes)
    messages: Floats  # (2 · n_edges, n_classes)
    equal: Floats  # (n_edges,) that the ends are equal, in components that are summed out
    log_odds: Floats  # (n_soft,) that the tasks of each soft link agree
    value: float = 0.0  # entropy and expected couplings
    residual: float = 0.0  # by how much beliefs still move in large components
    down: bool = True  # the way that messages last went there
    by_mean_field: bool = False  # they never converged


@dataclass(frozen=True, eq=False, kw_only=True)
class Linked(Independent):
    """Rows that links tie. The first own rows are the members of nodes, in the order of nodes."""

    n_classes: int
    implied: Implications  # links and gold, and what follows from them
    known: Known  # gold, and what follows from it
    hard: Mask  # (n_links,) which given links always hold
    plan: Plan
    node: Codes  # (n_members,)
    flip: Codes  # (n_members,) 1: the member has the other one of two classes
    log_odds: Floats  # (n_soft,) that tasks agree, where error rates are not learnt
    errors: LearntErrors | None
    backend: Backend
    n_threads: int
    membership: Any = field(init=False)  # (n_nodes, n_members) 1: is in the node
    trees: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        from scipy.sparse import csr_array  # here: plain fits do without it

        n_members = len(self.node)
        start = np.searchsorted(self.node, np.arange(self.plan.network.n_nodes + 1))
        entries = np.ones(n_members), np.arange(n_members), start
        membership = csr_array(entries, shape=(len(start) - 1, n_members))
        object.__setattr__(self, "membership", membership)
        object.__setattr__(self, "trees", tree_spans(self.plan.network, self.plan.n_forest))

    @property
    def task(self) -> Codes:
        """The members: open linked rows, in the order of their nodes."""
        assert self.own is not None  # links make some
        return self.own.at[: len(self.node)]

    @property
    def has_large(self) -> bool:
        """Whether any component is inferred approximately."""
        return self.plan.n_exact < self.plan.network.n_nodes

    # The seam

    @property
    def prior(self) -> Parameters:
        own = () if self.errors is None else (self.errors.prior,)
        return (self.shares.prior, *own)

    @property
    def exact(self) -> bool:
        return not self.has_large

    def log_evidence(self, parameters: Parameters) -> float:
        found = super().log_evidence(parameters)
        return found if self.errors is None else found + self.errors.log_evidence(parameters[1])

    def odds(self, parameters: Parameters) -> Floats:
        """Return the log-odds that the tasks of each soft link agree."""
        return self.log_odds if self.errors is None else self.errors.log_odds(parameters[1])

    def infer(self, parameters: Parameters, score: Floats, q: Floats, memory: Any) -> Inferred:
        n_members, n_states = len(self.node), score.shape[1]
        n_subtypes = n_states // self.n_classes
        by_class = score[:n_members].reshape(n_members, self.n_classes, n_subtypes)
        of_class = by_class[:, :, 0]
        if n_subtypes > 1:
            of_class = np.logaddexp.reduce(by_class, axis=2)
        joint = self.join(self.add_up(of_class), self.odds(parameters), memory)
        of_class = self.members_of(joint.belief)
        found = np.empty(score.shape)
        value = joint.value
        if n_subtypes == 1:
            found[:n_members] = of_class
        else:  # the subtypes of each member follow from its class
            within = softmax(by_class.reshape(-1, n_subtypes)).reshape(by_class.shape)
            both = of_class[:, :, None] * within
            found[:n_members] = both.reshape(n_members, n_states)
            value -= float((both * np.log(np.where(within > 0.0, within, 1.0))).sum())
        if len(score) > n_members:
            found[n_members:] = softmax(score[n_members:])
            value += entropy(found[n_members:])
        if self.errors is None:
            return Inferred(found, (), value, joint)
        agree = self.agreement(joint)
        value += self.errors.value(agree) - float(np.einsum("i,i", joint.log_odds, agree))
        added = self.errors.count(agree)
        moved = np.abs(rates_of(self.errors.prior + added) - rates_of(parameters[1]))
        return Inferred(found, (added,), value, joint, float(moved.max(initial=0.0)))

    def tally(self, q: Floats) -> Parameters:
        return () if self.errors is None else (np.zeros_like(self.errors.prior),)

    def value(self, q: Floats) -> None:
        return

    def conclude(
        self, parameters: Parameters, score: Floats | None, scale: Floats, q: Floats, memory: Any
    ) -> Inferred:
        """Infer once more: no sweep follows, so that messages are passed until they converge.

        Links keep their odds: a link is one answer, not many that err alike.
        """
        n_members = len(self.node)
        if score is None:
            found = q.copy()
            joint = memory
        else:
            found = softmax(score)
            scores = self.add_up(score[:n_members])
            joint = self.join(scores, self.odds(parameters), memory, is_last=True)
        joint = self.finish(joint)
        if score is not None or self.has_large:
            found[:n_members] = self.members_of(joint.belief)
        return Inferred(found, memory=joint)

    # Members and nodes

    def add_up(self, of_members: Floats) -> Floats:
        """Return for each node the sum over its members, (n_nodes, n_classes)."""
        if not len(of_members):
            return of_members
        return np.asarray(self.membership @ self._exchanged(of_members))

    def members_of(self, of_nodes: Floats) -> Floats:
        """Return for each member the row of its node, (n_members, n_classes)."""
        return self._exchanged(of_nodes.take(self.node, axis=0))

    def _exchanged(self, rows: Floats) -> Floats:
        """Return rows of the members with the two classes of flipped ones exchanged."""
        if not self.flip.any():
            return rows
        return np.where(self.flip[:, None] == 1, rows[:, ::-1], rows)

    # Inference of nodes

    def join(
        self, scores: Floats, log_odds: Floats, memory: Joint | None, *, is_last: bool = False
    ) -> Joint:
        """Infer the nodes jointly from their scores."""
        is_first = memory is None
        if memory is None:
            n_edges = len(self.plan.left)
            belief = np.full(scores.shape, 1.0 / self.n_classes)
            messages = np.ones((2 * n_edges, self.n_classes))
            memory = Joint(scores, belief, messages, np.zeros(n_edges), log_odds)
        coupling = self.plan.coupling(log_odds)
        self.plan.weigh(scores, log_odds)
        memory = memory._replace(scores=scores, log_odds=log_odds, residual=0.0)
        fixed = scores, self.plan.network, coupling, memory.messages, memory.belief
        of_span = np.zeros(len(self.trees))

        def infer_tree(t: int) -> None:
            on = (*fixed, self.trees[t], 0.0)
            self.backend.pass_messages(*on, down=False, update_beliefs=False)
            of_span[t] = self.backend.pass_messages(*on, down=True)[1]

        for_each(infer_tree, len(self.trees), self.n_threads)
        log_partition = float(of_span.sum())
        if self.has_large:
            n_passes = LAST_PASSES if is_last else FIRST_PASSES if is_first else 1
            enough = SETTLED if is_last else CONVERGED
            for _ in range(n_passes):
                memory, of_large = self._pass_large(memory, coupling, DAMPING)
                if memory.residual < enough:
                    break
            log_partition += of_large
        if self.plan.report.small:
            given = scores, self.plan.cliques, coupling, memory.belief, memory.equal
            log_partition += self.backend.eliminate(*given)[1]
        value = log_partition - self.backend.expected_score(memory.belief, scores, self.n_threads)
        return memory._replace(value=value + self.plan.expected(memory.belief, log_odds))

    def _pass_large(self, joint: Joint, coupling: Floats, damping: float) -> tuple[Joint, float]:
        """Pass messages once in large components, the other way than before."""
        down = not joint.down
        fixed = (joint.scores, self.plan.network, coupling, joint.messages, joint.belief)
        span = (self.plan.n_exact, len(joint.belief))
        residual, log_partition = self.backend.pass_messages(*fixed, span, damping, down=down)
        return joint._replace(residual=residual, down=down), log_partition

    def finish(self, joint: Joint) -> Joint:
        """Try once more where messages still move: more damping first, then mean field."""
        if joint.residual < CONVERGED:
            return joint
        coupling = self.plan.coupling(joint.log_odds)
        for damping in LAST_DAMPINGS:
            joint = joint._replace(down=True)
            for _ in range(LAST_PASSES):
                joint, _ = self._pass_large(joint, coupling, damping)
            if joint.residual < CONVERGED:
                return joint
        network = self.plan.network
        weight = np.clip(coupling[network.edge], -LARGEST_WEIGHT, LARGEST_WEIGHT)
        nodes = np.arange(len(joint.belief), dtype=np.int32)
        groups = ByGroup(nodes, nodes, 0.0, network.start, network.other, weight)
        turns = nodes[self.plan.n_exact :].astype(np.int64)
        for _ in range(FALLBACK_SWEEPS):
            change = self.backend.update_in_turn(joint.belief, joint.scores, groups, 1.0, turns)
            if change < CONVERGED:
                break
        return joint._replace(residual=0.0, by_mean_field=True)

    def agreement(self, joint: Joint) -> Floats:
        """Return for each soft link the probability that its two tasks agree."""
        coupling = self.plan.coupling(joint.log_odds)
        network = self.plan.network
        equal = self.backend.agreement(joint.scores, network, coupling, joint.messages)
        in_cliques = self.plan.cliques.event
        equal[in_cliques] = joint.equal[in_cliques]
        return self.plan.agreement(equal, joint.belief)

    def wrong(self, joint: Joint) -> Floats:
        """Return for each given link the probability that it is wrong; 0 for hard ones."""
        must = self.implied.given.must
        wrong = np.zeros(len(must))
        if not self.hard.all():
            agree = self.agreement(joint)
            wrong[~self.hard] = np.where(must[~self.hard], 1.0 - agree, agree)
        return wrong

    def report(self, joint: Joint) -> LinkReport:
        """Return how components were inferred."""
        return self.plan.report._replace(by_mean_field=joint.by_mean_field)


def with_links(
    plain: Problem,
    implied: Implications,
    options: ExactLinkOptions,
    weight: Floats | None = None,
    n_sources: int | None = None,
) -> Problem:
    """Return the problem with links, and with known rows and those whose class follows.

    `weight` is how often known rows count; `n_sources` of links, where it is more than these show.
    """
    wrong, right = options.error_prior
    is_learnt = options.error == "learn"
    error = None if options.error is None else wrong / (wrong + right)
    if not is_learnt and options.error is not None:
        error = float(options.error)
    links = implied.given
    n_classes = plain.n_classes
    log_odds, hard = log_odds_of(links, error, n_classes)
    soft = links.keep(~hard)
    errors = None
    if is_learnt:
        if n_sources is None:
            n_sources = 1 if links.who is None else int(links.who.max(initial=-1)) + 2
        source = np.zeros(soft.n_links, np.int32) if soft.who is None else soft.who + 1
        prior = np.empty((2, 2, n_sources))
        prior[:] = np.reshape([wrong, right], (2, 1, 1))
        errors = LearntErrors(soft.must, source, prior, odds_of_copies(soft, n_classes))
    known = Known(*known_labels(implied), weight)
    problem = known.on(plain)
    planned = plan(implied, soft, n_classes)
    place = np.flatnonzero(planned.node[implied.group] >= 0)
    place = place[np.argsort(planned.node[implied.group[place]], kind="stable")]
    task, flip, node = implied.task[place], implied.flip[place], planned.node[implied.group[place]]
    tasks = Linked(
        shares=problem.tasks.shares,
        own=_own_rows(problem, links, known, task, node, flip),
        n_classes=n_classes,
        implied=implied,
        known=known,
        hard=hard,
        plan=planned,
        node=node,
        flip=flip,
        log_odds=log_odds[~hard],
        errors=errors,
        backend=problem.backend,
        n_threads=problem.n_threads,
    )
    return problem._replace(tasks=tasks)


def known_labels(implied: Implications) -> tuple[Codes, Codes]:
    """Return the rows whose class is known or follows from known ones, and their classes."""
    task, label = implied.known_labels()
    if implied.gold is not None:
        task, first = np.unique(np.concatenate([implied.gold.task, task]), return_index=True)
        label = np.concatenate([implied.gold.label, label])[first]
    return task.astype(np.int32), label.astype(np.int32)


def _own_rows(
    problem: Problem, links: LinkCodes, known: Known, task: Codes, node: Codes, flip: Codes
) -> OwnRows:
    """Lay out the members of nodes; after them known copies, and rows that were own before.

    Duplicates are one draw of the class, whose prior they share evenly ([eq:sampling]): of three
    copies, two of them in one node, that node has 2/3 of a draw and the other one 1/3, so that it
    does not matter which copy comes first. Known copies have their share, too.
    """
    n_states = problem.n_states
    former = problem.tasks.own
    beside = np.empty(0, np.int32) if former is None else former.at[~np.isin(former.at, task)]
    unit = None
    if n_states == problem.n_classes:
        unit = units_of_copies(links, problem.rows.n_tasks)
    if unit is not None:
        n_copies = np.bincount(unit)[unit]
        beside = np.concatenate([beside, known.task[n_copies[known.task] > 1]])
    at = np.concatenate([task, beside]).astype(np.int32)
    fixed = np.zeros((len(at), n_states))
    if former is not None and former.fixed is not None:
        place = np.full(problem.rows.n_tasks, -1)
        place[former.at] = np.arange(len(former.at))
        has_some = place[at] >= 0
        fixed[has_some] = former.fixed[place[at[has_some]]]
        if former.is_prior and unit is not None:  # copies have one prior: the mean of their logs
            fixed /= n_copies[at, None]
    draws = None
    if unit is not None:
        draws = np.ones(len(at))
        draws[: len(task)] = _shares(unit, task, node, flip)
        label = np.full(problem.rows.n_tasks, -1)
        label[known.task] = known.label
        is_known = label[at] >= 0
        draws[is_known] = 1.0 / n_copies[at[is_known]]
        fixed[is_known] = np.where(np.arange(n_states) == label[at[is_known], None], 0.0, -np.inf)
    rows = layout.part_of(problem.rows, at, n_states)
    some = fixed if fixed.any() else None
    if unit is not None:
        unit = np.where(np.arange(len(at)) < len(task), unit[at], -1).astype(np.int32)
    is_prior = former is not None and former.is_prior
    return OwnRows(at, rows, draws, some, is_prior, unit)


def _shares(unit: Codes, task: Codes, node: Codes, flip: Codes) -> Floats:
    """Return how much of the prior of its class each member has.

    Copies share it evenly. Those that are one node have it together, at the first of them: where
    all are, that is one whole prior.
    """
    n_nodes = int(node.max(initial=0)) + 1
    together = (unit[task].astype(np.int64) * n_nodes + node) * 2 + flip
    _, first, n_copies = np.unique(together, return_index=True, return_counts=True)
    pays = np.zeros(len(task))
    pays[first] = n_copies / np.bincount(unit)[unit[task[first]]]
    return pays


def units_of_copies(links: LinkCodes, n_rows: int) -> Codes | None:
    """Number copies of one task alike: components of duplicates; None where there are none."""
    if links.duplicate is None or not links.duplicate.any():
        return None
    return components(n_rows, links.left[links.duplicate], links.right[links.duplicate])


# -- decoding --------------------------------------------------------------------------------------


def decode_jointly(links: Linked, joint: Joint) -> Codes:
    """Return the class of each member, decoded jointly: [eq:decode]."""
    plan = links.plan
    coupling = plan.coupling(joint.log_odds)
    label, _ = likeliest(joint.belief)
    alone = np.flatnonzero(np.diff(plan.network.start) == 0)
    of_alone = label[alone]  # keeps the first class where two are equal but for rounding
    span = (0, plan.n_forest)
    links.backend.decode_forest(joint.scores, plan.network, coupling, span, label)
    label[alone] = of_alone
    if plan.report.small:
        links.backend.decode_cliques(joint.scores, plan.cliques, coupling, label)
    if links.has_large:
        _decode_large(links, joint, coupling, label)
    return np.asarray(label[links.node] ^ links.flip)


def _decode_large(links: Linked, joint: Joint, coupling: Floats, label: Codes) -> None:
    """Give the surest nodes their class first, then repair what is broken."""
    with np.errstate(divide="ignore"):
        log_belief = np.log(joint.belief)
    nodes = np.arange(links.plan.n_exact, len(label), dtype=np.int32)
    surest_first = nodes[np.argsort(-joint.belief[nodes].max(axis=1), kind="stable")]
    label[nodes] = NO_LABEL
    network = links.plan.network
    links.backend.decode_greedily(log_belief, network, coupling, surest_first, label)
    n_alone = links.plan.report.merged  # in components without loops, which come first
    rng = np.random.default_rng(0)  # breaks ties, so that two nodes do not swap for ever
    for _ in range(REPAIR_ROUNDS):
        broken = _on_broken_links(network, coupling, label)
        if not len(broken):
            return
        noisy = log_belief.copy()
        noisy[n_alone:] += rng.gumbel(size=noisy[n_alone:].shape)
        links.backend.decode_greedily(noisy, network, coupling, rng.permutation(broken), label)
    _label_by_search(links, joint, coupling, label)


def _on_broken_links(network: Network, coupling: Floats, label: Codes) -> Codes:
    """Return the nodes at an end of a hard link that labels break."""
    owner = np.repeat(np.arange(network.n_nodes, dtype=np.int32), np.diff(network.start))
    hard = coupling[network.edge] == -np.inf
    return np.unique(owner[hard & (label[owner] == label[network.other])])


def _label_by_search(links: Linked, joint: Joint, coupling: Floats, label: Codes) -> None:
    """Take, in components still broken, any labelling that breaks nothing, if one is found."""
    from tiebreak.links.feasible import find_classes

    plan = links.plan
    hard = coupling == -np.inf
    left, right = plan.left[hard], plan.right[hard]
    component = link_graph.components(len(label), left, right)
    is_broken = np.isin(component, component[_on_broken_links(plan.network, coupling, label)])
    broken = np.flatnonzero(is_broken).astype(np.int32)
    inside = is_broken[left]
    left, right = (link_graph.places_in(broken, end[inside]) for end in (left, right))
    found = find_classes(left, right, joint.scores[broken])
    if not (found[left] == found[right]).any():
        label[broken] = found
