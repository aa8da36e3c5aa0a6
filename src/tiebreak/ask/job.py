"""The job: what is asked about, the same in every run of a session."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tiebreak import tables
from tiebreak.ask.log import Subject, subject_of
from tiebreak.ask.results import Vote
from tiebreak.ask.storage import Marks
from tiebreak.errors import InputError, OptionError, note
from tiebreak.gold import Gold
from tiebreak.ids import MISSING, Ids
from tiebreak.inference.inputs import read_and_check_inputs
from tiebreak.links import Links
from tiebreak.responses import Responses
from tiebreak.wording import agreeing, counted, first_few

SHOWN = 3  # tasks and classes named in a message


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Responses, and the links, known labels and texts that came with them.

    `links` are in the codes of `responses.tasks`. `key` has the text of each task's id in the
    file of a session, `class_key` that of each class. `wording` says in what sense tasks are the
    same.
    """

    responses: Responses
    links: Links | None
    gold: Gold | None
    texts: Mapping[int, str]
    among: tuple[Hashable, ...] | None
    marks: Marks
    key: tuple[str, ...] = field(repr=False)
    code: Mapping[str, int] = field(repr=False)
    class_key: tuple[str, ...] = field(repr=False)
    class_code: Mapping[str, int] = field(repr=False)
    class_texts: Mapping[int, str] = field(repr=False)
    wording: str | None = None

    def name(self, key: str | None) -> Hashable:
        """Return the caller's id of a task."""
        return self.responses.tasks[self.code[key or ""]]

    def code_of(self, task: Hashable) -> int:
        """Return the code of a task; refuse one that the responses do not have."""
        code = int(self.responses.tasks.codes([task])[0])
        if code == MISSING:
            raise OptionError(f"There is no task {task!r} among the responses.")
        return code

    def key_of(self, task: Hashable) -> str:
        """Return the text of a task's id in the file of a session."""
        return self.key[self.code_of(task)]

    def class_name(self, key: str | None) -> Hashable:
        """Return the caller's name of a class."""
        return self.responses.classes[self.class_code[key or ""]]

    def code_of_class(self, label: Hashable) -> int:
        """Return the code of a class; refuse one that the job does not have."""
        code = int(self.responses.classes.codes([label])[0])
        if code == MISSING:
            names = first_few([repr(name) for name in self.responses.classes], 10)
            raise OptionError(f"There is no class {label!r}; the classes are {names}.")
        return code

    def given_labels(self) -> dict[int, int]:
        """Return the class of each task whose label was given from the start, in codes."""
        if self.gold is None:
            return {}
        gold = self.gold.on(self.responses.tasks, self.responses.classes)
        return dict(zip(gold.task.tolist(), gold.label.tolist(), strict=True))

    def subject(
        self, kind: str, task: Hashable, other: Hashable | None, label: Hashable | None
    ) -> Subject:
        """Return what a question is about, as the file of a session has it."""
        right = None if other is None else self.key_of(other)
        named = self.class_key[self.code_of_class(label)] if kind == "is" else None
        return subject_of(kind, self.key_of(task), right, named)

    def class_text(self, label: Hashable) -> str | None:
        """Return what a class means, if that is said."""
        return self.class_texts.get(self.code_of_class(label))

    def node(self, label_code: int) -> int:
        """Return the number of a class among tasks, as a chain of links has it."""
        return self.responses.n_tasks + label_code

    def node_name(self, node: int) -> str:
        """Return the name of a task or a class in a chain."""
        n_tasks = self.responses.n_tasks
        if node < n_tasks:
            return str(self.responses.tasks[node])
        return str(self.responses.classes[node - n_tasks])

    def text(self, task: Hashable) -> str | None:
        """Return the text of a task, if there is one."""
        return self.texts.get(self.code_of(task))

    def votes(self, task: Hashable) -> tuple[Vote, ...]:
        """Return who gave which label to a task."""
        crowd = self.responses
        workers, labels = crowd.of(self.code_of(task))
        return tuple(
            Vote(crowd.workers[worker], crowd.classes[label])
            for worker, label in zip(workers.tolist(), labels.tolist(), strict=True)
        )


