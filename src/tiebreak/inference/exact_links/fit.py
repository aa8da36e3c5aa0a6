"""Fitting with exact links: set up joint inference, ascend, calibrate and decode at the end."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from tiebreak.errors import OptionError
from tiebreak.gold import GoldCodes
from tiebreak.inference import held_out, honest, vb
from tiebreak.inference.calibration import TRUSTED_ERROR, Calibration, Evidence, Honesty
from tiebreak.inference.exact_links import decode as decoding
from tiebreak.inference.exact_links import merge as merging
from tiebreak.inference.exact_links import starts
from tiebreak.inference.exact_links.ascents import HIGHER, Ascents, Setup, best_mode
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.link_errors.learnt import Rates
from tiebreak.inference.results import Fit
from tiebreak.inference.vb import Beliefs, Problem, Run, Stopping
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.link_graph import Implications, LinkCodes
from tiebreak.options import ExactLinkOptions


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
    is_given: bool = False,
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
    is_given
        The caller said where to start, so that no other start is tried.
    """
    if options.error == "learn" and links.weight is not None:
        raise OptionError(
            "Weights already say how sure each link is, so ExactLinkOptions.error='learn' has "
            "nothing to find. Leave it out, or remove the weights."
        )
    ascents = Ascents(plain, links, implied, gold, options, stopping)
    suspects: tuple[Codes, ...] = ()
    if is_warm:
        best = ascents.ascend_warm(start)
    elif is_given:
        best = ascents.ascend(start.q, ascents.implied_by(start), elsewhere=start.elsewhere)
    else:
        best, suspects = best_mode(ascents, start, gold)
    exact = ascents.setup.exact
    run = best.run
    exact.spread(run.q)
    evidence = _evidence(links, ascents.setup.hard, gold, options, ascents.rates)
    found = honest.choose(plain, beliefs, honesty, evidence)
    q = joint_probabilities(plain, ascents.setup, run, found)
    return Fit(
        run,
        q,
        found,
        decoded=decoded_jointly(links, exact, options),
        link_report=exact.finish(),
        rates=ascents.rates,
        wrong=probability_wrong(links, ascents.setup),
        uncertain=suspects,
    )


def joint_probabilities(
    plain: Problem,
    setup: Setup,
    run: Run,
    found: Calibration | None,
    n_given: Floats | None = None,
) -> Floats:
    """Return the probabilities of classes; linked tasks are inferred jointly from scaled scores.

    `n_given`, (n_tasks,), is how many responses each task has had, where some were dropped.
    """
    exact = setup.exact
    if found is None:
        exact.finish()
        exact.spread(run.q)
        return vb.class_probabilities(plain, run.q)
    logs = vb.expected_logs(plain, run.beliefs)
    q = honest.probabilities(plain, run.beliefs, found, n_given, logs)
    unit = None if exact.unit is None else exact.unit[exact.task]
    scores = honest.scaled_scores(
        plain, run.beliefs, found, exact.task, exact.pool.pays, unit, n_given, logs
    )
    exact.infer_from(scores, is_last=True)
    exact.finish()
    q[exact.task] = exact.pool.members_of(exact.q)
    vb.clamp_in_place(q, setup.known)
    return q


def fit_gold(
    plain: Problem,
    start: Run,
    beliefs: Beliefs,
    gold: GoldCodes,
    stopping: Stopping,
    honesty: Honesty,
    *,
    is_warm: bool = False,
) -> Fit:
    """Fit with known labels alone, and calibrate by them.

    Where gold contradicts the crowd, workers as known labels alone show them are a second start.
    """
    problem = vb.with_known(plain, gold)

    def ascend(implied: Beliefs | None = None) -> Run:
        q = vb.clamp(start.q, gold, plain.n_classes)
        return vb.ascend(
            problem,
            q,
            **stopping._asdict(),
            implied=implied,
            elsewhere=start.elsewhere,
            may_overwrite=q is not start.q,
        )

    run = ascend()
    from_gold = False
    if starts.contradicts(vb.class_probabilities(plain, start.q), gold) and not is_warm:
        other = ascend(vb.beliefs_of_known(plain, start.q, gold))
        if other.bounds[-1] > run.bounds[-1] + HIGHER * abs(run.bounds[-1]):
            run = other
            from_gold = True
    found = held_out.choose(plain, beliefs, gold, honesty, from_gold=from_gold)
    return Fit(run, vb.clamp(_of_responses(plain, run, found), gold), found)


def fit_alone(plain: Problem, run: Run, honesty: Honesty) -> Fit:
    """Calibrate where plain VB ended: there are neither links nor known labels."""
    found = honest.choose(plain, run.beliefs, honesty, None)
    return Fit(run, _of_responses(plain, run, found), found)


def _of_responses(plain: Problem, run: Run, found: Calibration | None) -> Floats:
    if found is None:
        return vb.class_probabilities(plain, run.q)
    return honest.probabilities(plain, run.beliefs, found)


def decoded_jointly(
    links: LinkCodes, exact: ExactLinks, options: ExactLinkOptions
) -> GoldCodes | None:
    """Return linked tasks and their labels, where they are decoded jointly."""
    some_hard = options.error is None and bool(links.is_hard.any())
    jointly = some_hard if options.decode is None else options.decode == "joint"
    return GoldCodes(exact.task, decoding.decode(exact)) if jointly else None


def probability_wrong(links: LinkCodes, setup: Setup) -> Floats:
    """Return the probability that each link is wrong."""
    wrong = np.zeros(links.n_links)
    soft = ~setup.hard
    if soft.any():
        agree = setup.exact.agreement()
        wrong[soft] = np.where(links.must[soft], 1.0 - agree, agree)
    return wrong


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
    error = np.where(hard, TRUSTED_ERROR, expit(-np.abs(log_odds)))
    return Evidence(links, error, gold)
