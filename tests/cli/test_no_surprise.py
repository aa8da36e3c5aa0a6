"""No silent surprise: what was read otherwise than meant is said, or refused, with the way out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.running import HEADER, ROWS, Run, Write, code_of, told

# Labels


@pytest.mark.parametrize("variant", ["CAT", "Cat", "ｃａｔ", '"c  at"'])
def test_labels_that_differ_only_in_form_are_noted_with_the_way_out(
    run: Run, write: Write, variant: str
) -> None:
    same = '"c at"' if "  " in variant else "cat"
    write("r.csv", HEADER + f"a,ann,{same}\nb,ann,{variant}\na,bob,dog\nb,bob,dog\n")
    done = run("fuse", "r.csv")
    assert done.exit_code == 0
    assert "differ only in case, spaces or Unicode form" in told(done)
    assert "--set fold_labels" in told(done)


def test_fold_labels_joins_them_under_the_most_frequent_form(run: Run, write: Write) -> None:
    write("r.csv", HEADER + "a,ann,Cat\nb,ann,cat\na,bob,cat\nb,bob,dog\nb,eve,CAT\nc,eve,dog\n")
    done = run("fuse", "r.csv", "--set", "fold_labels", "--method", "mv")
    assert done.stdout.splitlines()[1].startswith("a,cat")
    assert "Cat" not in done.stdout
    assert "2 classes" in done.stderr
    assert "joined" in told(done)
    assert "--set fold_labels" not in told(done)  # what was done is not asked for


def test_fold_labels_folds_gold_too(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    write("g.csv", "task,label\na,Y\n")
    done = run("fuse", "r.csv", "--gold", "g.csv", "--set", "fold_labels")
    assert done.exit_code == 0
    assert "2 classes" in done.stderr
    assert done.stdout.splitlines()[1].startswith("a,y")


def test_spaces_around_ids_and_labels_are_stripped_and_said(run: Run, write: Write) -> None:
    write("r.csv", HEADER + "a,ann, x\n a,bob,x \nb,ann,y\nb, bob,x\n")
    done = run("fuse", "r.csv", "--method", "mv")
    assert done.stdout.splitlines()[1:] == ["a,x,1,x", "b,x,0.5,"]
    assert "spaces around" in told(done)


def test_evaluate_warns_where_classes_meet_only_after_folding(run: Run, write: Write) -> None:
    write("l.csv", "task,label\na,YES\nb,NO\n")
    write("g.csv", "task,label\na,yes\nb,no\n")
    done = run("evaluate", "l.csv", "g.csv")
    assert "share no class" in told(done)
    assert "case, spaces or Unicode form" in told(done)


@pytest.mark.parametrize("word", ["NA", "nan", "NULL", "None", "N/A"])
def test_words_that_mean_nothing_elsewhere_are_noted(run: Run, write: Write, word: str) -> None:
    write("r.csv", ROWS + f"a,cid,{word}\n")
    done = run("fuse", "r.csv")
    assert f"{word!r} is read as a class" in told(done)


def test_many_classes_are_noted(run: Run, write: Write) -> None:
    write("r.csv", HEADER + "".join(f"t{i % 30},w{i % 3},c{i}\n" for i in range(60)))
    assert "is this the label column?" in told(run("fuse", "r.csv"))


def test_as_many_classes_as_tasks_are_noted(run: Run, write: Write) -> None:
    write("r.csv", HEADER + "".join(f"t{i},w{i % 3},c{i}\n" for i in range(20)))
    assert "is this the label column?" in told(run("fuse", "r.csv"))


# Columns


def test_two_columns_that_both_may_be_the_task_are_refused(run: Run, write: Write) -> None:
    write("r.csv", "id,prompt,judge,label\n1,p,j,x\n2,p,j,y\n3,q,j,x\n1,p,k,x\n2,p,k,y\n3,q,k,x\n")
    done = run("fuse", "r.csv")
    assert done.exit_code == 2
    assert "'prompt'" in told(done)
    assert "'id'" in told(done)
    assert run("fuse", "r.csv", "--columns", "task=id").exit_code == 0


def test_two_columns_that_name_the_same_tasks_are_no_question(run: Run, write: Write) -> None:
    write("r.csv", "id,prompt,judge,label\n1,p,j,x\n2,q,j,y\n1,p,k,x\n2,q,k,y\n")
    assert run("fuse", "r.csv").exit_code == 0


def test_a_number_per_row_is_no_task(run: Run, write: Write) -> None:
    write("r.csv", "id,prompt,judge,label\n1,p,j,x\n2,q,j,y\n3,p,k,x\n4,q,k,y\n")
    assert run("fuse", "r.csv").exit_code == 0


# Files that are written


def test_files_of_others_are_not_overwritten(run: Run, folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "responses.csv").write_text("mine\n")
    done = run("demo", "-o", "out")
    assert done.exit_code == 2
    assert "responses.csv" in told(done)
    assert "--force" in told(done)
    assert [path.name for path in (folder / "out").iterdir()] == ["responses.csv"]
    assert run("demo", "-o", "out", "--force").exit_code == 0


def test_own_files_are_made_again_until_somebody_changes_them(run: Run, folder: Path) -> None:
    assert run("demo", "-o", "out").exit_code == 0
    assert run("demo", "-o", "out").exit_code == 0
    (folder / "out" / "gold.csv").write_text("corrected by hand\n")
    assert run("demo", "-o", "out").exit_code == 2


@pytest.mark.parametrize("there", ["about.json", "notes.txt"])
def test_pack_refuses_a_folder_that_is_not_its_own(
    run: Run, write: Write, folder: Path, there: str
) -> None:
    write("r.csv", ROWS)
    (folder / "x.tb").mkdir()
    (folder / "x.tb" / there).write_text("{}")
    done = run("convert", "r.csv", "-o", "x.tb")
    assert done.exit_code == 2
    assert (folder / "x.tb" / there).read_text() == "{}"


def test_pack_leaves_alone_what_is_beside_its_own_files(
    run: Run, write: Write, folder: Path
) -> None:
    write("r.csv", ROWS)
    assert run("convert", "r.csv", "-o", "x.tb").exit_code == 0
    for name in ("notes.txt", "mine.npy"):
        (folder / "x.tb" / name).write_text("{}")
    assert run("convert", "r.csv", "-o", "x.tb").exit_code == 0
    assert (folder / "x.tb" / "notes.txt").read_text() == "{}"
    assert (folder / "x.tb" / "mine.npy").read_text() == "{}"


def test_a_run_that_is_killed_leaves_the_last_file(folder: Path) -> None:
    (folder / "labels.csv").write_text("old")
    killed = (
        "import os, signal\n"
        "from tiebreak.tables import open_target\n"
        "with open_target('labels.csv') as out:\n"
        "    out.write(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", killed], cwd=folder, check=False)
    assert (folder / "labels.csv").read_text() == "old"


@pytest.mark.parametrize("name", ["x.xlsx", "x.xls", "x.ods", "x.zip", "x.json"])
def test_names_of_formats_that_are_not_written_are_refused(
    run: Run, write: Write, folder: Path, name: str
) -> None:
    write("r.csv", ROWS)
    done = run("fuse", "r.csv", "-o", name)
    assert done.exit_code == 2
    assert name in told(done)
    assert ".csv" in told(done)
    assert not (folder / name).exists()


# Nothing


def test_a_table_of_links_or_gold_without_rows_means_none(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    write("k.csv", "left,right,link\n")
    write("g.csv", "task,label\n")
    plain = run("fuse", "r.csv")
    done = run("fuse", "r.csv", "--links", "k.csv", "--gold", "g.csv")
    assert done.exit_code == 0
    assert done.stdout == plain.stdout


# Ways to end


def test_a_negative_seed_is_refused(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    done = run("fuse", "r.csv", "--method", "gibbs", "--set", "random_state=-1")
    assert done.exit_code == 2
    assert "random_state" in told(done)


def test_a_loop_of_symbolic_links_is_refused(run: Run, write: Write, folder: Path) -> None:
    write("r.csv", ROWS)
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    assert run("fuse", "a").exit_code == 2
    assert run("fuse", "r.csv", "-o", "a").exit_code == 2
    assert run("fuse", "r.csv", "-o", "a/l.csv").exit_code == 2
    assert run("demo", "-o", "a").exit_code == 2


def _with_closed(folder: Path, closing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = f'"{sys.executable}" -m tiebreak {" ".join(arguments)} {closing}'
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )


def test_closed_standard_output_is_said(write: Write, folder: Path) -> None:
    write("r.csv", ROWS)
    done = _with_closed(folder, ">&-", "fuse", "r.csv")
    assert done.returncode == 2
    assert "-o FILE" in done.stderr
    write("g.csv", "task,label\na,x\n")
    assert _with_closed(folder, ">&-", "evaluate", "g.csv", "g.csv").returncode == 2
    assert _with_closed(folder, ">&-", "fuse", "r.csv", "-o", "l.csv").returncode == 0


def test_closed_standard_error_changes_nothing_but_words(write: Write, folder: Path) -> None:
    write("r.csv", ROWS)
    assert _with_closed(folder, "2>&-", "fuse", "r.csv").returncode == 0
    assert _with_closed(folder, "2>&-", "fuse", "none.csv").returncode == 2


def test_a_session_that_names_unknown_tasks_is_refused(
    run: Run, write: Write, folder: Path
) -> None:
    import sqlite3
    from contextlib import closing

    import tiebreak as tb

    write("more.csv", f"{ROWS}zz,w,x\n")
    with tb.ask.Session(folder / "s.db", tb.read_responses("more.csv")) as session:
        session.answer(session.question("zz", "a"), "same")
    write("r.csv", ROWS)
    tb.ask.Session(folder / "t.db", tb.read_responses("r.csv")).close()
    with closing(sqlite3.connect(folder / "s.db")) as kept:  # as a tool would forge it
        kept.execute("ATTACH 't.db' AS other")
        kept.execute("REPLACE INTO about SELECT * FROM other.about")
        kept.commit()
    done = run("ask", "r.csv", "--session", "s.db", stdin="q")
    assert done.exit_code == 2
    assert "'zz'" in told(done)


def test_memory_that_runs_out_is_said(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiebreak import Auto

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    write("r.csv", ROWS)
    monkeypatch.setattr(Auto, "fit", fail)
    done = run("fuse", "r.csv")
    assert done.exit_code == 2
    assert "memory" in told(done)


def test_weights_beyond_all_measure_hold(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    write("k.csv", "left,right,link,weight\na,b,must,1e300\n")
    for options in ([], ["--set", "link_options=mean-field", "--set", "link_strength=1"]):
        done = run("fuse", "r.csv", "--links", "k.csv", "--probabilities", *options)
        assert done.exit_code == 0
        a, b = (line.split(",")[1] for line in done.stdout.splitlines()[1:])
        assert a == b
        assert "nan" not in done.stdout


def test_class_probabilities_that_do_not_sum_to_one_are_refused(run: Run, write: Write) -> None:
    write("l.csv", "task,label,probability_x,probability_y\na,x,0.9,0.1\nb,y,0.9,0.9\n")
    write("g.csv", "task,label\na,x\nb,y\n")
    done = run("evaluate", "l.csv", "g.csv")
    assert done.exit_code == 2
    assert "line 3" in told(done)
    assert "1.8" in told(done)


# Options that do nothing


def test_columns_of_a_packed_folder_are_refused(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    run("convert", "r.csv", "-o", "r.tb")
    done = run("fuse", "r.tb", "--columns", "task=item")
    assert done.exit_code == 2
    assert "--columns" in told(done)


@pytest.mark.parametrize(
    "option",
    [
        ["--set", "link_error=0.1"],
        ["--set", "link_decode=joint"],
        ["--set", "on_contradiction=drop"],
    ],
)
def test_options_of_links_without_links_are_refused(
    run: Run, write: Write, option: list[str]
) -> None:
    write("r.csv", ROWS)
    done = run("fuse", "r.csv", *option)
    assert done.exit_code == 2
    assert option[0] in told(done)
    assert "--links" in told(done)


def test_repeats_of_a_packed_folder_are_refused(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    run("convert", "r.csv", "-o", "r.tb")
    done = run("fuse", "r.tb", "--set", "repeats=count")
    assert done.exit_code == 2
    assert "repeats" in told(done)


# Many classes


def test_a_fit_that_would_take_minutes_says_so_and_ten_are_refused(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiebreak.inference import door

    write("r.csv", ROWS)
    monkeypatch.setattr(door, "SECONDS_PER_CELL", 60.0 / 12 / door.SWEEPS)  # 3 workers, 2 classes
    done = run("fuse", "r.csv")
    assert done.exit_code == 0
    assert "about 1 minute" in told(done)
    assert "--set worker_model=coin" in told(done)
    monkeypatch.setattr(door, "SECONDS_PER_CELL", 700.0 / 12 / door.SWEEPS)
    done = run("fuse", "r.csv")
    assert done.exit_code == 2
    assert "--force" in told(done)
    assert run("fuse", "r.csv", "--force").exit_code == 0


def test_a_fit_beyond_the_memory_of_the_machine_is_refused_unless_forced(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiebreak.inference import door

    write("r.csv", ROWS)
    monkeypatch.setattr(door, "memory_bytes", lambda: 100)
    done = run("fuse", "r.csv")
    assert done.exit_code == 2
    assert "GiB for confusion matrices" in told(done)
    assert "--force" in told(done)
    assert run("fuse", "r.csv", "--force").exit_code == 0
    assert run("fuse", "r.csv").exit_code == 2


def test_convert_writes_all_of_its_files_or_none(run: Run, write: Write, folder: Path) -> None:
    write("r.csv", ROWS)  # a plain table has neither texts nor known labels
    done = run("convert", "r.csv", "-o", "l.csv", "--texts-out", "t.csv")
    assert done.exit_code == 2
    assert "no texts" in told(done)
    assert [path.name for path in folder.iterdir()] == ["r.csv"]


# Options that every command has which reads responses


PAIR = '{"annotations": [{"result": [%s], "completed_by": %d}], "data": {"text": "x"}, "id": %d}'
CHOICE = '{"type": "choices", "from_name": "%s", "value": {"choices": ["%s"]}}'


@pytest.fixture
def two_questions(write: Write) -> Path:
    topics = ["sport", "art"]
    results = [
        ", ".join([CHOICE % ("mood", "good"), CHOICE % ("topic", topics[i % 5 % 2])])
        for i in range(12)
    ]
    tasks = [PAIR % (result, i % 3, i // 3) for i, result in enumerate(results)]
    return write("export.json", f"[{', '.join(tasks)}]")


@pytest.mark.usefixtures("two_questions")
@pytest.mark.parametrize(
    "command",
    [
        ["fuse", "export.json"],
        ["describe", "export.json"],
        ["ask", "export.json", "--list", "3"],
        ["judges", "panel", "export.json"],
        ["convert", "export.json"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_asks_for_the_question_and_takes_it(run: Run, command: list[str]) -> None:
    refused = run(*command)
    assert refused.exit_code == 2
    assert "holds 2 questions: 'mood' (12 answers), 'topic' (12 answers)" in told(refused)
    assert "--set question=mood" in told(refused)
    assert run(*command, "--set", "question=topic").exit_code == 0


EXTRA = "item,judge,verdict,attempt_no,side,times,sure,kin\n" + "".join(
    f"t{i % 4},j{i % 3},{'yn'[i % 2]},{i // 12},{'LR'[i // 6 % 2]},{1 + i % 2},0.{i % 9},fam\n"
    for i in range(24)
)
NAMED = "run=attempt_no,order=side,weight=times,confidence=sure,group=kin"


@pytest.mark.parametrize("command", ["fuse", "describe", "report"])
def test_the_columns_of_runs_order_weight_and_the_like_can_be_named(
    run: Run, write: Write, command: str
) -> None:
    write("r.csv", EXTRA)
    done = run(command, "r.csv", "--columns", NAMED)
    assert done.exit_code == 0, done.stderr
    wrong = run(command, "r.csv", "--columns", "runs=attempt_no")
    assert wrong.exit_code == 2
    assert "'run', 'order', 'group', 'confidence', 'weight'" in told(wrong)
    missing = run(command, "r.csv", "--columns", "run=attempt_nr")
    assert missing.exit_code == 2
    assert "Did you mean 'attempt_no'?" in told(missing)


def test_convert_keeps_what_was_named(run: Run, write: Write, folder: Path) -> None:
    write("r.csv", EXTRA)
    assert run("convert", "r.csv", "--columns", NAMED, "-o", "c.csv").exit_code == 0
    lines = (folder / "c.csv").read_text().splitlines()
    assert lines[0] == "task,worker,label,run,order,group,confidence,weight"
    assert len(lines) == 25
    first = run("fuse", "r.csv", "--columns", NAMED)
    assert run("fuse", "c.csv").stdout == first.stdout


def test_describe_reads_what_fuse_reads(run: Run, write: Write) -> None:
    write("r.csv", EXTRA)
    shown = run("describe", "r.csv", "--columns", NAMED).stdout
    assert "columns: task is 'item', worker is 'judge', label is 'verdict', run is" in shown
    assert "weight is 'times'" in shown
    text = EXTRA.replace("item", "task").replace("judge", "worker").replace("verdict", "label")
    piped = run("describe", "-", stdin=text)
    assert "columns: task is 'task', worker is 'worker', label is 'label'" in piped.stdout
    wide = write("w.csv", "task,ann,bob\na,x,y\nb,x,x\n")
    assert "4 responses, 2 tasks, 2 workers" in run("describe", str(wide), "--set", "wide").stdout


def test_links_that_contradict_name_the_options_of_the_command(run: Run, write: Write) -> None:
    write("r.csv", "task,worker,label\na,u,x\na,v,y\nb,u,y\nb,v,x\n")
    write("l.csv", "left,right,link\na,b,must\na,b,cannot\n")
    asked = run("ask", "r.csv", "--links", "l.csv", "--session", "s.db", stdin="q")
    fused = run("fuse", "r.csv", "--links", "l.csv", "-o", "-")
    assert asked.exit_code == fused.exit_code == 2
    assert code_of(asked) == code_of(fused) == "links-contradict"
    assert "--set link_error=0.02" in asked.stderr
    assert "on_contradiction" not in asked.stderr
    assert "--set on_contradiction=drop" in fused.stderr
    options = ("--links", "l.csv", "--session", "s.db", "--set", "link_error=0.02")
    assert run("ask", "r.csv", *options, stdin="q").exit_code == 0
