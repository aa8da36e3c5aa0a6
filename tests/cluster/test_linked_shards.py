"""Linked tasks of several shards: the fit of one machine, whoever dies, or a refusal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster.clusters import local
from cluster.shards import Killer, assert_alike, assert_same_fit, cut, die_at, even, outcome
from refusals import refused

import tiebreak as tb
from tiebreak.errors import ResponseError

CROWD = tb.simulate.crowd(600, 25, 3, random_state=1)
TRUTH = CROWD.gold.to_dict()
GOLD = dict(list(TRUTH.items())[::13])
NAMES = list(TRUTH)
LINKS = tb.simulate.links(CROWD.gold, 150, random_state=2)


def loopy(n: int, seed: int) -> list[tuple[Any, ...]]:
    """Return soft links with more loops than can be summed out, and some pairs apart."""
    rng = np.random.default_rng(seed)
    rows = {tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(4 * n)}
    rows |= {(i, i + 1) for i in range(n, 300, 2)}
    made = []
    for a, b in sorted(rows):
        is_same = TRUTH[NAMES[a]] == TRUTH[NAMES[b]]
        kind = "must" if is_same != (rng.random() < 0.1) else "cannot"
        made.append((NAMES[a], NAMES[b], kind, 1.5))
    return made


LOOPY = tb.read_links(
    dict(zip(("left", "right", "link", "weight"), zip(*loopy(120, 5), strict=True), strict=True))
)
COPIES = [
    (NAMES[i], NAMES[i + n], "duplicate" if n == 1 else "must")
    for i in range(0, 90, 3)
    for n in (1, 2)
    if TRUTH[NAMES[i]] == TRUTH[NAMES[i + n]]
]

FITS: dict[str, tuple[Any, dict[str, Any]]] = {
    "links": (tb.VariationalBayes(), {"links": LINKS}),
    "links and gold": (tb.VariationalBayes(), {"links": LINKS, "gold": GOLD}),
    "as the model says": (tb.VariationalBayes(calibrate="none"), {"links": LINKS, "gold": GOLD}),
    "soft": (
        tb.VariationalBayes(link_options=tb.ExactLinkOptions(error=0.1)),
        {"links": LINKS, "gold": GOLD},
    ),
    "learnt": (
        tb.VariationalBayes(link_options=tb.ExactLinkOptions(error="learn")),
        {"links": LINKS},
    ),
    "subtypes": (
        tb.VariationalBayes(worker_model="subtypes", max_iter=10),
        {"links": LINKS, "gold": GOLD},
    ),
    "kinds": (tb.VariationalBayes(worker_model="kinds"), {"links": LINKS, "gold": GOLD}),
    "copies": (tb.VariationalBayes(), {"links": COPIES, "gold": GOLD}),
    "loopy": (tb.VariationalBayes(), {"links": LOOPY, "gold": GOLD}),
}


FAST = ("learnt", "subtypes", "copies", "loopy")
FAST_OR_LONG = [pytest.param(each, marks=() if each in FAST else pytest.mark.long) for each in FITS]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut(CROWD.responses, [0, 1, 200, 350, 600], tmp_path_factory.mktemp("crowd") / "shards")


@pytest.mark.filterwarnings("ignore:Not converged after:tiebreak.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The class of .* uncertain:tiebreak.errors.InputNote")
@pytest.mark.parametrize("name", FAST_OR_LONG)
def test_the_fit_is_that_of_one_machine(name: str, shards: Path, tmp_path: Path) -> None:
    estimator, given = FITS[name]
    one = type(estimator)(**estimator.get_params()).fit(CROWD.responses, **given)
    made = tb.shards.fit(shards, tmp_path / "out", estimator=estimator, probabilities=True, **given)
    assert_same_fit(one, made)
    assert made.link_report_ == one.link_report_
    assert len(made.violations_) == len(one.violations_)
    assert (made.link_report_.large > 0) == (name == "loopy")
    if one.doubtful_links_ is not None:
        np.testing.assert_allclose(
            made.doubtful_links_.probability, one.doubtful_links_.probability, atol=1e-9
        )
    if name == "learnt":
        assert made.link_errors_[None] == pytest.approx(one.link_errors_[None])


def test_tasks_that_the_driver_cannot_hold_are_refused_before_the_work(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_pages = (300 << 20) // 4096 + 20  # what a driver takes, and 80 KiB
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": n_pages}.get)
    with refused(ResponseError, "shards-too-large") as error:
        tb.shards.fit(shards, tmp_path / "out", links=LINKS)
    named = {task for link in zip(LINKS.left, LINKS.right, strict=True) for task in link}
    assert error.value.fields["n_named"] == len(named)


def test_responses_on_linked_tasks_have_weights(shards: Path, tmp_path: Path) -> None:
    crowd = CROWD.responses
    weight = np.random.default_rng(3).uniform(0.2, 2.0, crowd.n_responses)
    codes = (crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each())
    named = (crowd.tasks, crowd.workers, crowd.classes)
    weighted = tb.Responses.from_codes(*codes, *named, weight=weight)
    folder = cut(weighted, even(600, 3), tmp_path / "in")
    one = tb.VariationalBayes().fit(weighted, links=LINKS)
    made = tb.shards.fit(folder, tmp_path / "out", links=LINKS, probabilities=True)
    assert_same_fit(one, made)


STAGES: dict[str, dict[str, Any]] = {
    "links": {"links": LINKS, "gold": GOLD},
    "loopy": {"links": LOOPY, "gold": GOLD},
}
N_PLAIN = tb.VariationalBayes().fit(CROWD.responses).n_iter_


@pytest.mark.dask
@pytest.mark.parametrize("stage", ["loopy", pytest.param("links", marks=pytest.mark.long)])
def test_two_workers_give_the_serial_fit(
    stage: str, shards: Path, client: Any, tmp_path: Path
) -> None:
    serial = tb.shards.fit(shards, tmp_path / "serial", **STAGES[stage])
    made = tb.shards.fit(shards, tmp_path / "out", client=client, **STAGES[stage])
    assert_alike(made, outcome(serial))


SHORT = [("loopy", "during", 5)]
WHEN = [("during", -3), ("between", 3), ("during", 5)]  # after plain VB has settled
ALL = [(stage, *each) for stage in STAGES for each in WHEN]
MOMENTS = [pytest.param(*each, marks=() if each in SHORT else (pytest.mark.long,)) for each in ALL]


@pytest.mark.dask
@pytest.mark.parametrize(("stage", "when", "after"), MOMENTS)
def test_a_killed_worker_changes_nothing(
    stage: str, when: str, after: int, shards: Path, tmp_path: Path
) -> None:
    serial = tb.shards.fit(shards, tmp_path / "serial", **STAGES[stage])
    with local(2) as other:
        killer = Killer(other, N_PLAIN + after, when)
        made = tb.shards.fit(shards, tmp_path / "out", executor=killer, **STAGES[stage])
    assert killer.has_killed
    assert made.n_lost == 1
    assert_alike(made, outcome(serial))


@pytest.mark.parametrize("stage", ["loopy", pytest.param("links", marks=pytest.mark.long)])
def test_a_killed_driver_goes_on_to_the_same_fit(stage: str, shards: Path, tmp_path: Path) -> None:
    STAGES[stage]["links"].write(tmp_path / "links.csv")
    given: dict[str, Any] = {"links": tb.read_links(tmp_path / "links.csv"), "gold": GOLD}
    expected = outcome(tb.shards.fit(shards, tmp_path / "whole", **given))
    die_at(N_PLAIN + 9, shards, tmp_path / "out", tmp_path, **given)
    made = tb.shards.fit(shards, tmp_path / "out", resume=True, **given)
    assert_alike(made, expected)
