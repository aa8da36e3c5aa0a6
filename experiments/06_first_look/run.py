"""Count wrong labels on ten real crowds: majority vote, tiebreak, tiebreak with links."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from common import NAMES, RESULTS, made_on

import tiebreak as tb

FOLDER = Path(__file__).parent
DRAWS = 5
FIRST_SEED = 700
LINKS_PER_TASK = 0.5


def wrong(model: tb.MajorityVote | tb.Auto, gold: tb.Gold) -> float:
    """Return the share of gold that the labels miss."""
    return 1.0 - tb.evaluate.accuracy(model.labels_, gold)


def measure(name: str) -> dict[str, float]:
    responses, gold, _ = tb.datasets.load(name)
    n_links = int(LINKS_PER_TASK * len(gold))
    linked = []
    for seed in range(FIRST_SEED, FIRST_SEED + DRAWS):
        links = tb.simulate.links(gold, n_links, random_state=seed)
        linked.append(wrong(tb.Auto().fit(responses, links=links), gold))
    return {
        "majority": wrong(tb.MajorityVote().fit(responses), gold),
        "tiebreak": wrong(tb.Auto().fit(responses), gold),
        "with links": float(np.mean(linked)),
    }


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = {}
        for name in NAMES:
            cells[name] = measure(name)
            print(name, cells[name], flush=True)
    about = {**made_on(), "draws": DRAWS, "links_per_task": LINKS_PER_TASK}
    text = json.dumps({"about": about, "cells": cells}, indent=1)
    (FOLDER / RESULTS).write_text(text + "\n")


if __name__ == "__main__":
    main()
