"""The stages of a fit: where it starts, plain VB, then links and gold from there, as in the paper.

A warm start is where a fitted model ended. The later fit may have more links or labels, or other
responses: tasks and workers that the model has not seen start as in a cold fit, from votes and from
the prior.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.errors import OptionError
from tiebreak.inference import calibration, response_patterns, vb
from tiebreak.inference.calibration import Calibration, Honesty
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.known import clamp, contradicts
from tiebreak.inference.tasks.coupling import fit as exact_links
from tiebreak.inference.tasks.coupling.ascents import HIGHER
from tiebreak.inference.vb import Beliefs, Fit, Patterns, PlainBeliefs, Problem, Run, Stopping
from tiebreak.kernels.layout import ByTask, Floats
from tiebreak.kernels.sweeper import Logs
from tiebreak.options import LinkOptions, MeanFieldOptions, as_floats


class WarmStart(NamedTuple):
    """The end of a fit, and what need not be found again for the very same responses."""

    responses: Responses
    tasks: ByTask  # how they lie
    plain: Beliefs | None  # of plain VB, which has seen neither links nor labels; None: not run
    q: Floats  # (n_tasks, n_states) where the ascent ended
    added: tuple[Floats, Floats]  # what q adds to the priors of workers and classes
    worker_model: str
    has_patterns: bool  # whether equal response patterns were worth finding
    plain_logs: Logs | None = None  # what plain VB expects, where a fit has asked

    def knows(self, worker_model: str) -> bool:
        """Whether plain VB was run, with this model of workers."""
        return self.plain is not None and self.worker_model == worker_model

    def plain_beliefs(self) -> PlainBeliefs:
        """Return what plain VB believed, with what it expects where that is kept."""
        assert self.plain is not None  # it was run
        beliefs = PlainBeliefs(*self.plain)
        beliefs.logs = self.plain_logs
        return beliefs

    @property
    def class_q(self) -> Floats:
        """Where the ascent ended, by class: (n_tasks, n_classes)."""
        n_classes = self.responses.n_classes
        if self.q.shape[1] == n_classes:
            return self.q
        return np.asarray(self.q.reshape(len(self.q), n_classes, -1).sum(axis=2))

    def is_for(self, responses: Responses) -> bool:
        """Whether these are the very same responses."""
        return self.responses is responses or _are_equal(self.responses, responses)

    def implied(self, problem: Problem) -> Beliefs:
        """Return the beliefs that q implies, under priors that may be others now."""
        return vb.prior_plus(problem, self.added)


def _are_equal(one: Responses, other: Responses) -> bool:
    """Compare arrays first: ids are compared one by one only where these are equal."""
    return (
        np.array_equal(one.start, other.start)
        and np.array_equal(one.code, other.code)
        and one.classes == other.classes
        and one.workers == other.workers
        and one.tasks == other.tasks
    )


def q_of_start(start: Any, responses: Responses, tasks: ByTask, worker_model: str) -> Floats:
    """Return q of these tasks, by states where a fitted model has the same ones, else by class."""
    end: WarmStart | None = getattr(start, "_warm_start", None)
    q = start.probabilities_ if end is None else end.class_q
    if end is not None and end.is_for(responses):
        return np.asarray(end.q if end.worker_model == worker_model else q)
    votes = vb.majority(tasks, responses.n_classes)
    if end is not None and end.worker_model == worker_model:
        q = end.q
        n_subtypes = q.shape[1] // end.responses.n_classes
        if n_subtypes > 1:
            votes = vb.split_into_subtypes(votes, votes, n_subtypes)
    return q_from(start.responses_, q, responses, votes)


def q_of_init(init: Any, responses: Responses) -> Floats:
    """Check probabilities given as `init`, where q starts: (n_tasks, n_classes), rows sum to 1."""
    q: Floats = as_floats("init", init)
    shape = responses.n_tasks, responses.n_classes
    if q.shape != shape:
        raise OptionError(f"init must have shape {shape}, tasks by classes; got {q.shape}.")
    if not (np.isfinite(q).all() and (q >= 0).all() and np.allclose(q.sum(axis=1), 1, atol=1e-6)):
        raise OptionError("init must hold probabilities: each row non-negative with sum 1.")
    return q


def q_from(former: Responses, q: Floats, responses: Responses, votes: Floats) -> Floats:
    """Return q of a model of other responses, by these tasks and classes, or by their states.

    Parameters
    ----------
    former, q
        The responses of the model, and its q.
    responses
        Those to fit now.
    votes
        (n_tasks, n_classes or n_states) where tasks that the model has not seen start.
    """
    place = former.tasks.codes(responses.tasks)
    n_subtypes = q.shape[1] // max(former.n_classes, 1)
    subtype = np.arange(n_subtypes)
    new_class = np.repeat(responses.classes.codes(former.classes), n_subtypes)
    column = np.where(
        new_class >= 0, new_class * n_subtypes + np.tile(subtype, former.n_classes), -1
    )
    seen = np.flatnonzero(place >= 0)
    kept = np.flatnonzero(column >= 0)
    moved = np.zeros((len(seen), votes.shape[1]))
    moved[:, column[kept]] = q[np.ix_(place[seen], kept)]
    total = moved.sum(axis=1)
    has_mass = total > 0.0  # not where all that was likely is no class any more
    start = votes.copy()
    start[seen[has_mass]] = moved[has_mass] / total[has_mass, None]
    return start


class Origin(NamedTuple):
    """Where q of a fit comes from: the votes, probabilities given as `init`, an earlier model."""

    is_cold: bool  # the votes
    is_warm: bool  # an earlier model
    end: WarmStart | None  # where that model ended, if it saw these responses
    worker_model: str  # of the fit that begins


def patterns_of(inputs: Inputs, tasks: ByTask, q: Floats | None) -> Patterns:
    """Find tasks with equal responses, which are fitted as one; linked and known ones stay."""
    is_small = tasks.n_tasks < response_patterns.LEAST_TASKS
    if is_small or tasks.weight is not None or inputs.elsewhere is not None:
        return Patterns(tasks)
    crowd = inputs.responses
    single = response_patterns.must_stay_single(crowd.n_tasks, inputs.link_codes, inputs.gold_codes)
    return response_patterns.find_patterns(tasks, crowd.n_classes, single, q)


def to_patterns(inputs: Inputs, patterns: Patterns) -> Inputs:
    """Return the inputs with patterns in the place of tasks."""
    return inputs._replace(
        implied=patterns.implied(inputs.implied),
        gold_codes=patterns.gold(inputs.gold_codes),
    )


def fit_plain(
    problem: Problem, q: Floats, origin: Origin, stopping: Stopping, *, is_alone: bool
) -> tuple[Run, PlainBeliefs]:
    """Fit plain VB; return where links and gold start, and what plain VB believes.

    It starts from q, which is taken as it is where links or gold follow and somebody gave it. An
    earlier model also tells what plain VB believed there, if it saw these responses and has the
    same worker model.
    """
    end = origin.end
    if origin.is_cold or is_alone:
        run = vb.ascend(problem, q, **stopping._asdict())
        return run, PlainBeliefs(*run.beliefs)
    if end is not None and end.knows(origin.worker_model):
        implied, beliefs = end.implied(problem), end.plain_beliefs()
    else:
        implied = vb.implied_beliefs(problem, q)
        plain = vb.ascend(problem, q, **stopping._asdict()).beliefs if origin.is_warm else implied
        beliefs = PlainBeliefs(*plain)
    return Run(q, implied, [], 0, converged=True), beliefs


def fit_links_and_gold(
    problem: Problem,
    plain: tuple[Run, PlainBeliefs],
    inputs: Inputs,
    options: LinkOptions,
    stopping: Stopping,
    honesty: Honesty,
    origin: Origin,
) -> Fit:
    """Go on from plain VB with what the inputs hold."""
    gold = inputs.gold_codes
    implied = inputs.implied
    run, beliefs = plain
    if implied is not None and problem.n_classes > 1:
        if isinstance(options, MeanFieldOptions):
            from tiebreak.inference.tasks import mean_field

            return mean_field.fit(problem, run, implied, options, stopping, honesty)
        given = (implied, options, stopping, honesty)
        is_given = not origin.is_cold
        return exact_links.fit(
            problem, run, beliefs, *given, is_warm=origin.is_warm, is_given=is_given
        )
    if gold is not None:
        return fit_gold(problem, run, beliefs, gold, stopping, honesty, is_cold=origin.is_cold)
    found = calibration.choose(problem, run.beliefs, honesty, None)
    return Fit(run, _of_responses(problem, run, found), found)


def fit_gold(
    plain: Problem,
    start: Run,
    beliefs: Beliefs,
    gold: GoldCodes,
    stopping: Stopping,
    honesty: Honesty,
    *,
    is_cold: bool,
) -> Fit:
    """Fit with known labels alone, and calibrate by them.

    Where gold contradicts the crowd, workers as known labels alone show them are a second start.
    """
    problem = vb.with_known(plain, gold)

    def ascend(implied: Beliefs | None = None) -> Run:
        return vb.ascend(
            problem,
            clamp(start.q, gold, plain.n_classes),
            **stopping._asdict(),
            implied=implied,
            elsewhere=start.elsewhere,
            may_overwrite=len(gold.task) > 0,  # a copy
        )

    run = ascend()
    from_gold = False
    if is_cold and contradicts(vb.class_probabilities(plain, start.q), gold):
        other = ascend(vb.beliefs_of_known(plain, start.q, gold))
        if other.bounds[-1] > run.bounds[-1] + HIGHER * abs(run.bounds[-1]):
            run = other
            from_gold = True
    found = calibration.choose_by_gold(plain, beliefs, gold, honesty, from_gold=from_gold)
    return Fit(run, clamp(_of_responses(plain, run, found), gold), found)


def _of_responses(plain: Problem, run: Run, found: Calibration | None) -> Floats:
    if found is None:
        return vb.class_probabilities(plain, run.q)
    return calibration.probabilities(plain, run.beliefs, found)
