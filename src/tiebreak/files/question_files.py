"""Question files: questions in the form in which annotation tools import what is to be answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tiebreak.errors import OptionError
from tiebreak.files.atomic_write import Target, open_target

WORDS = {"same": ("same", "different"), "is": ("yes", "no")}


class AskedOf(NamedTuple):
    """A question: its kind, and what it names."""

    kind: str
    task: Hashable
    other: Hashable | None = None
    label: Hashable | None = None
    worker: Hashable | None = None

    @property
    def id(self) -> str:
        """What tells the question from others."""
        named = (self.task, self.other) if self.kind == "same" else (self.task, self.label)
        return ":".join([self.kind, *(str(each) for each in named if each is not None)])

    def words(self) -> str:
        """Return the question in words."""
        if self.kind == "same":
            return "Are these two of the same class?"
        return f"Is this {self.label}?" if self.kind == "is" else "Which class is this?"


class ShownQuestion(NamedTuple):
    """A question with what people see."""

    asked: AskedOf
    text: str
    other_text: str | None
    choices: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """Return what is shown, and what tells the answer's question: link files have left, right.

        A label goes by `task`, as gold does; a pair by `left` and `right`, as links do.
        """
        found: dict[str, Any] = {"question": self.asked.words(), "text": self.text}
        if self.other_text is not None:
            found.update(other=self.other_text, left=self.asked.task, right=self.asked.other)
        else:
            found["task"] = self.asked.task
        named = {"class": self.asked.label if self.asked.kind == "is" else None}
        named["worker"] = self.asked.worker
        return {**found, **{name: value for name, value in named.items() if value is not None}}


def write_questions(
    target: Target,
    questions: Sequence[AskedOf],
    to: str,
    classes: Sequence[str],
    texts: Mapping[Any, str] | None = None,
) -> None:
    """Write questions for "label-studio", "argilla" or "prodigy".

    `texts` maps tasks to what people see; a task without one shows its id.
    """
    if to not in TOOLS:
        raise OptionError.unknown("to", to, tuple(TOOLS))
    by_text = {str(task): text for task, text in (texts or {}).items()}

    def text_of(task: Hashable) -> str:
        return by_text.get(str(task), str(task))

    shown = [
        ShownQuestion(
            asked,
            text_of(asked.task),
            text_of(asked.other) if asked.kind == "same" else None,
            WORDS.get(asked.kind, tuple(classes)),
        )
        for asked in questions
    ]
    with open_target(target) as out:
        for piece in TOOLS[to](shown):
            out.write(piece.encode())


def _list_of(records: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Write records as one JSON list, a line each."""
    lines = ",\n".join(json.dumps(each, ensure_ascii=False, default=str) for each in records)
    yield f"[\n{lines}\n]\n"


def _label_studio(questions: Sequence[ShownQuestion]) -> Iterator[str]:
    """Write tasks whose choices are data: a configuration shows them with value="$choices"."""
    return _list_of(
        {"data": {**one.data(), "choices": [{"value": word} for word in one.choices]}}
        for one in questions
    )


def _argilla(questions: Sequence[ShownQuestion]) -> Iterator[str]:
    """Write records as `dataset.records.from_json` reads them; the ids are metadata."""

    def record(one: ShownQuestion) -> dict[str, Any]:
        data = one.data()
        fields = {name: data.pop(name) for name in ("question", "text", "other") if name in data}
        return {
            "id": one.asked.id,
            "fields": fields,
            "metadata": {name: str(value) for name, value in data.items()},
            "suggestions": {},
            "responses": {},
            "vectors": {},
        }

    return _list_of(record(one) for one in questions)


def _prodigy(questions: Sequence[ShownQuestion]) -> Iterator[str]:
    """Write tasks of the choice interface, one a line."""
    for one in questions:
        data = one.data()
        text = "\n\n".join(data.pop(name) for name in ("text", "other") if name in data)
        record = {
            "text": text,
            "label": data.pop("question"),
            "options": [{"id": word, "text": word} for word in one.choices],
            "meta": data,
        }
        yield json.dumps(record, ensure_ascii=False, default=str) + "\n"


TOOLS: dict[str, Callable[[Sequence[ShownQuestion]], Iterator[str]]] = {
    "label-studio": _label_studio,
    "argilla": _argilla,
    "prodigy": _prodigy,
}
