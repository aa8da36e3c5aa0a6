"""Decoding: one class per linked task such that no hard link is broken.

Components without loops and small loopy ones get their likeliest joint labelling. In large loopy
ones each node takes its best class that its neighbours allow, and what is left broken is repaired.
"""

from __future__ import annotations

import numpy as np

from tiebreak.inference.tasks.coupling.linked import Joint, Linked
from tiebreak.kernels.arrays import likeliest
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.network import Network
from tiebreak.links import graph as link_graph

REPAIR_ROUNDS = 200
NO_LABEL = -1


def decode(links: Linked, joint: Joint) -> Codes:
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
    ends = [link_graph.places_in(broken, end[inside]) for end in (left, right)]
    found = find_classes(ends[0], ends[1], joint.scores[broken] > -np.inf)
    if found.group_class is not None:
        label[broken] = found.group_class
        waiting = broken[found.waiting]
        links.backend.decode_greedily(joint.scores, plan.network, coupling, waiting, label)
