"""The unit and the container file of docs/page.md: their commands serve, behind a proxy."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from page.served import TOKEN, Client, serving

import tiebreak as tb
from tiebreak import tables

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "serve"


def commands() -> dict[str, list[str]]:
    """Return the command line of each file, without the program."""
    unit = (EXAMPLES / "tiebreak.service").read_text("utf-8").splitlines()
    start = next(line for line in unit if line.startswith("ExecStart="))
    container = (EXAMPLES / "Containerfile").read_text("utf-8").splitlines()
    inside = next(line for line in container if line.startswith("CMD "))
    return {"unit": shlex.split(start)[1:], "container": json.loads(inside[4:])[1:]}


@pytest.mark.parametrize("name", ["unit", "container"])
def test_the_command_of_an_example_serves_behind_a_proxy(tmp_path: Path, name: str) -> None:
    command = commands()[name]
    assert command[0] == "serve"
    crowd = tb.simulate.crowd(20, 6, 2, random_state=0)
    crowd.responses.write(tmp_path / "responses.csv")
    tasks = list(crowd.responses.tasks)
    tables.write_table(tmp_path / "texts.csv", {"task": tasks, "text": [f"of {t}" for t in tasks]})
    given = ["127.0.0.1" if each == "0.0.0.0" else each for each in command[1:]]
    with serving(tmp_path, *given) as server:
        proxied = {"Host": "labels.example.org", "X-Forwarded-Proto": "https"}
        reply = Client(server).send("GET", f"/?token={TOKEN}", headers=proxied)
        assert reply.status == 200
        assert "secure" in reply.headers["set-cookie"].lower()
        foreign = {"Host": "other.example.org"}
        assert Client(server).send("GET", f"/?token={TOKEN}", headers=foreign).status == 421
    assert (tmp_path / "answers.db").exists()
