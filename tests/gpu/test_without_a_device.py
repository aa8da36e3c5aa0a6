"""What can be shown of the CUDA backend on any machine: errors, plans, that the source compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tiebreak as tb
from tiebreak.errors import MissingExtraError, OptionError
from tiebreak.kernels import contract
from tiebreak.kernels.cuda import device, plan

VOTES = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("b", "bob", "x")]
SOURCE = Path(device.__file__).with_name("sweep.cu")


class CudaError(Exception):
    pass


def fake_cupy(count: Any) -> Any:
    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CudaError)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


@pytest.fixture(autouse=True)
def forget_cupy() -> Any:
    device.cupy.cache_clear()
    yield
    device.cupy.cache_clear()


def test_without_cupy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match=r"tiebreak\[cuda13\]"):
        tb.VariationalBayes(backend="cuda").fit(VOTES)


def test_an_old_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> int:
        raise CudaError("cudaErrorInsufficientDriver: driver is too old")

    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(count))
    with pytest.raises(OptionError, match=r"driver is too old.*numba"):
        tb.VariationalBayes(backend="cuda").fit(VOTES)


def test_no_device_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(lambda: 0))
    with pytest.raises(OptionError, match="No CUDA device"):
        tb.VariationalBayes(backend="cuda").fit(VOTES)


def test_auto_goes_on_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "CUDA_ROWS", 1)
    monkeypatch.setattr(contract, "_has_device", lambda: False)
    assert tb.VariationalBayes().fit(VOTES).labels_.best() == {"a": "x", "b": "x"}


@pytest.mark.parametrize(
    ("n_rows", "n_states", "expected"),
    [
        (52, 2, plan.Shared(52, 32)),  # ten workers: a copy of counts for each lane
        (2032, 2, plan.Shared(2032)),  # scores and counts side by side
        (40_032, 2, plan.Shared(40_032, passes=2)),  # one after the other
        (400_032, 4, plan.Shared(9685, cold=True)),  # frequent rows only
    ],
)
def test_shared_memory_is_planned(n_rows: int, n_states: int, expected: plan.Shared) -> None:
    assert plan.share(n_rows, n_states, 232_448) == expected


VARIANTS = [
    (2, 16, False, 32),
    (4, 16, False, 1),
    (8, 16, False, 1),
    (16, 32, True, 1),
    (20, 32, False, 1),
]
MORE = [
    (2, 16, False, 1),
    (2, 32, True, 1),
    (3, 16, False, 1),
    (4, 16, False, 32),
    (4, 32, True, 1),
    (8, 32, True, 1),
]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize(
    ("n_states", "bits", "cold", "copies"),
    [*VARIANTS, *(pytest.param(*each, marks=pytest.mark.long) for each in MORE)],
)
def test_every_variant_compiles_and_nothing_spills(
    tmp_path: Path, n_states: int, bits: int, cold: bool, copies: int
) -> None:
    given = device.macros(n_states, bits, cold=cold, copies=copies)
    command = ["nvcc", "-arch=sm_90", "-std=c++17", "-cubin", "-Xptxas", "-v"]
    command += [f"-D{macro}={value}" for macro, value in given.items()]
    command += ["-o", str(tmp_path / "sweep.cubin"), str(SOURCE)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert spills
    assert all(each == ("0", "0") for each in spills)
    used = re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", done.stderr, re.DOTALL)
    assert "sweep_slices" in dict(used) or n_states > 16
    for name, registers in used:
        threads = given["THREADS"] if name == "sweep_slices" else 256
        assert int(registers) * threads <= 65_536, name
