"""The job: what is asked about, the same in every run of a session."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tiebreak import tables
from tiebreak.ask.log import Event, QuestionName, subject_of
from tiebreak.ask.results import Question, Vote, choices_for
from tiebreak.ask.spans import NONE as NO_SPAN
from tiebreak.ask.spans import SpanTasks
from tiebreak.data import MISSING, Gold, Ids, Responses
from tiebreak.errors import InputError, OptionError, note
from tiebreak.inference.door import read_and_check_inputs
from tiebreak.links import Links
from tiebreak.selection import Offer
from tiebreak.wording import counted, first_few

SHOWN = 3  # tasks and classes that describe a job


class Job:
    """Responses, and the links, known labels and texts that came with them.

    Read from whatever was handed over, and checked as a fit would: links that cannot all hold are
    refused, unless they may err. `links` are in the codes of `responses.tasks`. `key` has the text
    of each task's id in the file of a session, `class_key` that of each class. `wording` says in
    what sense tasks are the same. With `sequences` tasks are the spans that were marked.
    """

    def __init__(
        self,
        responses: Any,
        links: Any = None,
        gold: Any = None,
        *,
        texts: Any = None,
        class_texts: Any = None,
        wording: str | None = None,
        among: Any = None,
        links_may_err: bool = False,
        sequences: Any = None,
        constraints: Any = None,
    ) -> None:
        crowd = tables.read_responses(responses)
        self.spans: SpanTasks | None = None
        if sequences is not None:
            if links is not None or texts is not None:
                raise OptionError("links-of-spans")
            self.spans = SpanTasks.of(crowd, tables.read_sequences(sequences))
            crowd, texts = self.spans.responses, self.spans.texts
            class_texts = {NO_SPAN: "none of these"} if class_texts is None else class_texts
            if gold is not None:
                gold = self.spans.known(tables.read_gold(gold))
        inputs = read_and_check_inputs(
            crowd,
            links,
            gold,
            soft_links=links_may_err,
            asker="session",
            constraints=constraints,
        )
        tasks, classes = inputs.responses.tasks, inputs.responses.classes
        self.constraints = None if inputs.rules is None else inputs.rules.table
        self.responses: Responses = inputs.responses
        self.links = None if inputs.links is None else _in_codes(inputs.links, tasks)
        self.gold: Gold | None = inputs.gold
        self.wording = wording
        self.key = tuple(map(str, tasks))
        self.code = {text: code for code, text in enumerate(self.key)}
        self.class_key = tuple(map(str, classes))
        self.class_code = {text: code for code, text in enumerate(self.class_key)}
        self.marks = _marks(tuple(map(str, crowd.tasks)), crowd.classes)
        self.texts = {} if texts is None else read_texts(texts, tasks)
        self.class_texts = {} if class_texts is None else read_texts(class_texts, classes, "class")
        self.among = None if among is None else tasks_among(tasks, among)

    def name(self, key: str | None) -> Hashable:
        return self.responses.tasks[self.code[key or ""]]

    def class_name(self, key: str | None) -> Hashable:
        return self.responses.classes[self.class_code[key or ""]]

    def code_of(self, task: Hashable) -> int:
        if str(task) not in self.code:
            raise OptionError("unknown-task", task=task)
        return self.code[str(task)]

    def code_of_class(self, label: Hashable) -> int:
        if str(label) not in self.class_code:
            raise OptionError("unknown-class", label=label, classes=list(self.responses.classes))
        return self.class_code[str(label)]

    def codes(self, event: Event) -> tuple[int, int, int]:
        """Return the codes of the tasks and of the class of an answer, -1 where it has none."""
        right, label = None if event.question == "which" else event.right, event.label
        return (
            self.code[event.left or ""],
            MISSING if right is None else self.code[right],
            MISSING if label is None else self.class_code[label],
        )

    def given_labels(self) -> dict[int, int]:
        if self.gold is None:
            return {}
        gold = self.gold.on(self.responses.tasks, self.responses.classes)
        return dict(zip(gold.task.tolist(), gold.label.tolist(), strict=True))

    def keys(
        self, task: Hashable, other: Hashable | None, label: Hashable | None
    ) -> tuple[str, str | None, str | None]:
        """Return two tasks and a class as the file of a session has them."""
        right = None if other is None else self.key[self.code_of(other)]
        named = None if label is None else self.class_key[self.code_of_class(label)]
        return self.key[self.code_of(task)], right, named

    def members_key(self, members: Sequence[Hashable | None]) -> str:
        """Return the tasks of "which" as the file of a session has them."""
        return json.dumps(
            [None if each is None else self.key[self.code_of(each)] for each in members]
        )

    def question(self, offer: Offer) -> Question:
        kind = cast(QuestionName, offer.kind)
        label = offer.label if kind in ("is", "which") else None
        left, right, key = self.keys(offer.task, offer.other, label)
        members = offer.members or ()
        if kind == "which":
            right = self.members_key(members)
        return Question(
            offer.task,
            offer.other,
            float(offer.gain),
            self.texts.get(self.code_of(offer.task)),
            None if offer.other is None else self.texts.get(self.code_of(offer.other)),
            kind,
            label,
            choices_for(kind, self.responses.classes, members),
            offer.cost,
            subject=subject_of(kind, left, right, key),
            members=members,
        )

    def class_text(self, label: Hashable) -> str | None:
        return self.class_texts.get(self.code_of_class(label))

    def votes(self, task: Hashable) -> tuple[Vote, ...]:
        crowd = self.responses
        workers, labels = crowd.of(self.code_of(task))
        return tuple(
            Vote(crowd.workers[worker], crowd.classes[label])
            for worker, label in zip(workers.tolist(), labels.tolist(), strict=True)
        )

    def inputs(self) -> str:
        """Return a fingerprint of all that a fit is given beside answers."""
        crowd, links, gold = self.responses, self.links, self.gold
        rules = [] if self.constraints is None else self.constraints.records()
        parts: list[Any] = [crowd.start, crowd.code, crowd.weight]
        parts += [crowd.tasks, crowd.workers, crowd.classes, crowd.is_class_ordered]
        if links is not None:
            parts += [links.left, links.right, links.must, links.weight]
            parts += [links.who, links.sources, links.duplicate]
        if gold is not None:
            parts += [gold.tasks, gold.label, gold.classes]
        digest = hashlib.sha256()
        for part in [*parts, *rules]:
            if isinstance(part, np.ndarray):
                digest.update(f"{part.dtype.str}{part.shape}".encode())
                digest.update(np.ascontiguousarray(part).data)
            else:
                shown = list(part) if isinstance(part, Ids) else part
                digest.update(repr(shown).encode("utf-8", "replace"))
        return digest.hexdigest()


def _in_codes(links: Links, tasks: Ids) -> Links:
    """Return links in the codes of these tasks, without must-links from a task to itself.

    A fit would drop those, and report them each time.
    """
    code = tasks.codes(links.tasks)
    links = replace(links, left=code[links.left], right=code[links.right], tasks=tasks)
    return links.select(links.left != links.right)


def read_texts(source: Any, ids: Ids, of: str = "task") -> dict[int, str]:
    """Read what tasks look like, or what classes mean: a mapping of id to text, or a table.

    Returns texts by code.

    >>> read_texts({"a": "A cat.", "b": "A dog."}, Ids(["b", "a"]))
    {1: 'A cat.', 0: 'A dog.'}
    >>> read_texts({"class": ["cat"], "text": ["Any feline."]}, Ids(["cat", "dog"]), "class")
    {0: 'Any feline.'}
    """
    is_mapping = isinstance(source, Mapping)
    is_table = is_mapping and {of, "text"} <= set(source) and not isinstance(source[of], str)
    if not is_mapping or is_table:
        source = tables.read_texts(source, of=of)
    found, unknown = by_code(source, ids)
    if unknown:
        strangers = "tasks without responses" if of == "task" else "classes that nobody uses"
        note("texts-unused", names=unknown, of=strangers)
    if of == "task" and len(found) < len(ids):
        note("texts-missing", n=len(ids) - len(found), n_tasks=len(ids))
    return found


def by_code(texts: Mapping[Any, Any], ids: Ids) -> tuple[dict[int, str], list[Any]]:
    """Return texts by the codes of their ids, and the ids that are not among these."""
    codes = ids.codes(list(texts)).tolist()
    unknown = [name for name, code in zip(texts, codes, strict=True) if code == MISSING]
    pairs = zip(codes, texts.values(), strict=True)
    found = {code: str(text) for code, text in pairs if code != MISSING and text is not None}
    return found, unknown


def tasks_among(tasks: Ids, among: Any) -> tuple[Hashable, ...]:
    """Read the tasks that may be asked about: ids, or a table with a column task.

    >>> tasks_among(Ids([1, 2, 3]), ["3", "1"])
    (3, 1)
    """
    wanted = list(Ids(tables.read_tasks(among)))
    codes = tasks.codes(wanted)
    unknown = np.flatnonzero(codes == MISSING)
    if len(unknown):
        raise InputError("among-unknown", tasks=[wanted[int(at)] for at in unknown])
    return tuple(tasks.take(codes))


def _marks(key: tuple[str, ...], classes: Ids) -> dict[str, str]:
    """Return what tells this job from others: its tasks and classes, in any order."""
    tasks, labels = sorted(key), sorted(map(str, classes))
    parts = [str(len(tasks)), *tasks, *labels]
    digest = hashlib.sha256("".join(f"{len(p)}:{p}" for p in parts).encode("utf-8", "replace"))
    described = [
        f"{counted(len(values), noun)} ({first_few(values, SHOWN)})"
        for noun, values in (("task", tasks), ("class", labels))
    ]
    return {"fingerprint": digest.hexdigest(), "described": " and ".join(described)}
