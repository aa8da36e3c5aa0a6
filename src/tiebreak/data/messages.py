"""What errors and notes about responses, gold and ids say, by code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tiebreak.errors import Message, register
from tiebreak.wording import agreeing, counted

Placed = Sequence[tuple[Hashable, str]]  # a name, and the place that gives it


def _rows_have(n: int, what: str = "row") -> str:
    return f"{counted(n, what)} {agreeing(n, 'have')}"


def _repeats(n: int) -> str:
    return f"{counted(n, 'response')} {agreeing(n, 'repeat')} a worker on a task"


def _no_id_in_row(role: str, n: int, places: Sequence[str]) -> str:
    shown = "; ".join(places)
    return f"{_rows_have(n)} no {role} id ({shown}). Fill in the {role} or remove the row."


def _mixed_ids(ids: Sequence[object], reason: object) -> str:
    kinds = sorted({type(each).__name__ for each in ids})
    return (
        f"These values ({', '.join(kinds)}) cannot be ids or labels together: {reason}. "
        "Give all of them as one type, text or numbers; make others text, for instance with str()."
    )


def _runs_weighed(size: str, of_runs: float | None, of_orders: float | None) -> str:
    found = []
    if of_runs is not None:
        found.append(f"runs err together by {of_runs:.2f}")
    if of_orders is not None:
        found.append(f"orders by {of_orders:.2f}")
    why = f" ({', '.join(found)})" if found else ""
    return f"{size}: all are kept, with less weight each{why} (repeats='runs')."


def _unknown_gold(n: int, shown: Placed) -> str:
    named = "; ".join(f"{task!r} ({place})" for task, place in shown)
    return (
        f"{counted(n, 'task')} of gold {agreeing(n, 'are')} not among the responses: {named}.\n"
        "Correct these ids, remove the rows, or list tasks without responses with tasks=."
    )


def _known_twice(task: Hashable, given: Placed) -> str:
    (one, here), (other, there) = given
    return (
        f"Task {task!r} is known twice with different labels: {one!r} ({here}) and "
        f"{other!r} ({there}). Keep one of them."
    )


def _classes_of_gold(names: Sequence[Hashable], alike: tuple[Hashable, Hashable] | None) -> str:
    from tiebreak.data.ids import difference

    added = ", ".join(map(str, names))
    words = f"No worker used {added}, which gold names: added to the classes."
    if alike is None:
        return words
    return (
        f"{words} {alike[0]!r} and {alike[1]!r} {difference(alike)}: write them alike, or join "
        "them with fold_labels=True (gold.with_labels_like(responses.classes))."
    )


MESSAGES: dict[str, Message] = {
    "mixed-ids": _mixed_ids,
    "other-type-of-id": "{id!r} is not of type {type}, as {first!r} and the others are. Give all "
    "of them as one type, for instance text.",
    "bad-id": "A {role} cannot be used as an id: {reason}.",
    # responses
    "bad-start": "start must have one entry more than there are tasks, {n_tasks:,}; got {n:,}.",
    "unequal-responses": "task, worker and label must be equally long; got {lengths}.",
    "unequal-weights": "There are {n_responses:,} responses, but {n:,} weights.",
    "bad-weight": "Weights of responses must be above 0 and finite; got {weight}.",
    "bad-weight-in-row": "{where}: the weight is {value!r}. A weight says how often a response "
    "counts: a number above 0, or nothing, which is 1.",
    "no-triples": "There are no responses. Pass at least one (task, worker, label).",
    "no-triple": "Each row must be (task, worker, label); row {row:,} is {value!r}.",
    "no-id-in-row": _no_id_in_row,
    "no-label": "{table} holds no label at all. Pass at least one row of task, worker, label.",
    "empty-labels": lambda n: f"{_rows_have(n)} an empty label: no answer, not counted.",
    # repeats
    "repeats": lambda n, worker, task: (
        f"{_repeats(n)}; the first is worker {worker!r} on task {task!r}.\n"
        "Remove them, or choose repeats='last' or repeats='count'."
    ),
    "repeats-last": lambda n: f"{_repeats(n)}; the last one counts.",
    "repeats-counted": lambda n: f"{_repeats(n)}; each counts as one more.",
    "repeats-voted": "{n:,} responses repeat a worker on a task; the majority of a worker's runs "
    "counts once (repeats='vote'), and {n_ties:,} ties give no vote.",
    "runs-weighed": _runs_weighed,
    "confidence-weighed": "Column 'confidence' counts as far as it predicts agreement with "
    "others: weights from {low:.2f} to {high:.2f}. If it means something else, rename it.",
    "confidence-unused": "{table}: column 'confidence' {reason}; it does not count.",
    # gold
    "unequal-gold": "task and label must be equally long; got {n_tasks}, {n_labels}.",
    "no-task-in-gold": "A row has no task id ({where}). Fill it in or remove the row.",
    "empty-gold": lambda n: f"{_rows_have(n, 'row of gold')} an empty label: not known.",
    "gold-known-twice": _known_twice,
    "unknown-gold": _unknown_gold,
    "classes-of-gold": _classes_of_gold,
    # sequences
    "no-id-in-sequences": "A row of sequences has no {role} ({where}). Fill it in or remove it.",
    "task-in-two-places": lambda task, where: (
        f"Task {task!r} is in two places of sequences: {where[0]} and {where[1]}. Keep one."
    ),
    "two-at-one-position": lambda tasks, where: (
        f"Tasks {tasks[0]!r} ({where[0]}) and {tasks[1]!r} ({where[1]}) are at one position of "
        "one sequence. Correct one of them."
    ),
    "no-position": "A position of sequences is no number ({where}). Correct it, or leave the "
    "column out: rows are then in order.",
    # labels
    "no-probabilities": "These labels carry no probability for every class.",
}
register(MESSAGES)
