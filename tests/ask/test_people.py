"""Answers of several people: belief propagation against all labellings, rates that are learnt."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiebreak as tb
from tiebreak.ask.job import Job, take_job
from tiebreak.ask.log import Event
from tiebreak.ask.people import RESERVE, Weighed, weigh

TASKS = "abcde"
CLASSES = "xyz"


def job_of(n_classes: int) -> Job:
    rows = [(task, "w", CLASSES[at % n_classes]) for at, task in enumerate(TASKS)]
    return take_job(rows)


def event(id: int, who: str, kind: Any, left: str, other: str) -> Event:
    """Make an answer; `other` is a task of a link, a class of anything else."""
    made = Event(id, f"t{id}", "run", "now", who, kind, left)
    if kind in ("same", "different"):
        return made._replace(question="same", right=other)
    return made._replace(question="label" if kind == "label" else "is", label=other)


def by_enumeration(job: Job, answers: list[Event], own: Any, error: float) -> Any:
    """Sum over all labellings: what to believe of every task, links and labels with one rate."""
    n_classes = job.responses.n_classes
    total = np.zeros(own.shape)
    for labelling in itertools.product(range(n_classes), repeat=len(own)):
        weight = np.prod([own[i, k] for i, k in enumerate(labelling)])
        for said in answers:
            truth = labelling[job.code[said.left or ""]]
            if said.is_link:
                same = truth == labelling[job.code[said.right or ""]]
                weight *= 1 - error if same == (said.kind == "same") else error
            elif said.kind == "no" and n_classes > 2:
                is_so = truth == job.class_code[said.label or ""]
                weight *= error if is_so else 1 - error
            else:
                label = job.class_code[said.label or ""]
                label = 1 - label if said.kind == "no" else label
                weight *= 1 - error if truth == label else error / (n_classes - 1)
        for i, k in enumerate(labelling):
            total[i, k] += weight
    return total / total.sum(axis=1, keepdims=True)


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([2, 3]),
    st.lists(
        st.integers(0, 3), min_size=1, max_size=4
    ),  # a tree: task i + 1 is linked to one before
    st.lists(
        st.tuples(st.sampled_from(["label", "yes", "no"]), st.integers(0, 4), st.integers(0, 2))
    ),
    st.integers(0, 10_000),
)
def test_on_a_tree_it_is_what_all_labellings_say(
    n_classes: int, parents: list[int], labels: list[Any], seed: int
) -> None:
    job = job_of(n_classes)
    rng = np.random.default_rng(seed)
    own = rng.dirichlet(np.ones(n_classes), size=len(TASKS))
    answers = [
        event(at + 1, "ann", ("same", "different")[int(rng.integers(2))], TASKS[at + 1], TASKS[p])
        for at, p in enumerate(min(parent, at) for at, parent in enumerate(parents))
    ]
    for kind, task, label in labels[:5]:
        answers.append(event(99, "bob", kind, TASKS[task], CLASSES[label % n_classes]))
    found = weigh(job, answers, own, np.zeros(len(own)), 0.1)
    with_reserve = (1.0 - RESERVE) * own + RESERVE / n_classes
    base = found.is_labelled[np.searchsorted(found.task, np.arange(len(TASKS))) % len(found.task)]
    base &= np.isin(np.arange(len(TASKS)), found.task)
    base |= n_classes > 2  # with two classes, what the crowd says does not go along links
    people_only = np.where(base[:, None], with_reserve, 1.0 / n_classes)
    expected = by_enumeration(job, answers, people_only, 0.1)
    expected *= np.where(base[:, None], 1.0, with_reserve)  # the crowd's word on each task itself
    expected /= expected.sum(axis=1, keepdims=True)
    assert found.r == pytest.approx(expected[found.task], abs=1e-9)


def two_people(n_tasks: int, error: float, seed: int) -> tuple[Job, list[Event], Any, Weighed]:
    """Let ann, who is right, and bob, who errs, label all tasks of a doubtful crowd."""
    crowd = tb.simulate.crowd(n_tasks, 5, 3, accuracy=(0.4, 0.6), random_state=seed)
    job = take_job(crowd.responses)
    rng = np.random.default_rng(seed)
    truth = crowd.gold.on(job.responses.tasks, job.responses.classes).label
    answers: list[Event] = []
    for i in range(n_tasks):
        wrong = rng.random() < error
        for who, label in (("ann", truth[i]), ("bob", (truth[i] + wrong) % 3)):
            key = job.class_key[int(label)]
            answers.append(event(len(answers) + 1, who, "label", job.key[i], key))
    own = np.full((n_tasks, 3), 0.25)
    own[np.arange(n_tasks), truth] = 0.5
    return job, answers, truth, weigh(job, answers, own, np.zeros(n_tasks), None)


def test_who_errs_is_found_out_and_counts_for_less() -> None:
    _, _, truth, found = two_people(200, 0.3, 0)
    assert found.rates["bob"] == pytest.approx(0.3, abs=0.08)
    assert found.rates["ann"] < 0.05
    assert (found.r.argmax(axis=1) == truth).mean() > 0.97


def test_one_answer_against_a_crowd_that_errs_together_stands() -> None:
    """Forty votes for x, honest probability .8: a person who says y is believed."""
    job = job_of(2)
    own = np.full((5, 2), 0.5)
    own[0] = (0.8, 0.2)
    found = weigh(job, [event(1, "ann", "label", "a", "y")], own, np.zeros(5), None)
    assert found.r[0].argmax() == 1


def test_a_crowd_that_is_wrong_of_many_does_not_rename_an_example() -> None:
    """Ann calls a a cat, and four others the same; the crowd calls those dogs."""
    job = job_of(2)
    own = np.array([[0.5, 0.5], *[[0.1, 0.9]] * 4])
    answers = [event(1, "ann", "label", "a", "x")]
    answers += [event(at + 2, "ann", "same", task, "a") for at, task in enumerate("bcde")]
    found = weigh(job, answers, own, np.zeros(5), None)
    assert (found.r.argmax(axis=1) == 0).all()
    assert found.is_named.all()
    assert found.is_labelled.tolist() == [True, False, False, False, False]
