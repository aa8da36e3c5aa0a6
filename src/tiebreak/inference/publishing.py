"""Name what a fit found by the caller's ids, and say what the caller should know of it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tiebreak.errors import note
from tiebreak.inference import doubts, honest, vb
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.link_errors.suspect import (
    DoubtfulLinks,
    LinkErrors,
    errors_by_source,
    suspect_links,
)
from tiebreak.inference.response_patterns import Patterns
from tiebreak.inference.results import Fit
from tiebreak.inference.vb import Beliefs, Problem
from tiebreak.inference.worker_models import CrowdModel
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import where
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.labels import Labels
from tiebreak.links import Links
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.inference.variational_bayes import VariationalBayes

TASKS_AT_ONCE = 1 << 16
SHOWN_GROUPS = 5  # in a note


class Fitted(NamedTuple):
    """A fit with what it was fitted to: by task, and by pattern where patterns were found."""

    inputs: Inputs
    by_pattern: Inputs
    problem: Problem
    patterns: Patterns
    plain: Beliefs  # of plain VB
    found: Fit


class LabelCodes(NamedTuple):
    """What is reported of each task."""

    q: Floats  # (n_tasks, n_classes), calibrated
    label: Codes
    top: Floats  # the label's probability


def publish(model: VariationalBayes, fitted: Fitted) -> None:
    """Set the attributes of a model that end in an underscore, and raise the notes."""
    problem = fitted.problem
    model.ran_on_ = where(problem.backend)
    publish_learnt(model, fitted)
    has_collapsed = note_doubts(fitted, model.labels_, model.dependence)
    is_plain = fitted.inputs.link_codes is None and fitted.inputs.gold_codes is None
    if is_plain and not has_collapsed:
        from tiebreak.inference import near_modes

        crowd = fitted.inputs.responses
        run = fitted.found.run
        near_modes.note_near_mode(problem, run, crowd, model._stopping, model.dependence)


def publish_learnt(model: VariationalBayes, fitted: Fitted) -> LabelCodes:
    """Set what was learnt of workers, classes, links and the tasks here; return their labels."""
    problem = fitted.problem
    found = fitted.found
    run = found.run
    model._crowd_model = CrowdModel(problem.states, problem.workers)
    model._beliefs = run.beliefs
    model.class_prior_ = problem.states.mean(run.beliefs.alpha)
    model.confusion_ = vb.confusion(problem, run.beliefs)
    model.bounds_ = run.bounds
    model.n_iter_ = run.n_sweeps
    model.converged_ = run.converged
    model.calibration_ = found.calibration
    model.link_strength_ = found.link_strength
    model.link_grid_ = found.link_grid
    model.link_report_ = found.link_report
    model.doubtful_links_ = doubtful_links(fitted)
    model.uncertain_groups_ = uncertain_groups(fitted)
    model.link_errors_ = link_errors(fitted)
    labels = label_tasks(fitted)
    model._publish(fitted.inputs, *labels)
    may_break = model.on_contradiction == "drop" or model.link_error is not None
    if found.decoded is not None and not may_break:
        note_broken(model.violations_)
    note_uncertain(model.uncertain_groups_)
    return labels


def label_tasks(fitted: Fitted) -> LabelCodes:
    """Return each task's label: from what the model believes, as scaling must not break ties."""
    problem, found = fitted.problem, fitted.found
    label, _ = problem.backend.likeliest(vb.class_probabilities(problem, found.run.q))
    if found.decoded is not None:
        task, decoded = found.decoded
        label[task] = decoded
    top = np.empty(len(label))
    first = np.arange(TASKS_AT_ONCE) * problem.n_classes
    for low in range(0, len(label), TASKS_AT_ONCE):  # places take more memory than q
        q = found.q[low : low + TASKS_AT_ONCE]
        place = first[: len(q)] + label[low : low + TASKS_AT_ONCE]
        np.take(q.reshape(-1), place, out=top[low : low + TASKS_AT_ONCE], mode="clip")
    return LabelCodes(*(fitted.patterns.to_tasks(each) for each in (found.q, label, top)))


def doubtful_links(fitted: Fitted) -> DoubtfulLinks | None:
    """Return the soft links that are more likely wrong than right."""
    codes = fitted.by_pattern.link_codes
    if fitted.found.wrong is None or codes is None:
        return None
    return suspect_links(fitted.inputs.links, codes, fitted.found.wrong)


def link_errors(fitted: Fitted) -> LinkErrors | None:
    """Return the learnt error rates of links, by source."""
    if fitted.found.rates is None:
        return None
    return errors_by_source(fitted.inputs.links, fitted.found.rates)


def uncertain_groups(fitted: Fitted) -> list[list[Hashable]]:
    """Return groups of linked tasks whose class another mode has otherwise."""
    if not fitted.found.uncertain:
        return []
    pattern = fitted.patterns.to_tasks(np.arange(len(fitted.found.run.q)))
    ids = fitted.inputs.responses.tasks
    return [
        [ids[int(task)] for task in np.flatnonzero(np.isin(pattern, group))]
        for group in fitted.found.uncertain
    ]


def note_uncertain(groups: list[list[Hashable]]) -> None:
    """Name groups of linked tasks that could well have another class."""
    if not groups:
        return
    tasks = ", ".join(repr(group[0]) for group in groups[:SHOWN_GROUPS])
    more = f" and {len(groups) - SHOWN_GROUPS:,} more" if len(groups) > SHOWN_GROUPS else ""
    n_tasks = sum(map(len, groups))
    note(
        f"The class of {counted(len(groups), 'group')} of linked tasks ({n_tasks:,} tasks) is "
        "uncertain: another way to name the classes fits nearly as well. Label one task of "
        f"each: {tasks}{more}."
    )


def note_broken(violations: Links | None) -> None:
    """Say so where joint decoding found no labelling that breaks no hard link."""
    if not violations:
        return
    if violations.weight is None or bool(np.isnan(violations.weight).any()):
        note(f"No labelling was found that breaks no link: {len(violations)} are broken.")


def note_doubts(fitted: Fitted, labels: Labels, dependence: float) -> bool:
    """Say what may be wrong with the labels: gold that contradicts the crowd, or a collapse.

    Return whether one class took nearly all.
    """
    crowd = fitted.inputs.responses
    problem = fitted.problem
    by_class = vb.class_probabilities(problem, fitted.found.run.q)
    if problem.copies is None:
        mean_q = np.einsum("tk->k", by_class) / len(by_class)  # one thread: it is short
    else:
        mean_q = np.einsum("t,tk->k", problem.copies, by_class) / problem.copies.sum()
    votes = doubts.votes_of(crowd)
    has_collapsed = doubts.note_collapse(crowd.n_tasks, crowd.classes, votes, mean_q)
    if not has_collapsed:
        doubts.note_missing_classes(crowd, votes, labels.label)
    note_gold(fitted, dependence)
    return has_collapsed


def note_gold(fitted: Fitted, dependence: float) -> None:
    """Say so where gold contradicts the crowd, or workers are worse than chance on it."""
    gold = fitted.by_pattern.gold_codes
    if gold is None or fitted.inputs.gold_codes is None:
        return
    expected = Calibration(dependence)
    scores = honest.scaled_scores(fitted.problem, fitted.plain, expected, gold.task)
    doubts.note_gold_against_crowd(gold, softmax(scores))
    doubts.note_workers_below_chance(fitted.inputs.responses, fitted.inputs.gold_codes)
