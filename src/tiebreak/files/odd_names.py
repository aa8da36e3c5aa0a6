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


def check_twin_ids(responses: Responses, file: str) -> None:
    """Say which ids are one number written in two ways; of a file, refuse 1 beside the text '1'.

    Such ids come of tables that were joined: a column of whole numbers with a gap in it is
    written as 1.0, 2.0 … by many tools. Rows of Python have no file, and their ids no form but
    their own: 1 and '1' are two.
    """
    for what, names in (("task", responses.tasks), ("worker", responses.workers)):
        twins = number_twins(names)
        mixed = [pair for pair in twins if not isinstance(pair[0], str)]
        if mixed and file:
            raise ResponseError(
                f"{file}: {what} {mixed[0][0]!r} is a number in one row and the text "
                f"{mixed[0][1]!r} in another. Write all ids of {what}s as numbers, or all as text."
            )
        written = [pair for pair in twins if isinstance(pair[0], str)]
        if not written:
            continue
        first, other = written[0]
        n_more = len(written) - 1
        more = f" (and {counted(n_more, 'more pair')})" if n_more else ""
        note(
            f"{what.title()}s {first!r} and {other!r}{more} are the same number, and are different "
            f"{what}s. Write them alike if they are one."
        )
