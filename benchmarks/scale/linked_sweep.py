"""One sweep with as many random links as tasks, beside one without links."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from benchmarks.measure import about, interleaved, keep, summary
from tiebreak import simulate
from tiebreak.inference import dirichlet, vb
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.tasks.coupling.ascents import set_up
from tiebreak.inference.workers import ConfusionMatrices
from tiebreak.kernels.arrays import default_threads
from tiebreak.kernels.contract import choose_backend
from tiebreak.links import graph as link_graph
from tiebreak.options import ExactLinkOptions

N_TASKS, N_WORKERS, N_CLASSES = 1_000_000, 1_000, 4
RESPONSES_PER_TASK = (5, 10)
WARM_UP = 5
PAIRS = 9


def measure(responses_per_task: int, n_tasks: int) -> dict[str, Any]:
    crowd = simulate.crowd(
        n_tasks, N_WORKERS, N_CLASSES, responses_per_task=responses_per_task, random_state=0
    )
    responses = crowd.responses
    links = simulate.links(crowd.gold, n_tasks, random_state=1).on(responses.tasks)
    prior = dirichlet.confusion_prior("diagonal", responses.workers, N_CLASSES)
    plain = vb.Problem(
        vb.lay_out(responses, vb.roles(n_tasks, None, None)),
        ClassPrior(np.ones(N_CLASSES)),
        ConfusionMatrices(prior, responses.n_workers),
        choose_backend("numba", responses.n_responses),
        default_threads(),
    )
    setup = set_up(plain, link_graph.imply(links, N_CLASSES), ExactLinkOptions())
    exact = setup.exact
    linked = vb.with_nodes(plain, exact, exact.task, setup.known)
    q = vb.majority(plain.tasks, N_CLASSES)
    beliefs = vb.implied_beliefs(plain, q)
    without = plain.open(q)
    among = linked.open(q.copy())
    for _ in range(WARM_UP):
        vb.update_tasks(plain, without, beliefs)
        swept = vb.update_tasks(linked, among, beliefs)
        beliefs = vb.update_beliefs(linked, swept.counts, swept.totals)
    pairs = interleaved(
        lambda: vb.update_tasks(plain, without, beliefs),
        lambda: vb.update_tasks(linked, among, beliefs),
        PAIRS,
    )
    return {
        "responses": responses.n_responses,
        "links": links.n_links,
        "components": exact.plan.report._asdict(),
        "sweep": summary(pairs),
    }


def main(n_tasks: int) -> None:
    keep(
        "linked_sweep",
        {
            "what": "one sweep, with as many random hard links as tasks / without links",
            "tasks": n_tasks,
            "classes": N_CLASSES,
            "rows": [measure(each, n_tasks) for each in RESPONSES_PER_TASK],
            **about(),
        },
    )


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else N_TASKS)
