"""The catalogue: coherent in itself, true to the data, told in the documentation."""

from __future__ import annotations

import csv
import hashlib
import re
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb
from tiebreak.errors import OptionError

NAMES = (
    "bluebird", "dog", "web", "music_genre", "zencrowd_india",
    "zencrowd_us", "rte", "sentence_polarity", "trec", "product",
)  # fmt: skip
CATALOGUE: dict[str, Any] = tomllib.loads(
    resources.files("tiebreak.datasets").joinpath("catalogue.toml").read_text("utf-8")
)
PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def test_there_are_ten_datasets() -> None:
    assert tb.datasets.names() == NAMES


def copy_of(name: str) -> dict[str, Any]:
    copy: dict[str, Any] = CATALOGUE["datasets"][name]["copy"]
    return copy


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_agrees_with_itself(name: str) -> None:
    info, copy = tb.datasets.info(name), copy_of(name)
    assert info.name == name
    assert info.n_classes == len(info.classes)
    assert info.n_gold <= info.n_tasks
    assert sorted(copy.get("classes", {}).values()) in ([], sorted(info.classes))
    for part in ("responses", "gold"):
        assert re.fullmatch(r"[0-9a-f]{64}", copy[part]["sha256"])
        assert copy[part]["path"].endswith(".csv")
    assert all((info.title, info.task, info.licence, info.task_ids, *info.classes.values()))
    assert re.fullmatch(r"[\w-]+/[\w-]+", info.source)
    assert info.source_paths


def test_copies_come_from_one_pinned_commit() -> None:
    assert re.fullmatch(r"[\w-]+/[\w-]+", CATALOGUE["copy"]["repository"])
    assert re.fullmatch(r"[0-9a-f]{40}", CATALOGUE["copy"]["commit"])


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("RTE", "rte"),
        ("Music-Genre", "music_genre"),
        ("zencrowd us", "zencrowd_us"),
        ("bluebirds", "bluebird"),
        ("imagenet", None),
    ],
)
def test_a_name_that_is_nearly_right_is_recognised(wrong: str, meant: str | None) -> None:
    with pytest.raises(OptionError) as caught:
        tb.datasets.info(wrong)
    assert caught.value.code == "unknown-dataset"
    assert caught.value.fields == {"name": wrong, "meant": meant, "names": NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_has_the_counts_of_the_catalogue(name: str) -> None:
    info = tb.datasets.info(name)
    row = next(line for line in PAGE.read_text("utf-8").splitlines() if f"| `{name}` |" in line)
    counts = (info.n_tasks, info.n_workers, info.n_classes, info.n_responses, info.n_gold)
    assert [cell.strip() for cell in row.split("|")[3:8]] == [f"{count:,}" for count in counts]


# The data

# How the copies number tasks: by the place of its id in this order.
NUMBERING: dict[str, Callable[[str], int | str]] = {
    **dict.fromkeys(("bluebird", "dog", "web", "trec", "sentence_polarity"), int),
    **dict.fromkeys(("music_genre", "zencrowd_india", "zencrowd_us", "product"), str),
    "rte": lambda task: 0,  # as they come
}
# These copies list gold in the order of task numbers, the others as the source does.
IN_ORDER = {"bluebird", "dog", "web", "trec", "product", "rte"}


def rows_of(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.reader(text))[1:]


def numbers_of(name: str, data: Path) -> dict[str, int]:
    """Return the number that the public copy gives to each task."""
    order = [task for task, _ in rows_of(data / name / "gold.csv")]
    if name in ("web", "trec"):  # gold does not name every task
        order = list({task for task, *_ in rows_of(data / name / "responses.csv")})
    return {task: i for i, task in enumerate(sorted(order, key=NUMBERING[name]))}


def codes_of(name: str) -> dict[str, str]:
    """Return the code of the public copy for each of our classes."""
    classes = copy_of(name).get("classes", {})
    return {ours: code for code, ours in classes.items()} or {
        c: c for c in tb.datasets.info(name).classes
    }


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_gold_written_as_the_public_copy_has_its_checksum(name: str, data_dir: Path) -> None:
    """So class tables and task ids are right, though no copy is here to compare with."""
    number = numbers_of(name, data_dir)
    code = codes_of(name)
    gold = rows_of(data_dir / name / "gold.csv")
    if name in IN_ORDER:
        gold.sort(key=lambda row: number[row[0]])
    rows = "".join(f"{number[task]},{code[label]}\n" for task, label in gold)
    wanted = copy_of(name)["gold"]["sha256"]
    assert hashlib.sha256(f"item,truth\n{rows}".encode()).hexdigest() == wanted


@pytest.mark.data
@pytest.mark.parametrize("name", ["dog", "web", "trec"])
def test_fetched_task_ids_are_those_of_the_source_where_the_catalogue_says_so(
    name: str, data_dir: Path
) -> None:
    assert tb.datasets.info(name).task_ids == "Those of the source."
    for task, number in numbers_of(name, data_dir).items():
        assert task == str(number + copy_of(name).get("first_task", 0))
