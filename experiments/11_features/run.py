"""What features gain on two crowds and on simulated digits: `python run.py [PART …]`.

Parts are few, noise, classifiers, given, digits and times. TIEBREAK_DATA and TIEBREAK_SETS name the
folders of data. A line per cell: accuracy and log-loss on known tasks that have responses, means of
draws; "new": accuracy on tasks that nobody answered.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tiebreak as tb
from tiebreak.inference.tasks import classifier as learning
from tiebreak.tables import Features, read_features

ALL = 99  # responses a task
TABLES = {"music_genre": "features.csv", "sentence_polarity": "texts.csv"}


class Real(NamedTuple):
    """A crowd with features, and labels of tasks that nobody answered."""

    responses: tb.Responses
    gold: dict[Any, Any]
    unanswered: dict[Any, Any]
    features: Features

    @classmethod
    def read(cls, name: str) -> Real:
        crowd = Path(os.environ["TIEBREAK_DATA"], name)
        beside = Path(os.environ["TIEBREAK_SETS"], "data-features", name)
        return cls(
            tb.read_responses(crowd / "responses.csv"),
            tb.read_gold(crowd / "gold.csv").to_dict(),
            tb.read_gold(beside / "gold_unanswered.csv").to_dict(),
            read_features(beside / TABLES[name]),
        )


def draw(crowd: tb.Responses, n: int, seed: int) -> tb.Responses:
    """Return n responses of each task, drawn at random."""
    task = crowd.task_of_each()
    order = np.random.default_rng(seed).permutation(len(task))
    order = order[np.argsort(task[order], kind="stable")]
    rank = np.empty(len(task), dtype=int)
    rank[order] = np.arange(len(task)) - np.repeat(crowd.start[:-1], np.diff(crowd.start))
    kept = np.flatnonzero(rank < n)
    columns: Any = (task[kept], crowd.worker_of_each()[kept], crowd.label_of_each()[kept])
    names: Any = (crowd.tasks, crowd.workers, crowd.classes)
    return tb.Responses.from_codes(*columns, *names)


def scores(labels: tb.Labels, truth: dict[Any, Any]) -> tuple[float, float]:
    """Return accuracy, and log-loss with no probability below 1e-4."""
    best, classes = labels.best(), list(labels.classes)
    place = {task: i for i, task in enumerate(labels.tasks)}
    asked = [task for task in truth if task in place]
    if not asked or labels.probabilities is None:
        return np.nan, np.nan
    right = [best[task] == truth[task] for task in asked]
    chance = [labels.probabilities[place[task], classes.index(truth[task])] for task in asked]
    return float(np.mean(right)), float(-np.log(np.maximum(chance, 1e-4)).mean())


def say(what: str, fits: Iterable[tuple[float, ...]]) -> None:
    means = np.nanmean([*fits], axis=0)
    print(f"{what:60}", *(f"{each:8.3f}" for each in means), flush=True)


def vb(seed: int = 0, classifier: Any = None) -> tb.VariationalBayes:
    return tb.VariationalBayes(task_model=tb.ClassifierPrior(classifier, random_state=seed))


def few() -> None:
    """One, two, three and all responses a task."""
    for name in TABLES:
        real = Real.read(name)
        for n, seeds in ((1, range(3)), (2, range(3)), (3, range(3)), (ALL, range(5))):
            n_draws = seeds if name == "music_genre" else seeds[:2]
            plain = {"votes": tb.MajorityVote, "vb": tb.VariationalBayes, "auto": tb.Auto}
            crowds = [draw(real.responses, n, seed) for seed in n_draws]
            for what, kind in plain.items():
                once = crowds if n < ALL else crowds[:1]
                say(f"{name} {n} {what}", (scores(kind().fit(c).labels_, real.gold) for c in once))
            kinds: dict[str, Callable[[int], Any]] = {"vb": vb, "auto": lambda _: tb.Auto()}
            for what, make in kinds.items():
                fits = [
                    make(seed).fit(crowd, features=real.features)
                    for seed, crowd in zip(n_draws, crowds, strict=True)
                ]
                rows = (
                    (
                        *scores(model.labels_, real.gold),
                        scores(model.labels_, real.unanswered)[0],
                        model.classifier_weight_,
                    )
                    for model in fits
                )
                say(f"{name} {n} {what} with features (and new, weight)", rows)


def noise() -> None:
    """Twenty columns of noise: weight, standard errors, labels that differ from a plain fit."""
    for name in TABLES:
        real = Real.read(name)
        for n in (2, ALL):
            for seed in range(5):
                crowd = draw(real.responses, n, seed)
                values = np.random.default_rng(100 + seed).normal(size=(crowd.n_tasks, 20))
                model = vb(seed).fit(crowd, features=(crowd.tasks, values))
                plain = tb.VariationalBayes().fit(crowd)
                differ = int((model.labels_.label != plain.labels_.label).sum())
                gain = model.classifier_gain_
                assert gain is not None
                row = (float(model.classifier_weight_ or 0.0), gain.standard_errors, differ)
                say(f"{name} {n} noise, seed {seed}", [row])


def classifiers() -> None:
    """Naive Bayes and a random forest: music_genre, two responses a task; with the weight."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    real = Real.read("music_genre")
    for made in (make_pipeline(StandardScaler(), GaussianNB()), RandomForestClassifier(300)):
        fits = (
            vb(seed, made).fit(draw(real.responses, 2, seed), features=real.features)
            for seed in range(3)
        )
        say(f"{made}"[:50], ((*scores(m.labels_, real.gold), m.classifier_weight_) for m in fits))


