"""Spans of tools: in as tags of tokens, fused, out for review, and in again the same."""

from __future__ import annotations

import csv
import json
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of
from commands import tiebreak
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.data import tags as tagging
from tiebreak.errors import InputError, InputNote
from tiebreak.tables import formats, read_export

TEXTS = {
    1: "Ada Lovelace met Alan Turing in London.",
    2: "Grace Hopper wrote a compiler.",
    3: "Łódź und 東京 sind Städte; Turing's too.",
    4: "Nobody here.",
}
TRUE = {
    1: [(0, 12, "PER"), (17, 28, "PER"), (32, 38, "LOC")],
    2: [(0, 12, "PER")],
    3: [(0, 4, "LOC"), (9, 11, "LOC"), (25, 31, "PER")],
    4: [],
}
PEOPLE = ("ann", "bob", "cy")
TOOLS = ("label-studio", "prodigy", "doccano", "doccano-entities", "argilla", "conll")
Run = Callable[..., Any]
Marks = dict[str, dict[int, list[tuple[int, int, str]]]]


def said() -> Marks:
    """Return what each person marked: cy misses the second span of the first text."""
    made: Marks = {who: {n: list(spans) for n, spans in TRUE.items()} for who in PEOPLE}
    del made["cy"][1][1]
    return made


def write(tool: str, marks: Marks, texts: dict[int, str] = TEXTS) -> str:
    """Write what people marked as a tool does; return the file."""

    def objects(spans: Any, begin: str = "start", end: str = "end") -> list[dict[str, Any]]:
        return [{begin: a, end: b, "label": label} for a, b, label in spans]

    if tool == "label-studio":
        tasks = []
        for n, text in texts.items():
            annotations = []
            for who in marks:
                results = [
                    {"type": "labels", "from_name": "ner", "to_name": "text",
                     "value": {"start": a, "end": b, "labels": [x]}}
                    for a, b, x in marks[who][n]
                ]  # fmt: skip
                annotations.append({"completed_by": who, "result": results})
            tasks.append({"id": n, "data": {"text": text}, "annotations": annotations})
        Path("in.json").write_text(json.dumps(tasks))
        return "in.json"
    if tool == "argilla":
        records = [
            {
                "id": str(n),
                "fields": {"text": text},
                "responses": {
                    "ner": [{"user_id": w, "value": objects(marks[w][n])} for w in marks]
                },
                "suggestions": {},
            }
            for n, text in texts.items()
        ]
        Path("in.json").write_text(json.dumps(records))
        return "in.json"
    if tool == "prodigy":
        lines = []
        for who in marks:
            for n, text in texts.items():
                tokens = [
                    {"start": a, "end": b, "id": i}
                    for i, (a, b) in enumerate(formats.spans.tokenised(text))
                ]
                lines.append(
                    {"text": text, "_input_hash": n, "_task_hash": n, "_annotator_id": who,
                     "answer": "accept", "tokens": tokens, "spans": objects(marks[who][n])}
                )  # fmt: skip
        Path("in.jsonl").write_text("\n".join(map(json.dumps, lines)))
        return "in.jsonl"
    if tool.startswith("doccano"):
        with zipfile.ZipFile("in.zip", "w") as archive:
            for who in marks:
                lines = []
                for n, text in texts.items():
                    if tool == "doccano":
                        lines.append({"id": n, "text": text, "label": marks[who][n]})
                    else:
                        found = objects(marks[who][n], "start_offset", "end_offset")
                        lines.append({"id": n, "text": text, "entities": found, "relations": []})
                archive.writestr(f"{who}.jsonl", "\n".join(map(json.dumps, lines)))
        return "in.zip"
    Path("crowd").mkdir(exist_ok=True)
    for who in marks:
        blocks = []
        for n, text in texts.items():
            ends = formats.spans.tokenised(text)
            tags = formats.spans.tags_of(ends, marks[who][n])
            blocks.append(
                "".join(f"{text[a:b]}\t{t}\n" for (a, b), t in zip(ends, tags, strict=True))
            )
        Path(f"crowd/{who}.conll").write_text("\n".join(blocks))
    return "crowd"


