"""The job: what is asked about, the same in every run of a session."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tiebreak import files, ids
from tiebreak.ask.log import Event
from tiebreak.ask.results import Vote
from tiebreak.ask.storage import Marks
from tiebreak.errors import InputError, OptionError, note
from tiebreak.gold import Gold
from tiebreak.ids import MISSING, Ids
from tiebreak.inference.inputs import read_and_check_inputs
from tiebreak.links import Links
from tiebreak.responses import Responses
from tiebreak.source import Source
from tiebreak.wording import counted, first_few

SHOWN = 3  # tasks and classes named in a message


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Responses, and the links, known labels and texts that came with them.

    `links` are in the codes of `responses.tasks`. `key` has the text of each task's id in the
    file of a session.
    """

    responses: Responses
    links: Links | None
    gold: Gold | None
    texts: Mapping[int, str]
    among: tuple[Hashable, ...] | None
    marks: Marks
    key: tuple[str, ...] = field(repr=False)
    code: Mapping[str, int] = field(repr=False)

    def name(self, key: str | None) -> Hashable:
        """Return the caller's id of a task."""
        return self.responses.tasks[self.code[key or ""]]

    def code_of(self, task: Hashable) -> int:
        """Return the code of a task; refuse one that the responses do not have."""
        code = int(self.responses.tasks.codes([task])[0])
        if code == MISSING:
            raise OptionError(f"There is no task {task!r} among the responses.")
        return code

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

    def links_of(self, events: Sequence[Event]) -> Links:
        """Return answers as links; each says who gave it."""
        who, sources = ids.encode([event.who for event in events])
        left = [self.code[event.left or ""] for event in events]
        right = [self.code[event.right or ""] for event in events]
        return Links(
            np.array(left, dtype=np.int32),
            np.array(right, dtype=np.int32),
            np.array([event.kind == "same" for event in events], dtype=bool),
            self.responses.tasks,
            np.arange(len(events)),
            who=who,
            sources=sources,
            source=Source("the answers"),
            frame=self.responses.frame,
        )


def take_job(
    responses: Any,
    links: Any = None,
    gold: Any = None,
    texts: Any = None,
    among: Any = None,
    *,
    links_may_err: bool = False,
) -> Job:
    """Read whatever was handed over, and check it as a fit would.

    Links that cannot all hold are refused, unless they may err.
    """
    crowd = files.read_responses(responses)
    inputs = read_and_check_inputs(crowd, links, gold, soft_links=links_may_err)
    tasks = crowd.tasks
    key = _keys(tasks)
    return Job(
        inputs.responses,
        None if inputs.links is None else _without_loops(in_codes(inputs.links, tasks)),
        inputs.gold,
        {} if texts is None else read_texts(texts, tasks),
        None if among is None else tasks_among(tasks, among),
        _marks(key, crowd.classes),
        key,
        {text: code for code, text in enumerate(key)},
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
    by_task = source if is_mapping else files.read_texts(source)
    names = list(by_task)
    texts = list(by_task.values())
    codes = tasks.codes(names).tolist()
    unknown = [task for task, code in zip(names, codes, strict=True) if code == MISSING]
    if unknown:
        shown = ", ".join(map(repr, unknown[:SHOWN]))
        note(f"{len(unknown):,} texts are of tasks without responses ({shown}): not used.")
    return {
        code: str(text)
        for code, text in zip(codes, texts, strict=True)
        if code != MISSING and text is not None
    }


def tasks_among(tasks: Ids, among: Any) -> tuple[Hashable, ...]:
    """Read the tasks that may be asked about: ids, or a table with a column task.

    >>> tasks_among(Ids([1, 2, 3]), ["3", "1"])
    (3, 1)
    """
    wanted = list(Ids(files.read_tasks(among)))
    codes = tasks.codes(wanted)
    unknown = np.flatnonzero(codes == MISSING)
    if len(unknown):
        shown = ", ".join(repr(wanted[int(at)]) for at in unknown[:SHOWN])
        raise InputError(
            f"{len(unknown):,} tasks to ask among are not among the responses: {shown}. "
            "Correct or remove them."
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
