"""The stages of a fit: plain VB first, then links and gold from where it ended, as in the paper."""

from __future__ import annotations

from typing import NamedTuple

from tiebreak.inference import response_patterns, vb
from tiebreak.inference.calibration import Honesty
from tiebreak.inference.exact_links import fit as exact_links
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.response_patterns import Patterns
from tiebreak.inference.results import Fit
from tiebreak.inference.vb import PlainBeliefs, Problem, Run, Stopping
from tiebreak.inference.warm_start import WarmStart
from tiebreak.kernels.layout import ByTask, Floats
from tiebreak.options import LinkOptions, MeanFieldOptions
from tiebreak.responses import Responses


class Start(NamedTuple):
    """Where q starts, and how it came about."""

    q: Floats  # (n_tasks, n_states)
    is_given: bool  # as `init`, or by an earlier model
    is_warm: bool  # by an earlier model
    warm: WarmStart | None = None  # where that model ended, if it saw these responses
    worker_model: str = ""  # of the fit that begins


class PlainFit(NamedTuple):
    """Where links and gold start, and the beliefs of plain VB, which has seen neither."""

    run: Run
    beliefs: PlainBeliefs


def lay_out(crowd: Responses) -> ByTask:
    """Lay out responses of which nothing is known yet."""
    return vb.lay_out(crowd, vb.roles(crowd.n_tasks, None, None))


def patterns_of(inputs: Inputs, tasks: ByTask, q: Floats | None) -> Patterns:
    """Find tasks with equal responses, which are fitted as one; linked and known ones stay."""
    if inputs.elsewhere is not None:
        return Patterns(tasks)
    crowd = inputs.responses
    single = response_patterns.must_stay_single(crowd.n_tasks, inputs.link_codes, inputs.gold_codes)
    return response_patterns.find_patterns(tasks, crowd.n_classes, single, q)


def to_patterns(inputs: Inputs, patterns: Patterns) -> Inputs:
    """Return the inputs with patterns in the place of tasks."""
    return inputs._replace(
        link_codes=patterns.links(inputs.link_codes),
        implied=patterns.implied(inputs.implied),
        gold_codes=patterns.gold(inputs.gold_codes),
    )


def fit_plain(problem: Problem, start: Start, stopping: Stopping, *, is_alone: bool) -> PlainFit:
    """Fit plain VB.

    Probabilities given as `init` are taken as they are where links or gold follow, and so is the
    end of an earlier model, with what plain VB believed there where it saw these responses.
    """
    q = start.q
    warm = start.warm
    if start.is_given and not is_alone and warm is not None and warm.plain is not None:
        implied = warm.implied(problem, start.worker_model)
        return PlainFit(Run(q, implied, [], 0, converged=True), warm.plain_beliefs())
    if start.is_given and not is_alone and not start.is_warm:
        implied = vb.implied_beliefs(problem, q)
        return PlainFit(Run(q, implied, [], 0, converged=True), PlainBeliefs(*implied))
    run = vb.ascend(problem, q, **stopping._asdict())
    if start.is_given and not is_alone:  # a model of other responses: its q, plain VB from there
        implied = vb.implied_beliefs(problem, q)
        return PlainFit(Run(q, implied, [], 0, converged=True), PlainBeliefs(*run.beliefs))
    return PlainFit(run, PlainBeliefs(*run.beliefs))


def fit_links_and_gold(
    problem: Problem,
    plain: PlainFit,
    inputs: Inputs,
    options: LinkOptions,
    stopping: Stopping,
    honesty: Honesty,
    *,
    is_warm: bool,
    is_given: bool,
) -> Fit:
    """Go on from plain VB with what the inputs hold; `is_given`: q was given as `init`."""
    gold = inputs.gold_codes
    links = inputs.link_codes
    implied = inputs.implied
    run, beliefs = plain
    if links is not None and implied is not None and problem.n_classes > 1:
        if isinstance(options, MeanFieldOptions):
            from tiebreak.inference import mean_field

            return mean_field.fit(problem, run, links, implied, gold, options, stopping, honesty)
        return exact_links.fit(
            problem,
            run,
            beliefs,
            links,
            implied,
            gold,
            options,
            stopping,
            honesty,
            is_warm=is_warm,
            is_given=is_given,
        )
    if gold is not None:
        settled = is_warm or is_given
        return exact_links.fit_gold(problem, run, beliefs, gold, stopping, honesty, is_warm=settled)
    return exact_links.fit_alone(problem, run, honesty)