@pytest.fixture
def run() -> Run:
    return tiebreak


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def expected(tool: str) -> set[tuple[str, str, str]]:
    first = 1 if tool != "conll" else 0  # sentences of a file are counted from 0
    found = set()
    for place, (n, spans) in enumerate(TRUE.items()):
        name = str(n if first else place)
        for a, b, label in spans:
            text = TEXTS[n][a:b]
            if tool == "conll":
                text = " ".join(text[i:j] for i, j in formats.spans.tokenised(text))
            found.add((name, label, text))
    return found


@pytest.mark.parametrize("tool", TOOLS)
def test_an_export_is_fused_exported_and_read_again(run: Run, tool: str) -> None:
    source = write(tool, said())
    fused = run(
        *("fuse", source, "-o", "labels.csv", "--spans-out", "spans.csv", "--json"),
        *("--set", "sequence_model=chain"),
    )
    assert fused.exit_code == 0, fused.stderr
    with Path("spans.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(r["sequence"], r["label"], r["text"]) for r in rows} == expected(tool)
    back = tool.removesuffix("-entities")
    out = {"prodigy": "out.jsonl", "conll": "tiebreak.conll"}.get(back, "out.json")
    made = run("convert", "spans.csv", "--to", back, "--texts", source, "-o", out)
    assert made.exit_code == 0, made.stderr
    if back == "doccano":  # as it exports again: a zip with a file a person
        lines = "\n".join(map(json.dumps, json.loads(Path(out).read_text("utf-8"))))
        with zipfile.ZipFile("out.zip", "w") as archive:
            archive.writestr("tiebreak.jsonl", lines)
        out = "out.zip"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)
        again = read_export(out)
    tokens = again.sequences
    assert tokens is not None
    assert len(again.responses.workers) == 1
    place = again.responses.tasks.codes(tokens.tasks)
    label = again.responses.label_of_each()[again.responses.start[place]]
    tags = tagging.Tags.of(again.responses.classes)
    first, last, kind = tags.spans(label, tokens.start)
    sequence = tokens.sequence_of_each()[first]
    found = {
        (str(tokens.names[int(s)]), str(tags.kinds[int(k)]), str(tokens.text_of(int(a), int(b))))
        for s, a, b, k in zip(sequence, first, last, kind, strict=True)
    }
    assert found == expected(tool)


@pytest.mark.parametrize("tool", TOOLS)
def test_all_tools_give_the_same_answers(tool: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)
        found = read_export(write(tool, said()))
    assert found.sequences is not None
    assert sorted(map(str, found.responses.workers)) == sorted(PEOPLE)
    n_tokens = sum(len(formats.spans.tokenised(text)) for text in TEXTS.values())
    assert len(found.sequences.tasks) == n_tokens
    assert found.responses.n_responses == 3 * n_tokens  # who marks nothing says O
    assert set(found.responses.classes) == {"O", "B-PER", "I-PER", "B-LOC"}


