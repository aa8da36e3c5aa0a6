"""Every format gives the responses that its small file holds, found by content alone."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from commands import tiebreak
from tables.formats.answers import answers, expected, notes_of, read
from tables.said import noted, refused

import tiebreak as tb
from tiebreak.tables import formats, plain
from tiebreak.tables import read as reading

PEOPLE = ("ann", "bob", "cat")
USERS = tuple(f"11111111-1111-1111-1111-11111111111{i}" for i in range(3))
TURKERS = ("ANN", "BOB", "CAT")
SESSIONS = ("films-ann", "films-bob", "films-cat")
JUDGES = ("gpt", "claude", "llama")
RUBRICS = tuple(f"llm-rubric: rubric {i}" for i in range(3))
SCORERS = ("judge-a", "judge-b", "judge-c")
MODELS = ("gpt-a", "gpt-b", "gpt-c")

CASES: dict[str, tuple[str | None, dict[Any, Any]]] = {  # file: format, what people said
    "label-studio.json": ("label-studio", expected(None, ("ann@example.org", "2", "3"))),
    "label-studio-min.json": ("label-studio-min", expected(None, ("1", "2", "3"))),
    "label-studio-min.csv": ("label-studio-min", expected("{}", ("1", "2", "3"))),
    "argilla.json": ("argilla", expected("r{}", USERS)),
    "argilla-flat.json": ("argilla-flat", expected("r{}", USERS)),
    "prodigy-choice.jsonl": ("prodigy", expected("-100{}", SESSIONS)),
    "prodigy-binary.jsonl": ("prodigy", expected("300{}", SESSIONS, "accept", "reject")),
    "mturk.csv": ("mturk", expected("H{}", TURKERS)),
    "mturk-task-answers.csv": ("mturk", expected("H{}", TURKERS)),
    "toloka.tsv": ("toloka", expected("t{}", PEOPLE)),
    "doccano.zip": ("doccano", expected(None, PEOPLE)),
    "list-columns.parquet": ("list-columns", expected("d{}", PEOPLE)),
    "class-label.parquet": (None, expected(None, PEOPLE)),
    "judges.jsonl": (None, expected("q{}", JUDGES)),
    "batch-api.jsonl": ("batch-api", expected("q{}", MODELS)),
    "batch-api-messages.jsonl": ("batch-api", expected("q{}", ("m-a", "m-b", "m-c"))),
    "inspect.json": ("inspect", expected("s{}", SCORERS, "C", "I")),
    "inspect.eval": ("inspect", expected("s{}", SCORERS, "C", "I")),
    "records.json": (None, expected("t{}", PEOPLE)),
    "utf-16.csv": (None, expected("t{}", PEOPLE)),
    "pipes.txt": (None, expected("t{}", PEOPLE)),
    "sep.csv": (None, expected("t{}", PEOPLE)),
}
LEFT_OUT = {  # by file: a draft, a rejected answer, an answer without a label
    "argilla-flat.json": ("r3", USERS[1]),
    "toloka.tsv": ("t3", "bob"),
    "doccano.zip": (2, "bob"),
}
MODEL_WORKERS = {"bert-1", "9"}  # predictions, and whoever gave the known label in JSON_MIN


@pytest.mark.parametrize("name", CASES)
def test_a_file_gives_what_its_people_said(data: Path, name: str) -> None:
    _, votes = CASES[name]
    found = answers(read(data / name))
    people = {key: label for key, label in found.items() if key[1] not in MODEL_WORKERS}
    wanted = {_same_type(key, people): label for key, label in votes.items()}
    if name in LEFT_OUT:
        del wanted[LEFT_OUT[name]]
    assert people == wanted


def _same_type(key: tuple[Any, Any], found: dict[Any, Any]) -> tuple[Any, Any]:
    """Prodigy's ids are whole numbers."""
    is_number = isinstance(next(iter(found))[0], int)
    return (int(key[0]), key[1]) if is_number else key