def given() -> None:
    """Links, 200 right ones, and 50 known tasks, scored on all and on the others; music_genre."""
    real = Real.read("music_genre")
    tasks = sorted(real.gold)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        pairs = [tuple(rng.choice(tasks, 2, replace=False)) for _ in range(200)]
        same = [real.gold[a] == real.gold[b] for a, b in pairs]
        links = tb.Links.from_pairs(
            must=[p for p, is_same in zip(pairs, same, strict=True) if is_same],
            cannot=[p for p, is_same in zip(pairs, same, strict=True) if not is_same],
        )
        gold = {task: real.gold[task] for task in rng.choice(tasks, 50, replace=False)}
        others = {task: label for task, label in real.gold.items() if task not in gold}
        for more in ({}, {"features": real.features}):
            what = "with features" if more else ""
            linked = tb.VariationalBayes().fit(real.responses, links=links, **more)
            assert linked.violations_ is not None
            rise = float(np.diff(linked.bounds_).min())
            row = (*scores(linked.labels_, real.gold), len(linked.violations_), rise)
            say(f"links {seed} {what} (broken, least rise of the bound)", [row])
            known = tb.VariationalBayes().fit(real.responses, gold=gold, **more)
            say(f"gold {seed} {what}", [scores(known.labels_, others)])


def digits() -> None:
    """1,797 digits, 40 simulated workers of accuracy .6 to .9, about 30 % of them spammers."""
    from sklearn.datasets import load_digits

    images = load_digits()
    names = [f"t{i}" for i in range(len(images.target))]
    truth = dict(zip(names, map(str, images.target), strict=True))
    for n in (1, 3, 5):
        for seed in range(2):
            rng = np.random.default_rng(seed)
            accuracy = rng.uniform(0.6, 0.9, 40)
            accuracy[rng.random(40) < 0.3] = 0.1
            rows = [
                (task, f"w{worker}", label if rng.random() < accuracy[worker] else str(other))
                for task, label in truth.items()
                for worker in rng.choice(40, n, replace=False)
                for other in [rng.integers(10)]
            ]
            for what, model in (
                ("votes", tb.MajorityVote().fit(rows)),
                ("vb", tb.VariationalBayes().fit(rows)),
                (
                    "vb with features",
                    tb.VariationalBayes().fit(rows, features=(names, images.data)),
                ),
                ("auto with features", tb.Auto().fit(rows, features=(names, images.data))),
            ):
                say(f"digits {n} {what}", [scores(model.labels_, truth)])


def times() -> None:
    """Seconds of plain VB, of a fit with features, and of the classifier in it."""
    spent = [0.0]

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            began = time.perf_counter()
            found = function(*arguments)
            spent[0] += time.perf_counter() - began
            return found

        return call

    vars(learning)["_train"] = timed(learning._train)
    vars(learning)["_probabilities"] = timed(learning._probabilities)
    for name in TABLES:
        real = Real.read(name)
        for _ in range(3):
            seconds = []
            for more in ({}, {"features": real.features}):
                spent[0] = 0.0
                began = time.perf_counter()
                tb.VariationalBayes().fit(real.responses, **more)
                seconds.append(time.perf_counter() - began)
            rest = (seconds[1] - spent[0]) / seconds[0]
            say(
                f"{name} plain, with features, classifier, rest / plain",
                [(*seconds, spent[0], rest)],
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = {each.__name__: each for each in (few, noise, classifiers, given, digits, times)}
    for part in sys.argv[1:] or parts:
        parts[part]()
