"""The one place that knows how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from tiebreak.errors import tell_listeners

F = TypeVar("F", bound=Callable[..., object])


class _Compiling(event.Listener):
    """Hears of each compilation that no cache could answer."""

    def on_start(self, event: event.Event) -> None:
        # It hears of everybody's functions, and what it raises would come out of theirs: some
        # have no module, and other compilers than ours may tell less.
        dispatcher = event.data.get("dispatcher") if isinstance(event.data, dict) else None
        module = getattr(getattr(dispatcher, "py_func", None), "__module__", None)
        if isinstance(module, str) and module.startswith("tiebreak."):
            tell_listeners()

    def on_end(self, event: event.Event) -> None:
        """Nothing to do."""


event.register("numba:compile", _Compiling())


def kernel(function: F) -> F:
    """Compile a function over ranges of arrays; it releases the lock, so threads may share it.

    `parallel=True` is left out on purpose: it aborts under two Python threads and breaks forked
    children. Threads are ours (`arrays.for_each`).
    """
    return _compile(function)


def fused_kernel(function: F) -> F:
    """Compile like `kernel`; a product and a sum may become one instruction, rounded once."""
    return _compile(function, {"contract"})


def summing_kernel(function: F) -> F:
    """Compile like `fused_kernel`; a sum may be taken as several partial sums, added at the end.

    Which ones is fixed when it is compiled: the bits do not depend on threads. It goes into each
    kernel that calls it. As a function of its own it has a copy in each of them, optimised apart;
    which one runs would depend on what the process has compiled, or loaded, before.
    """
    return _compile(function, {"contract", "reassoc", "nsz"}, is_inlined=True)


def _compile(function: F, fastmath: set[str] | bool = False, *, is_inlined: bool = False) -> F:
    options: dict[str, Any] = {
        "nogil": True,
        "cache": True,
        "error_model": "numpy",
        "fastmath": fastmath,
        "forceinline": is_inlined,
        "no_cfunc_wrapper": True,  # nobody calls kernels from C; a first fit compiles less
    }
    compiled = numba.njit(**options)
    return cast(F, compiled(function))
