"""The maximum and its curvature: against an optimiser that knows nothing of blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking.arenas import PLAIN, drawn
from scipy.optimize import minimize
from scipy.special import log_softmax

import tiebreak as tb
from tiebreak.data import TIE, PairVerdicts
from tiebreak.kernels import Floats
from tiebreak.ranking import BradleyTerry
from tiebreak.ranking.model import Davidson, Fit, Parts

pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")

CASES: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "judges": {"prompts": False},
    "no place": {"prompts": False, "position": False},
    "prompts": {"judges": False},
    "all": {},
    "sharp": {"sharpness": True},
    "sharp judges": {"sharpness": True, "prompts": False},
}


class Slow:
    """The same objective written row by row, with effects as dense vectors."""

    def __init__(self, pairs: PairVerdicts, model: BradleyTerry) -> None:
        self.pairs, self.model = pairs, model
        n, m, q = len(pairs.items), len(pairs.workers), len(pairs.prompts)
        sizes = {"s": n, "p": 1, "t": 1, "p_judge": m, "t_judge": m, "g": m, "v": n * q}
        known = model.variance_
        self.variance = {"s": 9.0, "t": 10.0} | ({"p": 1.0} if model.position else {}) | known
        if model.sharpness:
            self.variance["g"] = 0.09
        self.at: dict[str, slice] = {}
        end = 0
        for name, size in sizes.items():
            if name in self.variance:
                self.at[name] = slice(end, end + size)
                end += size
        self.n = end
        assert pairs.prompt is not None
        self.cell = [side.astype(int) * q + pairs.prompt for side in (pairs.first, pairs.second)]

    def loss(self, x: Floats) -> float:
        pairs, zero = self.pairs, np.zeros(max(self.n, 1))
        part = {name: x[at] for name, at in self.at.items()}
        s, v = part["s"], part.get("v", zero)
        g = part.get("g", zero)
        g = g - g.mean()
        worker: Any = pairs.worker
        delta = s[pairs.first] - s[pairs.second]
        if "v" in part:
            delta = delta + v[self.cell[0]] - v[self.cell[1]]
        eta = np.exp(g[worker]) * delta + part.get("p", zero)[0] + part.get("p_judge", zero)[worker]
        nu = part["t"][0] + part.get("t_judge", zero)[worker]
        logs = log_softmax(np.stack([eta / 2.0, -eta / 2.0, nu], axis=1), axis=1)
        weight = 1.0 if pairs.weight is None else pairs.weight
        likelihood = (weight * logs[np.arange(len(pairs)), pairs.verdict]).sum()
        penalty = sum((part[name] ** 2).sum() / self.variance[name] for name in part if name != "g")
        penalty += (g**2).sum() / self.variance.get("g", 1.0)
        return float(-(likelihood - 0.5 * penalty))


@pytest.mark.parametrize("name", CASES)
def test_the_maximum_is_that_of_an_optimiser(name: str) -> None:
    arena = drawn(3, n_items=4, n_judges=3, n_prompts=4, n_each=12, on_prompts=0.7, weight=True)
    model = tb.BradleyTerry(**CASES[name]).fit(arena.pairs)
    slow = Slow(arena.pairs, model)
    found = minimize(slow.loss, np.zeros(slow.n), method="BFGS", options={"gtol": 1e-6})
    s = found.x[slow.at["s"]]
    assert model.strengths_ == pytest.approx(s - s.mean(), abs=2e-4)
    judges: Any = model.judges_
    if "p_judge" in slow.at:
        place = found.x[slow.at["p"]] + found.x[slow.at["p_judge"]]
        assert [each.first_place for each in judges] == pytest.approx(place, abs=2e-4)


@pytest.mark.parametrize("name", [name for name in CASES if "sharp" not in name])
def test_covariance_and_variances_are_those_of_the_whole_curvature(name: str) -> None:
    """H by finite differences, inverted whole; its traces also meet the variances of effects."""
    arena = drawn(5, n_items=4, n_judges=3, n_prompts=4, n_each=12, on_prompts=0.7)
    model = tb.BradleyTerry(**CASES[name]).fit(arena.pairs)
    slow = Slow(arena.pairs, model)
    best = minimize(slow.loss, np.zeros(slow.n), method="BFGS", options={"gtol": 1e-7}).x
    step, unit = 1e-3, np.eye(slow.n)
    f = slow.loss
    hessian = np.array(
        [
            [
                (f(best + a + b) - f(best + a - b) - f(best - a + b) + f(best - a - b))
                / (4 * step**2)
                for b in step * unit
            ]
            for a in step * unit
        ]
    )
    inverse = np.linalg.inv(hessian)
    centre = np.eye(4) - 0.25
    at = slow.at["s"]
    assert model.covariance_ == pytest.approx(centre @ inverse[at, at] @ centre, abs=2e-4)
    for effect, variance in model.variance_.items():
        if effect != "v":  # of which the next test is
            x, spread = best[slow.at[effect]], np.diag(inverse)[slow.at[effect]]
            squares = (x**2).sum() + spread.sum()
            assert squares / variance == pytest.approx(len(x) - 1 + np.sqrt(variance), rel=5e-3)
    for judge, row in zip(model.judges_, range(3), strict=False):
        if "p_judge" in slow.at:
            of = np.zeros(slow.n)
            of[slow.at["p"]] = 1.0
            of[slow.at["p_judge"].start + row] = 1.0
            width = (judge.first_place_high - judge.first_place_low) / (2 * 1.6449)
            assert width == pytest.approx(np.sqrt(of @ inverse @ of), rel=1e-3)


def marginal(model: Davidson, fit: Fit, of: str, factor: float) -> float:
    """Return Laplace's log marginal likelihood with a variance times a factor, and its prior."""
    for name, variance in fit.variance.items():
        model.precision[model.at[name]] = 1.0 / variance
    variance = fit.variance[of] * factor
    model.precision[model.at[of]] = 1.0 / variance
    here = model.look(fit.x)
    for _ in range(8):
        gradient, curvature = model.slopes(here)
        here = model.look(here.x + curvature.solve(gradient))
    of_effects = len(fit.of(of)) * np.log(variance)
    prior = 0.5 * np.log(variance) - np.sqrt(variance)
    return float(here.objective - 0.5 * (of_effects + model.slopes(here)[1].log_det) + prior)


