"""Asking with the committee beside `VariationalBayes`: the cases of experiments/03_asking.

TIEBREAK_DATA=… python experiments/09_default/sessions.py [DATASETS]

One trusted person who is asked labels by margin, and labels and links together where a label costs
1, 2 and 3; the same with free links; two people of whom one errs. A fit of
`VariationalBayes` chooses the questions, as sessions do, and both methods label from the same
answers (`vb`, `auto`); and, where margins choose, the committee chooses them too (`auto_asks`).
Other questions are chosen by what `VariationalBayes` finds. Figures are macro-F, the mean over all
rounds of a case. Results go into sessions.json, which is added to.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "03_asking"))
sys.path.append(str(Path(__file__).parents[1]))

import asking
import crowds
import two_people

import tiebreak as tb

RESULTS = Path(__file__).parent / "sessions.json"
SMALL = ("bluebird", "rte", "zencrowd_us", "zencrowd_india", "dog", "web", "music_genre")
SEED = 400
ROUNDS, FREE_ROUNDS = 8, 20  # fewer than there, for time: what is compared is given the same
METHODS: dict[str, Any] = {
    "labels 1": lambda crowd: asking.ask_labels(crowd, SEED, 1.0),
    "mix 1": lambda crowd: asking.ask_mixed(crowd, SEED, 1.0),
    "mix 2": lambda crowd: asking.ask_mixed(crowd, SEED, 2.0),
    "mix 3": lambda crowd: asking.ask_mixed(crowd, SEED, 3.0),
    "free": lambda crowd: asking.ask_free(crowd, SEED),
    "wrong 0.1": lambda crowd: asking.ask_two_people(crowd, SEED, 0.1, as_gold=False),
}


class Watched:
    """`VariationalBayes` as sessions fit it, or the committee; keeps what it was given."""

    by_committee = False
    given: Any = None

    def __init__(self, **options: Any) -> None:
        self._options = options

    def fit(self, responses: Any, **given: Any) -> Any:
        Watched.given = (self._options, responses, given)
        model = committee(self._options) if Watched.by_committee else plain(**self._options)
        return model.fit(responses, **given)


def committee(options: dict[str, Any]) -> Any:
    return tb.Auto(backend="numba", n_threads=1, **options)


plain = crowds.new_model


def run_case(method: Any, crowd: crowds.Asked, *, asks_alone: bool) -> dict[str, float]:
    """Return macro-F by both methods, the mean over rounds."""
    both: list[tuple[float, float]] = []
    Watched.by_committee = False

    def score(crowd: crowds.Asked, label: Any) -> float:
        of_vb = float(crowds.macro_f(crowd, label))
        if Watched.given is None:
            return of_vb
        options, responses, given = Watched.given
        model = committee(options).fit(responses, links=given.get("links"), gold=given.get("gold"))
        both.append((of_vb, float(crowds.macro_f(crowd, model.labels_.label))))
        return of_vb

    Watched.given = None
    asking.macro_f = two_people.macro_f = score
    method(crowd)
    of_vb, of_auto = np.mean(both, axis=0)
    alone: list[float] = []
    Watched.by_committee = True

    def count(crowd: crowds.Asked, label: Any) -> float:
        alone.append(float(crowds.macro_f(crowd, label)))
        return alone[-1]

    if not asks_alone:
        return {"vb": float(of_vb), "auto": float(of_auto)}
    asking.macro_f = count
    method(crowd._replace(plain=committee({}).fit(crowd.responses)))
    asks = float(np.mean(alone[-len(both) :]))
    return {"vb": float(of_vb), "auto": float(of_auto), "auto_asks": asks}


def main() -> None:
    warnings.simplefilter("ignore")
    asking.new_model = two_people.new_model = Watched
    crowds.CONFIG["rounds"] = ROUNDS
    crowds.CONFIG["free"]["rounds"] = FREE_ROUNDS
    rows = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []
    done = {(row["unit"], row["method"]) for row in rows}
    for name in sys.argv[1:] or SMALL:
        for title, method in METHODS.items():
            if (name, title) in done or (
                title == "free" and name not in crowds.CONFIG["free"]["datasets"]
            ):
                continue
            found = run_case(method, crowds.load(name), asks_alone=title == "labels 1")
            rows.append(
                {"unit": name, "method": title} | {k: round(v, 4) for k, v in found.items()}
            )
            print(json.dumps(rows[-1]), flush=True)
            text = ",\n ".join(json.dumps(row) for row in rows)
            RESULTS.write_text(f"[\n {text}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
