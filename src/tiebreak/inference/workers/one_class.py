"""Workers who can say one class only: rules that fire or stay silent, guard-rail models.

Such a worker's confusions are not identified. Where every response of a worker is c, the model can
always explain them by "says c whatever the class", and in a crowd of such workers it does: all
tasks fall to one class. So in a crowd most of whose responses come from one-class voters

- what such a voter says where the truth is another class stays at the prior, unless the other
  workers on its tasks contradict it: one who says c to every task is learnt as ever;
- the shares of classes stay at the prior, because how often a rule fires says nothing about them.

A crowd in which most responses come from workers of several classes is left as it is.
"""

from __future__ import annotations

import numpy as np

from tiebreak.data import Responses
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

NOT_ONE = -1  # the class of a worker who used several, or too few responses to tell
CHANCE = 0.01  # one class by chance: as likely as that is a worker who could have said others
MOST = 0.5  # of all responses: so many come from one-class voters in a crowd of rules
LIFT = 0.25  # of the way from chance to certainty: so far must others agree with such a worker


def rows_to_fix(responses: Responses) -> Mask | None:
    """Say which rows (n_workers, n_classes) are not learnt; None where the crowd is not of rules.

    A one-class voter of class c keeps its row for truth c: it is the others that nothing tells.

    >>> rules = [(f"t{i}", f"rule{i % 2}", "xy"[i % 2]) for i in range(20)]
    >>> rows_to_fix(Responses.from_rows(rules)).tolist()
    [[False, True], [True, False]]
    """
    counts = responses.weigh_labels()
    if not is_of_rules(counts):
        return None
    return rows_of_rules(counts, *count_agreement(responses))


def is_of_rules(counts: Floats) -> bool:
    """Say whether most responses come from one-class voters."""
    voters = one_class_voters(counts) != NOT_ONE
    n_given = counts.sum(axis=1)
    return bool(n_given[voters].sum() > MOST * n_given.sum())


def rows_of_rules(counts: Floats, agree: Floats, asked: Floats) -> Mask:
    """Say which rows are not learnt in a crowd of rules, from what was counted."""
    class_of = one_class_voters(counts)
    fixed = (class_of != NOT_ONE) & ~_is_contradicted(counts, agree, asked, class_of)
    rows = np.repeat(fixed[:, None], counts.shape[1], axis=1)
    rows[fixed, class_of[fixed]] = False
    return rows


def one_class_voters(counts: Floats) -> Codes:
    """Return the only class that each worker used, (n_workers,); `NOT_ONE` where chance may do it.

    A worker with n responses, all c, could have used other classes with probability f_c ** n, where
    f_c is the share of c among all responses.
    """
    share = counts.sum(axis=0) / (counts.sum() or 1.0)
    class_of = counts.argmax(axis=1)
    is_one = (counts > 0).sum(axis=1) == 1
    by_chance = share[class_of] ** counts.sum(axis=1)
    return np.where(is_one & (by_chance < CHANCE), class_of, NOT_ONE).astype(np.int32)


def count_agreement(responses: Responses) -> tuple[Floats, Floats]:
    """Count by worker the others' responses on their tasks, by weight: those that agree, and all.

    What a worker says again of a task is no agreement of others.
    """
    task = responses.task_of_each().astype(np.int64)
    worker = responses.worker_of_each()
    weight = responses.weight_of_each()

    def of_others(cell: Offsets) -> Floats:
        """Return the weight that others have in the cell of each response, times its own."""
        own = np.unique(cell * responses.n_workers + worker, return_inverse=True)[1]
        others = np.bincount(cell, weight)[cell] - np.bincount(own, weight)[own]
        return np.asarray(np.bincount(worker, weight * others, responses.n_workers), np.float64)

    return of_others(task * responses.n_classes + responses.label_of_each()), of_others(task)


def _is_contradicted(counts: Floats, agree: Floats, asked: Floats, class_of: Codes) -> Mask:
    """Say of which workers the others on their tasks agree no more than by chance.

    Where nobody else answered a worker's tasks, nobody contradicts.
    """
    share = counts.sum(axis=0) / (counts.sum() or 1.0)
    by_chance = share[np.maximum(class_of, 0)]
    found = (agree + by_chance) / (asked + 1.0)
    return np.asarray((asked > 0) & (found < by_chance + LIFT * (1.0 - by_chance)))
