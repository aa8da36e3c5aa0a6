"""Notes about fits that look wrong: given where they are, silent where they are not."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from refusals import noted

import tiebreak as tb
from tiebreak.data import Responses
from tiebreak.errors import InputNote


def swapped(responses: Responses, names: tuple[str, ...]) -> Responses:
    """Return the same responses where the named workers swap the two classes."""
    rows = []
    columns = (responses.task_of_each(), responses.worker_of_each(), responses.label_of_each())
    for task, worker, label in zip(*columns, strict=True):
        name = responses.workers[int(worker)]
        said = 1 - label if name in names else label
        rows.append((responses.tasks[int(task)], name, responses.classes[int(said)]))
    return Responses.from_rows(rows)


def known(crowd: tb.simulate.Crowd, n: int) -> dict[object, object]:
    gold = crowd.gold
    return {gold.tasks[i]: gold.classes[gold.label[i]] for i in range(n)}


def test_a_sound_fit_has_no_notes() -> None:
    crowd = tb.simulate.crowd(200, 10, 3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tb.VariationalBayes().fit(crowd.responses, gold=known(crowd, 60))


def test_a_fit_that_fell_to_one_class_is_noted() -> None:
    """Rules that fire for one class each; kinds of workers are not cured of it."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 500, p=[0.4, 0.3, 0.3])
    rows = [
        (f"t{i}", f"rule{rule}", "abc"[rule % 3])
        for i, k in enumerate(truth)
        for rule in range(12)
        if rng.random() < (0.3 if rule % 3 == k else 0.03)
    ]
    with noted("collapsed"):
        tb.VariationalBayes(worker_model="subtypes").fit(rows)


def test_a_class_without_tasks_is_noted() -> None:
    """Everyone who says c is outvoted everywhere."""
    rows = [
        (f"t{i}", f"w{j}", "c" if j == i % 5 and i % 2 else "ab"[i % 2])
        for i in range(60)
        for j in range(5)
    ]
    rows = [(t, w, {"a": "a", "b": "b", "c": "c"}[label]) for t, w, label in rows]
    with noted("missing-classes"):
        tb.VariationalBayes().fit(rows)


def test_gold_against_the_crowd_is_noted() -> None:
    crowd = tb.simulate.crowd(200, 10, 2, accuracy=0.9, random_state=0)
    gold = crowd.gold
    wrong = {gold.tasks[i]: gold.classes[1 - gold.label[i]] for i in range(25)}
    with noted("gold-against-crowd"):
        tb.VariationalBayes().fit(crowd.responses, gold=wrong)


def test_workers_below_chance_are_named() -> None:
    crowd = tb.simulate.crowd(200, 8, 2, responses_per_task=6, accuracy=0.9, random_state=1)
    name = str(crowd.responses.workers[3])
    responses = swapped(crowd.responses, (name,))
    with pytest.warns(InputNote, match=rf"less often than by guessing: '{name}' \(\d+ of \d+\)\."):
        tb.VariationalBayes().fit(responses, gold=known(crowd, 80))


def test_few_responses_are_told_unless_gold_or_links_help() -> None:
    crowd = tb.simulate.crowd(100, 40, 2, responses_per_task=2, accuracy=0.9, random_state=0)
    task, worker = crowd.responses.task_of_each(), crowd.responses.worker_of_each()
    label = crowd.responses.label_of_each()
    rows = [
        (crowd.responses.tasks[int(t)], int(w), crowd.responses.classes[int(k)])
        for place, (t, w, k) in enumerate(zip(task, worker, label, strict=True))
        if place % 4 != 3  # every second task has one response
    ]
    with noted("few-responses"):
        tb.VariationalBayes().fit(rows)
    with noted("few-responses"):
        tb.DawidSkene().fit(rows)
    some = dict(list(crowd.gold.to_dict().items())[:20])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tb.VariationalBayes().fit(rows, gold=some)
        tb.MajorityVote().fit(rows)
        tb.VariationalBayes().fit(crowd.responses)
    assert not [each for each in told if "too few" in str(each.message)]


def ds_notes(responses: object, **given: object) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputNote)
        tb.DawidSkene().fit(responses, **given)
    return [str(each.message) for each in caught]


def test_dawid_skene_notes_a_collapse() -> None:
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 500, p=[0.4, 0.3, 0.3])
    rows = [
        (f"t{i}", f"rule{rule}", "abc"[rule % 3])
        for i, k in enumerate(truth)
        for rule in range(12)
        if rng.random() < (0.3 if rule % 3 == k else 0.03)
    ]
    assert any("collapsed" in said for said in ds_notes(rows))


def test_dawid_skene_notes_classes_without_tasks() -> None:
    rows = [
        (f"t{i}", f"w{j}", "c" if j == i % 5 and i % 2 else "ab"[i % 2])
        for i in range(60)
        for j in range(5)
    ]
    assert any("'c' (30 responses, 0 labels)" in said for said in ds_notes(rows))


def test_dawid_skene_names_workers_below_chance() -> None:
    crowd = tb.simulate.crowd(200, 8, 2, responses_per_task=6, accuracy=0.9, random_state=1)
    name = str(crowd.responses.workers[3])
    said = ds_notes(swapped(crowd.responses, (name,)), gold=known(crowd, 80))
    assert any(f"'{name}'" in each for each in said)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_dawid_skene_notes_two_classes_that_swapped(n_classes: int) -> None:
    """Nothing but the start names its classes: from a swapped one it ends swapped."""
    crowd = tb.simulate.crowd(200, 10, n_classes, responses_per_task=6, random_state=2)
    assert not ds_notes(crowd.responses)
    first = tb.DawidSkene().fit(crowd.responses)
    first.probabilities_ = first.probabilities_[:, [1, 0, *range(2, n_classes)]]
    said = ds_notes(crowd.responses, start=first)
    one, other = (repr(crowd.responses.classes[k]) for k in (0, 1))
    assert len(said) == 1
    assert one in said[0]
    assert other in said[0]


@pytest.mark.data
def test_dawid_skene_says_that_it_collapsed_on_a_real_crowd_of_rules() -> None:
    folder = Path(os.environ["TIEBREAK_JURIES"]) / "ws_trec"
    assert any("collapsed" in said for said in ds_notes(folder / "responses.csv"))
