"""Exact links: linked tasks are inferred jointly, component by component.

The map, in the order of a fit:

    links.graph  what follows from links and gold: tasks that hard links make one are a group
    plan         open groups are nodes, links between them edges: which algorithm infers each
                 component, in which order its nodes are visited, and where each soft link acts
                 (links.elimination: in which order small components with loops are summed out)
    linked       `Linked`, the task model: members and nodes, belief propagation and elimination,
                 one class per task that breaks no link
                 (link_errors: where the error rates of links are learnt)
    starts       where a climb begins, where links tie three tasks or more
    constrain    constraints, at the end: counts over the same nodes, links among them
                 (links.factors: how they are inferred; conflict: which of them cannot hold)

A task has these numbers on its way:

    number                            made by                  found in
    row of the links file             files                    Links.row, errors
    code among the ids of links       links.columns            Links.left, right
    code among the ids of responses   Links.on                 LinkCodes, gold, q
    row, where equal tasks are one    inference.door           Problem, q
    place among linked tasks          imply, sorted by code    Implications
    group, and whether flipped        imply                    Implications.group, flip
    node, in the order of visits      plan                     Plan, Network, Joint

Inside this package "task" is the row of q, whether or not equal tasks were made one; members are
the open linked rows, in the order of their nodes. `links.check`
also counts places among the linked tasks.

An example: five tasks with one response each, by one worker. Tasks 1 and 4 must be the same, 3 and
4 cannot be, and a link that may be wrong (log-odds 2) says that 2 and 3 are the same.

>>> import numpy as np
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

Members lie by node, so that the score of a node is the sum over a run of them:

>>> from tiebreak.inference.climb import Problem
>>> from tiebreak.inference.dirichlet import ClassPrior
>>> from tiebreak.inference.tasks.coupling.linked import with_links
>>> from tiebreak.inference.tasks import Independent
>>> from tiebreak.kernels import reference
>>> from tiebreak.options import ExactLinkOptions
>>> label = np.array([0, 1, 1, 0, 1], np.int32)  # one worker: the code of a response is its label
>>> def linked(n_classes):
...     rows = lay_out(np.arange(6), label, np.zeros(5, np.int8), n_classes, n_classes)
...     tasks = Independent(ClassPrior(np.ones(n_classes)))
...     plain = Problem(rows, tasks, None, reference)
...     return with_links(plain, imply(links, n_classes), ExactLinkOptions()).tasks
>>> tasks = linked(3)
>>> tasks.task.tolist(), tasks.node.tolist()
([1, 4, 3, 2], [0, 0, 1, 2])
>>> tasks.add_up(np.eye(3)[label[tasks.task]]).tolist()  # votes of the nodes
[[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]

With two classes the cannot-link merges too: {1, 3, 4} is group 0, with 3 flipped, {2} is group 1.
Tasks 2 and 3 agree when their groups differ, so the log-odds of the edge change sign. Scores of
flipped members are added with the classes exchanged.

>>> implied = imply(links, 2)
>>> implied.group.tolist(), implied.flip.tolist(), implied.left.tolist()
([0, 1, 0, 0], [0, 0, 1, 0], [])
>>> planned = plan(implied, soft, 2)
>>> planned.node.tolist(), planned.coupling(log_odds[~hard]).tolist()
([0, 1], [-2.0])
>>> tasks = linked(2)
>>> tasks.task.tolist(), tasks.node.tolist(), tasks.flip.tolist()
([1, 3, 4, 2], [0, 0, 0, 1], [0, 1, 0, 0])
>>> tasks.add_up(np.eye(2)[label[tasks.task]]).tolist()
[[0.0, 3.0], [0.0, 1.0]]
"""
