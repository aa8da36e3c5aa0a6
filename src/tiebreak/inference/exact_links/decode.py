"""Decoding: one class per node such that no hard link is broken.

Components without loops and small loopy ones get their likeliest joint labelling. In large loopy
ones each node takes its best class that its neighbours allow, and what is left broken is repaired.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak import link_graph
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.exact_links.numbers import VisitCodes
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.network import Network
from tiebreak.link_graph import Closure

REPAIR_ROUNDS = 200
NO_LABEL = -1


def decode(links: ExactLinks | Any) -> Codes:
    """Return the class of each linked task of `links.task`, decoded jointly: [eq:decode]."""
    if not isinstance(links, ExactLinks):
        return np.asarray(links.decode())  # tasks that lie elsewhere are decoded there
    plan = links.plan
    coupling = links.coupling()
    pool_label, _ = links.backend.likeliest(links.q)
    label = pool_label[links.pool.n_alone :]  # a view, by visit
    links.backend.decode_forest(links.scores, plan.network, coupling, (0, plan.n_forest), label)
    links.backend.decode_cliques(links.scores, plan.cliques, coupling, label)
    if links.remembers:
        _decode_large(links, coupling, label)
    return np.asarray(pool_label[links.pool.node] ^ links.pool.flip)


def _decode_large(links: ExactLinks, coupling: Floats, label: Codes) -> None:
    """Give the surest nodes their class first, then repair what is broken."""
    with np.errstate(divide="ignore"):
        log_belief = np.log(links.belief)
    visits = np.arange(links.plan.n_exact, len(label), dtype=np.int32)
    surest_first = visits[np.argsort(-links.belief[visits].max(axis=1), kind="stable")]
    label[visits] = NO_LABEL
    network = links.plan.network
    links.backend.decode_greedily(log_belief, network, coupling, surest_first, label)
    rng = np.random.default_rng(0)  # breaks ties, so that two nodes do not swap for ever
    for _ in range(REPAIR_ROUNDS):
        broken = _on_broken_links(network, coupling, label)
        if not len(broken):
            return
        noisy = log_belief + rng.gumbel(size=log_belief.shape)
        links.backend.decode_greedily(noisy, network, coupling, rng.permutation(broken), label)
    _label_by_search(links, coupling, label)


def _on_broken_links(network: Network, coupling: Floats, label: Codes) -> VisitCodes:
    """Return the nodes at an end of a hard link that labels break."""
    owner = np.repeat(np.arange(network.n_nodes, dtype=np.int32), np.diff(network.start))
    hard = coupling[network.edge] == -np.inf
    return VisitCodes(np.unique(owner[hard & (label[owner] == label[network.other])]))


def _label_by_search(links: ExactLinks, coupling: Floats, label: Codes) -> None:
    """Take, in components still broken, any labelling that breaks nothing, if one is found."""
    plan = links.plan
    n_nodes = len(label)
    hard = coupling == -np.inf
    left = plan.left_visit[hard]
    right = plan.right_visit[hard]
    component = link_graph.components(n_nodes, left, right)
    broken = np.isin(component, component[_on_broken_links(plan.network, coupling, label)])
    inside = broken[left]
    apart = Closure(
        group=np.arange(n_nodes, dtype=np.int32),
        n_groups=n_nodes,
        size=np.ones(n_nodes, np.int64),
        left=left[inside],
        right=right[inside],
        conflicts=np.empty(0, dtype=np.int64),
    )
    allowed = links.scores > -np.inf
    found = link_graph.feasibility(apart, links.n_classes, allowed=allowed)
    if found.group_class is not None:
        label[broken] = found.group_class[broken]
