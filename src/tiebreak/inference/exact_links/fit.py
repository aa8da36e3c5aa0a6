"""Fitting with exact links: set up joint inference, ascend, calibrate, and decode at the end.

Decoded, tasks get one class each such that no hard link is broken. Components without loops and
small loopy ones get their likeliest joint labelling. In large loopy ones each node takes its best
class that its neighbours allow, and what is left broken is repaired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from tiebreak.data.gold import GoldCodes
from tiebreak.errors import OptionError
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import TRUSTED_ERROR, Calibration, Evidence, Honesty
from tiebreak.inference.exact_links.ascents import Ascents, Setup
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.exact_links.numbers import VisitCodes
from tiebreak.inference.exact_links.plan import log_odds_of
from tiebreak.inference.problem import Fit
from tiebreak.inference.vb import Beliefs, Problem, Run, Stopping
from tiebreak.kernels.arrays import likeliest
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.kernels.network import Network
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.options import ExactLinkOptions

if TYPE_CHECKING:
    from tiebreak.inference.link_errors.learnt import Rates

REPAIR_ROUNDS = 200
NO_LABEL = -1


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
    elif is_given or (gold is None and not _ties_three(links, plain.n_classes)):
        best = ascents.ascend(start.q, ascents.implied_by(start), elsewhere=start.elsewhere)
    else:
        from tiebreak.inference.exact_links.starts import best_mode

        best, suspects = best_mode(ascents, start, gold, honesty.dependence)
    exact = ascents.setup.exact
    run = best.run
    exact.spread(run.q)
    evidence = _evidence(links, ascents.setup.hard, gold, options, ascents.rates)
    found = calibration.choose(plain, beliefs, honesty, evidence)
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


def _ties_three(links: LinkCodes, n_classes: int) -> bool:
    """Say whether links may tie three tasks or more: one of these then has two links that tie.

    Must-links tie; with two classes cannot-links do too. Only such groups need several starts.
    """
    ties = links.must | (n_classes == 2)
    ends = np.concatenate([links.left[ties], links.right[ties]])
    return bool(np.bincount(ends).max(initial=0) > 1)


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
    q = calibration.probabilities(plain, run.beliefs, found, n_given, logs)
    unit = None if exact.unit is None else exact.unit[exact.task]
    scores = calibration.scaled_scores(
        plain, run.beliefs, found, exact.task, exact.pool.pays, unit, n_given, logs
    )
    exact.infer_from(scores, is_last=True)
    exact.finish()
    q[exact.task] = exact.pool.members_of(exact.q)
    vb.clamp_in_place(q, setup.known)
    return q


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
    log_odds, _ = log_odds_of(links, stated)
    error = np.where(hard, TRUSTED_ERROR, expit(-np.abs(log_odds)))
    return Evidence(links, error, gold)


def decoded_jointly(
    links: LinkCodes, exact: ExactLinks, options: ExactLinkOptions
) -> GoldCodes | None:
    """Return linked tasks and their labels, where they are decoded jointly."""
    some_hard = options.error is None and bool(links.is_hard.any())
    jointly = some_hard if options.decode is None else options.decode == "joint"
    return GoldCodes(exact.task, decode(exact)) if jointly else None


def decode(links: ExactLinks | Any) -> Codes:
    """Return the class of each linked task of `links.task`, decoded jointly: [eq:decode]."""
    if not isinstance(links, ExactLinks):
        return np.asarray(links.decode())  # tasks that lie elsewhere are decoded there
    plan = links.plan
    coupling = links.coupling()
    pool_label, _ = likeliest(links.q)
    label = pool_label[links.pool.n_alone :]  # a view, by visit
    links.backend.decode_forest(links.scores, plan.network, coupling, (0, plan.n_forest), label)
    if plan.report.small:
        links.backend.decode_cliques(links.scores, plan.cliques, coupling, label)
    if links.remembers:
        _decode_large(links, coupling, label)
    return np.asarray(pool_label[links.pool.node] ^ links.pool.flip)


def _decode_large(links: ExactLinks, coupling: Floats, label: Codes) -> None:
    """Give the surest nodes their class first, then repair what is broken."""
    with np.errstate(divide="ignore"):
        log_belief = np.log(links.belief)
    visits = np.arange(links.plan.n_exact, len(label), dtype=np.int32)
    surest_first = visits[np.argsort(-links.belief[visits].max(axis=1), kind="stable")]
    label[visits] = NO_LABEL
    network = links.plan.network
    links.backend.decode_greedily(log_belief, network, coupling, surest_first, label)
    rng = np.random.default_rng(0)  # breaks ties, so that two nodes do not swap for ever
    for _ in range(REPAIR_ROUNDS):
        broken = _on_broken_links(network, coupling, label)
        if not len(broken):
            return
        noisy = log_belief + rng.gumbel(size=log_belief.shape)
        links.backend.decode_greedily(noisy, network, coupling, rng.permutation(broken), label)
    _label_by_search(links, coupling, label)


def _on_broken_links(network: Network, coupling: Floats, label: Codes) -> VisitCodes:
    """Return the nodes at an end of a hard link that labels break."""
    owner = np.repeat(np.arange(network.n_nodes, dtype=np.int32), np.diff(network.start))
    hard = coupling[network.edge] == -np.inf
    return VisitCodes(np.unique(owner[hard & (label[owner] == label[network.other])]))


def _label_by_search(links: ExactLinks, coupling: Floats, label: Codes) -> None:
    """Take, in components still broken, any labelling that breaks nothing, if one is found."""
    from tiebreak.links.feasible import find_classes

    plan = links.plan
    hard = coupling == -np.inf
    left = plan.left_visit[hard]
    right = plan.right_visit[hard]
    component = link_graph.components(len(label), left, right)
    is_broken = np.isin(component, component[_on_broken_links(plan.network, coupling, label)])
    broken = np.flatnonzero(is_broken).astype(np.int32)
    inside = is_broken[left]
    ends = [link_graph.places_in(broken, end[inside]) for end in (left, right)]
    found = find_classes(ends[0], ends[1], links.scores[broken] > -np.inf)
    if found.group_class is not None:
        label[broken] = found.group_class
        waiting = broken[found.waiting]
        links.backend.decode_greedily(links.scores, plan.network, coupling, waiting, label)
