"""Publishing: name what a fit found by the caller's ids, and say what the caller should know of it.

Doubts about a fit are notes with numbers. A note is given only where there is enough behind it that
chance is no explanation.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr, rel_entr

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Labels
from tiebreak.data.scale import note_scale
from tiebreak.errors import note
from tiebreak.inference import calibration, stages
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.climb import FitState, Problem
from tiebreak.inference.door import Inputs
from tiebreak.inference.stages import Fitted, Scored
from tiebreak.kernels.arrays import likeliest, softmax
from tiebreak.kernels.contract import where
from tiebreak.kernels.layout import Codes, Floats

if TYPE_CHECKING:
    from tiebreak.estimators.auto import Auto
    from tiebreak.estimators.base import Estimator
    from tiebreak.estimators.variational_bayes import VariationalBayes

TASKS_AT_ONCE = 1 << 16

LEAST_TASKS = 50  # fewer tasks than this can be anything
COLLAPSED = 0.1  # nats of KL(mean q ‖ vote shares); sound fits of 16 crowds have at most 0.05
GAINED = 0.1  # of all tasks, that the largest class has above its share of the responses
LEAST_VOTES = 20  # for a class, that its absence among labels is strange
FEW = 0.1  # of the labels that the votes of a class would give
CHANCE = 1e-3  # below it, chance is no explanation
# Responses: below both, votes are right more often than VB. Chosen on draws 100 to 111 of the
# simulation in experiments/05_probabilities; docs/worker-models.md shows draws 200 to 211.
FEW_A_TASK = 1.6
FEW_A_WORKER = 10.0
LEAST_ERRORS = 5  # of the crowd on gold


def publish(model: VariationalBayes, fitted: Fitted, scored: Scored) -> None:
    """Set the attributes of a model that end in an underscore, and raise the notes."""
    publish_learnt(model, fitted, scored)
    has_collapsed = note_doubts(fitted, model.labels_, model.dependence)
    inputs = fitted.inputs
    is_plain = (
        inputs.link_codes is None
        and inputs.gold_codes is None
        and inputs.sequences is None
        and inputs.network is None
    )
    is_plain &= inputs.scale is None  # two levels that are swapped mean nothing
    if is_plain and not has_collapsed:
        from tiebreak.inference import near_modes

        crowd = fitted.inputs.responses
        given = (fitted.state, crowd, model._stopping, model.dependence)
        near_modes.note_near_mode(fitted.plain, *given)


def publish_learnt(model: VariationalBayes, fitted: Fitted, scored: Scored) -> None:
    """Set what was learnt of workers, classes, links and the tasks here."""
    found = scored.found
    model.calibration_ = found["calibration_"]
    placed = fitted.inputs.sequences
    model.sequences_ = None if placed is None else placed.given
    for name in ("spans_", "transitions_", "sequence_model_", "neighbours_"):
        setattr(model, name, found.get(name))
    model.sequence_choice_ = found.get("sequence_choice_", ())
    model.link_strength_ = found.get("link_strength_")
    model.link_grid_ = found.get("link_grid_")
    model.uncertain_groups_ = uncertain_groups(fitted, found.get("uncertain", ()))
    model.link_errors_ = None
    if found.get("rates") is not None:
        from tiebreak.inference.tasks.coupling.link_errors import errors_by_source

        model.link_errors_ = errors_by_source(fitted.inputs.links, found["rates"])
    publish_scored(model, fitted, scored)
    if model.uncertain_groups_:
        note("uncertain-groups", groups=model.uncertain_groups_)


def publish_scored(model: VariationalBayes | Auto, fitted: Fitted, scored: Scored) -> None:
    """Set labels, workers and classes, how the fit went, and what it found of links."""
    found, rows = scored.found, fitted.rows
    publish_state(model, fitted.plain, fitted.state, fitted.inputs)
    model.link_report_ = found.get("link_report_")
    publish_constraints(model, found)
    model.doubtful_links_ = None
    if rows.implied is not None and "wrong" in found and found["wrong"].any():
        from tiebreak.inference.tasks.coupling.link_errors import suspect_links

        codes = rows.implied.given
        model.doubtful_links_ = suspect_links(fitted.inputs.links, codes, found["wrong"])
    top = _probability_of(scored.label, scored.q)
    by_task = (rows.to_tasks(each) for each in (scored.q, scored.label, top))
    model._publish(fitted.inputs, *by_task)
    if found.get("is_decoded") and fitted.inputs.rules is None:
        note_broken(model)


def publish_constraints(model: Estimator, found: dict[str, Any]) -> None:
    """Set what constraints did; None without any."""
    for name in ("constraint_report_", "doubtful_constraints_", "own_probabilities_"):
        setattr(model, name, found.get(name))


def publish_constrained(
    model: Estimator, inputs: Inputs, q: Floats, of_known: Floats | None
) -> None:
    """Publish class probabilities by task, conditioned on constraints where there are any."""
    if inputs.rules is None:
        publish_constraints(model, {})
        model._publish(inputs, q)
        return
    scored = stages.constrain(inputs, None, Scored(q=q, label=likeliest(q)[0]), of_known)
    publish_constraints(model, scored.found)
    model._publish(inputs, scored.q, scored.label, _probability_of(scored.label, scored.q))


def publish_state(model: Estimator, problem: Problem, state: FitState, inputs: Inputs) -> None:
    """Set workers and classes as parameters have them, and how the fit went."""
    model.class_prior_ = problem.tasks.shares.mean(state.parameters[0])
    model.confusion_ = problem.confusion(state.parameters)
    model.bounds_ = list(state.bounds)
    model.n_iter_ = state.n_sweeps
    model.converged_ = state.converged
    if inputs.remote is None:
        model.ran_on_ = where(problem.backend)


def _probability_of(label: Codes, q: Floats) -> Floats:
    """Return the probability of each row's label."""
    top = np.empty(len(label))
    first = np.arange(TASKS_AT_ONCE) * q.shape[1]
    for low in range(0, len(label), TASKS_AT_ONCE):  # places take more memory than q
        some = q[low : low + TASKS_AT_ONCE]
        place = first[: len(some)] + label[low : low + TASKS_AT_ONCE]
        np.take(some.reshape(-1), place, out=top[low : low + TASKS_AT_ONCE], mode="clip")
    return top


