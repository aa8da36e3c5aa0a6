"""Joint inference of linked tasks, component by component: belief propagation and elimination.

The nodes (`nodes.py`) are numbered as they are visited, how each component is inferred and where
each link acts is planned once (`plan.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tiebreak.inference.tasks.coupling.nodes import Nodes, nodes_of
from tiebreak.inference.tasks.coupling.plan import LinkReport, Plan, plan
from tiebreak.inference.vb import LinkStep
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import for_each, softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByGroup, ByTask, Codes, Floats, Swept
from tiebreak.kernels.network import tree_spans
from tiebreak.kernels.sweeper import Logs, Sweeper
from tiebreak.links.graph import Implications, LinkCodes

if TYPE_CHECKING:
    from tiebreak.inference.tasks.coupling.link_errors import LearntRates, Rates

DAMPING = 0.3
FIRST_PASSES = 40  # of messages in large components in the first sweep; later one per sweep
CONVERGED = 1e-3  # change of beliefs below which messages count as converged
SETTLED = 1e-9  # the same where no sweep follows
LAST_DAMPINGS = (0.5, 0.8)  # tried where messages still move at the end,
LAST_PASSES = 200  # so many passes each
FALLBACK_SWEEPS = 100
LARGEST_WEIGHT = 50.0  # of a link in the fallback, where a hard one has no finite weight


@dataclass
class ExactLinks:
    """Joint inference of linked tasks: a `vb.LinkModel`. Messages stay warm between sweeps.

    Row i of `belief` and `scores` is node i.
    """

    tasks: ByTask
    implied: Implications
    soft: LinkCodes  # the links that may be wrong, between tasks
    log_odds: Floats  # (n_soft,) that the two tasks agree
    n_classes: int
    backend: Backend
    n_threads: int = 1
    unit: Codes | None = None  # (n_tasks,) equal for copies of one task; None: there are none
    plan: Plan = field(init=False)
    nodes: Nodes = field(init=False)

    may_cycle = False

    def __post_init__(self) -> None:
        self.plan = plan(self.implied, self.soft, self.n_classes)
        self.nodes = nodes_of(self.tasks, self.implied, self.plan.node, self.n_classes, self.unit)
        self._known_copies = self._count_known_copies()
        self._trees = tree_spans(self.plan.network, self.plan.n_forest)
        n_edges = len(self.plan.left)
        shape = (self.plan.network.n_nodes, self.n_classes)
        self.messages = np.ones((2 * n_edges, self.n_classes))
        self.belief = np.full(shape, 1.0 / self.n_classes)
        self.scores = np.zeros(shape)
        self._equal_in_cliques = np.zeros(n_edges)
        self._by_mean_field = False
        self.errors: LearntRates | None = None
        self.reset()

    @property
    def task(self) -> Codes:
        """The open linked tasks, in the order of their nodes."""
        return self.nodes.task

    @property
    def remembers(self) -> bool:
        """Whether messages of large components, or rates, are kept between updates."""
        return self.has_large or self.errors is not None

    @property
    def has_large(self) -> bool:
        """Whether any component is inferred approximately."""
        return self.plan.n_exact < len(self.belief)

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound at the last update; None before it."""
        return self.last_value

    def coupling(self) -> Floats:
        """Return the log-odds that the ends of each edge are equal."""
        return self.plan.coupling(self.log_odds)

    def set_log_odds(self, log_odds: Floats) -> None:
        """Change the log-odds that the two tasks of each soft link agree."""
        self.log_odds = log_odds

    def learn(self, errors: LearntRates) -> None:
        """From now on learn how often each source of soft links errs: [eq:link-errors]."""
        self.errors = errors
        self.reset()

    @property
    def rates(self) -> Rates | None:
        """Error rates of links at the last update, where they are learnt."""
        return None if self.errors is None else self.errors.rates

    def reset(self, rates: Rates | None = None) -> None:
        """Forget messages and values, as before the first update; rates begin here or anew."""
        self.messages[:] = 1.0
        self._residual = 0.0
        self._down = True  # the way that messages last went in large components
        self._joint_value: float | None = None  # of the nodes at the last update,
        self.last_value: float | None = None  # and with what the rates add
        if self.errors is not None:
            self.errors.rates = rates or self.errors.prior
            self.set_log_odds(self.errors.log_odds())

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        """Update the nodes, then the error rates; q and scores are those of other tasks."""
        swept = self.infer(*logs)
        if self.errors is None:
            return swept
        agree = self.agreement()
        entropy = self.entropy()
        moved, value = self.errors.update(agree)
        self.set_log_odds(self.errors.log_odds())
        self.last_value = entropy + value
        return swept._replace(entropy=self.last_value, change=max(swept.change, moved))

    def infer(self, log_prior: Floats, log_table: Floats) -> Swept:
        """Score the nodes, infer them jointly, and count their responses."""
        self.scores = self.nodes.score(self.backend, log_prior, log_table, self.n_threads)
        step = self._infer_nodes()
        counts, totals = self.nodes.tally(self.belief, self.backend, self.n_threads)
        return self._swept(counts, totals - self._known_copies, step)

    def _swept(self, counts: Floats, totals: Floats, step: LinkStep) -> Swept:
        # Before the first update beliefs have not seen the links: nothing has settled.
        change = np.inf if self.last_value is None else step.change
        self._joint_value = self.last_value = step.value
        return Swept(counts, totals, change, step.value)

    def probabilities(self, member_scores: Floats) -> Floats:
        """Return the class probabilities of the members where these are their scores.

        No sweep follows, so that messages in large components are passed until they converge.
        """
        self.scores = self.nodes.add_up(member_scores)
        self._infer_nodes(is_last=True)
        self.finish()
        return self.nodes.members_of(self.belief)

    def _infer_nodes(self, *, is_last: bool = False) -> LinkStep:
        """Infer the nodes jointly from their scores."""
        coupling = self.coupling()
        self.plan.weigh(self.scores, self.log_odds)
        parts = [self._infer_trees(coupling), self._infer_large(coupling, is_last=is_last)]
        if self.plan.report.small:
            parts.append(
                self.backend.eliminate(
                    self.scores, self.plan.cliques, coupling, self.belief, self._equal_in_cliques
                )
            )
        value = sum(log_partition for _, log_partition in parts)
        value -= self.backend.expected_score(self.belief, self.scores, self.n_threads)
        value += self.plan.expected(self.belief, self.log_odds)
        return LinkStep(max(change for change, _ in parts), value)

    def _infer_trees(self, coupling: Floats) -> tuple[float, float]:
        """Set the beliefs of nodes in components without loops; return change, log partition."""
        fixed = (self.scores, self.plan.network, coupling, self.messages, self.belief)
        figures = np.zeros((len(self._trees), 2))

        def infer_span(t: int) -> None:
            on = (*fixed, self._trees[t], 0.0)
            self.backend.pass_messages(*on, down=False, update_beliefs=False)
            figures[t] = self.backend.pass_messages(*on, down=True)

        for_each(infer_span, len(self._trees), self.n_threads)
        return float(figures[:, 0].max(initial=0.0)), float(figures[:, 1].sum())

    def _infer_large(self, coupling: Floats, *, is_last: bool) -> tuple[float, float]:
        """Pass messages in large components; return the largest change and the log partition."""
        self._residual = 0.0
        self._by_mean_field = False
        if not self.has_large:
            return 0.0, 0.0
        n_passes = LAST_PASSES if is_last else FIRST_PASSES if self.last_value is None else 1
        largest = log_partition = 0.0
        for _ in range(n_passes):
            self._down = not self._down
            self._residual, log_partition = self._pass_large(DAMPING, coupling, down=self._down)
            largest = max(largest, self._residual)
            if self._residual < (SETTLED if is_last else CONVERGED):
                break
        return largest, log_partition

    def _pass_large(self, damping: float, coupling: Floats, *, down: bool) -> tuple[float, float]:
        """Pass messages once in large components."""
        fixed = (self.scores, self.plan.network, coupling, self.messages, self.belief)
        span = (self.plan.n_exact, len(self.belief))
        change, log_partition = self.backend.pass_messages(*fixed, span, damping, down=down)
        return change, log_partition

    def finish(self) -> LinkReport:
        """Report how components were inferred, after a last try where messages still move.

        More damping is tried first, then mean field.
        """
        coupling = self.coupling()
        for damping in LAST_DAMPINGS:
            if self._residual < CONVERGED:
                break
            for turn in range(LAST_PASSES):
                self._residual, _ = self._pass_large(damping, coupling, down=turn % 2 == 1)
        if self._residual >= CONVERGED:
            self._fall_back_to_mean_field(coupling)
        return self.plan.report._replace(by_mean_field=self._by_mean_field)

    def _fall_back_to_mean_field(self, coupling: Floats) -> None:
        """Update the nodes of large components in turn, from their last beliefs."""
        network = self.plan.network
        weight = np.clip(coupling[network.edge], -LARGEST_WEIGHT, LARGEST_WEIGHT)
        nodes = np.arange(len(self.belief), dtype=np.int32)
        groups = ByGroup(nodes, nodes, 0.0, network.start, network.other, weight)
        turns = nodes[self.plan.n_exact :].astype(np.int64)
        for _ in range(FALLBACK_SWEEPS):
            change = self.backend.update_in_turn(self.belief, self.scores, groups, 1.0, turns)
            if change < CONVERGED:
                break
        self._residual = 0.0
        self._by_mean_field = True

    # -- what others ask -------------------------------------------------------------------------

    def counted(self, q: Floats) -> tuple[Floats, Floats]:
        """Return what linked tasks add to counts and totals at q, where those of a node differ."""
        rows = q[self.task]
        members = layout.part_of(self.tasks, self.task, q.shape[1])
        everyone = np.ones(len(rows), dtype=bool)
        counts, _ = self.backend.tally(rows, members, everyone, self.n_threads)
        return counts, self.nodes.pays @ rows

    def spread(self, q: Floats) -> None:
        """Give the linked tasks the beliefs of their nodes."""
        q[self.task] = self.nodes.members_of(self.belief)

    def entropy(self) -> float:
        """Return the joint entropy of the linked tasks at the last update."""
        assert self._joint_value is not None  # asked for after an update
        return self._joint_value - float(self.log_odds @ self.agreement())

    def agreement(self) -> Floats:
        """Return for each soft link the probability that its two tasks agree."""
        network = self.plan.network
        equal = self.backend.agreement(self.scores, network, self.coupling(), self.messages)
        in_cliques = self.plan.cliques.edge
        equal[in_cliques] = self._equal_in_cliques[in_cliques]
        return self.plan.agreement(equal, self.belief)

    def _count_known_copies(self) -> Floats:
        """Count known tasks, by class, as far as their copies have the prior for them."""
        counted = np.zeros(self.n_classes)
        if self.unit is not None:
            task, label = self.implied.known_labels()
            n_copies = np.bincount(self.unit)[self.unit[task]]
            np.add.at(counted, label, 1.0 - 1.0 / n_copies)
        return counted


