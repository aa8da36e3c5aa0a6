"""The stages of a fit: plain VB, then links and gold; calibrate, decode, publish.

A fit climbs once with responses alone, then with links and known labels, from one start or several.
What follows changes no parameter: each stage takes what is scored so far and hands it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.errors import OptionError
from tiebreak.inference import calibration
from tiebreak.inference.calibration import DEPENDENCE, TRUSTED_ERROR, Evidence
from tiebreak.inference.climb import (
    FitState,
    Problem,
    Stopping,
    best_of,
    climb,
    split_into_subtypes,
    start_alone,
    sum_subtypes,
)
from tiebreak.inference.door import Inputs, Rows, lay_out
from tiebreak.inference.known import Known
from tiebreak.inference.tasks import Parameters
from tiebreak.inference.tasks.coupling.link_errors import rates_of
from tiebreak.inference.tasks.coupling.linked import Linked, decode_jointly, with_links
from tiebreak.inference.tasks.coupling.plan import log_odds_of
from tiebreak.inference.tasks.coupling.starts import best_mode, start_at, ties_three
from tiebreak.kernels.arrays import likeliest, majority, softmax
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.links.graph import Implications
from tiebreak.options import ExactLinkOptions, LinkOptions, MeanFieldOptions, as_floats


class Start(NamedTuple):
    """Where a fit begins: the votes, probabilities given as `init`, or an earlier model."""

    state: FitState  # q by row
    is_cold: bool = True  # the votes
    is_warm: bool = False  # an earlier model
    plain: Parameters = ()  # of plain VB, where that model found them on these responses


class FitOptions(NamedTuple):
    """What an estimator's options say of its fits."""

    stopping: Stopping
    links: LinkOptions | None = None
    weight: Floats | None = None  # (n_workers, n_classes) how often known tasks count; None: once
    calibrate: str = "auto"  # one of `calibration.MODES`
    dependence: float = DEPENDENCE
    n_more: float = 0.0  # responses that a task's own prior counts as: it shares their errors


