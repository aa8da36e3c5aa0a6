"""Search: colour a small graph exactly, the vertex with the fewest classes left first."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from tiebreak.kernels.layout import Codes, Mask, Offsets
from tiebreak.link_graph.closure import Lists, by_owner

Verdict = Literal["feasible", "infeasible", "unknown"]


class Puzzle(NamedTuple):
    """A graph to colour: neighbours, and which classes a vertex may have, (n, n_classes)."""

    near: Lists
    allowed: Mask


class SearchResult(NamedTuple):
    """What a search found; `touched` are the vertices it had to look at."""

    verdict: Verdict
    colour: Codes
    touched: Offsets
    n_steps: int


def solve(puzzle: Puzzle, budget: int) -> SearchResult:
    """Colour a graph by backtracking, within `budget` steps.

    Where there is no colouring, there is none of the touched vertices alone either.
    """
    colouring = _PartialColouring(puzzle)
    verdict, n_steps = _backtrack(colouring, budget)
    return SearchResult(verdict, colouring.colour, np.flatnonzero(colouring.touched), n_steps)


def smallest_core(puzzle: Puzzle, touched: Offsets, budget: int) -> Offsets:
    """Leave out vertices one by one while no colouring is possible; return those that remain."""
    core = touched
    for vertex in touched:
        if budget <= 0:
            break
        rest = core[core != vertex]
        if len(rest) == len(core):
            continue
        found = solve(restrict(puzzle, rest), budget)
        budget -= found.n_steps + len(rest)
        if found.verdict == "infeasible":
            core = rest[found.touched]
    return core


def restrict(puzzle: Puzzle, vertices: Offsets) -> Puzzle:
    """Keep these vertices (sorted) and what joins them."""
    return Puzzle(inside(puzzle.near, vertices), puzzle.allowed[vertices])


def inside(near: Lists, vertices: Offsets) -> Lists:
    """Return the neighbours that these vertices (sorted) have among themselves, by place."""
    place, other = near.of(vertices)
    at = np.searchsorted(vertices, other)
    at[at == len(vertices)] = 0
    both = vertices[at] == other
    return by_owner(len(vertices), place[both], at[both])


def _backtrack(colouring: _PartialColouring, budget: int) -> tuple[Verdict, int]:
    n_steps = 0
    path = [colouring.next_branch()] if colouring.n_open else []
    while path:
        vertex, options = path[-1]
        colouring.take_back(vertex)
        if not options:
            path.pop()
            continue
        if n_steps >= budget:
            return "unknown", n_steps
        n_steps += 1
        colouring.give(vertex, options.pop())
        if colouring.n_open:
            path.append(colouring.next_branch())
        else:
            break
    return ("infeasible" if colouring.n_open else "feasible"), n_steps


class _PartialColouring:
    """A partial colouring: how often each class is blocked at a vertex, how many are left."""

    def __init__(self, puzzle: Puzzle) -> None:
        n_vertices, n_classes = puzzle.allowed.shape
        self.near = [
            puzzle.near.value[puzzle.near.start[v] : puzzle.near.start[v + 1]]
            for v in range(n_vertices)
        ]
        self.blocked = (~puzzle.allowed).astype(np.int32)
        self.n_left = puzzle.allowed.sum(axis=1)
        self.n_open = n_vertices
        self.colour = np.full(n_vertices, -1, dtype=np.int32)
        self.touched = np.zeros(n_vertices, dtype=bool)
        self.in_use = np.zeros(n_classes, dtype=np.int64)
        # Classes that the same vertices may have are interchangeable until one is in use.
        self.kind = np.unique(puzzle.allowed, axis=1, return_inverse=True)[1].ravel()
        self.tie = 1.0 - np.diff(puzzle.near.start) / (n_vertices + 1.0)  # more neighbours first

    def next_branch(self) -> tuple[int, list[int]]:
        """Choose the open vertex with the fewest classes left; return it and what to try."""
        rank = np.where(self.colour < 0, self.n_left + self.tie, np.inf)
        vertex = int(rank.argmin())
        self.touched[vertex] = True
        return vertex, self.options(vertex)

    def options(self, vertex: int) -> list[int]:
        """Return the classes to try, the last first; of interchangeable new ones only one."""
        left = np.flatnonzero(self.blocked[vertex] == 0)
        is_new = self.in_use[left] == 0
        new = left[is_new]
        _, one_each = np.unique(self.kind[new], return_index=True)
        return [*new[one_each].tolist(), *left[~is_new].tolist()]

    def give(self, vertex: int, its_class: int) -> None:
        """Colour a vertex."""
        self.colour[vertex] = its_class
        self.in_use[its_class] += 1
        self.n_open -= 1
        near = self.near[vertex]
        self.n_left[near[self.blocked[near, its_class] == 0]] -= 1
        self.blocked[near, its_class] += 1

    def take_back(self, vertex: int) -> None:
        """Open a vertex again, if it is coloured."""
        its_class = self.colour[vertex]
        if its_class < 0:
            return
        self.colour[vertex] = -1
        self.in_use[its_class] -= 1
        self.n_open += 1
        near = self.near[vertex]
        self.blocked[near, its_class] -= 1
        self.n_left[near[self.blocked[near, its_class] == 0]] += 1
