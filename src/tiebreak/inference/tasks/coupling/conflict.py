"""Constraints that cannot all hold: whether there are any, and a smallest set of them, in order.

Classes that remain possible are propagated, each removal with the factor that made it, so that a
contradiction is told as the chain back from it. What propagation cannot see, an integer program
decides. A deletion filter then leaves a set of which none can be spared.
"""

from __future__ import annotations

import numpy as np

from tiebreak.data.ids import Ids
from tiebreak.errors import ConstraintError
from tiebreak.inference.tasks.coupling.constrain import ConstraintCodes
from tiebreak.links.factors import CountFactors, joined, of_links, smallest_conflict
from tiebreak.links.table import Links

GOLD, LINK, RULE = "gold", "link", "constraint"
Item = tuple[str, int]  # one of these words, and a place among them


def check(rules: ConstraintCodes, tasks: Ids, classes: Ids, links: Links | None) -> None:
    """Refuse constraints that cannot all hold, beside known labels and links."""
    tied = rules.network()
    node = tied.network.impossible()
    if node is None:
        return
    items, counts, n_nodes = _around(int(tied.variable[node]), rules)
    chain = [items[i] for i in smallest_conflict(counts, np.ones((n_nodes, rules.n_classes), bool))]
    raise ConstraintError(
        "constraints-contradict",
        chain=[_tell(item, rules, tasks, classes, links) for item in chain],
        kinds=[kind for kind, _ in chain],
        places=[at for _, at in chain],
    )


def _around(task: int, rules: ConstraintCodes) -> tuple[list[Item], CountFactors, int]:
    """Return what must hold for all tasks that constraints and links tie to one."""
    n_classes = rules.n_classes
    is_hard = np.isnan(rules.table.weights()[rules.at])
    items = [(RULE, int(at)) for at in rules.at[is_hard]]
    parts = [rules.counts.select(is_hard)]
    if rules.implied is not None:
        links = rules.implied.links
        left, right = rules.implied.task[links.left], rules.implied.task[links.right]
        log_odds = np.where(links.must, np.inf, -np.inf)
        parts.append(of_links(left, right, log_odds, n_classes))
        items += [(LINK, e) for e in range(links.n_links)]
    if rules.gold is not None:
        n, eye = len(rules.gold.task), np.eye(n_classes, dtype=np.int32)
        known = np.arange(n + 1), rules.gold.task, eye[rules.gold.label], np.zeros(n, np.int64)
        parts.append(CountFactors(*known, np.array([[-np.inf, 0.0]])))
        items += [(GOLD, g) for g in range(n)]
    counts = joined(parts)
    component = counts.components(rules.n_tasks)
    is_own = component == component[task]
    own = np.flatnonzero(is_own[counts.node[counts.start[:-1]]])
    counts = counts.select(own)
    counts = counts._replace(node=(np.cumsum(is_own) - 1)[counts.node])
    return [items[i] for i in own.tolist()], counts, int(is_own.sum())


def _tell(
    item: Item, rules: ConstraintCodes, tasks: Ids, classes: Ids, links: Links | None
) -> tuple[str, str]:
    """Return what must hold, and where that was said."""
    kind, at = item
    if kind == RULE:
        return rules.table.say(at), rules.table.where(at)
    if kind == GOLD:
        assert rules.gold is not None
        name = tasks[int(rules.gold.task[at])]
        return f"{name!r} is known as {classes[int(rules.gold.label[at])]!r}", GOLD
    assert rules.implied is not None
    codes = rules.implied.links
    left, right = (tasks[int(rules.implied.task[end[at]])] for end in (codes.left, codes.right))
    sign = "=" if codes.must[at] else "≠"
    where = LINK if links is None else links.where(int(codes.row[at]))
    return f"{left!r} {sign} {right!r}", where
