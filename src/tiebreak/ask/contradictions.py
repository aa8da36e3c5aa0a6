"""Contradictions: an answer that cannot be true together with what was said before."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt

from tiebreak import link_graph
from tiebreak.ask.job import Job, in_codes
from tiebreak.ask.log import Event, Log
from tiebreak.ask.results import SIGNS, Answer, Contradiction, Said
from tiebreak.ask.walks import Step, Walks
from tiebreak.errors import LinkError
from tiebreak.gold import GoldCodes
from tiebreak.ids import Ids
from tiebreak.link_graph import LinkCodes
from tiebreak.links import Links, check, links_from_gold

Indexes = npt.NDArray[np.int64]

SHOWN_STEPS = 8  # of a long chain
Told = tuple[str, set[int]]  # why, and the ids of the answers that it rests on


def given_walks(job: Job) -> Walks:
    """Return what can be walked before any answer: hard links, and known labels as links."""
    walks = Walks(job.responses.n_classes)
    if job.links is not None:
        _add_all(walks, hard_links(job.links))
    if job.gold is not None:
        _add_all(walks, in_codes(links_from_gold(job.gold), job.responses.tasks))
    return walks


def contradiction(job: Job, walks: Walks, log: Log, event: Event) -> Contradiction | None:
    """Say why an answer cannot be true beside earlier ones, or return None.

    `walks` and `log` hold what was said before, and may hold the answer itself.
    """
    told = _against_a_chain(job, walks, event) or _too_few_classes(job, log, event)
    if told is None:
        return None
    chain, origins = told
    earlier = [log.answers[id] for id in sorted(origins) if id in log.answers and id != event.id]
    return Contradiction(event.id, chain, tuple(as_answer(job, each) for each in earlier))


def as_answer(job: Job, event: Event, found: Contradiction | None = None) -> Answer:
    """Return an event in the caller's ids."""
    left, right = job.name(event.left), job.name(event.right)
    says = cast(Said, event.kind)  # undo and keep name no tasks
    return Answer(event.id, left, right, says, event.who, event.at, found)


def _against_a_chain(job: Job, walks: Walks, event: Event) -> Told | None:
    must = event.kind == "same"
    left, right = job.code[event.left or ""], job.code[event.right or ""]
    steps = walks.chain(left, right, same=not must, without=event.id or None)
    if not steps:
        return None
    said = f"{job.name(event.left)} {SIGNS[must]} {job.name(event.right)}"
    return f"{_written(job, steps)}, yet {said}", {step.origin for step in steps}


def _too_few_classes(job: Job, log: Log, event: Event) -> Told | None:
    """Look beyond chains: with three classes, four tasks cannot all differ.

    With two classes chains say it all. What could not hold before is no fault of this answer.
    """
    if job.responses.n_classes == 2:
        return None
    before = [each for each in log.links() if each.id != event.id]
    events = [*before, event]
    why = _refused(job, _all_links(job, events))
    if why is None or _refused(job, _all_links(job, before)) is not None:
        return None
    links = _all_links(job, events)
    blamed = _blamed(job, links)
    n = len(events)  # the answers are the last of the links
    rests = np.isin(links.left[-n:], blamed) & np.isin(links.right[-n:], blamed)
    return why, {each.id for each, does in zip(events, rests, strict=True) if does}


def _refused(job: Job, links: Links) -> str | None:
    """Say why links cannot all hold, or return None."""
    codes, known = _coded(job, links)
    n_classes, classes = job.responses.n_classes, job.responses.classes
    try:
        check(codes, links.tasks, n_classes, gold=known, classes=classes)
    except LinkError as error:
        return str(error).partition("\n")[0].rstrip(".")
    return None


def _coded(job: Job, links: Links) -> tuple[LinkCodes, GoldCodes | None]:
    gold = job.gold
    known = None if gold is None else gold.on(links.tasks, job.responses.classes)
    return links.on(links.tasks), known


def _all_links(job: Job, events: list[Event]) -> Links:
    """Return all hard links, the answers last, with no more tasks than links and gold name."""
    links = job.links_of(events)
    if job.links is not None:
        links = hard_links(job.links) + links
    tasks = job.responses.tasks
    known = np.empty(0, np.int32) if job.gold is None else tasks.codes(job.gold.tasks)
    used = link_graph.each_once(np.concatenate([links.left, links.right, known])).astype(np.int32)
    left, right = (
        np.searchsorted(used, ends).astype(np.int32) for ends in (links.left, links.right)
    )
    return replace(links, left=left, right=right, tasks=Ids(tasks.take(used)), who=None)


def _blamed(job: Job, links: Links) -> Indexes:
    """Return the tasks of the groups that find no classes."""
    codes, gold = _coded(job, links)
    n_classes = job.responses.n_classes
    closure = link_graph.close(len(links.tasks), codes)
    known, stuck = None, []
    if gold is not None:
        found = link_graph.propagate(closure, gold.task, gold.label, n_classes)
        known = found.group_class
        stuck = [ends[0] for kind, *ends in found.conflicts if kind == "none"]
    if stuck:
        beside = (closure.left == stuck[0]) | (closure.right == stuck[0])
        groups = [*closure.left[beside], *closure.right[beside]]
    else:
        verdict = link_graph.feasibility(closure, n_classes, known=known, witness=False)
        groups = list(verdict.blame or ())
    return np.flatnonzero(np.isin(closure.group, groups))


def hard_links(links: Links) -> Links:
    """Return the links without weight."""
    return links if links.weight is None else links.select(np.isnan(links.weight))


def _add_all(walks: Walks, links: Links) -> None:
    ends = links.left.tolist(), links.right.tolist(), links.must.tolist()
    for left, right, must in zip(*ends, strict=True):
        walks.add(left, right, must=must)


def _written(job: Job, steps: list[Step]) -> str:
    """Write a chain, a = b ≠ c, with the middle of a long one left out."""
    tasks = job.responses.tasks
    words = [str(tasks[steps[0].start])]
    words += [f"{SIGNS[step.must]} {tasks[step.end]}" for step in steps]
    if len(words) > SHOWN_STEPS + 1:
        half = SHOWN_STEPS // 2
        n_more = len(words) - 2 * half
        words[half:-half] = [f"… {n_more:,} more …"]
    return " ".join(words)
