"""Output of batch APIs: one answer of a model per line, the label inside a text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tiebreak.errors import InputError, OptionError
from tiebreak.files.columns import LABEL
from tiebreak.files.formats.protocol import (
    LABEL_IN_TEXT,
    Head,
    IdType,
    ImportOptions,
    Record,
    RecordPlace,
    Records,
    need,
    need_name,
    optional,
)
from tiebreak.files.formats.rows import Rows

SHORT = 60  # characters; a longer answer is prose, not a label
UNREADABLE = object()


class BatchApi:
    """Lines with `custom_id` (the task) and the answer of a model (the worker)."""

    name = "batch-api"
    title = "batch API output"
    choosable: tuple[str, ...] = (LABEL_IN_TEXT,)

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        return head.has("custom_id", "response") or head.has("custom_id", "result")

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        find = _finder(rows.options)
        split = _splitter(rows.options.task_pattern)
        example = None
        n_unreadable = 0
        for place, record in records():
            task, of_id = split(place, need(record, "custom_id", IdType, place))
            for model, run, content in _contents(place, record, rows):
                label = find(content)
                if label is UNREADABLE:
                    n_unreadable += 1
                    example = example or content
                    label = None
                more = of_id if run is None else {**of_id, "run": _run(of_id, run)}
                rows.add(place, task, model, label, **more)
        _check_readable(rows, n_unreadable, example)


def _run(of_id: Mapping[str, str], number: int) -> Any:
    """Name a run by its number among the choices, and by what the id says of it."""
    return f"{of_id['run']}.{number}" if "run" in of_id else number


def _splitter(text: str | None) -> Callable[[RecordPlace, Any], tuple[Any, dict[str, str]]]:
    """Return a function from an id to the task, and to the run and order that the id tells."""
    if text is None:
        return lambda place, name: (name, {})
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise OptionError(f"--task-pattern {text!r} is no regular expression: {error}.") from None
    odd = set(pattern.groupindex) - {"task", "run", "order"}
    if odd or not pattern.groups or (pattern.groupindex and "task" not in pattern.groupindex):
        raise OptionError(
            f"--task-pattern {text!r} needs a group for the task: (?P<task>…), and (?P<run>…) and "
            "(?P<order>…) where ids have these; or one group without a name."
        )

    def split(place: RecordPlace, name: Any) -> tuple[Any, dict[str, str]]:
        found = pattern.search(str(name))
        if found is None:
            raise place.error(f"the id {name!r} does not fit --task-pattern {text!r}.")
        parts = {role: part for role, part in found.groupdict().items() if part}
        return parts.pop("task", found[1]), parts

    return split


def _contents(
    place: RecordPlace, record: Record, rows: Rows
) -> Iterator[tuple[str, int | None, str]]:
    """Yield model, run (where several answers were asked for) and text of each answer."""
    if "result" in record:
        result = need(record, "result", dict, place)
        if result.get("type") != "succeeded":
            rows.drop(f"requests that ended as {result.get('type')!r}")
            return
        message = need(result, "message", dict, place)
        parts = need(message, "content", list, place)
        texts = [optional(part, "text", str, place) or "" for part in parts]
        yield need_name(message, "model", place), None, "".join(texts)
        return
    response = need(record, "response", (dict, type(None)), place)
    if record.get("error") or response is None or response.get("status_code", 200) != 200:
        rows.drop("requests that failed")
        return
    body = need(response, "body", dict, place)
    choices = need(body, "choices", list, place)
    model = need_name(body, "model", place)
    for number, choice in enumerate(choices):
        message = need(choice, "message", dict, place)
        content = need(message, "content", (str, type(None)), place) or ""
        yield model, number if len(choices) > 1 else None, content


def _finder(options: ImportOptions) -> Any:
    """Return a function from text to label, or to UNREADABLE."""
    if options.label_pattern is not None and options.label_pointer is not None:
        raise OptionError("Give a pattern or a pointer to the label, not both.")
    if options.label_pattern is not None:
        return _by_pattern(options.label_pattern)
    if options.label_pointer is not None:
        return _by_pointer(options.label_pointer)
    return _by_itself


def _by_pattern(text: str) -> Any:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise OptionError(f"--label-pattern {text!r} is no regular expression: {error}.") from None

    def find(content: str) -> Any:
        found = pattern.search(content)
        return UNREADABLE if found is None else found[1 if pattern.groups else 0].strip()

    return find


def _by_pointer(pointer: str) -> Any:
    if not pointer.startswith("/"):
        raise OptionError(f"A JSON pointer starts with '/', such as /verdict; got {pointer!r}.")
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]

    def find(content: str) -> Any:
        value = _json_in(content)
        for step in steps:
            if isinstance(value, Mapping) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                return UNREADABLE
        return value if isinstance(value, str | int | float | bool) else UNREADABLE

    return find


def _by_itself(content: str) -> Any:
    """Take a short text as the label; of a JSON object the one key that names a label."""
    value = _json_in(content)
    if isinstance(value, Mapping):
        named = [k for k in value if str(k).casefold() in {LABEL.name, *LABEL.others}]
        named = named or [k for k in value if str(k).casefold() in LABEL.weak]
        found = value[named[0]] if len(named) == 1 else UNREADABLE
        return found if isinstance(found, str | int | float | bool) else UNREADABLE
    text = content.strip()
    return text if text and len(text) <= SHORT and "\n" not in text else UNREADABLE


def _json_in(content: str) -> Any:
    """Read the JSON that an answer consists of, or that it holds between fences."""
    fenced = re.search(r"```(?:json)?\s*(.*?)```", content, re.DOTALL)
    try:
        return json.loads(fenced[1] if fenced else content)
    except (ValueError, RecursionError):
        return None


def _check_readable(rows: Rows, n_unreadable: int, example: str | None) -> None:
    """Refuse a file of prose; a few answers without a label are no answers, and counted."""
    if not n_unreadable:
        return
    chosen = rows.options.label_pattern or rows.options.label_pointer
    if n_unreadable == len(rows.task) or (chosen is None and 2 * n_unreadable > len(rows.task)):
        raise InputError(
            f"{rows.name}: in {n_unreadable:,} of {len(rows.task):,} answers no label was found, "
            f"such as in {(example or '')[:80]!r}.\nSay where it stands: --label-pattern "
            "'verdict: (\\w+)' (label_pattern=), or --label-pointer /verdict for JSON "
            "(label_pointer=)."
        )
