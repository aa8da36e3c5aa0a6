"""Contradictions: an answer that cannot be true together with what was said before."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from tiebreak import link_graph
from tiebreak.ask.job import Job, in_codes
from tiebreak.ask.log import Event, Log
from tiebreak.ask.results import Answer, Contradiction, Said
from tiebreak.errors import LinkError
from tiebreak.ids import Ids
from tiebreak.kernels.layout import Offsets
from tiebreak.link_graph import Chains, Implications, LinkCodes
from tiebreak.links import SIGNS, Links, check, links_from_gold, write_chain


class _Reason(NamedTuple):
    """Why an answer cannot be true."""

    chain: str
    origins: set[int]  # ids of the answers that it rests on


class _HardLinks(NamedTuple):
    """All links that hold for sure, answers among them, and what follows from them."""

    links: Links
    codes: LinkCodes
    implied: Implications


def given_chains(job: Job) -> Chains:
    """Return the chains that are there before any answer: hard links, known labels as links."""
    chains = Chains(two_classes=job.responses.n_classes == 2)
    if job.links is not None:
        _add_all(chains, hard_links(job.links))
    if job.gold is not None:
        _add_all(chains, in_codes(links_from_gold(job.gold), job.responses.tasks))
    return chains


def contradiction(job: Job, chains: Chains, log: Log, event: Event) -> Contradiction | None:
    """Say why an answer cannot be true together with earlier ones, or return None.

    `chains` and `log` hold what was said before, and may hold the answer itself.
    """
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
    says = cast(Said, event.kind)  # undo and keep name no tasks
    return Answer(
        event.id, job.name(event.left), job.name(event.right), says, event.who, event.at, found
    )


def _against_a_chain(job: Job, chains: Chains, event: Event) -> _Reason | None:
    must = event.kind == "same"
    left = job.code[event.left or ""]
    right = job.code[event.right or ""]
    steps = chains.shortest(left, right, same=not must, without=event.id or None)
    if not steps:
        return None
    tasks = job.responses.tasks
    answer = f"{tasks[left]} {SIGNS[must]} {tasks[right]}"
    return _Reason(f"{write_chain(tasks, steps)}, yet {answer}", {step.origin for step in steps})


def _too_few_classes(job: Job, log: Log, event: Event) -> _Reason | None:
    """Look beyond chains: with three classes, four tasks cannot all differ.

    With two classes chains say it all. What could not hold before is not the fault of this answer.
    """
    if job.responses.n_classes == 2:
        return None
    before = [each for each in log.links() if each.id != event.id]
    events = [*before, event]
    hard = _hard(job, events)
    why = _refused(job, hard)
    if why is None or _refused(job, _hard(job, before)) is not None:
        return None
    blamed = _blamed(hard.implied)
    n = len(events)  # the answers are the last of the links
    is_blamed = np.isin(hard.links.left[-n:], blamed) & np.isin(hard.links.right[-n:], blamed)
    return _Reason(why, {each.id for each, does in zip(events, is_blamed, strict=True) if does})


def _refused(job: Job, hard: _HardLinks) -> str | None:
    """Say why links cannot all hold, or return None."""
    try:
        check(hard.codes, hard.implied, hard.links.tasks, classes=job.responses.classes)
    except LinkError as error:
        return str(error).partition("\n")[0].rstrip(".")
    return None


def _hard(job: Job, events: list[Event]) -> _HardLinks:
    """Return all hard links, the answers last, with no more tasks than links and gold name."""
    links = job.links_of(events)
    if job.links is not None:
        links = hard_links(job.links) + links
    tasks = job.responses.tasks
    known = np.empty(0, np.int32) if job.gold is None else tasks.codes(job.gold.tasks)
    used = link_graph.each_once(np.concatenate([links.left, links.right, known])).astype(np.int32)
    links = replace(
        links,
        left=link_graph.places_in(used, links.left),
        right=link_graph.places_in(used, links.right),
        tasks=Ids(tasks.take(used)),
        who=None,
    )
    codes = links.on(links.tasks)
    gold = None if job.gold is None else job.gold.on(links.tasks, job.responses.classes)
    return _HardLinks(links, codes, link_graph.imply(codes, job.responses.n_classes, gold=gold))


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
        verdict = link_graph.feasibility(
            closure, implied.n_classes, known=implied.group_class, witness=False
        )
        groups = list(verdict.blame or ())
    return np.asarray(implied.task[np.isin(closure.group, groups)])


def hard_links(links: Links) -> Links:
    """Return the links without weight."""
    return links if links.weight is None else links.select(np.isnan(links.weight))


def _add_all(chains: Chains, links: Links) -> None:
    columns = zip(links.left.tolist(), links.right.tolist(), links.must.tolist(), strict=True)
    for left, right, must in columns:
        chains.add(left, right, must=must)
