"""Run the methods that end in `_before` by the code before this change, which has other names.

    PYTHONPATH=<a checkout of c3df4e1>/src python experiments/04_modes/before.py

Appends to `runs.jsonl`, as `run.py` does.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from work import Case, work

HERE = Path(__file__).parent


def main() -> None:
    config = tomllib.loads((HERE / "config.toml").read_text("utf-8"))
    with (HERE / "runs.jsonl").open("a", encoding="utf-8") as out:
        for method in ("random_before", "gold_before"):
            for name in config["datasets"]:
                if name != "simulated":
                    for seed in range(config["methods"][method]):
                        out.write(json.dumps(work(Case(method, name, "", seed))) + "\n")
                        out.flush()


if __name__ == "__main__":
    main()
