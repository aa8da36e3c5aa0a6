"""What each method of `run.py` does with a case."""

from __future__ import annotations

import time
import warnings
from functools import cache
from typing import Any, NamedTuple
from unittest import mock

import crowds
import numpy as np
from crowds import Dataset, load, model

import tiebreak as tb

CHOSEN_ROUNDS = 8
CHOSEN = crowds.N_TASKS // 32  # questions a round

Row = dict[str, Any]


class Case(NamedTuple):
    method: str
    dataset: str
    setting: str
    seed: int


@cache
def plain_score(name: str) -> float:
    data = load(name)
    return data.score(model().fit(data.responses))


def timed(data: Dataset, **given: Any) -> tuple[Any, float]:
    """Fit, and return also the seconds; the best of two, since other programs run too."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        fitted = model().fit(data.responses, **given)
        seconds.append(time.perf_counter() - start)
    return fitted, min(seconds)


def asked(case: Case) -> Row:
    """Fit the asked links cold, as they are and with plain VB as the only start."""
    from tiebreak.inference.tasks.coupling.starts import LinkedGroups

    data = load(case.dataset)
    model().fit(data.responses)  # compiles
    row: Row = {"plain": plain_score(case.dataset)}
    names = ("n", "warm", "cold", "n_uncertain", "seconds", "one_start", "one_start_seconds")
    rows: dict[str, list[Any]] = {name: [] for name in names}
    for point in crowds.checkpoints(case.dataset, case.seed):
        links = data.links(point.left, point.right, point.must, sampling="pairs")
        cold, seconds = timed(data, links=links)
        with mock.patch.object(LinkedGroups, "needs_starts", new=False):
            one, one_seconds = timed(data, links=links)
        rows["n"].append(len(point.must))
        rows["warm"].append(point.warm)
        rows["cold"].append(data.score(cold))
        rows["n_uncertain"].append(len(cold.uncertain_groups_))
        rows["seconds"].append(seconds)
        rows["one_start"].append(data.score(one))
        rows["one_start_seconds"].append(one_seconds)
    return row | rows


def asked_soft(case: Case) -> Row:
    """Fit the asked links as soft ones whose error rates are learnt."""
    data = load(case.dataset)
    soft = model(link_options=tb.ExactLinkOptions(error="learn"))
    scores = []
    for point in crowds.checkpoints(case.dataset, case.seed):
        links = data.links(point.left, point.right, point.must, sampling="pairs")
        scores.append(data.score(soft.fit(data.responses, links=links)))
    return {"plain": plain_score(case.dataset), "cold": scores}


def known(case: Case) -> Row:
    """Fit the asked links cold with one known label a class."""
    data = load(case.dataset)
    warm = []
    scores = []
    for point in crowds.checkpoints(case.dataset, case.seed):
        links = data.links(point.left, point.right, point.must, sampling="pairs")
        gold = one_label_a_class(data, point)
        warm.append(point.warm)
        scores.append(data.score(model().fit(data.responses, links=links, gold=gold)))
    return {"warm": warm, "cold": scores}


def one_label_a_class(data: Dataset, point: crowds.Checkpoint) -> dict[Any, Any]:
    """Know a task of the largest must-linked group of each class, or any task of it."""
    from tiebreak.links import graph as link_graph

    ends = (point.left[point.must], point.right[point.must])
    group = link_graph.components(data.responses.n_tasks, *ends)
    size = np.bincount(group)[group]
    gold = {}
    for each, name in enumerate(data.responses.classes):
        mine = data.task[data.label == each]
        if len(mine):
            gold[data.responses.tasks[int(mine[np.argmax(size[mine])])]] = name
    return gold


def duplicates(case: Case) -> Row:
    """Link groups of 2 to 10 tasks of one class: all tasks, and half of them."""
    data = load(case.dataset)
    row: Row = {"plain": plain_score(case.dataset)}
    for name, share in (("all", 1.0), ("half", 0.5)):
        left, right = crowds.groups_of_one_class(data, share, case.seed)
        for sampling in ("duplicates", "pairs"):
            links = data.links(left, right, np.ones(len(left), dtype=bool), sampling=sampling)
            row[f"{name} {sampling}"] = data.score(model().fit(data.responses, links=links))
    return row


def random_links(case: Case) -> Row:
    """Link random pairs, a quarter as many as gold tasks and as many."""
    data = load(case.dataset)
    row: Row = {}
    for share in (0.25, 1.0):
        n = round(share * len(data.gold))
        links = tb.simulate.links(data.gold, n, random_state=case.seed)
        row[f"{share}"] = data.score(model().fit(data.responses, links=links))
    return row


def gold_alone(case: Case) -> Row:
    """Give 1, 5 and 20 % of gold, and no links; as one response each, or by the default weight."""
    options = {"gold_weight": 1} if case.method == "gold_as_one" else {}
    data = load(case.dataset)
    items = list(data.gold.to_dict().items())
    order = np.random.default_rng(case.seed).permutation(len(items))
    row: Row = {}
    for share in (0.01, 0.05, 0.2):
        given = dict(items[at] for at in order[: max(1, round(share * len(items)))])
        row[f"{share}"] = data.score(model(**options).fit(data.responses, gold=given))
    return row


def inverted(case: Case) -> Row:
    """300 tasks, 5 workers wrong in 80 %, some gold; or right in 80 %, and 5 wrong gold labels."""
    is_wrong = case.setting == "5 wrong gold"
    accuracy = 0.8 if is_wrong else 0.2
    crowd = tb.simulate.crowd(
        300, 5, 2, responses_per_task=5, accuracy=accuracy, random_state=case.seed
    )
    data = crowds.dataset_of(crowd.responses, crowd.gold)
    given = dict(list(crowd.gold.to_dict().items())[: int(case.setting.split()[0])])
    if is_wrong:
        one, other = crowd.responses.classes
        given = {task: other if label == one else one for task, label in given.items()}
    alone = data.accuracy(model().fit(data.responses))
    return {
        "plain": alone,
        "accuracy": data.accuracy(model().fit(data.responses, gold=given)),
    }


def simulated_links(case: Case) -> Row:
    """Link tasks of a simulated crowd; hard links are fitted where all are true."""
    n_classes, errs, how, wrong = case.setting.split()
    data = crowds.simulated(int(n_classes), together=errs == "together", seed=case.seed)
    soft = {"link_options": tb.ExactLinkOptions(error="learn")}
    rng = np.random.default_rng([case.seed, 7])
    if how == "random":
        n = crowds.N_TASKS
        links = tb.simulate.links(data.gold, n, wrong=float(wrong), random_state=rng)
    else:
        links = chosen_links(data, float(wrong), soft, rng)
    row = {
        "plain": data.score(model().fit(data.responses)),
        "learn": data.score(model(**soft).fit(data.responses, links=links)),
    }
    if float(wrong) == 0.0:
        row["hard"] = data.score(model().fit(data.responses, links=links))
    return row


def chosen_links(data: Dataset, wrong: float, soft: Any, rng: np.random.Generator) -> Any:
    """Ask as a session does, with the prior of the last fit; flip a share of the answers."""
    truth = data.classes_of_tasks()
    tasks = data.responses.tasks
    fitted = model().fit(data.responses)
    left: list[Any] = []
    right: list[Any] = []
    must: list[bool] = []
    links = None
    for _ in range(CHOSEN_ROUNDS):
        for one, other, _ in tb.selection.pairs(fitted, CHOSEN, "adaptive", None, rng):
            left.append(one)
            right.append(other)
            is_same = truth[tasks.codes([one])[0]] == truth[tasks.codes([other])[0]]
            must.append(bool(is_same != (rng.random() < wrong)))
        links = tb.Links.from_columns(left, right, must, sampling="pairs")
        fitted = model(**soft).fit(data.responses, links=links, start=fitted)
    return links


WORK = {
    "asked": asked,
    "asked_soft": asked_soft,
    "known": known,
    "duplicates": duplicates,
    "random": random_links,
    "random_before": random_links,
    "gold": gold_alone,
    "gold_as_one": gold_alone,
    "gold_before": gold_alone,
    "inverted": inverted,
    "links": simulated_links,
}


def work(case: Case) -> Row:
    warnings.simplefilter("ignore")
    measured = WORK[case.method](case)
    return case._asdict() | {name: rounded(value) for name, value in measured.items()}


def rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 4) if isinstance(value, float) else value
