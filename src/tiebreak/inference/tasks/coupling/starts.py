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

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import DEPENDENCE, Calibration
from tiebreak.inference.known import contradicts
from tiebreak.inference.tasks.coupling.ascents import HIGHER, Ascents, End
from tiebreak.inference.vb import Problem, Run, Stopping
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes

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
    ascents: Ascents, start: Run, dependence: float = DEPENDENCE
) -> tuple[End, tuple[Codes, ...]]:
    """Ascend from the start with the highest bound; return also groups that may be another class.

    `dependence` says how much errors are shared, and so how far apart bounds must be to decide.
    Where links make no group of three or more, and gold does not contradict the crowd, there is one
    start, as plain VB ended.
    """
    plain = ascents.plain
    known = ascents.setup.known
    classes = vb.class_probabilities(plain, start.q)
    sure = sureness(classes)
    groups = linked_groups(ascents.implied, sure, known)
    gold = ascents.implied.gold
    against = gold is not None and contradicts(classes, gold)
    from_plain = ascents.start_at(start)
    if not groups.needs_starts and not against:
        return ascents.ascend(from_plain), ()
    trial = ascents.stopping._replace(tol=max(TRIAL_TOL, ascents.stopping.tol))
    trial = _at_most(TRIAL_SWEEPS, trial)
    search = _Search(plain, groups, ascents.ascend(from_plain, trial))
    if against:
        of_gold = vb.beliefs_of_known(plain, start.q, known)
        search.consider(ascents.ascend(from_plain._replace(beliefs=of_gold), trial))
    if groups.needs_starts:
        q = _with_classes(plain, start.q, at_surest(classes, groups, sure))
        search.consider(ascents.ascend(from_plain._replace(q=q, beliefs=None), trial))
        search.consider(_sure_first(ascents, start, sure, trial))
        _swap_while_higher(search, ascents, classes, _at_most(SWAP_SWEEPS, trial))
    last = ascents.ascend(search.best.start)
    return last, search.uncertain(last, dependence)


def _at_most(n_sweeps: int, stopping: Stopping) -> Stopping:
    return stopping._replace(max_iter=min(n_sweeps, stopping.max_iter))


class _Search:
    """The best end so far, and the labels of linked tasks at every end that was tried.

    No more is kept of those: q of each would be as much memory as the fit.
    """

    def __init__(self, plain: Problem, groups: LinkedGroups, first: End) -> None:
        self.plain = plain
        self.groups = groups
        self.best = first
        self._tried = [(first.bound, self._labels(first))]

    def consider(self, end: End) -> bool:
        """Note an end; take it where its bound is higher, and say so. Where equal the first is."""
        self._tried.append((end.bound, self._labels(end)))
        is_higher = end.bound > self.best.bound + HIGHER * abs(self.best.bound)
        if is_higher:
            self.best = end
        return is_higher

    def uncertain(self, last: End, dependence: float) -> tuple[Codes, ...]:
        """Return the tasks of each large group that an end nearly as likely calls otherwise.

        Bounds differ by what a crowd says that believes to err apart, so that they are scaled as
        its probabilities are: [eq:design-effect].
        """
        n_votes = np.array([calibration.mean_responses(self.plain)])
        scale = float(Calibration(dependence).scale(n_votes)[0])
        label = self._labels(last)
        group = self.groups.group
        size = np.bincount(group)
        is_uncertain = np.zeros(len(size), dtype=bool)
        for bound, other in self._tried:
            if scale * (last.bound - bound) <= NEAR:
                n_others = np.bincount(group, weights=other != label, minlength=len(size))
                is_uncertain |= n_others > size / 2
        chosen = np.flatnonzero(is_uncertain & self.groups.is_large)
        return tuple(self.groups.task[group == each] for each in chosen)

    def _labels(self, end: End) -> Codes:
        label: Codes = vb.class_probabilities(self.plain, end.run.q).argmax(axis=1)
        return label[self.groups.task].astype(np.int32)


def _sure_first(ascents: Ascents, start: Run, sure: Floats, trial: Stopping) -> End:
    """Add links part by part, those between the surest tasks first; each part starts warm."""
    end = End(start, None)
    for links in in_parts(ascents.links, sure):
        part = ascents.of_part(links)
        at = part.start_at(end.run)._replace(rates=end.rates)
        end = part.ascend(at, _at_most(PART_SWEEPS, trial))
        del part  # before the next one is set up
    return ascents.ascend(ascents.start_at(end.run)._replace(rates=end.rates), trial)


def _swap_while_higher(
    search: _Search, ascents: Ascents, plain_q: Floats, stopping: Stopping
) -> None:
    """Exchange two classes in large groups while that raises the bound."""
    plain = ascents.plain
    groups = search.groups
    tried: set[tuple[int, int]] = set()
    for _ in range(SWAP_ROUNDS):
        best = search.best
        classes = vb.class_probabilities(plain, best.run.q)
        for pair in doubtful_pairs(classes, plain_q, groups):
            if pair in tried:
                continue
            tried.add(pair)
            q = _with_classes(plain, best.run.q, swapped(classes, groups, *pair))
            if search.consider(ascents.ascend(best.at(q), stopping)):
                tried = {pair}
                break
        else:
            return


def _with_classes(problem: Problem, q: Floats, of_class: Floats) -> Floats:
    """Return q with these class probabilities; subtypes keep their shares of each class."""
    if problem.n_states == problem.n_classes:
        return of_class
    by_class = q.reshape(len(q), problem.n_classes, -1)
    total = by_class.sum(axis=2, keepdims=True)
    even = np.full_like(by_class, 1.0 / by_class.shape[2])
    share = np.divide(by_class, total, out=even, where=total > 0.0)
    return np.asarray((of_class[:, :, None] * share).reshape(q.shape))


def sureness(q: Floats) -> Floats:
    """Return how far the likeliest class of each task is ahead, as a log ratio."""
    top_two = np.partition(q, -2, axis=1)[:, -2:]
    logs = np.log(np.maximum(top_two, np.finfo(np.float64).tiny))
    return np.asarray(logs[:, 1] - logs[:, 0])


def linked_groups(implied: Implications, sure: Floats, known: GoldCodes) -> LinkedGroups:
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
