"""Families of judges: one discount for all of a group.

Measured on real juries (experiments/08_panels): it lowers the weight of large families, and gains
no accuracy; how much errors are shared is better left to `dependence`. It is here to be tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tiebreak.arguments import MAPPING, checks, number, optional
from tiebreak.errors import OptionError
from tiebreak.responses import Responses


@checks(
    responses=Responses,
    groups=optional(MAPPING),
    dependence=number("between 0 and 1", least=0.0, most=1.0),
)
def share_discount(
    responses: Responses,
    groups: Mapping[Any, str] | None = None,
    dependence: float = 0.3,
) -> Responses:
    """Let the judges of a group share one discount: 1 / (1 + dependence (n − 1)) for n of them.

    `groups` names the group of each judge; None: the column `group` of the responses.

    >>> rows = [("a", "gpt-5", "x"), ("a", "gpt-4", "x"), ("a", "claude", "y")]
    >>> crowd = Responses.from_rows(rows)
    >>> share_discount(crowd, {"gpt-5": "gpt", "gpt-4": "gpt"}, 1.0).weight.tolist()
    [0.5, 0.5, 1.0]
    """
    if groups is None:
        groups = {} if responses.runs is None else responses.runs.groups()
    if not groups:
        raise OptionError(
            "No groups are known. Give groups={judge: family}, or a column 'group' in the file."
        )
    names = [groups.get(worker, f"\0{j}") for j, worker in enumerate(responses.workers)]
    _, group = np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)
    weight = responses.weight_of_each()
    key = responses.task_of_each().astype(np.int64) * (int(group.max()) + 1)
    key = key + group[responses.worker_of_each()]
    total = np.bincount(key, weights=weight)[key]
    return replace(responses, weight=weight / (1.0 + dependence * np.maximum(total - 1.0, 0.0)))
