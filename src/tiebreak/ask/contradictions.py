"""Contradictions: an answer that cannot be true together with what was said before.

In a chain a class stands beside the tasks: a label is a must-link to its class, "no" a cannot-link,
and two classes are always apart. So "a = b = dog ≠ cat, yet a = cat" is a chain like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.ask.evidence import answered_links
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event, Log
from tiebreak.ask.results import Answer, Contradiction
from tiebreak.errors import LinkError
from tiebreak.gold import GoldCodes
from tiebreak.ids import Ids
from tiebreak.kernels.layout import Offsets
from tiebreak.link_graph import Implications, LinkCodes
from tiebreak.link_graph.chains import Chains
from tiebreak.link_graph.colouring import feasibility
from tiebreak.links import Links
from tiebreak.links.check import SIGNS, check, write_chain


class _Reason(NamedTuple):
    """Why an answer cannot be true."""

    chain: str
    origins: set[int]  # ids of the answers that it rests on


class _HardLinks(NamedTuple):
    """All links that hold for sure, answers among them, and what follows from them."""

    links: Links
    codes: LinkCodes
    implied: Implications
    events: list[Event]  # the answers that are the last of the links


class AnswerChains(Chains):
    """Chains of links, labels and classes, which grow by one answer at a time."""

    def __init__(self, job: Job) -> None:
        """Begin with what is there before any answer: hard links, known labels."""
        super().__init__(two_classes=job.responses.n_classes == 2)
        self._job = job
        self._classes: list[int] = []  # those that a label names, as nodes
        if job.links is not None:
            links = hard_links(job.links)
            columns = zip(
                links.left.tolist(), links.right.tolist(), links.must.tolist(), strict=True
            )
            for left, right, must in columns:
                self.add(left, right, must=must)
        for task, label in job.given_labels().items():
            self.add(task, self._class(label), must=True)

    def add_answer(self, event: Event) -> None:
        """Add an answer."""
        left, right, must = self.ends(event)
        self.add(left, right, must=must, origin=event.id)

    def ends(self, event: Event) -> tuple[int, int, bool]:
        """Return the two nodes that an answer joins or sets apart, and which of it."""
        left = self._job.code[event.left or ""]
        if event.is_link:
            return left, self._job.code[event.right or ""], event.kind == "same"
        return left, self._class(self._job.class_code[event.label or ""]), event.kind != "no"

    def implies_label(self, task: int) -> bool:
        """Say whether the class of a task follows from what was said."""
        return any(self.shortest(task, node, same=True) for node in self._classes)

    def implied_is(self, task: int, label: int) -> bool | None:
        """Return whether a task is of a class, if that follows from what was said."""
        node = self._job.node(label)
        return self.implied(task, node) if node in self._classes else None

    def _class(self, label: int) -> int:
        """Return the node of a class, apart from those of all others that are named."""
        node = self._job.node(label)
        if node not in self._classes:
            for other in self._classes:
                self.add(node, other, must=False)
            self._classes.append(node)
        return node


def contradiction(job: Job, chains: AnswerChains, log: Log, event: Event) -> Contradiction | None:
    """Say why an answer cannot be true together with earlier ones, or return None.

    `chains` and `log` hold what was said before, and may hold the answer itself. One more vote of a
    worker contradicts nothing.
    """
    if event.is_vote or not event.is_evidence:
        return None
    found = _against_a_chain(job, chains, event) or _too_few_classes(job, log, event)
    if found is None:
        return None
    earlier = [
        as_answer(job, log.answers[id])
        for id in sorted(found.origins)
        if id in log.answers and id != event.id
    ]
    return Contradiction(event.id, found.chain, tuple(earlier))


def as_answer(job: Job, event: Event, found: Contradiction | None = None) -> Answer:
    """Return an event in the caller's ids."""
    label = None if event.label is None else job.class_name(event.label)
    return Answer(
        event.id,
        job.name(event.left),
        None if event.right is None else job.name(event.right),
        label if event.kind == "label" else event.kind,
        event.who,
        event.at,
        found,
        event.question or "same",
        label,
    )


