"""What a backend offers, and which one a problem gets."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from threading import Thread
from typing import Any

from tiebreak.options import PROCESSOR, require_word

BACKENDS = ("auto", "numpy", "numba", "cuda")
COMPILED_ROWS = 200_000  # responses fitted; below, numba costs more than it saves
# Rows read, where no compiled code is in the process yet: with 1e6 rows compiled loops take 1.1 s,
# Arrow and NumPy 0.3 s, with 5e6 2.0 and 1.7 s. With no cache of compiled code either, 3 s more.
COMPILED_INTAKE = 3_000_000
# Responses from which the first fit of a process is about as soon done on an H200 as on 16 threads
# beside it: below, what a device costs to start is more than it saves (docs/gpu.md).
CUDA_ROWS = 30_000_000
COMPILED_LINKED = 1_000  # linked tasks take turns: a loop that only compiled code does fast


# A module with the functions of `numpy_sweep` and `numpy_links`, which say what they mean;
# `sweeps_here`, whether sweepers work in this process's memory; and `open(tasks, q, n_threads,
# copies)`, which returns a `Sweeper` that then owns q.
Backend = Any


def choose_backend(
    name: str, n_responses: int, n_linked: int = 0, *, may_be_device: bool = True
) -> Backend:
    """Return the kernels of a name; "auto" compiles only what is large enough to repay it.

    Where it may not be a device, "auto" goes by the input alone: every machine gives the same bits.
    """
    require_word("backend", name, BACKENDS)
    is_for_device = name == "auto" and may_be_device and n_responses >= CUDA_ROWS
    if name == "cuda" or (is_for_device and _has_device()):
        from tiebreak.kernels import cuda

        cuda.device.cupy()
        return cuda
    large = n_responses >= COMPILED_ROWS or n_linked >= COMPILED_LINKED
    if name == "numba" or (name == "auto" and large):
        from tiebreak.kernels import compiled

        return compiled
    from tiebreak.kernels import reference

    return reference


@cache
def load_compiled_early() -> Thread:
    """Start to load compiled code while something is read: that takes as long as some sweeps."""
    thread = Thread(target=lambda: importlib.import_module("tiebreak.kernels.compiled"))
    thread.start()
    return thread


def repays_compiled_intake(n_rows: int) -> bool:
    """Say whether compiled loops read so many rows sooner than Arrow and NumPy do.

    Where a fit has loaded numba and its first kernels already, loading those of the intake takes
    0.05 s, and half the time is saved from then on. Both ways give the same codes, bit by bit.
    """
    is_loaded = "tiebreak.kernels.compile" in sys.modules
    return n_rows >= (COMPILED_ROWS if is_loaded else COMPILED_INTAKE)


def where(backend: Backend) -> str:
    """Say what sweeps ran on: the processor, or the name of a device."""
    if backend.sweeps_here:
        return PROCESSOR
    from tiebreak.kernels.cuda import device

    return device.name()


def _has_device() -> bool:
    """Whether a CUDA device is there, and what drives it is installed."""
    if importlib.util.find_spec("cupy") is None:
        return False
    from tiebreak.kernels.cuda import device

    return device.is_available()
