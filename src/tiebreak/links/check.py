"""Check: refuse links that cannot all hold, and say why in the user's own ids."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tiebreak.data.ids import Ids
from tiebreak.errors import LinkError, note
from tiebreak.kernels.layout import Codes
from tiebreak.links.chains import ChainStep
from tiebreak.links.feasible import find_classes
from tiebreak.links.graph import (
    OPEN,
    Conflict,
    Implications,
    Known,
    LinkCodes,
    each_once,
    places_in,
)
from tiebreak.links.table import Asker, Links, OnContradiction
from tiebreak.options import CONTRADICTIONS, require_word
from tiebreak.wording import agreeing, counted

SIGNS = {True: "=", False: "≠"}
SHOWN_ENDS = 4  # tasks shown at either end of a long chain
SHOWN_PLACES = 6
DROP = 'drop such cannot-links with on_contradiction="drop", '  # a session has no such option
MAY_ERR = {"fit": "link_options=tb.ExactLinkOptions(error=0.02)", "session": "link_error=0.02"}


class Checked(NamedTuple):
    """The links to use, and what follows from them."""

    codes: LinkCodes
    implied: Implications


class _Given(NamedTuple):
    """What is checked, and what is needed to name it."""

    implied: Implications
    tasks: Ids
    classes: Ids | None
    links: Links | None
    asker: Asker

    @property
    def soft(self) -> str:
        """How links may contradict each other, as the asker writes it."""
        return (
            f"or allow wrong links with {MAY_ERR[self.asker]} or weights: soft links may "
            "contradict each other"
        )


def check(
    codes: LinkCodes,
    implied: Implications,
    tasks: Ids,
    *,
    classes: Ids | None = None,
    links: Links | None = None,
    on_contradiction: OnContradiction = "error",
    may_break: bool = False,
    asker: Asker = "fit",
) -> Checked:
    """Return the links if those that hold for sure can all hold, else raise LinkError.

    A cannot-link between tasks that must-links join is an error, or is dropped and counted.
    Cannot-links that no choice of classes satisfies, or that known labels contradict, are always
    an error. Where that is too hard to tell, links pass. Links with a weight are not looked at.

    Parameters
    ----------
    codes, tasks
        Links in the codes of these tasks: see `Links.on`.
    implied
        What follows from them and from known labels: see `link_graph.imply`.
    classes, links
        Where the names of classes, the files and the lines in messages come from.
    may_break
        Whether the inference can break links (mean field): where contradictions are dropped,
        links that no choice of classes satisfies then pass, with known labels too.
    asker
        Who is told the way out: a fit and a session have different options.
    """
    require_word("on_contradiction", on_contradiction, CONTRADICTIONS)
    given = _Given(implied, tasks, classes, links, asker)
    conflicts = implied.closure.conflicts
    if len(conflicts):
        if on_contradiction == "error":
            raise _contradiction(given)
        note(
            f"{counted(len(conflicts), 'cannot-link')} {agreeing(len(conflicts), 'contradict')} "
            "must-links: dropped, "
            'as on_contradiction="drop" asks.'
        )
        codes = codes.keep(~np.isin(codes.row, implied.links.row[conflicts]))
        given = given._replace(implied=implied.without_contradictions())
    must_hold = not (may_break and on_contradiction == "drop")
    if must_hold:
        _refuse_too_few_classes(given)
    if implied.known is not None:
        _refuse_known(given, implied.known, must_hold=must_hold)
    return Checked(codes, given.implied)


class Names(Protocol):
    """What has a name for each task of a chain."""

    def __getitem__(self, i: int, /) -> Hashable:
        """Return the name of task i."""


def write_chain(tasks: Names, steps: Sequence[ChainStep]) -> str:
    """Write a chain of links, a = b ≠ c, with the middle of a long one left out."""
    words = [str(tasks[steps[0].start])]
    words += [f"{SIGNS[step.must]} {tasks[step.end]}" for step in steps]
    n_more = len(words) - 2 * SHOWN_ENDS
    if n_more > 1:
        words[SHOWN_ENDS:-SHOWN_ENDS] = [f"… {n_more:,} more …"]
    return " ".join(words)


def _contradiction(given: _Given) -> LinkError:
    implied = given.implied
    conflicts = implied.closure.conflicts
    first = int(conflicts[implied.links.row[conflicts].argmin()])
    a = int(implied.task[implied.links.left[first]])
    b = int(implied.task[implied.links.right[first]])
    steps = implied.why(a, b, same=True)
    n_more = len(conflicts) - 1
    others = f"{counted(n_more, 'more cannot-link')} {agreeing(n_more, 'contradict')} must-links"
    more = f" {others}." if n_more else ""
    places = _places(given, [*_shown_links(steps), first])
    drop = DROP if given.asker == "fit" else ""
    return LinkError(
        f"The links contradict each other: {write_chain(given.tasks, steps)}, "
        f"yet {given.tasks[a]} ≠ {given.tasks[b]}{places}.{more}\n"
        f"Remove one of these links, {drop}{given.soft}."
    )


def _refuse_too_few_classes(given: _Given) -> None:
    implied = given.implied
    way_out = f"\nRemove one of these links, name the classes that are missing, {given.soft}."
    if implied.n_classes == 2:  # an odd cycle says it all
        if len(implied.odd):
            cycle = implied.why_odd()
            shown = write_chain(given.tasks, cycle)
            places = _places(given, _shown_links(cycle))
            raise LinkError(
                f"With 2 classes these links cannot all hold: {shown}{places}.{way_out}"
            )
        return
    blame = _without_classes(implied)
    if blame:
        raise LinkError(_no_classes(given, blame) + way_out)


def _without_classes(implied: Implications, group_class: Codes | None = None) -> list[int]:
    """Return groups that cannot have classes together; none where there are none, or nobody knows.

    Only groups that are apart from others are looked at: the rest, usually most, may be anything.
    `group_class`, (n_groups,), holds known classes, OPEN elsewhere; None: none is known.
    """
    closure = implied.closure
    tied = each_once(np.concatenate([closure.left, closure.right]))
    allowed = np.ones((len(tied), implied.n_classes), dtype=bool)
    if group_class is not None:
        known = np.flatnonzero(group_class[tied] != OPEN)
        allowed[known] = np.arange(implied.n_classes) == group_class[tied[known], None]
    ends = places_in(tied, closure.left), places_in(tied, closure.right)
    blame = find_classes(*ends, allowed).blame
    return [] if blame is None else tied[blame].tolist()


def _no_classes(given: _Given, blame: list[int]) -> str:
    """Say which groups find no classes: too many that must all differ, or a knot."""
    closure = given.implied.closure
    n_classes = given.implied.n_classes
    shown = _representatives(given, blame)
    blamed = np.isin(closure.left, blame) & np.isin(closure.right, blame)
    places = _places(given, _links_between(given.implied, blame))
    if np.count_nonzero(blamed) == len(blame) * (len(blame) - 1) // 2:
        choice = "1 class" if n_classes == 1 else f"{n_classes:,} classes"
        return f"{shown} must all differ, but there is a choice of {choice} only{places}."
    return (
        f"No choice among {n_classes:,} classes keeps apart what is cannot-linked: {shown}{places}."
    )


def _refuse_known(given: _Given, known: Known, *, must_hold: bool) -> None:
    """Refuse known labels that break a link or, where all links must hold, leave no choice."""
    implied = given.implied
    conflicts = [each for each in known.conflicts if must_hold or each[0] in ("must", "cannot")]
    way_out = f"\nCorrect one of these known labels, remove one of these links, {given.soft}."
    if conflicts:
        raise LinkError(_known_conflict(given, known, conflicts[0]) + way_out)
    if not must_hold or implied.n_classes == 2:  # with two classes nothing else can be wrong
        return
    blame = _without_classes(implied, known.group_class)
    if blame:
        raise LinkError(
            "The known labels leave no choice of classes that keeps apart what is "
            f"cannot-linked: {_representatives(given, blame)}.{way_out}"
        )


def _known_conflict(given: _Given, known: Known, conflict: Conflict) -> str:
    """Say how known labels and links contradict each other."""
    implied = given.implied
    kind, *ends = conflict
    if kind == "none":
        return _no_class_left(given, known, ends[0])
    if kind == "must":
        place, other = ends
    else:
        place, other = (_known_place(implied, known, group) for group in ends)
    a = int(implied.task[place])
    b = int(implied.task[other])
    label = int(known.label[known.task == place][0])
    other_label = int(known.label[known.task == other][0])
    steps = implied.why(a, b, same=label != other_label)
    places = _places(given, _shown_links(steps))
    yet = f"both {given.tasks[a]} and {given.tasks[b]} are known as {_class_name(given, label)}"
    if label != other_label:
        yet = (
            f"{given.tasks[a]} is known as {_class_name(given, label)} "
            f"and {given.tasks[b]} as {_class_name(given, other_label)}"
        )
    chain = write_chain(given.tasks, steps)
    return f"The known labels contradict the links: {chain}, yet {yet}{places}."


def _no_class_left(given: _Given, known: Known, group: int) -> str:
    """Say which neighbours, known or implied, take every class from a group."""
    closure = given.implied.closure
    near = np.concatenate(
        [closure.right[closure.left == group], closure.left[closure.right == group]]
    )
    classes, at = np.unique(known.group_class[near], return_index=True)
    takers = [
        f"{_representative(given, int(near[i]))} ({_class_name(given, int(c))})"
        for c, i in zip(classes, at, strict=True)
        if c >= 0
    ]
    return (
        f"The known labels leave no class for {_representative(given, group)}: it is "
        f"cannot-linked to {_few(takers)}, whose classes are known or follow from known ones."
    )


def _known_place(implied: Implications, known: Known, group: int) -> int:
    return int(known.task[implied.closure.group[known.task] == group].min())


def _class_name(given: _Given, code: int) -> str:
    return f"class {code}" if given.classes is None else repr(given.classes[code])


def _representative(given: _Given, group: int) -> str:
    """Name the first task of a group."""
    place = int(np.flatnonzero(given.implied.closure.group == group)[0])
    return str(given.tasks[int(given.implied.task[place])])


def _representatives(given: _Given, groups: list[int]) -> str:
    """Name one task per group."""
    return _few([_representative(given, group) for group in groups])


def _few(words: list[str]) -> str:
    """Name some of many."""
    if len(words) > 2 * SHOWN_ENDS:
        return f"{', '.join(words[: 2 * SHOWN_ENDS])} and {len(words) - 2 * SHOWN_ENDS:,} more"
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _shown_links(steps: Sequence[ChainStep]) -> list[int]:
    """Return the places of the links of a chain; of a long one, those at the ends."""
    places = [step.origin for step in steps]
    if len(places) > 2 * SHOWN_ENDS:
        return places[: SHOWN_ENDS - 1] + places[1 - SHOWN_ENDS :]
    return places


def _links_between(implied: Implications, groups: list[int]) -> list[int]:
    """Return the places of the cannot-links between these groups, in the order given."""
    links = implied.links
    left = np.isin(implied.closure.group[links.left], groups)
    right = np.isin(implied.closure.group[links.right], groups)
    at = np.flatnonzero(~links.must & left & right)
    return [int(place) for place in at[links.row[at].argsort()]]


def _places(given: _Given, at: list[int]) -> str:
    """Name the files and lines of some links."""
    if given.links is None:
        return ""
    rows = given.implied.links.row[at[:SHOWN_PLACES]]
    shown = "; ".join(given.links.where(int(row)) for row in rows)
    n_more = len(at) - SHOWN_PLACES
    return f" ({shown}{f'; and {n_more:,} more' if n_more > 0 else ''})"
