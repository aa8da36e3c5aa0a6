"""The conversation: what is shown, what each key does, on a pipe and on a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import tiebreak as tb
from tiebreak.ask import Session, console
from tiebreak.cli import app as app_room
from tiebreak.wording import printable

TASKS = "abcdef"
VOTES = [(task, worker, "xy"[at % 2]) for at, task in enumerate(TASKS) for worker in "uvw"]
CSV = "task,worker,label\n" + "\n".join(",".join(row) for row in VOTES)
COMMAND = "ask r.csv --session s.db --set strategy=random --set random_state=0"

Run = Callable[..., Any]
Talk = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder where commands run, with responses and texts in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text(CSV)
    crowd = tb.simulate.crowd(40, 6, 2, accuracy=(0.6, 0.8), random_state=0)
    crowd.responses.write(tmp_path / "doubtful.csv")
    texts = "task,text\n" + "\n".join(f"{task},This is {task}." for task in TASKS)
    (tmp_path / "t.csv").write_text(texts)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Return a function that runs a command with keys."""

    def invoke(command: str, keys: str = "") -> Any:
        return CliRunner().invoke(app_room.app, command.split(), input=keys, prog_name="tiebreak")

    return invoke


@pytest.fixture
def session() -> Iterator[Session]:
    texts = {**dict.fromkeys(TASKS, "text"), "a": "first", "b": "x" * 3000}
    with Session(":memory:", VOTES, texts=texts, strategy="random", random_state=0) as opened:
        yield opened


@pytest.fixture
def talk(session: Session) -> Talk:
    """Return a function that holds a conversation and returns what was shown."""

    def hold(keys: str) -> str:
        out = io.StringIO()
        shown = Console(file=out, width=100, markup=False, emoji=False, highlight=False)
        console.Conversation(session, console.Keys(io.StringIO(keys)), shown).run()
        return out.getvalue()

    return hold


def test_every_key_does_what_the_help_says(session: Session, talk: Talk) -> None:
    shown = talk("s d ? n u v t h q")
    assert [a.says for a in session.answers()] == ["same", "different", "unsure"]
    for words in ("can't tell", "\n  same", "\n  different", "\n  unsure", "\n  skipped"):
        assert words in shown
    assert re.search(r"undone: \w \? \w", shown)
    assert re.search(r"  \w: [xy] 3 \(u, v, w\)", shown)
    assert shown.count("q quit (answers are kept)") == 1
    assert "same class?  s same  d different  ? can't tell  n skip  u undo" in shown


def test_undo_takes_back_and_asks_again(session: Session, talk: Talk) -> None:
    shown = talk("s u d")
    (answer,) = session.answers()
    assert answer.says == "different"
    assert f"undone: {answer.left} = {answer.right}" in shown
    assert shown.count("Question 1") == 2
    assert "nothing to undo" in talk("u u q")


def test_progress_is_shown_with_each_question(run: Run) -> None:
    shown = run("ask doubtful.csv --session d.db", "1s").stderr
    line = r"Question 1 · about \d+\.\d of 40 labels still wrong · \d+ % chance to correct one"
    assert re.search(line, shown)
    assert "Question 3" in shown


def test_the_first_screen_explains_itself_in_three_lines(talk: Talk) -> None:
    first = talk("q").split("\n\n")[0].splitlines()
    assert len(first) == 3
    assert "one key answers" in first[0]


class Shown:
    """A session of labels, and what the conversation about it shows."""

    def __init__(self, rows: Any, **options: Any) -> None:
        self.session = Session(":memory:", rows, random_state=0, **options)

    def talk(self, keys: str) -> str:
        out = io.StringIO()
        shown = Console(file=out, width=120, markup=False, emoji=False, highlight=False)
        console.Conversation(self.session, console.Keys(io.StringIO(keys)), shown).run()
        self.session.close()
        return out.getvalue()


PETS = [(task, worker, ("cat", "dog", "newt")[(at + worker) % 3]) for at, task in enumerate(TASKS)
        for worker in range(2)]  # fmt: skip


def test_classes_have_numbers_and_first_letters_and_meanings() -> None:
    shown = Shown(PETS, kinds=("label",), class_texts={"cat": "Any feline."})
    words = shown.talk("1 c 2 d 3 z q")
    said = [line.strip() for line in words.splitlines()]
    assert "1 c cat: Any feline." in said
    assert "3   newt" in said  # n is for skipping
    assert [line for line in said if line in ("cat", "dog", "newt")] == [
        "cat",
        "cat",
        "dog",
        "dog",
        "newt",
    ]
    assert "which class?  ? can't tell  n skip  u undo" in words
    assert "z is not a key here; one of: 1 2 3 c d ? n u v t h q" in words


