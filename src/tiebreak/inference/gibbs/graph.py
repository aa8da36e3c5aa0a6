"""The graph that is drawn: nodes of tasks, couplings between them, blocks drawn together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.errors import LinkError
from tiebreak.inference.exact_links.plan import OPEN, log_odds_of, merge
from tiebreak.inference.inputs import Inputs
from tiebreak.kernels.draws import PRIOR, Blocks, Couplings, DrawNodes
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.link_graph import LinkCodes
from tiebreak.link_graph.colouring import feasibility
from tiebreak.responses import Responses

LARGEST_TABLE = 1024  # joint classes of a block; a component with more is cut into blocks
N_PARTITIONS = 16  # ways to cut large components, taken in turn


class DrawGraph(NamedTuple):
    """Everything that stays fixed while chains run."""

    nodes: DrawNodes
    couplings: Couplings
    partitions: tuple[Blocks, ...]  # sweeps take them in turn
    node_of_task: Codes  # (n_tasks,)
    flip_of_task: Codes  # (n_tasks,) 1: the task has the other one of two classes
    known: Codes  # (n_nodes,) the class of a node, or OPEN
    feasible: Codes | None  # (n_nodes,) classes that break no hard link; None: any do
    component: Codes  # (n_nodes,)

    def by_task(self, of_nodes: Floats) -> Floats:
        """Return for each task the row of its node, exchanged where it is flipped."""
        rows = of_nodes[self.node_of_task]
        if not self.flip_of_task.any():
            return rows
        return np.where(self.flip_of_task[:, None] == 1, rows[:, ::-1], rows)

    def by_node(self, of_tasks: Floats) -> Floats:
        """Return for each node the mean row of its tasks."""
        rows = of_tasks
        if self.flip_of_task.any():
            rows = np.where(self.flip_of_task[:, None] == 1, rows[:, ::-1], rows)
        total = np.zeros((self.nodes.n_nodes, of_tasks.shape[1]))
        np.add.at(total, self.node_of_task, rows)
        return np.asarray(total / total.sum(axis=1, keepdims=True))


def draw_graph(inputs: Inputs, error: float | None, rng: np.random.Generator) -> DrawGraph:
    """Merge what hard links tie, and say which nodes are drawn together.

    Parameters
    ----------
    error
        How often links without weight are wrong; None: never.
    rng
        Cuts components that are too large to be drawn as one.
    """
    crowd = inputs.responses
    node, flip, known = _merged(inputs)
    n_nodes = len(known)
    left, right, log_odds = _edges(inputs, error)
    component = link_graph.components(n_nodes, left, right)
    pays = _pays_prior(inputs.link_codes, node, known)
    couplings = _couplings(n_nodes, left, right, log_odds)
    return DrawGraph(
        _nodes(crowd, node, flip, n_nodes, pays),
        couplings,
        _partitions(couplings, component, known, crowd.n_classes, rng),
        node,
        flip,
        known,
        _feasible(inputs, known, bool(np.isneginf(log_odds).any())),
        component,
    )


def _merged(inputs: Inputs) -> tuple[Codes, Codes, Codes]:
    """Return node and flip of each task, and the known class of each node."""
    n_tasks = inputs.responses.n_tasks
    node = np.full(n_tasks, -1, dtype=np.int32)
    flip = np.zeros(n_tasks, dtype=np.int32)
    of_groups = np.empty(0, dtype=np.int32)
    if inputs.implied is not None:
        merged = merge(inputs.implied)
        node[merged.task] = merged.node
        flip[merged.task] = merged.flip
        of_groups = merged.node_class
    alone = np.flatnonzero(node < 0)
    node[alone] = len(of_groups) + np.arange(len(alone), dtype=np.int32)
    known = np.full(len(of_groups) + len(alone), OPEN, dtype=np.int32)
    known[: len(of_groups)] = of_groups
    if inputs.gold_codes is not None:
        task, label = inputs.gold_codes
        known[node[task]] = label ^ flip[task]
    return node, flip, known


def _edges(inputs: Inputs, error: float | None) -> tuple[Codes, Codes, Floats]:
    """Return the ends of edges between nodes, and the log-odds that the ends are equal.

    A soft link between duplicates that is wrong may make the copy any other class, all alike:
    [eq:sampling].
    """
    links = inputs.link_codes
    if links is None or inputs.implied is None:
        nothing = np.empty(0, dtype=np.int32)
        return nothing, nothing, np.empty(0)
    merged = merge(inputs.implied)
    n_classes = max(inputs.responses.n_classes, 2)  # with one there is nothing to draw
    log_odds, hard = log_odds_of(links, error, n_classes)
    soft = links.keep(~hard)
    left, right, opposite = merged.ends(soft)
    signed = np.where(opposite, -log_odds[~hard], log_odds[~hard])
    apart = left != right
    return (
        np.concatenate([merged.left_node, left[apart]]).astype(np.int32),
        np.concatenate([merged.right_node, right[apart]]).astype(np.int32),
        np.concatenate([np.full(len(merged.left_node), -np.inf), signed[apart]]),
    )


def _pays_prior(links: LinkCodes | None, node: Codes, known: Codes) -> Mask:
    """Return which tasks are draws from the class prior: one of each unit, an open one if any."""
    pays = np.ones(len(node), dtype=bool)
    if links is None or links.duplicate is None or not links.duplicate.any():
        return pays
    ends = (links.left[links.duplicate], links.right[links.duplicate])
    unit = link_graph.components(len(node), *ends)
    open_first = np.lexsort((node, known[node] != OPEN))
    _, first = np.unique(unit[open_first], return_index=True)
    pays[:] = False
    pays[open_first[first]] = True
    return pays


def _nodes(crowd: Responses, node: Codes, flip: Codes, n_nodes: int, pays: Mask) -> DrawNodes:
    """Gather the items of each node: responses, and draws from the class prior."""
    task = crowd.task_of_each()
    payer = np.flatnonzero(pays)
    of_node = np.concatenate([node[task], node[payer]])
    code = np.concatenate([crowd.code, np.full(len(payer), PRIOR)])
    order = np.lexsort((code, of_node))
    of_node = of_node[order]
    code = code[order].astype(np.int32)
    is_again = np.zeros(len(code), dtype=bool)
    worker = code // crowd.n_classes  # PRIOR is one more worker
    is_again[1:] = (worker[1:] == worker[:-1]) & (of_node[1:] == of_node[:-1])
    in_turn = np.zeros(n_nodes, dtype=bool)
    in_turn[of_node[is_again]] = True
    return DrawNodes(
        np.concatenate([[0], np.cumsum(np.bincount(of_node, minlength=n_nodes))]),
        code,
        np.concatenate([flip[task], flip[payer]])[order].astype(np.int8),
        np.concatenate([crowd.weight_of_each(), np.ones(len(payer))])[order],
        in_turn,
    )


def _couplings(n_nodes: int, left: Codes, right: Codes, log_odds: Floats) -> Couplings:
    """List the neighbours of each node."""
    node = np.concatenate([left, right])
    order = np.argsort(node, kind="stable")
    n_others = np.bincount(node, minlength=n_nodes)
    return Couplings(
        np.concatenate([[0], np.cumsum(n_others)]).astype(np.int64),
        np.concatenate([right, left])[order].astype(np.int32),
        np.concatenate([log_odds, log_odds])[order],
    )


def _partitions(
    couplings: Couplings,
    component: Codes,
    known: Codes,
    n_classes: int,
    rng: np.random.Generator,
) -> tuple[Blocks, ...]:
    """Return blocks of open nodes: whole components where they are small."""
    is_open = known == OPEN
    is_coupled = np.diff(couplings.start) > 0
    alone = np.flatnonzero(is_open & ~is_coupled).astype(np.int32)
    coupled = np.flatnonzero(is_open & is_coupled).astype(np.int32)
    by_component = coupled[np.argsort(component[coupled], kind="stable")]
    cuts = np.flatnonzero(np.diff(component[by_component])) + 1
    groups = np.split(by_component, cuts) if len(by_component) else []
    largest = _most_nodes(n_classes)
    small = [group for group in groups if len(group) <= largest]
    large = [group for group in groups if len(group) > largest]
    found = []
    for _ in range(N_PARTITIONS if large else 1):
        cut = [block for group in large for block in _cut(couplings, group, largest, rng)]
        found.append(_blocks(alone, small + cut))
    return tuple(found)


def _most_nodes(n_classes: int) -> int:
    """Return how many nodes are drawn together at most.

    >>> _most_nodes(2), _most_nodes(4), _most_nodes(2000)
    (10, 5, 1)
    """
    n_nodes = 1
    while n_classes ** (n_nodes + 1) <= LARGEST_TABLE:
        n_nodes += 1
    return n_nodes


def _cut(couplings: Couplings, group: Codes, largest: int, rng: np.random.Generator) -> list[Codes]:
    """Cut a component into connected blocks of at most so many nodes, grown from random seeds."""
    waiting = set(group.tolist())
    blocks = []
    for seed in rng.permutation(group).tolist():
        if seed not in waiting:
            continue
        waiting.remove(seed)
        block = [seed]
        for node in block:
            others = couplings.other[couplings.start[node] : couplings.start[node + 1]]
            for other in rng.permutation(others).tolist():
                if len(block) < largest and other in waiting:
                    waiting.remove(other)
                    block.append(other)
        blocks.append(np.array(block, dtype=np.int32))
    return blocks


def _blocks(alone: Codes, groups: list[Codes]) -> Blocks:
    sizes = np.concatenate([np.ones(len(alone)), [len(group) for group in groups]])
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Blocks(start, np.concatenate([alone, *groups]).astype(np.int32))


def _feasible(inputs: Inputs, known: Codes, is_needed: bool) -> Codes | None:
    """Return classes of nodes that break no hard link; None where any classes do."""
    implied = inputs.implied
    if not is_needed or implied is None:
        return None
    n_groups = len(implied.group_class)
    found = feasibility(implied.closure, inputs.responses.n_classes, known=known[:n_groups])
    if found.group_class is None:
        raise LinkError(
            "No labelling that keeps all links was found to start from. Use VariationalBayes, or "
            "say that links may be wrong: ExactLinkOptions(error=0.02)."
        )
    classes = np.zeros(len(known), dtype=np.int32)
    classes[:n_groups] = found.group_class
    return classes
