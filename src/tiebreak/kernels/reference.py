"""Plain NumPy kernels: short, complete, the oracle of every other backend.

Below about 2e5 responses they are also the fastest choice, since nothing has to be compiled.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import (
    FREE,
    KNOWN,
    LINKED,
    ByGroup,
    ByTask,
    Codes,
    Floats,
    Mask,
    Swept,
)


def sweep_tasks(
    q: Floats, u: Floats, tasks: ByTask, log_prior: Floats, log_table: Floats, n_threads: int = 1
) -> Swept:
    """Update the free tasks, score the linked ones, and count what all but the linked say.

    Implements [eq:task-update], (w, l) over the responses on task i:

        u_i(k) = E[log π_k] + Σ_(w,l) E[log θ_wkl],   q_i = softmax(u_i)

    and, fused with it, the sums of [eq:class-prior-update] and [eq:confusion-update].

    Parameters
    ----------
    q
        (n_tasks, n_classes), rows sum to 1. Rows of free tasks are overwritten.
    u
        (n_tasks, n_classes), or (0, n_classes) when no task is linked. Rows of linked tasks are
        overwritten with their scores.
    log_prior, log_table
        E[log π], (n_classes,), and E[log θ], (n_codes, truth).
    """
    score = score_tasks(tasks, log_prior, log_table)
    if len(u):
        u[:] = score
    free = tasks.role == FREE
    top = score.max(axis=1, keepdims=True, initial=-np.inf)
    free &= np.isfinite(top[:, 0])  # no class is left after underflow: keep the former q
    with np.errstate(invalid="ignore"):
        new = np.exp(score - top)
        norm = new.sum(axis=1, keepdims=True)
        new /= norm
    change = float(np.abs(new[free] - q[free]).max(initial=0.0))
    q[free] = new[free]
    counts, totals = tally(q, tasks, tasks.role != LINKED)
    known = np.flatnonzero(tasks.role == KNOWN)
    log_norm = (top[free] + np.log(norm[free])).sum()
    log_norm += score[known, q[known].argmax(axis=1)].sum() if len(known) else 0.0
    return Swept(counts, totals, change, entropy(q[tasks.role == FREE]), float(log_norm))


def score_tasks(tasks: ByTask, log_prior: Floats, log_table: Floats) -> Floats:
    """Return u of [eq:task-update] for every task, (n_tasks, n_classes)."""
    task = np.repeat(np.arange(tasks.n_tasks), np.diff(tasks.start))
    return np.stack(
        [
            np.bincount(task, weights=log_table[tasks.code, k], minlength=tasks.n_tasks)
            + log_prior[k]
            for k in range(len(log_prior))
        ],
        axis=1,
    )


def tally(q: Floats, tasks: ByTask, chosen: Mask, n_threads: int = 1) -> tuple[Floats, Floats]:
    """Return Σ q over responses by code, and Σ q over tasks, of the chosen tasks alone.

    Implements the sums of [eq:confusion-update] and [eq:class-prior-update].
    """
    weight = np.where(chosen[:, None], q, 0.0)
    by_response = np.repeat(weight, np.diff(tasks.start), axis=0)
    counts: Floats = np.stack(
        [
            np.bincount(tasks.code, weights=by_response[:, k], minlength=tasks.n_codes)
            for k in range(q.shape[1])
        ],
        axis=1,
    )
    return counts, weight.sum(axis=0)


def entropy(q: Floats) -> float:
    """Return Σ H(q) over rows, with 0 log 0 = 0."""
    return float(-(q * np.log(np.where(q > 0.0, q, 1.0))).sum())


def softmax(score: Floats) -> Floats:
    """Return exp(score) with rows that sum to 1."""
    new = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(new / new.sum(axis=1, keepdims=True))


def group_sums(q: Floats, links: ByGroup) -> tuple[Floats, Floats]:
    """Return S_A, the sum of q over each group, and X_A = Σ_B w_AB S_B, both (n_groups, K)."""
    n_classes = q.shape[1]
    inside = np.zeros((links.n_groups, n_classes))
    np.add.at(inside, links.group, q[links.task])
    across = np.zeros((links.n_groups, n_classes))
    group = np.repeat(np.arange(links.n_groups), np.diff(links.start))
    np.add.at(across, group, links.weight[:, None] * inside[links.other])
    return inside, across


def link_field(q: Floats, links: ByGroup) -> Floats:
    """Return what links say about each linked task, (n_linked, n_classes).

    Implements [eq:link-field], for task i of group A:

        f_i = pull · (S_A − q_i) + Σ_B w_AB S_B
    """
    inside, across = group_sums(q, links)
    return links.pull * (inside[links.group] - q[links.task]) + across[links.group]


def link_term(q: Floats, links: ByGroup) -> float:
    """Return Σ w_ij ⟨q_i, q_j⟩ over all closed links, each once: [eq:link-term]."""
    inside, across = group_sums(q, links)
    within = (inside**2).sum() - (q[links.task] ** 2).sum()
    return float(0.5 * (links.pull * within + (inside * across).sum()))


def update_in_turn(q: Floats, u: Floats, links: ByGroup, strength: float, order: Codes) -> float:
    """Update linked tasks one after the other; return the largest change.

    Implements [eq:link-update] with the newest q of every neighbour:

        q_i = softmax(u_i + η f_i)

    Departs from the paper: it updates all tasks at once, which can swap two linked tasks for
    ever; in turn, every step raises the bound. Sums over groups stand for their members, and a
    group tells its neighbours of its change when the turn passes to another group.

    Parameters
    ----------
    order
        Positions in `links.task`, in the order of their turns; known tasks are left out.
    """
    inside, across = group_sums(q, links)
    told = inside.copy()
    change, current = 0.0, -1
    for at in order:
        task, group = links.task[at], links.group[at]
        if group != current and current >= 0:
            _tell_neighbours(links, current, inside, told, across)
        current = group
        score = u[task] + strength * (links.pull * (inside[group] - q[task]) + across[group])
        new = np.exp(score - score.max())
        new /= new.sum()
        step = new - q[task]
        change = max(change, float(np.abs(step).max()))
        inside[group] += step
        q[task] = new
    return change


def _tell_neighbours(
    links: ByGroup, group: int, inside: Floats, told: Floats, across: Floats
) -> None:
    edges = slice(links.start[group], links.start[group + 1])
    step = inside[group] - told[group]
    np.add.at(across, links.other[edges], links.weight[edges, None] * step)
    told[group] = inside[group]
