"""What pages state about the code, and which tests a target of the Makefile runs."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "tiebreak"

DOCS = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "experiments").rglob("*.md"))]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")

# 10,000<!-- tiebreak.room.module.CONSTANT -->, or the default of an argument of a class
STATED = re.compile(r"([\d][\d,]*(?:\.\d+)?)( [%\w]+)?<!-- (tiebreak[\w.]*) -->")
UNITS = {None: 1.0, " %": 0.01, " MiB": float(1 << 20), " seconds": 1.0, " minutes": 60.0}


def value_of(name: str) -> Any:
    """Return what a dotted name stands for: a constant, or the default of an argument."""
    path, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(path), last)
    except ModuleNotFoundError:
        module, _, class_name = path.rpartition(".")
        owner = getattr(importlib.import_module(module), class_name)
        return inspect.signature(owner).parameters[last].default


def stated_numbers() -> list[tuple[str, float, str]]:
    """Return (page, number, name) of every number that a page says is one of the code."""
    return [
        (page.name, float(digits.replace(",", "")) * UNITS[unit or None], name)
        for page in PAGES
        for digits, unit, name in STATED.findall(page.read_text("utf-8"))
    ]


@pytest.mark.parametrize("stated", stated_numbers(), ids=lambda stated: f"{stated[0]}-{stated[2]}")
def test_a_number_that_a_page_states_is_that_of_the_code(stated: tuple[str, float, str]) -> None:
    _, number, name = stated
    assert value_of(name) == pytest.approx(number, rel=1e-12)


GONE = (
    *("LogOpinionPool", "--method pool", "overturned", "models_tried_", "juries-results"),
    *('worker_model="auto"', "--worker-model auto"),
)


def test_nothing_names_what_is_gone() -> None:
    places = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.*"),
        *(ROOT / "experiments").rglob("*.*"),
    ]
    texts = [path for path in places if path.suffix in {".md", ".py", ".ipynb"}]
    assert len(texts) > 60
    found = {
        (path.name, name) for path in texts for name in GONE if name in path.read_text("utf-8")
    }
    assert found == set()


def test_every_mark_on_a_page_belongs_to_a_number() -> None:
    marks = sum(page.read_text("utf-8").count("<!-- tiebreak.") for page in PAGES)
    assert marks == len(stated_numbers()) > 10


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_no_page_has_control_characters(page: Path) -> None:
    """A backslash of TeX in a plain string of Python becomes one: form feed and "rac"."""
    lines = page.read_bytes().decode("utf-8").split("\n")
    assert [number for number, line in enumerate(lines, 1) if not line.isprintable()] == []


def test_every_module_on_the_map_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"(?<![\w/.-])[a-z_]+(?:/[a-z_]+)*(?:/|\.py)(?![\w.])", text))
    named -= {"src/tiebreak/", "tests/"}
    assert len(named) > 50
    roots = {name: ROOT if name.startswith(("tests/", "tools/")) else PACKAGE for name in named}
    assert [name for name in sorted(named) if not (roots[name] / name).exists()] == []


def test_every_protocol_and_line_on_the_map_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = text.partition("## Where to add something")[2]
    rows = re.findall(r"`(\w+)` in `([\w/]+)\.py`", table)
    assert len(rows) >= 5
    for name, path in rows:
        module = importlib.import_module(
            "tiebreak." + path.replace("/", ".").removesuffix(".__init__")
        )
        assert hasattr(module, name), f"{path}.py has no {name}"


def test_every_name_on_the_map_stands_in_the_code() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    code = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    words = set(re.findall(r"\w+", code))
    handed_over = re.findall(r"\[([A-Z]\w+(?:, [A-Z]\w+)*)\](?!\()", text)
    named = {name for group in handed_over for name in group.split(", ")}
    named |= {name.rpartition(".")[2] for name in re.findall(r"`([A-Za-z_.]+)`", text)}
    assert len(named) > 80
    assert sorted(named - words) == []


def test_the_table_of_rooms_has_every_room() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = text.partition("## The house")[2].partition("## How a change is made")[0]
    first_cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    named = {name.split("/")[0] for cell in first_cells for name in re.findall(r"`([\w/]+)`", cell)}
    there = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith(("_", "py."))}
    assert named == there


# The three sets of tests


def chosen_by(target: str) -> str:
    """Return the marker expression of a target of the Makefile."""
    recipe = re.search(
        rf"^{target}:.*\n\t@\$\(PYTEST\) -m (\"[^\"]*\"|\w+)", MAKEFILE, re.MULTILINE
    )
    assert recipe is not None
    return recipe[1].strip('"')


def test_each_test_is_of_one_tier() -> None:
    everything = chosen_by("test-all")
    assert chosen_by("quick") == f"{everything} and quick"
    assert chosen_by("test") == f"{everything} and not slow"
    assert chosen_by("test-slow") == f"{everything} and slow"
    assert everything == f"not {chosen_by('test-long')}"


def test_the_page_of_python_names_every_public_name() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    named = re.findall(r"^\.\. auto\w+:: (?:tiebreak\.)?(\w+)$", page, re.MULTILINE)
    assert sorted(named) == sorted(set(tb.__all__) - {"__version__"})


def test_every_page_is_in_a_table_of_contents_of_the_site() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", index, re.MULTILINE | re.DOTALL)
    entries = {line for tree in trees for line in tree.splitlines() if not line.startswith(":")}
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert sorted(pages - entries) == []
