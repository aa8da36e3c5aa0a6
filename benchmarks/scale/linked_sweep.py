"""One sweep with as many random links as tasks, beside one without links."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import about, interleaved, keep, summary
from tiebreak import link_graph, simulate
from tiebreak.inference import priors, vb
from tiebreak.inference.exact_links import merge as merging
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.kernels import compiled
from tiebreak.kernels.threads import default_threads

N_TASKS, N_WORKERS, N_CLASSES = 1_000_000, 1_000, 4
RESPONSES_PER_TASK = (5, 10)
WARM_UP = 5
PAIRS = 9


def measure(responses_per_task: int) -> dict[str, Any]:
    crowd = simulate.crowd(
        N_TASKS, N_WORKERS, N_CLASSES, responses_per_task=responses_per_task, random_state=0
    )
    responses = crowd.responses
    links = simulate.links(crowd.gold, N_TASKS, random_state=1).on(responses.tasks)
    plain = vb.Problem(
        vb.lay_out(responses, vb.roles(N_TASKS, None, None)),
        np.ones(N_CLASSES),
        priors.confusion_prior("diagonal", responses.workers, N_CLASSES),
        compiled,
        default_threads(),
    )
    log_odds, hard = merging.log_odds_of(links, None)
    merged = merging.merge(link_graph.imply(links, N_CLASSES))
    soft = links.keep(~hard)
    fixed = N_CLASSES, compiled, default_threads()
    exact = ExactLinks(plain.tasks, merged, soft, log_odds[~hard], *fixed, takes_everyone=True)
    linked = vb.with_nodes(plain, exact, exact.task, exact.merged.known())
    q = vb.majority(plain.tasks, N_CLASSES)
    beliefs = vb.implied_beliefs(plain, q)
    r = q.copy()
    for _ in range(WARM_UP):
        vb.update_tasks(plain, plain.open(q), beliefs)
        swept = vb.update_tasks(linked, r, beliefs)
        beliefs = vb.update_beliefs(linked, swept.counts, swept.totals)
    pairs = interleaved(
        lambda: vb.update_tasks(plain, plain.open(q), beliefs),
        lambda: vb.update_tasks(linked, r, beliefs),
        PAIRS,
    )
    return {
        "responses": responses.n_responses,
        "links": links.n_links,
        "components": exact.plan.report._asdict(),
        "sweep": summary(pairs),
    }


def main() -> None:
    keep(
        "linked_sweep",
        {
            "what": "one sweep, with as many random hard links as tasks / without links",
            "tasks": N_TASKS,
            "classes": N_CLASSES,
            "rows": [measure(each) for each in RESPONSES_PER_TASK],
            **about(),
        },
    )


if __name__ == "__main__":
    main()
