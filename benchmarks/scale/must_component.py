"""One must-component of a million tasks with a thousand cannot-links: memory linear in tasks."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import about, keep, peak_bytes, seconds
from tiebreak import Links, VariationalBayes, simulate
from tiebreak.data.ids import Ids
from tiebreak.options import ExactLinkOptions, MeanFieldOptions

SIZES = (250_000, 500_000, 1_000_000)
N_CANNOT = 1_000


def links_of(n_tasks: int, tasks: Ids) -> Links:
    """Chain all but the last tasks by must-links, and set the last ones apart from the chain."""
    chained = n_tasks - N_CANNOT
    left = np.concatenate([np.arange(chained - 1), np.arange(N_CANNOT)]).astype(np.int32)
    right = np.concatenate([np.arange(1, chained), np.arange(chained, n_tasks)]).astype(np.int32)
    must = np.arange(len(left)) < chained - 1
    return Links(left, right, must, tasks, row=np.arange(len(left)))


def main() -> None:
    before = peak_bytes()
    rows = []
    for n_tasks in SIZES:
        crowd = simulate.crowd(n_tasks, 100, 3, responses_per_task=3, random_state=0)
        links = links_of(n_tasks, crowd.responses.tasks)
        for inference in ("exact", "mean-field"):
            is_exact = inference == "exact"
            options = ExactLinkOptions() if is_exact else MeanFieldOptions(strength=1.0)
            model = VariationalBayes(link_options=options, max_iter=20)
            took = seconds(lambda m=model, c=crowd, k=links: m.fit(c.responses, links=k))
            rows.append(
                {
                    "tasks": n_tasks,
                    "inference": inference,
                    "seconds": round(took, 3),
                    "sweeps": model.n_iter_,
                    "peak_bytes_a_task": round((peak_bytes() - before) / n_tasks),
                    "broken": len(model.violations_ or ()),
                }
            )
    keep(
        "must_component",
        {
            "what": "fit with one must-component of nearly all tasks and 1,000 cannot-links",
            "closed_must_pairs": SIZES[-1] * (SIZES[-1] - 1) // 2,
            "rows": rows,
            **about(),
        },
    )


if __name__ == "__main__":
    main()
