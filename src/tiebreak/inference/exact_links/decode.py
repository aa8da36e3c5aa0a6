"""Decoding: one class per node such that no hard link is broken.

Components without loops and small loopy ones get their likeliest joint labelling. In large loopy
ones each node takes its best class that its neighbours allow, and what is left broken is repaired.
"""

from __future__ import annotations

import numpy as np

from tiebreak import link_graph
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.network import Network
from tiebreak.link_graph import Closure

REPAIR_ROUNDS = 200


def decode(links: ExactLinks) -> Codes:
    """Return the class of each linked task of `links.task`, decoded jointly: [eq:decode]."""
    plan, coupling, backend = links.plan, links.coupling(), links.backend
    labels, _ = backend.likeliest(links.q)
    label = labels[links.pool.n_alone :]
    backend.decode_forest(links.scores, plan.network, coupling, (0, plan.n_forest), label)
    backend.decode_cliques(links.scores, plan.cliques, coupling, label)
    if links.remembers:
        _decode_loopy(links, coupling, label)
    return np.asarray(labels[links.pool.members.node] ^ links.pool.members.flip)


def _decode_loopy(links: ExactLinks, coupling: Floats, label: Codes) -> None:
    """Give the surest nodes their class first, then repair what is broken."""
    with np.errstate(divide="ignore"):
        wish = np.log(links.belief)
    nodes = np.arange(links.plan.n_exact, len(label), dtype=np.int32)
    order = nodes[np.argsort(-links.belief[nodes].max(axis=1), kind="stable")]
    label[nodes] = -1
    network = links.plan.network
    links.backend.decode_greedily(wish, network, coupling, order, label)
    rng = np.random.default_rng(0)  # breaks ties, so that two nodes cannot chase each other
    for _ in range(REPAIR_ROUNDS):
        broken = _on_broken_links(network, coupling, label)
        if not len(broken):
            return
        shaken = wish + rng.gumbel(size=wish.shape)
        links.backend.decode_greedily(shaken, network, coupling, rng.permutation(broken), label)
    _take_witness(links, coupling, label)


def _on_broken_links(network: Network, coupling: Floats, label: Codes) -> Codes:
    """Return the nodes at an end of a hard link that labels break."""
    owner = np.repeat(np.arange(network.n_nodes, dtype=np.int32), np.diff(network.start))
    hard = coupling[network.edge] == -np.inf
    return np.unique(owner[hard & (label[owner] == label[network.other])])


def _take_witness(links: ExactLinks, coupling: Floats, label: Codes) -> None:
    """Take, in components still broken, any labelling that breaks nothing, if one is found."""
    n_nodes, plan = len(label), links.plan
    hard = coupling == -np.inf
    ends = plan.left[hard], plan.right[hard]
    component = link_graph.components(n_nodes, *ends)
    broken = np.isin(component, component[_on_broken_links(plan.network, coupling, label)])
    inside = broken[ends[0]]
    alone = np.arange(n_nodes, dtype=np.int32)
    none = np.empty(0, dtype=np.int64)
    apart = Closure(
        alone, n_nodes, np.ones(n_nodes, np.int64), ends[0][inside], ends[1][inside], none
    )
    allowed = links.scores > -np.inf
    found = link_graph.feasibility(apart, links.n_classes, allowed=allowed)
    if found.group_class is not None:
        label[broken] = found.group_class[broken]
