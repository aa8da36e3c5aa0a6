"""The seam of task models: what every one promises, and a new one in thirty lines.

Scores in, class probabilities, counts and a value out: against enumeration on a few rows. Then the
loop: the bound never falls and stays below the evidence, whatever the models are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumeration
from properties.strategies import Crowd, crowds, problem_of
from properties.test_bound import assert_never_falls, log_evidence
from scipy.special import betaln, logsumexp, psi

import tiebreak as tb
from tiebreak.data import GoldCodes
from tiebreak.inference import (
    MODELS,
    ClassPrior,
    ConfusionMatrices,
    CrowdFacts,
    FitState,
    Independent,
    Inferred,
    Known,
    OwnRows,
    Parameters,
    Problem,
    Stopping,
    climb,
    crowd_model,
    dirichlet,
    lay_out,
    with_fixed,
    with_log_prior,
)
from tiebreak.inference.tasks.coupling.linked import Joint, Linked, decode_jointly, with_links
from tiebreak.inference.tasks.mean_field import with_mean_field
from tiebreak.kernels import Floats, Mask, compiled, layout, reference
from tiebreak.links.graph import LinkCodes, imply, violated

BACKENDS = pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
PLAIN = Stopping(0.0, 12, accelerate=False)
Drawn = tuple[Floats, LinkCodes, dict[int, int]]


def link_codes(rows: list[tuple[int, int, bool, float]]) -> LinkCodes:
    ends = np.array([row[:2] for row in rows], dtype=np.int32).reshape(-1, 2)
    must = np.array([row[2] for row in rows], dtype=bool)
    weight = np.array([row[3] for row in rows], dtype=np.float64)
    given = ends.min(axis=1), ends.max(axis=1), must, weight, None, np.arange(len(rows))
    return LinkCodes(*given)


def columns_of(crowd: tb.Responses) -> tuple[Any, Any, Any]:
    return crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each()


def gold_codes(gold: dict[int, int]) -> GoldCodes:
    return GoldCodes(np.array(list(gold), np.int32), np.array(list(gold.values()), np.int32))


def linked(n_tasks: int, n_classes: int, links: LinkCodes, gold: Any, backend: Any) -> Problem:
    """Set up links between tasks with one response each: code i on task i."""
    each = np.arange(n_tasks + 1)
    role = np.zeros(n_tasks, np.int8)
    rows = layout.lay_out(each, each[:-1].astype(np.int32), role, n_tasks, n_classes)
    workers = ConfusionMatrices(np.ones((1, 1, n_classes)), n_tasks)
    plain = Problem(rows, Independent(ClassPrior(np.ones(n_classes))), workers, backend)
    return with_links(plain, imply(links, n_classes, gold=gold), tb.ExactLinkOptions())


def infer(problem: Problem, u: Floats) -> tuple[Floats, float, Joint]:
    """Infer tasks from scores u: q by task, the value of the linked ones, and what is left."""
    tasks = problem.tasks
    assert isinstance(tasks, Linked)
    n_classes = u.shape[1]
    q = tasks.known.clamp(np.full(u.shape, 1.0 / n_classes))
    parameters = (np.ones(n_classes), np.empty(0))
    found = tasks.infer(parameters, u[tasks.task], q[tasks.task], None)
    q[tasks.task] = found.q
    return q, found.value, found.memory


def score_of(u: Floats, links: LinkCodes, gold: dict[int, int]) -> Any:
    assert links.weight is not None
    signed = np.where(links.must, links.weight, -links.weight)
    triples = list(zip(links.left.tolist(), links.right.tolist(), links.must, signed, strict=True))

    def score(y: tuple[int, ...]) -> float:
        if any(y[i] != k for i, k in gold.items()):
            return -np.inf
        total = sum(u[i, k] for i, k in enumerate(y))
        for i, j, must, weight in triples:
            agree = y[i] == y[j]
            if np.isnan(weight):
                total += 0.0 if agree == must else -np.inf
            elif agree:
                total += weight
        return float(total)

    return score


@st.composite
def linked_scores(draw: st.DrawFn) -> Drawn:
    n_classes = draw(st.integers(2, 4))
    n_tasks = draw(st.integers(2, 6 if n_classes < 4 else 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    truth = rng.integers(0, n_classes, n_tasks)
    ends = st.tuples(st.integers(0, n_tasks - 1), st.integers(0, n_tasks - 1))
    drawn = draw(st.lists(ends.filter(lambda p: p[0] != p[1]), min_size=1, max_size=9))
    rows = []
    for i, j in sorted({(min(p), max(p)) for p in drawn}):
        if rng.random() < 0.5:  # hard links tell the truth, so that some labelling exists
            rows.append((i, j, bool(truth[i] == truth[j]), np.nan))
        else:
            rows.append((i, j, bool(rng.random() < 0.5), rng.uniform(0.1, 4.0)))
    gold = {int(i): int(truth[i]) for i in np.flatnonzero(rng.random(n_tasks) < 0.2)}
    scale = draw(st.sampled_from([1.0, 5.0]))
    return rng.normal(0, scale, (n_tasks, n_classes)), link_codes(rows), gold


@BACKENDS
@settings(max_examples=150, deadline=None)
@given(linked_scores())
def test_links_are_inferred_and_decoded_as_by_enumeration(backend: Any, drawn: Drawn) -> None:
    u, links, gold = drawn
    n_tasks, n_classes = u.shape
    problem = linked(n_tasks, n_classes, links, gold_codes(gold), backend)
    tasks = problem.tasks
    assert isinstance(tasks, Linked)
    q, value, joint = infer(problem, u)
    score = score_of(u, links, gold)
    every = list(enumeration.labellings(n_tasks, n_classes, {}))
    want, log_total = enumeration.marginals(score, n_tasks, n_classes)
    inside = np.union1d(tasks.implied.task, tasks.known.task)
    assert np.abs(q[inside] - want[inside]).max() < 1e-9
    free = np.setdiff1d(np.arange(n_tasks), inside)
    beside = sum(np.logaddexp.reduce(u[i]) for i in free)
    beside += u[tasks.known.task, tasks.known.label].sum()
    found = value + (q[tasks.task] * u[tasks.task]).sum() + beside
    assert found == pytest.approx(log_total, abs=1e-9)
    weight = np.exp(np.array([score(y) for y in every]) - log_total)
    soft = np.flatnonzero(~links.is_hard)
    pairs = zip(links.left[soft], links.right[soft], strict=True)
    agree = [sum(w for y, w in zip(every, weight, strict=True) if y[i] == y[j]) for i, j in pairs]
    assert np.abs(tasks.agreement(joint) - np.array(agree)).max(initial=0.0) < 1e-9
    label = np.array([gold.get(i, int(u[i].argmax())) for i in range(n_tasks)])
    label[tasks.known.task] = tasks.known.label
    label[tasks.task] = decode_jointly(tasks, joint)
    assert score(tuple(label.tolist())) == pytest.approx(max(map(score, every)), abs=1e-9)


@BACKENDS
@pytest.mark.parametrize("seed", range(4))
def test_large_loopy_components_are_decoded_without_a_broken_link(seed: int, backend: Any) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, 150)
    pairs = rng.integers(0, 150, (450, 2))
    apart = {(min(p), max(p)) for p in pairs.tolist() if truth[p[0]] != truth[p[1]]}
    links = link_codes([(i, j, False, np.nan) for i, j in sorted(apart)])
    problem = linked(150, 4, links, None, backend)
    tasks = problem.tasks
    assert isinstance(tasks, Linked)
    assert tasks.plan.report.large == 1
    assert not tasks.exact
    u = rng.normal(0, 2, (150, 4))
    _, _, joint = infer(problem, u)
    parameters = (np.ones(4), np.empty(0))
    for _ in range(4):
        joint = tasks.infer(parameters, u[tasks.task], u[tasks.task], joint).memory
    label = np.zeros(150, dtype=np.int32)
    label[tasks.task] = decode_jointly(tasks, joint)
    assert not violated(label, links).any()


def test_marginal_labels_may_break_a_link_that_decoded_ones_keep() -> None:
    """Two tasks that cannot agree, each with most of its weight on class 0 of three."""
    problem = linked(2, 3, link_codes([(0, 1, False, np.nan)]), None, reference)
    q, _, joint = infer(problem, np.log(np.array([[0.9, 0.05, 0.05], [0.9, 0.05, 0.05]])))
    assert q[0].argmax() == q[1].argmax() == 0
    assert isinstance(problem.tasks, Linked)
    one, other = decode_jointly(problem.tasks, joint)
    assert one != other


@settings(max_examples=60, deadline=None)
@given(crowds(max_tasks=5), st.booleans(), st.sampled_from(["weighed", "learn", "hard"]))
def test_the_bound_with_links_never_falls_and_stays_below_the_evidence(
    crowd: Crowd, knows: bool, kind: str
) -> None:
    links = crowd.links
    if not links.n_links:
        return
    rng = np.random.default_rng(0)
    options = tb.ExactLinkOptions(error="learn" if kind == "learn" else None)
    if kind == "weighed":
        links = links._replace(weight=rng.uniform(0.2, 4.0, links.n_links))
    if kind == "hard":
        truth = rng.integers(0, crowd.responses.n_classes, crowd.responses.n_tasks)
        truth[crowd.gold.task] = crowd.gold.label
        links = links._replace(must=truth[links.left] == truth[links.right])
    gold = crowd.gold if knows else None
    firm = np.zeros(links.n_links, dtype=bool) if kind == "learn" else links.is_hard
    implied = imply(links, crowd.responses.n_classes, firm=firm, gold=gold)
    problem = with_links(problem_of(crowd), implied, options)
    assert isinstance(problem.tasks, Linked)
    q = problem.tasks.known.clamp(problem.votes())
    state = climb(problem, FitState(q=q), PLAIN)
    assert_never_falls(list(state.bounds))
    if kind == "weighed":
        assert links.weight is not None
        signed = np.where(links.must, links.weight, -links.weight)
        ends = links.left.tolist(), links.right.tolist()
        pairs = list(zip(*ends, signed.tolist(), strict=True))
        evidence = log_evidence(crowd, gold, pairs)
        assert state.bounds[-1] <= evidence + 1e-8 * (1 + abs(evidence))


def test_the_value_of_learnt_error_rates_is_the_sum_of_its_terms() -> None:
    """Evidence of the counts = expected log probability of the answers less KL(rates, prior)."""
    rng = np.random.default_rng(0)
    links = link_codes([(i, i + 1, bool(rng.random() < 0.6), np.nan) for i in range(7)])
    links = links._replace(weight=None, who=np.array([0, 0, 0, 1, 1, 1, 1], np.int32))
    firm = np.zeros(7, dtype=bool)
    implied = imply(links, 3, firm=firm)
    problem = linked(8, 3, link_codes([(0, 1, True, 1.0)]), None, reference)
    plain = problem._replace(tasks=Independent(problem.tasks.shares))
    options = tb.ExactLinkOptions(error="learn", error_prior=(1.0, 9.0))
    tasks = with_links(plain, implied, options).tasks
    assert isinstance(tasks, Linked)
    assert tasks.errors is not None
    errors = tasks.errors
    agree = rng.uniform(size=7)
    counts = errors.prior + errors.count(agree)
    log_wrong, log_right = psi(counts) - psi(counts.sum(axis=0))
    source = errors.source
    if_same = np.where(links.must, log_right[0, source], log_wrong[0, source])
    if_different = np.where(links.must, log_wrong[1, source], log_right[1, source])
    answers = agree @ if_same + (1.0 - agree) @ if_different
    kl = betaln(*errors.prior) - betaln(*counts)
    kl += ((counts - errors.prior) * np.stack([log_wrong, log_right])).sum(axis=0)
    kl[1, errors.one_rate] = 0.0  # a source with links of one kind has one rate
    assert errors.log_evidence(counts) == pytest.approx(answers - kl.sum(), abs=1e-9)


# -- rows with given scores, and rows of a model that ties nothing ---------------------------------


@settings(max_examples=40)
@given(crowds())
def test_own_rows_of_a_model_without_ties_are_free_rows(crowd: Crowd) -> None:
    problem = problem_of(crowd)
    everyone = np.arange(problem.rows.n_tasks, dtype=np.int32)
    own = OwnRows(everyone, layout.part_of(problem.rows, everyone, problem.n_states))
    tied = problem._replace(tasks=replace(problem.tasks, own=own))
    one, other = (climb(each, FitState(q=each.votes()), PLAIN) for each in (problem, tied))
    assert np.abs(one.q - other.q).max() < 1e-9
    assert one.bounds == pytest.approx(other.bounds, rel=1e-9)


@settings(max_examples=40)
@given(crowds(), st.booleans())
def test_given_scores_raise_a_bound_that_never_falls(crowd: Crowd, knows: bool) -> None:
    """A classifier's log prior: rows differ in it, and known rows do not care."""
    problem = problem_of(crowd)
    rng = np.random.default_rng(1)
    at = np.flatnonzero(rng.random(problem.rows.n_tasks) < 0.6)
    if not len(at):
        return
    fixed = np.log(rng.dirichlet(np.ones(problem.n_classes), len(at)))
    known = Known.of(crowd.gold if knows else None)
    problem = known.on(with_fixed(problem, at, fixed))
    state = climb(problem, FitState(q=known.clamp(problem.votes())), PLAIN)
    assert_never_falls(list(state.bounds))
    assert (state.q[known.task, known.label] == 1.0).all()