def test_only_doubtful_texts_go_back(run: Run) -> None:
    source = write("label-studio", said())
    run("fuse", source, "-o", "labels.csv", "--spans-out", "spans.csv")
    with Path("spans.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    least = min(rows, key=lambda r: float(r["probability"]))
    below = str(float(least["probability"]) + 1e-6)
    given = "convert", "spans.csv", "--to", "label-studio", "--texts", source, "-o", "review.json"
    assert run(*given, "--below", below).exit_code == 0
    (task,) = json.loads(Path("review.json").read_text())
    assert str(task["id"]) == least["sequence"]
    assert task["predictions"][0]["score"] == pytest.approx(float(least["probability"]))
    assert code_of(run(*given, "--below", "0.0001")) == "no-span-below"


def test_convert_writes_tokens_and_fuse_takes_them(run: Run) -> None:
    source = write("label-studio", said())
    made = run("convert", source, "-o", "responses.csv", "--sequences-out", "tokens.csv")
    assert made.exit_code == 0, made.stderr
    spans = "--spans-out", "spans.csv", "--set", "sequence_model=chain"
    assert (
        run("fuse", "responses.csv", "--sequences", "tokens.csv", "-o", "l.csv", *spans).exit_code
        == 0
    )
    assert run("fuse", source, "-o", "m.csv", *spans[2:]).exit_code == 0
    assert Path("l.csv").read_text() == Path("m.csv").read_text()
    assert code_of(run("fuse", source, "--method", "mv")) == "method-without-sequences"


@pytest.mark.parametrize(
    ("spans", "code"),
    [
        ([(0, 12, "PER"), (4, 12, "PER")], "spans-overlap"),
        ([(0, 99, "PER")], "span-outside-text"),
        ([(5, 5, "PER")], "span-outside-text"),
    ],
)
def test_spans_that_cannot_be_are_refused(spans: Any, code: str) -> None:
    marks = said()
    marks["bob"][1] = spans
    with pytest.raises(InputError) as error:
        read_export(write("label-studio", marks))
    assert error.value.code == code


@pytest.mark.parametrize(("nested", "kept"), [("longest", "B-PER"), ("first", "B-PER")])
def test_nested_spans_may_be_chosen_from(nested: str, kept: str) -> None:
    marks = said()
    marks["bob"][1] = [(0, 12, "PER"), (4, 12, "LOC")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_export(write("label-studio", marks), nested=nested)
    codes = {w.message.code: w.message.fields for w in caught if isinstance(w.message, InputNote)}
    assert codes["spans-nested"] == {"n": 1, "nested": nested}
    task = found.responses.tasks.codes(["1:0"])[0]
    worker, label = found.responses.of(int(task))
    bob = found.responses.workers.codes(["bob"])[0]
    assert found.responses.classes[int(label[worker == bob][0])] == kept


def test_tags_of_other_schemes_and_tokens_are_read() -> None:
    Path("crowd").mkdir()
    Path("crowd/ann.conll").write_text("Ada I-PER\nmet O\nAlan I-PER\nTuring I-PER\n")
    Path("crowd/bob.conll").write_text("Ada S-PER\nmet O\nAlan B-PER\nTuring E-PER\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_export("crowd")
    schemes = [
        w.message.fields["scheme"]
        for w in caught
        if isinstance(w.message, InputNote) and w.message.code == "tags-turned"
    ]
    assert schemes == ["IOB1", "BIOES"]
    assert set(found.responses.classes) == {"B-PER", "I-PER", "O"}
    each = [found.responses.of(i)[1] for i in range(4)]
    assert all(len(set(label.tolist())) == 1 for label in each)


def test_a_column_a_worker_and_tokens_that_differ() -> None:
    Path("two.conll").write_text("token ann bob\nAda B-PER O\nmet O O\n\nBye O O\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)
        found = read_export("two.conll")
    assert list(found.responses.workers) == ["ann", "bob"]
    Path("crowd").mkdir()
    words = [f"w{i}" for i in range(30)]
    Path("crowd/ann.conll").write_text("".join(f"{w} O\n" for w in words))
    for changed, code in ((1, None), (9, "tokens-differ")):
        others = [f"x{i}" if i < changed else w for i, w in enumerate(words)]
        Path("crowd/bob.conll").write_text("".join(f"{w} O\n" for w in others))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputNote)
            if code is None:
                assert read_export("crowd").responses.n_responses == 60 - changed
                continue
            with pytest.raises(InputError) as error:
                read_export("crowd")
            assert error.value.code == code


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)


@given(TEXT, st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4), st.sampled_from("XY"))))
def test_spans_of_tokens_are_tags_and_spans_again(text: str, drawn: Any) -> None:
    tokens = formats.spans.tokenised(text)
    spans, after = [], 0
    for skip, size, label in drawn:
        first, last = after + skip, after + skip + size - 1
        if last < len(tokens):
            spans.append((tokens[first][0], tokens[last][1], label))
        after = last + 1
    tags = formats.spans.tags_of(tokens, spans)
    back: list[list[Any]] = []
    for (a, b), tag in zip(tokens, tags, strict=True):
        if tag.startswith("B-"):
            back.append([a, b, tag[2:]])
        elif tag.startswith("I-"):
            back[-1][1] = b
    assert [tuple(each) for each in back] == spans
