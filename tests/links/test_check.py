import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from links.graphs import Rows, cannot_graphs, codes, graphs, labellings, that_keep

from tiebreak.data.gold import GoldCodes
from tiebreak.data.ids import Ids
from tiebreak.errors import InputNote, LinkError, OptionError
from tiebreak.links import Links
from tiebreak.links import graph as link_graph
from tiebreak.links.check import check
from tiebreak.links.graph import LinkCodes, imply
from tiebreak.wording import Source

FILE = Source("links.csv", lambda row: row + 2)
CLASSES = Ids(["cat", "dog", "emu", "fox", "gnu"])


def from_file(*rows: tuple[str, str, str]) -> Links:
    return Links.from_columns(*zip(*rows, strict=True), source=FILE)


def refusal(links: Links, n_classes: int, gold: dict[str, int] | None = None, **how: Any) -> str:
    """Return what `check` says against links."""
    with pytest.raises(LinkError) as error:
        run(links, n_classes, gold, **how)
    return str(error.value)


def run(links: Links, n_classes: int, gold: dict[str, int] | None = None, **how: Any) -> LinkCodes:
    tasks = links.tasks
    known = None
    if gold is not None:
        label = np.array(list(gold.values()), dtype=np.int32)
        known = GoldCodes(tasks.codes(list(gold)), label)
    given = links.on(tasks)
    implied = imply(given, n_classes, gold=known)
    return check(given, implied, tasks, classes=CLASSES, links=links, **how).codes


def test_a_contradiction_prints_its_chain_and_lines() -> None:
    links = from_file(("a", "b", "must"), ("c", "b", "must"), ("c", "a", "cannot"))
    first, way_out = refusal(links, 3).split("\n")
    assert first == (
        "The links contradict each other: a = b = c, yet a ≠ c "
        "(links.csv, line 2; links.csv, line 3; links.csv, line 4)."
    )
    for remedy in ("Remove one of these links", 'on_contradiction="drop"', "weights"):
        assert remedy in way_out


def test_further_contradictions_are_counted() -> None:
    links = from_file(
        ("a", "b", "must"), ("b", "c", "must"), ("b", "c", "cannot"), ("a", "c", "cannot")
    )
    message = refusal(links, 3)
    assert "b = c, yet b ≠ c (links.csv, line 3; links.csv, line 4). 1 more" in message


def test_contradicting_cannot_links_can_be_dropped() -> None:
    links = from_file(("a", "b", "must"), ("a", "b", "cannot"), ("a", "c", "cannot"))
    with pytest.warns(InputNote, match="1 cannot-link contradicts must-links: dropped"):
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
    assert "a = b, yet a ≠ b (links.csv, line 3; links.csv, line 4)" in refusal(links, 2)


def test_links_that_inference_may_break_pass_where_contradictions_are_dropped() -> None:
    triangle = from_file(("a", "b", "cannot"), ("b", "c", "cannot"), ("c", "a", "cannot"))
    how = {"may_break": True, "on_contradiction": "drop"}
    for known in (None, {"a": 0}, {"a": 0, "c": 1}):
        assert run(triangle, 2, known, **how).n_links == 3
    assert "cannot all hold" in refusal(triangle, 2, may_break=True)
    assert "both a and b are known" in refusal(triangle, 2, {"a": 0, "b": 0}, **how)
    clique = from_file(*((a, b, "cannot") for a, b in itertools.combinations("abcde", 2)))
    assert run(clique, 3, {"a": 0, "b": 1, "c": 2}, **how).n_links == 10


def test_a_long_chain_is_shown_by_its_ends() -> None:
    rows = [(f"t{i}", f"t{i + 1}", "must") for i in range(99)]
    message = refusal(from_file(*rows, ("t0", "t99", "cannot")), 2)
    assert "t0 = t1 = t2 = t3 … 92 more … = t96 = t97 = t98 = t99, yet t0 ≠ t99" in message
    assert "(links.csv, line 2; links.csv, line 3; links.csv, line 4; links.csv, line 98" in message


def test_an_odd_cycle_is_written_out() -> None:
    links = from_file(("a", "b", "cannot"), ("b", "c", "cannot"), ("c", "a", "cannot"))
    message = refusal(links, 2)
    assert "With 2 classes these links cannot all hold: a ≠ b ≠ c ≠ a (links.csv, line 2" in message
    assert run(links, 3).n_links == 3


def test_an_odd_cycle_shows_its_must_links() -> None:
    links = from_file(
        ("a", "b", "cannot"), ("b", "c", "cannot"), ("c", "d", "cannot"), ("d", "a", "must")
    )
    shown = refusal(links, 2).split("hold: ")[1].split(" (")[0]
    assert sorted(shown.replace("=", "≠").split(" ≠ ")[:-1]) == ["a", "b", "c", "d"]
    assert shown.count("≠") == 3
    assert shown.count("=") == 1


