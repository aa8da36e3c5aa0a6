"""Publishing: name what a fit found by the caller's ids, and say what the caller should know of it.

Doubts about a fit are notes with numbers. A note is given only where there is enough behind it that
chance is no explanation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr, rel_entr

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.data.ids import Ids
from tiebreak.data.scale import note_scale
from tiebreak.errors import note
from tiebreak.inference import FitState, Inputs, Problem
from tiebreak.inference.stages import Fitted, Scored, constrain, said_of_known
from tiebreak.kernels.arrays import likeliest
from tiebreak.kernels.contract import where
from tiebreak.kernels.layout import Codes, Floats, responses_on

if TYPE_CHECKING:
    from tiebreak.estimators.auto import Auto
    from tiebreak.estimators.base import Estimator
    from tiebreak.estimators.variational_bayes import VariationalBayes

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


def publish(model: VariationalBayes | Auto, fitted: Fitted, scored: Scored) -> None:
    """Set the attributes of a model that end in an underscore."""
    inputs, rows = fitted.inputs, fitted.rows
    found: dict[str, Any] = {"sequence_choice_": (), **scored.found}
    publish_state(model, fitted.plain, fitted.state, inputs)
    found["sequences_"] = None if inputs.sequences is None else inputs.sequences.given
    row, ids = rows.to_tasks(np.arange(rows.laid.n_tasks)), inputs.responses.tasks
    found["uncertain_groups_"] = [
        [ids[int(task)] for task in np.flatnonzero(np.isin(row, group))]
        for group in found.get("uncertain", ())
    ]
    if "wrong" in found:
        from tiebreak.inference.tasks.coupling.link_errors import errors_by_source, suspect_links

        assert rows.implied is not None  # there are links
        found["doubtful_links_"] = suspect_links(inputs.links, rows.implied.given, found["wrong"])
        if found["rates"] is not None:
            found["link_errors_"] = errors_by_source(inputs.links, found["rates"])
    model._publish(inputs, rows.to_tasks(scored.q), rows.to_tasks(scored.label), found)
    if found.get("is_decoded") and inputs.rules is None:
        broken = model.violations_
        may_break = model.on_contradiction == "drop" or model.link_error is not None
        if broken and not may_break and (broken.weight is None or np.isnan(broken.weight).any()):
            note("links-broken", n=len(broken))
    if found["uncertain_groups_"]:
        note("uncertain-groups", groups=found["uncertain_groups_"])


def publish_constrained(
    model: Estimator, inputs: Inputs, q: Floats, of_known: Floats | None = None
) -> None:
    """Publish class probabilities by task, conditioned on constraints where there are any."""
    scored = constrain(inputs, None, Scored(q=q, label=likeliest(q)[0]), of_known)
    model._publish(inputs, scored.q, scored.label, scored.found)


def publish_state(model: Estimator, problem: Problem, state: FitState, inputs: Inputs) -> None:
    """Set workers and classes as parameters have them, and how the fit went."""
    model.class_prior_ = problem.tasks.shares.mean(state.parameters[0])
    model.confusion_ = problem.confusion(state.parameters)
    model.bounds_ = list(state.bounds)
    model.n_iter_ = state.n_sweeps
    model.converged_ = state.converged
    if inputs.remote is None:
        model.ran_on_ = where(problem.backend)


def note_doubts(fitted: Fitted, labels: Codes, dependence: float) -> bool:
    """Say what may be wrong with the labels of tasks; return whether one class took nearly all."""
    q = fitted.plain.by_class(fitted.state.q)
    has_collapsed = note_odd_labels(fitted.inputs, q, fitted.plain.copies, labels)
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
    votes = crowd.weigh_labels().sum(axis=0)
    if note_collapse(crowd.n_tasks, crowd.classes, votes, mean_q):
        return True
    if crowd.n_tasks >= LEAST_TASKS:  # classes with responses but no labels, or nearly none
        expected = crowd.n_tasks * votes / (votes.sum() or 1.0)
        given = np.bincount(labels, minlength=crowd.n_classes)
        few = np.flatnonzero((votes >= LEAST_VOTES) & (expected >= 5) & (given < FEW * expected))
        if len(few):
            rows = zip(few.tolist(), votes[few].tolist(), given[few].tolist(), strict=True)
            named = [(crowd.classes[k], n_votes, n) for k, n_votes, n in rows]
            note("missing-classes", classes=named)
    note_few_responses(inputs, crowd.n_tasks, votes.sum())
    return False


def note_collapse(n_tasks: int, classes: Ids, votes: Floats, mean_q: Floats) -> bool:
    """Say so where one class took nearly all tasks; return whether it did.

    `votes` has how many responses each class has, by weight, and `mean_q` its mean probability.
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


def note_few_responses(inputs: Inputs, n_tasks: int, n_responses: float) -> None:
    """Say so where responses are too few to learn from them who errs, and nothing else helps."""
    if inputs.gold is not None or inputs.links is not None or n_tasks < LEAST_TASKS:
        return
    a_task = n_responses / n_tasks
    a_worker = n_responses / inputs.responses.n_workers
    if a_task < FEW_A_TASK and a_worker < FEW_A_WORKER:
        note("few-responses", a_task=a_task, a_worker=a_worker)


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


def note_gold(fitted: Fitted, dependence: float) -> None:
    """Say so where gold contradicts the crowd, or workers are worse than chance on it."""
    gold = fitted.rows.gold
    if gold is None or fitted.inputs.gold_codes is None:
        return
    q = said_of_known(fitted, dependence)
    doubt = 1.0 - q.max(axis=1)
    expected = float(doubt.sum())
    spread = float(np.sqrt((doubt * (1.0 - doubt)).sum()))
    n_wrong = int((q.argmax(axis=1) != gold.label).sum())
    if n_wrong >= LEAST_ERRORS and n_wrong > expected + 3.0 * max(spread, 1.0):
        note("gold-against-crowd", n_wrong=n_wrong, n=len(q), expected=expected)
    note_workers_below_chance(fitted.inputs.responses, fitted.inputs.gold_codes)


def note_workers_below_chance(responses: Responses, gold: GoldCodes) -> None:
    """Name workers who are right on gold tasks less often than by guessing."""
    start, code = responses_on(responses, gold.task)
    worker, label = np.divmod(code, responses.n_classes)
    is_right = label == np.repeat(gold.label, np.diff(start))
    given = np.bincount(worker, minlength=responses.n_workers)
    right = np.bincount(worker[is_right], minlength=responses.n_workers)
    by_chance = bdtr(right.astype(float), given, 1.0 / responses.n_classes)
    below = np.flatnonzero((given > 0) & (by_chance < CHANCE / max((given > 0).sum(), 1)))
    if len(below):
        below = below[np.argsort(by_chance[below], kind="stable")]
        each = zip(below.tolist(), right[below].tolist(), given[below].tolist(), strict=True)
        named = [(responses.workers[w], n_right, n) for w, n_right, n in each]
        note("workers-below-chance", workers=named)
