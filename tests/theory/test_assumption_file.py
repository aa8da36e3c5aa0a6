"""Assumption files: what they may say, and how they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiebreak import theory
from tiebreak.errors import FileError, InputError
from tiebreak.theory.assumption_file import EXAMPLE

SMALL = """
n_tasks = 100
class_prior = [0.5, 0.25, 0.25]
[[workers]]
count = 7
accuracy = 0.8
"""


def test_the_example_is_read_back_as_it_says() -> None:
    crowd, links = theory.parse_assumptions(EXAMPLE)
    assert crowd.n_tasks == 20_000
    assert crowd.n_workers.tolist() == [40, 20]
    assert crowd.confusion[0].tolist() == [[0.9, 0.1], [0.1, 0.9]]
    assert crowd.confusion[1].tolist() == [[0.9, 0.1], [0.12, 0.88]]
    assert crowd.failure_probability == 0.1
    assert crowd.start == theory.AssumedStart(0.02, 0.015, 0.05)
    assert links is not None
    assert links.total_tasks == 1000
    assert links.must.tolist() == [1]
    assert links.cannot.tolist() == [[0, 1]]
    assert links.strength == 2.0


def test_the_example_stands_in_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs" / "theory.md"
    assert f"```toml\n{EXAMPLE}```" in page.read_text("utf-8")


def test_an_accuracy_spreads_errors_evenly() -> None:
    crowd = theory.parse_assumptions(SMALL).assumptions
    assert crowd.confusion[0].ravel() == pytest.approx(
        [0.8, 0.1, 0.1, 0.1, 0.8, 0.1, 0.1, 0.1, 0.8]
    )
    assert crowd.response_rate.tolist() == [1.0]


def test_responses_a_task_draw_workers_at_random() -> None:
    crowd = theory.parse_assumptions("responses_per_task = 3" + SMALL).assumptions
    assert crowd.response_rate == pytest.approx([3 / 7])
    assert crowd.most_responses == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_tasks = = 3", r"crowd.toml is not TOML: .* \(at line 1"),
        ("n_task = 3" + SMALL, "no place for n_task. It takes n_tasks,"),
        ("n_tasks = 3", "the file lacks class_prior, workers"),
        (SMALL.replace("count = 7", ""), r"\[\[workers\]\] lacks count"),
        (SMALL + "size = 3", r"\[\[workers\]\] has no place for size"),
        (SMALL.replace("accuracy = 0.8", ""), "accuracy or confusion, one of the two"),
        (SMALL.replace("0.8", "1"), "accuracy must be between 0 and 1"),
        (SMALL.replace("0.8", "'good'"), "accuracy must be a number; got 'good'"),
        (SMALL.replace("= 100", "= true"), "n_tasks must be a number; got True"),
        (SMALL.replace("[[workers]]", "[workers]"), r"with double brackets"),
        (SMALL + "[start]\nerror = 1", r"\[start\] has no place for error"),
        (SMALL + "[start]\nlabel_error = 2", "start label_error must be between 0 and 1; got 2"),
        ("start = 1" + SMALL, r"start must be a table, \[start\]"),
        (SMALL + "[links]\nstrength = 2", r"\[links\] lacks tasks"),
        (SMALL + "[[links.tasks]]\ntruth = 0", r"\[\[links.tasks\]\] lacks cannot"),
        ("responses_per_task = 8" + SMALL, "1 to 7 responses"),
        (
            "responses_per_task = 3" + SMALL + "response_rate = 0.5",
            "responses_per_task or the workers' response_rate, not both",
        ),
        (SMALL.replace("0.25]", "0.35]"), "crowd.toml: class_prior must sum to 1"),
    ],
)
def test_a_wrong_file_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        theory.parse_assumptions(text, "crowd.toml")


def test_what_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "crowd.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"crowd\.toml is not UTF-8"):
        theory.read_assumptions(tmp_path / "crowd.toml")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.toml cannot be read: No such file"):
        theory.read_assumptions(tmp_path / "none.toml")
