"""Streams of events: what goes in and out, broken lines, kills, signals, memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kept.crowds import crowd, shuffled
from refusals import refused

import tiebreak as tb
from tiebreak.life import Journal, Service, Settings, StreamEvent, read_event

pytest.importorskip("fcntl", reason="needs fork, signals and locks")

TESTS = Path(__file__).resolve().parent.parent


def lines_of(rows: list[tuple[str, str, str]], first: int = 0) -> list[bytes]:
    return [
        json.dumps({"seq": first + i, "task": t, "worker": w, "label": k}).encode() + b"\n"
        for i, (t, w, k) in enumerate(rows)
    ]


class Run:
    """A stream that ran through: what it wrote, and what it said of broken lines."""

    def __init__(self, path: Path, lines: list[bytes], settings: Settings | None = None) -> None:
        self.out: list[dict[str, Any]] = []
        self.words: list[str] = []
        with Journal(path) as journal:
            service = Service(
                path,
                settings or Settings(every=50),
                lambda line: self.out.append(json.loads(line)),
                self.words.append,
                journal,
            )
            for number, line in enumerate(lines, 1):
                service.take(number, line)
            service.end()
        self.tally = service.tally
        self.model = tb.load(path)

    def last_labels(self) -> dict[str, str]:
        return {line["task"]: line["label"] for line in self.out if "task" in line}


# Events


def test_events_are_read() -> None:
    assert read_event(b'{"seq": 1, "ask": "a"}') == StreamEvent(1, "ask", {"ask": "a"})
    gold = StreamEvent(2, "gold", {"task": "a", "gold": "x"})
    assert read_event(b'{"seq": 2, "task": "a", "gold": "x"}') == gold
    response = StreamEvent(3, "response", {"task": 7, "worker": 1, "label": True})
    assert read_event(b'{"seq": 3, "task": 7, "worker": 1, "label": true}') == response
    link = read_event(b'{"seq": 4, "left": "a", "right": "b", "link": "cannot", "weight": 2.0}')
    assert link == StreamEvent(4, "link", {"left": "a", "right": "b"}, "cannot", 2.0)


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("event-not-json", ["", "{", "\ufffd"]),
        ("event-no-object", ["[1]", "7"]),
        ("event-seq", ['{"task": "a", "worker": "b", "label": "x"}', '{"seq": "1", "ask": "a"}']),
        ("event-seq", ['{"seq": -1, "ask": "a"}', '{"seq": true, "ask": "a"}']),
        ("event-without", ['{"seq": 1, "task": "a", "worker": "b"}']),
        ("event-id", ['{"seq": 1, "task": "", "worker": "b", "label": "x"}']),
        ("event-id", ['{"seq": 1, "task": ["a"], "worker": "b", "label": "x"}']),
        ("event-id", ['{"seq": 1, "ask": null}', '{"seq": 1, "task": NaN, "gold": "x"}']),
        ("event-id", ['{"seq": 1, "ask": 9223372036854775808}']),
        ("event-link", ['{"seq": 1, "left": "a", "right": "b", "link": "maybe"}']),
        ("event-weight", ['{"seq": 1, "left": "a", "right": "b", "link": "must", "weight": -1}']),
    ],
)
def test_a_line_that_is_no_event_is_refused(code: str, lines: list[str]) -> None:
    for line in lines:
        with refused(tb.InputError, code):
            read_event(line.encode())


# Streams


def test_a_stream_makes_a_model_and_tells_every_label(tmp_path: Path) -> None:
    rows = shuffled(crowd().responses)
    run = Run(tmp_path / "m.tbm", lines_of(rows))
    assert run.last_labels() == run.model.labels_.best()
    assert run.out[-1] == {"done": len(rows) - 1}
    assert run.model.labels_.best() == tb.VariationalBayes().fit(rows).labels_.best()
    assert [path.name for path in tmp_path.iterdir()] == ["m.tbm"]


def test_a_stream_goes_on_and_leaves_out_what_it_has_seen(tmp_path: Path) -> None:
    rows = shuffled(crowd().responses)
    lines = lines_of(rows)
    Run(tmp_path / "m.tbm", lines[:300])
    run = Run(tmp_path / "m.tbm", lines[250:])
    assert run.out[0] == {"done": 299}
    assert run.tally.seen_before == 50
    assert run.model.responses_.n_responses == len(rows)
    assert run.model.labels_.best() == tb.VariationalBayes().fit(rows).labels_.best()


def test_a_broken_line_is_told_with_its_number_and_the_rest_goes_on(tmp_path: Path) -> None:
    rows = shuffled(crowd().responses)
    lines = lines_of(rows)
    broken = [*lines[:100], b"{oops\n", b"\xff\xfe\n", *lines[100:]]
    broken.insert(200, b'{"seq": 9999, "task": "t001", "worker": 3, "label": "c0"}\n')
    broken.insert(10, b'{"seq": 9999, "task": 7, "worker": "w1", "label": "c0"}\n')  # of the first
    run = Run(tmp_path / "m.tbm", broken)
    assert run.tally.broken == 4
    at = [words.split(":")[0] for words in run.words]
    assert at == ["line 11", "line 102", "line 103", "line 202"]
    assert run.model.responses_.n_responses == len(rows)


def test_events_that_contradict_are_told_and_left_out(tmp_path: Path) -> None:
    rows = shuffled(crowd().responses)
    n = len(rows)
    more: list[dict[str, Any]] = [
        {"left": "t001", "right": "t002", "link": "must"},
        {"left": "t001", "right": "t002", "link": "cannot"},
        {"task": "t001", "gold": "c0"},
        {"task": "t001", "gold": "c1"},
        {"ask": "t002"},
        {"ask": "nowhere"},
    ]
    lines = [json.dumps({"seq": n + i, **event}).encode() for i, event in enumerate(more)]
    run = Run(tmp_path / "m.tbm", lines_of(rows) + lines)
    assert [words.split(":")[0] for words in run.words] == [f"line {n + 2}", f"line {n + 4}"]
    assert {"task": "t002", "label": "c0", "probability": 1.0} in run.out
    assert {"task": "nowhere", "label": None} in run.out
    assert (len(run.model.links_), len(run.model.gold_)) == (1, 1)


def test_a_stream_may_keep_counts_only(tmp_path: Path) -> None:
    rows = shuffled(crowd(300).responses)
    settings = Settings(every=50, save_every=200, keep="counts", n_open=40)
    run = Run(tmp_path / "m.tbm", lines_of(rows), settings)
    assert len(run.model.tasks_) <= 50
    total = run.model._carried.counts.sum() + run.model.responses_.n_responses
    assert total == pytest.approx(len(rows))
    again = Run(tmp_path / "m.tbm", lines_of([("new", "w1", "c0")], first=len(rows)))
    assert again.model._carried is not None


def test_only_variational_bayes_takes_a_stream(tmp_path: Path) -> None:
    tb.MajorityVote().fit(crowd().responses).save(tmp_path / "m.tbm")
    with refused(tb.errors.OptionError, "no-stream-of"):
        Run(tmp_path / "m.tbm", [])


def test_two_streams_do_not_write_into_one_model(tmp_path: Path) -> None:
    with Journal(tmp_path / "m.tbm"), refused(tb.errors.FileError, "in-use"):
        Journal(tmp_path / "m.tbm")


def test_a_journal_that_was_cut_off_keeps_whole_batches(tmp_path: Path) -> None:
    lines = lines_of(shuffled(crowd().responses)[:40])
    with Journal(tmp_path / "m.tbm") as journal:
        journal.append(lines[:20], 19)
        journal.append(lines[20:], 39)
    path = tmp_path / "m.tbm.journal"
    path.write_bytes(path.read_bytes()[:-30])
    with Journal(tmp_path / "m.tbm") as journal:
        assert journal.batches() == [lines[:20]]
        journal.append(lines[20:], 39)
        assert journal.batches() == [lines[:20], lines[20:]]


# Kills and signals


def killed(folder: Path, n_kills: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "stream.processes", str(folder), str(n_kills)],
        cwd=TESTS, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def judge(found: dict[str, Any]) -> None:
    assert found["errors"] == []
    for name in ("responses", "links", "gold"):
        one, other = found[name]
        assert one == other
    assert found["counted"][0] == pytest.approx(found["counted"][1])
    assert found["labels_equal"]
    assert found["furthest"] < 1e-4  # fits of a stream end when nothing moves by 1e-3
    assert found["told_equal"]
    assert found["seq_grows"]
    assert found["left"] == ["killed.tbm", "whole.tbm"]


def test_three_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    found = killed(tmp_path, 3)
    judge(found)
    assert found["killed"] >= 2


@pytest.mark.long
def test_fifty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    found = killed(tmp_path, 50)
    judge(found)
    assert found["killed"] >= 40


def test_sigterm_saves(tmp_path: Path) -> None:
    rows = shuffled(crowd().responses)
    process = subprocess.Popen(
        [sys.executable, "-m", "tiebreak", "stream", "m.tbm", "--set", "every=10"],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(lines_of(rows[:105])))
    process.stdin.flush()
    while json.loads(process.stdout.readline()) != {"done": 99}:
        pass
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    done = json.loads(out.splitlines()[-1])["done"]
    assert done in range(99, 105)  # lines that still lay in the pipe were not taken, nor told
    assert tb.load(tmp_path / "m.tbm").responses_.n_responses == done + 1
    assert not (tmp_path / "m.tbm.journal").exists()


# Long streams


@pytest.mark.long
def test_memory_does_not_grow_with_the_stream(tmp_path: Path) -> None:
    """Stream 1e7 responses with counts; the peak memory of the last half is that of the first."""
    n = int(os.environ.get("TIEBREAK_STREAM_EVENTS", "10000000"))
    code = f"""