@pytest.mark.parametrize("name", CASES)
def test_the_name_of_a_file_does_not_matter(data: Path, tmp_path: Path, name: str) -> None:
    renamed = shutil.copy(data / name, tmp_path / "labels.dat")
    assert answers(read(renamed)) == answers(read(data / name))


@pytest.mark.parametrize("name", CASES)
def test_the_format_is_known_by_content(data: Path, name: str) -> None:
    found = formats.format_of(plain.open_source(data / name), None)
    assert (found.name if found else None) == CASES[name][0]


@pytest.mark.parametrize("name", CASES)
def test_fuse_needs_no_option(data: Path, name: str) -> None:
    result = tiebreak("fuse", str(data / name))
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) == 5


READING = {  # every command that reads responses; M is a model, D a folder to write into
    "bench": "bench FILE --gold GOLD --method mv",
    "describe": "describe FILE",
    "convert": "convert FILE -o D/rows.csv",
    "pack": "convert FILE -o D/packed.tb",
    "fuse": "fuse FILE -o D/labels.csv",
    "predict": "predict M FILE -o D/labels.csv",
    "update": "update M FILE -o D/labels.csv",
    "report": "report FILE -o D/report.html",
    "judges panel": "judges panel FILE",
    "judges rate": "judges rate FILE",
    "judges route": "judges route FILE -o D/routes",
    "ask": "ask FILE --session D/answers.db",
    "list": "ask FILE --list 3 -o D/questions.csv",
    "serve": "serve FILE --session D/served.db --port 0",
}


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize(
    "name", [*CASES, "wide.csv", "mt-bench.jsonl", "arena-hard.jsonl", "promptfoo.json"]
)
def test_every_command_reads_every_format(
    data: Path, tmp_path: Path, name: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"FILE": str(data / name), "M": str(tmp_path / "m.tbm")}
    if " M " in READING[command]:
        crowd = replace(read(words["FILE"]), runs=None, weight=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tb.VariationalBayes().fit(crowd).save(words["M"])
    if command == "bench":
        labels = tb.MajorityVote().fit(read(words["FILE"])).labels_
        words["GOLD"] = str(tmp_path / "gold.csv")
        labels.write(words["GOLD"])
    if command == "serve":
        monkeypatch.setattr("tiebreak.page.app.run", lambda _, socket, *__, **___: socket.close())
    _run(*(words.get(w, w.replace("D/", f"{tmp_path}/")) for w in READING[command].split()))


def test_no_command_that_reads_responses_is_missing() -> None:
    names = re.findall(r"^  ([a-z]+)  ", tiebreak("--help").stdout, re.MULTILINE)
    names += [f"judges {name}" for name in ("panel", "rate", "route")]
    usage = {name: tiebreak(*name.split(), "--help").stdout.splitlines()[0] for name in names}
    reading = {name for name in names if re.search(r"[{[](RESPONSES|IN)[]}]", usage[name])}
    assert reading == READING.keys() - {"pack", "list"}


def _run(*words: str) -> None:
    result = tiebreak(*words, stdin="q")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("form", [form.name for form in formats.FORMATS])
def test_every_format_has_a_small_file_and_an_own_name(form: str) -> None:
    assert [one.name for one in formats.FORMATS].count(form) == 1
    elsewhere = {"mt-bench", "arena-hard", "promptfoo"}  # their tasks are composed; see below
    elsewhere |= {"conll"}  # of spans: test_spans.py
    assert form in {name for name, _ in CASES.values()} | elsewhere


def test_pairs_shown_the_other_way_round_are_turned_back(data: Path) -> None:
    found = answers(read(data / "mt-bench.jsonl", repeats="last"))
    task = "81 | alpaca vs vicuna | turn 1"
    for order in ("AB", "BA"):
        assert found[task, f"gpt-4 [order={order}]"] == "model_a"
        assert found[task, f"author_2 [order={order}]"] == "tie"


def test_each_model_meets_the_baseline_twice(data: Path) -> None:
    found = answers(read(data / "arena-hard.jsonl", repeats="last"))
    judged: dict[str, list[tuple[str, str]]] = {task: [] for task, _ in found}
    for (task, worker), label in found.items():
        judged[task].append((worker[-3:-1], label))
    # llama is shown second, then first: A>B and B>A are both for o3-mini.
    assert judged["q1 | llama vs o3-mini"] == [("BA", "model_b"), ("AB", "model_b")]
    assert judged["q3 | o3-mini vs vicuna"] == [("AB", "model_b")]  # one game has no verdict


def test_two_games_of_a_pair_are_two_orders(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(
        '{"question_id": 1, "model_1": "x", "model_2": "y", "g1_winner": "model_1", '
        '"g2_winner": "tie", "judge": ["gpt-4", "pair-v2"], "turn": 1}\n'
    )
    found = answers(read(path, repeats="last"))
    assert set(found.values()) == {"model_a", "tie"}
    assert {worker for _, worker in found} == {
        "gpt-4 | pair-v2 [order=AB]",
        "gpt-4 | pair-v2 [order=BA]",
    }


@pytest.mark.parametrize("name", ["question_id", "question", "task"])
def test_a_pair_seen_once_needs_no_order(tmp_path: Path, name: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f"{name},model_a,model_b,winner,judge\n1,y,x,A,ann\n2,x,y,x,ann\n")
    assert answers(read(path)) == {
        ("1 | x vs y", "ann"): "model_b",
        ("2 | x vs y", "ann"): "model_a",
    }


def test_assertions_of_a_type_are_the_judges_of_promptfoo(data: Path) -> None:
    votes = expected("test {} | openai:gpt-a | prompt 0", RUBRICS, "pass", "fail")
    moved = {(f"test {int(t.split()[1]) - 1}{t[6:]}", w): k for (t, w), k in votes.items()}
    assert answers(read(data / "promptfoo.json", question="llm-rubric")) == moved


def test_models_are_workers_beside_people(data: Path) -> None:
    for name in ("label-studio.json", "argilla.json"):
        assert "bert-1" in list(read(data / name).workers)


def test_what_was_read_kept_and_dropped_is_said(data: Path) -> None:
    said = notes_of(data / "label-studio.json")
    assert "read 18 answers, kept 16; dropped 1 cancelled" in said
    assert "dropped 1 rejected" in notes_of(data / "mturk.csv")
    assert "dropped 1 ignored" in notes_of(data / "prodigy-choice.jsonl")
    assert "1 without an answer; dropped 1 requests that failed" in notes_of(
        data / "batch-api.jsonl"
    )
    assert "does not tell drafts" in notes_of(data / "argilla.json")


def test_known_labels_in_a_file_are_gold(data: Path) -> None:
    with noted("answers-read", n_known=1):
        assert tb.read_gold(data / "label-studio.json").to_dict() == {4: "pos"}
    with pytest.warns(tb.InputNote):
        assert tb.read_gold(data / "toloka.tsv").to_dict() == {"t4": "pos"}
    with pytest.warns(tb.InputNote), refused("no-gold", tb.errors.GoldError):
        tb.read_gold(data / "mturk.csv")


def test_fuse_uses_the_gold_of_the_file(data: Path, tmp_path: Path) -> None:
    found = tiebreak("fuse", str(data / "toloka.tsv"))
    assert "1 gold" in found.stderr
    assert "t4,pos,1,pos\n" in found.stdout
    other = tmp_path / "gold.csv"
    other.write_text("task,label\nt1,neg\n")
    command = ["fuse", str(data / "toloka.tsv"), "--gold", str(other)]
    overruled = tiebreak(*command)
    assert "--gold is used; the 1 known labels" in overruled.stderr
    assert "t1,neg,1,pos\n" in overruled.stdout


def test_a_task_that_is_only_known_exists(tmp_path: Path) -> None:
    path = tmp_path / "toloka.tsv"
    path.write_text(
        "INPUT:text\tOUTPUT:mood\tGOLDEN:mood\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\t"
        "ASSIGNMENT:status\nx\tpos\t\tt1\tann\tAPPROVED\ny\tpos\tneg\tt2\tann\tREJECTED\n"
    )
    assert list(read(path).tasks) == ["t1", "t2"]


def test_the_last_answer_is_the_last_in_time(tmp_path: Path) -> None:
    path = tmp_path / "mturk.csv"
    path.write_text(
        "HITId,WorkerId,AssignmentStatus,SubmitTime,Answer.mood\n"
        "H1,ANN,Approved,Thu Oct 09 07:30:20 UTC 2025,late\n"
        "H1,ANN,Approved,Thu Oct 09 07:29:20 UTC 2025,early\n"
    )
    assert answers(read(path)) == {("H1", "ANN"): "late"}


def test_a_list_of_dictionaries_is_an_export_too(data: Path) -> None:
    import json

    tasks = json.loads((data / "label-studio.json").read_text())
    assert answers(read(tasks)) == answers(read(data / "label-studio.json"))


def test_a_format_can_be_named(data: Path) -> None:
    found = read(data / "label-studio.json", format="label-studio", question="sentiment")
    assert found.n_tasks == 4
    with refused("wrong-value", tb.errors.OptionError, name="format") as caught:
        read(data / "label-studio.json", format="labelstudio")
    assert "'label-studio'" in str(caught.value.fields["words"])


def test_naming_all_columns_makes_it_a_plain_table(data: Path) -> None:
    columns = {"task": "Input.text", "worker": "WorkerId", "label": "Answer.sentiment.label"}
    found = answers(read(data / "mturk.csv", columns=columns))
    assert found["good film", "DAN"] == "neg"  # rejected, but the caller takes all rows


def test_the_task_of_mturk_can_be_an_input(data: Path) -> None:
    found = read(data / "mturk.csv", columns={"task": "Input.text"})
    assert list(found.tasks) == ["good film", "bad film", "dull", "fine"]
    with refused("column-known", tb.errors.OptionError, role="task"):
        read(data / "toloka.tsv", columns={"task": "INPUT:text"})


def test_texts_with_commas_tabs_and_new_lines_survive(data: Path, tmp_path: Path) -> None:
    text = (data / "mturk.csv").read_text().replace("good film", 'good,\n""film""\t')
    path = tmp_path / "mturk.csv"
    path.write_text(text)
    assert answers(read(path)) == answers(read(data / "mturk.csv"))


def test_gold_links_and_labels_may_be_json_lists_too(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text('[\n {"task": "a", "label": "x"},\n {"task": "b", "label": "y"}\n]\n')
    assert tb.read_gold(path).to_dict() == {"a": "x", "b": "y"}
    assert tb.read_labels(path).best() == {"a": "x", "b": "y"}
    path.write_text('[{"left": "a", "right": "b", "link": "must"}]')
    assert len(tb.read_links(path)) == 1


def test_a_header_in_brackets_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("[task],worker,label\na,w,x\n")
    columns = {"task": "[task]"}
    assert answers(read(path, columns=columns)) == {("a", "w"): "x"}


@pytest.mark.parametrize("form", formats.FORMATS, ids=lambda form: form.name)
def test_no_format_has_files_of_our_own_columns_alone(form: formats.Format) -> None:
    own = sorted(reading.OWN_COLUMNS)
    for n in range(1, len(own) + 1):
        for names in itertools.combinations(own, n):
            opened = plain.Opened("r.csv", Mock(), "delimited", names)
            assert not form.looks_like(opened)


@pytest.mark.parametrize(
    "header",
    [
        "task,worker,label",
        "task\tworker\tlabel\tweight",
        " task ;worker; label",
        "\ufefftask|label",
    ],
)
def test_a_plain_header_loads_no_format(tmp_path: Path, header: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"{header}\na,b,c,1\n", encoding="utf-8")
    code = f"""
import sys
import tiebreak as tb
try:
    tb.read_responses({str(path)!r})
except tb.TiebreakError:
    pass
sys.exit("tiebreak.tables.formats" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