def uncertain_groups(fitted: Fitted, groups: tuple[Codes, ...]) -> list[list[Hashable]]:
    """Return the tasks of linked groups whose class another mode has otherwise."""
    rows = fitted.rows.to_tasks(np.arange(fitted.rows.laid.n_tasks))
    ids = fitted.inputs.responses.tasks
    return [[ids[int(task)] for task in np.flatnonzero(np.isin(rows, group))] for group in groups]


def note_broken(model: VariationalBayes | Auto) -> None:
    """Say so where joint decoding found no labelling that breaks no hard link."""
    violations = model.violations_
    may_break = model.on_contradiction == "drop" or model.link_error is not None
    if not violations or may_break:
        return
    if violations.weight is None or bool(np.isnan(violations.weight).any()):
        note("links-broken", n=len(violations))


def note_doubts(fitted: Fitted, labels: Labels, dependence: float) -> bool:
    """Say what may be wrong with the labels: gold that contradicts the crowd, or a collapse.

    Return whether one class took nearly all.
    """
    q = fitted.plain.by_class(fitted.state.q)
    has_collapsed = note_odd_labels(fitted.inputs, q, fitted.plain.copies, labels.label)
    note_gold(fitted, dependence)
    if fitted.inputs.scale is None:
        note_scale(fitted.inputs.responses)
    return has_collapsed


def note_odd_labels(inputs: Inputs, q: Floats, copies: Floats | None, labels: Codes) -> bool:
    """Say so where one class took nearly all tasks, or some none, or responses are few.

    Return whether one class took nearly all. `q` is by task, or by pattern with its `copies`.
    """
    crowd = inputs.responses
    if copies is None:
        mean_q = np.einsum("tk->k", q) / len(q)  # one thread: it is short
    else:
        mean_q = np.einsum("t,tk->k", copies, q) / copies.sum()
    votes = votes_of(crowd)
    has_collapsed = note_collapse(crowd.n_tasks, crowd.classes, votes, mean_q)
    if not has_collapsed:
        note_missing_classes(crowd, votes, labels)
        note_few_responses(inputs, crowd.n_tasks, votes.sum())
    return has_collapsed


def note_gold(fitted: Fitted, dependence: float) -> None:
    """Say so where gold contradicts the crowd, or workers are worse than chance on it."""
    gold = fitted.rows.gold
    if gold is None or fitted.inputs.gold_codes is None:
        return
    plain = fitted.plain
    scores = calibration.class_scores_of(plain, plain.logs(fitted.plain_parameters), gold.task)
    scale = Calibration(dependence).scale(calibration.n_responses(plain.rows, gold.task))
    note_gold_against_crowd(gold, softmax(scores, scale))
    note_workers_below_chance(fitted.inputs.responses, fitted.inputs.gold_codes)


