import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from links.graphs import Rows, cannot_graphs, codes, graphs, labellings, that_keep
from tables.said import noted, refused

from tiebreak.data import GoldCodes, Ids
from tiebreak.errors import InputNote, LinkError, OptionError
from tiebreak.links import Links
from tiebreak.links import graph as link_graph
from tiebreak.links.check import check
from tiebreak.links.graph import LinkCodes, imply
from tiebreak.wording import Source

FILE = Source("links.csv", lambda row: f"links.csv, line {row + 2}")
CLASSES = Ids(["cat", "dog", "emu", "fox", "gnu"])


def from_file(*rows: tuple[str, str, str]) -> Links:
    return Links.from_columns(*zip(*rows, strict=True), source=FILE)


def refusal(
    code: str, links: Links, n_classes: int, gold: dict[str, int] | None = None, **how: Any
) -> dict[str, Any]:
    """Return the fields of the error by which `check` refuses links."""
    with refused(code, LinkError) as error:
        run(links, n_classes, gold, **how)
    return error.value.fields


def lines(*numbers: int) -> list[str]:
    return [f"links.csv, line {number}" for number in numbers]


def run(links: Links, n_classes: int, gold: dict[str, int] | None = None, **how: Any) -> LinkCodes:
    tasks = links.tasks
    known = None
    if gold is not None:
        label = np.array(list(gold.values()), dtype=np.int32)
        known = GoldCodes(tasks.codes(list(gold)), label)
    given = links.on(tasks)
    implied = imply(given, n_classes, gold=known)
    return check(implied, tasks, classes=CLASSES, links=links, **how).given


def test_a_contradiction_prints_its_chain_and_lines() -> None:
    links = from_file(("a", "b", "must"), ("c", "b", "must"), ("c", "a", "cannot"))
    found = refusal("links-contradict", links, 3)
    assert (found["chain"], found["left"], found["right"]) == ("a = b = c", "a", "c")
    assert (found["places"], found["n_more"], found["asker"]) == (lines(2, 3, 4), 0, "fit")


def test_further_contradictions_are_counted() -> None:
    links = from_file(
        ("a", "b", "must"), ("b", "c", "must"), ("b", "c", "cannot"), ("a", "c", "cannot")
    )
    found = refusal("links-contradict", links, 3)
    assert (found["chain"], found["places"], found["n_more"]) == ("b = c", lines(3, 4), 1)


def test_contradicting_cannot_links_can_be_dropped() -> None:
    links = from_file(("a", "b", "must"), ("a", "b", "cannot"), ("a", "c", "cannot"))
    with noted("links-dropped", n=1):
        kept = run(links, 3, on_contradiction="drop")
    assert kept.row.tolist() == [0, 2]
    with pytest.raises(OptionError, match="'error', 'drop'; got 'ignore'"):
        run(links, 3, on_contradiction="ignore")


def test_links_with_a_weight_may_contradict() -> None:
    kinds = ["must", "must", "cannot", "cannot"]
    soft = Links.from_columns("abaa", "bccb", kinds, [None, None, 2.0, 1.0])
    assert run(soft, 2).n_links == 4
    assert run(soft.select(np.array([2, 3])), 1).n_links == 2


def test_a_chain_passes_over_links_with_a_weight() -> None:
    links = Links.from_columns(
        "aaa",
        "bbb",
        ["must", "must", "cannot"],
        [1.0, None, None],
        ["ann", "bob", "bob"],
        source=FILE,
    )
    found = refusal("links-contradict", links, 2)
    assert (found["chain"], found["places"]) == ("a = b", lines(3, 4))