def test_scores_that_repeat_the_class_prior_are_the_class_prior() -> None:
    crowd = tb.simulate.crowd(300, 8, 3, responses_per_task=4, random_state=0).responses
    shares = np.array([0.5, 0.3, 0.2])
    workers = crowd_model("confusion", CrowdFacts.of_responses(crowd)).workers
    fixed_prior = ClassPrior(1e12 * shares, dirichlet.FIXED)
    even = ClassPrior(np.ones(3), dirichlet.FIXED)
    one = Problem(lay_out(crowd), Independent(fixed_prior), workers, reference)
    other = one._replace(tasks=Independent(even))
    other = with_fixed(other, np.arange(300), np.log(np.tile(shares, (300, 1))))
    first, second = (climb(each, FitState(q=each.votes())) for each in (one, other))
    assert np.abs(first.q - second.q).max() < 1e-6


@settings(max_examples=40)
@given(crowds(max_tasks=5), st.booleans(), st.booleans())
def test_rows_of_log_prior_stand_in_the_place_of_class_shares(
    crowd: Crowd, knows: bool, is_linked: bool
) -> None:
    """Never falling, the bound stays below the evidence: all labellings, each task by its row."""
    plain = problem_of(crowd)
    log_prior = np.log(
        np.random.default_rng(1).dirichlet(np.ones(plain.n_classes), plain.rows.n_tasks)
    )
    problem = with_log_prior(plain, log_prior)
    known = Known.of(crowd.gold if knows else None)
    links = crowd.links._replace(weight=np.full(crowd.links.n_links, 0.7))
    if is_linked and links.n_links:
        implied = imply(links, plain.n_classes, gold=crowd.gold if knows else None)
        problem = with_links(problem, implied, tb.ExactLinkOptions())
    else:
        is_linked = False
        problem = known.on(problem)
    state = climb(problem, FitState(q=known.clamp(problem.votes())), PLAIN)
    assert_never_falls(list(state.bounds))
    rows = list(zip(*(each.tolist() for each in columns_of(crowd.responses)), strict=True))
    prior = np.repeat(crowd.confusion_prior.transpose(0, 2, 1), crowd.responses.n_workers, axis=0)
    pairs = zip(links.left.tolist(), links.right.tolist(), links.must.tolist(), strict=True)
    pulls = [(i, j, 0.7 if must else -0.7) for i, j, must in pairs]

    def score(y: tuple[int, ...]) -> float:
        total = enumeration.log_joint(y, rows, np.ones(plain.n_classes), prior)
        total -= enumeration.log_joint(y, [], np.ones(plain.n_classes), prior)
        total += enumeration.link_sum(y, pulls) if is_linked else 0.0
        return total + float(sum(log_prior[i, k] for i, k in enumerate(y)))

    gold = dict(zip(known.task.tolist(), known.label.tolist(), strict=True))
    every = enumeration.labellings(plain.rows.n_tasks, plain.n_classes, gold)
    evidence = enumeration.log_total(score, every)
    # What is known counts with its row in the evidence, and not in the bound.
    beside = float(log_prior[known.task, known.label].sum() + np.log(plain.n_classes) * len(gold))
    assert state.bounds[-1] + beside <= evidence + 1e-8 * (1 + abs(evidence))


