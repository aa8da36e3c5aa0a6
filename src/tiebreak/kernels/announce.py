"""Saying that kernels are being compiled, which happens once per machine and takes seconds.

Light on purpose: whoever wants to be told asks here, without importing numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[], None]] = []


@contextmanager
def on_first_compile(say: Callable[[], None]) -> Iterator[None]:
    """Call `say` once, as soon as a kernel is compiled that no cache holds."""
    _listeners.append(say)
    try:
        yield
    finally:
        if say in _listeners:
            _listeners.remove(say)


def tell_listeners() -> None:
    """Tell everybody who asked, once."""
    waiting = list(_listeners)
    _listeners.clear()
    for say in waiting:
        say()
