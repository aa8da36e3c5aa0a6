"""Doubts about a fit, each a note with numbers: what a user would want to know before using it.

A note is given only where there is enough behind it that chance is no explanation.
"""

from __future__ import annotations

import numpy as np
from scipy.special import bdtr, rel_entr

from tiebreak.errors import note
from tiebreak.gold import GoldCodes
from tiebreak.ids import Ids
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.responses import Responses

LEAST_TASKS = 50  # fewer tasks than this can be anything
COLLAPSED = 0.1  # nats of KL(mean q ‖ vote shares); sound fits of 16 crowds have at most 0.05
GAINED = 0.1  # of all tasks, that the largest class has above its share of the responses
LEAST_VOTES = 20  # for a class, that its absence among labels is strange
FEW = 0.1  # of the labels that the votes of a class would give
CHANCE = 1e-3  # below it, chance is no explanation
LEAST_ERRORS = 5  # of the crowd on gold
NAMED = 3  # workers or classes named in a note


def note_collapse(n_tasks: int, classes: Ids, votes: Offsets, mean_q: Floats) -> bool:
    """Say so where one class took nearly all tasks; return whether it did.

    Parameters
    ----------
    votes
        (n_classes,) how many responses each class has.
    mean_q
        (n_classes,) mean probability of each class, as the model says.
    """
    if n_tasks < LEAST_TASKS or len(classes) < 2:
        return False
    share = votes / max(votes.sum(), 1)
    gap = float(rel_entr(mean_q, np.maximum(share, 1e-12)).sum())
    most = int(mean_q.argmax())
    if gap <= COLLAPSED or mean_q[most] < max(share[most] + GAINED, 0.5):
        return False
    note(
        f"Class {classes[most]!r} has {share[most]:.0%} of the responses but got "
        f"{mean_q[most]:.0%} of the tasks: the fit may have collapsed to it. Compare with "
        "MajorityVote; a few gold labels, or links, show which is right."
    )
    return True


def note_missing_classes(responses: Responses, votes: Offsets, labels: Codes) -> None:
    """Name classes that have responses but no labels, or nearly none."""
    if responses.n_tasks < LEAST_TASKS:
        return
    expected = responses.n_tasks * votes / max(votes.sum(), 1)
    given = np.bincount(labels, minlength=responses.n_classes)
    few = np.flatnonzero((votes >= LEAST_VOTES) & (expected >= 5) & (given < FEW * expected))
    if len(few):
        named = ", ".join(
            f"{responses.classes[int(k)]!r} ({votes[k]:,} responses, {given[k]:,} labels)"
            for k in few[:NAMED]
        )
        note(f"Classes that got no task, or nearly none: {named}{_and_more(len(few))}.")


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
        note(
            f"Gold disagrees with the crowd on {n_wrong:,} of {len(wrong):,} tasks, where "
            f"{expected:.0f} were expected: the workers err together, or gold is of another "
            "question. Gold was taken as true."
        )


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
        named = ", ".join(
            f"{responses.workers[int(w)]!r} ({right[w]:,} of {given[w]:,})" for w in below[:NAMED]
        )
        note(
            f"Workers who are right on gold less often than by guessing: {named}"
            f"{_and_more(len(below))}. Did they swap classes?"
        )


def votes_of(responses: Responses) -> Offsets:
    """Return how many responses each class has, (n_classes,)."""
    return np.asarray(responses.count_labels().sum(axis=0))


def _and_more(n: int) -> str:
    return f" and {n - NAMED:,} more" if n > NAMED else ""