def test_too_many_that_must_differ_are_named() -> None:
    clique = [(a, b, "cannot") for a, b in itertools.combinations("abcd", 2)]
    links = from_file(*clique[::-1], ("d", "e", "must"), ("e", "x", "cannot"))
    message = refusal(links, 3)
    assert "c, d, b and a must all differ, but there is a choice of 3 classes only" in message
    lines = "; ".join(f"links.csv, line {line}" for line in range(2, 8))  # in the order given
    assert f"({lines})" in message
    assert "1 class only" in refusal(from_file(("a", "b", "cannot")), 1)
    assert run(links, 4).n_links == 8


def test_a_knot_of_cannot_links_is_named() -> None:
    wheel = [("hub", rim, "cannot") for rim in "abcde"]
    wheel += [("abcde"[i], "abcde"[i - 1], "cannot") for i in range(5)]
    message = refusal(from_file(*wheel), 3)
    assert message.startswith("No choice among 3 classes keeps apart what is cannot-linked: hub,")
    assert "; and 4 more)" in message


def test_two_known_classes_in_one_group_are_refused() -> None:
    links = from_file(("a", "b", "must"), ("b", "c", "must"))
    message = refusal(links, 3, {"c": 1, "a": 0})
    assert message.startswith(
        "The known labels contradict the links: a = b = c, yet a is known as 'cat' and c as "
        "'dog' (links.csv, line 2; links.csv, line 3).\nCorrect one of these known labels"
    )


def test_one_known_class_on_groups_apart_is_refused() -> None:
    links = from_file(
        ("a", "b", "must"), ("c", "d", "must"), ("d", "b", "cannot"), ("a", "x", "cannot")
    )
    message = refusal(links, 3, {"a": 1, "c": 1})
    assert "a = b ≠ d = c, yet both a and c are known as 'dog' (links.csv, line 2; " in message
    other_way = from_file(
        ("a", "z", "must"), ("b", "c", "must"), ("c", "d", "cannot"), ("z", "d", "must")
    )
    assert "a = z = d ≠ c = b, yet both a and b" in refusal(other_way, 3, {"b": 1, "a": 1})


def test_a_chain_of_two_classes_that_does_not_fit_is_refused() -> None:
    links = from_file(("a", "b", "cannot"), ("b", "c", "must"), ("c", "d", "cannot"))
    message = refusal(links, 2, {"a": 0, "d": 1})
    assert "a ≠ b = c ≠ d, yet a is known as 'cat' and d as 'dog'" in message
    assert run(links, 2, {"a": 0, "d": 0}).n_links == 3


def test_a_task_that_known_labels_leave_no_class_is_refused() -> None:
    links = from_file(*((other, "x", "cannot") for other in "abcd"))  # d is not known
    message = refusal(links, 3, {"a": 0, "b": 1, "c": 2})
    assert "leave no class for x: it is cannot-linked to a ('cat'), b ('dog') and c ('emu')," in (
        message
    )
    assert run(links, 5, {"a": 0, "b": 1, "c": 2}).n_links == 4


def test_known_labels_that_leave_no_choice_are_refused() -> None:
    # x, y and z are mutually apart, and a has taken one of the three classes from each.
    triangle = [(a, b, "cannot") for a, b in itertools.combinations("xyz", 2)]
    links = from_file(*triangle, *(("a", end, "cannot") for end in "xyz"))
    by_count = refusal(links, 3)
    assert "must all differ" in by_count
    shared = from_file(*triangle, ("a", "x", "cannot"), ("a", "y", "cannot"), ("b", "z", "cannot"))
    message = refusal(shared, 3, {"a": 0, "b": 0})
    assert message.startswith("The known labels leave no choice of classes")
    assert run(shared, 3, {"a": 0, "b": 1}).n_links == 6


def test_messages_do_without_files_and_class_names() -> None:
    links = Links.from_pairs(must=[("a", "b")])
    gold = GoldCodes(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    given = links.on(links.tasks)
    implied = imply(given, 2, gold=gold)
    with pytest.raises(LinkError, match=r"a = b, yet a is known as class 0 and b as class 1\.\n"):
        check(given, implied, links.tasks)


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
        checked = check(links, implied, tasks)
        assert checked.codes is links
        assert checked.implied is implied
    else:
        with pytest.raises(LinkError):
            check(links, implied, tasks)


@given(graphs(6))
def test_what_dropping_leaves_does_not_contradict(graph: tuple[int, Rows]) -> None:
    n_tasks, rows = graph
    links = codes(rows)
    closure = link_graph.close(n_tasks, links)
    if not len(closure.conflicts):
        return
    tasks = Ids(map(str, range(n_tasks)))
    with pytest.warns(InputNote):
        kept, implied = check(links, imply(links, n_tasks), tasks, on_contradiction="drop")
    again = link_graph.close(n_tasks, kept)
    assert len(again.conflicts) == 0
    assert again.group.tolist() == closure.group.tolist()
    assert kept.n_links == links.n_links - len(closure.conflicts)
    anew = imply(kept, n_tasks)
    for name in ("task", "group", "flip", "left", "right", "odd"):
        assert getattr(implied, name).tolist() == getattr(anew, name).tolist()
    assert len(implied.closure.conflicts) == 0
    assert implied.links.row.tolist() == kept.row.tolist()
