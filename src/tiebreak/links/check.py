"""Check: refuse links that cannot all hold, and say why in the user's own ids."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak import link_graph
from tiebreak.errors import LinkError, OptionError, note
from tiebreak.gold import GoldCodes
from tiebreak.ids import Ids
from tiebreak.link_graph import Closure, LinkCodes
from tiebreak.links.table import Links

OnContradiction = Literal["error", "drop"]
CONTRADICTIONS: tuple[OnContradiction, ...] = ("error", "drop")

SHOWN_ENDS = 4  # tasks shown at either end of a long chain
SHOWN_PLACES = 6
SOFT = "or allow wrong links with link_error=0.02 or weights: soft links may contradict each other"


class _Given(NamedTuple):
    """What is checked: links in the codes of linked tasks, and what is needed to speak of them."""

    codes: LinkCodes
    tasks: Ids
    n_classes: int
    classes: Ids | None
    links: Links | None


def check(
    codes: LinkCodes,
    tasks: Ids,
    n_classes: int,
    *,
    gold: GoldCodes | None = None,
    classes: Ids | None = None,
    links: Links | None = None,
    on_contradiction: OnContradiction = "error",
    may_break: bool = False,
) -> LinkCodes:
    """Return the links if those without weight can all hold, else raise LinkError.

    A cannot-link between tasks that must-links join is an error, or is dropped and counted.
    Cannot-links that no choice of classes satisfies, or that known labels contradict, are always
    an error. Where that is too hard to tell, links pass. Links with a weight are not looked at.

    Parameters
    ----------
    codes, tasks
        Links in the codes of these tasks: see `Links.on`.
    gold
        Known labels in the same codes.
    classes, links
        Where the names of classes, the files and the lines in messages come from.
    may_break
        Whether the inference can break links (mean field): where contradictions are dropped,
        links that no choice of classes satisfies then pass, with known labels too.
    """
    if on_contradiction not in CONTRADICTIONS:
        raise OptionError.unknown("on_contradiction", on_contradiction, CONTRADICTIONS)
    if not codes.is_hard.any():
        return codes
    linked = codes.tasks()  # of many tasks, usually few
    given = _Given(codes.among(linked), Ids(tasks.take(linked)), n_classes, classes, links)
    closure = link_graph.close(len(linked), given.codes)
    if len(closure.conflicts):
        if on_contradiction == "error":
            raise _contradiction(given, closure)
        note(
            f"{len(closure.conflicts):,} cannot-links contradict must-links: dropped, "
            'as on_contradiction="drop" asks.'
        )
        kept = np.delete(np.arange(codes.n_links), closure.conflicts)
        codes, given = codes.keep(kept), given._replace(codes=given.codes.keep(kept))
    must_hold = not (may_break and on_contradiction == "drop")
    if must_hold:
        _refuse_too_few_classes(given, closure)
    if gold is not None:
        _refuse_known(given, closure, gold.among(linked), must_hold=must_hold)
    return codes


def _contradiction(given: _Given, closure: Closure) -> LinkError:
    codes = given.codes
    first = int(closure.conflicts[codes.row[closure.conflicts].argmin()])
    a, b = int(codes.left[first]), int(codes.right[first])
    chain = link_graph.why_equal(len(given.tasks), codes, a, b)
    n_more = len(closure.conflicts) - 1
    more = f" {n_more:,} more cannot-links contradict must-links." if n_more else ""
    places = _places(given, [*_links_of(codes, chain, codes.must), first])
    return LinkError(
        f"The links contradict each other: {_chain(given, chain, codes.must)}, "
        f"yet {given.tasks[a]} ≠ {given.tasks[b]}{places}.{more}\n"
        f'Remove one of these links, drop such cannot-links with on_contradiction="drop", {SOFT}.'
    )


def _refuse_too_few_classes(given: _Given, closure: Closure) -> None:
    found = link_graph.feasibility(closure, given.n_classes, witness=False)
    if found.blame is None:
        return
    way_out = f"\nRemove one of these links, name the classes that are missing, {SOFT}."
    if given.n_classes == 2:
        start = int(link_graph.first_members(closure.group, closure.n_groups)[found.blame[0]])
        cycle = link_graph.odd_cycle(len(given.tasks), given.codes, start)
        round_trip = [*cycle, cycle[0]]
        every = np.ones(given.codes.n_links, dtype=bool)
        places = _places(given, _links_of(given.codes, round_trip, every))
        shown = _chain(given, round_trip, every)
        raise LinkError(f"With 2 classes these links cannot all hold: {shown}{places}.{way_out}")
    raise LinkError(_no_classes(given, closure, found.blame) + way_out)


def _no_classes(given: _Given, closure: Closure, blame: list[int]) -> str:
    """Say which groups find no classes: too many that must all differ, or a knot."""
    n_classes = given.n_classes
    shown = _representatives(given, closure, blame)
    blamed = np.isin(closure.left, blame) & np.isin(closure.right, blame)
    places = _places(given, _links_between(given.codes, closure, blame))
    if np.count_nonzero(blamed) == len(blame) * (len(blame) - 1) // 2:
        choice = "1 class" if n_classes == 1 else f"{n_classes:,} classes"
        return f"{shown} must all differ, but there is a choice of {choice} only{places}."
    return (
        f"No choice among {n_classes:,} classes keeps apart what is cannot-linked: {shown}{places}."
    )


def _refuse_known(given: _Given, closure: Closure, gold: GoldCodes, *, must_hold: bool) -> None:
    """Refuse known labels that break a link or, where all links must hold, leave no choice."""
    known = link_graph.propagate(closure, gold.task, gold.label, given.n_classes)
    conflicts = [each for each in known.conflicts if must_hold or each[0] in ("must", "cannot")]
    way_out = "\nCorrect one of these known labels, remove one of these links, " + SOFT + "."
    if conflicts:
        kind, *ends = conflicts[0]
        if kind == "none":
            raise LinkError(_no_class_left(given, closure, known.group_class, ends[0]) + way_out)
        a, b = ends if kind == "must" else (_known_task(closure, gold, end) for end in ends)
        chain, usable = _known_chain(given, closure, kind, a, b)
        places = _places(given, _links_of(given.codes, chain, usable))
        raise LinkError(
            f"The known labels contradict the links: {_chain(given, chain, usable)}, "
            f"yet {_known_as(given, gold, a, b)}{places}.{way_out}"
        )
    if not must_hold:
        return
    found = link_graph.feasibility(closure, given.n_classes, known=known.group_class, witness=False)
    if found.blame is not None:
        shown = _representatives(given, closure, found.blame)
        raise LinkError(
            f"The known labels leave no choice of classes that keeps apart what is "
            f"cannot-linked: {shown}.{way_out}"
        )


def _known_chain(
    given: _Given, closure: Closure, kind: str, a: int, b: int
) -> tuple[list[int], npt.NDArray[np.bool_]]:
    """Return the chain between two known tasks that does not fit their classes, and its links."""
    codes, n_tasks = given.codes, len(given.tasks)
    hard = codes.is_hard
    if kind == "must":
        return link_graph.why_equal(n_tasks, codes, a, b), hard & codes.must
    if kind == "chain":  # with two classes every way from a to b says the same
        chain = link_graph.shortest_chain(n_tasks, codes.left[hard], codes.right[hard], a, b)
        return chain, hard
    apart = _links_between(codes, closure, [int(closure.group[a]), int(closure.group[b])])[0]
    ends = int(codes.left[apart]), int(codes.right[apart])
    near, far = ends if closure.group[ends[0]] == closure.group[a] else ends[::-1]
    before = link_graph.why_equal(n_tasks, codes, a, near)
    return before + link_graph.why_equal(n_tasks, codes, far, b), hard


def _known_as(given: _Given, gold: GoldCodes, a: int, b: int) -> str:
    one, other = (_class_name(given, int(gold.label[gold.task == task][0])) for task in (a, b))
    if one == other:
        return f"both {given.tasks[a]} and {given.tasks[b]} are known as {one}"
    return f"{given.tasks[a]} is known as {one} and {given.tasks[b]} as {other}"


def _no_class_left(
    given: _Given, closure: Closure, group_class: npt.NDArray[np.int32], group: int
) -> str:
    """Say which neighbours, known or implied, take every class from a group."""
    first = link_graph.first_members(closure.group, closure.n_groups)
    beside = np.concatenate(
        [closure.right[closure.left == group], closure.left[closure.right == group]]
    )
    classes, at = np.unique(group_class[beside], return_index=True)
    takers = [
        f"{given.tasks[int(first[beside[i]])]} ({_class_name(given, int(c))})"
        for c, i in zip(classes, at, strict=True)
        if c >= 0
    ]
    return (
        f"The known labels leave no class for {given.tasks[int(first[group])]}: it is "
        f"cannot-linked to {_few(takers)}, whose classes are known or follow from known ones."
    )


def _known_task(closure: Closure, gold: GoldCodes, group: int) -> int:
    return int(gold.task[closure.group[gold.task] == group].min())


def _class_name(given: _Given, code: int) -> str:
    return f"class {code}" if given.classes is None else repr(given.classes[code])


def _representatives(given: _Given, closure: Closure, groups: list[int]) -> str:
    """Name one task per group."""
    first = link_graph.first_members(closure.group, closure.n_groups)
    return _few([str(given.tasks[int(first[group])]) for group in groups])


def _few(words: list[str]) -> str:
    """Name some of many."""
    if len(words) > 2 * SHOWN_ENDS:
        return f"{', '.join(words[: 2 * SHOWN_ENDS])} and {len(words) - 2 * SHOWN_ENDS:,} more"
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _chain(given: _Given, chain: list[int], usable: npt.NDArray[np.bool_]) -> str:
    """Write a chain of links: a = b ≠ c, with the middle of a long one left out."""
    if len(chain) > 2 * SHOWN_ENDS + 1:
        head, tail = chain[:SHOWN_ENDS], chain[-SHOWN_ENDS:]
        n_more = len(chain) - 2 * SHOWN_ENDS
        return f"{_chain(given, head, usable)} … {n_more:,} more … {_chain(given, tail, usable)}"
    words = str(given.tasks[chain[0]])
    for at, task in zip(_links_of(given.codes, chain, usable), chain[1:], strict=True):
        words += f" {'=' if given.codes.must[at] else '≠'} {given.tasks[task]}"
    return words


def _links_of(codes: LinkCodes, chain: list[int], usable: npt.NDArray[np.bool_]) -> list[int]:
    """Return the place of the link between each two tasks of a chain; long ones at the ends."""
    steps = list(pairwise(chain))
    if len(steps) > 2 * SHOWN_ENDS:
        steps = steps[: SHOWN_ENDS - 1] + steps[1 - SHOWN_ENDS :]
    usable = usable & codes.is_hard
    return [
        int(np.flatnonzero(usable & (codes.left == min(step)) & (codes.right == max(step)))[0])
        for step in steps
    ]


def _links_between(codes: LinkCodes, closure: Closure, groups: list[int]) -> list[int]:
    """Return the places of the cannot-links between these groups, in the order given."""
    a, b = closure.group[codes.left], closure.group[codes.right]
    apart = codes.is_hard & ~codes.must & np.isin(a, groups) & np.isin(b, groups)
    at = np.flatnonzero(apart)
    return [int(place) for place in at[codes.row[at].argsort()]]


def _places(given: _Given, at: list[int]) -> str:
    """Name the files and lines of some links."""
    if given.links is None:
        return ""
    rows = given.codes.row[at[:SHOWN_PLACES]]
    shown = "; ".join(given.links.where(int(row)) for row in rows)
    n_more = len(at) - SHOWN_PLACES
    return f" ({shown}{f'; and {n_more:,} more' if n_more > 0 else ''})"
