import math
import pickle
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from links.graphs import GOLDEN, Rows, graphs
from tables.said import noted, refused

from tiebreak.data import Gold, Ids
from tiebreak.errors import LinkError
from tiebreak.links import Links
from tiebreak.wording import Source

FILE = Source("links.csv", lambda row: f"links.csv, line {row + 2}")


def weighted(*rows: tuple[Any, ...]) -> Links:
    """Return links from (left, right, link, weight[, who]) rows."""
    return Links.from_columns(*zip(*rows, strict=True))


def pairs(words: str) -> list[tuple[str, str]]:
    """Return pairs of one-letter tasks: "ab bc"."""
    return [(word[0], word[1]) for word in words.split()]


def test_columns_become_links() -> None:
    links = Links.from_columns(["b", "a"], ["c", "b"], [True, False])
    assert repr(links) == "Links(1 must, 1 cannot, 3 tasks)"
    assert list(links.tasks) == ["b", "c", "a"]  # as they appear, row by row
    assert links.pairs() == [("b", "c", "must"), ("a", "b", "cannot")]
    assert (len(links), links.n_must, links.n_cannot) == (2, 1, 1)


@pytest.mark.parametrize(
    "link", [[True, False], ["must", "cannot"], np.array([True, False]), pa.array([True, False])]
)
def test_a_link_is_a_boolean_or_a_word(link: Any) -> None:
    assert Links.from_columns([1, 2], [2, 3], link).must.tolist() == [True, False]


@pytest.mark.parametrize("link", [[True, None], ["must", "maybe"], [True, ["must"]]])
def test_any_other_word_is_refused_with_its_line(link: Any) -> None:
    with refused("links-odd-word", LinkError, n=1) as caught:
        Links.from_columns([1, 2], [2, 3], link, source=FILE)
    assert "(links.csv, line 3)" in str(caught.value)


def test_words_are_read_as_in_files() -> None:
    words = [("same", "must"), ("different", "cannot")]
    with noted("links-words-read", name="links.csv", words=words):
        links = Links.from_columns("abc", "bcd", ["same", "different", "must"], source=FILE)
    assert links.must.tolist() == [True, False, True]
    with refused("links-odd-word", LinkError, n=1, shown="0 (links.csv, line 3)"):
        Links.from_columns("ab", "bc", [1, 0], source=FILE)


def test_columns_of_different_length_are_refused() -> None:
    with refused("links-unequal-columns", LinkError, lengths={"left": 2, "right": 2, "link": 1}):
        Links.from_columns(["a", "b"], ["b", "c"], [True])


def test_a_link_without_a_task_is_refused_with_its_line() -> None:
    places = ["links.csv, line 2", "links.csv, line 3"]
    with refused("links-no-task", LinkError, n=2, side="right", places=places):
        Links.from_columns(["a", "b"], [None, ""], [True, True], source=FILE)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, -math.inf, "much", True])
def test_a_weight_that_is_not_above_zero_is_refused_with_its_line(wrong: Any) -> None:
    with refused("links-odd-weight", LinkError, n=1) as caught:
        Links.from_columns("ab", "bc", [True, True], [1.0, wrong], source=FILE)
    assert "(links.csv, line 3)" in str(caught.value)


@pytest.mark.parametrize("empty", [None, math.nan, ""])
def test_a_missing_weight_means_a_hard_link(empty: Any) -> None:
    links = Links.from_columns("ab", "bc", [True, True], [2, empty])
    assert links.weight is not None
    assert links.on(links.tasks).is_hard.tolist() == [False, True]
    assert Links.from_columns("ab", "bc", [True, True], [empty, empty]).weight is None


def test_ids_of_two_types_that_cannot_go_together_are_refused() -> None:
    with refused("links-mixed-ids", LinkError):
        Links.from_columns(pa.array([1, 2]), pa.array(["x", "y"]), [True, True])
    with refused("links-mixed-ids", LinkError):
        Links.from_columns([[1], [2]], ["x", "y"], [True, True])


@pytest.mark.parametrize("wrong", [("a", "b", "c"), "ab", ("a",)])
def test_pairs_and_rows_that_join_no_two_tasks_are_refused(wrong: Any) -> None:
    with refused("links-not-a-pair", LinkError, pair=wrong):
        Links.from_pairs(must=[("a", "b"), wrong])
    with refused("links-not-a-row", LinkError, row=wrong[:2]):
        Links.from_rows([("a", "b", "must"), wrong[:2]])