def take_job(
    responses: Any,
    links: Any = None,
    gold: Any = None,
    texts: Any = None,
    among: Any = None,
    *,
    links_may_err: bool = False,
    class_texts: Any = None,
    wording: str | None = None,
) -> Job:
    """Read whatever was handed over, and check it as a fit would.

    Links that cannot all hold are refused, unless they may err.
    """
    crowd = tables.read_responses(responses)
    inputs = read_and_check_inputs(crowd, links, gold, soft_links=links_may_err, asker="session")
    tasks = crowd.tasks
    key = _keys(tasks)
    class_key = _keys(inputs.responses.classes)
    return Job(
        inputs.responses,
        None if inputs.links is None else _without_loops(in_codes(inputs.links, tasks)),
        inputs.gold,
        {} if texts is None else read_texts(texts, tasks),
        None if among is None else tasks_among(tasks, among),
        _marks(key, crowd.classes),
        key,
        {text: code for code, text in enumerate(key)},
        class_key,
        {text: code for code, text in enumerate(class_key)},
        {} if class_texts is None else read_class_texts(class_texts, inputs.responses.classes),
        wording,
    )


def in_codes(links: Links, tasks: Ids) -> Links:
    """Return links in the codes of these tasks."""
    code = tasks.codes(links.tasks)
    return replace(links, left=code[links.left], right=code[links.right], tasks=tasks)


def _without_loops(links: Links) -> Links:
    """Leave out must-links from a task to itself, which a fit would drop and report each time."""
    return links.select(links.left != links.right)


def read_texts(source: Any, tasks: Ids) -> dict[int, str]:
    """Read what tasks look like: a mapping of task to text, or a table of task, text.

    Returns texts by code of task.

    >>> read_texts({"a": "A cat.", "b": "A dog."}, Ids(["b", "a"]))
    {1: 'A cat.', 0: 'A dog.'}
    """
    is_mapping = isinstance(source, Mapping) and not _is_columns(source)
    found, unknown = by_code(source if is_mapping else tables.read_texts(source), tasks)
    if unknown:
        shown = ", ".join(map(repr, unknown[:SHOWN]))
        texts_of = f"{counted(len(unknown), 'text')} of tasks without responses"
        note(f"{texts_of} ({shown}): not used.")
    n_without = len(tasks) - len(found)
    if n_without:
        note(f"{counted(n_without, 'task')} of {len(tasks):,} have no text: their ids are shown.")
    return found


def read_class_texts(source: Any, classes: Ids) -> dict[int, str]:
    """Read what classes mean: a mapping of class to text, or a table of class, text.

    >>> read_class_texts({"cat": "Any feline."}, Ids(["cat", "dog"]))
    {0: 'Any feline.'}
    """
    is_mapping = isinstance(source, Mapping) and not {"class", "text"} <= set(source)
    found, unknown = by_code(source if is_mapping else tables.read_class_texts(source), classes)
    if unknown:
        shown = ", ".join(map(repr, unknown[:SHOWN]))
        note(f"{counted(len(unknown), 'text')} of classes that nobody uses ({shown}): not used.")
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
        n = len(unknown)
        shown = ", ".join(repr(wanted[int(at)]) for at in unknown[:SHOWN])
        raise InputError(
            f"{counted(n, 'task')} to ask about {agreeing(n, 'are')} not among the responses: "
            f"{shown}. Correct or remove them."
        )
    return tuple(tasks[int(code)] for code in codes)


def _marks(key: tuple[str, ...], classes: Ids) -> Marks:
    """Return what tells this job from others: its tasks and classes, in any order."""
    tasks = sorted(key)
    labels = sorted(map(str, classes))
    parts = [str(len(tasks)), *tasks, *labels]
    digest = hashlib.sha256("".join(f"{len(p)}:{p}" for p in parts).encode("utf-8", "replace"))
    return Marks(digest.hexdigest(), f"{_some('task', tasks)} and {_some('class', labels)}")


def _keys(tasks: Ids) -> tuple[str, ...]:
    """Return one text per task: as it prints, or, where two print alike, as Python writes them."""
    plain = tuple(map(str, tasks))
    return plain if len(set(plain)) == len(plain) else tuple(map(repr, tasks))


def _some(noun: str, values: list[str]) -> str:
    return f"{counted(len(values), noun)} ({first_few(values, SHOWN)})"


def _is_columns(source: Mapping[Any, Any]) -> bool:
    return {"task", "text"} <= set(source) and not isinstance(source["task"], str)
