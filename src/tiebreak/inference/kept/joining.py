"""Joining: responses, links and gold of a model with those that came since."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiebreak import ids
from tiebreak.errors import GoldError, note
from tiebreak.gold import Gold
from tiebreak.ids import MISSING, Ids
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.links import Links
from tiebreak.responses import Responses
from tiebreak.source import Source
from tiebreak.wording import counted


def join_responses(old: Responses, new: Responses) -> Responses:
    """Return both as one table: the same as if all rows had been read together, old ones first.

    What a worker says again on a task takes the place of what it said there before.

    >>> old = Responses.from_rows([("a", "ann", "x"), ("b", "ann", "x")])
    >>> new = Responses.from_rows([("b", "bob", "y"), ("c", "bob", "x")])
    >>> joined = join_responses(old, new)
    >>> joined, joined.label_of_each().tolist()
    (Responses(4 responses, 3 tasks, 2 workers, 2 classes), [0, 0, 1, 0])
    """
    tasks = ids.merge(old.tasks, new.tasks)
    workers = ids.merge(old.workers, new.workers)
    old = old.with_classes(new.classes)
    classes = old.classes
    new_task = tasks.codes(new.tasks)[new.task_of_each()]
    new_worker = workers.codes(new.workers)[new.worker_of_each()]
    new_label = classes.codes(new.classes)[new.label_of_each()]
    old_task = old.task_of_each()
    old_worker = old.worker_of_each()
    kept = ~_said_again(old_task, old_worker, new_task, new_worker, len(workers))
    n_again = int(len(kept) - kept.sum())
    if n_again:
        note(
            f"{counted(n_again, 'response')} of the model said anew by the same worker on the "
            "same task; the last one counts."
        )
    joined = Responses.from_codes(
        np.concatenate([old_task[kept], new_task]),
        np.concatenate([old_worker[kept], new_worker]),
        np.concatenate([old.label_of_each()[kept], new_label]),
        tasks,
        workers,
        classes,
        weight=_weights(old, new, kept),
    )
    return replace(
        joined,
        n_empty=old.n_empty + new.n_empty,
        n_repeats=old.n_repeats + new.n_repeats + n_again,
        frame=old.frame,
        is_class_ordered=old.is_class_ordered,
    )


def join_links(old: Links | None, new: Links | None) -> Links | None:
    """Return both as one table."""
    if old is None or new is None:
        return new if old is None else old
    return old + new


def join_gold(old: Gold | None, new: Gold | None) -> Gold | None:
    """Return both as one table; a task that is known otherwise now is refused."""
    if old is None or new is None:
        return new if old is None else old
    known = old.to_dict()
    for task, label in new.to_dict().items():
        former = known.setdefault(task, label)
        if former != label:
            raise GoldError(
                f"Task {task!r} is known as {former!r} in the model, and now as {label!r}. "
                "Correct the one that is wrong; to change what the model knows, fit it again."
            )
    tasks = ids.merge(old.tasks, new.tasks)
    classes = ids.merge(old.classes, new.classes)
    codes = np.empty(len(tasks), dtype=np.int32)
    codes[tasks.codes(list(known))] = classes.codes(list(known.values()))
    return Gold(tasks, codes, classes, np.arange(len(tasks)), Source("the model and what is new"))


def with_tasks_of(responses: Responses, links: Links | None, gold: Gold | None) -> Responses:
    """Add tasks that links or gold name and that nobody answered yet."""
    for names in (None if links is None else links.tasks, None if gold is None else gold.tasks):
        if names is not None:
            missing = responses.tasks.codes(names) == MISSING
            if missing.any():
                responses = responses.with_tasks(Ids(names.take(np.flatnonzero(missing))))
    return responses


def _said_again(
    old_task: Codes,
    old_worker: Codes,
    new_task: Codes,
    new_worker: Codes,
    n_workers: int,
) -> Mask:
    """Say which old responses a new one replaces: the same worker on the same task."""
    touched = np.isin(old_task, new_task)
    again = np.zeros(len(old_task), dtype=bool)
    place = np.flatnonzero(touched)
    old_pair = old_task[place].astype(np.int64) * n_workers + old_worker[place]
    new_pair = new_task.astype(np.int64) * n_workers + new_worker
    again[place] = np.isin(old_pair, new_pair)
    return again


def _weights(old: Responses, new: Responses, kept: Mask) -> Floats | None:
    if old.weight is None and new.weight is None:
        return None
    first = np.ones(old.n_responses) if old.weight is None else old.weight
    second = np.ones(new.n_responses) if new.weight is None else new.weight
    return np.concatenate([first[kept], second])
