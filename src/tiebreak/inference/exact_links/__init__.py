"""Exact links: linked tasks are inferred jointly, component by component.

The map, in the order of a fit:

    merge      tasks that hard links make one become a node; other links are edges between nodes
    plan       which algorithm infers each component, and in which order its nodes are visited:
               with merge in `plan.py` (elimination_order: min-fill, where a component has loops)
    place      where each link acts: on an edge, on one node, or nowhere
    pool       the responses on the tasks of a node, laid out as those of one task: with place in
               `place.py`
    infer      `ExactLinks`, the link model: belief propagation and variable elimination
    ascents    joint inference, set up once and climbed from one start or several (starts: which,
               where links tie three tasks or more)
    fit        the whole: ascend, calibrate, and
    decode     one class per task that breaks no hard link: in `fit.py`
    numbers    the array types of the table below

A task has these numbers on its way:

    number                            array type   made by                  found in
    row of the links file             -            files                    Links.row, errors
    code among the ids of links       -            links.columns            Links.left, right
    code among the ids of responses   -            Links.on                 LinkCodes, gold, q
    row, where equal tasks are one    TaskCodes    response_patterns        Problem, q
    place among linked tasks          -            merge, sorted by code    rows of Merged.node
    node, and whether flipped         NodeCodes    merge                    Merged.node, left_node
    tied node                         TiedCodes    plan, sorted by node     inside plan only
    visit                             VisitCodes   plan                     Plan, Network, belief
    pool node: visit + n_alone        PoolCodes    pool                     Pool.node, ExactLinks.q

Inside this package "task" is the row of q (TaskCodes), whether or not equal tasks were made one.
`links.check` also counts places among the linked tasks.

An example: five tasks with one response each, by one worker. Tasks 1 and 4 must be the same, 3 and
4 cannot be, and a link that may be wrong (log-odds 2) says that 2 and 3 are the same.

>>> import numpy as np
>>> from tiebreak.inference.exact_links.place import place, pool
>>> from tiebreak.inference.exact_links.plan import log_odds_of, merge, plan
>>> from tiebreak.kernels.layout import lay_out
>>> from tiebreak.links.graph import LinkCodes, imply
>>> links = LinkCodes(
...     left=np.array([1, 2, 3], np.int32),
...     right=np.array([4, 3, 4], np.int32),
...     must=np.array([True, True, False]),
...     weight=np.array([np.nan, 2.0, np.nan]),
...     who=None,
...     row=np.arange(3),
... )
>>> log_odds, hard = log_odds_of(links, None)
>>> soft = links.keep(~hard)
>>> log_odds.tolist(), hard.tolist()
([inf, 2.0, -inf], [True, False, True])
>>> label = np.array([0, 1, 1, 0, 1], np.int32)  # one worker: the code of a response is its label

With three classes the must-link makes {1, 4} node 0; {2} is node 1 and {3} node 2. Edges join
nodes 0 – 2 (hard) and 1 – 2 (soft): a path, visited from node 0 as 0, 2, 1.

>>> merged = merge(imply(links, 3))
>>> merged.task.tolist(), merged.node.tolist()  # by place
([1, 2, 3, 4], [0, 1, 2, 0])
>>> merged.left_node.tolist(), merged.right_node.tolist()
([0], [2])
>>> planned = plan(merged, soft, 3)
>>> planned.visit.tolist()  # by node
[0, 2, 1]
>>> planned.left_visit.tolist(), planned.right_visit.tolist()  # by edge
([0, 2], [1, 1])
>>> place(merged, soft, planned).coupling(log_odds[~hard]).tolist()  # that the ends are equal
[-inf, 2.0]

Pooled with everyone, task 0 comes first, as a node of its own. Code 3 stands for the prior of the
second task of node {1, 4} (see `place.py`).

>>> tasks = lay_out(np.arange(6), label, np.zeros(5, np.int8), 3, 3)
>>> pooled = pool(tasks, merged, planned, 3, everyone=True)
>>> pooled.n_alone, pooled.task.tolist(), pooled.node.tolist()
(1, [0, 1, 4, 3, 2], [0, 1, 1, 2, 3])
>>> [part.tolist() for part in np.split(pooled.nodes.code, pooled.nodes.start[1:-1])]
[[0], [1, 1, 3], [0], [1]]

With two classes the cannot-link merges too: {1, 3, 4} is node 0, with 3 flipped, {2} is node 1.
Tasks 2 and 3 agree when their nodes differ, so the log-odds of the edge change sign.

>>> merged = merge(imply(links, 2))
>>> merged.node.tolist(), merged.flip.tolist(), merged.left_node.tolist()
([0, 1, 0, 0], [0, 0, 1, 0], [])
>>> planned = plan(merged, soft, 2)
>>> planned.visit.tolist(), place(merged, soft, planned).coupling(log_odds[~hard]).tolist()
([0, 1], [-2.0])

Pooled alone, the codes of flipped tasks are higher by 4: two labels, the prior, minus the prior.

>>> tasks = lay_out(np.arange(6), label, np.zeros(5, np.int8), 2, 2)
>>> pooled = pool(tasks, merged, planned, 2, everyone=False)
>>> pooled.n_alone, pooled.task.tolist(), pooled.node.tolist(), pooled.flip.tolist()
(0, [1, 3, 4, 2], [0, 0, 0, 1], [0, 1, 0, 0])
>>> [part.tolist() for part in np.split(pooled.nodes.code, pooled.nodes.start[1:-1])]
[[1, 4, 6, 1, 2], [1]]
"""
