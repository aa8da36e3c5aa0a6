"""Two processes that write one model file at the same moment, round after round.

    python -m kept.two_writers FOLDER save|update|stream N_PAIRS

Both processes live through all rounds, so that a round costs what the writing costs. It prints as
JSON how many pairs ended whole, lost something, counted something twice, left a mixture or left a
file that does not load, and how the commands ended.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak as tb
from tiebreak.cli.app import app

MADE = tb.simulate.crowd(40, 6, 3, responses_per_task=4, accuracy=(0.6, 0.9), random_state=0)
N_NEW = 20
END = bytes([255] * 4)
Work = Callable[[int], None]


def rows() -> list[tuple[str, str, str]]:
    crowd = MADE.responses
    columns = (
        crowd.tasks.take(crowd.task_of_each()),
        crowd.workers.take(crowd.worker_of_each()),
        crowd.classes.take(crowd.label_of_each()),
    )
    return [(str(t), str(w), str(k)) for t, w, k in zip(*columns, strict=True)]


class Writer:
    """A process of its own that does its work each time it is told a number."""

    def __init__(self, work: Work) -> None:
        orders_out, orders_in = os.pipe()
        codes_out, codes_in = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(orders_in)
            while (order := os.read(orders_out, 4)) not in (b"", END):
                os.write(codes_in, bytes([ended(work, int.from_bytes(order))]))
            os._exit(0)
        os.close(orders_out)
        os.close(codes_in)
        self._orders = orders_in
        self._codes = codes_out

    def begin(self, number: int) -> None:
        os.write(self._orders, number.to_bytes(4))

    def code(self) -> int:
        return os.read(self._codes, 1)[0]

    def end(self) -> None:
        os.write(self._orders, END)  # another writer may hold this pipe open too
        os.waitpid(self.process, 0)


def ended(work: Work, number: int) -> int:
    try:
        work(number)
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 3
    return 0


def run(*arguments: str, stdin: bytes = b"") -> None:
    """Run a command, with its output thrown away."""
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        app([*arguments], standalone_mode=True)


def is_same(one: Any, other: Any) -> bool:
    return (
        list(one.tasks_) == list(other.tasks_)
        and np.array_equal(one.responses_.code, other.responses_.code)
        and np.array_equal(one.confusion_, other.confusion_)
        and np.array_equal(one.probabilities_, other.probabilities_)
    )


def save_pairs(folder: Path, n_pairs: int, found: Counter[str]) -> None:
    models = [tb.MajorityVote().fit(rows()[:80]), tb.MajorityVote().fit(rows()[80:])]
    path = folder / "m.tbm"
    writers = [Writer(lambda _, model=model: model.save(path)) for model in models]  # type: ignore[misc]
    for number in range(n_pairs):
        if number % 2:  # half of them make the file, the others write over one
            shutil.rmtree(path, ignore_errors=True)
        at_once(writers, number, found)
        found["left"] += len(list(folder.iterdir())) - 1
        try:
            back = tb.load(path)
        except tb.TiebreakError:
            found["damaged"] += 1
            continue
        found["whole" if any(is_same(back, model) for model in models) else "mixed"] += 1
    for writer in writers:
        writer.end()


def at_once(writers: list[Writer], number: int, found: Counter[str]) -> None:
    for writer in writers:
        writer.begin(number)
    for writer in writers:
        found[f"exit {writer.code()}"] += 1


def keep_of(number: int) -> str:
    return ("responses", "counts")[number % 2]


def update_pairs(folder: Path, n_pairs: int, found: Counter[str], *, stream: bool) -> None:
    given = rows()
    parts = {"one": given[-2 * N_NEW : -N_NEW], "two": given[-N_NEW:]}
    for name, part in parts.items():
        tb.Responses.from_rows(part).write(folder / f"{name}.csv")
    for keep in map(keep_of, range(2)):
        base = tb.VariationalBayes().fit(given[: -2 * N_NEW])
        base.save(folder / f"base-{keep}.tbm", keep=keep)
    events = b"".join(
        json.dumps({"seq": i, "task": t, "worker": w, "label": k}).encode() + b"\n"
        for i, (t, w, k) in enumerate(parts["two"])
    )
    model = str(folder / "m.tbm")
    patient = ("--wait", "120", "-q")

    def updating(name: str) -> Work:
        return lambda _: run("update", model, str(folder / f"{name}.csv"), *patient)

    def streaming(_: int) -> None:
        run("stream", model, "--set", "every=7", *patient, stdin=events)

    writers = [Writer(updating("one")), Writer(streaming if stream else updating("two"))]
    for number in range(n_pairs):
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(folder / f"base-{keep_of(number)}.tbm", model)
        at_once(writers, number, found)
        judge(model, found)
        if stream:  # what a sender sends again is not counted again
            at_once(writers[1:], number, found)
            judge(model, found)
    for writer in writers:
        writer.end()


def judge(model: str, found: Counter[str]) -> None:
    found["left"] += len(list(Path(model).parent.glob("m.tbm*"))) - 1
    try:
        back = tb.load(model)
    except tb.TiebreakError:
        found["damaged"] += 1
        return
    n = back.responses_.n_responses
    if back._carried is not None:
        n += round(float(back._carried.counts.sum()))
    found["whole" if n == len(rows()) else "lost" if n < len(rows()) else "twice"] += 1


def main(folder: Path, kind: str, n_pairs: int) -> None:
    found: Counter[str] = Counter()
    warnings.simplefilter("ignore")
    if kind == "save":
        save_pairs(folder, n_pairs, found)
    else:
        update_pairs(folder, n_pairs, found, stream=kind == "stream")
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
