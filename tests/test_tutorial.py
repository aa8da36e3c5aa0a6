"""docs/tutorial.ipynb runs from end to end, and shows what it stored."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorial.ipynb"


def tool() -> Any:
    """Return tools/run_notebook.py as a module."""
    for needed in ("nbclient", "ipykernel"):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location(
        "run_notebook", ROOT / "tools" / "run_notebook.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")  # of the packages of Jupyter
def test_the_tutorial_runs_and_shows_what_it_stored(tmp_path: Path) -> None:
    runner = tool()
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "docs").mkdir()
    copied = shutil.copy(TUTORIAL, tmp_path / "docs")
    made = runner.outputs(runner.run(Path(copied)))
    stored = runner.outputs(runner.read(TUTORIAL))
    assert len(stored) >= 9
    assert made == stored
    assert [path.name for path in (tmp_path / "docs").iterdir()] == ["tutorial.ipynb"]


def test_the_tutorial_names_no_folder_of_a_machine() -> None:
    text = TUTORIAL.read_text("utf-8")
    folders = (str(ROOT), str(Path.home()), tempfile.gettempdir(), "site-packages")
    assert not any(folder in text for folder in folders)