def test_the_variance_of_items_on_prompts_is_the_likeliest() -> None:
    arena = drawn(5, n_items=6, n_prompts=20, n_each=12, on_prompts=0.7)
    model = Davidson(arena.pairs, Parts(True, True, True))
    fit = model.maximise()
    ends = [marginal(model, fit, "v", factor) for factor in (0.98, 1.0, 1.02)]
    assert ends[1] > max(ends[0], ends[2])
    assert ends[0] == pytest.approx(ends[2], abs=0.05 * abs(ends[1] - ends[0]) + 1e-4)


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.sampled_from(list(CASES)))
def test_order_of_rows_and_equal_rows_do_not_matter(seed: int, name: str) -> None:
    pairs = drawn(seed, n_items=4, n_judges=3, n_prompts=5, n_each=8, on_prompts=0.5).pairs
    model = tb.BradleyTerry(**CASES[name]).fit(pairs)
    rng = np.random.default_rng(seed)
    moved = tb.BradleyTerry(**CASES[name]).fit(pairs.take(rng.permutation(len(pairs))))
    assert moved.strengths_ == pytest.approx(model.strengths_, abs=1e-6)
    assert moved.covariance_ == pytest.approx(model.covariance_, abs=1e-6)
    twice = pairs.take(np.repeat(np.arange(len(pairs)), 2))
    weighed = replace(pairs, weight=np.full(len(pairs), 2.0))
    both = [tb.BradleyTerry(**CASES[name]).fit(each) for each in (twice, weighed)]
    assert both[0].strengths_ == pytest.approx(both[1].strengths_, abs=1e-9)


@settings(max_examples=5)
@given(st.integers(0, 10**6))
def test_turned_pairs_give_the_same_ranking_without_place(seed: int) -> None:
    pairs = drawn(seed).pairs
    turned = replace(
        pairs,
        first=pairs.second,
        second=pairs.first,
        verdict=np.where(pairs.verdict == TIE, TIE, 1 - pairs.verdict).astype(np.int32),
    )
    one, other = (tb.BradleyTerry(position=False).fit(each) for each in (pairs, turned))
    assert one.strengths_ == pytest.approx(other.strengths_, abs=1e-6)
    # With place, an advantage of the first becomes one of the second.
    one, other = (tb.BradleyTerry().fit(each) for each in (pairs, turned))
    assert one.strengths_ == pytest.approx(other.strengths_, abs=1e-5)
    places = [[judge.first_place for judge in each.judges_] for each in (one, other)]
    assert places[0] == pytest.approx([-each for each in places[1]], abs=1e-5)


def test_many_judges_are_eliminated() -> None:
    pairs = drawn(1, n_items=5, n_judges=2000, n_prompts=1, n_each=4000).pairs
    model = tb.BradleyTerry(prompts=False).fit(pairs)
    assert len(model.judges_) == 2000
    assert model.strengths_ == pytest.approx(drawn(1, n_items=5).strength, abs=0.4)


def test_too_many_effects_are_refused() -> None:
    pairs = drawn(1, n_items=5, n_judges=4000, n_prompts=2000, n_each=3).pairs
    with pytest.raises(tb.errors.OptionError) as error:
        tb.BradleyTerry().fit(pairs)
    assert error.value.code == "too-many-effects"


def test_the_scale_of_a_covariate_is_found() -> None:
    arena = drawn(2, n_each=200)
    rng = np.random.default_rng(0)
    sides = rng.normal(0.0, 1.0, (len(arena.pairs), 1))
    better = rng.random(len(sides)) < 0.5
    verdict = np.where(better, (sides[:, 0] < 0).astype(np.int32), arena.pairs.verdict)
    pairs = replace(arena.pairs, sides=sides, covariates=("length",), verdict=verdict)
    found = tb.BradleyTerry(covariates=("length",)).fit(pairs).summary()["covariates"]["length"]
    assert 0.5 < found < 3.0
