"""Fitting with links done exactly: hard, soft, or with error rates learnt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.gold import GoldCodes
from tiebreak.inference import calibration, decoding, error_rates, link_errors, merging, vb
from tiebreak.inference.calibration import TRUSTED_ERROR, Evidence
from tiebreak.inference.error_rates import Scored
from tiebreak.inference.exact_links import ExactLinks
from tiebreak.inference.link_errors import Answers, LearntLinks, Rates
from tiebreak.inference.planning import LinkReport
from tiebreak.inference.vb import Beliefs, Problem, Run
from tiebreak.kernels import layout
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.link_graph import LinkCodes

LEARN, AUTO, ASKED = "learn", "auto", "asked"
FOUND = AUTO, ASKED, LEARN  # rates that are found, not stated


class JointOptions(NamedTuple):
    """How links are read and labels are decoded."""

    link_error: float | str | None
    error_prior: tuple[float, float]  # of learnt error rates: wrong and right pseudo-answers
    decode_jointly: bool
    calibrate: bool
    tol: float
    max_iter: int
    accelerate: bool = False


class Start(NamedTuple):
    """Where a fit with links or known labels starts."""

    run: Run
    plain: Beliefs  # of plain VB, which has seen neither links nor labels
    is_warm: bool = False  # the run is that of a fit with fewer links or labels


class JointFit(NamedTuple):
    """Where a fit with links ended."""

    run: Run
    label: Codes | None  # decoded jointly, or None: the likeliest class of each task
    report: LinkReport
    temperature: float | None
    rates: Rates | None  # learnt error rates by source
    end: Floats  # q where the ascent ended, before temperature
    wrong: Floats  # (n_links,) probability that each link is wrong; 0 for hard ones


def fit_joint(
    plain: Problem, start: Start, links: LinkCodes, gold: GoldCodes | None, options: JointOptions
) -> JointFit:
    """Fit from what plain VB found; decode and calibrate once at the end."""
    exact, hard = _exact_links(plain, links, gold, options)
    known = _union(gold, exact.merged.known())
    estimated = None
    if options.link_error in (AUTO, ASKED):
        crowd = Scored(_scores(plain, start.plain), _votes(plain))
        asked = options.link_error == ASKED
        estimated = error_rates.estimate(exact, links.keep(~hard), crowd, asked=asked)
    model = _learnt(exact, links, hard, options)
    problem = vb.with_links(plain, model or exact, exact.task, known)
    run = vb.ascend(
        problem,
        vb.clamp(start.run.q, known),
        tol=options.tol,
        max_iter=options.max_iter,
        accelerate=options.accelerate,
        implied=None if len(known.task) else start.run.beliefs,
        links_first=start.is_warm,
    )
    tau, end = None, run.q
    if options.calibrate:
        found = estimated if model is None else model.rates
        evidence = _evidence(links, hard, gold, options, found)
        tau = _temperature(plain, start.plain, evidence)
        run = _cooled(problem, exact, run, tau)
    report = exact.finish(run.q)
    wrong = np.zeros(links.n_links)
    agree = exact.agreement()
    wrong[~hard] = np.where(links.must[~hard], 1.0 - agree, agree)
    label = _decoded(exact, run.q) if options.decode_jointly else None
    rates = estimated if model is None else model.rates
    return JointFit(run, label, report, tau, rates, end, wrong)


def calibrated(plain: Problem, start: Start, run: Run, gold: GoldCodes) -> tuple[Run, float]:
    """Calibrate a fit with known labels alone, by those labels."""
    tau = _temperature(plain, start.plain, Evidence(None, np.empty(0), gold))
    q, _ = _inferred_again(plain, run, tau)
    return run._replace(q=vb.clamp(q, gold)), tau


def _exact_links(
    plain: Problem, links: LinkCodes, gold: GoldCodes | None, options: JointOptions
) -> tuple[ExactLinks, Mask]:
    wrong, right = options.error_prior
    expected = wrong / (wrong + right)
    error = expected if options.link_error in FOUND else options.link_error
    assert not isinstance(error, str)  # checked by the estimator
    log_odds, hard = merging.log_odds_of(links, error)
    merged = merging.merge(links, hard, plain.n_classes, gold)
    soft = merging.soft_links(links, ~hard, merged)
    model = ExactLinks(
        merged, soft, log_odds[~hard], plain.n_classes, plain.backend, plain.n_threads
    )
    return model, hard


def _learnt(
    exact: ExactLinks, links: LinkCodes, hard: Mask, options: JointOptions
) -> LearntLinks | None:
    """Wrap the links so that the error rates of their sources are learnt."""
    if options.link_error != LEARN:
        return None
    who = np.zeros(links.n_links, np.int32) if links.who is None else links.who + 1
    n_sources = int(who.max(initial=0)) + 1
    answers = Answers(links.must[~hard], who[~hard], n_sources)
    prior = link_errors.prior_rates(n_sources, *options.error_prior, tied=False)
    return LearntLinks(exact, answers, prior)


def _union(gold: GoldCodes | None, implied: GoldCodes) -> GoldCodes:
    if gold is None:
        return implied
    task = np.concatenate([gold.task, implied.task])
    label = np.concatenate([gold.label, implied.label])
    task, first = np.unique(task, return_index=True)
    return GoldCodes(task.astype(np.int32), label[first].astype(np.int32))


def _scores(problem: Problem, beliefs: Beliefs) -> Floats:
    return problem.backend.score_tasks(problem.tasks, *vb.expected_logs(beliefs))


def _temperature(plain: Problem, beliefs: Beliefs, evidence: Evidence) -> float:
    """Fit the temperature to evidence; only the tasks that it names, usually few, are scored."""
    tasks = evidence.tasks()
    part = plain._replace(tasks=layout.part_of(plain.tasks, tasks, plain.n_classes))
    return calibration.fit_temperature(_scores(part, beliefs), evidence.among(tasks), _votes(plain))


def _votes(problem: Problem) -> float:
    """Return the mean number of responses of a task."""
    n_votes = np.diff(problem.tasks.start)
    return float(np.average(n_votes, weights=problem.copies)) if len(n_votes) else 0.0


def _evidence(
    links: LinkCodes,
    hard: Mask,
    gold: GoldCodes | None,
    options: JointOptions,
    rates: Rates | None,
) -> Evidence:
    """Trust hard links; take soft ones at the error rate that is stated or was found."""
    if rates is not None:
        same, different = rates.mean
        source = 0 if links.who is None or len(same) == 1 else links.who + 1
        error = np.where(links.must, different[source], same[source])
        return Evidence(links, error, gold)
    stated = None if options.link_error is None else float(options.link_error)
    log_odds, _ = merging.log_odds_of(links, stated)
    error = np.where(hard, TRUSTED_ERROR, 1.0 / (1.0 + np.exp(np.abs(log_odds))))
    return Evidence(links, error, gold)


def _cooled(problem: Problem, exact: ExactLinks, run: Run, tau: float) -> Run:
    """Infer tasks once more with their scores times τ, beliefs as they are."""
    q, u = _inferred_again(problem, run, tau)
    exact.update(q, u)
    return run._replace(q=q)


def _inferred_again(problem: Problem, run: Run, tau: float) -> tuple[Floats, Floats]:
    """Return q with the free tasks inferred from τ times their scores, and such scores of linked.

    A score is a sum over responses, so that one sweep with expected logs times τ does it.
    """
    q, u = run.q.copy(), np.empty_like(run.q)
    log_prior, log_table = vb.expected_logs(run.beliefs)
    cool = tau * log_prior, tau * log_table
    problem.backend.sweep_tasks(q, u, problem.tasks, *cool, problem.n_threads, counting=False)
    return q, u


def _decoded(exact: ExactLinks, q: Floats) -> Codes:
    label: Codes = q.argmax(axis=1).astype(np.int32)
    label[exact.task] = decoding.decode(exact)
    return label
