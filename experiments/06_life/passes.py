"""Labels after one pass of a stream, beside a fit of all responses; what counts give up."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import tiebreak as tb
from tiebreak.life import online
from tiebreak.life.online import Stream

Row = tuple[str, str, str]


class Crowd(NamedTuple):
    """Responses as rows, their gold, and a fit of all."""

    rows: list[Row]
    classes: list[str]
    gold: tb.Gold
    fit: Any

    @classmethod
    def of(cls, responses: tb.Responses, gold: tb.Gold) -> Crowd:
        columns = (
            responses.tasks.take(responses.task_of_each()),
            responses.workers.take(responses.worker_of_each()),
            responses.classes.take(responses.label_of_each()),
        )
        rows = [(str(t), str(w), str(k)) for t, w, k in zip(*columns, strict=True)]
        classes = [str(name) for name in responses.classes]
        known = {str(task): str(label) for task, label in gold.to_dict().items()}
        crowd = tb.Responses.from_columns(*columns_of(rows), classes=classes)
        return cls(rows, classes, tb.Gold.from_dict(known), tb.VariationalBayes().fit(crowd))

    @property
    def f_of_fit(self) -> float:
        return tb.evaluate.f_score(self.fit.labels_, self.gold)


def columns_of(rows: list[Row]) -> tuple[list[str], ...]:
    return tuple(map(list, zip(*rows, strict=True)))


def in_order(rows: list[Row], order: str, seed: int) -> list[Row]:
    """Return rows in random order, or those of one worker after the other."""
    mixed = sorted(rows)
    random.Random(seed).shuffle(mixed)
    if order == "random":
        return mixed
    names = sorted({row[1] for row in rows})
    random.Random(seed + 1).shuffle(names)
    turn = {name: place for place, name in enumerate(names)}
    return sorted(mixed, key=lambda row: turn[row[1]])


def pass_once(crowd: Crowd, order: str, seed: int, batch: int) -> dict[str, float]:
    """Stream all rows once; compare labels with those of the fit, before and after catching up."""
    rows = in_order(crowd.rows, order, seed)
    first = tb.Responses.from_columns(*columns_of(rows[:batch]), classes=crowd.classes)
    stream = Stream(tb.VariationalBayes().fit(first))
    for at in range(batch, len(rows), batch):
        stream.visit(stream.add(*columns_of(rows[at : at + batch])))
    found = {}
    for name in ("on the way", "caught up"):
        labels = stream.to_model().labels_
        best = labels.best()
        same = [label == best[task] for task, label in crowd.fit.labels_.best().items()]
        found[name] = tb.evaluate.f_score(labels, crowd.gold) - crowd.f_of_fit
        found[f"{name}, same"] = float(np.mean(same))
        stream.catch_up()
    return found


def one_pass(config: dict[str, Any], datasets: list[str]) -> dict[str, Any]:
    """Stream the ten datasets, in orders of two kinds and batches of two sizes."""
    part = config["one_pass"]
    found: dict[str, Any] = {}
    for name in datasets:
        responses, gold, _ = tb.datasets.load(name)
        crowd = Crowd.of(responses, gold)
        row: dict[str, Any] = {"fit": crowd.f_of_fit}
        for batch, n_orders in part["batches"].items():
            seeds = range(part["first_seed"], part["first_seed"] + n_orders)
            for order in config["orders"]:
                made = [pass_once(crowd, order, seed, int(batch)) for seed in seeds]
                row[f"{order}, {batch}"] = {key: [each[key] for each in made] for key in made[0]}
        found[name] = row
        print(name, row, flush=True)
    return found


def simulated(config: dict[str, Any]) -> dict[str, Any]:
    """Stream simulated crowds, on which no constant was chosen, with more or fewer restarts."""
    part = config["simulated"]
    found: dict[str, Any] = {}
    for n_classes in part["classes"]:
        for shared in part["shared"]:
            crowds = list(_simulated_crowds(part, n_classes, shared))
            row: dict[str, Any] = {"fit": float(np.mean([crowd.f_of_fit for crowd in crowds]))}
            for growth in part["growth"]:
                row[f"{growth:g}"] = _with_growth(config, crowds, growth)
            found[f"K={n_classes}, shared {shared:g}"] = row
            print(n_classes, shared, row, flush=True)
    return found


def _simulated_crowds(part: dict[str, Any], n_classes: int, shared: float) -> Iterator[Crowd]:
    for seed in range(part["first_seed"], part["first_seed"] + part["crowds"]):
        made = tb.simulate.crowd(
            part["n_tasks"],
            part["n_workers"],
            n_classes,
            responses_per_task=part["responses_per_task"],
            accuracy=(1.0 / n_classes, 0.9),
            shared=shared,
            random_state=seed,
        )
        yield Crowd.of(made.responses, made.gold)


def _with_growth(config: dict[str, Any], crowds: list[Crowd], growth: float) -> dict[str, Any]:
    """Return what each order lost, on the way and caught up, over all crowds."""
    usual = online.LEAST_GROWTH
    online.LEAST_GROWTH = growth
    try:
        batch = config["simulated"]["batch"]
        return {
            order: [pass_once(crowd, order, seed, batch) for seed, crowd in enumerate(crowds)]
            for order in config["orders"]
        }
    finally:
        online.LEAST_GROWTH = usual


def beyond(config: dict[str, Any]) -> dict[str, Any]:
    """Stream more responses than a restart takes."""
    part = config["beyond"]
    made = tb.simulate.crowd(
        part["n_tasks"],
        part["n_workers"],
        part["n_classes"],
        responses_per_task=5,
        accuracy=(0.3, 0.8),
        random_state=0,
    )
    crowd = Crowd.of(made.responses, made.gold)
    found = {order: pass_once(crowd, order, 0, part["batch"]) for order in config["orders"]}
    return {"fit": crowd.f_of_fit, "responses": len(crowd.rows), **found}


def fit_of_most(config: dict[str, Any], datasets: list[str]) -> dict[str, Any]:
    """Leave a few responses out of a fit: what any stream faces whose last restart came before."""
    part = config["fit_of_most"]
    found: dict[str, Any] = {}
    for name in datasets:
        responses, gold, _ = tb.datasets.load(name)
        crowd = Crowd.of(responses, gold)
        n_kept = round(part["share"] * len(crowd.rows))
        lost = []
        for seed in range(part["draws"]):
            some = columns_of(in_order(crowd.rows, "random", seed)[:n_kept])
            model = tb.VariationalBayes().fit(
                tb.Responses.from_columns(*some, classes=crowd.classes)
            )
            lost.append(tb.evaluate.f_score(model.labels_, crowd.gold) - crowd.f_of_fit)
        found[name] = lost
        print(name, lost, flush=True)
    return found


def counts(datasets: list[str]) -> dict[str, Any]:
    """Fit half of a dataset, keep counts, update with the rest: macro-F against a fit of all."""
    found: dict[str, Any] = {}
    for name in datasets:
        responses, gold, _ = tb.datasets.load(name)
        crowd = Crowd.of(responses, gold)
        found[name] = {
            "tasks done": _after_dropping(crowd, _by_task(crowd.rows)) - crowd.f_of_fit,
            "tasks open": _after_dropping(crowd, _halves(crowd.rows)) - crowd.f_of_fit,
        }
    return found


def _by_task(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    names = sorted({row[0] for row in rows})
    random.Random(0).shuffle(names)
    first = set(names[: len(names) // 2])
    return [row for row in rows if row[0] in first], [row for row in rows if row[0] not in first]


def _halves(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Give every task half of its responses in either part."""
    mixed = sorted(rows)
    random.Random(0).shuffle(mixed)
    mixed.sort(key=lambda row: row[0])
    return mixed[::2], mixed[1::2]


def _after_dropping(crowd: Crowd, parts: tuple[list[Row], list[Row]]) -> float:
    import tempfile

    first = tb.Responses.from_columns(*columns_of(parts[0]), classes=crowd.classes)
    with tempfile.TemporaryDirectory() as folder:
        tb.VariationalBayes().fit(first).save(f"{folder}/half.tbm", keep="counts")
        model = tb.load(f"{folder}/half.tbm")
    model.update(tb.Responses.from_columns(*columns_of(parts[1]), classes=crowd.classes))
    return tb.evaluate.f_score(model.labels_, crowd.gold)
