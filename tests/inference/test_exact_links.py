"""Joint inference of linked tasks equals enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from golden.link_models import GivenLinks, TiedRates
from golden.vectors import close, problem, vector
from golden.vectors import link_codes as hard_codes
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.bound import bound_terms
from scipy.special import betaln, psi

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import vb
from tiebreak.inference.known import clamp
from tiebreak.inference.tasks import mean_field
from tiebreak.inference.tasks.coupling import ascents as joint
from tiebreak.inference.tasks.coupling import link_errors
from tiebreak.inference.tasks.coupling.infer import ExactLinks
from tiebreak.inference.tasks.coupling.link_errors import Answers, LearntRates
from tiebreak.inference.tasks.coupling.plan import log_odds_of
from tiebreak.kernels import compiled, layout, reference
from tiebreak.kernels.layout import ByTask, Swept
from tiebreak.links.graph import LinkCodes, imply

BACKENDS = pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])


def link_codes(rows: list[tuple[int, int, bool, float]]) -> LinkCodes:
    ends = np.array([row[:2] for row in rows], dtype=np.int32).reshape(-1, 2)
    return LinkCodes(
        ends.min(axis=1),
        ends.max(axis=1),
        np.array([row[2] for row in rows], dtype=bool),
        np.array([row[3] for row in rows], dtype=np.float64),
        None,
        np.arange(len(rows)),
    )


def exact(
    links: LinkCodes,
    tasks: int | ByTask,
    n_classes: int,
    gold: GoldCodes | None,
    backend: Any,
) -> ExactLinks:
    """Set up joint inference of tasks with responses, or of so many with one each: code i on i."""
    log_odds, hard = log_odds_of(links, None)
    implied = imply(links, n_classes, gold=gold)
    if isinstance(tasks, int):
        one = np.arange(tasks + 1)
        role = vb.roles(tasks, joint.known_tasks(implied), None)
        tasks = layout.lay_out(one, one[:-1].astype(np.int32), role, tasks, n_classes)
    return ExactLinks(tasks, implied, links.keep(~hard), log_odds[~hard], n_classes, backend)


def infer(model: ExactLinks, u: np.ndarray, q: np.ndarray) -> Swept:
    """Infer tasks with one response each from scores u, a part of which is their prior."""
    log_prior = np.linspace(-2.0, 0.0, u.shape[1])
    swept = model.infer(log_prior, u - log_prior)
    model.spread(q)
    return swept


def score_of(u: np.ndarray, links: LinkCodes, gold: dict[int, int]) -> Any:
    log_odds, _ = log_odds_of(links, None)
    triples = list(
        zip(links.left.tolist(), links.right.tolist(), links.must, log_odds, strict=True)
    )

    def score(y: tuple[int, ...]) -> float:
        if any(y[i] != k for i, k in gold.items()):
            return -np.inf
        total = sum(u[i, k] for i, k in enumerate(y))
        for i, j, must, weight in triples:
            agree = y[i] == y[j]
            if np.isinf(weight):
                total += 0.0 if agree == must else -np.inf
            elif agree:
                total += weight
        return float(total)

    return score


@st.composite
def linked_scores(draw: st.DrawFn) -> tuple[np.ndarray, LinkCodes, dict[int, int]]:
    n_classes = draw(st.integers(2, 4))
    n_tasks = draw(st.integers(2, 6 if n_classes < 4 else 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    truth = rng.integers(0, n_classes, n_tasks)
    ends = st.tuples(st.integers(0, n_tasks - 1), st.integers(0, n_tasks - 1))
    drawn = draw(st.lists(ends.filter(lambda p: p[0] != p[1]), min_size=1, max_size=9))
    pairs = {(min(p), max(p)) for p in drawn}
    rows = []
    for i, j in sorted(pairs):
        if rng.random() < 0.5:  # hard links tell the truth, so that some labelling exists
            rows.append((i, j, bool(truth[i] == truth[j]), np.nan))
        else:
            rows.append((i, j, bool(rng.random() < 0.5), rng.uniform(0.1, 4.0)))
    gold = {int(i): int(truth[i]) for i in np.flatnonzero(rng.random(n_tasks) < 0.2)}
    scale = draw(st.sampled_from([1.0, 5.0]))
    return rng.normal(0, scale, (n_tasks, n_classes)), link_codes(rows), gold


Drawn = tuple[np.ndarray, LinkCodes, dict[int, int]]


def settle(drawn: Drawn, backend: Any) -> tuple[ExactLinks, np.ndarray, Swept]:
    """Infer the linked tasks of what was drawn; known ones are certain from the start."""
    u, links, gold = drawn
    codes = GoldCodes(np.array(list(gold), np.int32), np.array(list(gold.values()), np.int32))
    model = exact(links, u.shape[0], u.shape[1], codes, backend)
    known = joint.known_tasks(model.implied)
    q = clamp(np.full(u.shape, 1.0 / u.shape[1]), known)
    return model, q, infer(model, u, q)


@BACKENDS
@settings(max_examples=150, deadline=None)
@given(linked_scores())
def test_marginals_and_log_partition_equal_enumeration(backend: Any, drawn: Drawn) -> None:
    u, links, gold = drawn
    n_tasks, n_classes = u.shape
    model, q, swept = settle(drawn, backend)
    known = GoldCodes(*model.implied.known_labels())
    want, log_total = enumeration.marginals(score_of(u, links, gold), n_tasks, n_classes)
    pooled = model.task
    linked = np.union1d(model.implied.task, pooled)
    assert len(pooled) == len(linked) - len(known.task)
    assert np.abs(q[linked] - want[linked]).max() < 1e-9
    free = np.setdiff1d(np.arange(n_tasks), linked)
    outside = sum(u[i, gold[int(i)]] if int(i) in gold else np.logaddexp.reduce(u[i]) for i in free)
    inside = u[known.task, known.label].sum()
    found = swept.entropy + (q[pooled] * u[pooled]).sum() + outside + inside
    assert found == pytest.approx(log_total, abs=1e-9)
    assert np.abs(swept.totals - q[pooled].sum(axis=0)).max() < 1e-9
    counts = np.zeros_like(u)
    counts[pooled] = q[pooled]
    assert np.abs(swept.counts - counts).max() < 1e-9
    for one, other in zip(model.counted(q), swept[:2], strict=True):
        assert np.abs(one - other).max() < 1e-9


@BACKENDS
@settings(max_examples=60, deadline=None)
@given(linked_scores())
def test_agreement_of_soft_links_equals_enumeration(backend: Any, drawn: Drawn) -> None:
    u, links, gold = drawn
    n_tasks, n_classes = u.shape
    model, *_ = settle(drawn, backend)
    score = score_of(u, links, gold)
    every = list(enumeration.labellings(n_tasks, n_classes, {}))
    weight = np.exp(np.array([score(y) for y in every]) - enumeration.log_total(score, iter(every)))
    soft = np.flatnonzero(~links.is_hard)
    pairs = zip(links.left[soft], links.right[soft], strict=True)
    want = [sum(w for y, w in zip(every, weight, strict=True) if y[i] == y[j]) for i, j in pairs]
    assert np.abs(model.agreement() - np.array(want)).max(initial=0.0) < 1e-9


def climb(model: ExactLinks, task: vb.Problem, n_iter: int) -> tuple[vb.Run, list[float]]:
    """Ascend from the VB result; return also the bound after each update of the tasks."""
    task = vb.with_nodes(task, model, model.task, joint.known_tasks(model.implied))
    q = np.array(vector("vb_diag")[1]["q"])
    beliefs = vb.implied_beliefs(task, q)
    traces = []
    for _ in range(n_iter):
        swept = vb.update_tasks(task, task.open(q), beliefs)
        model.spread(q)
        traces.append(bound_terms(task, q, beliefs).total)
        beliefs = vb.update_beliefs(task, swept.counts, swept.totals)
    bound = vb.bound_after_update(task, beliefs, swept.entropy)
    return vb.Run(q, beliefs, [bound], n_iter, True), traces


@BACKENDS
def test_hard_links_of_the_worked_crowd(backend: Any) -> None:
    given, expected = vector("hard_merged")
    task = problem(given["dataset"], given["prior"], backend)
    links = hard_codes(given["ml"], given["cl"])
    model = exact(links, task.tasks, 3, None, backend)
    run, traces = climb(model, task, given["n_iter"])
    close(run.q, expected["q"])
    close(run.beliefs.alpha, expected["alpha"])
    close(np.array(traces), expected["elbo_trace_after_e_step"])


@BACKENDS
def test_weighted_links_of_the_worked_crowd(backend: Any) -> None:
    given, expected = vector("structured")
    links = hard_codes(given["ml"], given["cl"])
    links = links._replace(weight=np.full(links.n_links, given["eta"]))
    task = problem(given["dataset"], given["prior"], backend)
    model = exact(links, task.tasks, 3, None, backend)
    run, traces = climb(model, task, given["n_iter"])
    close(run.q, expected["q"])
    close(run.beliefs.alpha, expected["alpha"])
    close(np.array(traces), expected["elbo_trace_after_e_step"])
    pairs = zip(links.left, links.right, model.agreement(), strict=True)
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
    model = exact(link_codes(rows), 4, 3, None, backend)
    q = np.full(u.shape, 1 / 3)
    value = infer(model, u, q).entropy
    close(q, expected["q"])
    close(model.agreement(), expected["agree"])
    close(value + (q * u).sum(), expected["lnZ"])


@BACKENDS
def test_a_strong_link_between_two_tasks_is_exact(backend: Any) -> None:
    given, expected = vector("must_link_order")
    u = np.array(given["u"])
    model = exact(link_codes([(0, 1, True, given["eta"])]), 2, 2, None, backend)
    q = np.full(u.shape, 0.5)
    value = infer(model, u, q).entropy
    close(q, expected["exact_marginals"])
    close(value + (q * u).sum(), expected["exact_lnZ"])
    close(model.agreement()[0], expected["exact_agree"])
    merged = exact(link_codes([(0, 1, True, np.nan)]), 2, 2, None, backend)
    infer(merged, u, q)
    close(q[0], expected["eta_infinity"])


@BACKENDS
@pytest.mark.parametrize("name", ["noisy_links_exact", "noisy_links_meanfield"])
def test_error_rates_of_the_worked_crowd(name: str, backend: Any) -> None:
    given, expected = vector(name)
    rows = [(i, j, sign > 0, 1.0) for i, j, sign, _ in given["links"]]
    links = link_codes(rows)
    source = np.array([expected["sources"].index(who) for *_, who in given["links"]], np.int32)
    answers = Answers(links.must, source, len(expected["sources"]))
    task = problem(given["dataset"], given["prior"], backend)
    linked = np.arange(6, dtype=np.int32)
    joint_links = exact(links, task.tasks, 3, None, backend)
    is_exact = name == "noisy_links_exact"
    prior = link_errors.prior_rates(2, given["a0"], given["b0"])
    bounds = []
    if is_exact:
        model = TiedRates(joint_links, answers, prior)
        task = vb.with_nodes(task, model, joint_links.task, joint.known_tasks(joint_links.implied))
    else:
        groups = mean_field.given_groups(links)
        role = vb.roles(6, None, linked)
        model = TiedRates(GivenLinks(groups, 1.0, role, backend, given=links), answers, prior)
        task = task._replace(tasks=task.tasks._replace(role=role), links=model)
    q = np.array(vector("vb_diag")[1]["q"])
    beliefs = vb.implied_beliefs(task, q)
    for _ in range(given["n_iter"]):
        swept = vb.update_tasks(task, task.open(q), beliefs)
        beliefs = vb.update_beliefs(task, swept.counts, swept.totals)
        bounds.append(vb.bound_after_update(task, beliefs, swept.entropy))
    if is_exact:
        joint_links.spread(q)
    close(q, expected["q"])
    close(model.rates.wrong[0], expected["a"])
    close(model.rates.right[0], expected["b"])
    close(link_errors.log_odds(model.rates, answers)[[0, 3]], np.array(expected["eta"]) * [1, -1])
    if expected["elbo_trace"]:
        close(np.array(bounds), expected["elbo_trace"])


@BACKENDS
def test_the_value_of_learnt_error_rates_is_the_sum_of_its_terms(backend: Any) -> None:
    """Entropy, the expected log probability of the answers, and minus KL(rates, prior)."""
    given, expected = vector("noisy_links_exact")
    links = link_codes([(i, j, sign > 0, 1.0) for i, j, sign, _ in given["links"]])
    source = np.array([expected["sources"].index(who) for *_, who in given["links"]], np.int32)
    task = problem(given["dataset"], given["prior"], backend)
    joint_links = exact(links, task.tasks, 3, None, backend)
    prior = link_errors.prior_rates(2, 1.0, 9.0)
    model = LearntRates(Answers(links.must, source, 2), prior)
    joint_links.learn(model)
    task = vb.with_nodes(
        task, joint_links, joint_links.task, joint.known_tasks(joint_links.implied)
    )
    q = np.array(vector("vb_diag")[1]["q"])
    for _ in range(3):
        log_odds = joint_links.log_odds
        vb.update_tasks(task, task.open(q), vb.implied_beliefs(task, q))
        joint_links.set_log_odds(log_odds)  # as they were in the sweep
        agree = joint_links.agreement()
        entropy = joint_links.entropy()
        joint_links.set_log_odds(link_errors.log_odds(model.rates, model.answers))
        wrong, right = model.rates
        log_wrong = psi(wrong) - psi(wrong + right)
        log_right = psi(right) - psi(wrong + right)
        if_same = np.where(links.must, log_right[0, source], log_wrong[0, source])
        if_different = np.where(links.must, log_wrong[1, source], log_right[1, source])
        answers = agree @ if_same + (1.0 - agree) @ if_different
        kl = betaln(prior.wrong, prior.right) - betaln(wrong, right)
        kl += (wrong - prior.wrong) * log_wrong + (right - prior.right) * log_right
        kl[1, model.answers.one_rate] = 0.0  # a source with links of one kind has one rate
        assert joint_links.last_value == pytest.approx(entropy + answers - kl.sum(), abs=1e-9)


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
        model = exact(link_codes(rows), n_tasks, n_classes, None, backend)
        model.scores = np.random.default_rng(5).normal(0, 2, model.scores.shape)
        span = 0, len(model.belief)
        messages = np.random.default_rng(6).normal(0, 1, model.messages.shape)
        found = backend.pass_messages(
            model.scores, model.plan.network, model.coupling(), messages, model.belief,
            span, 0.3, down=down,
        )  # fmt: skip
        results.append((*found, messages, model.belief))
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
        model = exact(link_codes(rows), 24, n_classes, None, backend)
        model.scores = np.random.default_rng(seed).normal(0, 3, model.scores.shape)
        equal = np.zeros(len(model.plan.left))
        fixed = model.scores, model.plan.cliques, model.coupling()
        found = backend.eliminate(*fixed, model.belief, equal)
        label = np.zeros(len(model.belief), dtype=np.int32)
        backend.decode_cliques(*fixed, label)
        results.append((*found, model.belief, equal, label))
    for one, other in zip(*results, strict=True):
        assert np.abs(np.asarray(one) - np.asarray(other)).max(initial=0.0) < 1e-10