def test_more_than_nine_classes_have_numbers_of_two_keys() -> None:
    rows = [(task, worker, f"class {(at + 5 * worker) % 12}") for at, task in enumerate(TASKS)
            for worker in range(2)]  # fmt: skip
    rows += [(f"t{k}", 0, f"class {k}") for k in range(12)]
    words = Shown(rows, kinds=("label",)).talk("03 12 13 01 q")
    classes = sorted(f"class {k}" for k in range(12))
    said = [line.strip() for line in words.splitlines() if line.strip() in classes]
    assert said == [classes[2], classes[11], classes[0]]
    assert "13 is not a class here; the numbers go to 12" in words


def test_yes_or_no_names_the_class_and_its_meaning() -> None:
    shown = Shown(PETS, kinds=("is",), class_texts={"cat": "Any feline.", "dog": "Any dog.",
                                                    "newt": "Wet."})  # fmt: skip
    words = shown.talk("y n k q")
    assert "is this " in words
    assert "(Any feline.)?  y yes  n no  ? can't tell  k skip" in words
    assert "\n  yes" in words
    assert "\n  no" in words
    assert "\n  skipped" in words


def test_the_wording_says_in_what_sense() -> None:
    words = Shown(VOTES, strategy="random", wording="the same intent").talk("q")
    assert "the same intent?  s same  d different" in words


def test_texts_are_shown_and_long_ones_on_request(session: Session, talk: Talk) -> None:
    conversation = session.question("a", "b")
    session._open = conversation
    short = talk("q")
    assert "first" in short
    assert "1,000 more characters: t shows all" in short
    assert short.count("x") < 2_200
    assert talk("tq").count("x") > 5_000  # once cut, once whole


def test_other_keys_are_told_and_change_nothing(session: Session, talk: Talk) -> None:
    assert "z is not a key here; one of: s d ? n u v t h q" in talk("z")
    assert session.answers() == ()


def test_capital_letters_count(session: Session, talk: Talk) -> None:
    talk("S")
    assert len(session.answers()) == 1


@pytest.mark.parametrize(
    ("key", "left"), [("u", "a=b b=c"), ("1", "b=c a≠c"), ("2", "a=b a≠c"), ("k", "a=b b=c a≠c")]
)
def test_a_contradiction_lets_the_person_choose(
    session: Session, talk: Talk, key: str, left: str
) -> None:
    session.answer(session.question("a", "b"), "same")
    session.answer(session.question("b", "c"), "same")
    session._open = session.question("a", "c")
    shown = talk(f"d{key}q")
    assert "contradicts what was said before: a = b = c, yet a ≠ c." in shown
    assert re.search(r"1  a = b  \(me, 20", shown)
    assert "".join(str(a).replace(" ", "") + " " for a in session.answers()).strip() == left


def test_a_contradiction_left_open_is_asked_about_first(session: Session, talk: Talk) -> None:
    for left, right, says in (("a", "b", "same"), ("b", "c", "same"), ("a", "c", "different")):
        session.answer(session.question(left, right), says)
    assert "yet a ≠ c" in talk("q")
    assert "kept" in talk("kq")
    assert "yet a ≠ c" not in talk("q")
    assert "answers may err" in talk("q")


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    assert printable("a\x1b[2J\rb\x9bc\nd\te") == "a�[2J�b�c\nd\te"


def test_markup_in_texts_is_text(folder: Path) -> None:
    out = io.StringIO()
    shown = Console(file=out, width=80, markup=False, emoji=False, highlight=False)
    texts = dict.fromkeys(TASKS, "[bold]:smile:[/]")
    with Session(":memory:", VOTES, texts=texts, strategy="random") as session:
        console.Conversation(session, console.Keys(io.StringIO("q")), shown).run()
    assert out.getvalue().count("[bold]:smile:[/]") == 2


# The command, with keys from a pipe


def n_kept(path: Path) -> int:
    """Return how many answers and skips the file of a session holds."""
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT count(*) FROM events").fetchone()[0])


