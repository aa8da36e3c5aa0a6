"""Agreement of annotators on spans: how far they mark the same ones, before any model is fitted.

Strictly a span agrees with an equal one: same tokens, same kind. Loosely it agrees by the share of
its tokens that the other annotator gave the same kind. Two annotators are compared on the sequences
of which both answered something. Each number of a pair is a product of sparse tables:

    spans that each marked                     M Mᵀ   spans of a that b marked, too
    tokens of its spans, 1 / length; of a kind T Kᵀ   spans of a, by the shares that b agrees with
    spans in a sequence; sequences answered    C Uᵀ   spans of a that b could have marked
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tiebreak import tables
from tiebreak.data import Responses, Sequences
from tiebreak.data.runs import plurality
from tiebreak.data.tags import NONE, Tags
from tiebreak.errors import InputError
from tiebreak.kernels.layout import Codes, Floats, Offsets


class MarkedSpans(NamedTuple):
    """The spans that annotators marked, by places of tokens in `sequences`."""

    sequences: Sequences
    tags: Tags
    worker: Offsets
    first: Offsets
    last: Offsets
    kind: Codes
    answers: tuple[Offsets, Offsets, Codes]  # place, worker, label of each, by worker and place


def marked_spans(crowd: Responses, sequences: Sequences) -> MarkedSpans:
    """Return what annotators marked; an I-X without a span of X before it is in none."""
    tags = Tags.of(crowd.classes)
    if tags.scheme == NONE:
        raise InputError("no-tags-of-spans", classes=list(crowd.classes))
    place = np.full(crowd.n_tasks, -1, dtype=np.int64)
    code = crowd.tasks.codes(sequences.tasks)
    place[code[code >= 0]] = np.flatnonzero(code >= 0)
    at, worker = place[crowd.task_of_each()], crowd.worker_of_each().astype(np.int64)
    order = np.lexsort((at, worker))
    order = order[at[order] >= 0]
    at, worker, label = at[order], worker[order], crowd.label_of_each()[order]
    sequence = sequences.sequence_of_each()[at]
    goes_on = (np.diff(at) == 1) & (np.diff(worker) == 0) & (np.diff(sequence) == 0)
    start = np.concatenate([[0], np.flatnonzero(~goes_on) + 1, [len(at)]])
    first, last, kind = tags.spans(label, start)
    return MarkedSpans(
        sequences, tags, worker[first], at[first], at[last], kind, (at, worker, label)
    )


class SpansOfWorker(NamedTuple):
    """How far an annotator marks the spans that the others mark."""

    worker: Hashable
    n_spans: int
    strict: float  # F1, the mean over the others by spans; nan where there is nothing to compare
    relaxed: float


class SpanAgreement(NamedTuple):
    """F1 of spans between annotators: the mean over pairs by spans; nan where there is none."""

    n_pairs: int
    strict: float
    relaxed: float
    workers: tuple[SpansOfWorker, ...]  # those who agree least first


def span_agreement(responses: Any, sequences: Any) -> SpanAgreement:
    """Compare the spans that annotators marked, each with each other.

    Parameters
    ----------
    responses
        Tags of tokens (`B-PER`, `I-PER`, `O`), or anything that `read_responses` takes.
    sequences
        `Sequences`, or a table of task, sequence, position.

    Examples
    --------
    >>> import tiebreak as tb
    >>> tokens = tb.Sequences.from_columns(["a", "b", "c"], ["s", "s", "s"])
    >>> said = {"ann": ["B-X", "I-X", "B-X"], "bob": ["B-X", "O", "B-X"]}
    >>> rows = [(t, w, tag) for w, tags in said.items() for t, tag in zip("abc", tags)]
    >>> found = tb.judges.span_agreement(rows, tokens)
    >>> found.strict, round(found.relaxed, 3)
    (0.5, 0.857)
    """
    crowd = plurality(tables.read_responses(responses))
    marked = marked_spans(crowd, tables.read_sequences(sequences))
    n_kinds, n_places = len(marked.tags.kinds), len(marked.sequences.tasks)
    size = marked.last - marked.first + 1
    owner = np.repeat(marked.worker, size)
    before = np.repeat(np.cumsum(size) - size, size)
    token = np.repeat(marked.first, size) + np.arange(len(owner)) - before
    of_span = marked.worker, (marked.first * n_places + marked.last) * n_kinds + marked.kind
    of_token = owner, token * n_kinds + np.repeat(marked.kind, size)
    at, worker, label = marked.answers
    inside = np.flatnonzero(marked.tags.kind[label] >= 0)
    said = worker[inside], at[inside] * n_kinds + marked.tags.kind[label[inside]]
    sequence = marked.sequences.sequence_of_each().astype(np.int64)
    units = np.unique(np.stack([worker, sequence[at]]), axis=1)
    equal = _shared(of_span, of_span, crowd.n_workers)
    loose = _shared((*of_token, 1.0 / np.repeat(size, size)), said, crowd.n_workers)
    could = _shared((marked.worker, sequence[marked.first]), units, crowd.n_workers)

    pairs = sparse.triu(could + could.T, 1).tocoo()
    ends = pairs.row, pairs.col
    n = len(ends[0])  # an index of nothing would stay sparse
    both = [np.asarray(each[ends]).ravel() if n else np.empty(0) for each in (could, loose, equal)]
    back = [np.asarray(each[ends[::-1]]).ravel() if n else np.empty(0) for each in (could, loose)]
    strict = 2.0 * both[2] / pairs.data
    precision, recall = _ratio(both[1], both[0]), _ratio(back[1], back[0])
    relaxed = _ratio(2.0 * precision * recall, precision + recall)

    def over_pairs(of_each: Any) -> Floats:
        """Return means over the pairs that each worker is in, and over all, by spans."""
        who = np.concatenate([*ends, np.full(n, crowd.n_workers)])
        total, whole = (
            np.bincount(who, np.tile(each, 3), crowd.n_workers + 1)
            for each in (of_each * pairs.data, pairs.data)
        )
        return _ratio(total, whole, np.nan)

    mean_strict, mean_relaxed = (over_pairs(each).tolist() for each in (strict, relaxed))
    n_spans = np.bincount(marked.worker, minlength=crowd.n_workers).tolist()
    figures = zip(crowd.workers, n_spans, mean_strict, mean_relaxed, strict=False)
    rows = sorted((SpansOfWorker(*row) for row in figures), key=_by_agreement)
    return SpanAgreement(n, mean_strict[-1], mean_relaxed[-1], tuple(rows))


def _by_agreement(row: SpansOfWorker) -> tuple[bool, float]:
    return np.isnan(row.strict), row.strict


def _shared(one: Any, other: Any, n_workers: int) -> Any:
    """Return Σ over equal numbers of the values of two annotators, (n_workers, n_workers).

    Each is (worker, number), with a value where that is not 1.
    """
    numbers, column = np.unique(np.concatenate([one[1], other[1]]), return_inverse=True)
    shape = n_workers, max(len(numbers), 1)
    tables_of = []
    for (worker, _, *value), place in (
        (one, column[: len(one[1])]),
        (other, column[len(one[1]) :]),
    ):
        given = value[0] if value else np.ones(len(worker))
        tables_of.append(sparse.csr_matrix((given, (worker, place)), shape=shape))
    return tables_of[0] @ tables_of[1].T


def _ratio(part: Any, whole: Any, nothing: float = 0.0) -> Floats:
    out = np.full(len(whole), nothing)
    return np.asarray(np.divide(part, whole, out=out, where=whole > 0.0))
