"""Methods compared: what counts as right, what is recorded, and what a bad method does."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import tiebreak as tb

ROWS = [("a", "u", "x"), ("a", "v", "y"), ("b", "u", "x"), ("c", "v", "y"), ("c", "u", "z")]
GOLD = {"a": "x", "b": "x", "c": "z", "unanswered": "x"}
SMALL = tb.simulate.crowd(60, 6, 3, random_state=0)
SETS = {"small": (SMALL.responses, SMALL.gold)}

SPINS = "def aggregate(crowd):\n    while True:\n        pass\n"
DRAWS = """
import numpy as np
PROBABILITIES = True
def aggregate(crowd, seed):
    found = np.random.default_rng(seed).random((crowd.n_tasks, crowd.n_classes))
    return found / found.sum(1, keepdims=True)
"""
BAD = {
    "shape": "def aggregate(crowd):\n    return [[1.0, 2.0]]\n",
    "nan": "def aggregate(crowd):\n    return [[float('nan')] * 3] * crowd.n_tasks\n",
    "sums": "PROBABILITIES = True\ndef aggregate(crowd):\n    return [[1, 2, 3]] * crowd.n_tasks\n",
    "raises": "def aggregate(crowd):\n    return 1 / 0\n",
    "changes": "from itertools import count\nn = count()\n"
    "def aggregate(crowd):\n    return [[1, 2, next(n)]] * crowd.n_tasks\n",
}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(name: str, text: str) -> str:
        path = tmp_path / f"{name}.py"
        path.write_text(text, "utf-8")
        return str(path)

    return write


def without_time(path: Path) -> list[dict[str, Any]]:
    cells = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [{name: value for name, value in cell.items() if name != "cpu"} for cell in cells]


# Scores


def test_ties_count_what_breaking_them_at_random_would() -> None:
    scores = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [3.0, 3.0, 3.0]])

    def fixed(crowd: tb.Responses) -> Any:
        return scores

    found = tb.bench.run({"s": (ROWS, GOLD)}, [fixed]).table()["fixed"]["s"]
    truth = (0, 0, 2)
    best = [np.flatnonzero(row == row.max()) for row in scores]
    broken = [np.mean([k == t for k, t in zip(ks, truth, strict=True)]) for ks in product(*best)]
    assert found == pytest.approx(np.mean(broken))


def test_a_class_that_nobody_answered_is_never_right() -> None:
    def sure(crowd: tb.Responses) -> Any:
        return np.tile([0.0, 0.0, 1.0], (3, 1))

    gold = {"a": "unheard of", "b": "x", "c": "z"}
    assert tb.bench.run({"s": (ROWS, gold)}, [sure]).table()["sure"]["s"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", [name for name in tb.bench.OWN if name != "mv"])
def test_figures_are_those_of_evaluate_where_nothing_is_tied(name: str) -> None:
    found = tb.bench.run(SETS, [name]).cells[0]
    labels = tb.bench.OWN[name].fit(SMALL.responses).labels_
    ordered = np.sort(labels.probabilities, axis=1)
    assert (ordered[:, -1] - ordered[:, -2]).min() > 1e-9
    expected = tb.evaluate.report(labels, SMALL.gold)
    assert found["accuracy"] == pytest.approx(expected.accuracy)
    assert found["macro_f"] == pytest.approx(expected.macro_f)
    assert found["calibration_error"] == pytest.approx(expected.calibration_error)
    assert found["log_loss"] == pytest.approx(tb.evaluate.log_loss(labels, SMALL.gold, floor=1e-4))


def test_scores_that_are_no_probabilities_have_no_log_loss() -> None:
    def votes(crowd: tb.Responses) -> Any:
        found = np.zeros((crowd.n_tasks, crowd.n_classes))
        np.add.at(found, (crowd.task_of_each(), crowd.label_of_each()), 1.0)
        return found

    found = tb.bench.run(SETS, [votes, "mv"])
    assert found.table()["votes"] == found.table()["mv"]
    assert set(found.table("log_loss")["votes"]) == set()
    assert found.table("log_loss")["mv"]["small"] > 0.0


def test_differences_are_paired_and_turn_around() -> None:
    found = tb.bench.run(SETS, ["mv", "vb", "ds"])
    table = found.table()
    for to in ("mv", "vb"):
        for method, gains in found.differences(to).items():
            gain = gains["small"]
            assert gain.mean == pytest.approx(table[method]["small"] - table[to]["small"])
            assert gain.low <= gain.mean <= gain.high
    there, back = found.differences("mv")["vb"]["small"], found.differences("vb")["mv"]["small"]
    assert there.mean == pytest.approx(-back.mean)
    assert found.differences("vb")["vb"]["small"][:3] == (0.0, 0.0, 0.0)


def test_means_are_over_sets_that_a_method_has_all_of(write: Any) -> None:
    two = tb.simulate.crowd(40, 5, 2, random_state=1)
    only_two = write("only", "CLASSES = 2\ndef aggregate(crowd):\n    return [[0, 1]] * 40\n")
    found = tb.bench.run({**SETS, "two": (two.responses, two.gold)}, ["mv", "vb", only_two])
    table = found.table()
    assert list(table["only"]) == ["two"]
    assert table["vb"]["mean"] == pytest.approx((table["vb"]["two"] + table["vb"]["small"]) / 2)
    assert found.failures == []
    gain = found.differences()["vb"]["mean"]
    assert gain.wins + gain.ties + gain.losses == 2
    assert gain.mean == pytest.approx(table["vb"]["mean"] - table["mv"]["mean"])


def test_gold_that_is_given_is_not_scored() -> None:
    found = tb.bench.run(SETS, ["mv", "vb"], gold_share=0.25, seeds=3)
    assert [cell["seed"] for cell in found.cells] == [0, 1, 2] * 2
    assert {cell["n_scored"] for cell in found.cells} == {45}
    assert len({cell["accuracy"] for cell in found.cells}) > 1
    assert len(found.differences()["vb"]) == 1


# Methods


def test_a_method_is_one_file(write: Any) -> None:
    wawa = """
    import numpy as np
    def aggregate(crowd):
        task, worker, label = crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each()
        def vote(weight):
            found = np.zeros((crowd.n_tasks, crowd.n_classes))
            np.add.at(found, (task, label), weight)
            return found
        agrees = vote(1.0).argmax(1)[task] == label
        skill = np.bincount(worker, agrees) / np.bincount(worker)
        return vote(skill[worker])
    """
    text = wawa.replace("\n    ", "\n").strip()
    assert text.count("\n") < 15
    table = tb.bench.run(SETS, ["mv", write("wawa", text)]).table()
    assert table["wawa"]["small"] >= table["mv"]["small"]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_method_fails_in_its_cell_alone(name: str, write: Any) -> None:
    found = tb.bench.run(SETS, [write(name, BAD[name]), "mv"])
    assert [cell["method"] for cell in found.failures] == [name]
    assert "mv" in found.table()
    assert found.table()[name] == {}
    assert "–" in str(found)
    assert f"- {name} on small" in found.page()


def test_a_method_that_takes_too_long_is_stopped(write: Any) -> None:
    found = tb.bench.run(SETS, [write("spins", SPINS), "mv"], limit=0.2)
    assert [cell["error"] for cell in found.failures] == ["over 0.2 s"]


def test_a_method_that_draws_is_run_with_each_seed(write: Any) -> None:
    found = tb.bench.run(SETS, [write("draws", DRAWS), "mv"], seeds=3)
    accuracies = [cell["accuracy"] for cell in found.cells if cell["method"] == "draws"]
    assert len(set(accuracies)) > 1
    assert found.table()["draws"]["small"] == pytest.approx(np.mean(accuracies))
    assert len(found.cells) == 4


def test_an_estimator_is_a_method() -> None:
    own = tb.VariationalBayes(worker_model="coin")
    found = tb.bench.run(SETS, [own, "vb-coin"])
    first, second = found.table().values()
    assert first == second
    assert "labels_" not in vars(own)


@pytest.mark.slow
def test_processes_measure_the_same(write: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    methods = ["mv", write("draws", DRAWS)]
    tb.bench.run(SETS, methods, record=one)
    tb.bench.run(SETS, methods, record=two, jobs=2)
    assert without_time(one) == without_time(two)


def test_labels_are_kept_if_asked() -> None:
    found = tb.bench.run(SETS, ["vb"], with_labels=True)
    expected = tb.VariationalBayes().fit(SMALL.responses).labels_.best()
    assert [*found.labels["small", "vb"]] == [*expected.values()]


# The record


def test_a_broken_run_goes_on_to_the_same_record(write: Any, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    methods = ["mv", write("draws", DRAWS), "ds", write("raises", BAD["raises"])]
    tb.bench.run(SETS, methods, record=whole, seeds=2)
    content = whole.read_bytes()
    for cut in {0, 1, *range(0, len(content), 97), len(content) - 1, len(content)}:
        broken.write_bytes(content[:cut])
        tb.bench.run(SETS, methods, record=broken, resume=True, seeds=2)
        assert without_time(broken) == without_time(whole)


def test_only_what_has_changed_is_measured_again(write: Any, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    told: list[str] = []

    def run(sets: Any, method: str, **options: Any) -> None:
        told.clear()
        how: Any = {"record": record, "resume": True, "progress": told.append} | options
        tb.bench.run(sets, ["mv", method], **how)

    method = write("draws", DRAWS)
    run(SETS, method, seeds=1)
    assert len(told) == 2
    run(SETS, method, seeds=1)
    assert told == []
    write("draws", DRAWS + "# changed\n")
    run(SETS, method, seeds=1)
    assert len(told) == 1
    run(
        {"small": (SMALL.responses, {"t0": "0"} | dict([*SMALL.gold.to_dict().items()][:9]))},
        method,
        seeds=1,
    )
    assert len(told) == 2
    run(SETS, write("spins", SPINS), limit=0.1)
    run(SETS, write("spins", SPINS), limit=0.1)
    assert told == []
    run(SETS, write("spins", SPINS), limit=0.15)
    assert len(told) == 1
    cells = tb.bench.read_record(record)
    assert sorted(cell["method"] for cell in cells) == ["draws", "mv", "spins"]
    run(SETS, method, resume=False, seeds=1)
    assert len(tb.bench.read_record(record)) == 2


def test_what_a_file_imports_from_its_folder_is_part_of_it(write: Any) -> None:
    def source(added: float) -> str:
        write("shared_part", f"ADDED = {added}\n")
        return str(tb.bench.run(SETS, [method]).cells[0]["source"])

    body = "from shared_part import ADDED\ndef aggregate(crowd):\n    return [[ADDED] * 3] * 60\n"
    method = write("own_part", body)
    assert source(1.0) != source(2.0)


def test_a_page_is_made_of_the_record_alone(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    two = tb.simulate.crowd(40, 5, 2, random_state=1)
    found = tb.bench.run({**SETS, "two": (two.responses, two.gold)}, ["mv", "vb"], record=record)
    again = tb.bench.BenchResults(tuple(tb.bench.read_record(record)))
    assert again.page() == found.page() == again.page()
    assert "| small |" in found.page()
    other = [cell | {"version": "9.9"} for cell in found.cells]
    assert "9.9" not in found.page()
    assert "version" not in found.summary()[0]
    assert tb.bench.BenchResults((*found.cells, *other)).summary()[0][-1] == "version"
    assert "9.9" in tb.bench.BenchResults((*found.cells[:1], *other[1:])).page()


# Bad input


def test_bad_input_is_refused(write: Any, tmp_path: Path) -> None:
    with refused(tb.errors.GoldError, "gold-of-other-tasks small") as error:
        tb.bench.run({"small": (SMALL.responses, {f"g{i}": "0" for i in range(9)})})
    assert error.value.fields["gold"] == ["g0", "g1", "g2", "g3", "g4"]
    with refused(tb.InputError, "method-not-loaded"):
        tb.bench.run(SETS, [write("empty", "x = 1\n")])
    with refused(tb.InputError, "method-not-loaded"):
        tb.bench.run(SETS, [write("broken", "def aggregate(:\n")])
    with refused(tb.InputError, "method-not-loaded"):
        tb.bench.run(SETS, [str(tmp_path / "missing.py")])
    with refused(tb.errors.OptionError, "wrong-value method"):
        tb.bench.run(SETS, ["glad"])
    with refused(tb.errors.OptionError, "unknown-dataset"):
        tb.bench.run(["no such set"])
    with refused(tb.errors.OptionError, "wrong-value metric"):
        tb.bench.run(SETS, ["mv"]).table("bleu")
    record = tmp_path / "record.jsonl"
    record.write_text('{"set": "s"}\n')
    with refused(tb.InputError, "not-a-record"):
        tb.bench.run(SETS, ["mv"], record=record, resume=True)