def test_piped_keys_make_links_and_labels(run: Run, folder: Path) -> None:
    done = run(f"{COMMAND} --texts t.csv --who ann --links-out l.csv -o labels.csv", "s d\n? v q")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert "This is" in done.stderr
    assert n_kept(folder / "s.db") == 3
    links = tb.read_links(folder / "l.csv")
    assert sorted(link for _, _, link in links.pairs()) == ["cannot", "must"]
    assert (folder / "l.csv").read_text().splitlines()[0] == "left,right,link,who"
    assert (folder / "l.csv").read_text().count(",ann") == 2
    assert len(tb.read_labels(folder / "labels.csv")) == 6


def test_the_same_command_goes_on(run: Run, folder: Path) -> None:
    run(COMMAND, "sd")
    again = run(COMMAND, "?")
    assert "Question 3" in again.stderr
    assert n_kept(folder / "s.db") == 3


def test_links_without_an_answer_have_a_header(run: Run, folder: Path) -> None:
    run(f"{COMMAND} --links-out l.csv", "")
    assert (folder / "l.csv").read_text() == "left,right,link,who\n"


def test_it_ends_at_the_budget(run: Run, folder: Path) -> None:
    done = run(f"{COMMAND} --set budget=2", "sdsdsd")
    assert console.WHY["budget"] in done.stderr
    assert n_kept(folder / "s.db") == 2


def test_it_ends_at_the_target(run: Run, folder: Path) -> None:
    done = run(
        "ask doubtful.csv --session d.db --kinds same --set batch=1 --set target=0.01", "sd" * 20
    )
    assert console.WHY["target"] in done.stderr
    assert n_kept(folder / "d.db") == 20