class Fitted(NamedTuple):
    """Where a fit ended, with what it was fitted to. Stages read it."""

    inputs: Inputs  # by task
    rows: Rows
    plain: Problem  # without links, nothing known
    plain_parameters: Parameters  # of plain VB, which has seen neither links nor gold
    problem: Problem  # with links, and what is known
    known: Known  # gold, and what follows from it
    state: FitState


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What travels from stage to stage: probabilities, labels, and what was found on the way."""

    q: Floats  # (n_rows, n_classes) as reported
    label: Codes  # (n_rows,)
    memory: Any = None  # of the task model, at these probabilities
    found: dict[str, Any] = field(default_factory=dict)  # results by the names they get

    def adding(self, **found: Any) -> Scored:
        """Return the same with more that was found."""
        return replace(self, found={**self.found, **found})


def fit(
    plain: Problem, inputs: Inputs, rows: Rows, start: Start, options: FitOptions
) -> tuple[Fitted, Scored]:
    """Fit, and score: what an estimator publishes."""
    gold, implied = rows.gold, rows.implied
    is_alone = gold is None and inputs.link_codes is None
    others = plain.workers.starts(rows.laid, rows.copies) if inputs.remote is None else ()
    state, parameters = fit_plain(plain, start, options.stopping, others, is_alone=is_alone)
    known = Known.of(gold, options.weight)
    problem = plain
    found: dict[str, Any] = {}
    if inputs.network is not None:
        from tiebreak.inference import networks

        return networks.fit(plain, inputs, rows, start, options, parameters)
    if inputs.sequences is not None:
        from tiebreak.inference import sequencing

        return sequencing.fit(plain, inputs, rows, start, options, state, parameters)
    if implied is not None and isinstance(options.links, MeanFieldOptions):
        from tiebreak.inference.tasks import mean_field

        tol = options.stopping.tol
        given = (implied, options.links, options.weight, tol)
        problem, known = mean_field.with_mean_field(plain, *given)
        q = known.clamp(state.q)
        climbed = mean_field.climb_strengths(
            problem, state._replace(q=q), options.links, implied.given, options.stopping
        )
        state, found["link_strength_"], found["link_grid_"] = climbed
    elif implied is not None:
        links = options.links or ExactLinkOptions()
        assert isinstance(links, ExactLinkOptions)  # the other kind is mean field
        problem, state, uncertain = fit_links(plain, state, implied, links, start, options)
        assert isinstance(problem.tasks, Linked)
        known = problem.tasks.known
        found["uncertain"] = uncertain
    elif gold is not None:
        problem, state, found["from_gold"] = fit_gold(plain, state, known, start, options)
    fitted = Fitted(inputs, rows, plain, parameters, problem, known, state)
    scored = calibrate(fitted, options, found)
    scored = decode(problem, state.parameters, scored, options.links)
    has_both = inputs.rules is not None and rows.gold is not None
    of_known = said_of_known(fitted, options.dependence) if has_both else None
    return fitted, constrain(inputs, problem, scored, of_known)


def fit_plain(
    problem: Problem,
    start: Start,
    stopping: Stopping,
    others: Sequence[Floats] = (),
    *,
    is_alone: bool,
) -> tuple[FitState, Parameters]:
    """Fit plain VB; return where links and gold start, and the parameters of plain VB.

    A cold fit starts at `others`, too: q of all rows; the highest bound is kept.
    Where links or gold follow and somebody gave the start, it is taken as it is. An earlier model
    also tells what plain VB found there, if it saw these responses and has the same worker model.
    """
    if start.is_cold or is_alone:
        starts = [start.state.q, *(others if start.is_cold else ())]
        state = best_of(climb(problem, FitState(q=q), stopping) for q in starts)
        return state, state.parameters
    state = start.state
    if not state.parameters:
        state = state._replace(parameters=problem.implied(state.q))
    plain = start.plain or state.parameters
    if start.is_warm and not start.plain:
        plain = climb(problem, FitState(state.q), stopping).parameters
    return FitState(state.q, state.parameters), plain


def fit_links(
    plain: Problem,
    state: FitState,
    implied: Implications,
    links: ExactLinkOptions,
    start: Start,
    options: FitOptions,
) -> tuple[Problem, FitState, tuple[Codes, ...]]:
    """Fit with exact links from where plain VB ended, from one start or several.

    Return also groups of linked tasks that another mode calls otherwise.
    """
    if links.error == "learn" and implied.given.weight is not None:
        raise OptionError("weights-leave-nothing-to-learn")
    problem = with_links(plain, implied, links, options.weight)
    if start.is_warm:
        at = start_at(problem, state)
        if not at.parameters:
            at = at._replace(parameters=problem.implied(at.q))
        return problem, climb(problem, start_alone(problem, at), options.stopping), ()
    is_single = implied.gold is None and not ties_three(implied.given, plain.n_classes)
    if is_single or not start.is_cold:
        return problem, climb(problem, start_at(problem, state), options.stopping), ()
    given = state, links, options.stopping, options.dependence
    best, uncertain = best_mode(plain, problem, *given)
    return problem, best, uncertain


def fit_gold(
    plain: Problem, state: FitState, known: Known, start: Start, options: FitOptions
) -> tuple[Problem, FitState, bool]:
    """Fit with known labels alone; return also whether workers as they show them won.

    Where gold contradicts the crowd, or the worker model asks for it, these are a second start.
    """
    problem = known.on(plain)
    at = FitState(q=known.clamp(state.q, plain.n_classes), remote=state.remote)
    best = climb(problem, at, options.stopping)
    is_other = plain.workers.starts_at_gold or known.contradicts(plain.by_class(state.q))
    if not (start.is_cold and is_other):
        return problem, best, False
    of_known = at._replace(parameters=known.parameters(plain, state.q))
    both = (best, climb(problem, of_known, options.stopping))
    found = best_of(both)
    return problem, found, found is both[1]


def join_scores(
    plain: Problem,
    state: FitState,
    scores: Floats,
    implied: Implications,
    links: ExactLinkOptions,
    stopping: Stopping,
) -> tuple[Problem, Scored]:
    """Join class scores that another model gives, (n_rows, n_classes), by links: no climb.

    Error rates of links, if they are to be learnt, come from the model that ended in `state`.
    """
    problem = with_links(plain, implied, links)
    tasks = problem.tasks
    assert isinstance(tasks, Linked)
    assert tasks.own is not None  # there are links
    parameters = (*tasks.prior, np.empty(0))
    if tasks.errors is not None:
        best, _ = best_mode(plain, problem, state, links, stopping)
        parameters = best.parameters
    q = softmax(scores)
    at = tasks.own.at
    concluded = tasks.conclude(parameters, scores[at], np.ones(len(at)), q[at], None)
    q[at] = concluded.q
    q = tasks.known.clamp(q)
    label, _ = likeliest(q)
    scored = Scored(q=q, label=label, memory=concluded.memory)
    return problem, decode(problem, parameters, scored, links)


# -- from where a fit ended to a result ------------------------------------------------------------


def calibrate(fitted: Fitted, options: FitOptions, found: dict[str, Any]) -> Scored:
    """Choose how scores become probabilities, and score.

    Gold and hard links are trusted; soft ones are taken at the error rate that is stated or found.
    """
    plain, problem, known, implied = fitted.plain, fitted.problem, fitted.known, fitted.rows.implied
    tasks, is_sample = problem.tasks, options.weight is not None
    evidence: Evidence | None = None
    is_of_gold = implied is None and fitted.rows.gold is not None
    if is_of_gold:
        gold = GoldCodes(known.task, known.label)
        evidence = Evidence(None, np.empty(0), gold, is_sample=is_sample)
    elif implied is not None and isinstance(tasks, Linked):
        links = implied.given
        if tasks.errors is not None:
            same, different = rates_of(fitted.state.parameters[1])
            source = 0 if links.who is None or len(same) == 1 else links.who + 1
            wrong = np.where(links.must, different[source], same[source])
        else:
            error = getattr(options.links, "error", None)
            log_odds, hard = log_odds_of(links, None if error is None else float(error))
            wrong = np.where(hard, TRUSTED_ERROR, expit(-np.abs(log_odds)))
        evidence = Evidence(links, wrong, implied.gold, is_sample=is_sample)
    chosen = calibration.choose(
        plain,
        fitted.plain_parameters,
        options,
        evidence,
        known if is_of_gold else None,
        from_gold=bool(found.get("from_gold")),
    )
    n_given = calibration.n_responses(plain.rows) + options.n_more if options.n_more else None
    q, memory = calibration.probabilities(problem, fitted.state, chosen, n_given, known)
    label, _ = likeliest(plain.by_class(fitted.state.q))
    return Scored(q=q, label=label, memory=memory, found={**found, "calibration_": chosen})


def said_of_known(fitted: Fitted, dependence: float) -> Floats:
    """Return what plain VB, which has seen no label, says of known rows, (n_gold, n_classes)."""
    gold, plain = fitted.rows.gold, fitted.plain
    assert gold is not None
    scores = calibration.class_scores_of(plain, plain.logs(fitted.plain_parameters), gold.task)
    scale = calibration.Calibration(dependence)
    return softmax(scores, scale.scale(calibration.n_responses(plain.rows, gold.task)))


def decode(
    problem: Problem, parameters: Parameters, scored: Scored, links: LinkOptions | None
) -> Scored:
    """Give linked tasks labels that break no hard link, where the options ask for it.

    Labels of all other tasks are by what the model believes: scaling must not break ties.
    """
    tasks, joint = problem.tasks, scored.memory
    if not isinstance(tasks, Linked):
        return scored
    decoded = joint_labels(tasks, joint, links or ExactLinkOptions())
    label = scored.label
    if decoded is not None:
        label = label.copy()
        label[tasks.task] = decoded
    return replace(scored, label=label).adding(
        link_report_=tasks.report(joint),
        wrong=tasks.wrong(joint),
        rates=None if tasks.errors is None else parameters[1],
        is_decoded=decoded is not None,
    )


def constrain(
    inputs: Inputs, problem: Problem | None, scored: Scored, of_known: Floats | None
) -> Scored:
    """Condition on constraints: see `coupling.constrain`. Rows are tasks where there are any.

    `of_known` has the probabilities of known tasks as they are without knowing.
    """
    if inputs.rules is None:
        return scored
    from tiebreak.inference.tasks.coupling import constrain as stage

    tasks = None if problem is None else problem.tasks
    if inputs.link_codes is not None and not isinstance(tasks, Linked):
        raise OptionError("constraints-need-exact-links")
    linked = tasks if isinstance(tasks, Linked) else None
    q, label, found = stage.constrain(
        inputs.rules,
        scored.q,
        scored.label,
        linked=linked,
        joint=None if linked is None else scored.memory,
        of_known=of_known,
    )
    return replace(scored, q=q, label=label).adding(**found)


def joint_labels(tasks: Linked, joint: Any, options: LinkOptions) -> Codes | None:
    """Return the joint labels of the members; None where each gets its likeliest class.

    Where the options say nothing, hard links ask for joint labels.
    """
    wish = getattr(options, "decode", None)
    if not (bool(tasks.hard.any()) if wish is None else wish == "joint"):
        return None
    return decode_jointly(tasks, joint)


# -- starts from outside ---------------------------------------------------------------------------


def q_of_init(init: Any, responses: Responses) -> Floats:
    """Check probabilities given as `init`, where q starts: (n_tasks, n_classes), rows sum to 1."""
    q: Floats = as_floats("init", init)
    shape = responses.n_tasks, responses.n_classes
    if q.shape != shape:
        raise OptionError("init-shape", shape=shape, given=q.shape)
    if not (np.isfinite(q).all() and (q >= 0).all() and np.allclose(q.sum(axis=1), 1, atol=1e-6)):
        raise OptionError("init-no-probabilities")
    return q


def q_of_model(model: Any, responses: Responses, worker_model: str | None = None) -> Floats:
    """Return where an earlier model leaves these tasks, by state where the states are the same.

    Tasks that it has not seen start at the votes.
    """
    former = model.responses_
    q: Floats = model.probabilities_
    state: FitState | None = vars(model).get("_state")
    has_same_states = state is not None and model.worker_model_ == worker_model
    if state is not None:
        q = state.q if has_same_states else sum_subtypes(state.q, former.n_classes)
    if are_equal(former, responses):
        return q
    votes = majority(lay_out(responses), responses.n_classes)
    n_subtypes = q.shape[1] // max(former.n_classes, 1)
    if n_subtypes > 1:
        votes = split_into_subtypes(votes, votes, n_subtypes)
    place = former.tasks.codes(responses.tasks)
    subtype = np.tile(np.arange(n_subtypes), former.n_classes)
    new_class = np.repeat(responses.classes.codes(former.classes), n_subtypes)
    column = np.where(new_class >= 0, new_class * n_subtypes + subtype, -1)
    seen, kept = np.flatnonzero(place >= 0), np.flatnonzero(column >= 0)
    moved = np.zeros((len(seen), votes.shape[1]))
    moved[:, column[kept]] = q[np.ix_(place[seen], kept)]
    total = moved.sum(axis=1)
    has_mass = total > 0.0  # not where all that was likely is no class any more
    votes[seen[has_mass]] = moved[has_mass] / total[has_mass, None]
    return votes


def are_equal(one: Responses, other: Responses) -> bool:
    """Compare responses: arrays first, as ids are compared one by one only where these are equal.

    >>> votes = Responses.from_rows([("a", "ann", "x")])
    >>> are_equal(votes, Responses.from_rows([("a", "ann", "x")]))
    True
    """
    return one is other or (
        np.array_equal(one.start, other.start)
        and np.array_equal(one.code, other.code)
        and one.classes == other.classes
        and one.workers == other.workers
        and one.tasks == other.tasks
    )
