"""The table of workers: intervals that cover, oracles of the linear response, and words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusals import refused

import tiebreak as tb
from tiebreak import simulate
from tiebreak.data import Ids
from tiebreak.inference import MODELS, ClassPrior, WorkerCells, worker_intervals, worker_summary

SETTINGS = ((2, 3), (2, 10), (4, 5))  # classes, votes a task
LEAST_COVER = 0.87


def drawn_crowd(n_classes: int, n_votes: int, seed: int) -> tuple[tb.Responses, Any, Any]:
    """150 tasks and 12 workers, drawn from the prior of the model."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.ones(n_classes))
    truth = rng.choice(n_classes, size=150, p=share)
    prior = np.ones((n_classes, n_classes)) + (n_classes - 1.0) * np.eye(n_classes)
    confusion = np.stack([[rng.dirichlet(row) for row in prior] for _ in range(12)])
    task = np.repeat(np.arange(150), n_votes)
    worker = np.concatenate([rng.choice(12, n_votes, replace=False) for _ in range(150)])
    label = [
        rng.choice(n_classes, p=confusion[w, truth[t]]) for t, w in zip(task, worker, strict=True)
    ]
    names = (Ids(list(range(n))) for n in (150, 12, n_classes))
    return tb.Responses.from_codes(task, worker, label, *names), share, confusion


def coverage(n_classes: int, n_votes: int, seeds: range) -> tuple[float, float]:
    """Return how many intervals of confusions, and of accuracies, hold the truth."""
    cells = []
    accuracies = []
    for seed in seeds:
        responses, share, confusion = drawn_crowd(n_classes, n_votes, seed)
        table = tb.VariationalBayes().fit(responses).workers_table()
        truth = np.diagonal(confusion, axis1=1, axis2=2) @ share
        cells.append((table.confusion_low <= confusion) & (confusion <= table.confusion_high))
        accuracies.append((table.accuracy_low <= truth) & (truth <= table.accuracy_high))
    return float(np.mean(cells)), float(np.mean(accuracies))


@pytest.mark.parametrize(("n_classes", "n_votes"), SETTINGS)
def test_intervals_of_ninety_percent_cover(n_classes: int, n_votes: int) -> None:
    cells, accuracies = coverage(n_classes, n_votes, range(10))
    assert cells >= LEAST_COVER
    assert accuracies >= LEAST_COVER - 0.05  # 120 of them: two standard errors


@pytest.mark.long
@pytest.mark.parametrize(("n_classes", "n_votes"), SETTINGS)
def test_intervals_of_forty_crowds_cover(n_classes: int, n_votes: int) -> None:
    """Constants were chosen on crowds 0 to 39: these are others."""
    cells, accuracies = coverage(n_classes, n_votes, range(100, 140))
    assert cells >= LEAST_COVER
    assert accuracies >= LEAST_COVER


# The linear response


def votes_of(crowd: tb.Responses) -> worker_intervals.Votes:
    """No task is linked."""
    each = np.arange(crowd.n_tasks, dtype=np.int32)
    return worker_intervals.Votes(
        crowd.task_of_each(), crowd.code, np.ones(crowd.n_responses), each, np.zeros_like(each)
    )


def small_crowd() -> tuple[tb.Responses, Any, Any, Any, Any]:
    crowd = simulate.crowd(12, 3, 2, responses_per_task=3, accuracy=0.7, random_state=0).responses
    prior = np.broadcast_to([[2.0, 1.0], [1.0, 2.0]], (3, 2, 2)).copy()
    cells = WorkerCells.of_confusions(prior).with_states(ClassPrior(np.ones(2)))
    votes = votes_of(crowd)
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(2), size=12)
    counts = worker_intervals.tally(cells, votes, q, q.sum(axis=0))
    return crowd, cells, votes, q, counts


