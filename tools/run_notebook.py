"""Run a notebook and keep what its cells print: python tools/run_notebook.py docs/tutorial.ipynb

Needs nbclient and ipykernel, which requirements/dev.txt has. What differs from run to run (counts
of executions, times) is left out, so that the same results give the same file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient


def read(path: Path) -> Any:
    """Return a notebook as it is kept."""
    return nbformat.read(path, as_version=4)


def run(path: Path) -> Any:
    """Return the notebook with the outputs of a fresh kernel, in the folder of the notebook."""
    book = read(path)
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(book, timeout=300, kernel_name="python3", resources=resources).execute()
    for number, cell in enumerate(each for each in book.cells if each.cell_type == "code"):
        cell.execution_count = number + 1
        cell.metadata.pop("execution", None)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number + 1
    book.metadata.language_info = {"name": "python"}
    return book


def outputs(book: Any) -> list[Any]:
    """Return what the cells show, with text in one piece."""
    found = []
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                found.append((output.name, output.text))
            else:
                found.append(dict(output.get("data", {"error": output.get("evalue")})))
    return found


if __name__ == "__main__":
    for name in sys.argv[1:]:
        made = run(Path(name))
        nbformat.write(made, name)
        print(f"wrote {name}")
