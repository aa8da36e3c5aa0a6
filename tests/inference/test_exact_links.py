"""Joint inference of linked tasks: worked numbers, and compiled kernels against the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from golden.vectors import close, problem, vector
from golden.vectors import link_codes as hard_codes
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.test_tasks_seam import BACKENDS, infer, link_codes, linked

import tiebreak as tb
from tiebreak.inference import FitState, Problem, Stopping, climb
from tiebreak.inference.tasks.coupling.link_errors import LearntErrors
from tiebreak.inference.tasks.coupling.linked import Linked, with_links
from tiebreak.kernels import Floats, Mask, compiled, reference
from tiebreak.links.graph import LinkCodes, imply


def with_these(plain: Problem, links: LinkCodes, options: Any = None) -> Problem:
    firm = None if options is None else np.zeros(links.n_links, dtype=bool)
    return with_links(plain, imply(links, 3, firm=firm), options or tb.ExactLinkOptions())


def linked_of(problem: Problem) -> Linked:
    assert isinstance(problem.tasks, Linked)
    return problem.tasks


def ended(problem: Problem, n_iter: int) -> FitState:
    """Climb from the result of plain VB."""
    start = FitState(q=np.array(vector("vb_diag")[1]["q"]))
    return climb(problem, start, Stopping(0.0, n_iter))


@BACKENDS
def test_hard_links_of_the_worked_crowd(backend: Any) -> None:
    given, expected = vector("hard_merged")
    plain = problem(given["dataset"], given["prior"], backend)
    state = ended(with_these(plain, hard_codes(given["ml"], given["cl"])), given["n_iter"])
    close(state.q, expected["q"])
    close(state.parameters[0], expected["alpha"])


@BACKENDS
def test_weighted_links_of_the_worked_crowd(backend: Any) -> None:
    given, expected = vector("structured")
    links = hard_codes(given["ml"], given["cl"])
    links = links._replace(weight=np.full(links.n_links, given["eta"]))
    task = with_these(problem(given["dataset"], given["prior"], backend), links)
    state = ended(task, given["n_iter"])
    close(state.q, expected["q"])
    close(state.parameters[0], expected["alpha"])
    pairs = zip(links.left, links.right, linked_of(task).agreement(state.memory), strict=True)
    for i, j, agree in pairs:
        close(agree, expected["agree"][f"{i}-{j}"])


@BACKENDS
def test_sum_product_on_the_worked_tree(backend: Any) -> None:
    given, expected = vector("bp_tree")
    u = np.array(given["u"])
    rows = [
        (i, j, weight > 0, abs(weight))
        for (i, j), weight in zip(given["edges"], given["weights"], strict=True)
    ]
    task = linked(4, 3, link_codes(rows), None, backend)
    q, value, joint = infer(task, u)
    close(q, expected["q"])
    close(linked_of(task).agreement(joint), expected["agree"])
    close(value + (q * u).sum(), expected["lnZ"])


@BACKENDS
def test_a_strong_link_between_two_tasks_is_exact(backend: Any) -> None:
    given, expected = vector("must_link_order")
    u = np.array(given["u"])
    task = linked(2, 2, link_codes([(0, 1, True, given["eta"])]), None, backend)
    q, value, joint = infer(task, u)
    close(q, expected["exact_marginals"])
    close(value + (q * u).sum(), expected["exact_lnZ"])
    close(linked_of(task).agreement(joint)[0], expected["exact_agree"])
    merged = linked(2, 2, link_codes([(0, 1, True, np.nan)]), None, backend)
    close(infer(merged, u)[0][0], expected["eta_infinity"])


class Tied(LearntErrors):
    """Sources err as often on tasks that are the same as on tasks that differ."""

    @property
    def one_rate(self) -> Mask:
        return np.ones(self.prior.shape[2], dtype=bool)


@BACKENDS
def test_error_rates_of_the_worked_crowd(backend: Any) -> None:
    given, expected = vector("noisy_links_exact")
    links = link_codes([(i, j, sign > 0, np.nan) for i, j, sign, _ in given["links"]])
    links = links._replace(weight=None)
    source = np.array([expected["sources"].index(who) for *_, who in given["links"]], np.int32)
    options = tb.ExactLinkOptions(error="learn", error_prior=(given["a0"], given["b0"]))
    task = with_these(problem(given["dataset"], given["prior"], backend), links, options)
    prior = np.empty((2, 2, len(expected["sources"])))
    prior[:] = np.reshape([given["a0"], given["b0"]], (2, 1, 1))
    errors = Tied(links.must, source, prior)
    tasks = replace(linked_of(task), errors=errors)
    state = ended(task._replace(tasks=tasks), given["n_iter"])
    close(state.q, expected["q"])
    close(state.parameters[1][0, 0], expected["a"])
    close(state.parameters[1][1, 0], expected["b"])
    close(errors.log_odds(state.parameters[1])[[0, 3]], np.array(expected["eta"]) * [1, -1])


def scores_for(tasks: Linked, seed: int, scale: float) -> Floats:
    shape = (tasks.plan.network.n_nodes, tasks.n_classes)
    return np.random.default_rng(seed).normal(0, scale, shape)


@pytest.mark.parametrize("down", [False, True])
def test_compiled_passes_equal_the_reference(down: bool) -> None:
    rng = np.random.default_rng(4)
    n_tasks = 40
    n_classes = 3
    truth = rng.integers(0, n_classes, n_tasks)
    pairs = {(min(p), max(p)) for p in rng.integers(0, n_tasks, (90, 2)).tolist() if p[0] != p[1]}
    rows = [(i, j, bool(truth[i] == truth[j]), 2.0) for i, j in sorted(pairs)]
    results = []
    for backend in (reference, compiled):
        tasks = linked_of(linked(n_tasks, n_classes, link_codes(rows), None, backend))
        scores = scores_for(tasks, 5, 2.0)
        belief = np.full(scores.shape, 1.0 / n_classes)
        shape = (2 * len(tasks.plan.left), n_classes)
        messages = np.random.default_rng(6).normal(0, 1, shape)
        fixed = scores, tasks.plan.network, tasks.plan.coupling(tasks.log_odds), messages, belief
        found = backend.pass_messages(*fixed, (0, len(belief)), 0.3, down=down)
        results.append((*found, messages, belief))
    for one, other in zip(*results, strict=True):
        assert np.abs(np.asarray(one) - np.asarray(other)).max() < 1e-11


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(3, 5), st.booleans())
def test_compiled_elimination_equals_the_reference(seed: int, n_classes: int, hard: bool) -> None:
    """A ring of hubs with many leaves each: small messages meet large tables."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, 24)
    ring = [(0, 1), (1, 2), (0, 2), (2, 3), (0, 3)]
    pairs = ring + [(int(rng.integers(4)), leaf) for leaf in range(4, 24)]
    weight = np.nan if hard else 1.5
    rows = [(i, j, bool(truth[i] == truth[j]), weight) for i, j in pairs]
    results = []
    for backend in (reference, compiled):
        tasks = linked_of(linked(24, n_classes, link_codes(rows), None, backend))
        scores = scores_for(tasks, seed, 3.0)
        belief = np.full(scores.shape, 1.0 / n_classes)
        equal = np.zeros(len(tasks.plan.left))
        fixed = scores, tasks.plan.cliques, tasks.plan.coupling(tasks.log_odds)
        found = backend.eliminate(*fixed, belief, equal)
        label = np.zeros(len(belief), dtype=np.int32)
        backend.decode_cliques(*fixed, label)
        results.append((*found, belief, equal, label))
    for one, other in zip(*results, strict=True):
        assert np.abs(np.asarray(one) - np.asarray(other)).max(initial=0.0) < 1e-10
