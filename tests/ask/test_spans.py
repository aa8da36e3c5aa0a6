"""Asking about spans: which kind the marked one is, or none; answers are labels of tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiebreak as tb
from tiebreak.ask import Desk
from tiebreak.errors import InputError, InputNote, OptionError

TEXTS = {"0": "Ada met Alan Turing .", "1": "Grace Hopper wrote .", "2": "Turing met Ada ."}
SAID = {
    "ann": {"0": "B-PER O B-PER I-PER O", "1": "B-PER I-PER O O", "2": "B-PER O B-PER O"},
    "bob": {"0": "B-PER O O B-PER O", "1": "O O O O", "2": "B-ORG O O O"},
}
TOKENS = [
    (f"{name}:{i}", name, word) for name in TEXTS for i, word in enumerate(TEXTS[name].split())
]
SEQUENCES = tb.Sequences.from_columns(
    [task for task, *_ in TOKENS],
    [name for _, name, _ in TOKENS],
    text=[word for *_, word in TOKENS],
)
ROWS = [
    (f"{name}:{i}", worker, tag)
    for worker, texts in SAID.items()
    for name, tags in texts.items()
    for i, tag in enumerate(tags.split())
]


def desk(path: object = ":memory:", **options: object) -> Desk:
    return Desk(path, tb.Responses.from_rows(ROWS), sequences=SEQUENCES, **options)  # type: ignore[arg-type]


def test_every_span_that_was_marked_is_asked_about_in_its_text() -> None:
    with desk() as opened:
        job = opened.job
        shown = {str(job.responses.tasks[code]): text for code, text in job.texts.items()}
        assert shown == {
            "0:0": "⟦Ada⟧ met Alan Turing .",
            "0:2..0:3": "Ada met ⟦Alan Turing⟧ .",
            "0:3": "Ada met Alan ⟦Turing⟧ .",
            "1:0..1:1": "⟦Grace Hopper⟧ wrote .",
            "2:0": "⟦Turing⟧ met Ada .",
            "2:2": "Turing met ⟦Ada⟧ .",
        }
        votes = {str(vote.worker): vote.label for vote in job.votes("0:3")}
        assert votes == {"ann": "O", "bob": "PER"}
        question = opened.session("me").next()
        assert question is not None
        assert question.kind == "label"
        assert set(question.choices) == {"PER", "ORG", "O"}


def test_answers_are_labels_of_tokens(tmp_path: Path) -> None:
    with desk(tmp_path / "s.db") as opened:
        me = opened.session("me")
        for task, kind in (("0:2..0:3", "PER"), ("0:3", "O"), ("1:0..1:1", "O"), ("2:0", "ORG")):
            me.answer(me.question(task), kind)
        known = {"0:2": "B-PER", "0:3": "I-PER", "1:0": "O", "1:1": "O", "2:0": "B-ORG"}
        assert opened.labels().to_dict() == known
        labels = opened.fused().best()
        assert labels.keys() == {task for task, *_ in TOKENS}
        assert {task: labels[task] for task in known} == known
    with desk(tmp_path / "s.db") as again:
        assert again.labels().to_dict() == known


def test_none_says_nothing_of_tokens_in_a_span_that_may_be_one() -> None:
    with desk() as opened:
        me = opened.session("me")
        me.answer(me.question("0:3"), "O")
        assert opened.labels().to_dict() == {}
        me.answer(me.question("0:2..0:3"), "O")
        assert opened.labels().to_dict() == {"0:2": "O", "0:3": "O"}


def test_spans_that_overlap_are_not_both_used() -> None:
    with desk() as opened:
        me = opened.session("me")
        for task in ("0:3", "0:2..0:3", "0:0"):
            me.answer(me.question(task), "PER")
        with pytest.warns(InputNote) as caught:
            assert opened.labels().to_dict() == {"0:0": "B-PER"}
        assert {each.message.code for each in caught} == {"answered-spans-overlap"}  # type: ignore[union-attr]


def test_known_labels_of_tokens_are_known_spans() -> None:
    gold = {"0:2": "B-PER", "0:3": "I-PER", "0:4": "O", "1:0": "B-PER", "1:1": "O", "2:0": "B-ORG"}
    with desk(gold=gold) as opened:
        found = opened.job.gold
        assert found is not None
        said = {"0:2..0:3": "PER", "0:3": "O", "1:0..1:1": "O", "2:0": "ORG"}
        assert found.to_dict() == said


def test_what_has_no_place_is_refused() -> None:
    links = tb.Links.from_pairs(must=[("0:0", "2:2")])
    with pytest.raises(OptionError) as error:
        desk(links=links)
    assert error.value.code == "links-of-spans"
    nothing = tb.Responses.from_rows(
        [("0:0", "ann", "O"), ("0:1", "ann", "I-X"), ("x", "a", "B-X")]
    )
    with pytest.raises(InputError) as unmarked:
        Desk(":memory:", nothing, sequences=SEQUENCES)
    assert unmarked.value.code == "no-span-marked"