def note_collapse(n_tasks: int, classes: Ids, votes: Floats, mean_q: Floats) -> bool:
    """Say so where one class took nearly all tasks; return whether it did.

    Parameters
    ----------
    votes
        (n_classes,) how many responses each class has, by weight.
    mean_q
        (n_classes,) mean probability of each class, as the model says.
    """
    if n_tasks < LEAST_TASKS or len(classes) < 2:
        return False
    share = votes / (votes.sum() or 1.0)
    gap = float(rel_entr(mean_q, np.maximum(share, 1e-12)).sum())
    most = int(mean_q.argmax())
    if gap <= COLLAPSED or mean_q[most] < max(share[most] + GAINED, 0.5):
        return False
    shares = {"votes": float(share[most]), "tasks": float(mean_q[most])}
    note("collapsed", name=classes[most], **shares)
    return True


def note_missing_classes(responses: Responses, votes: Floats, labels: Codes) -> None:
    """Name classes that have responses but no labels, or nearly none."""
    if responses.n_tasks < LEAST_TASKS:
        return
    expected = responses.n_tasks * votes / (votes.sum() or 1.0)
    given = np.bincount(labels, minlength=responses.n_classes)
    few = np.flatnonzero((votes >= LEAST_VOTES) & (expected >= 5) & (given < FEW * expected))
    if len(few):
        rows = zip(few.tolist(), votes[few].tolist(), given[few].tolist(), strict=True)
        named = [(responses.classes[k], n_votes, n) for k, n_votes, n in rows]
        note("missing-classes", classes=named)


def note_swapped_classes(responses: Responses, labels: Codes) -> None:
    """Name two classes, each of which got the tasks that more responses call the other one."""
    n_classes = responses.n_classes
    if responses.n_tasks < LEAST_TASKS or n_classes < 2:
        return
    cell = responses.label_of_each() * n_classes + labels[responses.task_of_each()]
    said = np.bincount(cell, responses.weight, n_classes**2).reshape(n_classes, n_classes)
    rather = said > np.diag(said)  # [answer, label]: said more often than the label itself
    one, other = np.nonzero(np.triu(rather & rather.T))
    if len(one):
        a, b = (responses.classes[int(k)] for k in (one[0], other[0]))
        note("swapped-classes", one=a, other=b, n=int(np.isin(labels, [one[0], other[0]]).sum()))


def note_few_responses(inputs: Inputs, n_tasks: int, n_responses: float) -> None:
    """Say so where responses are too few to learn from them who errs, and nothing else helps."""
    if inputs.gold is not None or inputs.links is not None or n_tasks < LEAST_TASKS:
        return
    a_task = n_responses / n_tasks
    a_worker = n_responses / inputs.responses.n_workers
    if a_task < FEW_A_TASK and a_worker < FEW_A_WORKER:
        note("few-responses", a_task=a_task, a_worker=a_worker)


def note_gold_against_crowd(gold: GoldCodes, q: Floats) -> None:
    """Say so where the crowd is wrong on gold more often than its probabilities allow.

    Parameters
    ----------
    q
        (n_gold, n_classes) probabilities of gold's tasks from responses alone.
    """
    wrong = q.argmax(axis=1) != gold.label
    doubt = 1.0 - q.max(axis=1)
    expected = float(doubt.sum())
    spread = float(np.sqrt((doubt * (1.0 - doubt)).sum()))
    n_wrong = int(wrong.sum())
    if n_wrong >= LEAST_ERRORS and n_wrong > expected + 3.0 * max(spread, 1.0):
        note("gold-against-crowd", n_wrong=n_wrong, n=len(wrong), expected=expected)


def note_workers_below_chance(responses: Responses, gold: GoldCodes) -> None:
    """Name workers who are right on gold tasks less often than by guessing."""
    truth = np.full(responses.n_tasks, -1, dtype=np.int32)
    truth[gold.task] = gold.label
    start = responses.start
    of_gold = [np.arange(start[i], start[i + 1]) for i in np.sort(gold.task)]
    rows = np.concatenate(of_gold) if of_gold else np.empty(0, dtype=np.int64)
    n_each = np.diff(start)[np.sort(gold.task)]
    task = np.repeat(np.sort(gold.task), n_each)
    worker, label = np.divmod(responses.code[rows], responses.n_classes)
    given = np.bincount(worker, minlength=responses.n_workers)
    right = np.bincount(worker[label == truth[task]], minlength=responses.n_workers)
    by_chance = bdtr(right.astype(float), given, 1.0 / responses.n_classes)
    below = np.flatnonzero((given > 0) & (by_chance < CHANCE / max((given > 0).sum(), 1)))
    if len(below):
        below = below[np.argsort(by_chance[below], kind="stable")]
        each = zip(below.tolist(), right[below].tolist(), given[below].tolist(), strict=True)
        named = [(responses.workers[w], n_right, n) for w, n_right, n in each]
        note("workers-below-chance", workers=named)


def votes_of(responses: Responses) -> Floats:
    """Return how many responses each class has, by weight, (n_classes,)."""
    return np.asarray(responses.weigh_labels().sum(axis=0))
