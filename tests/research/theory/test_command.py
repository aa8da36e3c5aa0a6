"""python -m tiebreak.research.theory: tables, sentences and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak.errors import FileError, InputError
from tiebreak.research.theory.__main__ import __doc__ as described
from tiebreak.research.theory.__main__ import main, read

CROWD = """
n_tasks = 20000
class_prior = [0.5, 0.5]
failure_probability = 0.1
n_workers = 60
confusion = [[0.9, 0.1], [0.1, 0.9]]
"""


@pytest.fixture
def crowd(tmp_path: Path) -> str:
    file = tmp_path / "crowd.toml"
    file.write_text(CROWD)
    return str(file)


def test_a_good_crowd_gets_a_table_and_a_promise(
    crowd: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([crowd, "--iterations", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["iteration", "labels", "class", "prior", "confusions"]
    assert [line.split()[0] for line in lines[1:3]] == ["1", "2"]
    assert lines[-1].startswith("60 workers, 20,000 tasks: every label is right (error below ")


def test_the_plain_bounds_are_vacuous(crowd: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([crowd, "--version", "plain"]) == 0
    assert ": vacuous: the chance that some task" in capsys.readouterr().out


def test_the_printed_formulas_prove_nothing(crowd: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([crowd, "--version", "printed"]) == 0
    assert capsys.readouterr().out.endswith("The printed formulas prove nothing: see the errata.\n")


def test_the_example_of_the_help_can_be_read(tmp_path: Path) -> None:
    assert described is not None
    (tmp_path / "crowd.toml").write_text(described.partition("[links]:\n")[2])
    found, links = read(tmp_path / "crowd.toml")
    assert found.n_workers.tolist() == [40, 20]
    assert found.start.confusion_error == 0.015
    assert links is None


def test_links_are_a_table(tmp_path: Path) -> None:
    links = "[links]\nmust = [1]\ncannot = [[0, 1]]\ntruth = [0]\nn_tasks = 1000\nstrength = 2.0"
    (tmp_path / "crowd.toml").write_text(CROWD + links)
    found = read(tmp_path / "crowd.toml")[1]
    assert found is not None
    assert found.total_tasks == 1000


def test_responses_lend_estimates_which_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"t{i},w{j},{(i + (i * j % 7 == 3)) % 2}" for i in range(60) for j in range(5)]
    (tmp_path / "r.csv").write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    assert main(["--from", str(tmp_path / "r.csv")]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Estimated from the responses")
    assert "5 workers, 60 tasks: vacuous" in told


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("n_tasks = = 3", "not-toml"),
        ("n_task = 3" + CROWD, "wrong-assumptions"),
        ("n_tasks = 3", "wrong-assumptions"),
        (CROWD.replace("0.5]", "0.6]"), "wrong-assumptions"),
        (CROWD + "[start]\nerror = 1", "wrong-assumptions"),
        (CROWD + "[links]\ntruth = 0", "wrong-assumptions"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "crowd.toml").write_text(text)
    with pytest.raises(InputError, match=r"crowd\.toml") as error:
        read(tmp_path / "crowd.toml")
    assert error.value.code == code
    assert main([str(tmp_path / "crowd.toml")]) == 2


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError) as error:
        read(tmp_path / "none.toml")
    assert error.value.code == "unreadable-assumptions"
