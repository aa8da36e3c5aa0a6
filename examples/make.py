"""Make the small files that the README and the tutorial read: a Label Studio export, judges.

The messages are those of `tiebreak demo`; people and judges are simulated with fixed seeds, so that
the truth is known. The same files come out every time.

    python examples/make.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak as tb
from tiebreak import demo

FOLDER = Path(__file__).parent
KNOWN = ("m02", "m13", "m36")  # messages whose topic somebody looked up
CANCELLED = 5  # the response that its worker took back
SEED = 20  # of the crowd that labelled the messages
N_ITEMS = 50
JUDGES = {"gpt": 0.95, "claude": 0.92, "llama": 0.82, "qwen": 0.78, "mistral": 0.70}  # right
N_RUNS = 3
N_KNOWN = 15  # items that people judged too
SAME_AGAIN = 0.9  # how often a run repeats what the judge said first
VERDICTS = ("fail", "pass")


def main(folder: Path = FOLDER) -> None:
    """Write every file."""
    story = demo.run(SEED)
    crowd = story.crowd
    truth = crowd.gold.to_dict()
    export = ",\n".join(map(json.dumps, label_studio(crowd.responses, truth)))
    (folder / "messages.json").write_text(f"[{export}]\n", encoding="utf-8")
    story.links.write(folder / "duplicates.csv")
    crowd.gold.write(folder / "truth.csv")
    items, verdicts = judges(np.random.default_rng(7))
    lines = ["item,judge,run,verdict", *(",".join(map(str, row)) for row in verdicts)]
    (folder / "judges.csv").write_text("\n".join(lines) + "\n")
    by_people = list(items.items())[:N_KNOWN]
    known = ["item,verdict", *(f"{item},{verdict}" for item, verdict in by_people)]
    (folder / "verdicts-of-people.csv").write_text("\n".join(known) + "\n")


def label_studio(responses: tb.Responses, truth: dict[Any, Any]) -> list[dict[str, Any]]:
    """Return tasks with annotations, as Label Studio exports them."""
    tasks = []
    number = 0
    for code, name in enumerate(responses.tasks):
        annotations = []
        for worker, label in zip(*responses.of(code), strict=True):
            number += 1
            who = {"id": int(worker) + 1, "email": f"{responses.workers[int(worker)]}@example.org"}
            choice = str(responses.classes[int(label)])
            annotations.append(annotation(number, who, choice, was_cancelled=number == CANCELLED))
        if name in KNOWN:
            number += 1
            lead = {"id": 99, "email": "lead@example.org"}
            annotations.append(annotation(number, lead, str(truth[name]), ground_truth=True))
        text = demo.MESSAGES[int(str(name)[1:]) - 1][1]
        tasks.append({"id": name, "data": {"text": text}, "annotations": annotations})
    return sorted(tasks, key=lambda task: str(task["id"]))


def annotation(number: int, who: dict[str, Any], choice: str, **more: bool) -> dict[str, Any]:
    """Return one answer of one person."""
    result = {
        "from_name": "topic",
        "to_name": "text",
        "type": "choices",
        "value": {"choices": [choice]},
    }
    time = f"2026-11-02T09:{number // 60:02d}:{number % 60:02d}Z"
    return {"id": number, "completed_by": who, "result": [result], "created_at": time, **more}


def judges(random: np.random.Generator) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    """Return the true verdicts, and what each judge said in each run."""
    items = {f"q{i:02d}": VERDICTS[int(random.random() < 0.6)] for i in range(1, N_ITEMS + 1)}
    rows = []
    for item, true in items.items():
        wrong = VERDICTS[1 - VERDICTS.index(true)]
        for judge, skill in JUDGES.items():
            first = true if random.random() < skill else wrong
            other = wrong if first == true else true
            said = [first if random.random() < SAME_AGAIN else other for _ in range(N_RUNS)]
            rows += [(item, judge, run, verdict) for run, verdict in enumerate(said, start=1)]
    return items, rows


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
