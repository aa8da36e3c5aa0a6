"""Exact links: linked tasks are inferred jointly, component by component.

The map, in the order of a fit:

    links.graph  what follows from links and gold: tasks that hard links make one are a group
    plan         open groups are nodes, links between them edges: which algorithm infers each
                 component, in which order its nodes are visited, and where each soft link acts
                 (elimination: min-fill, where a component has loops)
    nodes        the responses on the tasks of a node, laid out as those of one task
    infer        `ExactLinks`, the link model: belief propagation and variable elimination
                 (link_errors: where the error rates of links are learnt)
    ascents      joint inference, set up once and climbed from one start or several (starts: which,
                 where links tie three tasks or more)
    fit          the whole: ascend, calibrate, and decode, one class per task that breaks no link

A task has these numbers on its way:

    number                            made by                  found in
    row of the links file             files                    Links.row, errors
    code among the ids of links       links.columns            Links.left, right
    code among the ids of responses   Links.on                 LinkCodes, gold, q
    row, where equal tasks are one    response_patterns        Problem, q
    place among linked tasks          imply, sorted by code    Implications
    group, and whether flipped        imply                    Implications.group, flip
    node, in the order of visits      plan                     Plan, Network, ExactLinks.belief

Inside this package "task" is the row of q, whether or not equal tasks were made one. `links.check`
also counts places among the linked tasks.

An example: five tasks with one response each, by one worker. Tasks 1 and 4 must be the same, 3 and
4 cannot be, and a link that may be wrong (log-odds 2) says that 2 and 3 are the same.

>>> import numpy as np
>>> from tiebreak.inference.tasks.coupling.nodes import nodes_of
>>> from tiebreak.inference.tasks.coupling.plan import log_odds_of, plan
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

With three classes the must-link makes {1, 4} group 0; {2} is group 1 and {3} group 2. Edges join
groups 0 – 2 (hard) and 1 – 2 (soft): a path, visited from group 0 as 0, 2, 1.

>>> implied = imply(links, 3)
>>> implied.task.tolist(), implied.group.tolist()  # by place
([1, 2, 3, 4], [0, 1, 2, 0])
>>> implied.left.tolist(), implied.right.tolist()
([0], [2])
>>> planned = plan(implied, soft, 3)
>>> planned.node.tolist()  # by group
[0, 2, 1]
>>> planned.left.tolist(), planned.right.tolist()  # by edge
([0, 2], [1, 1])
>>> planned.coupling(log_odds[~hard]).tolist()  # that the ends are equal
[-inf, 2.0]

The node of {1, 4} is one task with both responses and two draws of the class.

>>> label = np.array([0, 1, 1, 0, 1], np.int32)  # one worker: the code of a response is its label
>>> tasks = lay_out(np.arange(6), label, np.zeros(5, np.int8), 3, 3)
>>> nodes = nodes_of(tasks, implied, planned.node, 3)
>>> nodes.task.tolist(), nodes.node.tolist(), nodes.draws.tolist()
([1, 4, 3, 2], [0, 0, 1, 2], [2.0, 1.0, 1.0])
>>> [part.tolist() for part in np.split(nodes.tasks.code, nodes.tasks.start[1:-1])]
[[1, 1], [0], [1]]

With two classes the cannot-link merges too: {1, 3, 4} is group 0, with 3 flipped, {2} is group 1.
Tasks 2 and 3 agree when their groups differ, so the log-odds of the edge change sign. Codes of
flipped tasks are higher by 2.

>>> implied = imply(links, 2)
>>> implied.group.tolist(), implied.flip.tolist(), implied.left.tolist()
([0, 1, 0, 0], [0, 0, 1, 0], [])
>>> planned = plan(implied, soft, 2)
>>> planned.node.tolist(), planned.coupling(log_odds[~hard]).tolist()
([0, 1], [-2.0])
>>> tasks = lay_out(np.arange(6), label, np.zeros(5, np.int8), 2, 2)
>>> nodes = nodes_of(tasks, implied, planned.node, 2)
>>> nodes.task.tolist(), nodes.draws.tolist(), nodes.flipped_draws.tolist()
([1, 3, 4, 2], [2.0, 1.0], [1.0, 0.0])
>>> [part.tolist() for part in np.split(nodes.tasks.code, nodes.tasks.start[1:-1])]
[[1, 2, 1], [1]]
"""
