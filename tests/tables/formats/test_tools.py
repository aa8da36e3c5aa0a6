"""The tools' own packages read what we write, and we read what they write.

Skipped where a package is not installed: pip install label-studio-sdk argilla datasets inspect-ai
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from commands import tiebreak
from tables.formats.answers import VOTES, answers, expected, read

pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = {"p": "pos", "n": "neg"}
PEOPLE = ("ann", "bob", "cat")
CONFIG = """<View><Text name="text" value="$text"/><Choices name="sentiment" toName="text">
<Choice value="pos"/><Choice value="neg"/></Choices></View>"""


def _package(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip(name)
    if module.__file__ is None:  # a folder of our tests that has the name of a package
        pytest.skip(f"could not import {name!r}")
    return module


def _exported(data: Path, tmp_path: Path, to: str) -> Path:
    labels = tmp_path / "labels.csv"
    out = tmp_path / f"{to}.json"
    export = str(data / "label-studio.json")
    assert tiebreak("fuse", export, "-o", str(labels)).exit_code == 0
    command = ["convert", str(labels), "--to", to, "--set", "question=sentiment", "-o", str(out)]
    assert tiebreak(*command, "--texts", export).exit_code == 0
    return out


class TestLabelStudio:
    """label-studio-sdk: its converter, and its check of predictions."""

    @pytest.mark.parametrize("form", ["JSON_MIN", "CSV", "TSV"])
    def test_we_read_what_its_converter_writes(self, data: Path, tmp_path: Path, form: str) -> None:
        converter = _package("label_studio_sdk.converter").Converter(CONFIG, project_dir=None)
        tasks = json.loads((data / "label-studio.json").read_text())
        for task in tasks:
            for annotation in task["annotations"]:
                who = annotation["completed_by"]
                annotation["completed_by"] = who["id"] if isinstance(who, dict) else who
        source = tmp_path / "in"
        out = tmp_path / "out"
        source.mkdir()
        (source / "tasks.json").write_text(json.dumps(tasks))
        converter.convert(str(source), str(out), form, is_dir=True)
        written = next(path for path in out.iterdir() if path.is_file())
        found = {(int(t), w): k for (t, w), k in answers(read(written)).items() if w != "9"}
        assert found == expected(None, ("1", "2", "3"))

    def test_it_takes_our_predictions(self, data: Path, tmp_path: Path) -> None:
        interface = _package("label_studio_sdk.label_interface").LabelInterface(CONFIG)
        tasks = json.loads(_exported(data, tmp_path, "label-studio").read_text())
        assert len(tasks) == 4
        for task in tasks:
            assert interface.validate_prediction(task["predictions"][0])


class TestArgilla:
    """argilla: records in and out, without a server."""

    def _records(self) -> list[Any]:
        rg = _package("argilla")
        user = "11111111-1111-1111-1111-11111111111"
        return [
            rg.Record(
                id=f"r{task}",
                fields={"text": f"text {task}"},
                responses=[
                    rg.Response("sentiment", WORDS[mark], user_id=user + str(i), status="submitted")
                    for i, mark in enumerate(marks)
                ],
            )
            for task, marks in VOTES.items()
        ]

    @pytest.mark.parametrize("flatten", [True, False])
    def test_we_read_what_it_writes(self, tmp_path: Path, flatten: bool) -> None:
        records = self._records()
        from argilla.records._io import GenericIO  # type: ignore[import-not-found]

        path = tmp_path / "records.json"
        path.write_text(json.dumps(GenericIO.to_list(records, flatten=flatten), default=str))
        users = tuple(f"11111111-1111-1111-1111-11111111111{i}" for i in range(3))
        assert answers(read(path)) == expected("r{}", users)

    def test_we_read_its_datasets(self) -> None:
        records = self._records()
        hf = _package("datasets")
        from argilla.records._io import GenericIO

        flat = GenericIO.to_list(records, flatten=True)
        given = [{k: v for k, v in one.items() if v is not None} for one in flat]
        table = hf.Dataset.from_list(given)
        assert len(answers(read(table))) == 12

    def test_it_takes_our_suggestions(self, data: Path, tmp_path: Path) -> None:
        rg = _package("argilla")
        path = _exported(data, tmp_path, "argilla")
        records = [rg.Record.from_dict(one) for one in json.loads(path.read_text())]
        assert [record.suggestions["sentiment"].value for record in records] == [
            "pos",
            "neg",
            "neg",
            "pos",
        ]
        assert records[0].suggestions["sentiment"].agent == "tiebreak"


class TestDatasets:
    """Hugging Face datasets: list columns and names of classes."""

    def test_lists_of_classes(self, tmp_path: Path) -> None:
        hf = _package("datasets")
        features = hf.Features(
            {
                "id": hf.Value("string"),
                "annotators": hf.Sequence(hf.Value("string")),
                "labels": hf.Sequence(hf.ClassLabel(names=["neg", "pos"])),
            }
        )
        columns = {
            "id": [f"d{task}" for task in VOTES],
            "annotators": [list(PEOPLE)] * 4,
            "labels": [[WORDS[mark] for mark in marks] for marks in VOTES.values()],
        }
        dataset = hf.Dataset.from_dict(columns, features=features)
        assert answers(read(dataset)) == expected("d{}", PEOPLE)
        dataset.to_parquet(str(tmp_path / "d.parquet"))
        assert answers(read(tmp_path / "d.parquet")) == expected("d{}", PEOPLE)

    @pytest.mark.parametrize("in_lists", [True, False])
    def test_classes_keep_their_order_and_the_unused(self, tmp_path: Path, in_lists: bool) -> None:
        hf = _package("datasets")
        names = ["poor", "fair", "good", "best"]
        kind = hf.ClassLabel(names=names)
        text = hf.Value("string")
        if in_lists:
            features = {"id": text, "raters": hf.Sequence(text), "ratings": hf.Sequence(kind)}
            columns = {"id": ["a"], "raters": [["ann", "bob"]], "ratings": [["good", "poor"]]}
        else:
            features = {"id": text, "rater": text, "rating": kind}
            columns = {"id": ["a", "a"], "rater": ["ann", "bob"], "rating": ["good", "poor"]}
        dataset = hf.Dataset.from_dict(columns, features=hf.Features(features))
        dataset.to_parquet(str(tmp_path / "d.parquet"))
        for source in (dataset, tmp_path / "d.parquet"):
            found = read(source)
            assert list(found.classes) == names
            assert answers(found) == {("a", "ann"): "good", ("a", "bob"): "poor"}

    def test_splits_are_named(self) -> None:
        hf = _package("datasets")
        split = hf.DatasetDict({"train": hf.Dataset.from_dict({"task": [1]})})
        with pytest.raises(ValueError, match="several splits: 'train'"):
            read(split)


class TestInspect:
    """inspect-ai: its logs, as JSON and as .eval."""

    @pytest.mark.parametrize("ending", ["json", "eval"])
    def test_we_read_its_logs(self, tmp_path: Path, ending: str) -> None:
        log = _package("inspect_ai.log")
        score = _package("inspect_ai.scorer").Score
        spec = log.EvalSpec(
            created="2025-10-09T07:30:00+00:00",
            task="films",
            dataset=log.EvalDataset(),
            model="mockllm/model",
            config=log.EvalConfig(),
        )
        samples = [
            log.EvalSample(
                id=f"s{task}",
                epoch=1,
                input="x",
                target="",
                scores={
                    worker: score(value="C" if mark == "p" else "I")
                    for worker, mark in zip(PEOPLE, marks, strict=True)
                },
            )
            for task, marks in VOTES.items()
        ]
        path = tmp_path / f"log.{ending}"
        log.write_eval_log(log.EvalLog(eval=spec, samples=samples, status="success"), str(path))
        assert answers(read(path)) == expected("s{}", PEOPLE, "C", "I")
