"""Sweeps to the same tolerance with and without SQUAREM, on real crowds."""

from __future__ import annotations

from typing import Any

from benchmarks.measure import about, keep
from tiebreak import DawidSkene, Responses, VariationalBayes, datasets
from tiebreak.errors import FileError

NAMES = ("web", "trec", "product", "music_genre")
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "variational Bayes, diagonal prior": (VariationalBayes, {}),
    "variational Bayes, uniform prior": (VariationalBayes, {"confusion_prior": "uniform"}),
    "Dawid-Skene": (DawidSkene, {}),
}
TOLERANCE, MOST = 1e-6, 5_000


def compare(method: str, name: str, responses: Responses) -> dict[str, Any]:
    """Fit plainly and with SQUAREM; both end by the change of one plain sweep."""
    make, options = METHODS[method]
    fits = [
        make(tol=TOLERANCE, max_iter=MOST, accelerate=accelerate, **options).fit(responses)
        for accelerate in (False, True)
    ]
    plain, fast = fits
    same = plain.labels_.label == fast.labels_.label
    return {
        "method": method,
        "dataset": name,
        "plain_sweeps": plain.n_iter_,
        "sweeps": fast.n_iter_,
        "settled": plain.converged_ and fast.converged_,
        "bound_gain": fast.bounds_[-1] - plain.bounds_[-1],
        "bound": fast.bounds_[-1],
        "same_labels": float(same.mean()),
    }


def total(method: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up the sweeps of one method."""
    plain = sum(row["plain_sweeps"] for row in rows if row["method"] == method)
    fast = sum(row["sweeps"] for row in rows if row["method"] == method)
    return {
        "method": method,
        "plain_sweeps": plain,
        "sweeps": fast,
        "ratio": round(plain / fast, 2),
    }


def main() -> None:
    try:
        crowds = {name: datasets.load(name).responses for name in NAMES}
    except FileError as error:
        print(f"fewer_sweeps: left out, its datasets are not here.\n{error}")
        return
    rows = [compare(method, name, crowd) for method in METHODS for name, crowd in crowds.items()]
    keep(
        "fewer_sweeps",
        {
            "what": "sweeps until no probability moves by the tolerance in a plain sweep",
            "tolerance": TOLERANCE,
            "rows": rows,
            "totals": [total(method, rows) for method in METHODS],
            **about(),
        },
    )


if __name__ == "__main__":
    main()
