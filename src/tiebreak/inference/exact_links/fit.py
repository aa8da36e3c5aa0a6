"""Fitting with exact links: set up joint inference, ascend, calibrate and decode at the end."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.gold import GoldCodes
from tiebreak.inference import honest, vb
from tiebreak.inference.calibration import TRUSTED_ERROR, Calibration, Evidence, Honesty
from tiebreak.inference.exact_links import decode as decoding
from tiebreak.inference.exact_links import merge as merging
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.exact_links.subtypes import SubtypeLinks
from tiebreak.inference.link_errors import estimated, learnt
from tiebreak.inference.link_errors.estimated import Scored
from tiebreak.inference.link_errors.learnt import Answers, LearntLinks, Rates
from tiebreak.inference.results import Fit
from tiebreak.inference.vb import Beliefs, Problem, Run, Stopping
from tiebreak.kernels.layout import Floats, Mask
from tiebreak.kernels.sweeper import Sweeper
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
    honesty: Honesty,
    *,
    is_warm: bool = False,
) -> Fit:
    """Fit from where an ascent ended; calibrate and decode once at the end.

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
    """
    if options.error in FOUND_RATES and links.weight is not None:
        raise OptionError(
            f"Weights already say how sure each link is, so ExactLinkOptions.error="
            f"{options.error!r} has nothing to find. Leave it out, or remove the weights."
        )
    setup = set_up(plain, links, implied, gold, options)
    exact = setup.exact
    rates = _estimated(plain, beliefs, links, setup, options)
    model = _learnt(links, setup, options)
    problem = vb.with_nodes(plain, model or exact, exact.task, setup.known)
    run = _ascend(problem, setup, start, stopping, is_warm=is_warm)
    exact.spread(run.q)
    if model is not None:
        rates = model.rates
    evidence = _evidence(links, setup.hard, gold, options, rates)
    found = honest.choose(plain, beliefs, honesty, evidence)
    q = _probabilities(plain, setup, run, found)
    return Fit(
        run,
        q,
        found,
        decoded=_decoded(links, exact, options),
        link_report=exact.finish(),
        rates=rates,
        wrong=_wrong(links, setup),
    )


def _probabilities(plain: Problem, setup: Setup, run: Run, found: Calibration | None) -> Floats:
    """Return the probabilities of classes; linked tasks are inferred jointly from scaled scores."""
    exact = setup.exact
    if found is None:
        exact.finish()
        exact.spread(run.q)
        return vb.class_probabilities(plain, run.q)
    q = honest.probabilities(plain, run.beliefs, found)
    scores = honest.scaled_scores(plain, run.beliefs, found, exact.task)
    exact.infer_from(scores, is_last=True)
    exact.finish()
    q[exact.task] = exact.pool.members_of(exact.q)
    return vb.clamp(q, setup.known)


def fit_gold(
    plain: Problem,
    start: Run,
    beliefs: Beliefs,
    gold: GoldCodes,
    stopping: Stopping,
    honesty: Honesty,
) -> Fit:
    """Fit with known labels alone, and calibrate by them."""
    problem = vb.with_known(plain, gold)
    q = vb.clamp(start.q, gold, plain.n_classes)
    run = vb.ascend(problem, q, **stopping._asdict())
    found = honest.choose(plain, beliefs, honesty, Evidence(None, np.empty(0), gold))
    return Fit(run, vb.clamp(_of_responses(plain, run, found), gold), found)


def fit_alone(plain: Problem, run: Run, honesty: Honesty) -> Fit:
    """Calibrate where plain VB ended: there are neither links nor known labels."""
    found = honest.choose(plain, run.beliefs, honesty, None)
    return Fit(run, _of_responses(plain, run, found), found)


def _of_responses(plain: Problem, run: Run, found: Calibration | None) -> Floats:
    if found is None:
        return vb.class_probabilities(plain, run.q)
    return honest.probabilities(plain, run.beliefs, found)


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
    tasks = vb.with_known(plain, known).tasks
    given = (tasks, merged, links.keep(~hard), log_odds[~hard])
    kept = (plain.n_classes, plain.backend, plain.n_threads)
    if plain.n_states > plain.n_classes:
        n_subtypes = plain.n_states // plain.n_classes
        exact: ExactLinks = SubtypeLinks(*given, *kept, n_subtypes=n_subtypes)
    else:
        many = plain.copies is None and len(merged.task) > MANY * tasks.n_tasks
        exact = ExactLinks(*given, *kept, takes_everyone=many)
    return Setup(exact, hard, known)


def _ascend(
    problem: Problem, setup: Setup, start: Run, stopping: Stopping, *, is_warm: bool
) -> Run:
    """Climb the bound; a warm start infers the linked tasks alone first."""
    exact = setup.exact
    q = vb.clamp(start.q, setup.known, problem.n_classes)
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
    scores = honest.class_scores_of(plain, beliefs, tasks)
    n_votes = honest.n_responses(plain.tasks)
    votes = float(np.average(n_votes, weights=plain.copies)) if len(n_votes) else 0.0
    crowd = Scored(scores, vb.expected_logs(plain, beliefs), votes)
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
