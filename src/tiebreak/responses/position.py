"""A position term: whether a worker answers otherwise where answers are shown the other way round.

Where each task has one order, the same for all workers, a worker's confusion may differ by order: a
judge that prefers what it sees first says "1" too often when 1 is first, and so do the others. A
worker is split by order if that predicts its held-out responses better, by more than one standard
error, given how the others voted.
"""

from __future__ import annotations

import itertools

import numpy as np

from tiebreak.ids import Ids
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.responses.runs import Sittings, parts, sittings

N_FOLDS = 5
STRENGTH = 5.0  # responses of each order that stand for "as in the other orders"
FEW = 0.1  # share of responses that may see their task in another order than most do
LEAST = 30  # responses of a worker, for a term of its own


def is_shared(start: Offsets, code: Codes, n_classes: int, order: Codes) -> bool:
    """Tell whether each task has one order, which all its workers see, but for few of them.

    Then errors of position are shared by the workers of a task. Where each worker draws an order
    of its own they even out within the task, and a split only halves what is known of a worker.
    """
    others = 0.0
    total = 0.0
    for low, high in parts(start, n_classes):
        each = sittings(start, code, low, high, n_classes, order, with_others=False)
        n_shown = int(each.order.max(initial=-1)) + 2
        cell = each.task * n_shown + each.order + 1
        n_each = np.bincount(cell, minlength=(high - low) * n_shown).reshape(-1, n_shown)
        others += float(n_each.sum() - n_each.max(axis=1, initial=0).sum())
        total += float(n_each.sum())
    return total > 0.0 and others <= FEW * total


def needs_term(start: Offsets, code: Codes, n_workers: int, n_classes: int, order: Codes) -> Mask:
    """Tell, for each worker, whether splitting it by order predicts held-out responses better."""
    n_orders = int(order.max(initial=-1)) + 2
    counts = np.zeros((N_FOLDS, n_workers, n_orders, n_classes, n_classes))
    ranges = list(parts(start, n_classes))
    for low, high in ranges:
        each = sittings(start, code, low, high, n_classes, order)
        for fold in range(N_FOLDS):
            _count(counts[fold], each, _fold(each) == fold)
    n = np.zeros(n_workers)
    gain = np.zeros(n_workers)
    square = np.zeros(n_workers)
    for low, high in ranges:
        each = sittings(start, code, low, high, n_classes, order)
        for fold in range(N_FOLDS):
            held = each.has_others & (_fold(each) == fold)
            found = _gain(counts.sum(axis=0) - counts[fold], each, held)
            who = each.worker[held]
            n += np.bincount(who, minlength=n_workers)
            gain += np.bincount(who, weights=found, minlength=n_workers)
            square += np.bincount(who, weights=found**2, minlength=n_workers)
    mean = gain / np.maximum(n, 1.0)
    error = np.sqrt(np.maximum(square / np.maximum(n, 1.0) - mean**2, 0.0) / np.maximum(n, 1.0))
    return np.asarray((n >= LEAST) & (mean > error))


def split(
    code: Codes, order: Codes, workers: Ids, n_classes: int, is_split: Mask, names: list[str]
) -> tuple[Codes, Ids]:
    """Make a worker of each order of the workers that need a term; codes are not sorted."""
    worker, label = np.divmod(code.astype(np.int64), n_classes)
    own = is_split[worker] & (order >= 0)
    key = np.where(own, (worker + 1) * len(names) + order + len(workers), worker)
    kept, new = np.unique(key, return_inverse=True)
    ids = []
    for each in kept.tolist():
        if each < len(workers):
            ids.append(workers[each])
            continue
        who, shown = divmod(each - len(workers), len(names))
        ids.append(f"{workers[who - 1]} [order={names[shown]}]")
    return (new * n_classes + label).astype(code.dtype), Ids(ids)


def _fold(each: Sittings) -> Codes:
    """Deal tasks into folds by their number, so that copies of one task stay together."""
    return np.asarray((each.first_task + each.task) % N_FOLDS, dtype=np.int32)


def _count(counts: Floats, each: Sittings, wanted: Mask) -> None:
    rows = np.flatnonzero(wanted & each.has_others)
    cell = each.worker[rows] * counts.shape[1] + each.order[rows] + 1
    by_cell = np.argsort(cell, kind="stable")
    edges = np.flatnonzero(np.diff(cell[by_cell], prepend=-1, append=-1))
    flat = counts.reshape(-1, *counts.shape[2:])
    for a, b in itertools.pairwise(edges):
        members = rows[by_cell[a:b]]
        flat[cell[by_cell[a]]] += each.others[members].T @ each.share[members]


def _gain(counts: Floats, each: Sittings, held: Mask) -> Floats:
    """Return by how much the log-likelihood of held-out sittings grows with the term."""
    n_classes = each.share.shape[1]
    whole = counts.sum(axis=1) + np.eye(n_classes) + 1.0 / n_classes
    whole /= whole.sum(axis=2, keepdims=True)
    own = counts + STRENGTH * whole[:, None]
    own /= own.sum(axis=3, keepdims=True)
    worker = each.worker[held]
    shown = each.order[held] + 1
    said = each.share[held]
    likely = np.einsum("nk,nkl->nl", each.others[held], whole[worker])
    likely_here = np.einsum("nk,nkl->nl", each.others[held], own[worker, shown])
    return np.asarray((said * (np.log(likely_here) - np.log(likely))).sum(axis=1))