def _against_a_chain(job: Job, chains: AnswerChains, event: Event) -> _Reason | None:
    left, right, must = chains.ends(event)
    steps = chains.shortest(left, right, same=not must, without=event.id or None)
    if not steps:
        return None
    answer = f"{job.node_name(left)} {SIGNS[must]} {job.node_name(right)}"
    names = {node: job.node_name(node) for step in steps for node in (step.start, step.end)}
    shown = write_chain(names, steps)
    return _Reason(f"{shown}, yet {answer}", {step.origin for step in steps})


def _too_few_classes(job: Job, log: Log, event: Event) -> _Reason | None:
    """Look beyond chains: with three classes, four tasks cannot all differ.

    With two classes chains say it all. What could not hold before is not the fault of this answer.
    """
    if job.responses.n_classes == 2:
        return None
    before = [each for each in log.evidence() if each.id != event.id and not each.is_vote]
    hard = _hard(job, [*before, event])
    why = _refused(job, hard)
    if why is None or _refused(job, _hard(job, before)) is not None:
        return None
    blamed = _blamed(hard.implied)
    n = len(hard.events)
    left = hard.links.left[len(hard.links) - n :]
    right = hard.links.right[len(hard.links) - n :]
    is_blamed = np.isin(left, blamed) & np.isin(right, blamed)
    origins = {each.id for each, does in zip(hard.events, is_blamed, strict=True) if does}
    return _Reason(why, origins)


def _refused(job: Job, hard: _HardLinks) -> str | None:
    """Say why links cannot all hold, or return None."""
    try:
        check(hard.codes, hard.implied, hard.links.tasks, classes=job.responses.classes)
    except LinkError as error:
        return str(error).partition("\n")[0].rstrip(".")
    return None


def _hard(job: Job, events: Sequence[Event]) -> _HardLinks:
    """Return all hard links, the answers last, with no more tasks than links and labels name.

    A class is a task beside the others here, known to be of that class.
    """
    chained = [event for event in events if event.is_link]
    links = answered_links(job, chained, {})
    if job.links is not None:
        links = hard_links(job.links) + links
    tasks = job.responses.tasks
    known = _known(job, events)
    used = link_graph.each_once(np.concatenate([links.left, links.right, known.task]))
    used = used.astype(np.int32)
    links = replace(
        links,
        left=link_graph.places_in(used, links.left),
        right=link_graph.places_in(used, links.right),
        tasks=Ids(tasks.take(used)),
        who=None,
    )
    codes = links.on(links.tasks)
    gold = known.among(used) if len(known.task) else None
    implied = link_graph.imply(codes, job.responses.n_classes, gold=gold)
    return _HardLinks(links, codes, implied, chained)


def _known(job: Job, events: Sequence[Event]) -> GoldCodes:
    """Return the labels that were given, before and in answers; the first of each task."""
    label = job.given_labels()
    for event in events:
        if event.kind in ("label", "yes"):
            label.setdefault(job.code[event.left or ""], job.class_code[event.label or ""])
    task = np.array(sorted(label), dtype=np.int32)
    return GoldCodes(task, np.array([label[each] for each in sorted(label)], dtype=np.int32))


def _blamed(implied: Implications) -> Offsets:
    """Return the tasks of the groups that find no classes."""
    closure = implied.closure
    known = implied.known
    conflicts = [] if known is None else known.conflicts
    stuck = [ends[0] for kind, *ends in conflicts if kind == "none"]
    if stuck:
        near = (closure.left == stuck[0]) | (closure.right == stuck[0])
        groups = [*closure.left[near], *closure.right[near]]
    else:
        verdict = feasibility(closure, implied.n_classes, known=implied.group_class, witness=False)
        groups = list(verdict.blame or ())
    return np.asarray(implied.task[np.isin(closure.group, groups)])


def hard_links(links: Links) -> Links:
    """Return the links without weight."""
    return links if links.weight is None else links.select(np.isnan(links.weight))
