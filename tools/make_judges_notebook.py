"""Write docs/notebooks/judges.ipynb with its outputs; renew outputs in docs/judges.md.

python tools/make_judges_notebook.py
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "judges.md"
NOTEBOOK = ROOT / "docs" / "notebooks" / "judges.ipynb"

CELLS: list[tuple[str, str]] = [
    (
        "markdown",
        "# A panel of judges, from verdicts to rates\n\nRead [Judges](../judges.md) for the words; "
        "this notebook does the same in Python, on a jury that it makes up.",
    ),
    ("code", "PAGE"),  # the block of the page that makes the jury up
    (
        "code",
        "import tiebreak as tb\n\nresponses = tb.read_responses('jury.jsonl')\n"
        "gold = tb.read_gold('gold.csv')\nprint(responses)\n"
        "for row in responses.runs.workers:\n"
        "    print(f'{row.worker}: agrees with itself {row.self_agreement:.2f}, '\n"
        "          f'rho {row.run_correlation:.2f}')",
    ),
    ("markdown", "Labels, with gold, and what the panel is worth:"),
    (
        "code",
        "model = tb.Auto(dependence=0.5).fit(responses, gold=gold)\n"
        "print(tb.judges.panel_report(model))",
    ),
    ("markdown", "Without gold shared errors cannot be seen; this draws the tasks to label:"),
    (
        "code",
        "drawn = tb.judges.sample_tasks(model, 10)\n"
        "print([model.tasks_[int(i)] for i in drawn.task])\nprint(drawn.probability.round(3))",
    ),
    ("markdown", "What share of answers is good, and how do the systems differ?"),
    (
        "code",
        "rates = tb.judges.estimate_rates(model, systems='systems.csv')\nprint(rates)\n"
        "step = next(d for d in rates.differences if (d.label, d.method) == ('good', 'ppi'))\n"
        "print(f'{step.left} - {step.right}: {step.difference:+.2f} '\n"
        "      f'({step.low:+.2f} to {step.high:+.2f})')",
    ),
    ("markdown", "And the truth, which only a made-up jury knows:"),
    (
        "code",
        "for name in ('old', 'new'):\n"
        "    print(name, round(float(np.mean([good[q] for q in good if system[q] == name])), 3))",
    ),
    ("markdown", "Which answers should a person look at?"),
    (
        "code",
        "plan = tb.decide.plan_routes(model, wrong=1.0, human=0.1, judge=0.002)\nprint(plan)\n"
        "print(plan.rows('human')['task'][:5])",
    ),
]


def main() -> None:
    """Run the cells, and the commands of the page, in a folder of their own."""
    sys.path[:0] = [str(ROOT / "tests")]
    import test_judges_page

    page = PAGE.read_text("utf-8")
    block = re.search(r"^```python run\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        cells = _run([(kind, block[1] if text == "PAGE" else text) for kind, text in CELLS])
        PAGE.write_text(test_judges_page.played(page), "utf-8")
        os.chdir(ROOT)
    notebook = {
        "cells": cells,
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    NOTEBOOK.parent.mkdir(exist_ok=True)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"wrote {NOTEBOOK.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}")


def _run(cells: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Run the cells in their order and keep what they print."""
    names: dict[str, Any] = {}
    made = []
    for i, (kind, text) in enumerate(cells):
        cell: dict[str, Any] = {
            "id": f"cell-{i}",
            "cell_type": kind,
            "metadata": {},
            "source": text.rstrip("\n").splitlines(keepends=True),
        }
        if kind == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(text, f"cell {i}", "exec"), names)
            lines = printed.getvalue().splitlines(keepends=True)
            out = [{"output_type": "stream", "name": "stdout", "text": lines}] if lines else []
            cell |= {"execution_count": None, "outputs": out}
        made.append(cell)
    return made


if __name__ == "__main__":
    main()
