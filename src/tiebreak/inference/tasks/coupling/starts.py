"""Starts: where a cold fit with links begins, so that it finds the right mode.

Workers err together, so that the summed votes of a group of linked tasks can name the wrong class,
and the group that should have it takes another: two classes swap names, and no link is broken.
Where links make groups of three tasks or more without a known label, several starts are tried, a
few sweeps each, and the one with the highest bound goes on to the end:

    plain        where plain VB ended
    surest       every group at what plain VB says of its surest task
    sure first   links are added in eight parts, those between the surest tasks first
    swaps        the best so far with two classes exchanged in all large groups

The numbers below were chosen on questions asked on ten datasets: `experiments/04_modes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tiebreak.inference.calibration import DEPENDENCE, Calibration
from tiebreak.inference.climb import FitState, Problem, Stopping, best_of, climb
from tiebreak.inference.known import Known
from tiebreak.inference.tasks import Parameters
from tiebreak.inference.tasks.coupling.linked import Linked, with_links
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes, imply
from tiebreak.options import ExactLinkOptions

LARGE = 3  # tasks: groups of so many need several starts
PARTS = 8  # of links, surest first
PART_SWEEPS = 10  # after each part; 5 miss the mode on one dataset
TRIAL_SWEEPS = 20  # of each start
SWAP_SWEEPS = 5
SWAPS = 4  # pairs of classes that are exchanged in a round, most doubtful first
SWAP_ROUNDS = 5
TRIAL_TOL = 1e-3


TIED = 1e-9  # log ratios that differ by less are equal
NEAR = 10.0  # nats, scaled: modes with bounds this close are both possible; see docs/links.md


class LinkedGroups(NamedTuple):
    """Tasks that links tie: the class of all follows from that of one.

    With two classes links of either kind tie; `flip` says which tasks have the other class.
    """

    task: Codes  # (n_linked,)
    group: Codes  # (n_linked,)
    flip: Codes  # (n_linked,)
    is_large: Mask  # (n_groups,) three tasks or more, none of them known

    @property
    def needs_starts(self) -> bool:
        """Whether any group could be named in several ways."""
        return bool(self.is_large.any())

    @property
    def large_tasks(self) -> Codes:
        """The tasks of large groups."""
        return self.task[self.is_large[self.group]]


def best_mode(
    plain: Problem,
    linked: Problem,
    start: FitState,
    options: ExactLinkOptions,
    stopping: Stopping,
    dependence: float = DEPENDENCE,
) -> tuple[FitState, tuple[Codes, ...]]:
    """Climb from the start with the highest bound; return also groups that may be another class.

    `start` is where plain VB ended; `dependence` says how much errors are shared, and so how far
    apart bounds must be to decide. Where links make no group of three or more, and gold does not
    contradict the crowd, there is one start, as plain VB ended.
    """
    classes = plain.by_class(start.q)
    tasks = linked_tasks(linked)
    groups = linked_groups(tasks.implied, sureness(classes), tasks.known)
    gold = tasks.implied.gold
    against = gold is not None and (
        plain.workers.starts_at_gold or Known.of(gold).contradicts(classes)
    )
    if not groups.needs_starts and not against:
        return climb(linked, start_at(linked, start), stopping), ()
    search = _Search(plain, linked, start, groups, stopping)
    if against:
        of_known = tasks.known.parameters(plain, start.q)
        search.climb_from(_at(tasks, start, of_known))
    if groups.needs_starts:
        search.try_more(options)
    last = climb(linked, search.best._replace(memory=None), stopping)
    return last, search.uncertain(last, dependence)


def start_at(linked: Problem, state: FitState) -> FitState:
    """Return where a climb with links goes on from one that ended without them, or with fewer.

    Known rows change what q implies; error rates of links go on where they were learnt.
    """
    tasks = linked_tasks(linked)
    if not state.parameters or len(tasks.known.task):
        return _again_at(linked, state.q, state)
    return _at(tasks, state, state.parameters)


def _at(tasks: Linked, state: FitState, parameters: Parameters) -> FitState:
    alpha, *rates, beta = parameters
    q = tasks.known.clamp(state.q, tasks.n_classes)
    return FitState(q, (alpha, *(rates or tasks.prior[1:]), beta), remote=state.remote)


def _again_at(linked: Problem, q: Floats, state: FitState) -> FitState:
    """Return a start at q, which says what parameters are; error rates stay as they are."""
    tasks = linked_tasks(linked)
    q = tasks.known.clamp(q, linked.n_classes)
    if tasks.errors is None or len(state.parameters) < 3:
        return FitState(q=q, remote=state.remote)
    alpha, _, beta = linked.implied(q)
    return FitState(q, (alpha, state.parameters[1], beta), remote=state.remote)


def linked_tasks(linked: Problem) -> Linked:
    """Return the tasks of a problem that `with_links` has made."""
    assert isinstance(linked.tasks, Linked)
    return linked.tasks


class _Search:
    """The best end so far, and the labels of linked tasks at every end that was tried.

    No more is kept of those: q of each would be as much memory as the fit.
    """

    def __init__(
        self,
        plain: Problem,
        linked: Problem,
        start: FitState,
        groups: LinkedGroups,
        stopping: Stopping,
    ) -> None:
        self.plain, self.linked, self.start, self.groups = plain, linked, start, groups
        self.trial = stopping._replace(tol=max(TRIAL_TOL, stopping.tol))
        self.best = climb(linked, start_at(linked, start), self._at_most(TRIAL_SWEEPS))
        self._tried = [(self.best.bounds[-1], self._labels(self.best))]

    def climb_from(self, start: FitState, n_sweeps: int = TRIAL_SWEEPS) -> bool:
        """Climb, and take the end where its bound is higher; say so. Where equal, the first is."""
        end = climb(self.linked, start, self._at_most(n_sweeps))
        self._tried.append((end.bounds[-1], self._labels(end)))
        former, self.best = self.best, best_of((self.best, end))
        return self.best is not former

    def try_more(self, options: ExactLinkOptions) -> None:
        """Climb from where groups are as their surest tasks, links added surest first, swaps."""
        start, classes = self.start, self.plain.by_class(self.start.q)
        sure = sureness(classes)
        q = self._with_classes(start.q, at_surest(classes, self.groups, sure))
        self.climb_from(_again_at(self.linked, q, start))
        self.climb_from(start_at(self.linked, self._surest_links_first(options, sure)))
        tried: set[tuple[int, int]] = set()
        for _ in range(SWAP_ROUNDS):  # exchange two classes in large groups
            best = self.best
            of_best = self.plain.by_class(best.q)
            for pair in doubtful_pairs(of_best, classes, self.groups):
                if pair in tried:
                    continue
                tried.add(pair)
                q = self._with_classes(best.q, swapped(of_best, self.groups, *pair))
                if self.climb_from(_again_at(self.linked, q, best), SWAP_SWEEPS):
                    tried = {pair}
                    break
            else:
                return

    def _surest_links_first(self, options: ExactLinkOptions, sure: Floats) -> FitState:
        """Add links part by part, those between the surest tasks first; each part starts warm."""
        tasks = linked_tasks(self.linked)
        n_sources = None if tasks.errors is None else tasks.errors.prior.shape[2]
        end = self.start
        for links in in_parts(tasks.implied.given, sure):
            firm = np.zeros(links.n_links, dtype=bool) if options.is_soft else links.is_hard
            implied = imply(links, tasks.n_classes, firm=firm, gold=tasks.implied.gold)
            part = with_links(self.plain, implied, options, tasks.known.weight, n_sources)
            end = climb(part, start_at(part, end), self._at_most(PART_SWEEPS))
            del part  # before the next one is set up
        return end

    def uncertain(self, last: FitState, dependence: float) -> tuple[Codes, ...]:
        """Return the tasks of each large group that an end nearly as likely calls otherwise.

        Bounds differ by what a crowd says that believes to err apart, so that they are scaled as
        its probabilities are, by the design effect.
        """
        n_votes = np.array([self.plain.mean_responses])
        scale = float(Calibration(dependence).scale(n_votes)[0])
        label = self._labels(last)
        group = self.groups.group
        size = np.bincount(group)
        is_uncertain = np.zeros(len(size), dtype=bool)
        for bound, other in self._tried:
            if scale * (last.bounds[-1] - bound) <= NEAR:
                n_others = np.bincount(group, weights=other != label, minlength=len(size))
                is_uncertain |= n_others > size / 2
        chosen = np.flatnonzero(is_uncertain & self.groups.is_large)
        return tuple(self.groups.task[group == each] for each in chosen)

    def _labels(self, end: FitState) -> Codes:
        label: Codes = self.plain.by_class(end.q).argmax(axis=1)
        return label[self.groups.task].astype(np.int32)

    def _at_most(self, n_sweeps: int) -> Stopping:
        return self.trial._replace(max_iter=min(n_sweeps, self.trial.max_iter))

    def _with_classes(self, q: Floats, of_class: Floats) -> Floats:
        """Return q with these class probabilities; subtypes keep their shares of each class."""
        n_classes = self.plain.n_classes
        if self.plain.n_states == n_classes:
            return of_class
        by_class = q.reshape(len(q), n_classes, -1)
        total = by_class.sum(axis=2, keepdims=True)
        even = np.full_like(by_class, 1.0 / by_class.shape[2])
        share = np.divide(by_class, total, out=even, where=total > 0.0)
        return np.asarray((of_class[:, :, None] * share).reshape(q.shape))


def sureness(q: Floats) -> Floats:
    """Return how far the likeliest class of each task is ahead, as a log ratio."""
    top_two = np.partition(q, -2, axis=1)[:, -2:]
    logs = np.log(np.maximum(top_two, np.finfo(np.float64).tiny))
    return np.asarray(logs[:, 1] - logs[:, 0])


def linked_groups(implied: Implications, sure: Floats, known: Known) -> LinkedGroups:
    """Tie tasks along links, hard ones as `implied` says; of soft ones the surest count."""
    task = implied.task
    group = implied.group
    flip = implied.flip
    if implied.links.n_links < implied.given.n_links:
        group, flip = _tied_softly(implied.given.among(task), implied.n_classes, sure[task])
    size = np.bincount(group)
    is_known = np.zeros(len(size), dtype=bool)
    is_known[group[np.isin(task, known.task)]] = True
    return LinkedGroups(task, group, flip, (size >= LARGE) & ~is_known)


def _tied_softly(links: LinkCodes, n_classes: int, sure: Floats) -> tuple[Codes, Codes]:
    """Return groups and flips along links that may be wrong; they may contradict each other."""
    if n_classes > 2:
        ends = (links.left[links.must], links.right[links.must])
        group = link_graph.components(len(sure), *ends)
        return group, np.zeros_like(group)
    turn = np.argsort(-np.minimum(sure[links.left], sure[links.right]), kind="stable")
    forest = link_graph.spanning_forest(len(sure), links.left, links.right, turn)  # surest first
    tied = link_graph.parity(len(sure), links.keep(forest)._replace(weight=None))
    group = np.unique(tied.root, return_inverse=True)[1].astype(np.int32)
    return group, tied.parity.astype(np.int32)


def at_surest(q: Floats, groups: LinkedGroups, sure: Floats) -> Floats:
    """Return q with every task of a group at what its surest task says, or several in the mean."""
    own = sure[groups.task]
    surest = np.full(len(groups.is_large), -np.inf)
    np.maximum.at(surest, groups.group, own)
    first = np.flatnonzero(own >= surest[groups.group] - TIED)
    rows = np.zeros((len(surest), q.shape[1]))
    np.add.at(rows, groups.group[first], _flipped(q[groups.task[first]], groups.flip[first]))
    rows /= np.bincount(groups.group[first], minlength=len(rows))[:, None]
    start = q.copy()
    start[groups.task] = _flipped(rows[groups.group], groups.flip)
    return start


def in_parts(links: LinkCodes, sure: Floats) -> Iterator[LinkCodes]:
    """Yield the first part of the links, the first two, … all but the last, surest first.

    Links that are equally sure are in one part, so that it does not matter how links are ordered.
    """
    own = np.minimum(sure[links.left], sure[links.right])
    ends = np.linspace(0, len(own), PARTS + 1).round().astype(int)[1:-1]
    lowest = np.sort(own)[::-1][ends[ends > 0] - 1]
    return (links.keep(np.flatnonzero(own >= each - TIED)) for each in lowest)


def swapped(q: Floats, groups: LinkedGroups, a: int, b: int) -> Floats:
    """Return q with two classes exchanged in all large groups."""
    task = groups.large_tasks[:, None]
    start = q.copy()
    start[task, [a, b]] = q[task, [b, a]]
    return start


def doubtful_pairs(q: Floats, plain: Floats, groups: LinkedGroups) -> list[tuple[int, int]]:
    """Return the pairs of classes that plain VB would exchange in most large groups."""
    task = groups.large_tasks
    n_classes = q.shape[1]
    doubt = np.zeros((n_classes, n_classes))
    np.add.at(doubt, q[task].argmax(axis=1), plain[task])
    share = doubt + doubt.T
    a, b = np.tril_indices(n_classes, -1)
    order = np.argsort(-share[a, b], kind="stable")[:SWAPS]
    return [(int(a[p]), int(b[p])) for p in order if share[a[p], b[p]] > 0.0]


def _flipped(rows: Floats, flip: Codes) -> Floats:
    """Return rows with the two classes exchanged where flip is 1."""
    return rows if not flip.any() else np.where(flip[:, None] == 1, rows[:, ::-1], rows)


def ties_three(links: LinkCodes, n_classes: int) -> bool:
    """Say whether links may tie three tasks or more: one of these then has two links that tie.

    Must-links tie; with two classes cannot-links do too. Only such groups need several starts.
    """
    ties = links.must | (n_classes == 2)
    ends = np.concatenate([links.left[ties], links.right[ties]])
    return bool(np.bincount(ends).max(initial=0) > 1)