def test_the_linear_response_is_that_of_plain_loops() -> None:
    crowd, cells, votes, q, counts = small_crowd()
    found = worker_intervals.respond(cells, votes, q, counts)
    n_cells = len(counts)
    covariance = np.zeros((n_cells, n_cells))
    for task in range(12):
        for k in range(2):
            added = np.zeros(n_cells)
            for at in np.flatnonzero(votes.task == task):
                added[cells.of_code[crowd.code[at], k]] += 1.0
            added[cells.of_state[0][k]] += 1.0
            mean = sum(
                q[task, j] * _added(cells, crowd.code[votes.task == task], j) for j in range(2)
            )
            covariance += q[task, k] * np.outer(added - mean, added - mean)
    response = np.zeros((n_cells, n_cells))
    slope = np.zeros((n_cells, n_cells))
    for row in range(cells.row.max() + 1):
        of_row = np.flatnonzero(cells.row == row)
        total = counts[of_row].sum()
        response[np.ix_(of_row, of_row)] = np.diag(1.0 / counts[of_row]) - 1.0 / total
        share = counts[of_row] / total
        slope[np.ix_(of_row, of_row)] = (np.eye(len(of_row)) - share[:, None]) / total
    total = cells.row_sums(counts)
    mean = counts / total
    joint = covariance @ np.linalg.inv(np.eye(n_cells) - response @ covariance)
    expected = mean * (1.0 - mean) / (total + 1.0) + np.diagonal(slope @ joint @ slope.T)
    assert np.allclose(found.variance(), expected)
    assert (found.variance() > found.own).all()


def _added(cells: Any, codes: Any, k: int) -> Any:
    added = np.zeros(len(cells.prior))
    for code in codes:
        added[cells.of_code[code, k]] += 1.0
    added[cells.of_state[0][k]] += 1.0
    return added


