"""Kernels are compiled by numba, whose other users must not notice."""

from __future__ import annotations

from typing import Any

import numba
import pytest

import tiebreak.kernels.compile  # noqa: F401  (listens from now on)
from tiebreak.errors import on_first_compile


def made_by_exec(**names: Any) -> Any:
    """Return a function as a notebook or a code generator makes it."""
    exec("def double(x):\n    return 2 * x", names)
    return names["double"]


@pytest.mark.parametrize("module", [None, "tiebreak", "somebody.tiebreak.x"])
def test_a_function_of_somebody_else_compiles_whatever_its_module(module: Any) -> None:
    function = made_by_exec()
    function.__module__ = module
    said: list[str] = []
    with on_first_compile(lambda: said.append("compiling")):
        assert numba.njit(function)(21) == 42
    assert said == []


def test_a_compilation_without_a_dispatcher_is_none_of_ours() -> None:
    from numba.core import event

    with on_first_compile(pytest.fail), event.trigger_event("numba:compile", data={}):
        pass
    with on_first_compile(pytest.fail), event.trigger_event("numba:compile", data=None):
        pass


def test_a_kernel_is_still_told() -> None:
    function = made_by_exec(__name__="tiebreak.kernels.made_up")
    function.__module__ = "tiebreak.kernels.made_up"
    said: list[str] = []
    with on_first_compile(lambda: said.append("compiling")):
        assert numba.njit(function)(1) == 2
    assert said == ["compiling"]
