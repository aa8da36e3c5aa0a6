"""Exports of spans: what fuse found, in the form in which annotation tools import it for review."""

from __future__ import annotations

from typing import Any

from tiebreak.errors import InputError, OptionError
from tiebreak.tables.export import AGENT, write_records
from tiebreak.tables.formats import find, read_marked
from tiebreak.tables.formats.spans import tags_of, tokenised
from tiebreak.tables.read import SpanRow, read_texts
from tiebreak.tables.write import Target, open_target

TOOLS = ("label-studio", "prodigy", "doccano", "argilla", "conll")


def write_spans(
    target: Target,
    spans: dict[str, list[SpanRow]],
    to: str,
    *,
    texts: Any = None,
    below: float | None = None,
    question: str | None = None,
    field: str | None = None,
) -> int:
    """Write texts with their spans for a tool; return how many.

    Parameters
    ----------
    spans
        By text, as `read_spans` reads them.
    texts
        The texts: a table of task and text, or the export that they come from.
    below
        Only texts with a span below this probability: those to look at again.
    """
    if to not in TOOLS:
        raise OptionError.unknown("to", to, TOOLS)
    if texts is None:
        raise InputError("spans-need-texts", to=to)
    tokens: dict[str, list[tuple[int, int]]] = {}
    if find(texts).format is None:
        shown = {str(name): text for name, text in read_texts(texts).items()}
    else:
        marked = read_marked(texts)
        shown = {str(name): text for name, text in marked.texts.items()}
        tokens = {str(name): ends for name, ends in marked.tokens.items()}
    if unknown := spans.keys() - shown.keys():
        raise InputError("texts-of-other-spans", n=len(unknown), name=min(unknown))
    names = list(shown)
    if below is not None:
        names = [n for n in names if any((s.probability or 0) < below for s in spans.get(n, ()))]
        if not names:
            raise InputError("no-span-below", below=below)
    if to == "conll":
        blocks = []
        for name in names:
            ends = tokens.get(name) or tokenised(shown[name])
            tags = tags_of(ends, [(s.begin, s.end, s.label) for s in sorted(spans.get(name, []))])
            words = (shown[name][a:b] for a, b in ends)
            blocks.append("".join(f"{w} {tag}\n" for w, tag in zip(words, tags, strict=True)))
        with open_target(target) as out:
            out.write("\n".join(blocks).encode())
        return len(names)
    given = question or "label", field or "text"
    write_records(target, (_record(n, shown[n], spans.get(n, []), to, *given) for n in names), to)
    return len(names)


def _record(
    name: str, text: str, spans: list[SpanRow], to: str, question: str, field: str
) -> dict[str, Any]:
    """Make what a tool shows: predictions, suggestions, or spans to accept."""
    sure = [span.probability for span in spans if span.probability is not None]
    least = min(sure) if sure else None
    plain = [{"start": s.begin, "end": s.end, "label": s.label} for s in spans]
    if to == "label-studio":
        results = [
            {
                "from_name": question, "to_name": field, "type": "labels", "score": s.probability,
                "value": {"start": s.begin, "end": s.end, "text": text[s.begin : s.end],
                          "labels": [s.label]},
            }
            for s in spans
        ]  # fmt: skip
        said = {"model_version": AGENT, "score": least, "result": results}
        return {"id": _as_id(name), "data": {field: text}, "annotations": [], "predictions": [said]}
    if to == "argilla":
        suggestion = {"value": plain, "score": None, "agent": AGENT}
        empty: dict[str, Any] = {"metadata": {}, "responses": {}, "vectors": {}}
        return {"id": name, "fields": {field: text}, "suggestions": {question: suggestion}, **empty}
    if to == "doccano":
        label = [[s.begin, s.end, s.label] for s in spans]
        return {"id": _as_id(name), "text": text, "label": label, "Comments": []}
    return {
        "text": text, "spans": plain, "meta": {"task": name, "probability": least},
        "_input_hash": _as_id(name), "_task_hash": _as_id(name), "_annotator_id": AGENT,
        "answer": "accept",
    }  # fmt: skip


def _as_id(name: str) -> Any:
    return int(name) if name.isascii() and name.isdigit() else name
