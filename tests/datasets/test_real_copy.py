"""One public copy, rebuilt byte by byte from the real data, fetched with its real checksums."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets.test_catalogue import rows_of
from public_copies import Copies

import tiebreak as tb
from tiebreak.datasets import catalogue

pytestmark = pytest.mark.data
NAME = "music_genre"


def test_the_public_music_copy_becomes_the_data_with_other_ids(
    server: Copies, data_dir: Path, cache: Path
) -> None:
    said, known = (rows_of(data_dir / NAME / f"{name}.csv") for name in ("responses", "gold"))
    number = {task: str(i) for i, task in enumerate(sorted(task for task, _ in known))}
    copy = catalogue.find(NAME).copy
    code = {ours: theirs for theirs, ours in copy.classes.items()}
    labels = [f"{number[t]},{int(w[1:]) - 1},{code[label]}" for t, w, label in said]
    truths = [f"{number[t]},{code[label]}" for t, label in known]
    server.files = {
        f"/{copy.responses.path}": "\n".join(["item,worker,label", *labels, ""]).encode(),
        f"/{copy.gold.path}": "\n".join(["item,truth", *truths, ""]).encode(),
    }
    folder = tb.datasets.fetch(NAME, base=server.address)
    assert folder == cache / NAME
    assert sorted(rows_of(folder / "responses.csv")) == sorted(
        [number[t], str(int(w[1:]) - 1), label] for t, w, label in said
    )
    assert rows_of(folder / "gold.csv") == [[number[t], label] for t, label in known]
    assert tb.datasets.load(NAME).responses.n_classes == 10
