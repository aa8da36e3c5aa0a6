"""Answers of several people: belief propagation against all labellings, rates that are learnt."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from ask.test_session import Open, Truth
from hypothesis import given, settings
from hypothesis import strategies as st

import tiebreak as tb
from tiebreak.ask.evidence import as_said, fallible
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.inference import people
from tiebreak.inference.calibration import DEPENDENCE
from tiebreak.inference.people import RESERVE, Weighed
from tiebreak.selection.state import own_probabilities

TASKS = "abcde"
CLASSES = "xyz"


def weigh(job: Job, answers: list[Event], own: Any, known: Any, error: float | None) -> Weighed:
    return people.weigh(as_said(job, answers), own, known, error)


def job_of(n_classes: int) -> Job:
    rows = [(task, "w", CLASSES[at % n_classes]) for at, task in enumerate(TASKS)]
    return Job(rows)


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
    st.lists(st.booleans(), max_size=4),  # which pairs bob compares, too
    st.integers(0, 10_000),
)
def test_on_a_tree_it_is_what_all_labellings_say(
    n_classes: int, parents: list[int], labels: list[Any], again: list[bool], seed: int
) -> None:
    job = job_of(n_classes)
    rng = np.random.default_rng(seed)
    own = rng.dirichlet(np.ones(n_classes), size=len(TASKS))
    answers = [
        event(at + 1, "ann", ("same", "different")[int(rng.integers(2))], TASKS[at + 1], TASKS[p])
        for at, p in enumerate(min(parent, at) for at, parent in enumerate(parents))
    ]
    for first, is_asked in zip(list(answers), again, strict=False):
        kind = ("same", "different")[int(rng.integers(2))]
        if is_asked:  # in the other order: it is the same pair
            answers.append(event(50, "bob", kind, first.right or "", first.left or ""))
    for kind, task, label in labels[:5]:
        answers.append(event(99, "bob", kind, TASKS[task], CLASSES[label % n_classes]))
    found = weigh(job, answers, own, np.zeros(len(own)), 0.1)
    with_reserve = (1.0 - found.reserve) * own + found.reserve / n_classes
    heard = shares_heard(found, parents)[:, None] if n_classes == 2 else np.ones((len(TASKS), 1))
    expected = by_enumeration(job, answers, with_reserve**heard, 0.1)
    expected *= with_reserve ** (1.0 - heard)  # the rest of the crowd's word: on the task itself
    expected /= expected.sum(axis=1, keepdims=True)
    assert found.r == pytest.approx(expected[found.task], abs=1e-9)


def shares_heard(found: Weighed, parents: list[int]) -> Any:
    """Return how much of the crowd's word goes along links, two classes: all are one tree."""
    labelled = np.zeros(len(TASKS), dtype=bool)
    labelled[found.task[found.is_labelled]] = True
    in_tree = np.arange(len(TASKS)) <= len(parents)
    n = int((in_tree & ~labelled).sum())
    share = 1.0 / (1.0 + DEPENDENCE * (n - 1)) if n else 1.0
    return np.where(labelled | ~in_tree, 1.0, share)


def two_people(n_tasks: int, error: float, seed: int) -> tuple[Job, list[Event], Any, Weighed]:
    """Let ann, who is right, and bob, who errs, label all tasks of a doubtful crowd."""
    crowd = tb.simulate.crowd(n_tasks, 5, 3, accuracy=(0.4, 0.6), random_state=seed)
    job = Job(crowd.responses)
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


def test_a_tie_to_a_named_task_counts_whatever_else_the_task_was_compared_with() -> None:
    """The last answer about b ties it to c, of which nothing is known; the first one to a."""
    job = job_of(3)
    answers = [event(1, "ann", "label", "a", "x"), event(2, "ann", "same", "b", "a")]
    answers += [event(3, "bob", "same", "b", "c"), event(4, "bob", "different", "d", "e")]
    found = weigh(job, answers, np.full((5, 3), 1.0 / 3.0), np.zeros(5), None)
    assert found.is_named.tolist() == [True, True, True, False, False]


def crowd_and_people(
    n_tasks: int, wrong_of_crowd: float, errors: dict[str, float], seed: int
) -> Weighed:
    """Let people take turns on tasks of which the crowd says .95; it is wrong so often."""
    rng = np.random.default_rng(seed)
    names = [f"t{i}" for i in range(n_tasks)]
    job = Job([(name, "w", CLASSES[i % 3]) for i, name in enumerate(names)])
    truth = rng.integers(0, 3, n_tasks)
    says = np.where(rng.random(n_tasks) < wrong_of_crowd, (truth + 1) % 3, truth)
    own = np.full((n_tasks, 3), 0.025)
    own[np.arange(n_tasks), says] = 0.95
    answers = []
    for i, who in zip(range(n_tasks), itertools.cycle(errors), strict=False):
        label = (truth[i] + (rng.random() < errors[who])) % 3
        answers.append(event(i + 1, who, "label", job.key[i], job.class_key[int(label)]))
    return weigh(job, answers, own, np.zeros(n_tasks), None)


def test_an_honest_crowd_tells_who_errs_and_a_crowd_that_is_sure_and_wrong_does_not() -> None:
    errors = {"ann": 0.0, "bob": 0.2}
    honest = crowd_and_people(400, 0.05, errors, 1)
    assert honest.reserve < 0.5 * RESERVE
    assert honest.rates["bob"] > max(0.07, 5.0 * honest.rates["ann"])
    wrong = crowd_and_people(400, 0.5, {"ann": 0.0, "bob": 0.0}, 1)
    assert wrong.reserve > 1.2 * RESERVE
    assert max(wrong.rates.values()) < 0.05
    assert (wrong.r.max(axis=1) > 0.5).all()


