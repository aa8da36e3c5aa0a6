"""Fitting with exact links: set up joint inference, ascend, calibrate and decode at the end."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.gold import GoldCodes
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import TRUSTED_ERROR, Evidence
from tiebreak.inference.exact_links import decode as decoding
from tiebreak.inference.exact_links import merge as merging
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.link_errors import estimated, learnt
from tiebreak.inference.link_errors.estimated import Scored
from tiebreak.inference.link_errors.learnt import Answers, LearntLinks, Rates
from tiebreak.inference.results import Fit
from tiebreak.inference.vb import Beliefs, Problem, Run, Stopping
from tiebreak.kernels import layout
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.kernels.sweeper import Logs, Sweeper
from tiebreak.link_graph import Implications, LinkCodes
from tiebreak.options import FOUND_RATES, ExactLinkOptions

MANY = 0.3  # of all tasks: so many linked ones take the others with them, to lie side by side


class Setup(NamedTuple):
    """Joint inference, ready for the ascent."""

    exact: ExactLinks
    hard: Mask  # (n_links,) which links always hold
    known: GoldCodes  # gold, and what follows from it


def fit(
    plain: Problem,
    start: Run,
    beliefs: Beliefs,
    links: LinkCodes,
    implied: Implications,
    gold: GoldCodes | None,
    options: ExactLinkOptions,
    stopping: Stopping,
    *,
    calibrate: bool | None = None,
    is_warm: bool = False,
) -> Fit:
    """Fit from where an ascent ended; decode and calibrate once at the end.

    Parameters
    ----------
    plain
        Without links, nothing known.
    start
        Where plain VB ended or, where `is_warm`, a fit with fewer links or labels.
    beliefs
        Those of plain VB, which has seen neither links nor labels.
    implied
        What follows from hard links and from gold.
    calibrate
        Whether to fit a temperature to links and gold; None: where all links are hard.
    """
    if options.error in FOUND_RATES and links.weight is not None:
        raise OptionError(
            f"Weights already say how sure each link is, so ExactLinkOptions.error="
            f"{options.error!r} has nothing to find. Leave it out, or remove the weights."
        )
    if calibrate is None:
        calibrate = options.error is None and links.weight is None
    setup = set_up(plain, links, implied, gold, options)
    exact = setup.exact
    rates = _estimated(plain, beliefs, links, setup, options)
    model = _learnt(links, setup, options)
    problem = vb.with_nodes(plain, model or exact, exact.task, setup.known)
    run = _ascend(problem, setup, start, stopping, is_warm=is_warm)
    if model is not None:
        rates = model.rates
    end = run.q
    temperature = None
    if calibrate:
        exact.spread(end)
        evidence = _evidence(links, setup.hard, gold, options, rates)
        temperature = _temperature(plain, beliefs, evidence)
        run = _tempered(problem, exact, run, temperature)
    report = exact.finish()
    exact.spread(run.q)
    return Fit(
        run,
        end,
        temperature,
        decoded=_decoded(links, exact, options),
        link_report=report,
        rates=rates,
        wrong=_wrong(links, setup),
    )


def fit_gold(
    plain: Problem,
    start: Run,
    beliefs: Beliefs,
    gold: GoldCodes,
    stopping: Stopping,
    *,
    calibrate: bool | None = None,
) -> Fit:
    """Fit with known labels alone; calibrate by those labels, unless `calibrate` is False."""
    role = vb.roles(plain.tasks.n_tasks, gold, None)
    problem = plain._replace(tasks=plain.tasks._replace(role=role))
    run = vb.ascend(problem, vb.clamp(start.q, gold), **stopping._asdict())
    if calibrate is False:
        return Fit(run, run.q)
    temperature = _temperature(plain, beliefs, Evidence(None, np.empty(0), gold))
    q, _ = _inferred_again(plain, run, temperature)
    return Fit(run._replace(q=vb.clamp(q, gold)), run.q, temperature)


def set_up(
    plain: Problem,
    links: LinkCodes,
    implied: Implications,
    gold: GoldCodes | None,
    options: ExactLinkOptions,
) -> Setup:
    """Set up joint inference; say which links are hard, and what is known or follows."""
    wrong, right = options.error_prior
    expected = wrong / (wrong + right)
    error = expected if options.error in FOUND_RATES else options.error
    assert not isinstance(error, str)  # checked by the options
    log_odds, hard = merging.log_odds_of(links, error)
    merged = merging.merge(implied)
    known = _union(gold, merged.known())
    tasks = plain.tasks._replace(role=vb.roles(plain.tasks.n_tasks, known, None))
    exact = ExactLinks(
        tasks,
        merged,
        links.keep(~hard),
        log_odds[~hard],
        plain.n_classes,
        plain.backend,
        plain.n_threads,
        takes_everyone=plain.copies is None and len(merged.task) > MANY * tasks.n_tasks,
    )
    return Setup(exact, hard, known)


def _ascend(
    problem: Problem, setup: Setup, start: Run, stopping: Stopping, *, is_warm: bool
) -> Run:
    """Climb the bound; a warm start infers the linked tasks alone first."""
    exact = setup.exact
    q = vb.clamp(start.q, setup.known)
    exact.gather(q)
    alone_first = is_warm and not exact.takes_everyone
    return vb.ascend(
        problem,
        q,
        **stopping._asdict(),
        implied=None if len(setup.known.task) else start.beliefs,
        first=partial(_update_linked, problem, exact) if alone_first else None,
    )


def _estimated(
    plain: Problem, beliefs: Beliefs, links: LinkCodes, setup: Setup, options: ExactLinkOptions
) -> Rates | None:
    """Estimate error rates before the ascent, where the options say so."""
    if options.error not in ("auto", "asked"):
        return None
    soft = links.keep(~setup.hard)
    tasks = soft.tasks()
    crowd = Scored(*_scores(plain, beliefs, tasks), _votes(plain))
    is_asked = options.error == "asked"
    return estimated.estimate(setup.exact, soft.among(tasks), crowd, asked=is_asked)


def _learnt(links: LinkCodes, setup: Setup, options: ExactLinkOptions) -> LearntLinks | None:
    """Wrap the links so that the error rates of their sources are learnt."""
    if options.error != "learn":
        return None
    soft = ~setup.hard
    who = np.zeros(links.n_links, np.int32) if links.who is None else links.who + 1
    n_sources = int(who.max(initial=0)) + 1
    answers = Answers(links.must[soft], who[soft], n_sources)
    prior = learnt.prior_rates(n_sources, *options.error_prior)
    return LearntLinks(setup.exact, answers, prior)


def _decoded(links: LinkCodes, exact: ExactLinks, options: ExactLinkOptions) -> GoldCodes | None:
    some_hard = options.error is None and bool(links.is_hard.any())
    jointly = some_hard if options.decode is None else options.decode == "joint"
    return GoldCodes(exact.task, decoding.decode(exact)) if jointly else None


def _wrong(links: LinkCodes, setup: Setup) -> Floats:
    """Return the probability that each link is wrong."""
    wrong = np.zeros(links.n_links)
    soft = ~setup.hard
    if soft.any():
        agree = setup.exact.agreement()
        wrong[soft] = np.where(links.must[soft], 1.0 - agree, agree)
    return wrong


def _union(gold: GoldCodes | None, implied: GoldCodes) -> GoldCodes:
    if gold is None:
        return implied
    task = np.concatenate([gold.task, implied.task])
    label = np.concatenate([gold.label, implied.label])
    task, first = np.unique(task, return_index=True)
    return GoldCodes(task.astype(np.int32), label[first].astype(np.int32))


def _update_linked(
    problem: Problem, exact: ExactLinks, sweeper: Sweeper, beliefs: Beliefs
) -> Beliefs:
    """Infer the linked tasks alone; return the beliefs that are then implied.

    Where the free tasks have settled and only links are new, this does what a whole sweep would,
    at the cost of the linked tasks. The bound cannot fall: all else stays as it is.
    """
    assert problem.links is not None  # exact, or what learns its error rates
    counts_before, totals_before = exact.counted(sweeper.q())
    nobody = np.empty((0, problem.n_states))
    swept = problem.links.sweep(sweeper, nobody, vb.expected_logs(problem, beliefs))
    added = problem.workers.collect(swept.counts - counts_before)
    return Beliefs(beliefs.alpha + (swept.totals - totals_before), beliefs.beta + added)


def _scores(problem: Problem, beliefs: Beliefs, tasks: Codes) -> tuple[Floats, Logs]:
    """Return the scores of these tasks, usually few, and the expected logs that they add up."""
    logs = vb.expected_logs(problem, beliefs)
    part = layout.part_of(problem.tasks, tasks, problem.n_states)
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
    options: ExactLinkOptions,
    rates: Rates | None,
) -> Evidence:
    """Trust hard links; take soft ones at the error rate that is stated or was found."""
    if rates is not None:
        same, different = rates.mean
        source = 0 if links.who is None or len(same) == 1 else links.who + 1
        error = np.where(links.must, different[source], same[source])
        return Evidence(links, error, gold)
    stated = None if options.error is None else float(options.error)
    log_odds, _ = merging.log_odds_of(links, stated)
    error = np.where(hard, TRUSTED_ERROR, 1.0 / (1.0 + np.exp(np.abs(log_odds))))
    return Evidence(links, error, gold)


def _tempered(problem: Problem, exact: ExactLinks, run: Run, temperature: float) -> Run:
    """Infer tasks once more with their scores times the temperature, beliefs as they are."""
    q, logs = _inferred_again(problem, run, temperature)
    exact.infer(*logs, counting=False)
    return run._replace(q=q)


def _inferred_again(problem: Problem, run: Run, temperature: float) -> tuple[Floats, Logs]:
    """Return q with the free tasks inferred from tempered scores, and the tempered expected logs.

    A score is a sum over responses, so that one sweep with such logs does it.
    """
    log_prior, log_table = vb.expected_logs(problem, run.beliefs)
    tempered = (temperature * log_prior, temperature * log_table)
    sweeper = problem.open(run.q.copy())
    sweeper.sweep(tempered, counting=False)
    return sweeper.q(), tempered
