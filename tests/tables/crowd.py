"""A small crowd, and what tests compare about responses, links and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.data import Gold, Ids, Labels, Responses
from tiebreak.links import Links

ROWS = [
    ("t2", "ann", "cat"),
    ("t1", "bob", "dog"),
    ("t2", "bob", "dog"),
    ("t1", "ann", "cat"),
]
BY_TASK = [ROWS[0], ROWS[2], ROWS[3], ROWS[1]]  # as responses keep them
COLUMNS: dict[str, list[Any]] = {
    "task": [row[0] for row in ROWS],
    "worker": [row[1] for row in ROWS],
    "label": [row[2] for row in ROWS],
}
HARD_IDS = [
    "a,b",
    'say "hi"',
    "two\nlines",
    "carriage\rreturn",
    "both\r\nends",
    "\r",
    '"',
    "tab\there",
    "😀",
    "é",
    "007",
    "two  blanks inside",
    "NA",
    "NaN",
    "null",
    "None",
    "#5",
    "2020-01-01",
    "1e5",
    "\ufeffmark",
    "semi;colon",
    "{",
    "'",
]


def rows_of(responses: Responses) -> list[tuple[Any, Any, Any]]:
    """Return (task, worker, label) of each response, in ids, sorted by task and worker."""
    parts = (
        Ids(responses.tasks.take(responses.task_of_each())),
        Ids(responses.workers.take(responses.worker_of_each())),
        Ids(responses.classes.take(responses.label_of_each())),
    )
    return list(zip(*parts, strict=True))


def all_of(responses: Responses) -> tuple[Any, ...]:
    """Return everything that two equal tables of responses share."""
    names = responses.tasks, responses.workers, responses.classes
    return rows_of(responses), *map(list, names)


def links_of(links: Links) -> list[tuple[Any, ...]]:
    """Return left, right, must, weight (None without) and who of each link."""
    n = len(links.must)
    weight = [None] * n if links.weight is None else links.weight.tolist()
    sources = [] if links.sources is None else list(links.sources)
    who = [None if c < 0 else sources[c] for c in ([-1] * n if links.who is None else links.who)]
    return [
        (links.tasks[a], links.tasks[b], bool(m), None if w is None or w != w else w, o)
        for a, b, m, w, o in zip(links.left, links.right, links.must, weight, who, strict=True)
    ]


def labels_of(labels: Labels) -> tuple[Any, ...]:
    """Return everything that two equal tables of labels share."""
    arrays = labels.probability, labels.probabilities
    return labels.best(), list(labels.classes), *(a if a is None else a.tolist() for a in arrays)


def some_labels(tasks: list[Any], classes: list[Any], seed: int = 0) -> Labels:
    """Make labels with random probabilities."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(len(classes)), size=len(tasks))
    return Labels.from_probabilities(Ids(tasks), Ids(sorted(classes)), q)


def gold_of(gold: Gold) -> list[tuple[Any, Any]]:
    """Return (task, label) of each known task, in order."""
    return list(gold.to_dict().items())