def test_links_come_from_pairs_and_from_rows() -> None:
    assert repr(Links.from_pairs()) == "Links(0 must, 0 cannot, 0 tasks)"
    assert repr(Links.from_rows([])) == "Links(0 must, 0 cannot, 0 tasks)"
    links = Links.from_pairs(must=pairs("ab"), cannot=pairs("bc cd"))
    assert links.pairs() == [("a", "b", "must"), ("b", "c", "cannot"), ("c", "d", "cannot")]
    assert Links.from_rows(links.pairs()).pairs() == links.pairs()


@pytest.mark.parametrize("ids", [list, pa.array])
def test_links_speak_the_codes_of_a_crowd(ids: Any) -> None:
    links = Links.from_columns(ids(["x", "z"]), ids(["y", "x"]), [True, False])
    codes = links.on(Ids(ids(["w", "z", "y", "x"])))
    rows = zip(codes.left, codes.right, codes.must, codes.row, strict=True)
    assert list(rows) == [(1, 3, False, 1), (2, 3, True, 0)]


def test_unknown_tasks_are_refused_with_their_lines() -> None:
    links = Links.from_columns("abcde", "vwxyw", [True] * 5, source=FILE)
    tasks = [("w", "links.csv, line 3"), ("x", "links.csv, line 4"), ("y", "links.csv, line 5")]
    with refused("links-unknown-tasks", LinkError, n=3, tasks=tasks):
        links.on(Ids("abcdev"))


def test_lines_survive_a_selection() -> None:
    links = Links.from_columns("abc", "bcx", [True, True, False], source=FILE)
    last = links.select(np.array([False, False, True]))
    assert last.pairs() == [("c", "x", "cannot")]
    assert repr(last) == "Links(0 must, 1 cannot, 2 tasks)"
    with refused("links-unknown-tasks", LinkError, n=1, tasks=[("x", "links.csv, line 4")]):
        last.on(Ids("abc"))
    assert links.select(np.array([0, 1])).on(Ids("abc")).n_links == 2


def test_a_task_linked_to_itself_is_dropped_or_refused() -> None:
    links = Links.from_pairs(must=pairs("ab aa bc"), cannot=pairs("ac"))
    with noted("links-to-itself", n=1):
        codes = links.on(Ids("abc"))
    assert codes.row.tolist() == [0, 3, 2]
    wrong = Links.from_columns("abc", "bbc", [True, False, False], source=FILE)
    tasks = [("b", "links.csv, line 3"), ("c", "links.csv, line 4")]
    with refused("links-unlike-itself", LinkError, n=2, tasks=tasks):
        wrong.on(Ids("abc"))


def test_repeated_links_count_once() -> None:
    links = Links.from_pairs(must=pairs("ab ba ab"), cannot=pairs("ab"))
    codes = links.on(Ids("ab"))
    assert sorted(zip(codes.must.tolist(), codes.row.tolist(), strict=True)) == [
        (False, 1),
        (True, 0),
    ]


def test_weights_of_one_pair_are_added() -> None:
    links = weighted(("a", "b", "must", 2.0), ("b", "a", "cannot", 3.0), ("a", "c", "must", 1.0))
    codes = links.on(Ids("abc"))
    assert codes.weight is not None
    assert codes.weight.tolist() == [1.0, 1.0]
    assert codes.must.tolist() == [False, True]


def test_weights_that_cancel_leave_no_link() -> None:
    links = weighted(
        ("a", "b", "must", 0.3),
        ("b", "a", "must", 0.3),
        ("a", "b", "cannot", 0.3),
        ("b", "c", "must", 1.0),
    )
    with noted("links-cancel", n=1):
        codes = links.on(Ids("abc"))
    assert codes.row.tolist() == [2]


def test_links_of_different_people_stay_apart() -> None:
    links = weighted(
        ("a", "b", "must", 1.0, "ann"),
        ("a", "b", "must", 1.0, "bob"),
        ("b", "a", "must", 1.0, "ann"),
        ("b", "a", "must", 1.0, None),
    )
    codes = links.on(Ids("ab"))
    assert codes.who is not None
    assert codes.weight is not None
    assert list(zip(codes.who.tolist(), codes.weight.tolist(), strict=True)) == [
        (-1, 1.0),
        (0, 1.0),
        (1, 1.0),
    ]


