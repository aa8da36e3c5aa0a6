"""Which kernels a problem gets."""

from __future__ import annotations

import pytest

from tiebreak.kernels import CUDA_ROWS, choose_backend, compiled, contract, reference


def test_every_machine_chooses_the_same_kernels_where_no_device_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contract, "_has_device", lambda: pytest.fail("a device is looked for"))
    assert choose_backend("auto", CUDA_ROWS, may_be_device=False) is compiled
    assert choose_backend("auto", 10, may_be_device=False) is reference
