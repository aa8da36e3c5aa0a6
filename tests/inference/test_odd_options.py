"""Whatever is given as an option is used, or refused in words that name it."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from refusals import refused

import tiebreak as tb

ROWS = [
    ("a", "ann", "cat"),
    ("a", "bob", "dog"),
    ("b", "ann", "cat"),
    ("b", "bob", "cat"),
    ("c", "eve", "dog"),
    ("c", "ann", "dog"),
]
ODD: tuple[Any, ...] = (
    None,
    -1,
    0,
    1.5,
    True,
    "x",
    "",
    b"x",
    [],
    {},
    {"ann": "many"},
    (1, 2),
    float("nan"),
    float("inf"),
    np.array([1.0, 2.0]),
    object(),
)
SMALL: dict[type, dict[str, Any]] = {
    tb.MajorityVote: {},
    tb.DawidSkene: {"max_iter": 5},
    tb.VariationalBayes: {"max_iter": 5},
    tb.GibbsSampler: {"n_chains": 1, "n_warmup": 1, "n_draws": 2},
    tb.Auto: {"max_iter": 5},
}


@pytest.mark.parametrize("kind", SMALL)
def test_odd_values_of_options_are_used_or_refused(kind: Any) -> None:
    n_refused = 0
    for name in kind().get_params():
        for value in ODD:
            n_refused += _is_refused(lambda n=name, v=value: kind(**SMALL[kind] | {n: v}), name)
    assert n_refused > 0


@pytest.mark.parametrize("kind", [tb.ExactLinkOptions, tb.MeanFieldOptions])
def test_odd_options_of_links_are_used_or_refused(kind: Any) -> None:
    for name in inspect.signature(kind).parameters:
        refused = [
            _is_refused(lambda n=name, v=value: tb.VariationalBayes(link_options=kind(**{n: v})))
            for value in ODD
        ]
        assert sum(refused) > len(ODD) // 2


def _is_refused(make: Any, name: str = "") -> bool:
    """Fit; say whether an option was refused. Any other error is the test's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            make().fit(ROWS, gold={"a": "cat", "b": "cat"} if name else None)
        except (tb.errors.OptionError, tb.errors.ResponseError) as error:  # off a scale
            said = str(error)
        else:
            return False
    assert name in said
    return True


@pytest.mark.parametrize("level", [0.0, 1.0, None, "0.9", np.array([0.5, 0.9])])
def test_odd_levels_are_refused(level: Any) -> None:
    model = tb.VariationalBayes().fit(ROWS)
    with refused(tb.errors.OptionError, "wrong-value level"):
        model.workers_table(level=level)


def test_costs_that_are_no_numbers_are_refused() -> None:
    model = tb.VariationalBayes().fit(ROWS)
    with pytest.raises(tb.errors.OptionError, match="cost matrix must be made of numbers"):
        model.decide([["free", 1.0], [1.0, 0.0]])
