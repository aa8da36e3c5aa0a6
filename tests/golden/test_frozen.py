"""Fits give what they gave when `tools/golden.py` last wrote them down."""

from __future__ import annotations

import pytest
from golden import frozen

FROZEN = frozen.read()


def _marks(name: str) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.data] if name in frozen.DATA_FITS else []
    return [*marks, pytest.mark.long] if name in frozen.LONG else marks


@pytest.mark.parametrize("name", [pytest.param(n, marks=_marks(n)) for n in frozen.FITS])
def test_fit_is_as_frozen(name: str) -> None:
    assert frozen.differences(frozen.run(name), FROZEN[name]) == []


def test_every_frozen_result_has_its_fit() -> None:
    assert FROZEN.keys() == {*frozen.FITS, "gibbs"}


def test_gibbs_sampler_has_the_frozen_means() -> None:
    assert frozen.gibbs_misfit(frozen.gibbs(seed=100), FROZEN["gibbs"]) < 2.5


def test_differences_are_seen() -> None:
    old = FROZEN["vb-3"]
    assert frozen.differences(old, old) == []
    assert frozen.differences(old | {"q": old["q"] + 2e-9}, old) == ["q: differs by 2e-09"]
    assert frozen.differences(old | {"labels": FROZEN["vb-2"]["labels"]}, old)
    assert frozen.differences(old | {"q": old["q"][1:]}, old)
    assert frozen.differences({}, old)
    mean = FROZEN["gibbs"]["mean"]
    assert frozen.gibbs_misfit(mean + 0.01 * (mean < 0.5), FROZEN["gibbs"]) > 2.5
