"""Fitting with exact links: ascend, calibrate, and decode once at the end.

Decoded, tasks get one class each such that no hard link is broken. Components without loops and
small loopy ones get their likeliest joint labelling. In large loopy ones each node takes its best
class that its neighbours allow, and what is left broken is repaired.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from tiebreak.data.gold import GoldCodes
from tiebreak.errors import OptionError
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import TRUSTED_ERROR, Calibration, Evidence, Honesty
from tiebreak.inference.known import clamp, clamp_in_place
from tiebreak.inference.tasks.coupling.ascents import Ascents, Setup
from tiebreak.inference.tasks.coupling.infer import ExactLinks
from tiebreak.inference.tasks.coupling.plan import log_odds_of
from tiebreak.inference.vb import Beliefs, Fit, Problem, Run, Stopping
from tiebreak.kernels.arrays import likeliest, softmax
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.network import Network
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.options import ExactLinkOptions

REPAIR_ROUNDS = 200
NO_LABEL = -1


def fit(
    plain: Problem,
    start: Run,
    beliefs: Beliefs,
    implied: Implications,
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
        Links and gold, and what follows from them.
    is_given
        The caller said where to start, so that no other start is tried.
    """
    if options.error == "learn" and implied.given.weight is not None:
        raise OptionError(
            "Weights already say how sure each link is, so ExactLinkOptions.error='learn' has "
            "nothing to find. Leave it out, or remove the weights."
        )
    ascents = Ascents(plain, implied, options, stopping)
    suspects: tuple[Codes, ...] = ()
    if is_warm:
        best = ascents.ascend_warm(start)
    elif is_given or (implied.gold is None and not _ties_three(implied.given, plain.n_classes)):
        best = ascents.ascend(ascents.start_at(start))
    else:
        from tiebreak.inference.tasks.coupling.starts import best_mode

        best, suspects = best_mode(ascents, start, honesty.dependence)
    found = calibration.choose(plain, beliefs, honesty, _evidence(ascents))
    q = joint_probabilities(plain, ascents.setup, best.run, found)
    return _fitted(ascents, best.run, q)._replace(calibration=found, uncertain=suspects)


def fit_scores(
    plain: Problem,
    run: Run,
    scores: Floats,
    implied: Implications,
    options: ExactLinkOptions,
    stopping: Stopping,
) -> Fit:
    """Join class scores that another model gives, (n_tasks, n_classes), by links: no ascent.

    Parameters
    ----------
    plain, run
        Plain VB and where it ended: error rates of links, if they are to be learnt, come from it.
    """
    ascents = Ascents(plain, implied, options, stopping)
    exact = ascents.setup.exact
    if options.error == "learn":
        from tiebreak.inference.tasks.coupling.starts import best_mode

        best_mode(ascents, run)
    q = softmax(scores)
    q[exact.task] = exact.probabilities(scores[exact.task])
    q = clamp(q, ascents.setup.known)
    return _fitted(ascents, run._replace(q=q), q)


def _fitted(ascents: Ascents, run: Run, q: Floats) -> Fit:
    """Return a fit that ended with these probabilities, and what joint inference says of links."""
    exact, hard, _ = ascents.setup
    links = ascents.links
    wrong = np.zeros(links.n_links)
    if not hard.all():
        agree = exact.agreement()
        wrong[~hard] = np.where(links.must[~hard], 1.0 - agree, agree)
    label = joint_labels(ascents.setup, ascents.options)
    return Fit(
        run,
        q,
        decoded=None if label is None else GoldCodes(exact.task, label),
        link_report=exact.finish(),
        rates=exact.rates,
        wrong=wrong,
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
    nodes = exact.nodes
    scores = calibration.scaled_scores(
        plain, run.beliefs, found, nodes.task, nodes.pays, nodes.unit, n_given, logs
    )
    q[nodes.task] = exact.probabilities(scores)
    clamp_in_place(q, setup.known)
    return q


def _evidence(ascents: Ascents) -> Evidence:
    """Trust hard links; take soft ones at the error rate that is stated or was found."""
    links = ascents.links
    error = ascents.options.error
    rates = ascents.setup.exact.rates
    if rates is not None:
        same, different = rates.mean
        source = 0 if links.who is None or len(same) == 1 else links.who + 1
        wrong = np.where(links.must, different[source], same[source])
    else:
        log_odds, hard = log_odds_of(links, None if error is None else float(error))
        wrong = np.where(hard, TRUSTED_ERROR, expit(-np.abs(log_odds)))
    return Evidence(links, wrong, ascents.implied.gold)


# -- decoding --------------------------------------------------------------------------------------


def joint_labels(setup: Setup, options: ExactLinkOptions) -> Codes | None:
    """Return the joint labels of the open linked tasks; None where each gets its likeliest class.

    Where the options say nothing, hard links ask for joint labels.
    """
    jointly = bool(setup.hard.any()) if options.decode is None else options.decode == "joint"
    return decode(setup.exact) if jointly else None


def decode(links: ExactLinks) -> Codes:
    """Return the class of each linked task of `links.task`, decoded jointly: [eq:decode]."""
    plan = links.plan
    coupling = links.coupling()
    label, _ = likeliest(links.belief)
    alone = np.flatnonzero(np.diff(plan.network.start) == 0)
    of_alone = label[alone]  # keeps the first class where two are equal but for rounding
    links.backend.decode_forest(links.scores, plan.network, coupling, (0, plan.n_forest), label)
    label[alone] = of_alone
    if plan.report.small:
        links.backend.decode_cliques(links.scores, plan.cliques, coupling, label)
    if links.has_large:
        _decode_large(links, coupling, label)
    return np.asarray(label[links.nodes.node] ^ links.nodes.flip)


def _decode_large(links: ExactLinks, coupling: Floats, label: Codes) -> None:
    """Give the surest nodes their class first, then repair what is broken."""
    with np.errstate(divide="ignore"):
        log_belief = np.log(links.belief)
    nodes = np.arange(links.plan.n_exact, len(label), dtype=np.int32)
    surest_first = nodes[np.argsort(-links.belief[nodes].max(axis=1), kind="stable")]
    label[nodes] = NO_LABEL
    network = links.plan.network
    links.backend.decode_greedily(log_belief, network, coupling, surest_first, label)
    n_alone = links.plan.report.merged  # in components without loops, which come first
    rng = np.random.default_rng(0)  # breaks ties, so that two nodes do not swap for ever
    for _ in range(REPAIR_ROUNDS):
        broken = _on_broken_links(network, coupling, label)
        if not len(broken):
            return
        noisy = log_belief.copy()
        noisy[n_alone:] += rng.gumbel(size=noisy[n_alone:].shape)
        links.backend.decode_greedily(noisy, network, coupling, rng.permutation(broken), label)
    _label_by_search(links, coupling, label)


def _on_broken_links(network: Network, coupling: Floats, label: Codes) -> Codes:
    """Return the nodes at an end of a hard link that labels break."""
    owner = np.repeat(np.arange(network.n_nodes, dtype=np.int32), np.diff(network.start))
    hard = coupling[network.edge] == -np.inf
    return np.unique(owner[hard & (label[owner] == label[network.other])])


def _label_by_search(links: ExactLinks, coupling: Floats, label: Codes) -> None:
    """Take, in components still broken, any labelling that breaks nothing, if one is found."""
    from tiebreak.links.feasible import find_classes

    plan = links.plan
    hard = coupling == -np.inf
    left, right = plan.left[hard], plan.right[hard]
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
