"""The catalogue: coherent in itself, true to the data, told in the documentation."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import tiebreak as tb
from tiebreak.datasets import catalogue
from tiebreak.errors import OptionError

NAMES = (
    "bluebird", "dog", "web", "music_genre", "zencrowd_india",
    "zencrowd_us", "rte", "sentence_polarity", "trec", "product",
)  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def test_there_are_ten_datasets() -> None:
    assert tb.datasets.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_agrees_with_itself(name: str) -> None:
    info, copy = catalogue.find(name)
    assert info.name == name
    assert info.n_classes == len(info.classes)
    assert info.n_responses <= copy.responses.rows
    assert info.n_gold == copy.gold.rows <= info.n_tasks
    assert sorted(copy.classes.values()) in ([], sorted(info.classes))
    for file in (copy.responses, copy.gold):
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.n_bytes > 4 * file.rows
        assert file.path.endswith(".csv")


@pytest.mark.parametrize("name", NAMES)
def test_every_dataset_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    info = tb.datasets.info(name)
    assert all((info.title, info.task, info.licence, info.task_ids, *info.classes.values()))
    assert re.fullmatch(r"[\w-]+/[\w-]+", info.source)
    assert info.source_paths


def test_copies_come_from_one_pinned_commit() -> None:
    assert re.fullmatch(
        r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}", catalogue.whole().base
    )


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("RTE", "rte"),
        ("Music-Genre", "music_genre"),
        ("zencrowd us", "zencrowd_us"),
        ("bluebirds", "bluebird"),
    ],
)
def test_a_name_that_is_nearly_right_is_recognised(wrong: str, meant: str) -> None:
    with pytest.raises(OptionError, match=f"no dataset {wrong!r}. Did you mean {meant!r}"):
        tb.datasets.info(wrong)


def test_a_name_that_is_like_none_gets_the_list() -> None:
    with pytest.raises(OptionError) as caught:
        tb.datasets.info("imagenet")
    assert "mean" not in str(caught.value)
    assert all(name in str(caught.value) for name in NAMES)


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
    info, copy = catalogue.find(name)
    return {ours: code for code, ours in copy.classes.items()} or {c: c for c in info.classes}


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
    wanted = catalogue.find(name).copy.gold
    assert hashlib.sha256(f"item,truth\n{rows}".encode()).hexdigest() == wanted.sha256


@pytest.mark.data
@pytest.mark.parametrize("name", ["dog", "web", "trec"])
def test_fetched_task_ids_are_those_of_the_source_where_the_catalogue_says_so(
    name: str, data_dir: Path
) -> None:
    entry = catalogue.find(name)
    assert entry.info.task_ids == "Those of the source."
    for task, number in numbers_of(name, data_dir).items():
        assert task == str(number + entry.copy.first_task)