def test_links_that_inference_may_break_pass_where_contradictions_are_dropped() -> None:
    triangle = from_file(("a", "b", "cannot"), ("b", "c", "cannot"), ("c", "a", "cannot"))
    how = {"may_break": True, "on_contradiction": "drop"}
    for known in (None, {"a": 0}, {"a": 0, "c": 1}):
        assert run(triangle, 2, known, **how).n_links == 3
    refusal("links-odd-cycle", triangle, 2, may_break=True)
    found = refusal("known-against-links", triangle, 2, {"a": 0, "b": 0}, **how)
    assert (found["left"], found["its"], found["right"], found["others"]) == (
        *("a", "'cat'"),
        *("b", "'cat'"),
    )
    clique = from_file(*((a, b, "cannot") for a, b in itertools.combinations("abcde", 2)))
    assert run(clique, 3, {"a": 0, "b": 1, "c": 2}, **how).n_links == 10


def test_a_long_chain_is_shown_by_its_ends() -> None:
    rows = [(f"t{i}", f"t{i + 1}", "must") for i in range(99)]
    found = refusal("links-contradict", from_file(*rows, ("t0", "t99", "cannot")), 2)
    assert found["chain"] == "t0 = t1 = t2 = t3 … 92 more … = t96 = t97 = t98 = t99"
    assert found["places"] == lines(2, 3, 4, 98, 99, 100)


def test_an_odd_cycle_is_written_out() -> None:
    links = from_file(("a", "b", "cannot"), ("b", "c", "cannot"), ("c", "a", "cannot"))
    found = refusal("links-odd-cycle", links, 2)
    assert (found["chain"], sorted(found["places"])) == ("a ≠ b ≠ c ≠ a", lines(2, 3, 4))
    assert run(links, 3).n_links == 3


def test_an_odd_cycle_shows_its_must_links() -> None:
    links = from_file(
        ("a", "b", "cannot"), ("b", "c", "cannot"), ("c", "d", "cannot"), ("d", "a", "must")
    )
    shown = refusal("links-odd-cycle", links, 2)["chain"]
    assert sorted(shown.replace("=", "≠").split(" ≠ ")[:-1]) == ["a", "b", "c", "d"]
    assert shown.count("≠") == 3
    assert shown.count("=") == 1


def test_too_many_that_must_differ_are_named() -> None:
    clique = [(a, b, "cannot") for a, b in itertools.combinations("abcd", 2)]
    links = from_file(*clique[::-1], ("d", "e", "must"), ("e", "x", "cannot"))
    found = refusal("links-must-differ", links, 3)
    assert (found["tasks"], found["n_classes"]) == (["c", "d", "b", "a"], 3)
    assert found["places"] == lines(*range(2, 8))  # in the order given
    assert refusal("links-must-differ", from_file(("a", "b", "cannot")), 1)["n_classes"] == 1
    assert run(links, 4).n_links == 8


def test_a_knot_of_cannot_links_is_named() -> None:
    wheel = [("hub", rim, "cannot") for rim in "abcde"]
    wheel += [("abcde"[i], "abcde"[i - 1], "cannot") for i in range(5)]
    found = refusal("links-no-choice", from_file(*wheel), 3)
    assert found["tasks"][0] == "hub"
    assert (len(found["places"]), found["n_links"]) == (6, 10)


def test_two_known_classes_in_one_group_are_refused() -> None:
    links = from_file(("a", "b", "must"), ("b", "c", "must"))
    found = refusal("known-against-links", links, 3, {"c": 1, "a": 0})
    assert (found["chain"], found["places"]) == ("a = b = c", lines(2, 3))
    assert (found["left"], found["its"]) == ("a", "'cat'")
    assert (found["right"], found["others"]) == ("c", "'dog'")


def test_one_known_class_on_groups_apart_is_refused() -> None:
    links = from_file(
        ("a", "b", "must"), ("c", "d", "must"), ("d", "b", "cannot"), ("a", "x", "cannot")
    )
    found = refusal("known-against-links", links, 3, {"a": 1, "c": 1})
    assert found["chain"] == "a = b ≠ d = c"
    assert (found["its"], found["others"], found["places"][0]) == ("'dog'", "'dog'", lines(2)[0])
    other_way = from_file(
        ("a", "z", "must"), ("b", "c", "must"), ("c", "d", "cannot"), ("z", "d", "must")
    )
    found = refusal("known-against-links", other_way, 3, {"b": 1, "a": 1})
    assert found["chain"] == "a = z = d ≠ c = b"