def test_it_ends_when_nothing_is_left(run: Run) -> None:
    done = run(COMMAND, "?" * 15)
    assert console.WHY["nothing"] in done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ask - --session s.db", "Standard input is for keys"),
        ("ask r.csv --session s.db --links-out s.db", "s.db is read or written by this command"),
        ("ask r.csv --session r.csv", "r.csv is not a session file"),
        ("ask r.csv --session nowhere/s.db", "there is no folder nowhere"),
        ("ask r.csv --session other.db", "other.db belongs to another job"),
        ("ask r.csv --session s.db --set target=2", "target must be a share"),
        ("ask r.csv --session s.db --set link_error=much", "or None; got 'much'"),
        ("ask r.csv --session s.db --set among=t.csv --texts r.csv", "no column for text"),
        ("ask r.csv", "--session"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_why(
    run: Run, folder: Path, command: str, said: str
) -> None:
    before = (folder / "r.csv").read_text()
    Session(folder / "other.db", VOTES[1:-3]).close()
    done = run(command, "s")
    assert done.exit_code == 2
    assert said in re.sub(r"[\s│]+", " ", done.stderr)
    assert (folder / "r.csv").read_text() == before


def as_process(*arguments: str) -> list[str]:
    """Return how to run the command as a process of its own."""
    return [sys.executable, "-m", "tiebreak", *arguments]


def test_a_full_disk_ends_with_2(folder: Path) -> None:
    import resource

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

    done = subprocess.run(
        as_process(*COMMAND.split()), input="su" * 60,
        capture_output=True, text=True, check=False, preexec_fn=small_files, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "s.db" in done.stderr
    again = subprocess.run(
        as_process(*COMMAND.split()), input="s",
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr


# On a terminal


class Terminal:
    """A process on a terminal of its own: keys in, words out."""

    def __init__(self, command: list[str]) -> None:
        import pty

        self.handle, other = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )  # fmt: skip
        os.close(other)
        self.seen = ""

    def wait_for(self, words: str) -> None:
        """Read until words are seen, after those seen before."""
        begin, until = len(self.seen), time.monotonic() + 60
        while words not in self.seen[begin:]:
            assert time.monotonic() < until, self.seen
            if select.select([self.handle], [], [], 0.1)[0]:
                self.seen += os.read(self.handle, 4096).decode("utf-8", "replace")

    def press(self, key: bytes) -> None:
        """Press a key once it is waited for: what is struck before that is dropped."""
        import termios

        until = time.monotonic() + 60
        while termios.tcgetattr(self.handle)[3] & termios.ICANON:
            assert time.monotonic() < until, self.seen
            time.sleep(0.005)
        os.write(self.handle, key)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.handle)


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    """Return a terminal on which questions are asked."""
    opened = Terminal(as_process(*COMMAND.split()))
    yield opened
    opened.close()


def test_on_a_terminal_one_key_is_an_answer_without_enter(terminal: Terminal) -> None:
    terminal.wait_for("same class?")
    terminal.press(b"ss")  # the second comes before its question is seen: it does not count
    terminal.wait_for("same class?")
    terminal.press(b"\x1b[A")  # an arrow is not a key, and leaves no letter behind
    terminal.wait_for("not a key here")
    terminal.press(b"d")
    terminal.wait_for("same class?")
    terminal.press(b"q")
    terminal.wait_for("2 answers kept in s.db")
    assert terminal.process.wait(timeout=60) == 0


def test_ctrl_c_keeps_the_answers_and_says_how_to_go_on(folder: Path, terminal: Terminal) -> None:
    terminal.wait_for("same class?")
    terminal.press(b"s")
    terminal.wait_for("same class?")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("1 answer kept in s.db; run the same command again to continue.")
    assert terminal.process.wait(timeout=60) == 130
    with Session(folder / "s.db", str(folder / "r.csv")) as session:
        assert len(session.answers()) == 1


def test_ctrl_c_as_a_key_keeps_the_answers_too(terminal: Terminal) -> None:
    terminal.wait_for("same class?")
    terminal.press(b"s")
    terminal.wait_for("same class?")
    terminal.press(b"\x03")
    terminal.wait_for("1 answer kept in s.db; run the same command again to continue.")
    assert terminal.process.wait(timeout=60) == 130


@pytest.mark.parametrize("end", [b"\x04", b"q"])
def test_ctrl_d_ends_as_q_does(terminal: Terminal, end: bytes) -> None:
    terminal.wait_for("same class?")
    terminal.press(end)
    terminal.wait_for("0 answers kept in s.db")
    assert terminal.process.wait(timeout=60) == 0


def test_piped_keys_skip_blanks_and_end() -> None:
    keys = console.Keys(io.StringIO(" s\n\td"))
    assert [keys.read(), keys.read(), keys.read()] == ["s", "d", None]


# Pairs without a session


def test_select_prints_pairs_with_their_gain(run: Run) -> None:
    done = run("ask doubtful.csv --list 3 --set random_state=0")
    assert done.exit_code == 0, done.stderr
    header, *rows = done.stdout.splitlines()
    assert header == "left,right,gain"
    assert len(rows) == 3
    assert all(float(row.split(",")[2]) >= 0 for row in rows)
    assert "3 pairs" in done.stderr


def test_select_as_json_and_into_a_file(run: Run, folder: Path) -> None:
    shown = json.loads(run("ask doubtful.csv --list 2 --set random_state=0 --json --quiet").stdout)
    assert [sorted(row) for row in shown] == [["gain", "left", "right"]] * 2
    done = run("ask doubtful.csv --list 2 --set random_state=0 --json -o pairs.json")
    assert done.stdout == ""
    assert json.loads((folder / "pairs.json").read_text()) == shown
    run("ask doubtful.csv --list 2 --set random_state=0 -o pairs.csv")
    assert (folder / "pairs.csv").read_text().startswith("left,right,gain\n")


def test_select_leaves_out_what_is_linked_and_what_is_not_among(run: Run, folder: Path) -> None:
    (folder / "l.csv").write_text("left,right,link\na,b,cannot\n")
    (folder / "some.csv").write_text("task\na\nb\nc\n")
    done = run(
        "ask r.csv --list 20 --links l.csv --set among=some.csv --set strategy=random --quiet"
    )
    pairs = {frozenset(row.split(",")[:2]) for row in done.stdout.splitlines()[1:]}
    assert pairs
    assert pairs <= {frozenset("ac"), frozenset("bc")}
    (folder / "some.csv").write_text("task\nzz\n")
    done = run("ask r.csv --list 20 --set among=some.csv")
    assert done.exit_code == 2
    assert "'zz'" in done.stderr


# Questions of several kinds


def test_ask_writes_links_and_labels_that_fuse_reads(run: Run, folder: Path) -> None:
    command = (
        "ask doubtful.csv --session m.db --set costs=label=2 --set random_state=0 --set batch=5"
    )
    done = run(
        f"{command} --links-out l.csv --labels-out k.csv -o labels.csv", "1" + "sd" * 12 + "q"
    )
    assert done.exit_code == 0, done.stderr
    known = tb.read_gold(folder / "k.csv")
    assert len(known) == 1
    assert len(tb.read_links(folder / "l.csv")) == 24
    fused = run(
        "fuse doubtful.csv --links l.csv --gold k.csv --set gold_weight=1 --set sampling=pairs "
        "-o fused.csv"
    )
    assert fused.exit_code == 0, fused.stderr
    labels = tb.read_labels(folder / "labels.csv")
    assert tb.read_labels(folder / "fused.csv").best() == labels.best()


def test_ask_takes_kinds_costs_and_a_least_worth(run: Run, folder: Path) -> None:
    (folder / "classes.csv").write_text("class,text\nc0,The first.\nc1,The second.\n")
    done = run("ask doubtful.csv --session k.db --kinds label --set class_texts=classes.csv", "1q")
    assert "1 c0: The first." in re.sub(r" +", " ", done.stderr)
    stop = run("ask doubtful.csv --session w.db --set stop_when_worth_less_than=9", "1")
    assert console.WHY["worth"] in stop.stderr
    timed = run("ask doubtful.csv --session t.db --set costs=time", "1sq")
    assert timed.exit_code == 0, timed.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ask r.csv --session s.db --kinds best", "got 'best'"),
        ("ask r.csv --session s.db --set costs=label=much", "name=number"),
        ("ask r.csv --session s.db --kinds label --set strategy=random", "draws pairs"),
        ("ask r.csv --list 20 --kinds label --set strategy=random", "leave out --kinds"),
        ("ask r.csv --list 20 --set costs=label=2", "needs --kinds"),
        ("ask r.csv --list 20 --texts t.csv", "--texts needs --to"),
    ],
)
def test_wrong_kinds_end_with_2(run: Run, command: str, said: str) -> None:
    done = run(command, "s")
    assert done.exit_code == 2
    assert said in re.sub(r"[\s│]+", " ", done.stderr)


