"""Asking about spans in a browser: the text with the span marked, and labels of tokens."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from page.served import Server, lead, serving

import tiebreak as tb

WORDS = ("Ada", "<b>met</b>", "Alan", "Turing", ".")
SAID = {"ann": "B-PER O B-PER I-PER O", "bob": "B-PER O O B-PER O", "cy": "O O B-PER I-PER O"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("spans")
    tokens = [(f"{s}:{t}", f"s{s}", word) for s in range(3) for t, word in enumerate(WORDS)]
    columns = dict(
        zip(("task", "sequence", "text"), map(list, zip(*tokens, strict=True)), strict=True)
    )
    tb.Sequences.from_table(columns).write(folder / "tokens.csv")
    rows = [
        (f"{s}:{t}", worker, tag)
        for s in range(3)
        for worker, tags in SAID.items()
        for t, tag in enumerate(tags.split())
    ]
    tb.Responses.from_rows(rows).write(folder / "responses.csv")
    given = ("responses.csv", "--set", "sequences=tokens.csv", "--session", "answers.db")
    with serving(folder, *given) as running:
        yield running


def test_a_question_shows_the_text_with_the_span_marked(server: Server) -> None:
    page = lead(server).get("/").body
    assert "What is marked?" in page
    assert "<mark>" in page
    assert "&lt;b&gt;met&lt;/b&gt;" in page
    assert "<b>met</b>" not in page
    assert 'value="PER"' in page or ">PER<" in page


def test_answers_are_downloaded_as_labels_of_tokens(server: Server) -> None:
    client = lead(server)
    client.get("/")
    client.answer(0)  # the first kind
    known = list(csv.DictReader(io.StringIO(client.get("/download/known.csv").body)))
    assert known
    assert {row["label"] for row in known} <= {"B-PER", "I-PER"}
    labels = list(csv.DictReader(io.StringIO(client.get("/download/labels.csv").body)))
    assert {row["task"] for row in labels} == {f"{s}:{t}" for s in range(3) for t in range(5)}
    assert {row["label"] for row in labels} <= {"B-PER", "I-PER", "O"}