def test_what_was_compared_with_an_example_hangs_on_it() -> None:
    job = job_of(2)
    answers = [event(1, "ann", "label", "a", "x"), event(2, "bob", "same", "b", "a")]
    answers += [event(3, "bob", "different", "a", "c"), event(4, "ann", "same", "d", "c")]
    found = weigh(job, answers, np.full((5, 2), 0.5), np.zeros(5), None)
    doubt = 1.0 - found.r.max(axis=1)
    assert doubt[0] > 0.0
    gain = np.append(found.for_others, 0.0)  # nothing was said of e
    assert gain[0] == pytest.approx(2 * doubt[0])  # b and c
    tie = 1.0 - 2.0 * found.rates["bob"]
    assert gain[1:3] == pytest.approx(tie * gain[0])  # a label of either would tell a's
    assert gain[3:].tolist() == [0.0, 0.0]
    assert found.error == pytest.approx(np.mean([*found.rates.values()]))


def test_two_contradictions_do_not_rename_an_example_that_the_crowd_supports() -> None:
    """Sixty tasks are compared with one; two of them with another, too, and contradict."""
    names = [f"t{i}" for i in range(62)]
    job = Job([(name, "w", CLASSES[i % 2]) for i, name in enumerate(names)])
    truth = np.arange(62) % 2
    own = np.full((62, 2), 0.2)
    own[np.arange(62), truth] = 0.8
    answers = [
        event(1, "ann", "label", "t0", job.class_key[0]),
        event(2, "ann", "label", "t1", job.class_key[1]),
    ]
    for i in range(2, 62):
        who = ("ann", "bob")[i % 2]
        errs = i in (11, 21)  # bob
        kind = "same" if (truth[i] == truth[0]) != errs else "different"
        answers.append(event(i + 1, who, kind, names[i], "t0"))
    answers += [event(70 + i, "ann", "same", names[i], "t1") for i in (11, 21)]
    found = weigh(job, answers, own, np.zeros(62), None)
    once = ~np.isin(found.task, (1, 11, 21))
    assert (found.r.argmax(axis=1) == truth[found.task])[once].all()
    assert (found.r.max(axis=1) > 0.9)[once].all()


def test_an_example_of_two_names_is_settled_by_tasks_that_are_tied_to_it() -> None:
    """Ann and bob name a differently; both compared others with it, and ann names one of these."""
    job = job_of(3)
    answers = [event(1, "ann", "label", "a", "x"), event(2, "bob", "label", "a", "y")]
    answers += [event(3, "bob", "same", "b", "a"), event(4, "ann", "same", "c", "a")]
    own = np.full((5, 3), 1.0 / 3.0)
    found = weigh(job, answers, own, np.zeros(5), None)
    assert found.r[0, :2] == pytest.approx(0.5, abs=0.02)
    gain = found.for_others
    assert gain[1] > 0.4
    named = weigh(job, [*answers, event(5, "ann", "label", "b", "x")], own, np.zeros(5), None)
    assert named.r[:3, 0].min() > 0.9


def test_messages_settle_where_comparisons_contradict_in_a_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tasks are each the same as t0 and as t1, which were told apart and named apart."""
    names = [f"t{i}" for i in range(60)]
    job = Job([(name, "w", CLASSES[i % 2]) for i, name in enumerate(names)])
    answers = [
        event(1, "ann", "label", "t0", job.class_key[0]),
        event(2, "ann", "label", "t1", job.class_key[1]),
        event(3, "bob", "different", "t0", "t1"),
    ]
    answers += [
        event(i + 2, ("ann", "bob")[i % 2], "same", names[i], f"t{i % 2}") for i in range(2, 60)
    ]
    answers += [event(70 + i, "bob", "same", names[i], f"t{1 - i % 2}") for i in (2, 3)]
    own = np.full((60, 2), 0.3)
    own[np.arange(60), np.arange(60) % 2] = 0.7
    found = weigh(job, answers, own, np.zeros(60), None)
    monkeypatch.setattr(people, "TURNS", people.TURNS + 7)
    later = weigh(job, answers, own, np.zeros(60), None)
    assert np.abs(later.r - found.r).max() < 0.01


def test_answers_are_weighed_by_what_the_last_fit_found_of_the_workers(
    open_session: Open, truth: Truth
) -> None:
    options = {"strategy": "adaptive", "kinds": ("label",), "batch": 99}
    ann = open_session(who="ann", **options)
    bob = open_session(who="bob", **options)
    for at, task in enumerate(list(truth)[:30]):
        who = (ann, bob)[at % 2]
        who.answer(who.question(task), truth[task])
    ann.model()
    first = ann.desk.last_fit()
    bob.answer(bob.question(list(truth)[30]), truth[list(truth)[30]])
    ann.model()
    second = ann.desk.last_fit()
    answers = second.known.answers
    expected = fallible(ann.desk.job, answers, own_probabilities(first.model)).weighed
    by_votes = fallible(
        ann.desk.job, answers, own_probabilities(tb.VariationalBayes().fit(ann.desk.job.responses))
    ).weighed
    found = second.weighed
    assert found is not None
    assert expected is not None
    assert by_votes is not None
    assert (found.r == expected.r).all()
    assert (found.r != by_votes.r).any()
