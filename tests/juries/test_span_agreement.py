"""Agreement of spans: against sets of spans compared pair by pair."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.errors import InputError

TAGS = ("O", "B-X", "I-X", "B-Y", "I-Y")
Tagged = dict[str, dict[int, list[str]]]  # worker → sequence → tags


def drawn(seed: int) -> tuple[Tagged, Any, Any]:
    """Draw what some workers said of some sequences, impossible tags among it."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 9, 6)
    said: Tagged = {
        f"w{w}": {
            s: rng.choice(TAGS, n, p=(0.4, 0.2, 0.2, 0.1, 0.1)).tolist()
            for s, n in enumerate(length.tolist())
            if rng.random() < 0.6
        }
        for w in range(4)
    }
    tokens = [(f"{s}:{t}", s) for s, n in enumerate(length.tolist()) for t in range(n)]
    rows = [
        (f"{s}:{t}", worker, tag)
        for worker, texts in said.items()
        for s, tags in texts.items()
        for t, tag in enumerate(tags)
    ]
    rng.shuffle(rows)
    return said, rows, tb.Sequences.from_columns(*map(list, zip(*tokens, strict=True)))


def spans_of(tags: list[str]) -> set[tuple[int, int, str]]:
    found, at = set(), 0
    while at < len(tags):
        end = at + 1
        if tags[at].startswith("B-"):
            while end < len(tags) and tags[end] == f"I-{tags[at][2:]}":
                end += 1
            found.add((at, end, tags[at][2:]))
        at = end
    return found


def share(span: tuple[int, int, str], tags: list[str]) -> float:
    return float(np.mean([tag[2:] == span[2] for tag in tags[span[0] : span[1]]]))


@pytest.mark.parametrize("seed", range(20))
def test_figures_are_those_of_sets_of_spans(seed: int) -> None:
    said, rows, sequences = drawn(seed)
    found = tb.judges.span_agreement(rows, sequences)
    figures, n_spans = {}, {}
    for one, other in combinations(said, 2):
        both = said[one].keys() & said[other].keys()
        mine, its = (
            [(s, span) for s in both for span in spans_of(said[worker][s])]
            for worker in (one, other)
        )
        n = len(mine) + len(its)
        if not n:
            continue
        precision, recall = (
            np.mean([share(span, said[worker][s]) for s, span in spans]) if spans else 0.0
            for worker, spans in ((other, mine), (one, its))
        )
        relaxed = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        figures[one, other] = 2 * len(set(mine) & set(its)) / n, relaxed
        n_spans[one, other] = n

    def mean(pairs: list[tuple[str, str]], k: int) -> float:
        return float(
            np.average([figures[p][k] for p in pairs], weights=[n_spans[p] for p in pairs])
        )

    assert found.n_pairs == len(figures)
    assert found.strict == pytest.approx(mean(list(figures), 0))
    assert found.relaxed == pytest.approx(mean(list(figures), 1))
    for row in found.workers:
        own = [pair for pair in figures if row.worker in pair]
        assert row.n_spans == sum(len(spans_of(tags)) for tags in said[str(row.worker)].values())
        for k, value in enumerate((row.strict, row.relaxed)):
            assert value == pytest.approx(mean(own, k)) if own else np.isnan(value)
    strict = [row.strict for row in found.workers if not np.isnan(row.strict)]
    assert strict == sorted(strict)


def test_workers_who_share_no_sequence_are_not_compared() -> None:
    tokens = tb.Sequences.from_columns(["a", "b"], ["s", "t"])
    found = tb.judges.span_agreement([("a", "ann", "B-X"), ("b", "bob", "O")], tokens)
    assert found.n_pairs == 0
    assert np.isnan(found.strict)


def test_classes_that_are_no_tags_are_refused() -> None:
    tokens = tb.Sequences.from_columns(["a", "b"], ["s", "s"])
    with pytest.raises(InputError) as error:
        tb.judges.span_agreement([("a", "ann", "W"), ("b", "ann", "N1")], tokens)
    assert error.value.code == "no-tags-of-spans"
