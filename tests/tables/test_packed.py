"""Packed responses come back whole, or not at all."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tables.crowd import HARD_IDS, all_of
from tables.said import refused

import tiebreak as tb
from tiebreak.data import Responses
from tiebreak.errors import FileError
from tiebreak.tables import array_folder, read_responses, write_responses

N = len(HARD_IDS)
CROWD = Responses.from_rows(
    [(HARD_IDS[i], HARD_IDS[i * 7 % N], HARD_IDS[i * 5 % N]) for i in range(N)]
)


def test_everything_comes_back(tmp_path: Path) -> None:
    crowd = read_responses(CROWD, tasks=["nobody's"], classes=["unused"])
    write_responses(tmp_path / "x.tb", crowd)
    back = read_responses(tmp_path / "x.tb")
    assert all_of(back) == all_of(crowd)
    assert np.array_equal(back.start, crowd.start)
    assert [path.name for path in tmp_path.iterdir()] == ["x.tb"]


@pytest.mark.parametrize(
    "tasks", [["a", "b"], [2, 1], [0.5, 1.5], pd.date_range("2020-01-01", periods=2)], ids=repr
)
def test_ids_keep_their_types(tmp_path: Path, tasks: Any) -> None:
    table = pd.DataFrame({"task": tasks, "worker": [1, 2], "label": [True, False]})
    write_responses(tmp_path / "x.tb", read_responses(table))
    back = read_responses(tmp_path / "x.tb")
    assert list(back.tasks) == list(read_responses(table).tasks)
    assert list(back.workers) == [1, 2]
    assert list(back.classes) == [False, True]


def test_a_fit_is_the_same_and_reads_the_arrays_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_folder, "MAPPED_BYTES", 1)
    crowd = tb.simulate.crowd(300, 9, 3, random_state=0).responses
    write_responses(tmp_path / "x.tb", crowd)
    back = read_responses(tmp_path / "x.tb")
    assert isinstance(back.code.base, np.memmap)
    for backend in ("numpy", "numba"):
        model = tb.VariationalBayes(backend=backend)
        expected = model.fit(crowd).probabilities_.copy()
        assert np.array_equal(model.fit(back).probabilities_, expected)
        assert np.array_equal(model.fit(tmp_path / "x.tb").probabilities_, expected)


def test_many_ids_are_mapped_not_copied(tmp_path: Path) -> None:
    n_tasks = array_folder.MAPPED_BYTES // 4
    tasks = pa.array(np.arange(n_tasks))
    columns = {"task": tasks, "worker": ["ann"] * n_tasks, "label": ["x"] * n_tasks}
    write_responses(tmp_path / "x.tb", read_responses(columns))
    before = pa.total_allocated_bytes()
    back = array_folder.read_packed(tmp_path / "x.tb", is_checked=True)
    assert pa.total_allocated_bytes() - before < array_folder.MAPPED_BYTES // 10
    write_responses(tmp_path / "x.tb", back)  # over what it is mapped from
    assert back.tasks.values == tasks
    assert read_responses(tmp_path / "x.tb").tasks == back.tasks


def test_tasks_and_classes_can_be_added(tmp_path: Path) -> None:
    write_responses(tmp_path / "x.tb", Responses.from_rows([("a", "ann", "x")]))
    back = read_responses(tmp_path / "x.tb", tasks=["b"], classes=["w"])
    assert (list(back.tasks), list(back.classes)) == (["a", "b"], ["w", "x"])
    assert back.label_of_each().tolist() == [1]


def test_packing_again_replaces_the_folder(tmp_path: Path) -> None:
    write_responses(tmp_path / "x.tb", CROWD)
    mapped = read_responses(tmp_path / "x.tb")
    write_responses(tmp_path / "x.tb", Responses.from_rows([("a", "ann", "x")]))
    assert read_responses(tmp_path / "x.tb").n_responses == 1
    assert all_of(mapped) == all_of(CROWD)  # who still reads the old one is not disturbed
    assert [path.name for path in tmp_path.iterdir()] == ["x.tb"]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.tb").mkdir()
    (tmp_path / "x.tb" / "thesis.txt").write_text("precious")
    with refused("array-folder-foreign", FileError):
        write_responses(tmp_path / "x.tb", CROWD)
    assert (tmp_path / "x.tb" / "thesis.txt").read_text() == "precious"
    (tmp_path / "y.tb").write_text("precious")
    with refused("array-folder-is-file", FileError):
        write_responses(tmp_path / "y.tb", CROWD)
    assert (tmp_path / "y.tb").read_text() == "precious"


def test_a_crash_leaves_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_responses(tmp_path / "x.tb", CROWD)

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(array_folder, "seal_of_json", fail)
    with pytest.raises(KeyboardInterrupt):
        write_responses(tmp_path / "x.tb", Responses.from_rows([("a", "ann", "x")]))
    monkeypatch.undo()
    assert all_of(read_responses(tmp_path / "x.tb")) == all_of(CROWD)
    assert [path.name for path in tmp_path.iterdir()] == ["x.tb"]


def _file(folder: Path, name: str) -> Path:
    """Return a file of a folder by the name of what it holds."""
    about = json.loads((folder / "about.json").read_text())
    return folder / (about["files"][name]["file"] if name in about["files"] else name)


def _flip(name: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        data = bytearray(_file(folder, name).read_bytes())
        data[-1] ^= 1
        _file(folder, name).write_bytes(data)

    return spoil


def _cut(name: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        _file(folder, name).write_bytes(_file(folder, name).read_bytes()[:-3])

    return spoil


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: _file(folder, name).unlink()


def _say(*, sealed: bool = True, **changed: Any) -> Callable[[Path], None]:
    """Change what a folder says of itself; `sealed`: as if it had been written so."""

    def spoil(folder: Path) -> None:
        about = json.loads((folder / "about.json").read_text()) | changed
        if sealed:
            about["seal"] = array_folder.seal_of_json(about)
        (folder / "about.json").write_text(json.dumps(about))

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        _flip("code"),
        _flip("tasks"),
        _cut("start"),
        _cut("about.json"),
        _remove("about.json"),
        _remove("workers"),
        _say(empty=7, sealed=False),
        _say(files={}),
        _say(empty=None, files=None),
        _say(runs={"odd": 1}),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    write_responses(tmp_path / "x.tb", CROWD)
    spoil(tmp_path / "x.tb")
    with refused("array-folder-damaged", FileError, folder=tmp_path / "x.tb"):
        read_responses(tmp_path / "x.tb")


def test_codes_that_point_nowhere_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "x.tb"
    for name, array in (("code", CROWD.code + N * N), ("start", CROWD.start[::-1].copy())):
        write_responses(folder, CROWD)
        about = json.loads((folder / "about.json").read_text())
        np.save(_file(folder, name), array)
        data = _file(folder, name).read_bytes()
        about["files"][name] |= {"bytes": len(data), "crc32": zlib.crc32(data)}
        _say(files=about["files"])(folder)
        with refused("array-folder-damaged", FileError):
            read_responses(folder)


@pytest.mark.parametrize(
    ("change", "code"),
    [({"version": 9}, "array-folder-version"), ({"what": "soup"}, "array-folder-of-other-kind")],
)
def test_another_version_is_told(tmp_path: Path, change: dict[str, Any], code: str) -> None:
    write_responses(tmp_path / "x.tb", CROWD)
    _say(**change)(tmp_path / "x.tb")
    with refused(code, FileError):
        read_responses(tmp_path / "x.tb")


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with refused("array-folder-missing", FileError):
        read_responses(tmp_path / "x.tb")
    with refused("target-folder-missing", FileError):
        write_responses(tmp_path / "no" / "x.tb", CROWD)