def test_select_offers_questions_of_several_kinds(run: Run, folder: Path) -> None:
    command = "ask doubtful.csv --list 6 --kinds same,label,vote --set random_state=0 --quiet"
    rows = json.loads(run(f"{command} --set costs=label=2,vote=0.1 --json").stdout)
    assert len(rows) == 6
    assert {"kind", "gain", "cost", "worth"} <= set(rows[0])
    assert {row["kind"] for row in rows} <= {"same", "label", "vote"}
    assert all(row["worker"] for row in rows if row["kind"] == "vote")
    (folder / "k.csv").write_text("task,label\nt01,c1\n")
    table = run(
        "ask doubtful.csv --list 4 --kinds same,label --gold k.csv --set random_state=0 --quiet"
    ).stdout
    header, *lines = table.splitlines()
    assert header == "kind,left,right,gain,cost,worth"
    assert all(line.startswith("same,") for line in lines)


def test_answers_to_selected_questions_are_read_back(run: Run, folder: Path) -> None:
    run("ask doubtful.csv --list 3 --kinds label --set random_state=0 -o labels.csv")
    run("ask doubtful.csv --list 3 --kinds same --set random_state=0 -o pairs.csv")
    for name, column, answer in (("labels.csv", "label", "c0"), ("pairs.csv", "link", "cannot")):
        header, *lines = (folder / name).read_text().splitlines()
        filled = [f"{header},{column}", *(f"{line},{answer}" for line in lines)]
        (folder / name).write_text("\n".join(filled) + "\n")
    assert len(tb.read_gold(folder / "labels.csv")) == 3
    assert tb.read_links(folder / "pairs.csv").n_cannot == 3


@pytest.mark.parametrize("tool", ["label-studio", "argilla", "prodigy"])
def test_questions_are_written_for_annotation_tools(run: Run, folder: Path, tool: str) -> None:
    (folder / "k.csv").write_text("task,label\na,x\n")
    command = f"ask r.csv --list 4 --kinds same,label,is --gold k.csv --texts t.csv --to {tool}"
    done = run(f"{command} --set costs=label=2 --set random_state=0 -o q.json")
    assert done.exit_code == 0, done.stderr
    text = (folder / "q.json").read_text()
    if tool == "prodigy":
        rows = [json.loads(line) for line in text.splitlines()]
        assert all({"text", "options", "meta"} <= set(row) for row in rows)
    else:
        rows = json.loads(text)
    assert rows
    assert "This is" in text
