"""What links say by mean field, compiled: same names and signatures as the reference."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.one_row import softmax_into
from tiebreak.kernels.layout import ByGroup, Codes, Floats, Offsets


def group_sums(q: Floats, links: ByGroup) -> tuple[Floats, Floats]:
    """Return S_A and X_A = Σ_B w_AB S_B: see `reference.group_sums`."""
    inside = np.zeros((links.n_groups, q.shape[1]))
    across = np.zeros((links.n_groups, q.shape[1]))
    _group_sums(q, links, inside, across)
    return inside, across


def link_field(q: Floats, links: ByGroup) -> Floats:
    """Return what links say about each linked task: see `reference.link_field`."""
    inside, across = group_sums(q, links)
    return links.pull * (inside[links.group] - q[links.task]) + across[links.group]


def link_term(q: Floats, links: ByGroup) -> float:
    """Return Σ w_ij ⟨q_i, q_j⟩ over all closed links: see `reference.link_term`."""
    inside, across = group_sums(q, links)
    within = (inside**2).sum() - (q[links.task] ** 2).sum()
    return float(0.5 * (links.pull * within + (inside * across).sum()))


def update_together(q: Floats, u: Floats, links: ByGroup, strength: float, at: Codes) -> float:
    """Update linked tasks all at once: see `reference.update_together`."""
    inside, across = group_sums(q, links)
    return _update_together(q, u, links, strength, at, inside, across)


def update_in_turn(q: Floats, u: Floats, links: ByGroup, strength: float, order: Offsets) -> float:
    """Update linked tasks one after the other: see `reference.update_in_turn`."""
    inside, across = group_sums(q, links)
    return float(_update_in_turn(q, u, links, strength, order, inside, across))


@kernel
def _group_sums(q: Floats, links: ByGroup, inside: Floats, across: Floats) -> None:
    n = q.shape[1]
    for at in range(len(links.task)):
        for k in range(n):
            inside[links.group[at], k] += q[links.task[at], k]
    for group in range(len(links.start) - 1):
        for e in range(links.start[group], links.start[group + 1]):
            for k in range(n):
                across[group, k] += links.weight[e] * inside[links.other[e], k]


@kernel
def _update_in_turn(
    q: Floats,
    u: Floats,
    links: ByGroup,
    strength: float,
    order: Offsets,
    inside: Floats,
    across: Floats,
) -> float:
    n = q.shape[1]
    sent = inside.copy()  # what the neighbours of each group last took into account
    new = np.empty(n)
    change = 0.0
    current = -1
    for at in order:
        i = links.task[at]
        group = links.group[at]
        if group != current and current >= 0:
            for e in range(links.start[current], links.start[current + 1]):
                for k in range(n):
                    step = inside[current, k] - sent[current, k]
                    across[links.other[e], k] += links.weight[e] * step
            sent[current] = inside[current]
        current = group
        _infer(q[i], u[i], links.pull, strength, inside[group], across[group], new)
        for k in range(n):
            step = new[k] - q[i, k]
            change = max(change, abs(step))
            inside[group, k] += step
            q[i, k] = new[k]
    return change


@kernel
def _update_together(
    q: Floats,
    u: Floats,
    links: ByGroup,
    strength: float,
    at: Codes,
    inside: Floats,
    across: Floats,
) -> float:
    n = q.shape[1]
    new = np.empty(n)
    change = 0.0
    for a in at:  # the sums are those before the update, so that no task sees another's new q
        i = links.task[a]
        group = links.group[a]
        _infer(q[i], u[i], links.pull, strength, inside[group], across[group], new)
        for k in range(n):
            change = max(change, abs(new[k] - q[i, k]))
            q[i, k] = new[k]
    return change


@kernel
def _infer(
    q: Floats, u: Floats, pull: float, strength: float, inside: Floats, across: Floats, new: Floats
) -> None:
    """Set the new q of one task by its score and the field of its links: [eq:link-update]."""
    for k in range(len(q)):
        new[k] = u[k] + strength * (pull * (inside[k] - q[k]) + across[k])
    softmax_into(new, new)
