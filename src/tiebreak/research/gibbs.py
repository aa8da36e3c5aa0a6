"""Collapsed Gibbs sampling: Kim and Ghahramani's BCC, with links and gold.

Parameters are integrated out, so that the probability of a task's class, given the classes of all
others, is a product of shares of counts, [eq:gibbs]. Tasks that links tie are drawn together, from
the list of all labellings of their component that keep its hard links. A component with too many
labellings is cut into parts at random, and each part is drawn given the rest of it.

Three tasks with two classes, of which the second and third must differ, make two blocks:

    tasks (0), labellings (0) (1)          tasks (1, 2), labellings (0, 1) (1, 0)

Nothing is kept per draw but a few numbers that show whether chains agree. Probabilities are means
of those from which classes were drawn, and moments of confusions are those given the classes,
averaged over draws: both vary less than shares of draws (Rao and Blackwell).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

import numba
import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

import tiebreak as tb
from tiebreak.errors import ConvergenceWarning, OptionError, sentence, warn
from tiebreak.estimators.base import Estimator
from tiebreak.inference import dirichlet
from tiebreak.inference.door import Inputs
from tiebreak.inference.stages import q_of_model
from tiebreak.inference.tasks.coupling.linked import units_of_copies
from tiebreak.inference.tasks.coupling.plan import log_odds_of
from tiebreak.links import OnContradiction
from tiebreak.links.graph import components, violated
from tiebreak.options import ExactLinkOptions, check_common
from tiebreak.research import messages  # noqa: F401

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[Any]

MIXED = 1.05  # R-hat up to which chains count as mixed
MOST_LABELLINGS = 1024  # of tasks that are drawn together
N_CUTS = 16  # ways to cut large components, taken in turn
MOST_WATCHED = 200  # workers whose accuracy is compared between chains: the busiest
OPEN = -1  # no class yet, or none known
SMALL = 1e-200  # a product below is turned into a logarithm


class PosteriorMoments(NamedTuple):
    """First and second moments, means over draws."""

    confusion: Floats  # E[θ], (n_workers, answer, class)
    confusion_square: Floats  # E[θ²]
    accuracy: Floats  # E[Σ π θ], (n_workers,)
    accuracy_square: Floats
    class_prior: Floats  # E[π], (n_classes,)


class Blocks(NamedTuple):
    """Tasks drawn together, task[start[b]:start[b + 1]], and their labellings, one after another.

    The labellings of block b are choice[first[b]:first[b + 1]], a class for each of its tasks.
    """

    start: Codes
    task: Codes
    first: Codes
    choice: Codes


class Graph(NamedTuple):
    """What stays fixed while chains run: responses, couplings between tasks, blocks."""

    start: Codes  # (n_tasks + 1,): the responses of a task are code[start[t]:start[t + 1]]
    code: Codes
    weight: Floats
    pays: npt.NDArray[np.bool_]  # (n_tasks,) which tasks are draws from the class prior
    other_start: Codes  # (n_tasks + 1,)
    other: Codes  # the tasks that links tie to each task,
    log_odds: Floats  # and the log-odds that their classes are equal; −∞: never
    cuts: list[Blocks]  # sweeps take them in turn
    component: Codes  # (n_tasks,)
    known: Codes  # (n_tasks,) the class of a task, or OPEN
    is_cut: npt.NDArray[np.bool_]  # (n_tasks,) which components are drawn in parts
    is_hard: npt.NDArray[np.bool_]  # (n_links,) which links always hold


class DrawCounts(NamedTuple):
    """Prior counts plus what the drawn classes add; drawing changes them in place."""

    of_class: Floats  # (n_classes,)
    of_code: Floats  # (n_workers * n_classes, n_classes): answer by truth
    of_worker: Floats  # (n_workers, n_classes): sums of `of_code` over answers


class GibbsSampler(Estimator):
    """Draw labels and workers from the exact posterior of the model of `VariationalBayes`.

    Slower than variational Bayes by a factor of a hundred, and right in the limit of many draws:
    the oracle for intervals and probabilities. Probabilities are as the model says: they are not
    scaled by how much errors are shared.

    Parameters
    ----------
    class_prior, confusion_prior, trust, on_contradiction
        As in `VariationalBayes`.
    link_options
        `ExactLinkOptions(error=…)`: how often links without weight are wrong; None: never.
    n_chains, n_warmup, n_draws
        How many chains, the sweeps of each that are dropped first, and those that are kept.
    progress
        Whether to show a bar on the terminal.
    random_state
        Seeds all draws; None is 0, so that the same input gives the same output.

    Attributes
    ----------
    labels_, probabilities_, confusion_, class_prior_
        The labels; (n_tasks, n_classes); E[θ], (n_workers, truth, answer); E[π], (n_classes,).
    r_hat_
        The largest R-hat over shares of classes and accuracies of workers: near 1 where all
        chains agree. Above 1.05 a warning says so, and `converged_` is False.

    Examples
    --------
    >>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("b", "bob", "y")]
    >>> GibbsSampler(n_draws=200).fit(votes).labels_.best()
    {'a': 'x', 'b': 'y'}
    """

    r_hat_: float
    moments_: PosteriorMoments

    def __init__(
        self,
        *,
        class_prior: dirichlet.ClassPriorOption = 1.0,
        confusion_prior: dirichlet.ConfusionPrior = "diagonal",
        trust: dirichlet.Trust | None = None,
        link_options: ExactLinkOptions | None = None,
        on_contradiction: OnContradiction = "error",
        n_chains: int = 4,
        n_warmup: int = 200,
        n_draws: int = 500,
        progress: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.class_prior = class_prior
        self.confusion_prior = confusion_prior
        self.trust = trust
        self.link_options = link_options
        self.on_contradiction = on_contradiction
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.progress = progress
        self.random_state = random_state

    def fit(
        self,
        responses: Any,
        *,
        links: Any = None,
        gold: Any = None,
        start: Any = None,
        constraints: Any = None,
    ) -> Self:
        """Draw; chains begin at draws from the votes, or from the end of a fitted model."""
        check_common(self.get_params())
        if not isinstance(self.link_options, ExactLinkOptions | None):
            raise OptionError("gibbs-link-options", given=self.link_options)
        if isinstance(self.link_error, str):
            raise OptionError("gibbs-learnt-links")
        if constraints is not None:
            raise OptionError("no-constraints", what=type(self).__name__)
        inputs = self._read_inputs(responses, links, gold)
        seeds = np.random.SeedSequence(self.random_state or 0).spawn(self.n_chains + 1)
        graph = _graph(inputs, self.link_error, np.random.default_rng(seeds[0]))
        crowd = inputs.responses
        prior = dirichlet.confusion_prior(self.confusion_prior, crowd.workers, crowd.n_classes)
        if self.trust is not None:
            prior = prior + dirichlet.trusted_answers(self.trust, crowd.workers, crowd.n_classes)
        shape = (crowd.n_workers, crowd.n_classes, crowd.n_classes)
        prior = np.broadcast_to(prior, shape)
        counts = DrawCounts(
            dirichlet.class_prior(self.class_prior, crowd.n_classes),
            np.array(prior.reshape(-1, crowd.n_classes), order="C"),
            prior.sum(axis=1),
        )
        if start is None:
            q = tb.MajorityVote().fit(crowd).probabilities_
        elif hasattr(start, "probabilities_"):
            q = q_of_model(start, crowd)
        else:
            raise OptionError("gibbs-start", given=start)
        feasible = self._feasible(inputs, graph)
        chains = []
        for seed in seeds[1:]:
            own = DrawCounts(*map(np.copy, counts))
            rng = np.random.default_rng(seed)
            state = _first_state(graph, q, feasible, rng)
            chains.append(self._run_chain(graph, own, state, rng))
        self._publish_chains(inputs, graph, *zip(*chains, strict=True))
        return self

    def _feasible(self, inputs: Inputs, graph: Graph) -> Codes | None:
        """Return labels that keep all hard links; None: each block alone can keep its own."""
        if not (graph.is_cut.any() and np.isneginf(graph.log_odds).any()):
            return None
        model = tb.VariationalBayes(
            link_options=self.link_options, on_contradiction="drop", calibrate="none"
        )
        fitted = model.fit(inputs.responses, links=inputs.links, gold=inputs.gold)
        return fitted.labels_.label

    def _run_chain(
        self, graph: Graph, counts: DrawCounts, state: Codes, rng: np.random.Generator
    ) -> tuple[Floats, Codes, PosteriorMoments, Floats]:
        """Draw all blocks again and again; keep what comes after the warm-up.

        Return the mean q, the last draw, moments, and by draw what chains are compared by: shares
        of classes and accuracies of the busiest workers.
        """
        n_classes = len(counts.of_class)
        task = np.repeat(np.arange(len(state)), np.diff(graph.start))
        worker = graph.code // n_classes
        np.add.at(counts.of_class, state[graph.pays], 1.0)
        np.add.at(counts.of_code, (graph.code, state[task]), graph.weight)
        np.add.at(counts.of_worker, (worker, state[task]), graph.weight)
        marginal = np.zeros((len(state), n_classes))
        busiest = np.argsort(-np.bincount(worker), kind="stable")[:MOST_WATCHED]
        sums: list[Any] = [0.0] * len(PosteriorMoments._fields)
        watched = []
        for sweep in _shown(range(self.n_warmup + self.n_draws), is_shown=self.progress):
            if sweep == self.n_warmup:
                marginal[:] = 0.0
            blocks = graph.cuts[sweep % len(graph.cuts)]
            _sweep(graph[:7], blocks, counts, state, rng.random(len(blocks.start) - 1), marginal)
            if sweep >= self.n_warmup:
                now = moments_of(counts)
                sums = [total + each for total, each in zip(sums, now, strict=True)]
                watched.append(np.concatenate([now.class_prior, now.accuracy[busiest]]))
        marginal /= self.n_draws
        never_drawn = marginal.sum(axis=1) == 0.0
        marginal[never_drawn, state[never_drawn]] = 1.0
        moments = PosteriorMoments(*(total / self.n_draws for total in sums))
        return marginal, state, moments, np.array(watched)

    def _publish_chains(
        self, inputs: Inputs, graph: Graph, marginals: Any, states: Any, moments: Any, watched: Any
    ) -> None:
        self.moments_ = PosteriorMoments(
            *(np.mean(each, axis=0) for each in zip(*moments, strict=True))
        )
        self.confusion_ = np.ascontiguousarray(self.moments_.confusion.transpose(0, 2, 1))
        self.class_prior_ = self.moments_.class_prior
        self.bounds_ = []
        self.n_iter_ = self.n_warmup + self.n_draws
        self.r_hat_ = float(r_hat(np.stack(watched)).max())
        self.converged_ = self.r_hat_ <= MIXED
        q = np.mean(marginals, axis=0)
        self._publish(inputs, q, _labels(inputs, graph, q, np.stack(states)))
        if not self.converged_:
            told = sentence("gibbs-not-mixed", {"r_hat": self.r_hat_, "most": MIXED})
            warn(told, ConvergenceWarning)


def _shown(sweeps: Iterable[int], *, is_shown: bool) -> Iterable[int]:
    """Return the sweeps of a chain, with a bar on the terminal where one is asked for."""
    if not is_shown:
        return sweeps
    from rich.console import Console
    from rich.progress import track

    return track(sweeps, "drawing", console=Console(stderr=True), transient=True)


def _labels(inputs: Inputs, graph: Graph, q: Floats, states: Codes) -> Codes:
    """Return the likeliest class of each task; where these break hard links, a drawn labelling.

    Draws keep all hard links. A component whose likeliest classes break one takes, of the last
    draws of the chains, the one whose classes are likeliest.
    """
    label: Codes = q.argmax(axis=1).astype(np.int32)
    links = inputs.link_codes
    if links is None:
        return label
    broken = violated(label, links) & graph.is_hard
    wrong = np.isin(graph.component, graph.component[links.left[broken]])
    tasks = np.arange(len(q))
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(q), -1e3)  # a class that one chain alone has drawn
    scores = [np.bincount(graph.component, logs[tasks, state]) for state in states]
    best = np.argmax(scores, axis=0)[graph.component]
    return np.where(wrong, states[best, tasks], label).astype(np.int32)


# What is drawn together -------------------------------------------------------------------------


def _graph(inputs: Inputs, error: float | None, rng: np.random.Generator) -> Graph:
    """Say which tasks are drawn together."""
    crowd = inputs.responses
    n_tasks, n_classes = crowd.n_tasks, crowd.n_classes
    known = np.full(n_tasks, OPEN, dtype=np.int32)
    if inputs.gold_codes is not None:
        known[inputs.gold_codes.task] = inputs.gold_codes.label
    pays = np.ones(n_tasks, dtype=bool)
    group: Codes = np.arange(n_tasks)
    component = group
    left: Codes = np.empty(0, dtype=np.int64)
    right = left
    log_odds = np.empty(0)
    hard = np.empty(0, dtype=bool)
    links = inputs.link_codes
    if links is not None:
        left, right = links.left, links.right
        log_odds, hard = log_odds_of(links, error, max(n_classes, 2))
        group = components(n_tasks, left[hard & links.must], right[hard & links.must])
        component = components(n_tasks, left, right)
        apart = ~(hard & links.must)
        left, right, log_odds = left[apart], right[apart], log_odds[apart]
        unit = units_of_copies(links, n_tasks)
        if unit is not None:  # copies of one task are one draw from the class prior
            open_first = np.argsort(known != OPEN, kind="stable")
            pays[:] = False
            pays[open_first[np.unique(unit[open_first], return_index=True)[1]]] = True
    task = np.concatenate([left, right])
    order = np.argsort(task, kind="stable")
    ends = np.cumsum(np.bincount(task, minlength=n_tasks))
    graph = Graph(
        crowd.start,
        crowd.code,
        crowd.weight_of_each(),
        pays,
        np.concatenate([[0], ends]).astype(np.int64),
        np.concatenate([right, left])[order].astype(np.int64),
        np.concatenate([log_odds, log_odds])[order],
        [],
        component,
        known,
        np.zeros(n_tasks, dtype=bool),
        hard,
    )
    return graph._replace(cuts=_cuts(graph, group, n_classes, rng))


def _cuts(graph: Graph, group: Codes, n_classes: int, rng: np.random.Generator) -> list[Blocks]:
    """Return blocks that cover every open task: whole components where they are small."""
    size = np.bincount(graph.component)
    alone = np.flatnonzero((size[graph.component] == 1) & (graph.known == OPEN))
    single = Blocks(
        np.arange(len(alone) + 1),
        alone,
        np.arange(len(alone) + 1) * n_classes,
        np.tile(np.arange(n_classes), len(alone)),
    )
    linked = np.flatnonzero(size[graph.component] > 1)
    order = linked[np.argsort(graph.component[linked], kind="stable")]
    members = np.split(order, np.flatnonzero(np.diff(graph.component[order])) + 1)
    small: list[tuple[Codes, Codes]] = []
    large: list[Codes] = []
    for tasks in members if len(order) else []:
        found = _labellings(graph, group, tasks, n_classes)
        if found is None:
            large.append(tasks)
            graph.is_cut[tasks] = True
        elif len(found) > 1 or graph.known[tasks[0]] == OPEN:
            small.append((tasks, found))
    cuts = []
    for _ in range(N_CUTS if large else 1):
        parts = [part for tasks in large for part in _cut(graph, group, tasks, n_classes, rng)]
        cuts.append(_joined(single, [*small, *parts]))
    return cuts


def _labellings(graph: Graph, group: Codes, tasks: Codes, n_classes: int) -> Codes | None:
    """List all labellings of some tasks that keep the hard links among them, (n, n_tasks).

    None: there are more than are drawn together.
    """
    groups, member = np.unique(group[tasks], return_inverse=True)
    known = np.full(len(groups), OPEN)
    np.maximum.at(known, member, graph.known[tasks])
    place: dict[int, int] = dict(zip(tasks.tolist(), member.tolist(), strict=True))
    apart: list[set[int]] = [set() for _ in groups]  # earlier groups that must differ
    for task, own in place.items():
        for at in range(graph.other_start[task], graph.other_start[task + 1]):
            other = place.get(int(graph.other[at]), own)
            if np.isneginf(graph.log_odds[at]) and other < own:
                apart[own].add(other)
    found: list[list[int]] = [[]]
    for own in range(len(groups)):
        classes = range(n_classes) if known[own] == OPEN else (int(known[own]),)
        found = [
            [*before, k]
            for before in found
            for k in classes
            if all(before[other] != k for other in apart[own])
        ]
        if len(found) > MOST_LABELLINGS:
            return None
    return np.array(found, dtype=np.int64)[:, member]


def _cut(
    graph: Graph, group: Codes, tasks: Codes, n_classes: int, rng: np.random.Generator
) -> Iterator[tuple[Codes, Codes]]:
    """Cut a large component into parts around tasks drawn at random."""
    most = int(math.log(MOST_LABELLINGS) / math.log(n_classes))  # groups of one part
    members: dict[int, list[int]] = {}
    for task in tasks.tolist():
        members.setdefault(int(group[task]), []).append(task)
    left = dict.fromkeys(group[rng.permutation(tasks)].tolist())  # an ordered set of groups
    while left:
        part = [next(iter(left))]
        del left[part[0]]
        for one in part:  # grows while it is read: the nearest first
            for task in members[one]:
                for at in range(graph.other_start[task], graph.other_start[task + 1]):
                    other = int(group[graph.other[at]])
                    if len(part) < most and other in left:
                        part.append(other)
                        del left[other]
        chosen = np.array([task for one in part for task in members[one]])
        found = _labellings(graph, group, chosen, n_classes)
        assert found is not None  # most groups have no more labellings
        yield chosen, found


def _joined(single: Blocks, parts: list[tuple[Codes, Codes]]) -> Blocks:
    if not parts:
        return single
    starts = np.cumsum([len(tasks) for tasks, _ in parts]) + len(single.task)
    firsts = np.cumsum([choices.size for _, choices in parts]) + len(single.choice)
    return Blocks(
        np.concatenate([single.start, starts]),
        np.concatenate([single.task, *(tasks for tasks, _ in parts)]),
        np.concatenate([single.first, firsts]),
        np.concatenate([single.choice, *(choices.ravel() for _, choices in parts)]),
    )


# Chains -----------------------------------------------------------------------------------------


def _first_state(
    graph: Graph, q: Floats, feasible: Codes | None, rng: np.random.Generator
) -> Codes:
    """Draw a first labelling of each block; those of cut components are feasible together."""
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(q), -1e3)
    state = np.maximum(graph.known, 0).astype(np.int64)
    start, task, first, choice = graph.cuts[0]
    for b in range(len(start) - 1):
        tasks = task[start[b] : start[b + 1]]
        choices = choice[first[b] : first[b + 1]].reshape(-1, len(tasks))
        score = logs[tasks, choices].sum(axis=1) + rng.gumbel(size=len(choices))
        state[tasks] = choices[score.argmax()]
    return state if feasible is None else np.where(graph.is_cut, feasible, state)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sweep(graph: Any, blocks: Any, counts: Any, state: Any, uniform: Any, marginal: Any) -> None:
    """Draw the labellings of all blocks, one block after the other: [eq:gibbs].

    `uniform` chooses among the labellings of each block; the probabilities from which each class
    was drawn are added to `marginal`.
    """
    items, code, weight, pays, other_start, other, log_odds = graph
    start, task, first, choice = blocks
    of_class, of_code, of_worker = counts
    n_classes = len(of_class)

    def add(t: int, k: int, sign: float) -> float:
        """Count a task of class k; return the log probability of what it adds."""
        logs = 0.0
        product = 1.0
        if pays[t]:
            product *= of_class[k]
            of_class[k] += sign
        for at in range(items[t], items[t + 1]):
            c = code[at]
            w = c // n_classes
            before, total = of_code[c, k], of_worker[w, k]
            if weight[at] == 1.0:
                product *= before / total
            elif sign > 0.0:
                logs += math.lgamma(before + weight[at]) - math.lgamma(before)
                logs -= math.lgamma(total + weight[at]) - math.lgamma(total)
            of_code[c, k] = before + sign * weight[at]
            of_worker[w, k] = total + sign * weight[at]
            if product < SMALL:
                logs += math.log(product)
                product = 1.0
        return logs + math.log(product)

    for b in range(len(start) - 1):
        tasks = task[start[b] : start[b + 1]]
        n = len(tasks)
        n_choices = (first[b + 1] - first[b]) // n
        if n_choices == 1:
            continue
        choices = choice[first[b] : first[b + 1]].reshape(n_choices, n)
        for t in tasks:
            add(t, state[t], -1.0)
            state[t] = OPEN
        score = np.empty(n_choices)
        for s in range(n_choices):
            total = 0.0
            n_added = 0
            for t, k in zip(tasks, choices[s]):  # noqa: B905
                for at in range(other_start[t], other_start[t + 1]):
                    if state[other[at]] == k:
                        total += log_odds[at]
                if total == -np.inf:
                    break
                total += add(t, k, 1.0)
                state[t] = k
                n_added += 1
            score[s] = total
            for i in range(n_added):
                add(tasks[i], choices[s, i], -1.0)
                state[tasks[i]] = OPEN
        chance = np.exp(score - score.max())
        total = chance.sum()
        wanted = uniform[b] * total
        drawn = -1
        for s in range(n_choices):
            if chance[s] > 0.0:
                if drawn < 0 or wanted >= 0.0:
                    drawn = s
                wanted -= chance[s]
                for i in range(n):
                    marginal[tasks[i], choices[s, i]] += chance[s] / total
        for i in range(n):
            add(tasks[i], choices[drawn, i], 1.0)
            state[tasks[i]] = choices[drawn, i]


def moments_of(counts: DrawCounts) -> PosteriorMoments:
    """Return the moments of confusions, accuracies and shares, given the drawn classes."""
    n_workers, n_classes = counts.of_worker.shape
    by_worker = counts.of_code.reshape(n_workers, -1, n_classes)
    total = counts.of_worker[:, None, :]
    mean = by_worker / total
    square = mean * (by_worker + 1.0) / (total + 1.0)
    right = np.ascontiguousarray(np.diagonal(mean, axis1=1, axis2=2))
    right_square = np.diagonal(square, axis1=1, axis2=2)
    share = counts.of_class / counts.of_class.sum()
    share_square = np.outer(share, counts.of_class) + np.diag(share)
    share_square /= counts.of_class.sum() + 1.0
    accuracy_square = ((right @ share_square) * right).sum(axis=1)
    accuracy_square += (right_square - right**2) @ np.diagonal(share_square)
    return PosteriorMoments(mean, square, right @ share, accuracy_square, share)


def r_hat(draws: Floats) -> Floats:
    """Return R-hat of each quantity, (n_quantities,), of draws (n_chains, n_draws, n_quantities).

    As Vehtari et al. (2021) compute it. Each chain is split in two, so that a drift within a chain
    shows too; values are replaced by normal scores of their ranks, so that long tails do no harm.
    1 is perfect; a quantity that never moved has mixed.

    >>> rng = np.random.default_rng(0)
    >>> alike = rng.normal(size=(4, 500, 1))
    >>> apart = alike + np.arange(4.0)[:, None, None]
    >>> bool(r_hat(alike)[0] < 1.01), bool(r_hat(apart)[0] > 1.5)
    (True, True)
    """
    half = draws.shape[1] // 2
    if half < 2:
        return np.full(draws.shape[2], np.inf)
    split = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    n_all = split.shape[0] * half
    flat = split.reshape(n_all, -1)
    scores = np.empty_like(flat)
    for column in range(flat.shape[1]):  # ties share a rank
        _, inverse, count = np.unique(flat[:, column], return_inverse=True, return_counts=True)
        rank = np.cumsum(count) - (count - 1) / 2.0
        scores[:, column] = ndtri((rank[inverse] - 0.375) / (n_all + 0.25))
    scores = scores.reshape(split.shape)
    within = scores.var(axis=1, ddof=1).mean(axis=0)
    between = scores.mean(axis=1).var(axis=0, ddof=1)
    varied = (half - 1) / half * within + between
    ratio = np.divide(varied, within, out=np.ones_like(varied), where=within > 0.0)
    return np.asarray(np.sqrt(ratio))
