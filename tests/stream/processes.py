"""A stream that is killed again and again: a script of its own, without threads.

It forks, so that a child costs milliseconds. A child reads events from where the last one was
acknowledged, as a sender would send them again; what the model holds in the end is printed as JSON
for the test to judge.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import tiebreak as tb
from tiebreak.life import Journal, Service, Settings

EVERY = 20
SETTINGS = Settings(every=EVERY, save_every=60)
CROWD = tb.simulate.crowd(400, 9, 3, responses_per_task=5, accuracy=(0.6, 0.9), random_state=0)


def events() -> list[bytes]:
    """Return responses in random order, with some links and gold among them."""
    crowd = CROWD.responses
    columns = zip(
        crowd.tasks.take(crowd.task_of_each()),
        crowd.workers.take(crowd.worker_of_each()),
        crowd.classes.take(crowd.label_of_each()),
        strict=True,
    )
    found: list[dict[str, Any]] = [
        {"task": str(t), "worker": str(w), "label": str(k)} for t, w, k in columns
    ]
    links = tb.simulate.links(CROWD.gold, 40, random_state=1).pairs()
    found += [{"left": str(a), "right": str(b), "link": word} for a, b, word in links]
    gold = list(CROWD.gold.to_dict().items())[:20]
    found += [{"task": str(task), "gold": str(label)} for task, label in gold]
    random.Random(0).shuffle(found)
    return [
        json.dumps({"seq": 10 + 3 * i, **event}).encode() + b"\n" for i, event in enumerate(found)
    ]


def serve(path: Path, lines: list[bytes], out: int) -> None:
    """Stream the lines that come after what was acknowledged; write what is told to a pipe."""
    with Journal(path) as journal:
        service = Service(
            path, SETTINGS, lambda line: (os.write(out, line.encode() + b"\n"), None)[1],
            lambda words: (os.write(out, b"broken " + words.encode() + b"\n"), None)[1], journal,
        )  # fmt: skip
        for number, line in enumerate(lines, 1):
            service.take(number, line)
        service.end()


def child(path: Path, lines: list[bytes]) -> tuple[int, int]:
    """Fork a child that streams; return its id and the end of its pipe."""
    read, write = os.pipe()
    number = os.fork()
    if number:
        os.close(write)
        return number, read
    try:
        os.close(read)
        serve(path, lines, write)
        os._exit(0)
    except BaseException as error:
        os.write(write, f"error {type(error).__name__}: {error}\n".replace("\n", " ").encode())
        os._exit(3)


def after(lines: list[bytes], seq: int) -> list[bytes]:
    """Return what a sender sends again: all that was not acknowledged, and some that was."""
    first = next((i for i, line in enumerate(lines) if json.loads(line)["seq"] > seq), len(lines))
    return lines[max(first - 5, 0) :]


def kill(folder: Path, n_kills: int) -> dict[str, Any]:
    """Kill a stream n times at random moments, let it end, and compare with one that lived."""
    chance = random.Random(1)
    path = folder / "killed.tbm"
    lines = events()
    seq = -1
    killed = 0
    told: list[dict[str, Any]] = []
    errors: list[str] = []
    for turn in range(n_kills + 1):
        is_last = turn == n_kills
        number, pipe = child(path, after(lines, seq))
        with os.fdopen(pipe, "rb") as output:
            text = b""
            if not is_last:
                text = output.readline() if turn % 3 else b""
                time.sleep(chance.uniform(0.0, 0.06))
                os.kill(number, signal.SIGKILL)
            text += output.read()
        status = os.waitpid(number, 0)[1]
        killed += os.WIFSIGNALED(status)
        for line in text.split(b"\n")[:-1]:
            if line.startswith((b"error", b"broken")):
                errors.append(line.decode())
                continue
            found = json.loads(line)
            told.append(found)
            seq = max(seq, found.get("done", seq))
    whole = folder / "whole.tbm"
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123
        serve(whole, lines, nothing.fileno())
    return {"killed": killed, "errors": errors, "seq": seq, **compare(path, whole, told)}


def compare(path: Path, whole: Path, told: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the model of a killed stream with that of one that lived."""
    one = tb.load(path)
    other = tb.load(whole)
    last: dict[str, str] = {}
    dones = [line["done"] for line in told if "done" in line]
    for line in told:
        if "task" in line:
            last[line["task"]] = line["label"]
    return {
        "responses": [one.responses_.n_responses, other.responses_.n_responses],
        "links": [len(one.links_), len(other.links_)],
        "gold": [len(one.gold_), len(other.gold_)],
        "counted": [float(each._state.parameters[-1].sum()) for each in (one, other)],
        "labels_equal": one.labels_.best() == other.labels_.best(),
        "furthest": float(max(
            abs(one.labels_[t].probability - other.labels_[t].probability) for t in one.tasks_
        )),
        "told_equal": last == one.labels_.best(),
        "seq_grows": dones == sorted(dones),
        "left": sorted(file.name for file in path.parent.iterdir()),
    }  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    tb.VariationalBayes().fit(CROWD.responses)  # children find all imported
    sys.stdout.write(json.dumps(kill(Path(sys.argv[1]), int(sys.argv[2]))))
