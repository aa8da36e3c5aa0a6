"""Contradictions: an answer that cannot be true together with what was said before.

In a chain a class stands beside the tasks: a label is a must-link to its class, "no" a cannot-link,
and two classes are always apart. So "a = b = dog ≠ cat, yet a = cat" is a chain like any other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tiebreak.ask.evidence import answered_links
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event, Log, spelled_out
from tiebreak.ask.results import NONE, Answer, Contradiction, Question
from tiebreak.data.gold import GoldCodes
from tiebreak.errors import LinkError
from tiebreak.links import Links
from tiebreak.links import graph as link_graph
from tiebreak.links.chains import Chains
from tiebreak.links.check import SIGNS, check, write_chain

MOST_BLAMED = 100  # answers among which those are searched that leave too few classes


class AnswerChains(Chains):
    """Chains of links, labels and classes, which grow by one answer at a time."""

    def __init__(self, job: Job) -> None:
        """Begin with what is there before any answer: hard links, known labels."""
        super().__init__(two_classes=job.responses.n_classes == 2)
        self._job = job
        self._classes: list[int] = []  # those that a label names, as nodes
        if job.links is not None:
            hard = _hard_links(job.links)
            for left, right, must in zip(hard.left, hard.right, hard.must.tolist(), strict=True):
                self.add(int(left), int(right), must=must)
        for task, label in job.given_labels().items():
            self.add(task, self._class(label), must=True)

    def add_answer(self, event: Event) -> None:
        """Add what an answer says of classes; one more vote of a worker says nothing for sure."""
        for each in spelled_out([event]):
            if each.is_evidence and not each.is_vote:
                left, right, must = self.ends(each)
                self.add(left, right, must=must, origin=each.id)

    def ends(self, event: Event) -> tuple[int, int, bool]:
        """Return the two nodes of an answer, and whether it joins them or sets them apart."""
        left, right, label = self._job.codes(event)
        if event.is_link:
            return left, right, event.kind == "same"
        return left, self._class(label), event.kind != "no"

    def settle(self, question: Question) -> bool:
        """Return whether links and answers settle a question already."""
        job = self._job
        left = job.code_of(question.left)
        if question.kind == "same":
            return self.implied(left, job.code_of(question.right)) is not None
        if question.kind in ("is", "which"):
            node = job.responses.n_tasks + job.code_of_class(question.label)
            tasks = map(job.code_of, question.tasks)
            return node in self._classes and all(
                self.implied(task, node) is not None for task in tasks
            )
        return any(self.shortest(left, node, same=True) for node in self._classes)

    def against(self, event: Event) -> tuple[str, set[int]] | None:
        """Return the chain that speaks against an answer, in words, and the answers in it."""
        for each in spelled_out([event]):
            left, right, must = self.ends(each)
            steps = self.shortest(left, right, same=not must, without=each.id or None)
            if steps:
                names = {
                    node: self._name(node) for step in steps for node in (step.start, step.end)
                }
                answer = f"{self._name(left)} {SIGNS[must]} {self._name(right)}"
                return f"{write_chain(names, steps)}, yet {answer}", {s.origin for s in steps}
        return None

    def _class(self, label: int) -> int:
        """Return the node of a class, apart from those of all others that are named."""
        node = self._job.responses.n_tasks + label
        if node not in self._classes:
            for other in self._classes:
                self.add(node, other, must=False)
            self._classes.append(node)
        return node

    def _name(self, node: int) -> str:
        crowd = self._job.responses
        is_task = node < crowd.n_tasks
        return str(crowd.tasks[node] if is_task else crowd.classes[node - crowd.n_tasks])


def contradiction(job: Job, chains: AnswerChains, log: Log, event: Event) -> Contradiction | None:
    """Return why an answer cannot be true together with earlier ones, or None.

    `chains` and `log` hold what was said before, and may hold the answer itself. One more vote of a
    worker contradicts nothing.
    """
    if event.is_vote or not event.is_evidence:
        return None
    found = chains.against(event) or _too_few_classes(job, log, event)
    if found is None:
        return None
    why, origins = found
    said = [log.answers[id] for id in sorted(origins - {event.id}) if id in log.answers]
    return Contradiction(event.id, why, tuple(as_answer(job, each) for each in said))


def as_answer(job: Job, event: Event, found: Contradiction | None = None) -> Answer:
    label = None if event.label is None else job.class_name(event.label)
    says: Hashable = label if event.kind == "label" else event.kind
    if event.kind in ("which", "none"):
        says = job.name(event.left) if event.kind == "which" else NONE
    is_pair = event.right is not None and event.question != "which"
    return Answer(
        event.id,
        job.name(event.left),
        job.name(event.right) if is_pair else None,
        says,
        event.who,
        event.at,
        found,
        event.question or "same",
        label,
    )


def _too_few_classes(job: Job, log: Log, event: Event) -> tuple[str, set[int]] | None:
    """Look beyond chains: with three classes, four tasks cannot all differ.

    With two classes chains say it all. Only answers about tasks that links join to those of this
    one matter; what could not hold before is not its fault. To blame are answers of which none can
    be left out.
    """
    if job.responses.n_classes == 2:
        return None
    task = job.codes(event)[0]
    before = [each for each in log.evidence() if each.id != event.id and not each.is_vote]
    links = _links(job, [*before, event])
    if task not in links.left and task not in links.right:
        return None
    group = link_graph.components(job.responses.n_tasks, links.left, links.right)
    near = [each for each in before if group[job.codes(each)[0]] == group[task]]
    why = _refusal(job, [*near, event])
    if why is None or _refusal(job, near) is not None:
        return None
    blamed = near
    for each in near if len(near) <= MOST_BLAMED else ():
        rest = [other for other in blamed if other is not each]
        if _refusal(job, [*rest, event]) is not None:
            blamed = rest
    return why, {each.id for each in blamed}


def _refusal(job: Job, events: Sequence[Event]) -> str | None:
    """Say why hard links, known labels and answers cannot all hold, or return None.

    Only tasks that links and labels name take part.
    """
    links = _links(job, events)
    label = job.given_labels()
    for event in spelled_out(events):
        if event.kind in ("label", "yes"):
            task, _, said = job.codes(event)
            label.setdefault(task, said)
    tasks = np.array(sorted(label), dtype=np.int32)
    known = GoldCodes(tasks, np.array([label[each] for each in tasks.tolist()], dtype=np.int32))
    codes = link_graph.distinct(links.left, links.right, links.must, None, None)
    crowd = job.responses
    implied = link_graph.imply(codes, crowd.n_classes, gold=known if len(tasks) else None)
    try:
        check(implied, crowd.tasks, classes=crowd.classes)
    except LinkError as error:
        return str(error).partition("\n")[0].rstrip(".")
    return None


def _links(job: Job, events: Sequence[Event]) -> Links:
    answered = answered_links(job, [event for event in events if event.is_link], {})
    return answered if job.links is None else _hard_links(job.links) + answered


def _hard_links(links: Links) -> Links:
    return links if links.weight is None else links.select(np.isnan(links.weight))
