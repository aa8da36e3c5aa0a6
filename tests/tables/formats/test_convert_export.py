"""tiebreak convert and export: to a plain table, and back into the tools."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from commands import tiebreak
from tables.formats.answers import answers, read

from tiebreak import tables
from tiebreak.tables import formats


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    "name",
    [
        "argilla-flat.json",
        "doccano.zip",
        "inspect.json",
        "judges.jsonl",
        "label-studio.json",
        "list-columns.parquet",
        "mt-bench.jsonl",
        "mturk.csv",
        "promptfoo.json",
        "toloka.tsv",
    ],
)
def test_a_converted_file_reads_the_same(data: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "responses.csv"
    result = tiebreak("convert", data / name, "-o", out)
    assert result.exit_code == 0, result.stderr
    as_text = {(str(t), w): str(k) for (t, w), k in answers(read(data / name)).items()}
    assert answers(read(out)) == as_text


def test_runs_order_and_confidence_are_kept(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    assert tiebreak("convert", data / "judges.jsonl", "-o", out).exit_code == 0
    assert _rows(out)[0] == {
        "task": "q1",
        "worker": "gpt",
        "label": "pos",
        "run": "1",
        "confidence": "0.9",
    }
    assert len(_rows(out)) == 36
    assert tiebreak("convert", data / "mt-bench.jsonl", "-o", out).exit_code == 0
    assert {row["order"] for row in _rows(out)} == {"AB", "BA"}
    assert {row["worker"] for row in _rows(out)} == {"gpt-4", "author_1", "author_2"}


def test_gold_and_texts_go_into_files_of_their_own(data: Path, tmp_path: Path) -> None:
    out, gold, texts = (tmp_path / name for name in ("r.csv", "g.csv", "t.csv"))
    command = ("convert", data / "label-studio.json", "-o", out)
    result = tiebreak(*command, "--gold-out", gold, "--texts-out", texts)
    assert result.exit_code == 0, result.stderr
    assert _rows(gold) == [{"task": "4", "label": "pos"}]
    assert _rows(texts)[1] == {"task": "2", "text": "bad film"}
    assert len(_rows(texts)) == 4


@pytest.mark.parametrize("option", ["--gold-out", "--texts-out"])
def test_what_is_not_there_is_not_written(data: Path, tmp_path: Path, option: str) -> None:
    out = tmp_path / "r.csv"
    more = tmp_path / "x.csv"
    result = tiebreak("convert", data / "records.json", "-o", out, option, more)
    assert result.exit_code == 2
    assert "is not written" in result.stderr
    assert not more.exists()


def test_a_broken_file_leaves_nothing_behind(data: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text((data / "label-studio.json").read_text()[:-200])
    out = tmp_path / "r.csv"
    texts = tmp_path / "t.csv"
    assert tiebreak("convert", broken, "-o", out, "--texts-out", texts).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["broken.json"]


class TestExport:
    """Labels with probabilities as predictions, suggestions or chosen options."""

    @pytest.fixture
    def labels(self, data: Path, tmp_path: Path) -> Path:
        out = tmp_path / "labels.csv"
        assert tiebreak("fuse", data / "label-studio.json", "-o", out).exit_code == 0
        return out

    def _export(self, labels: Path, data: Path, to: str, *options: object) -> str:
        texts = data / "label-studio.json"
        result = tiebreak("convert", labels, "--to", to, "--texts", texts, *options)
        assert result.exit_code == 0, result.stderr
        return str(result.stdout)

    def test_label_studio(self, labels: Path, data: Path) -> None:
        """A record has the id and the data of its task, so that the prediction goes to it."""
        tasks = json.loads(self._export(labels, data, "label-studio"))
        known = {task["id"]: task for task in json.loads((data / "label-studio.json").read_text())}
        assert [task["id"] for task in tasks] == list(known)
        assert all(task["data"] == known[task["id"]]["data"] for task in tasks)
        prediction = tasks[1]["predictions"][0]
        assert prediction["task"] == tasks[1]["id"]
        assert prediction["model_version"] == "tiebreak"
        assert 0.9 < prediction["score"] < 1
        assert prediction["result"] == [
            {
                "from_name": "sentiment",
                "to_name": "text",
                "type": "choices",
                "value": {"choices": ["neg"]},
            }
        ]

    def test_label_studio_without_its_export(self, labels: Path, tmp_path: Path) -> None:
        texts = tmp_path / "texts.csv"
        texts.write_text("task,text\n1,one\n")
        command = ("convert", labels, "--to", "label-studio", "--texts", texts)
        result = tiebreak(*command, "--set", "question=sentiment")
        assert result.exit_code == 0, result.stderr
        first = json.loads(result.stdout)[0]
        assert first["data"] == {"text": "one", "task": "1"}
        assert "id" not in first
        assert first["predictions"][0]["result"][0]["from_name"] == "sentiment"
        assert "new tasks" in result.stderr

    def test_all_data_of_a_task_and_one_of_several_questions(self, tmp_path: Path) -> None:
        def answer(name: str, kind: str, value: object) -> dict[str, object]:
            return {"from_name": name, "to_name": "img", "type": kind, "value": {kind: value}}

        given = [answer("mood", "choices", ["sad"]), answer("stars", "rating", 4)]
        tasks = [
            {
                "id": i,
                "data": {"image": f"/{i}.png", "meta": {"site": [1, 2]}, "text": "t"},
                "annotations": [{"completed_by": 1, "result": given}],
            }
            for i in (7, 8)
        ]
        source, labels = tmp_path / "ls.json", tmp_path / "l.csv"
        source.write_text(json.dumps(tasks))
        labels.write_text("task,label,probability\n8,4,0.9\n")
        command = ("convert", labels, "--to", "label-studio", "--texts", source)
        result = tiebreak(*command, "--set", "question=stars")
        assert result.exit_code == 0, result.stderr
        (record,) = json.loads(result.stdout)
        assert (record["id"], record["data"]) == (8, tasks[1]["data"])
        assert record["predictions"][0]["result"] == [answer("stars", "rating", 4)]
        refused = tiebreak(*command)
        assert refused.exit_code == 2
        assert "mood" in refused.stderr
        assert "stars" in refused.stderr

    def test_texts_of_an_export_with_several_questions(self, tmp_path: Path) -> None:
        results = [
            {"from_name": n, "to_name": "t", "type": "choices", "value": {"choices": ["a"]}}
            for n in ("one", "two")
        ]
        task = {"id": 1, "data": {"text": "hello"}}
        task["annotations"] = [{"completed_by": 1, "result": results}]
        source, labels = tmp_path / "ls.json", tmp_path / "l.csv"
        source.write_text(json.dumps([task]))
        labels.write_text("task,label,probability\n1,a,0.9\n")
        result = tiebreak("convert", labels, "--to", "prodigy", "--texts", source)
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["text"] == "hello"

    def test_argilla(self, labels: Path, data: Path) -> None:
        records = json.loads(self._export(labels, data, "argilla", "--set", "question=sentiment"))
        assert records[0]["fields"] == {"text": "good film"}
        assert records[0]["suggestions"]["sentiment"]["value"] == "pos"
        assert records[0]["suggestions"]["sentiment"]["agent"] == "tiebreak"

    def test_prodigy(self, labels: Path, data: Path) -> None:
        lines = self._export(labels, data, "prodigy").splitlines()
        first = json.loads(lines[0])
        assert first["accept"] == ["pos"]
        assert [option["id"] for option in first["options"]] == ["neg", "pos"]

    def test_only_doubtful_labels(self, labels: Path, data: Path) -> None:
        assert len(self._export(labels, data, "prodigy", "--below", "0.9").splitlines()) == 2
        assert tiebreak("convert", labels, "--to", "prodigy", "--below", "0.1").exit_code == 2

    def test_texts_from_a_table(self, labels: Path, tmp_path: Path) -> None:
        texts = tmp_path / "texts.csv"
        texts.write_text("task,text\n1,one\n")
        result = tiebreak("convert", labels, "--to", "prodigy", "--texts", texts)
        assert [json.loads(line)["text"] for line in result.stdout.splitlines()][:2] == ["one", "2"]

    def test_texts_of_other_tasks_are_refused(self, labels: Path, tmp_path: Path) -> None:
        texts = tmp_path / "texts.csv"
        texts.write_text("task,text\nx,one\n")
        out = tmp_path / "out.jsonl"
        result = tiebreak("convert", labels, "--to", "prodigy", "--texts", texts, "-o", out)
        assert result.exit_code == 2
        assert "No text is of a task that has a label" in result.stderr
        assert not out.exists()

    def test_what_we_wrote_can_be_read_again(
        self, labels: Path, data: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "argilla.json"
        path.write_text(self._export(labels, data, "argilla"))
        assert set(read(path).workers) == {"tiebreak"}


def test_an_export_says_itself_what_tasks_look_like(data: Path) -> None:
    export = data / "label-studio.json"
    texts = formats.read_texts(export)
    assert texts
    assert tables.read_texts(export) == texts
    assert tables.read_contents(export) == {"text": texts}