def test_a_cell_alone_is_less_wide_than_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others do to a cell comes on top; the variance given the classes is the least."""
    _, cells, votes, q, counts = small_crowd()
    full = worker_intervals.respond(cells, votes, q, counts).variance()
    monkeypatch.setattr(worker_intervals, "TOGETHER", 0)
    alone = worker_intervals.respond(cells, votes, q, counts)
    assert (alone.variance() >= alone.own).all()
    assert alone.variance().sum() < full.sum()


@pytest.mark.parametrize("flipped", [False, True])
def test_tasks_that_links_make_one_are_as_one_task(flipped: bool) -> None:
    """Two tasks of one unit respond as one task with the responses of both."""
    _, cells, votes, q, counts = small_crowd()
    n_half = 6
    unit = np.tile(np.arange(n_half, dtype=np.int32), 2)
    flip = np.repeat(np.array([0, int(flipped)], dtype=np.int32), n_half)
    q = np.concatenate([q[:n_half], q[:n_half, ::-1] if flipped else q[:n_half]])
    united = votes._replace(unit=unit, flip=flip)
    found = worker_intervals.Entries.of(cells, united, q)
    code = votes.code.copy()
    if flipped:  # the other answer to a task of the other class, with its cells exchanged
        turned = found.column[: 2 * len(code)].reshape(-1, 2)
        is_second = votes.task >= n_half
        assert (turned[is_second, 0] % 2 == 1).all()
        assert (turned[~is_second, 0] % 2 == 0).all()
        return
    merged = votes._replace(task=votes.task % n_half, unit=unit[:n_half], flip=flip[:n_half])
    one = worker_intervals.respond(cells, united, q, counts)
    other = worker_intervals.respond(cells, merged, q[:n_half], counts)
    assert np.allclose(one.variance(), other.variance())


def test_where_all_classes_are_known_nothing_is_open() -> None:
    crowd = simulate.crowd(60, 4, 3, responses_per_task=4, random_state=0)
    model = tb.VariationalBayes(gold_weight=1).fit(crowd.responses, gold=crowd.gold)
    table = model.workers_table()
    assert np.allclose(table.confusion, model.confusion_)
    counts = np.zeros((4, 3, 3))
    truth = crowd.gold.on(model.tasks_, model.classes_)
    of_task = np.empty(60, dtype=int)
    of_task[truth.task] = truth.label
    r = crowd.responses
    np.add.at(counts, (r.worker_of_each(), of_task[r.task_of_each()], r.label_of_each()), 1.0)
    beta = counts + np.ones((3, 3)) + 2.0 * np.eye(3)
    from scipy.stats import beta as beta_distribution

    total = beta.sum(axis=2, keepdims=True)
    low = beta_distribution.ppf(0.05, beta, total - beta)
    assert np.allclose(table.confusion_low, low, atol=1e-6)


def test_a_collapsed_sweep_takes_a_task_s_own_counts_away() -> None:
    """With one worker and one response a task, what is left is the prior and the other task."""
    crowd = tb.Responses.from_rows([("a", "w", 0), ("b", "w", 1)])
    prior = np.array([[[2.0, 1.0], [1.0, 2.0]]])
    cells = WorkerCells.of_confusions(prior).with_states(ClassPrior(np.ones(2)))
    votes = votes_of(crowd)
    q = np.array([[0.8, 0.2], [0.3, 0.7]])
    found = worker_intervals.refine(
        cells, votes, q, q.sum(axis=0), np.ones(2, dtype=bool), n_sweeps=1
    )[0]
    share = np.array([1.0 + 0.3, 1.0 + 0.7])
    says_0 = np.array([2.0 / (3.0 + 0.3), 1.0 / (3.0 + 0.7)])  # task b said 1
    assert np.allclose(found[0], share * says_0 / (share * says_0).sum())


# The table


@pytest.mark.parametrize("worker_model", MODELS)
def test_every_worker_model_has_a_table(worker_model: str) -> None:
    crowd = simulate.crowd(120, 8, 3, responses_per_task=4, random_state=0)
    model = tb.VariationalBayes(worker_model=worker_model).fit(crowd.responses)
    check_table(model.workers_table(), 3)
    assert np.abs(model.workers_table().confusion - model.confusion_).max() < 0.2


@pytest.mark.parametrize(
    "model",
    [
        tb.DawidSkene(),
        tb.DawidSkene(smoothing=0.0),
        tb.DawidSkene(worker_model="coin"),
        tb.GibbsSampler(),
    ],
    ids=repr,
)
def test_other_estimators_have_a_table(model: Any) -> None:
    crowd = simulate.crowd(120, 8, 3, responses_per_task=4, random_state=0)
    check_table(model.fit(crowd.responses).workers_table(), 3)


def check_table(table: Any, n_classes: int) -> None:
    assert np.allclose(table.confusion.sum(axis=2), 1.0)
    for low, mean, high in (
        (table.accuracy_low, table.accuracy, table.accuracy_high),
        (table.confusion_low, table.confusion, table.confusion_high),
    ):
        assert (low >= 0.0).all()
        assert (low <= mean).all()
        assert (mean <= high).all()
        assert (high <= 1.0).all()
    assert (table.accuracy_high - table.accuracy_low > 0.01).all()
    assert (table.information >= 0.0).all()
    assert (table.information <= np.log2(n_classes)).all()
    assert table.n_responses.sum() == 480
    assert ((table.agreement >= 0.0) & (table.agreement <= 1.0)).all()


def test_links_and_gold_make_intervals_narrower() -> None:
    crowd = simulate.crowd(150, 8, 2, responses_per_task=3, accuracy=0.7, random_state=2)
    links = simulate.links(crowd.gold, 150, random_state=2)
    plain = tb.VariationalBayes().fit(crowd.responses).workers_table()
    linked = tb.VariationalBayes().fit(crowd.responses, links=links).workers_table()
    known = tb.VariationalBayes().fit(crowd.responses, gold=crowd.gold).workers_table()
    widths = [(t.accuracy_high - t.accuracy_low).mean() for t in (plain, linked, known)]
    assert widths[0] > widths[1] > widths[2]


def test_intervals_are_near_those_of_gibbs() -> None:
    responses, _, _ = drawn_crowd(2, 5, 3)
    table = tb.VariationalBayes().fit(responses).workers_table()
    drawn = tb.GibbsSampler(n_draws=1000).fit(responses).workers_table()
    width = drawn.confusion_high - drawn.confusion_low
    assert np.abs(table.confusion - drawn.confusion).max() < 0.5 * width.max()
    ratio = (table.confusion_high - table.confusion_low) / width
    assert 0.85 < np.median(ratio) < 1.15


def test_a_wider_level_gives_wider_intervals() -> None:
    crowd = simulate.crowd(60, 4, 2, responses_per_task=3, random_state=0)
    model = tb.VariationalBayes().fit(crowd.responses)
    narrow = model.workers_table(level=0.5)
    wide = model.workers_table(level=0.99)
    assert (narrow.accuracy_low > wide.accuracy_low).all()
    assert (narrow.accuracy_high < wide.accuracy_high).all()
    with refused(tb.errors.OptionError, "wrong-value level"):
        model.workers_table(level=1.0)


def test_what_has_no_workers_says_so() -> None:
    crowd = simulate.crowd(30, 4, 2, responses_per_task=3, random_state=0)
    with refused(tb.errors.OptionError, "no-worker-model MajorityVote"):
        tb.MajorityVote().fit(crowd.responses).workers_table()
    with refused(tb.errors.NotFittedError, "no-result-yet"):
        tb.VariationalBayes().workers_table()


def test_columns_name_truth_and_answer() -> None:
    crowd = simulate.crowd(30, 4, 2, responses_per_task=3, random_state=0)
    table = tb.VariationalBayes().fit(crowd.responses).workers_table()
    columns = table.columns()
    first, second = (str(name) for name in table.classes)
    assert (columns[f"says_{second}_of_{first}"] == table.confusion[:, 0, 1]).all()
    assert (columns[f"says_{second}_of_{first}_low"] == table.confusion_low[:, 0, 1]).all()
    assert "WorkersTable(4 workers" in repr(table)
    assert "<table>" in table._repr_html_()
    frame = table.to_frame("pandas", confusion=False)
    assert list(frame.columns)[:3] == ["worker", "responses", "accuracy"]


# Words


def test_each_kind_of_worker_gets_its_word() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    answers = {
        "good": np.where(rng.random(400) < 0.93, truth, 1 - truth),
        "other": np.where(rng.random(400) < 0.9, truth, 1 - truth),
        "third": np.where(rng.random(400) < 0.9, truth, 1 - truth),
        "guesser": rng.integers(0, 2, 400),
        "liar": np.where(rng.random(400) < 0.1, truth, 1 - truth),
        "yes-sayer": np.where((truth == 1) | (rng.random(400) < 0.6), 1, 0),
        "weak": np.where(rng.random(400) < 0.66, truth, 1 - truth),
    }
    rows = [(t, name, int(a[t])) for name, a in answers.items() for t in range(400)]
    rows += [(t, "newcomer", int(truth[t])) for t in range(2)]
    table = tb.VariationalBayes().fit(rows).workers_table()
    words = dict(zip(table.workers, table.verdict, strict=True))
    assert words == {
        "good": "reliable",
        "other": "reliable",
        "third": "reliable",
        "guesser": "no better than chance",
        "liar": "inverted",
        "yes-sayer": "biased towards 1",
        "weak": "weak",
        "newcomer": "too few to tell",
    }


def test_who_always_says_the_common_class_is_no_better_than_chance() -> None:
    confusion = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    prior = np.array([0.9, 0.1])
    chance = worker_summary.chance_of(confusion, prior)
    accuracy = worker_summary.Interval(np.array([0.9]), np.array([0.88]), np.array([0.92]))
    words = worker_summary.verdicts(accuracy, chance, confusion, prior, Ids(["no", "yes"]))
    assert words == ["no better than chance"]
