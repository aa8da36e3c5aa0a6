"""Odd names: ids and classes that are likely not what the caller means, told or refused."""

from __future__ import annotations

from tiebreak.errors import ResponseError, note
from tiebreak.ids import difference, number_twins, variants
from tiebreak.responses import Responses
from tiebreak.wording import counted

NOTHING = frozenset({"na", "n/a", "nan", "null", "none", "nil", "#n/a"})
MANY_CLASSES = 50
FEW_TASKS = 10  # below, as many classes as tasks say nothing
SHOWN = 5  # groups of labels that differ in their form only


def note_odd_classes(responses: Responses) -> None:
    """Say what is odd about the classes of responses."""
    classes = responses.classes
    n_classes = len(classes)
    if n_classes > MANY_CLASSES or (n_classes >= responses.n_tasks >= FEW_TASKS):
        note(
            f"There are {n_classes:,} classes for {responses.n_tasks:,} tasks: is this the label "
            "column? Text answers must be grouped into classes first."
        )
    if n_classes > MANY_CLASSES * MANY_CLASSES:
        return  # not labels at all: looking at each is of no use
    for group in variants(classes)[:SHOWN]:
        note(
            f"Labels {', '.join(map(repr, group))} {difference(group)}, "
            "and are different classes. Write them alike, or join them with --fold-labels "
            "(responses.with_folded_labels())."
        )
    empty = [name for name in classes if isinstance(name, str) and name.casefold() in NOTHING]
    for name in empty:
        note(
            f"The label {name!r} is read as a class of its own. If it means no answer, leave the "
            "field empty."
        )


def check_twin_ids(responses: Responses) -> None:
    """Say which ids are one number written in two ways; refuse 1 beside the text '1'.

    Such ids come of tables that were joined: a column of whole numbers with a gap in it is
    written as 1.0, 2.0 … by many tools.
    """
    for what, names in (("Task", responses.tasks), ("Worker", responses.workers)):
        twins = number_twins(names)
        if not twins:
            continue
        first, other = twins[0]
        if not isinstance(first, str):
            raise ResponseError(
                f"{what} {first!r} is a number in one row and the text {other!r} in another. "
                f"Write all ids of {what.lower()}s as numbers, or all as text."
            )
        n_more = len(twins) - 1
        more = f" (and {counted(n_more, 'more pair')})" if n_more else ""
        note(
            f"{what}s {first!r} and {other!r}{more} are the same number, and are different "
            f"{what.lower()}s. Write them alike if they are one."
        )