def test_a_chain_of_two_classes_that_does_not_fit_is_refused() -> None:
    links = from_file(("a", "b", "cannot"), ("b", "c", "must"), ("c", "d", "cannot"))
    found = refusal("known-against-links", links, 2, {"a": 0, "d": 1})
    assert found["chain"] == "a ≠ b = c ≠ d"
    assert (found["its"], found["others"]) == ("'cat'", "'dog'")
    assert run(links, 2, {"a": 0, "d": 0}).n_links == 3


def test_a_task_that_known_labels_leave_no_class_is_refused() -> None:
    links = from_file(*((other, "x", "cannot") for other in "abcd"))  # d is not known
    found = refusal("known-leave-no-class", links, 3, {"a": 0, "b": 1, "c": 2})
    assert (found["task"], found["takers"]) == (
        "x",
        [("a", "'cat'"), ("b", "'dog'"), ("c", "'emu'")],
    )
    assert run(links, 5, {"a": 0, "b": 1, "c": 2}).n_links == 4


def test_known_labels_that_leave_no_choice_are_refused() -> None:
    # x, y and z are mutually apart, and a has taken one of the three classes from each.
    triangle = [(a, b, "cannot") for a, b in itertools.combinations("xyz", 2)]
    links = from_file(*triangle, *(("a", end, "cannot") for end in "xyz"))
    refusal("links-must-differ", links, 3)
    shared = from_file(*triangle, ("a", "x", "cannot"), ("a", "y", "cannot"), ("b", "z", "cannot"))
    refusal("known-leave-no-choice", shared, 3, {"a": 0, "b": 0})
    assert run(shared, 3, {"a": 0, "b": 1}).n_links == 6


def test_messages_do_without_files_and_class_names() -> None:
    links = Links.from_pairs(must=[("a", "b")])
    gold = GoldCodes(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    given = links.on(links.tasks)
    implied = imply(given, 2, gold=gold)
    its, others = "class 0", "class 1"
    with refused("known-against-links", LinkError, its=its, others=others, places=[]):
        check(implied, links.tasks)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@given(
    graph=st.one_of(graphs(5), cannot_graphs(5)),
    gold=st.dictionaries(st.integers(0, 4), st.integers(0, 2), max_size=3),
)
def test_links_pass_where_a_labelling_keeps_them_all(
    n_classes: int, graph: tuple[int, Rows], gold: dict[int, int]
) -> None:
    n_tasks, rows = graph
    links = codes(rows)
    known = {task: label % n_classes for task, label in gold.items() if task < n_tasks}
    task, label = np.array([*known.items()], dtype=np.int32).reshape(-1, 2).T
    kept = that_keep(labellings(n_tasks, n_classes), links)
    kept = kept[(kept[:, task] == label).all(axis=1)]
    tasks = Ids(map(str, range(n_tasks)))
    implied = imply(links, n_classes, gold=GoldCodes(task, label))
    if len(kept):
        assert check(implied, tasks) is implied
    else:
        with pytest.raises(LinkError):
            check(implied, tasks)


@given(graphs(6))
def test_what_dropping_leaves_does_not_contradict(graph: tuple[int, Rows]) -> None:
    n_tasks, rows = graph
    links = codes(rows)
    closure = link_graph.close(n_tasks, links)
    if not len(closure.conflicts):
        return
    tasks = Ids(map(str, range(n_tasks)))
    with pytest.warns(InputNote):
        implied = check(imply(links, n_tasks), tasks, on_contradiction="drop")
    kept = implied.given
    again = link_graph.close(n_tasks, kept)
    assert len(again.conflicts) == 0
    assert again.group.tolist() == closure.group.tolist()
    assert kept.n_links == links.n_links - len(closure.conflicts)
    anew = imply(kept, n_tasks)
    for name in ("task", "group", "flip", "left", "right", "odd"):
        assert getattr(implied, name).tolist() == getattr(anew, name).tolist()
    assert len(implied.closure.conflicts) == 0
    assert implied.links.row.tolist() == kept.row.tolist()
