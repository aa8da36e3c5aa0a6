"""Check: refuse links that cannot all hold, and say why in the user's own ids."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tiebreak.data.ids import Ids
from tiebreak.errors import LinkError, note
from tiebreak.kernels.layout import Codes
from tiebreak.links.chains import ChainStep
from tiebreak.links.feasible import smallest_blame
from tiebreak.links.graph import (
    OPEN,
    Conflict,
    Implications,
    KnownGroups,
    each_once,
    places_in,
)
from tiebreak.links.table import Asker, Links, OnContradiction
from tiebreak.options import CONTRADICTIONS, require_word

SIGNS = {True: "=", False: "≠"}
SHOWN_ENDS = 4  # tasks shown at either end of a long chain
SHOWN_PLACES = 6


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


def check(
    implied: Implications,
    tasks: Ids,
    *,
    classes: Ids | None = None,
    links: Links | None = None,
    on_contradiction: OnContradiction = "error",
    may_break: bool = False,
    asker: Asker = "fit",
) -> Implications:
    """Return what follows from the links if all that hold for sure can hold; else LinkError.

    A cannot-link between tasks that must-links join is an error, or is dropped and counted.
    Cannot-links that no choice of classes satisfies, or that known labels contradict, are always
    an error. Where that is too hard to tell, links pass. Links with a weight are not looked at.

    Parameters
    ----------
    implied, tasks
        What follows from links and known labels, in the codes of these tasks: see `graph.imply`.
    classes, links
        Where the names of classes, the files and the lines in messages come from.
    may_break
        Whether the inference can break links (mean field): where contradictions are dropped,
        links that no choice of classes satisfies then pass, with known labels too.
    asker
        Who is told the way out: a fit and a session have different options.
    """
    require_word("on_contradiction", on_contradiction, CONTRADICTIONS)
    conflicts = implied.closure.conflicts
    if len(conflicts):
        if on_contradiction == "error":
            raise _Refusals(implied, tasks, classes, links, asker).contradiction()
        note("links-dropped", n=len(conflicts))
        implied = implied.without_contradictions()
    refusals = _Refusals(implied, tasks, classes, links, asker)
    must_hold = not (may_break and on_contradiction == "drop")
    if must_hold:
        refusals.refuse_too_few_classes()
    if implied.known is not None:
        refusals.refuse_known(implied.known, must_hold=must_hold)
    return implied


class _Refusals(NamedTuple):
    """What is checked, and what is needed to name it."""

    implied: Implications
    tasks: Ids
    classes: Ids | None
    links: Links | None
    asker: Asker

    def contradiction(self) -> LinkError:
        """Show the first cannot-link that must-links contradict, with the chain of these."""
        implied = self.implied
        conflicts = implied.closure.conflicts
        first = int(conflicts[implied.links.row[conflicts].argmin()])
        a, b = (int(implied.task[end[first]]) for end in (implied.links.left, implied.links.right))
        steps = implied.why(a, b, same=True)
        return self._error(
            "links-contradict",
            [*_shown_links(steps), first],
            chain=write_chain(self.tasks, steps),
            left=self.tasks[a],
            right=self.tasks[b],
            n_more=len(conflicts) - 1,
        )

    def refuse_too_few_classes(self) -> None:
        """Refuse links that known labels apart have no choice of classes."""
        implied = self.implied
        if implied.n_classes == 2:  # an odd cycle says it all
            if len(implied.odd):
                cycle = implied.why_odd()
                chain = write_chain(self.tasks, cycle)
                raise self._error("links-odd-cycle", _shown_links(cycle), chain=chain)
            return
        blame = self._without_classes()
        if not blame:
            return
        left, right = (np.isin(end, blame) for end in (implied.closure.left, implied.closure.right))
        all_differ = np.count_nonzero(left & right) == len(blame) * (len(blame) - 1) // 2
        raise self._error(
            "links-must-differ" if all_differ else "links-no-choice",
            self._links_between(blame),
            tasks=[self._representative(group) for group in blame],
            n_classes=implied.n_classes,
        )

    def refuse_known(self, known: KnownGroups, *, must_hold: bool) -> None:
        """Refuse known labels that break a link or, where all links must hold, leave no choice."""
        for conflict in known.conflicts:
            if must_hold or conflict[0] in ("must", "cannot"):
                raise self._conflict(known, conflict)
        if not must_hold or self.implied.n_classes == 2:  # then nothing else can be wrong
            return
        blame = self._without_classes(known.group_class)
        if blame:
            tasks = [self._representative(group) for group in blame]
            raise LinkError("known-leave-no-choice", tasks=tasks, asker=self.asker)

    def _without_classes(self, group_class: Codes | None = None) -> list[int]:
        """Return groups that cannot have classes together; none too where nobody knows.

        Only groups that are apart from others are looked at: the rest, usually most, may be
        anything. `group_class`, (n_groups,), holds known classes, OPEN elsewhere.
        """
        closure = self.implied.closure
        tied = each_once(np.concatenate([closure.left, closure.right]))
        allowed = np.ones((len(tied), self.implied.n_classes), dtype=bool)
        if group_class is not None:
            known = np.flatnonzero(group_class[tied] != OPEN)
            allowed[known] = np.arange(self.implied.n_classes) == group_class[tied[known], None]
        ends = places_in(tied, closure.left), places_in(tied, closure.right)
        return [int(group) for group in tied[smallest_blame(*ends, allowed)]]

    def _conflict(self, known: KnownGroups, conflict: Conflict) -> LinkError:
        """Say how known labels and links contradict each other."""
        kind, *ends = conflict
        if kind == "none":
            return self._no_class_left(known, ends[0])
        if kind != "must":  # groups, each named by its first known task
            group = self.implied.closure.group[known.task]
            ends = [int(known.task[group == end].min()) for end in ends]
        a, b = (int(self.implied.task[end]) for end in ends)
        one, other = (int(known.label[known.task == end][0]) for end in ends)
        steps = self.implied.why(a, b, same=one != other)
        return self._error(
            "known-against-links",
            _shown_links(steps),
            chain=write_chain(self.tasks, steps),
            left=self.tasks[a],
            its=self._class_name(one),
            right=self.tasks[b],
            others=self._class_name(other),
        )

    def _no_class_left(self, known: KnownGroups, group: int) -> LinkError:
        """Say which neighbours, known or implied, take every class from a group."""
        left, right = self.implied.closure.left, self.implied.closure.right
        near = np.concatenate([right[left == group], left[right == group]])
        found, at = np.unique(known.group_class[near], return_index=True)
        takers = [
            (self._representative(int(near[i])), self._class_name(int(c)))
            for c, i in zip(found, at, strict=True)
            if c != OPEN
        ]
        task = self._representative(group)
        return LinkError("known-leave-no-class", task=task, takers=takers, asker=self.asker)

    def _error(self, code: str, at: list[int], **fields: object) -> LinkError:
        """Return an error that names the files and lines of links."""
        places: list[str] = []
        if self.links is not None:
            rows = self.implied.links.row[at[:SHOWN_PLACES]]
            places = [self.links.where(int(row)) for row in rows]
        return LinkError(code, **fields, places=places, n_links=len(at), asker=self.asker)

    def _links_between(self, groups: list[int]) -> list[int]:
        """Return the places of the cannot-links between these groups, in the order given."""
        links = self.implied.links
        group = self.implied.closure.group
        inside = np.isin(group[links.left], groups) & np.isin(group[links.right], groups)
        at = np.flatnonzero(~links.must & inside)
        return [int(place) for place in at[links.row[at].argsort()]]

    def _class_name(self, code: int) -> str:
        return f"class {code}" if self.classes is None else repr(self.classes[code])

    def _representative(self, group: int) -> str:
        """Name the first task of a group."""
        place = int(np.flatnonzero(self.implied.closure.group == group)[0])
        return str(self.tasks[int(self.implied.task[place])])


def _shown_links(steps: Sequence[ChainStep]) -> list[int]:
    """Return the places of the links of a chain; of a long one, those at the ends."""
    places = [step.origin for step in steps]
    if len(places) > 2 * SHOWN_ENDS:
        return places[: SHOWN_ENDS - 1] + places[1 - SHOWN_ENDS :]
    return places
