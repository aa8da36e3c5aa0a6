"""Cost matrices: what a decision costs, by the true class."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiebreak.arguments import COLUMN, checks
from tiebreak.data.ids import Ids, as_numbers, is_missing
from tiebreak.data.scale import Scale
from tiebreak.errors import InputError, OptionError
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.options import as_floats
from tiebreak.tables.plain import open_source
from tiebreak.tables.table import Table

NO_LABEL = ("abstain", "ask")  # decisions that are no class: leave it open, send it to somebody
TRUTH = "truth"
POWERS = {"absolute": 1, "squared": 2}  # of the difference between two levels of a scale


@dataclass(frozen=True, slots=True, eq=False)
class CostMatrix:
    """cost[k, d] is what decision d costs where the class is k.

    `decisions` are names of classes and, last, perhaps "abstain" or "ask". `label` is the class of
    each decision, −1 for that last one.
    """

    cost: Floats  # (n_classes, n_decisions)
    decisions: tuple[str, ...]
    label: Codes  # (n_decisions,)

    @property
    def may_abstain(self) -> bool:
        """Whether a decision may be no class at all."""
        return bool((self.label < 0).any())

    def expected(self, probabilities: Floats) -> Floats:
        """Return the expected cost of each decision, (n_tasks, n_decisions)."""
        return np.asarray(probabilities @ self.cost)

    def of_knowing(self, probabilities: Floats) -> Floats:
        """Return the expected cost where the class is known before deciding, (n_tasks,)."""
        return np.asarray(probabilities @ self.cost.min(axis=1))


@checks(classes=COLUMN)
def read_cost_matrix(source: Any, classes: Ids, scale: Scale | None = None) -> CostMatrix:
    """Read costs: a path or frame, a mapping, or an array in the order of the classes.

    A table has a column `truth` and one column per decision. A mapping is
    {truth: {decision: cost}}. An array is (truth, decision), where one column more than
    classes is "abstain". "absolute" and "squared" cost the difference of two levels of `scale`, and
    its square: the median, and the mean rounded to a level. None: a wrong label costs 1.

    >>> costs = read_cost_matrix(
    ...     {"no": {"no": 0, "yes": 10}, "yes": {"no": 1, "yes": 0}}, Ids(["no", "yes"])
    ... )
    >>> costs.decisions, costs.cost.tolist()
    (('no', 'yes'), [[0.0, 10.0], [1.0, 0.0]])
    """
    if isinstance(source, CostMatrix):
        return source
    if isinstance(source, str) and source in POWERS:
        if scale is None:
            raise OptionError("costs-without-scale", costs=source)
        away = np.abs(scale.values[:, None] - scale.values)
        return read_cost_matrix(away ** POWERS[source], classes)
    n_classes = len(classes)
    wanted = [str(name) for name in classes]
    is_frame = hasattr(source, "columns") or hasattr(source, "column_names")
    title, truth = "cost_matrix", wanted
    if isinstance(source, Mapping) and all(isinstance(row, Mapping) for row in source.values()):
        given = {str(t): {str(d): cost for d, cost in row.items()} for t, row in source.items()}
        truth, names = list(given), list(dict.fromkeys(d for row in given.values() for d in row))
        rows = [[row.get(name, np.nan) for name in names] for row in given.values()]
        cost = np.array(rows, dtype=np.float64)
    elif is_frame or isinstance(source, str | os.PathLike | Mapping):
        title, truth, names, cost = _read_table(open_source(source).table)
    else:
        cost = 1.0 - np.eye(n_classes) if source is None else as_floats("The cost matrix", source)
        if cost.ndim != 2 or cost.shape[0] != n_classes or cost.shape[1] - n_classes not in (0, 1):
            raise OptionError("cost-shape", n_classes=n_classes, shape=cost.shape)
        names = [*wanted, NO_LABEL[0]][: cost.shape[1]]
    missing = [name for name in wanted if name not in truth]
    unknown = [name for name in truth if name not in wanted]
    if missing or unknown or len(set(truth)) < len(truth):
        raise InputError("cost-rows", title=title, missing=missing, unknown=unknown, classes=wanted)
    unknown = [name for name in names if name not in wanted and name not in NO_LABEL]
    if unknown:
        fields: dict[str, Any] = {"unknown": unknown, "open_names": NO_LABEL, "classes": wanted}
        raise InputError("cost-unknown-decision", title=title, **fields)
    label = np.array([wanted.index(d) if d in wanted else -1 for d in names], dtype=np.int32)
    if not (label >= 0).any() or (label < 0).sum() > 1:
        raise InputError("cost-decisions", title=title, open_names=NO_LABEL)
    if not np.isfinite(cost).all():
        raise InputError("cost-not-finite", title=title)
    open_last = np.argsort(label < 0, kind="stable")
    cost = cost[[truth.index(name) for name in wanted]][:, open_last]
    decisions = tuple(names[d] for d in open_last)
    return CostMatrix(np.ascontiguousarray(cost), decisions, label[open_last])


def _read_table(table: Table) -> tuple[str, list[str], list[str], Floats]:
    folded = [name.strip().casefold() for name in table.names]
    if TRUTH not in folded:
        raise InputError("cost-no-truth", title=table.title, column=TRUTH)
    at = folded.index(TRUTH)
    others = [i for i in range(len(folded)) if i != at]
    truth, *columns = table.read([at, *others])
    rows = [str(value) for value in Ids(truth) if not is_missing(value)]
    cost = np.stack([as_numbers(column)[0] for column in columns], axis=1)
    return table.title, rows, [table.names[i].strip() for i in others], cost
