"""--columns names columns of every table that a command reads, and refuses what fits none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

ODD_LINKS = "from,to,rel,odds,origin\na,b,must,3,ann\nb,c,cannot,2,bob\n"
LINK_COLUMNS = "left=from,right=to,link=rel,weight=odds,who=origin"


@pytest.fixture(autouse=True)
def _files(write: Write) -> None:
    rows = "a,u,x\na,v,x\nb,u,x\nb,v,y\nc,u,y\nc,v,y\n"
    write("r.csv", "task,worker,label\n" + rows)
    write("odd_r.csv", "key,by_whom,says\n" + rows)
    write("g.csv", "task,label\na,x\n")
    write("odd_g.csv", "key,says\na,x\n")
    write("l.csv", ODD_LINKS.replace("from,to,rel,odds,origin", "left,right,link,weight,who"))
    write("odd_l.csv", ODD_LINKS)


def fused(run: Run, *arguments: str) -> str:
    result = run("fuse", *arguments)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


def test_links_have_columns_of_any_name(run: Run) -> None:
    usual = fused(run, "r.csv", "--links", "l.csv")
    assert fused(run, "r.csv", "--links", "odd_l.csv", "--columns", LINK_COLUMNS) == usual


def test_one_name_serves_responses_and_gold(run: Run) -> None:
    usual = fused(run, "r.csv", "--gold", "g.csv")
    columns = "task=key,worker=by_whom,label=says"
    assert fused(run, "odd_r.csv", "--gold", "odd_g.csv", "--columns", columns) == usual


def test_gold_that_has_the_usual_columns_keeps_them(run: Run) -> None:
    usual = fused(run, "r.csv", "--gold", "g.csv")
    columns = "task=key,worker=by_whom,label=says"
    assert fused(run, "odd_r.csv", "--gold", "g.csv", "--columns", columns) == usual


def test_gold_alone_may_have_odd_columns(run: Run) -> None:
    usual = fused(run, "r.csv", "--gold", "g.csv")
    assert fused(run, "r.csv", "--gold", "odd_g.csv", "--columns", "task=key,label=says") == usual


def test_packed_responses_leave_names_to_the_other_tables(run: Run) -> None:
    usual = fused(run, "r.csv", "--gold", "g.csv")
    assert run("convert", "r.csv", "-o", "r.tb").exit_code == 0
    assert fused(run, "r.tb", "--gold", "odd_g.csv", "--columns", "task=key,label=says") == usual


def test_listed_tasks_have_a_column_of_any_name(run: Run, write: Write) -> None:
    write("t.csv", "size,key\n3,a\n4,d\n")
    labels = fused(run, "r.csv", "--set", "tasks=t.csv", "--columns", "task=key")
    assert [line.split(",")[0] for line in labels.splitlines()] == ["task", "a", "b", "c", "d"]


def test_select_reads_links_and_tasks_by_these_names(run: Run, write: Write) -> None:
    write("among.csv", "key\na\nc\n")
    arguments = ["--links", "odd_l.csv", "--set", "among=among.csv", "--list", "1", "--json"]
    result = run("ask", "r.csv", *arguments, "--columns", f"{LINK_COLUMNS},task=key")
    assert result.exit_code == 0, result.stderr
    assert {json.loads(result.stdout)[0][end] for end in ("left", "right")} == {"a", "c"}


def test_ask_reads_links_gold_and_texts_by_these_names(run: Run, write: Write) -> None:
    write("odd_t.csv", "key,wording\na,A cat.\nb,Two cats.\nc,A dog.\n")
    tables = ["odd_r.csv", "--links", "odd_l.csv", "--gold", "odd_g.csv", "--texts", "odd_t.csv"]
    columns = f"task=key,worker=by_whom,label=says,text=wording,{LINK_COLUMNS}"
    result = run("ask", *tables, "--session", "s.db", "--columns", columns, stdin="q")
    assert result.exit_code == 0, result.stderr
    assert "A dog." in result.output
    assert Path("s.db").is_file()


def test_evaluate_reads_labels_gold_and_links_by_these_names(run: Run, write: Write) -> None:
    write("labels.csv", "task,label\na,x\nb,y\nc,y\n")
    tables = ["labels.csv", "odd_g.csv", "--links", "odd_l.csv", "--json"]
    columns = f"task=key,label=says,{LINK_COLUMNS}"
    result = run("evaluate", *tables, "--columns", columns)
    assert result.exit_code == 0, result.stderr
    figures = json.loads(result.stdout)
    assert (figures["accuracy"], figures["violated_given"]) == (1.0, 2)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("r.csv --columns left=from", "wrong-value"),
        ("r.csv --links l.csv --columns item=x", "wrong-value"),
        ("r.csv --gold g.csv --columns task=kee", "no-such-column"),
        ("r.csv --links odd_l.csv --columns left=form", "no-such-column"),
    ],
)
def test_a_name_that_fits_no_table_is_refused(run: Run, arguments: str, code: str) -> None:
    result = run("fuse", *arguments.split())
    assert (result.exit_code, code_of(result)) == (2, code)


def test_columns_of_packed_responses_are_refused(run: Run) -> None:
    assert run("convert", "r.csv", "-o", "r.tb").exit_code == 0
    result = run("fuse", "r.tb", "--columns", "task=key")
    assert (result.exit_code, code_of(result)) == (2, "columns-of-packed")


def test_errors_keep_file_and_line(run: Run, write: Write) -> None:
    write("odd_l.csv", "from,to,rel,odds,origin\na,b,must,3,ann\na,zz,must,1,ann\n")
    result = run("fuse", "r.csv", "--links", "odd_l.csv", "--columns", LINK_COLUMNS)
    assert (result.exit_code, code_of(result)) == (2, "links-unknown-tasks")
    assert "line 3" in result.stderr
