"""What links say by mean field, in plain NumPy."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import ByGroup, Codes, Floats, Offsets


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


def update_together(q: Floats, u: Floats, links: ByGroup, strength: float, at: Codes) -> float:
    """Update linked tasks all at once, from the same q; return the largest change.

    Implements [eq:link-update] as the paper does; `at` are positions in `links.task`.
    """
    task = links.task[at]
    new = softmax(u[task] + strength * link_field(q, links)[at])
    change = float(np.abs(new - q[task]).max(initial=0.0))
    q[task] = new
    return change


def update_in_turn(q: Floats, u: Floats, links: ByGroup, strength: float, order: Offsets) -> float:
    """Update linked tasks one after the other; return the largest change.

    Implements [eq:link-update] with the newest q of every neighbour:

        q_i = softmax(u_i + η f_i)

    Departs from the paper: it updates all tasks at once, which can swap two linked tasks for
    ever; in turn, every step raises the bound. Sums over groups stand for their members, and the
    change of a group reaches its neighbours when the turn passes to another group.

    Parameters
    ----------
    order
        Positions in `links.task`, in the order of their turns; known tasks are left out.
    """
    inside, across = group_sums(q, links)
    sent = inside.copy()  # what the neighbours of each group last took into account
    change = 0.0
    current = -1
    for at in order:
        task = links.task[at]
        group = links.group[at]
        if group != current and current >= 0:
            _update_neighbours(links, current, inside, sent, across)
        current = group
        score = u[task] + strength * (links.pull * (inside[group] - q[task]) + across[group])
        new = np.exp(score - score.max())
        new /= new.sum()
        step = new - q[task]
        change = max(change, float(np.abs(step).max()))
        inside[group] += step
        q[task] = new
    return change


def _update_neighbours(
    links: ByGroup, group: int, inside: Floats, sent: Floats, across: Floats
) -> None:
    edges = slice(links.start[group], links.start[group + 1])
    step = inside[group] - sent[group]
    np.add.at(across, links.other[edges], links.weight[edges, None] * step)
    sent[group] = inside[group]