@given(graphs(), st.randoms(use_true_random=False))
def test_order_and_direction_of_rows_do_not_matter(
    graph: tuple[int, Rows], rng: random.Random
) -> None:
    n_tasks, rows = graph
    named = [(str(a), str(b), "must" if must else "cannot") for a, b, must in rows]
    other = [(b, a, link) if rng.random() < 0.5 else (a, b, link) for a, b, link in named]
    rng.shuffle(other)
    tasks = Ids(map(str, range(n_tasks)))
    first, second = (Links.from_rows(given).on(tasks) for given in (named, other))
    for name in ("left", "right", "must"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()


def test_the_table_comes_back_as_the_callers_kind() -> None:
    columns = (["a", "b"], ["b", "c"], [True, False], [None, 1.5], ["ann", None])
    expected = {
        "left": ["a", "b"],
        "right": ["b", "c"],
        "link": ["must", "cannot"],
        "weight": [None, 1.5],
        "who": ["ann", None],
    }
    assert Links.from_columns(*columns).to_frame().to_pydict() == expected
    polars = Links.from_columns(*columns, frame="polars").to_frame()
    assert isinstance(polars, pl.DataFrame)
    assert polars.to_dict(as_series=False) == expected
    pandas = Links.from_columns(*columns, frame="pandas").to_frame()
    assert isinstance(pandas, pd.DataFrame)
    assert pandas["link"].tolist() == expected["link"]
    assert list(Links.from_pairs(must=pairs("ab")).columns()) == ["left", "right", "link"]


def test_links_can_be_put_together() -> None:
    first = weighted(("a", "b", "must", 1.0, "ann"), ("b", "c", "must", None, None))
    second = Links.from_columns("bd", "ad", ["cannot", "must"], who=["bob", "ann"])
    both = first + second
    assert both.pairs() == first.pairs() + second.pairs()
    assert both.columns()["weight"] == [1.0, None, None, None]
    assert both.columns()["who"] == ["ann", None, "bob", "ann"]
    assert list(both.tasks) == ["a", "b", "c", "d"]
    plain = Links.from_pairs(must=pairs("ab")) + Links.from_pairs(must=pairs("ca"))
    assert plain.weight is None
    assert plain.who is None
    assert plain.where(1) == "the links put together, row 2"
    with pytest.raises(TypeError):
        plain + "ab"  # type: ignore[operator]


def test_typed_ids_come_back_as_they_went_in() -> None:
    table = pa.table({"left": [7, 8], "right": [8, 9]})
    links = Links.from_columns(table["left"], table["right"], [True, True])
    assert links.pairs() == [(7, 8, "must"), (8, 9, "must")]
    assert links.columns()["left"].type == pa.int64()


def test_links_survive_pickling() -> None:
    links = weighted(("a", "b", "must", 1.0, "ann"), ("b", "c", "must", None, None))
    again = pickle.loads(pickle.dumps(links))
    assert again.columns() == links.columns()


def test_links_cannot_be_changed_in_place() -> None:
    links = weighted(("a", "b", "must", 1.0, "ann"), ("b", "c", "must", None, None))
    for array in (links.left, links.right, links.must, links.weight, links.who, links.row):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_closure_speaks_in_ids() -> None:
    links = Links.from_pairs(must=pairs("ab bc de"), cannot=pairs("cd ac bx ae"))
    closed = links.closure()
    assert repr(closed) == "ClosedLinks(4 must, 9 cannot)"
    assert closed.groups() == [["a", "b", "c"], ["d", "e"]]
    assert closed.cannot_pairs() == [("a", "d"), ("a", "x")]
    assert closed.contradictions() == [["a", "b", "c"]]
    empty = Links.from_pairs().closure()
    assert (empty.groups(), empty.cannot_pairs(), empty.contradictions()) == ([], [], [])


def test_links_from_gold_close_to_the_worked_counts() -> None:
    case = GOLDEN["label_derived"]
    labels = [k for k, count in enumerate(case["class_counts"]) for _ in range(count)]
    random.Random(0).shuffle(labels)
    links = Links.from_gold(Gold.from_dict({f"t{i}": k for i, k in enumerate(labels)}))
    closed = links.closure()
    assert (links.n_must, links.n_cannot) == (len(labels) - 3, 3)
    assert closed.n_must == case["expected"]["n_must"]
    assert closed.n_cannot == case["expected"]["n_cannot"]


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 3), min_size=1, max_size=9))
def test_links_from_gold_say_which_tasks_share_a_class(gold: dict[str, int]) -> None:
    links = Links.from_gold(Gold.from_columns(list(gold), list(gold.values())))
    assert all((gold[str(a)] == gold[str(b)]) == (link == "must") for a, b, link in links.pairs())
    closed = links.closure()
    n_pairs = len(gold) * (len(gold) - 1) // 2
    assert closed.n_must + closed.n_cannot == n_pairs


def test_links_are_imported_without_heavy_packages() -> None:
    heavy = "{'scipy', 'pyarrow', 'numba', 'pandas'}"
    code = f"import sys, tiebreak.links; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
