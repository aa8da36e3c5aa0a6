"""What errors and notes about responses, gold and ids say, by code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tiebreak.errors import Message, register
from tiebreak.wording import say, worded

MOST_SHOWN = 6  # levels of a scale in a message
REPEATS = "{n:count response} {n:verb repeat} a worker on a task"


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


def _shown(levels: Sequence[object]) -> str:
    some = [*levels[:2], "…", levels[-1]] if len(levels) > MOST_SHOWN else levels
    return ", ".join(map(str, some))


def _off_scale(
    names: Sequence[object], n: int, where: str, levels: Sequence[object], cure: str | None
) -> str:
    at = f" ({where})" if where else ""
    return say(
        "{n:count answer} {n:verb are} off the scale {}: {}{}. Correct or remove them, or declare "
        "a scale that has them.",
        *(_shown(levels), _shown(names), at),
        n=n,
    )


def _between_levels(
    names: Sequence[object], n: int, where: str, levels: Sequence[object], cure: str | None
) -> str:
    at = f" ({where})" if where else ""
    cured = f"scale='{cure}' has a level for each" if cure else "Give the scale a finer step"
    return say(
        "{n:count answer} {n:verb are} between two levels of {}: {}{}. {}; scale='{}' counts them "
        "as the nearest level.",
        *(_shown(levels), _shown(names), at, cured, _finest(levels)),
        n=n,
    )


def _finest(levels: Sequence[object]) -> str:
    """Write levels as a range with a step."""
    first, last = (float(str(each)) for each in (levels[0], levels[-1]))
    return f"{first:g}..{last:g}/{(last - first) / max(len(levels) - 1, 1):g}"


def _binned(cure: tuple[str, int] | None) -> str:
    return "" if cure is None else f": scale='{cure[0]}' gives {cure[1]} levels"


def _no_order(levels: Sequence[object], share: float | None) -> str:
    found = "" if share is None else f"; {share:.1%} of all orders bring answers as near"
    return (
        f"The order of {_shown(levels)} does not bring answers to one task nearer to each other "
        f"than chance would{found}. They are read as classes without order; name the scale "
        "to read it all the same."
    )


MESSAGES: dict[str, Message] = {
    "mixed-ids": _mixed_ids,
    "other-type-of-id": "{id!r} is not of type {type}, as {first!r} and the others are. Give all "
    "of them as one type, for instance text.",
    "bad-id": "A {role} cannot be used as an id: {reason}.",
    # responses
    "bad-start": "start must have one entry more than there are tasks, {n_tasks:,}; got {n:,}.",
    "pairs-without-workers": "To label pairs one must know who said what: a column 'worker'.",
    "unequal-responses": "task, worker and label must be equally long; got {lengths}.",
    "unequal-weights": "There are {n_responses:,} responses, but {n:,} weights.",
    "bad-weight": "Weights of responses must be above 0 and finite; got {weight}.",
    "bad-weight-in-row": "{where}: the weight is {value!r}. A weight says how often a response "
    "counts: a number above 0, or nothing, which is 1.",
    "no-triples": "There are no responses. Pass at least one (task, worker, label).",
    "no-triple": "Each row must be (task, worker, label); row {row:,} is {value!r}.",
    "no-id-in-row": lambda places, **fields: say(
        "{n:count row} {n:verb have} no {role} id ({shown}). Fill in the {role} or remove the row.",
        shown="; ".join(places),
        **fields,
    ),
    "no-label": "{table} holds no label at all. Pass at least one row of task, worker, label.",
    "empty-labels": "{n:count row} {n:verb have} an empty label: no answer, not counted.",
    # repeats
    "repeats": REPEATS + "; the first is worker {worker!r} on task {task!r}.\nRemove them, or "
    "choose repeats='last' or repeats='count'.",
    "repeats-last": REPEATS + "; the last one counts.",
    "repeats-counted": REPEATS + "; each counts as one more.",
    "repeats-voted": "{n:,} responses repeat a worker on a task; the majority of a worker's runs "
    "counts once (repeats='vote'), and {n_ties:,} ties give no vote.",
    "runs-weighed": _runs_weighed,
    "confidence-weighed": "Column 'confidence' counts as far as it predicts agreement with "
    "others: weights from {low:.2f} to {high:.2f}. If it means something else, rename it.",
    "confidence-unused": "{table}: column 'confidence' {reason}; it does not count.",
    # gold
    "unequal-gold": "task and label must be equally long; got {n_tasks}, {n_labels}.",
    "no-task-in-gold": "A row has no task id ({where}). Fill it in or remove the row.",
    "empty-gold": "{n:count row of gold} {n:verb have} an empty label: not known.",
    "gold-known-twice": "Task {task!r} is known twice with different labels: {given[0][0]!r} "
    "({given[0][1]}) and {given[1][0]!r} ({given[1][1]}). Keep one of them.",
    "unknown-gold": lambda n, shown: say(
        "{n:count task} of gold {n:verb are} not among the responses: {named}.\n"
        "Correct these ids, remove the rows, or list tasks without responses with tasks=.",
        n=n,
        named="; ".join(f"{task!r} ({place})" for task, place in shown),
    ),
    "classes-of-gold": _classes_of_gold,
    # sequences
    "no-id-in-sequences": "A row of sequences has no {role} ({where}). Fill it in or remove it.",
    "task-in-two-places": "Task {task!r} is in two places of sequences: {where[0]} and {where[1]}. "
    "Keep one.",
    "two-at-one-position": "Tasks {tasks[0]!r} ({where[0]}) and {tasks[1]!r} ({where[1]}) are at "
    "one position of one sequence. Correct one of them.",
    "no-position": "A position of sequences is no number ({where}). Correct it, or leave the "
    "column out: rows are then in order.",
    # scales
    "no-scale": "scale must be a range such as '1..5' or '0..100/20', a list of levels from the "
    "lowest to the highest such as 'none,mild,severe', or 'auto'; got {given!r}.",
    "levels-twice": "A scale names each level once; got {levels}.",
    "levels-not-finite": "The levels of a scale are words, or numbers that are all finite; got "
    "{levels}.",
    "levels-fall": "A scale goes from its lowest level to its highest; got {given!r}. Turn it "
    "round.",
    "no-step": "The step of a scale must be above 0; got {given!r}.",
    "no-whole-steps": "{given!r} is no whole number of steps of {step:g}.",
    "too-many-levels": lambda n, most, cure: (
        f"A scale has at most {most} levels, this one {n:,}{_binned(cure)}."
    ),
    "too-many-numbers": lambda n, cure: (
        f"{n:,} different numbers are too many levels"
        f"{_binned(cure)}, and answers count as the nearest."
    ),
    "scale-of-words": lambda names: (
        f"Classes are words ({_shown(list(map(repr, names)))}), whose "
        "order nobody can tell: list them from the lowest to the highest, such as "
        "scale='none,mild,severe'."
    ),
    "off-scale": _off_scale,
    "between-levels": _between_levels,
    "gold-off-scale": lambda **fields: f"Gold: {_off_scale(**fields, cure=None)}",
    "gold-between-levels": "{n:count known task} {n:verb are} between two levels of the scale: "
    "each counts as the nearest.",
    "too-few-levels": lambda n, levels: (
        f"{n} levels have too few orders to tell whether they "
        f"are a scale: read as classes without order. scale='{_finest(levels)}' reads it."
    ),
    "no-order-found": _no_order,
    "looks-like-scale": "Labels look like a scale (interval alpha {interval:.2f}, alpha "
    "{alpha:.2f}): scale='auto' reads their order.",
    "scale-of-several": "Tasks with several labels have no scale: leave out multi_label or scale.",
    # labels
    "no-probabilities": "These labels carry no probability for every class.",
}
register(worded(MESSAGES))
