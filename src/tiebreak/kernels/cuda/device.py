"""The CUDA device: CuPy where it is installed, how much memory may be used, compiled kernels.

Nothing here is imported before `backend="cuda"` is asked for, or "auto" looks for a device.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.errors import MissingExtraError, OptionError

MEMORY_LIMIT = "TIEBREAK_CUDA_MEMORY"  # bytes that may be used, where not all that is free
SPARE = 0.9  # of the free memory: the driver and the allocator need some themselves
PIN_FROM = 1 << 26  # bytes: smaller arrays are copied faster than pinned
WORDS = 6  # the most words of a task that a kernel holds in registers


class DeviceError(OptionError):
    """The device cannot be used, or its memory does not suffice."""


@functools.cache
def cupy() -> ModuleType:
    """Return CuPy, with a device that works, or say what is missing."""
    try:
        import cupy as cp
    except ImportError as cause:
        raise MissingExtraError(
            "backend=\"cuda\" needs CuPy. Install it with: pip install 'tiebreak[cuda13]' (driver "
            "580 or newer) or pip install 'tiebreak[cuda12]'; or use backend=\"numba\"."
        ) from cause
    try:
        n_devices = cp.cuda.runtime.getDeviceCount()
    except cp.cuda.runtime.CUDARuntimeError as cause:
        raise DeviceError(
            f"CUDA cannot be used here: {cause}. Is the driver as new as CuPy wants it (nvidia-smi "
            'says which it is)? backend="numba" runs on the processor.'
        ) from cause
    if n_devices == 0:
        raise DeviceError('No CUDA device was found. backend="numba" runs on the processor.')
    module: ModuleType = cp
    return module


def is_available() -> bool:
    """Whether CuPy is installed and finds a device; asked for "auto", so it raises nothing."""
    if importlib.util.find_spec("cupy") is None:
        return False
    try:
        cupy()
    except (MissingExtraError, DeviceError):
        return False
    return True


def name() -> str:
    cp = cupy()
    properties = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)
    return str(properties["name"].decode())


def memory_limit() -> int:
    """Return how many bytes a fit may use: what the environment says, or what is free."""
    given = os.environ.get(MEMORY_LIMIT)
    cp = cupy()
    cp.get_default_memory_pool().free_all_blocks()
    free, _ = cp.cuda.runtime.memGetInfo()
    if given is None:
        return int(SPARE * free)
    if not given.isdigit() or not int(given):
        raise DeviceError(f"{MEMORY_LIMIT} must be a number of bytes; got {given!r}.")
    return min(int(given), int(SPARE * free))


@functools.cache
def source() -> str:
    return (resources.files(__package__) / "sweep.cu").read_text("utf-8")


def block_shape(n_states: int) -> tuple[int, int]:
    """Return the threads of a block, and how many words of a task its registers hold.

    Chosen on an H200 so that nothing spills; `tests/gpu` compiles each and looks.
    """
    shapes = ((2, (1024, 6)), (4, (768, 6)), (8, (512, 5)), (16, (512, 2)))
    return next((shape for most, shape in shapes if n_states <= most), (256, 1))


def macros(n_states: int, bits: int, *, cold: bool, copies: int) -> dict[str, int]:
    """Return what the source is compiled for. Sizes of the crowd are no part of it."""
    threads, words = block_shape(n_states)
    return {
        "K": n_states,
        "BITS": bits,
        "COLD": int(cold),
        "COPIES": copies,
        "THREADS": threads,
        "W": words,
    }


@functools.cache
def kernel(name: str, n_states: int, bits: int, cold: bool = False, copies: int = 1) -> Any:
    """Compile a kernel; CuPy keeps on disk what it compiled."""
    given = macros(n_states, bits, cold=cold, copies=copies)
    options = ("-std=c++17", *(f"-D{macro}={value}" for macro, value in given.items()))
    return cupy().RawModule(code=source(), options=options).get_function(name)


def launch(function: Any, n_threads: int, *arguments: Any, threads: int = 256) -> None:
    """Start a kernel with so many threads in all."""
    if n_threads:
        function((-(-n_threads // threads),), (threads,), arguments)


@contextmanager
def says_what_did_not_fit() -> Iterator[None]:
    """Turn the device's "out of memory" into an error that says the way out."""
    cp = cupy()
    try:
        yield
    except cp.cuda.memory.OutOfMemoryError as cause:
        cp.get_default_memory_pool().free_all_blocks()
        raise DeviceError(
            f"The device ran out of memory ({cause}): something else may use it. Try again, set "
            f'{MEMORY_LIMIT} to fewer bytes, or use backend="numba".'
        ) from cause


def upload(array: npt.NDArray[Any]) -> Any:
    """Copy to the device; large arrays are pinned where they lie, which the bus repays."""
    cp = cupy()
    out = cp.empty(array.shape, array.dtype)
    if array.nbytes < PIN_FROM or not array.flags.c_contiguous:
        out.set(np.ascontiguousarray(array))
        return out
    runtime = cp.cuda.runtime
    try:
        runtime.hostRegister(array.ctypes.data, array.nbytes, 0)
    except runtime.CUDARuntimeError:  # memory that cannot be pinned, such as a mapped file
        out.set(array)
        return out
    try:
        out.set(array)
        cp.cuda.Device().synchronize()
    finally:
        runtime.hostUnregister(array.ctypes.data)
    return out


def download(array: Any, out: npt.NDArray[Any]) -> None:
    """Copy to this machine; a large `out` is pinned meanwhile."""
    runtime = cupy().cuda.runtime
    pinned = out.nbytes >= PIN_FROM
    if pinned:
        try:
            runtime.hostRegister(out.ctypes.data, out.nbytes, 0)
        except runtime.CUDARuntimeError:  # memory that cannot be pinned
            pinned = False
    try:
        array.get(out=out)
    finally:
        if pinned:
            runtime.hostUnregister(out.ctypes.data)
