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

from tiebreak import link_graph
from tiebreak.gold import GoldCodes
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.link_graph import Implications, LinkCodes

LARGE = 3  # tasks: groups of so many need several starts
PARTS = 8  # of links, surest first
PART_SWEEPS = 10  # after each part; 5 miss the mode on one dataset
TRIAL_SWEEPS = 20  # of each start
SWAP_SWEEPS = 5
SWAPS = 4  # pairs of classes that are exchanged in a round, most doubtful first
SWAP_ROUNDS = 5
TRIAL_TOL = 1e-3

LEAST_AGAINST = 6  # known labels that contradict the crowd before gold names a start of its own:
SHARE_AGAINST = 2 / 3  # five wrong ones must not turn a crowd that is right


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


def sureness(q: Floats) -> Floats:
    """Return how far the likeliest class of each task is ahead, as a log ratio."""
    top_two = np.partition(q, -2, axis=1)[:, -2:]
    logs = np.log(np.maximum(top_two, np.finfo(np.float64).tiny))
    return np.asarray(logs[:, 1] - logs[:, 0])


def linked_groups(
    links: LinkCodes, implied: Implications, sure: Floats, known: GoldCodes
) -> LinkedGroups:
    """Tie tasks along links, hard ones as `implied` says; of soft ones the surest count."""
    task = implied.task
    group = implied.group
    flip = implied.flip
    if implied.links.n_links < links.n_links:
        group, flip = _tied_softly(links.among(task), implied.n_classes, sure[task])
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
    forest = _spanning_forest(links, np.minimum(sure[links.left], sure[links.right]))
    tied = link_graph.parity(len(sure), links.keep(forest)._replace(weight=None))
    group = np.unique(tied.root, return_inverse=True)[1].astype(np.int32)
    return group, tied.parity.astype(np.int32)


def _spanning_forest(links: LinkCodes, sure: Floats) -> Codes:
    """Return the places of links that join every component without a cycle, surest first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    turn = np.argsort(-sure, kind="stable")
    n_tasks = int(max(links.left.max(initial=-1), links.right.max(initial=-1))) + 1
    keys = link_graph.pair_keys(links.left[turn], links.right[turn], max(n_tasks, 1))
    _, first = np.unique(keys, return_index=True)
    kept = turn[np.sort(first)]  # one link per pair, in turn
    cost = np.arange(1.0, len(kept) + 1.0)
    graph = csr_array((cost, (links.left[kept], links.right[kept])), shape=(n_tasks, n_tasks))
    return np.sort(kept[minimum_spanning_tree(graph).data.astype(np.int64) - 1])


def at_surest(q: Floats, groups: LinkedGroups, sure: Floats) -> Floats:
    """Return q with every task of a group at what its surest task says."""
    order = np.lexsort((-sure[groups.task], groups.group))
    first = order[np.append(True, np.diff(groups.group[order]) > 0)] if len(order) else order
    rows = _flipped(q[groups.task[first]], groups.flip[first])
    start = q.copy()
    start[groups.task] = _flipped(rows[groups.group], groups.flip)
    return start


def in_parts(links: LinkCodes, sure: Floats) -> Iterator[LinkCodes]:
    """Yield the first part of the links, the first two, … all but the last, surest first."""
    order = np.argsort(-np.minimum(sure[links.left], sure[links.right]), kind="stable")
    ends = np.linspace(0, len(order), PARTS + 1).round().astype(int)[1:-1]
    return (links.keep(np.sort(order[:end])) for end in ends if end)


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


def contradicts(q: Floats, gold: GoldCodes) -> bool:
    """Say whether known labels, all or those of one class, contradict what the crowd says."""
    n_classes = q.shape[1]
    is_against = q[gold.task].argmax(axis=1) != gold.label
    n_known = np.append(np.bincount(gold.label, minlength=n_classes), len(gold.label))
    by_class = np.bincount(gold.label[is_against], minlength=n_classes)
    n_against = np.append(by_class, np.count_nonzero(is_against))
    is_much = (n_against >= LEAST_AGAINST) & (n_against >= SHARE_AGAINST * n_known)
    return bool(is_much.any())


def _flipped(rows: Floats, flip: Codes) -> Floats:
    """Return rows with the two classes exchanged where flip is 1."""
    return rows if not flip.any() else np.where(flip[:, None] == 1, rows[:, ::-1], rows)