import resource, sys, time
import numpy as np
import tiebreak as tb
from tiebreak.life import Stream

def batch(rng, first):
    task = [f"t{{first + i // 5}}" for i in range(10_000)]
    truth = np.repeat(rng.integers(0, 4, 2000), 5)
    label = np.where(rng.random(10_000) < 0.8, truth, rng.integers(0, 4, 10_000))
    first_worker = np.repeat(rng.integers(0, 200, 2000), 5)
    five_apart = (first_worker + 40 * np.tile(np.arange(5), 2000)) % 200
    worker = [f"w{{w}}" for w in five_apart.tolist()]
    return task, worker, [f"c{{k}}" for k in label.tolist()]

rng = np.random.default_rng(0)
model = tb.VariationalBayes(backend="numba").fit(tb.Responses.from_columns(*batch(rng, 0)))
stream = Stream(model, n_open=20_000)
peaks, taken = [], 0.0
for number in range(1, {n // 10_000}):
    columns = batch(rng, 2000 * number)
    began = time.process_time()
    stream.visit(stream.add(*columns))
    taken += time.process_time() - began
    if number in ({n // 20_000}, {n // 10_000 - 1}):
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(*peaks, stream.counts.of_workers.sum(), {n} / taken)
"""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    half, whole, counted, speed = map(float, done.stdout.split())
    print(f"{half:.0f} MiB, {whole:.0f} MiB, {speed:,.0f}/s, {time.monotonic() - began:.0f} s")  # noqa: T201
    assert whole < 1.02 * half
    assert counted == pytest.approx(n, rel=1e-6)


@pytest.mark.long
def test_three_hundred_thousand_responses_a_second() -> None:
    from kept.crowds import rows_of

    from tiebreak.life import Stream

    made = tb.simulate.crowd(100_000, 200, 4, responses_per_task=5, random_state=0)
    rows = rows_of(made.responses)
    batches = [
        tuple(map(list, zip(*rows[i : i + 10_000], strict=True))) for i in range(0, 500_000, 10_000)
    ]
    model = tb.VariationalBayes(backend="numba").fit(tb.Responses.from_columns(*batches[0]))
    stream = Stream(model)
    stream.visit(stream.add(*batches[1]))
    began = time.process_time()
    for columns in batches[2:]:
        stream.visit(stream.add(*columns))
    speed = 480_000 / (time.process_time() - began)
    print(f"{speed:,.0f} responses a second")  # noqa: T201
    assert speed > 300_000
