"""What is gone is not mentioned: no page, example or experiment speaks of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REMOVED = (
    *("tb.theory", "tiebreak.theory", "tiebreak bounds", "assumption_file", "workers_needed"),
    *("tiebreak reproduce", "tiebreak.reproduce", "make reproduction", 'init="spectral"'),
    *("--init spectral", "inference.gibbs", "saw_all", "--saw-all", "nelder_mead"),
    *("far_links", "link_units", "link units", "local_update", "position term", "position_term"),
    *("term of position", "tb.write_labels", "tb.write_responses", "tb.write_links"),
    *("tiebreak show", "tiebreak simulate", "tiebreak warm"),
    *("tiebreak select", "tiebreak export", "tiebreak pack", "tiebreak shuffle", "tiebreak panel"),
    *("tiebreak rate", "tiebreak route", "--expert-list", "--cost-limit", "--vote-plan"),
    *(
        "--question",
        "--repeats",
        "--fold-labels",
        "--multi-label",
        "--worker-model",
        "--link-error",
    ),
    *("--gold-weight", "--link-sampling", "--max-iter", "--members", "--question-costs", "--units"),
    *("tb.write_gold", "tb.write_workers", "links_from_gold", "tb.OptionError", "decide.routing"),
)
PAGES = [
    path
    for folder in ("docs", "examples", "experiments", "tools", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".md", ".py", ".ipynb", ".toml", ".html"}
]
PAGES += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")]


@pytest.mark.parametrize("name", REMOVED)
def test_nothing_speaks_of_what_is_gone(name: str) -> None:
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    found = [path for path in PAGES if word.search(path.read_text("utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in found] == []


def test_there_are_pages_to_look_at() -> None:
    assert len(PAGES) > 60
