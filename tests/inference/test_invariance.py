"""What a result must not depend on: the order of rows, gold and links, names, rows for weights.

Every public estimator is fitted with every worker model that it takes, on responses alone, with
gold and with links. A new estimator or worker model is covered without a change here.
"""

from __future__ import annotations

import warnings
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.data import Ids, Responses
from tiebreak.errors import OptionError
from tiebreak.estimators import Estimator
from tiebreak.inference import MODELS, lay_out
from tiebreak.kernels import by_class, reference

TOLERANCE = 1e-9
N_SHORT = 3  # random crowds for each estimator and situation
N_LONG = 500
LEFT_OUT = {"GibbsSampler"}  # it draws: it is compared within Monte Carlo error below
SITUATIONS = ("plain", "gold", "links")

pytestmark = pytest.mark.filterwarnings("ignore")


class Crowd(NamedTuple):
    """Responses by number, with what is known of tasks."""

    task: Any
    worker: Any
    label: Any
    times: Any  # how often each response was given
    gold: list[tuple[int, int]]
    links: list[tuple[int, int, bool]]
    n_classes: int


class Names(NamedTuple):
    """The names of tasks, workers and classes."""

    task: list[str]
    worker: list[str]
    label: list[str]


def random_crowd(seed: int) -> Crowd:
    rng = np.random.default_rng(seed)
    n_tasks = int(rng.integers(12, 40))
    n_workers = int(rng.integers(3, 9))
    n_classes = int(rng.integers(2, 5))
    truth = rng.integers(0, n_classes, n_tasks)
    truth[:n_classes] = np.arange(n_classes)
    asked = rng.random((n_tasks, n_workers)) < rng.choice([0.5, 0.8, 1.0])
    asked[:, 0] |= ~asked.any(axis=1)
    task, worker = np.nonzero(asked)
    skill = rng.uniform(0.4, 0.95, n_workers)
    noise = rng.integers(0, n_classes, len(task))
    label = np.where(rng.random(len(task)) < skill[worker], truth[task], noise)
    label[:1] = truth[task[0]]
    used = np.unique(label)
    known = rng.choice(n_tasks, max(2, n_tasks // 5), replace=False)
    pairs = rng.choice(n_tasks, (n_tasks // 4, 2))
    return Crowd(
        task,
        worker,
        np.searchsorted(used, label),
        rng.integers(1, 4, len(task)),
        [(int(t), int(np.searchsorted(used, truth[t]))) for t in known if truth[t] in used],
        [(int(a), int(b), bool(truth[a] == truth[b])) for a, b in pairs if a != b],
        len(used),
    )


def first_names(crowd: Crowd) -> Names:
    return Names(
        [f"t{i:03d}" for i in range(int(crowd.task.max()) + 1)],
        [f"w{i}" for i in range(int(crowd.worker.max()) + 1)],
        [f"c{i}" for i in range(crowd.n_classes)],
    )


def renamed(names: Names, rng: np.random.Generator) -> Names:
    return Names(*(list(rng.permutation(each)) for each in names))


def fit(
    model: Estimator,
    crowd: Crowd,
    situation: str,
    names: Names,
    rng: np.random.Generator | None = None,
    weighted: str = "no",
) -> Estimator:
    """Fit with these names, in the order of an rng; responses once, by weight, or repeated."""
    rows = np.arange(len(crowd.task))
    if weighted == "repeated":
        rows = np.repeat(rows, crowd.times)
    gold = list(crowd.gold)
    links = list(crowd.links)
    if rng is not None:
        rows = rng.permutation(rows)
        gold = [gold[i] for i in rng.permutation(len(gold))]
        links = [links[i] for i in rng.permutation(len(links))]
        links = [(b, a, m) if rng.random() < 0.5 else (a, b, m) for a, b, m in links]
    columns = [
        [of_kind[i] for i in codes[rows]]
        for of_kind, codes in zip(names, (crowd.task, crowd.worker, crowd.label), strict=True)
    ]
    weight = crowd.times[rows].astype(float) if weighted == "weight" else None
    responses = responses_of(columns[0], columns[1], columns[2], weight)
    given: dict[str, Any] = {}
    if situation == "gold":
        given["gold"] = {names.task[t]: names.label[k] for t, k in gold}
    if situation == "links":
        must = [(names.task[a], names.task[b]) for a, b, m in links if m]
        cannot = [(names.task[a], names.task[b]) for a, b, m in links if not m]
        given["links"] = tb.Links.from_pairs(must=must, cannot=cannot)
    return model.fit(responses, **given)


def responses_of(task: list[str], worker: list[str], label: list[str], weight: Any) -> Responses:
    """Number tasks and workers as they appear, and classes in order, as files are read."""
    ids = [list(dict.fromkeys(task)), list(dict.fromkeys(worker)), sorted(set(label))]
    places = [{name: i for i, name in enumerate(each)} for each in ids]
    codes = [
        np.array([place[name] for name in column], dtype=np.int32)
        for place, column in zip(places, (task, worker, label), strict=True)
    ]
    task_code, worker_code, label_code = codes
    names = (Ids(ids[0]), Ids(ids[1]), Ids(ids[2]))
    return Responses.from_codes(task_code, worker_code, label_code, *names, weight=weight)


def table(model: Estimator, names: Names) -> np.ndarray:
    """Return probabilities by the numbers of tasks and classes."""
    rows = model.tasks_.codes(names.task)
    return np.asarray(model.probabilities_[rows][:, model.classes_.codes(names.label)])


def label_numbers(model: Estimator, names: Names) -> np.ndarray:
    best = model.labels_.best()
    number: dict[Any, int] = {name: k for k, name in enumerate(names.label)}
    return np.array([number[best[task]] for task in names.task])


def assert_same(one: Estimator, names: Names, other: Estimator, others: Names) -> None:
    q, r = table(one, names), table(other, others)
    assert np.abs(q - r).max() < TOLERANCE
    second, first = np.sort(q, axis=1)[:, -2:].T
    clear = first - second > TOLERANCE
    mine, theirs = label_numbers(one, names), label_numbers(other, others)
    if one.links_ is None:
        assert not ((mine != theirs) & clear).any()
    elif (mine != theirs).any() and isinstance(one, tb.VariationalBayes):
        # Linked tasks are labelled jointly: two labellings may tie.
        assert abs(joint_score(one, names, mine) - joint_score(one, names, theirs)) < 1e-6


def joint_score(model: Any, names: Names, numbers: np.ndarray) -> float:
    """Return how likely the model holds a labelling in which no hard link is broken, as a log."""
    crowd = model.responses_
    states, workers = model._crowd_model
    alpha, beta = model._state.parameters
    logs = (states.expected_log(alpha), workers.log_table(beta))
    tasks = lay_out(crowd)
    scores = by_class(reference.score_tasks(tasks, *logs), crowd.n_classes)
    label = model.classes_.codes([names.label[k] for k in numbers])
    return float(scores[model.tasks_.codes(names.task), label].sum())


def assert_ties_follow_names(model: Estimator) -> None:
    """A tie goes to the class whose name sorts first: `classes_` are sorted."""
    q = model.probabilities_
    near = q >= q.max(axis=1, keepdims=True) - TOLERANCE
    tied = near.sum(axis=1) > 1
    assert (model.labels_.label[tied] == near.argmax(axis=1)[tied]).all()


def takes(kind: type[Estimator], worker_model: str | None, situation: str) -> bool:
    """Say whether an estimator can be fitted so; what it cannot use it refuses."""
    try:
        fit(made(kind, worker_model), TINY, situation, first_names(TINY))
    except OptionError:
        return False
    return True


def made(kind: type[Estimator], worker_model: str | None) -> Estimator:
    return kind() if worker_model is None else kind(worker_model=worker_model)  # type: ignore[call-arg]


def every_fit() -> list[Any]:
    cases = []
    for name in dir(tb):
        kind = getattr(tb, name)
        if not (isinstance(kind, type) and issubclass(kind, Estimator)) or name in LEFT_OUT:
            continue
        models = MODELS if "worker_model" in kind._parameters() else (None,)
        for worker_model in models:
            for situation in SITUATIONS:
                if takes(kind, worker_model, situation):
                    label = f"{name}-{worker_model}-{situation}"
                    cases.append(pytest.param(kind, worker_model, situation, id=label))
    return cases


TINY = Crowd(
    np.array([0, 0, 1, 1]),
    np.array([0, 1, 0, 1]),
    np.array([0, 0, 1, 1]),
    np.ones(4, dtype=int),
    [(0, 0)],
    [(0, 1, False)],
    2,
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    CASES = every_fit()
EVERY_FIT = pytest.mark.parametrize(("kind", "worker_model", "situation"), CASES)


def check(kind: type[Estimator], worker_model: str | None, situation: str, seed: int) -> None:
    crowd = random_crowd(seed)
    names = first_names(crowd)
    rng = np.random.default_rng([seed, 1])
    given = fit(made(kind, worker_model), crowd, situation, names)
    shuffled = fit(made(kind, worker_model), crowd, situation, names, rng)
    assert_same(given, names, shuffled, names)
    others = renamed(names, rng)
    other = fit(made(kind, worker_model), crowd, situation, others, rng)
    assert_same(given, names, other, others)
    if situation != "links":  # linked tasks are labelled jointly
        assert_ties_follow_names(given)
    by_weight = fit(made(kind, worker_model), crowd, situation, names, weighted="weight")
    repeated = fit(made(kind, worker_model), crowd, situation, names, rng, "repeated")
    assert_same(by_weight, names, repeated, names)


@EVERY_FIT
@pytest.mark.parametrize("seed", range(N_SHORT))
def test_nothing_depends_on_order_names_or_rows_for_weights(
    kind: type[Estimator], worker_model: str | None, situation: str, seed: int
) -> None:
    check(kind, worker_model, situation, seed)


@pytest.mark.long
@EVERY_FIT
def test_nothing_depends_on_order_names_or_rows_for_weights_in_500_crowds(
    kind: type[Estimator], worker_model: str | None, situation: str
) -> None:
    for seed in range(N_SHORT, N_SHORT + N_LONG):
        check(kind, worker_model, situation, seed)


def _sampler(seed: int) -> tb.GibbsSampler:
    return tb.GibbsSampler(n_draws=200, n_chains=2, random_state=seed)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_draws_differ_by_no_more_than_monte_carlo_error(situation: str) -> None:
    crowd = random_crowd(1)
    names = first_names(crowd)
    rng = np.random.default_rng(0)
    seeds = [
        table(
            fit(
                tb.GibbsSampler(n_draws=200, n_chains=2, random_state=seed), crowd, situation, names
            ),
            names,
        )
        for seed in range(4)
    ]
    spread = np.std(seeds, axis=0, ddof=1).mean()
    others = renamed(names, rng)
    for each in (names, others):
        model = fit(
            tb.GibbsSampler(n_draws=200, n_chains=2, random_state=0), crowd, situation, each, rng
        )
        assert np.abs(table(model, each) - np.mean(seeds, axis=0)).mean() < 2.0 * spread


def test_a_tie_goes_to_the_class_that_sorts_first() -> None:
    """Every pattern of answers comes under all names of classes, so that nothing prefers one."""
    rng = np.random.default_rng(0)
    n_tied = 0
    for _ in range(4):
        patterns = rng.integers(0, 3, (4, int(rng.integers(4, 9))))
        rows = [
            (f"t{p}{turn}", f"w{w}", "xyz"[turn[said]])
            for p, pattern in enumerate(patterns)
            for turn in permutations(range(3))
            for w, said in enumerate(pattern)
        ]
        for kind, worker_model, situation in (case.values for case in CASES):
            if situation == "plain":
                shuffled = [rows[i] for i in rng.permutation(len(rows))]
                model = made(kind, worker_model).fit(shuffled)
                assert_ties_follow_names(model)
                q = np.sort(model.probabilities_, axis=1)
                n_tied += int((q[:, -1] - q[:, -2] < TOLERANCE).sum())
    assert n_tied > 0


@pytest.mark.data
def test_subtypes_of_a_real_crowd_do_not_depend_on_the_order_of_rows() -> None:
    crowd = tb.datasets.load("bluebird").responses
    order = np.random.default_rng(0).permutation(crowd.n_responses)
    columns = (crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each())
    ids = (crowd.tasks, crowd.workers, crowd.classes)
    task, worker, label = (
        [str(n[int(c)]) for c in each[order]] for n, each in zip(ids, columns, strict=True)
    )
    shuffled = responses_of(task, worker, label, None)
    for worker_model in ("subtypes", "kinds+subtypes"):
        one, other = (
            tb.VariationalBayes(worker_model=worker_model).fit(each) for each in (crowd, shuffled)
        )
        rows = other.tasks_.codes([str(name) for name in crowd.tasks])
        assert np.abs(one.probabilities_ - other.probabilities_[rows]).max() < TOLERANCE
