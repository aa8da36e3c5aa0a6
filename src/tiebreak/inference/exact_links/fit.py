"""Fitting with links done exactly: hard, soft, or with error rates learnt."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from tiebreak.gold import GoldCodes
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import TRUSTED_ERROR, Evidence
from tiebreak.inference.exact_links import decode as decoding
from tiebreak.inference.exact_links import merge as merging
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.exact_links.plan import LinkReport
from tiebreak.inference.link_errors import estimated as error_rates
from tiebreak.inference.link_errors import learnt as link_errors
from tiebreak.inference.link_errors.estimated import Scored
from tiebreak.inference.link_errors.learnt import Answers, LearntLinks, Rates
from tiebreak.inference.vb import Beliefs, Logs, Problem, Run
from tiebreak.kernels import layout
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.link_graph import Implications, LinkCodes

LEARN, AUTO, ASKED = "learn", "auto", "asked"
FOUND = AUTO, ASKED, LEARN  # rates that are found, not stated
MANY = 0.3  # of all tasks: so many linked ones take the others with them, to lie side by side


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
    decoded: GoldCodes | None  # linked tasks and their labels, where those were decoded jointly
    report: LinkReport
    temperature: float | None
    rates: Rates | None  # learnt error rates by source
    end: Floats  # q where the ascent ended, before temperature
    wrong: Floats  # (n_links,) probability that each link is wrong; 0 for hard ones


def fit_joint(
    plain: Problem,
    start: Start,
    links: LinkCodes,
    implied: Implications,
    gold: GoldCodes | None,
    options: JointOptions,
) -> JointFit:
    """Fit from what plain VB found; decode and calibrate once at the end."""
    exact, hard, known = _exact_links(plain, links, implied, gold, options)
    estimated = None
    if options.link_error in (AUTO, ASKED):
        soft = links.keep(~hard)
        tasks = soft.tasks()
        crowd = Scored(*_scores(plain, start.plain, tasks), _votes(plain))
        asked = options.link_error == ASKED
        estimated = error_rates.estimate(exact, soft.among(tasks), crowd, asked=asked)
    model = _learnt(exact, links, hard, options)
    problem = vb.with_nodes(plain, model or exact, exact.task, known)
    alone_first = start.is_warm and not exact.takes_everyone
    q = vb.clamp(start.run.q, known)
    exact.gather(q)
    run = vb.ascend(
        problem,
        q,
        tol=options.tol,
        max_iter=options.max_iter,
        accelerate=options.accelerate,
        implied=None if len(known.task) else start.run.beliefs,
        first=partial(_update_linked, problem, exact) if alone_first else None,
    )
    tau, end, rates = None, run.q, estimated if model is None else model.rates
    if options.calibrate:
        exact.spread(end)
        evidence = _evidence(links, hard, gold, options, rates)
        tau = _temperature(plain, start.plain, evidence)
        run = _cooled(problem, exact, run, tau)
    report = exact.finish()
    exact.spread(run.q)
    wrong = np.zeros(links.n_links)
    if not hard.all():
        agree = exact.agreement()
        wrong[~hard] = np.where(links.must[~hard], 1.0 - agree, agree)
    decoded = GoldCodes(exact.task, decoding.decode(exact)) if options.decode_jointly else None
    return JointFit(run, decoded, report, tau, rates, end, wrong)


def calibrated(plain: Problem, start: Start, run: Run, gold: GoldCodes) -> tuple[Run, float]:
    """Calibrate a fit with known labels alone, by those labels."""
    tau = _temperature(plain, start.plain, Evidence(None, np.empty(0), gold))
    q, _ = _inferred_again(plain, run, tau)
    return run._replace(q=vb.clamp(q, gold)), tau


def _exact_links(
    plain: Problem,
    links: LinkCodes,
    implied: Implications,
    gold: GoldCodes | None,
    options: JointOptions,
) -> tuple[ExactLinks, Mask, GoldCodes]:
    """Set up joint inference; say which links are hard, and what is known or follows."""
    wrong, right = options.error_prior
    expected = wrong / (wrong + right)
    error = expected if options.link_error in FOUND else options.link_error
    assert not isinstance(error, str)  # checked by the estimator
    log_odds, hard = merging.log_odds_of(links, error)
    merged = merging.merge(implied)
    soft = merging.soft_links(links, ~hard, merged)
    known = _union(gold, merged.known())
    tasks = plain.tasks._replace(role=vb.roles(plain.tasks.n_tasks, known, None))
    fixed = plain.n_classes, plain.backend, plain.n_threads
    many = plain.copies is None and len(merged.task) > MANY * tasks.n_tasks
    model = ExactLinks(tasks, merged, soft, log_odds[~hard], *fixed, takes_everyone=many)
    return model, hard, known


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


def _update_linked(problem: Problem, exact: ExactLinks, q: Floats, beliefs: Beliefs) -> Beliefs:
    """Infer the linked tasks alone; return the beliefs that are then implied.

    Where the free tasks have settled and only links are new, this does what a whole sweep would,
    at the cost of the linked tasks. The bound cannot fall: all else stays as it is.
    """
    assert problem.links is not None  # exact, or what learns its error rates
    counts_before, totals_before = exact.counted(q)
    swept = problem.links.sweep(problem, q, q[:0], vb.expected_logs(beliefs, problem.n_threads))
    added = (swept.counts - counts_before).reshape(beliefs.beta.shape)
    return Beliefs(beliefs.alpha + (swept.totals - totals_before), beliefs.beta + added)


def _scores(problem: Problem, beliefs: Beliefs, tasks: Codes) -> tuple[Floats, Logs]:
    """Return the scores of these tasks, usually few, and the expected logs that they add up."""
    logs = vb.expected_logs(beliefs, problem.n_threads)
    part = layout.part_of(problem.tasks, tasks, problem.n_classes)
    return problem.backend.score_tasks(part, *logs), logs


def _temperature(plain: Problem, beliefs: Beliefs, evidence: Evidence) -> float:
    """Fit the temperature to evidence."""
    tasks = evidence.tasks()
    scores, _ = _scores(plain, beliefs, tasks)
    return calibration.fit_temperature(scores, evidence.among(tasks), _votes(plain))


def _votes(problem: Problem) -> float:
    """Return the mean number of responses of a task."""
    if problem.copies is None:
        return len(problem.tasks.code) / max(problem.tasks.n_tasks, 1)
    return float(np.average(np.diff(problem.tasks.start), weights=problem.copies))


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
    q, cool = _inferred_again(problem, run, tau)
    exact.infer(*cool, counting=False)
    return run._replace(q=q)


def _inferred_again(problem: Problem, run: Run, tau: float) -> tuple[Floats, Logs]:
    """Return q with the free tasks inferred from τ times their scores, and expected logs times τ.

    A score is a sum over responses, so that one sweep with such logs does it.
    """
    q, (log_prior, log_table) = run.q.copy(), vb.expected_logs(run.beliefs, problem.n_threads)
    cool = tau * log_prior, tau * log_table
    problem.backend.sweep_tasks(q, q[:0], problem.tasks, *cool, problem.n_threads, counting=False)
    return q, cool
