"""Frames of crowd-kit: columns task, worker (once called performer) and label."""

from __future__ import annotations

from typing import Any

from tiebreak.arguments import TEXT, checks, optional
from tiebreak.errors import InputError
from tiebreak.files.columns import RESPONSES
from tiebreak.files.readers import read_responses
from tiebreak.files.sources import as_table
from tiebreak.responses import Repeats, Responses

OTHERS = {  # columns of frames for other kinds of crowds, and what crowd-kit does with them
    "left": "comparisons of pairs, which BradleyTerry ranks",
    "text": "texts, which ROVER and TextRASA merge",
    "output": "texts, which ROVER and TextRASA merge",
    "segmentation": "segmentations, which SegmentationEM merges",
    "embedding": "embeddings, which RASA and ClosestToAverage compare",
}


@checks(repeats=optional(TEXT))
def from_crowdkit(frame: Any, *, repeats: Repeats = "count") -> Responses:
    """Read a frame that crowd-kit's classifiers take: columns task, worker and label.

    A worker who labelled a task twice counts twice, as there (`repeats="count"`); "last" and "vote"
    are the other ways. A column called performer, as in crowd-kit before 1.0, is the worker.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"task": ["a", "a"], "worker": ["w1", "w2"], "label": ["x", "y"]})
    >>> from_crowdkit(frame)
    Responses(2 responses, 1 tasks, 2 workers, 2 classes)
    """
    names = as_table(frame, RESPONSES.names, len(RESPONSES.needed)).names
    worker = "performer" if "performer" in names and "worker" not in names else "worker"
    missing = [name for name in ("task", worker, "label") if name not in names]
    foreign = [what for column, what in OTHERS.items() if column in names]
    if missing and foreign:
        raise InputError(
            f"This frame holds {foreign[0]}. tiebreak decides among classes: it needs columns "
            "task, worker and label."
        )
    if missing:
        there = ", ".join(map(repr, names))
        raise InputError(
            f"A frame of crowd-kit has columns task, worker and label; this one has {there}. "
            "read_responses finds columns under other names."
        )
    columns = {"task": "task", "worker": worker, "label": "label"}
    return read_responses(frame, columns=columns, repeats=repeats)