@dataclass
class SubtypeLinks(ExactLinks):
    """Linked tasks whose classes have subtypes: those of a node share a class, not a subtype.

    Each member is scored alone, its class scores (the log of the sum over subtypes) are added up to
    the node, nodes are inferred as ever, and the subtypes of each member follow from its class:
    [eq:subtype-links].
    """

    n_subtypes: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        n_states = self.n_classes * self.n_subtypes
        self._members = layout.part_of(self.tasks, self.task, n_states)
        self._member_q: Floats = np.full((len(self.task), n_states), 1.0 / n_states)

    def infer(self, log_prior: Floats, log_table: Floats) -> Swept:
        """Score the members, infer their nodes jointly, and count the members' responses."""
        scores = self.backend.score_tasks(self._members, log_prior, log_table, self.n_threads)
        by_class = scores.reshape(len(scores), self.n_classes, self.n_subtypes)
        self.scores = self.nodes.add_up(np.logaddexp.reduce(by_class, axis=2))
        step = self._infer_nodes()
        within = softmax(by_class.reshape(-1, self.n_subtypes)).reshape(by_class.shape)
        of_class = self.nodes.members_of(self.belief)[:, :, None]
        logs = np.log(np.where(within > 0.0, within, 1.0))
        q = np.asarray((of_class * within).reshape(scores.shape))
        change = max(step.change, float(np.abs(q - self._member_q).max(initial=0.0)))
        self._member_q = q
        everyone = np.ones(len(q), dtype=bool)
        counts, totals = self.backend.tally(q, self._members, everyone, self.n_threads)
        entropy_within = -float((of_class * within * logs).sum())
        return self._swept(counts, totals, LinkStep(change, step.value + entropy_within))

    def spread(self, q: Floats) -> None:
        """Give the linked tasks their states."""
        q[self.task] = self._member_q
