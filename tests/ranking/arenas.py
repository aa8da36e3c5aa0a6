"""Verdicts drawn from the model, for tests of rankings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import Ids, PairVerdicts
from tiebreak.kernels import Codes, Floats

PLAIN: dict[str, Any] = {"judges": False, "prompts": False, "position": False}


class Arena(NamedTuple):
    pairs: PairVerdicts
    strength: Floats


def named(prefix: str, n: int) -> Ids:
    return Ids([f"{prefix}{k:03}" for k in range(n)])


def codes(values: Any) -> Codes:
    return np.asarray(values, dtype=np.int32)


def drawn(
    seed: int,
    n_items: int = 6,
    n_judges: int = 5,
    n_prompts: int = 12,
    n_each: int = 10,
    on_prompts: float = 0.0,
    first_judges: int = 0,
    weight: bool = False,
) -> Arena:
    """Draw verdicts; the first few judges nearly always take what is shown first."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(0.0, 1.0, n_items)
    strength -= strength.mean()
    prompt = np.repeat(np.arange(n_prompts), n_each)
    n = len(prompt)
    first = rng.integers(0, n_items, n)
    second = (first + rng.integers(1, n_items, n)) % n_items
    judge = rng.integers(0, n_judges, n)
    place, ties = rng.normal(0.2, 0.3, n_judges), rng.normal(-0.5, 0.7, n_judges)
    place[:first_judges] = 4.0
    v = rng.normal(0.0, on_prompts, (n_items, n_prompts)) if on_prompts else np.zeros((1, 1))
    at = v[:, prompt] if on_prompts else np.zeros((n_items, n))
    row = np.arange(n)
    eta = strength[first] + at[first, row] - strength[second] - at[second, row] + place[judge]
    scores = np.stack([eta / 2.0, -eta / 2.0, ties[judge]], axis=1)
    verdict = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    pairs = PairVerdicts(
        codes(first),
        codes(second),
        codes(verdict),
        named("item", n_items),
        codes(judge),
        named("judge", n_judges),
        codes(prompt),
        named("prompt", n_prompts),
        rng.uniform(0.5, 2.0, n) if weight else None,
    )
    return Arena(pairs, strength)