def test_equal_rows_of_log_prior_are_even_shares_that_are_known() -> None:
    crowd = tb.simulate.crowd(200, 8, 3, responses_per_task=3, random_state=0).responses
    workers = crowd_model("confusion", CrowdFacts.of_responses(crowd)).workers
    even = ClassPrior(np.ones(3), dirichlet.FIXED)
    one = Problem(lay_out(crowd), Independent(even), workers, reference)
    rows = np.full((200, 3), -np.log(3.0))
    other = with_log_prior(one._replace(tasks=Independent(ClassPrior(np.ones(3)))), rows)
    first, second = (climb(each, FitState(q=each.votes())) for each in (one, other))
    assert np.abs(first.q - second.q).max() < 1e-12
    assert first.bounds == pytest.approx(second.bounds, rel=1e-12)


def test_copies_have_the_mean_of_their_log_priors_and_pairs_the_sum() -> None:
    log_prior = np.log([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    pairs = [(0, 1, True, np.nan), (1, 2, True, np.nan)]
    for is_copy, want in ((True, log_prior.mean(axis=0)), (False, log_prior.sum(axis=0))):
        links = link_codes(pairs)._replace(weight=None, duplicate=np.full(2, is_copy))
        workers = ConfusionMatrices(np.ones((1, 2, 2)), 1)
        rows = layout.lay_out(np.zeros(4, int), np.empty(0, np.int32), np.zeros(3, np.int8), 2, 2)
        plain = Problem(rows, Independent(ClassPrior(np.ones(2))), workers, reference)
        options = tb.ExactLinkOptions()
        problem = with_links(with_log_prior(plain, log_prior), imply(links, 2), options)
        found = climb(problem, FitState(q=problem.votes()), PLAIN).q
        assert found == pytest.approx(np.tile(np.exp(want - logsumexp(want)), (3, 1)))


# -- a new model: tasks that follow each other -----------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Chain(Independent):
    """Sequences: a task's class depends on the one before it; `first` marks where one begins."""

    transitions: Floats  # (n_classes, n_classes) prior counts
    first: Mask  # (n_own,)

    @property
    def prior(self) -> Parameters:
        return (self.shares.prior, self.transitions)

    def log_evidence(self, parameters: Parameters) -> float:
        after, before = (dirichlet.log_beta(each, 1) for each in (parameters[1], self.transitions))
        return super().log_evidence(parameters) + float((after - before).sum())

    def infer(self, parameters: Parameters, score: Floats, q: Floats, memory: Any) -> Inferred:
        step = dirichlet.expected_log(parameters[1], 1)
        forward, backward = score.copy(), np.zeros_like(score)
        for t in range(1, len(score)):
            if not self.first[t]:
                forward[t] += logsumexp(forward[t - 1][:, None] + step, axis=0)
        for t in range(len(score) - 2, -1, -1):
            if not self.first[t + 1]:
                backward[t] = logsumexp(step + score[t + 1] + backward[t + 1], axis=1)
        log_total = logsumexp(forward + backward, axis=1)
        found = np.exp(forward + backward - log_total[:, None])
        inner = np.flatnonzero(~self.first)
        pairs = forward[inner - 1][:, :, None] + step + (score + backward)[inner][:, None, :]
        counts = np.exp(pairs - log_total[inner][:, None, None]).sum(axis=0)
        value = log_total[self.first].sum() - (found * score).sum() - (counts * step).sum()
        return Inferred(found, (counts,), float(value))

    def tally(self, q: Floats) -> Parameters:
        return (q[:-1].T @ (q[1:] * ~self.first[1:, None]),)

    def value(self, q: Floats) -> None:
        return


def chained(name: str, crowd: tb.Responses, n_chained: int) -> Problem:
    """Set up sequences of ten among the first tasks; the others stay alone."""
    states, workers = crowd_model(name, CrowdFacts.of_responses(crowd))
    rows = lay_out(crowd)
    at = np.arange(n_chained, dtype=np.int32)
    first = at % 10 == 0
    draws = first.astype(np.float64)  # a later task draws from the one before it
    own = OwnRows(at, layout.part_of(rows, at, crowd.n_classes), draws)
    prior = np.ones((crowd.n_classes, crowd.n_classes)) + np.eye(crowd.n_classes)
    tasks = Chain(states, own, transitions=prior, first=first)
    return Problem(rows, tasks, workers, reference)


@pytest.mark.parametrize("name", [name for name in MODELS if "subtypes" not in name])
def test_a_chain_climbs_with_every_worker_model(name: str) -> None:
    crowd = tb.simulate.crowd(120, 7, 3, responses_per_task=3, random_state=1).responses
    problem = chained(name, crowd, 80)
    plain = climb(problem, FitState(q=problem.votes()), Stopping(1e-10, 5000, accelerate=False))
    fast = climb(problem, FitState(q=problem.votes()), Stopping(1e-10, 5000))
    for state in (plain, fast):
        assert state.converged
        assert_never_falls(list(state.bounds))
    assert fast.n_sweeps < plain.n_sweeps
    assert np.abs(fast.q - plain.q).max() < 1e-6
    again = climb(problem, FitState(fast.q, fast.parameters, fast.memory))
    assert again.n_sweeps <= 2


def test_a_chain_is_inferred_as_by_enumeration() -> None:
    crowd = tb.simulate.crowd(5, 3, 3, responses_per_task=2, random_state=2).responses
    tasks = chained("confusion", crowd, 5).tasks
    assert isinstance(tasks, Chain)
    rng = np.random.default_rng(0)
    score, counts = rng.normal(size=(5, 3)), rng.uniform(1.0, 5.0, (3, 3))
    found = tasks.infer((np.ones(3), counts), score, score, None)
    step = dirichlet.expected_log(counts, 1)
    every = list(product(range(3), repeat=5))
    logs = [
        sum(score[t, y[t]] for t in range(5)) + sum(step[y[t], y[t + 1]] for t in range(4))
        for y in every
    ]
    weight = np.exp(np.array(logs) - logsumexp(logs))
    want = np.zeros((5, 3))
    for y, share in zip(every, weight, strict=True):
        want[np.arange(5), y] += share
    assert np.abs(found.q - want).max() < 1e-12
    total = found.value + (found.q * score).sum() + (found.added[0] * step).sum()
    assert total == pytest.approx(logsumexp(logs), abs=1e-9)


# -- mean field keeps the same promises ------------------------------------------------------------


@settings(max_examples=60)
@given(
    crowds(max_tasks=5),
    st.sampled_from([0.1, 1.0, 5.0, 50.0]),
    st.sampled_from(["in-turn", "damped"]),
    st.booleans(),
    st.booleans(),
)
def test_the_bound_of_mean_field_never_falls_and_stays_below_the_evidence(
    crowd: Crowd, strength: float, schedule: str, knows: bool, weigh: bool
) -> None:
    links = crowd.links
    if not links.n_links:
        return
    weight = np.random.default_rng(1).uniform(0.1, 3.0, links.n_links)
    links = links._replace(weight=weight if weigh else None)
    gold = crowd.gold if knows else None
    options = tb.MeanFieldOptions(schedule=schedule, closure=False)
    implied = imply(links, crowd.responses.n_classes, gold=gold)
    problem, known = with_mean_field(problem_of(crowd), implied, options)
    problem = problem._replace(tasks=replace(problem.tasks, strength=strength))  # type: ignore[call-arg]
    state = climb(problem, FitState(q=known.clamp(problem.votes())), PLAIN)
    assert_never_falls(list(state.bounds))
    signed = strength * np.where(links.must, 1.0, -1.0) * (weight if weigh else 1.0)
    pairs = list(zip(links.left.tolist(), links.right.tolist(), signed.tolist(), strict=True))
    evidence = log_evidence(crowd, gold, pairs)
    assert state.bounds[-1] <= evidence + 1e-8 * (1 + abs(evidence))
