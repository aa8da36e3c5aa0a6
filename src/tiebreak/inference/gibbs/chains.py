"""Chains: sweeps of draws, and what is kept of them.

Nothing is kept per draw but a few numbers that show whether chains agree. Probabilities are means
of those from which classes were drawn, and moments of confusions are those given the classes,
averaged over draws: both vary less than shares of draws (Rao and Blackwell).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tiebreak.inference.exact_links.plan import OPEN
from tiebreak.inference.gibbs.graph import DrawGraph
from tiebreak.kernels.contract import DrawBackend
from tiebreak.kernels.draws import DrawCounts
from tiebreak.kernels.layout import Codes, Floats

MOST_WATCHED = 200  # workers whose accuracy is compared between chains: the busiest


class DrawPriors(NamedTuple):
    """Dirichlet counts before any response."""

    of_class: Floats  # (n_classes,)
    confusion: Floats  # (n_workers, answer, class)

    def counts(self) -> DrawCounts:
        """Return counts to draw with, none drawn yet."""
        n_workers, n_labels, n_classes = self.confusion.shape
        of_code = np.array(self.confusion.reshape(n_workers * n_labels, n_classes), order="C")
        return DrawCounts(self.of_class.copy(), of_code, self.confusion.sum(axis=1))


class PosteriorMoments(NamedTuple):
    """First and second moments, sums over draws; added up they are those of all chains."""

    confusion: Floats  # E[θ], (n_workers, answer, class)
    confusion_square: Floats  # E[θ²]
    accuracy: Floats  # E[Σ π θ], (n_workers,)
    accuracy_square: Floats
    class_prior: Floats  # E[π], (n_classes,)

    def plus(self, other: PosteriorMoments) -> PosteriorMoments:
        """Return the sums of both."""
        return PosteriorMoments(*(one + two for one, two in zip(self, other, strict=True)))

    def over(self, n_draws: int) -> PosteriorMoments:
        """Return means over so many draws."""
        return PosteriorMoments(*(each / n_draws for each in self))


class Chain(NamedTuple):
    """What one chain leaves."""

    marginal: Floats  # (n_nodes, n_classes) probabilities, mean over draws
    state: Codes  # (n_nodes,) the last draw
    moments: PosteriorMoments  # sums over draws
    watched: Floats  # (n_draws, n_watched) shares of classes and accuracies of workers


def run_chain(
    graph: DrawGraph,
    priors: DrawPriors,
    start: Floats,
    backend: DrawBackend,
    rng: np.random.Generator,
    *,
    n_warmup: int,
    n_draws: int,
    tick: Callable[[], None],
) -> Chain:
    """Draw all blocks again and again; keep what comes after the warm-up.

    Parameters
    ----------
    start
        (n_nodes, n_classes) probabilities from which the first classes are drawn.
    tick
        Called after each sweep.
    """
    state = first_state(graph, start, rng)
    counts = priors.counts()
    count_items(graph, counts, state)
    marginal = np.zeros_like(start)
    moments = None
    watched = []
    busiest = _busiest(graph, priors)
    for sweep in range(n_warmup + n_draws):
        if sweep == n_warmup:
            marginal[:] = 0.0
        blocks = graph.partitions[sweep % len(graph.partitions)]
        uniform = rng.random(blocks.n_blocks)
        backend.draw_blocks(graph.nodes, graph.couplings, blocks, counts, state, uniform, marginal)
        if sweep >= n_warmup:
            now = moments_of(counts)
            moments = now if moments is None else moments.plus(now)
            watched.append(np.concatenate([now.class_prior, now.accuracy[busiest]]))
        tick()
    assert moments is not None  # n_draws is 1 or more
    known = graph.known != OPEN
    marginal /= n_draws
    marginal[known] = 0.0
    marginal[known, graph.known[known]] = 1.0
    return Chain(marginal, state, moments, np.array(watched))


def first_state(graph: DrawGraph, start: Floats, rng: np.random.Generator) -> Codes:
    """Draw a first class for each node; those that hard links set apart take feasible ones."""
    running = np.cumsum(start, axis=1)
    wanted = rng.random(len(start)) * running[:, -1]
    state = (running <= wanted[:, None]).sum(axis=1)
    state = np.minimum(state, start.shape[1] - 1).astype(np.int32)
    if graph.feasible is not None:
        apart = np.isneginf(graph.couplings.log_odds)
        owner = np.repeat(np.arange(len(state)), np.diff(graph.couplings.start))
        hard = np.unique(owner[apart])
        state[hard] = graph.feasible[hard]
    return np.where(graph.known != OPEN, graph.known, state).astype(np.int32)


def count_items(graph: DrawGraph, counts: DrawCounts, state: Codes) -> None:
    """Add the items of all nodes, each of its class, to the counts."""
    nodes = graph.nodes
    owner = np.repeat(np.arange(nodes.n_nodes), np.diff(nodes.start))
    label = state[owner] ^ nodes.flip
    is_prior = nodes.code < 0
    n_labels = len(counts.of_code) // len(counts.of_worker)
    np.add.at(counts.of_class, label[is_prior], nodes.weight[is_prior])
    code = nodes.code[~is_prior]
    its_class = label[~is_prior]
    weight = nodes.weight[~is_prior]
    np.add.at(counts.of_code, (code, its_class), weight)
    np.add.at(counts.of_worker, (code // n_labels, its_class), weight)


def moments_of(counts: DrawCounts) -> PosteriorMoments:
    """Return the moments of confusions, accuracies and shares, given the drawn classes."""
    n_workers, n_classes = counts.of_worker.shape
    by_worker = counts.of_code.reshape(n_workers, -1, n_classes)
    total = counts.of_worker[:, None, :]
    mean = by_worker / total
    square = mean * (by_worker + 1.0) / (total + 1.0)
    right = np.ascontiguousarray(np.diagonal(mean, axis1=1, axis2=2))
    right_square = np.diagonal(square, axis1=1, axis2=2)
    share = counts.of_class / counts.of_class.sum()
    share_square = np.outer(share, counts.of_class) + np.diag(share)
    share_square /= counts.of_class.sum() + 1.0
    accuracy_square = ((right @ share_square) * right).sum(axis=1)
    accuracy_square += (right_square - right**2) @ np.diagonal(share_square)
    return PosteriorMoments(mean, square, right @ share, accuracy_square, share)


def _busiest(graph: DrawGraph, priors: DrawPriors) -> Codes:
    """Return the workers with the most responses."""
    n_workers, n_labels, _ = priors.confusion.shape
    code = graph.nodes.code[graph.nodes.code >= 0]
    given = np.bincount(code // n_labels, minlength=n_workers)
    return np.argsort(-given, kind="stable")[:MOST_WATCHED].astype(np.int32)
