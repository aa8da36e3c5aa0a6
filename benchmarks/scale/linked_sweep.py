"""One sweep with as many random links as tasks, beside one without links."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from benchmarks.measure import about, interleaved, keep, summary
from tiebreak import simulate
from tiebreak.inference import dirichlet
from tiebreak.inference.climb import Problem, Sweeps, step
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.door import lay_out
from tiebreak.inference.tasks import Independent
from tiebreak.inference.tasks.coupling.linked import with_links
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
    plain = Problem(
        lay_out(responses),
        Independent(ClassPrior(np.ones(N_CLASSES))),
        ConfusionMatrices(prior, responses.n_workers),
        choose_backend("numba", responses.n_responses),
        default_threads(),
    )
    linked = with_links(plain, link_graph.imply(links, N_CLASSES), ExactLinkOptions())
    q = plain.votes()
    parameters = plain.implied(q)
    without, among = Sweeps(plain, q), Sweeps(linked, q.copy())
    memory = None
    for _ in range(WARM_UP):
        without.sweep(parameters, plain.logs(parameters), None)
        parameters, _, sums = step(linked, among, parameters, memory)
        memory = sums.memory
    pairs = interleaved(
        lambda: without.sweep(parameters, plain.logs(parameters), None),
        lambda: among.sweep(parameters, linked.logs(parameters), memory),
        PAIRS,
    )
    return {
        "responses": responses.n_responses,
        "links": links.n_links,
        "components": linked.tasks.plan.report._asdict(),
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
