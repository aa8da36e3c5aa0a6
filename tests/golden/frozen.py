"""The fits whose results are frozen, and how two results are compared.

Every fit goes through public names, because everything beneath them may be rewritten. Crowds are
drawn here and not by `tb.simulate`, so that they depend on NumPy's generator alone. Most simulated
crowds are fitted with a tiny `tol`: what is compared is the fixed point, not the way to it. Real
data are fitted with the defaults, as users do. `tools/golden.py` writes what `RESULTS` holds.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import tiebreak as tb

RESULTS = Path(__file__).with_name("frozen.npz")
N_TASKS = 200  # whose probabilities are kept
N_WORKERS = 20  # whose confusions are kept
TOLERANCE = 1e-9
PRECISE: dict[str, Any] = {"tol": 1e-11, "max_iter": 5000, "calibrate": "none"}
DATASETS = (
    *("bluebird", "dog", "music_genre", "product", "rte", "sentence_polarity", "trec", "web"),
    *("zencrowd_india", "zencrowd_us"),
)
Rows = list[tuple[Any, ...]]
Result = dict[str, npt.NDArray[Any]]


class Crowd(NamedTuple):
    """Rows of task, worker, label; the true class of each task."""

    rows: Rows
    truth: dict[str, str]

    def gold(self, n: int) -> dict[str, str]:
        """Return the classes of n tasks, evenly spaced."""
        tasks = list(self.truth)[:: len(self.truth) // n][:n]
        return {task: self.truth[task] for task in tasks}

    def pairs(self, n: int, seed: int, wrong: float = 0.0) -> dict[str, list[tuple[str, str]]]:
        """Return n pairs of tasks, must and cannot; a share of them says the opposite."""
        rng = np.random.default_rng(seed)
        tasks = list(self.truth)
        found: dict[str, list[tuple[str, str]]] = {"must": [], "cannot": []}
        for _ in range(n):
            a, b = rng.choice(len(tasks), 2, replace=False).tolist()
            is_must = (self.truth[tasks[a]] == self.truth[tasks[b]]) != (rng.random() < wrong)
            found["must" if is_must else "cannot"].append((tasks[a], tasks[b]))
        return found

    def links(self, n: int, seed: int = 5, wrong: float = 0.0) -> tb.Links:
        return tb.Links.from_pairs(**self.pairs(n, seed, wrong), sampling="pairs")

    def soft_links(self, n: int) -> tb.Links:
        pairs = self.pairs(n, 6, wrong=0.1)
        rows = [(*pair, kind) for kind, given in pairs.items() for pair in given]
        weight = 0.5 + 2.0 * np.random.default_rng(7).random(len(rows))
        left, right, link = zip(*rows, strict=True)
        return tb.Links.from_columns(left, right, link, weight.tolist(), sampling="pairs")

    def duplicates(self, n: int) -> tb.Links:
        """Return must-links of which a source has no cannot-links: copies of one task."""
        return tb.Links.from_pairs(must=self.pairs(2 * n, 8)["must"][:n], sampling="duplicates")


@cache
def crowd(n_classes: int, n_tasks: int, n_each: int = 5, runs: int = 1, seed: int = 0) -> Crowd:
    """Draw a crowd: half of the workers are good, some are poor, one answers at random."""
    rng = np.random.default_rng([n_classes, n_tasks, n_each, runs, seed])
    n_workers = 24
    truth = np.minimum((rng.random(n_tasks) ** 1.3 * n_classes).astype(int), n_classes - 1)
    right = 0.5 + 0.45 * rng.random(n_workers)
    right[0] = 1.0 / n_classes
    hard = rng.random(n_tasks) < 0.15  # here workers err together
    rows: Rows = []
    for i in range(n_tasks):
        for w in sorted(rng.choice(n_workers, n_each, replace=False).tolist()):
            for _ in range(runs):
                is_right = rng.random() < right[w] * (0.55 if hard[i] else 1.0)
                other = 1 if hard[i] else int(rng.integers(1, n_classes))
                label = truth[i] if is_right else (truth[i] + other) % n_classes
                rows.append((f"t{i:04d}", f"w{w:02d}", f"c{label}"))
    return Crowd(rows, {f"t{i:04d}": f"c{k}" for i, k in enumerate(truth)})


def two() -> Crowd:
    return crowd(2, 900)


def three() -> Crowd:
    return crowd(3, 600)


def eight() -> Crowd:
    return crowd(8, 400, 7)


# What is kept of a fit ------------------------------------------------------------------------


def kept(model: Any, **more: Any) -> Result:
    """Return what is compared of a fitted model."""
    result = kept_labels(model.labels_, **more)
    if hasattr(model, "class_prior_"):
        workers = np.argsort(list(map(str, model.workers_)), kind="stable")
        drawn = np.random.default_rng(2).permutation(len(workers))[:N_WORKERS]
        result["workers"] = _free(model.confusion_[workers[np.sort(drawn)]])
        result["class_prior"] = model.class_prior_
    if len(getattr(model, "bounds_", ())):
        result["bound"] = np.asarray(model.bounds_[-1])
    if (calibration := getattr(model, "calibration_", None)) is not None:
        result["calibration"] = np.array([calibration.dependence, calibration.multiplier])
    if (violations := getattr(model, "violations_", None)) is not None:
        result["n_violations"] = np.asarray(len(violations))
    return result


def kept_labels(labels: tb.Labels, **more: Any) -> Result:
    """Return a digest of all labels, and the probabilities of some tasks."""
    rows = sorted((str(row.task), str(row.label)) for row in labels)
    text = "\n".join("\t".join(row) for row in rows)
    result = {"labels": np.array(hashlib.sha256(text.encode()).hexdigest())}
    tasks = np.argsort(list(map(str, labels.tasks)), kind="stable")
    drawn = np.sort(np.random.default_rng(1).permutation(len(tasks))[:N_TASKS])
    assert labels.probabilities is not None
    result["q"] = _free(labels.probabilities[tasks[drawn]])
    return result | {name: np.asarray(value, dtype=np.float64) for name, value in more.items()}


def _free(probabilities: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Leave out the last column, which the others determine."""
    assert np.allclose(probabilities.sum(axis=-1), 1.0, rtol=0.0, atol=TOLERANCE)
    return probabilities[..., :-1]


# The fits ---------------------------------------------------------------------------------------

FITS: dict[str, Callable[[], Result]] = {}


def frozen(fit: Callable[[], Result]) -> Callable[[], Result]:
    """Add a fit under its name: `vb_gold` becomes vb-gold."""
    FITS[fit.__name__.replace("_", "-")] = fit
    return fit


def add(name: str, fit: Callable[[], Any]) -> None:
    """Add a fit that gives a model."""
    FITS[name] = lambda: kept(fit())


def vb(**options: Any) -> tb.VariationalBayes:
    return tb.VariationalBayes(**PRECISE | options)


def ds(**options: Any) -> tb.DawidSkene:
    return tb.DawidSkene(**{"tol": 1e-11, "max_iter": 5000} | options)


def _votes_and_dawid_skene() -> None:
    add("mv", lambda: tb.MajorityVote().fit(three().rows))
    add("ds", lambda: ds().fit(three().rows))
    add("ds-plain-sweeps", lambda: ds(accelerate=False).fit(three().rows))
    add("ds-sweeps", lambda: ds(tol=0.0, max_iter=12).fit(three().rows))
    add("ds-smoothing", lambda: ds(smoothing=1.0).fit(eight().rows))
    add("ds-coin", lambda: ds(worker_model="coin").fit(three().rows))
    add("ds-gold", lambda: ds().fit(three().rows, gold=three().gold(60)))
    add("ds-gold-once", lambda: ds(gold_weight=1).fit(three().rows, gold=three().gold(60)))


def _plain() -> None:
    add("vb-2", lambda: vb().fit(two().rows))
    add("vb-3", lambda: vb().fit(three().rows))
    add("vb-8", lambda: vb().fit(eight().rows))
    add("vb-sweeps", lambda: vb(tol=0.0, max_iter=12).fit(three().rows))
    add("vb-uniform", lambda: vb(confusion_prior="uniform").fit(three().rows))
    add("vb-right-wrong", lambda: vb(confusion_prior=(4.0, 1.5)).fit(three().rows))
    add("vb-class-prior", lambda: vb(class_prior=[5.0, 1.0, 2.0]).fit(three().rows))
    add("vb-trust", lambda: vb(trust={"w00": 9.0, "w03": 50.0}).fit(three().rows))
    add("vb-prior-per-worker", lambda: vb(confusion_prior=_per_worker()).fit(three().rows))
    add("vb-calibrated", lambda: tb.VariationalBayes().fit(two().rows))
    add("vb-dependence", lambda: tb.VariationalBayes(dependence=0.8).fit(three().rows))
    add("vb-weights", lambda: vb().fit(_weighted()))
    add("vb-runs", lambda: vb().fit(_runs()))
    add("vb-runs-calibrated", lambda: tb.VariationalBayes().fit(_runs()))
    add("vb-numba", lambda: vb(backend="numba").fit(three().rows))
    add("vb-numba-8", lambda: vb(backend="numba").fit(eight().rows))


def _per_worker() -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(3)
    workers = sorted({worker for _, worker, _ in three().rows})
    return {worker: np.eye(3) * 3 + 0.5 + rng.random((3, 3)) for worker in workers}


def _weighted() -> tb.Responses:
    task, worker, label = zip(*three().rows, strict=True)
    weight = 0.25 + np.random.default_rng(4).random(len(task))
    return tb.Responses.from_columns(task, worker, label, weight=weight.tolist())


def _runs() -> tb.Responses:
    columns = zip(*crowd(3, 250, 4, runs=3).rows, strict=True)
    return tb.Responses.from_columns(*columns, repeats="runs")


def _worker_models() -> None:
    for name in ("coin", "kinds", "communities", "subtypes", "kinds+subtypes"):
        model = vb(worker_model=name)
        add(name, partial(model.fit, three().rows))
        if name != "communities":
            add(f"{name}-gold", partial(model.fit, three().rows, gold=three().gold(60)))
            add(f"{name}-links", partial(model.fit, three().rows, links=three().links(150)))


def _gold_and_links() -> None:
    r, gold, links = three().rows, three().gold(60), three().links(150)
    error = tb.ExactLinkOptions
    add("vb-gold", lambda: vb().fit(r, gold=gold))
    add("vb-gold-once", lambda: vb(gold_weight=1).fit(r, gold=gold))
    add("vb-gold-calibrated", lambda: tb.VariationalBayes().fit(r, gold=three().gold(200)))
    add("vb-links", lambda: vb().fit(r, links=links))
    add("vb-links-2", lambda: vb().fit(two().rows, links=two().links(300)))
    add("vb-links-calibrated", lambda: tb.VariationalBayes().fit(r, links=three().links(400)))
    add("vb-links-numba", lambda: vb(backend="numba").fit(r, links=links))
    add("vb-both", lambda: vb().fit(r, gold=gold, links=links))
    add("vb-dense-links", lambda: vb().fit(eight().rows, links=eight().links(250)))
    add("vb-marginal", lambda: vb(link_options=error(decode="marginal")).fit(r, links=links))
    add("vb-soft-links", lambda: vb().fit(r, links=three().soft_links(150)))
    add("vb-soft-links-gold", lambda: vb().fit(r, gold=gold, links=three().soft_links(150)))
    wrong = three().links(200, wrong=0.1)
    add("vb-link-error", lambda: vb(link_options=error(error=0.05)).fit(r, links=wrong))
    add("vb-link-error-learnt", lambda: vb(link_options=error(error="learn")).fit(r, links=wrong))
    add("vb-duplicates", lambda: vb().fit(r, links=three().duplicates(120)))
    add("vb-duplicates-gold", lambda: vb().fit(r, gold=gold, links=three().duplicates(120)))
    drop = {"on_contradiction": "drop"}
    against = tb.Links.from_pairs(must=[("t0001", "t0002")], cannot=[("t0001", "t0002")])
    add("vb-drop", lambda: vb(**drop).fit(r, links=against))


def _mean_field() -> None:
    r, links = two().rows, two().links(400)
    for name, options in {
        "in-turn": tb.MeanFieldOptions(strength=0.3),
        "parallel": tb.MeanFieldOptions(strength=0.3, schedule="parallel"),
        "damped": tb.MeanFieldOptions(strength=0.3, schedule="damped"),
        "given": tb.MeanFieldOptions(strength=0.3, closure=False),
    }.items():
        add(f"ilc-{name}", partial(vb(link_options=options).fit, r, links=links))
    for name, schedule in {"paper": "parallel", "grid": "in-turn"}.items():
        grid = tb.MeanFieldOptions(strength="grid", schedule=schedule)
        FITS[f"ilc-{name}"] = partial(_grid, vb(link_options=grid))


def _grid(model: tb.VariationalBayes) -> Result:
    """Fit VB-ILC with gold and links; keep what every strength of the grid gave."""
    crowd = three()
    model.set_params(tol=1e-6, max_iter=500)  # as in the paper's experiments
    model.fit(crowd.rows, gold=crowd.gold(60), links=crowd.links(200))
    assert model.link_grid_ is not None
    grid = [(point.strength, point.violated) for point in model.link_grid_]
    return kept(model, strength=model.link_strength_, grid=grid)


def _starts() -> None:
    add("vb-spectral", lambda: vb().fit(two().rows, start=_spectral()))
    add("vb-init", lambda: vb(init=_init(), tol=0.0, max_iter=5).fit(three().rows))
    start = {"tol": 0.0, "max_iter": 4}
    add("vb-warm", lambda: vb(**start).fit(three().rows, start=vb(**start).fit(three().rows)))
    add("vb-warm-more", lambda: vb(**start).fit(three().rows, start=_first_part(**start)))


def _spectral() -> tb.VariationalBayes:
    return tb.research.spectral_start(two().rows, random_state=0)


def _init() -> npt.NDArray[Any]:
    q: npt.NDArray[Any] = np.random.default_rng(9).random((600, 3)) + 3 * np.eye(3)[[1] * 600]
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def _first_part(**options: Any) -> tb.VariationalBayes:
    return vb(**options).fit(three().rows[:2000])


@frozen
def workers_table() -> Result:
    model = vb().fit(three().rows)
    table = model.workers_table()
    columns = ("accuracy", "accuracy_low", "accuracy_high", "information", "agreement")
    return kept(model, **{name: getattr(table, name) for name in columns})


@frozen
def predict() -> Result:
    model = _first_part()
    new = three().rows[2000:]
    return kept_labels(model.predict(new))


@frozen
def predict_links() -> Result:
    links = tb.Links.from_pairs(must=[("t0500", "t0001"), ("t0510", "t0520")], sampling="pairs")
    return kept_labels(_first_part().predict(three().rows[2000:], links=links))


@frozen
def predict_saved() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        vb(worker_model="coin").fit(three().rows[:2000]).save(f"{folder}/m", keep="counts")
        return kept_labels(tb.load(f"{folder}/m").predict(three().rows[2000:]))


@frozen
def update() -> Result:
    return kept(_first_part().update(three().rows[2000:]))


@frozen
def update_links_gold() -> Result:
    links, gold = three().links(100), three().gold(40)
    return kept(_first_part().update(three().rows[2000:], links=links, gold=gold))


@frozen
def update_forget() -> Result:
    model = _first_part().update(three().rows[2000:2500], forget=0.9)
    return kept(model.update(three().rows[2500:], forget=0.9))


@frozen
def update_saved() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        _first_part().save(f"{folder}/model")
        return kept(tb.load(f"{folder}/model").update(three().rows[2000:]))


@frozen
def decide() -> Result:
    decisions = vb().fit(three().rows).decide([[0, 1, 1], [5, 0, 1], [2, 2, 0]])
    return {"costs": np.asarray(decisions.expected_cost)}


def _shards(estimator: Any, **known: Any) -> Result:
    """Fit three files of responses, out of core."""
    with tempfile.TemporaryDirectory() as folder:
        rows = three().rows
        cuts = (0, 1000, 2000, len(rows))
        for i in range(3):
            part = tb.Responses.from_rows(rows[cuts[i] : cuts[i + 1]])
            part.write(f"{folder}/part{i}.csv")
        out = f"{folder}/labels"
        made = tb.shards.fit(
            f"{folder}/*.csv", out, estimator=estimator, probabilities=True, **known
        )
        return kept_labels(tb.read_labels(out), bound=made.bounds_[-1])


def _shard_fits() -> None:
    known: dict[str, dict[str, Any]] = {
        "plain": {},
        "gold": {"gold": three().gold(60)},
        "links": {"links": three().links(150)},
        "both": {"gold": three().gold(60), "links": three().links(150)},
    }
    for name, given in known.items():
        FITS[f"shards-{name}"] = partial(_shards, vb(), **given)
    FITS["shards-ds"] = partial(_shards, ds())
    FITS["shards-subtypes"] = partial(_shards, vb(worker_model="subtypes"))


def _auto() -> None:
    r, gold, links = three().rows, three().gold(60), three().links(150)
    auto = tb.Auto
    add("auto", lambda: auto().fit(r))
    add("auto-2", lambda: auto().fit(two().rows))
    add("auto-gold", lambda: auto().fit(r, gold=gold))
    add("auto-links", lambda: auto().fit(r, links=links))
    add("auto-both", lambda: auto().fit(r, gold=gold, links=links))
    add("auto-duplicates", lambda: auto().fit(r, links=three().duplicates(120)))
    add("auto-runs", lambda: auto().fit(_runs()))
    add("auto-update", lambda: auto().fit(r[:2000]).update(r[2000:]))


def _data(name: str, method: str) -> Result:
    """Fit a real dataset with the defaults; known are every fifth of its gold labels."""
    folder = Path(os.environ["TIEBREAK_DATA"]) / name
    responses = tb.read_responses(folder / "responses.csv")
    gold = tb.read_gold(folder / "gold.csv").to_dict()
    tasks = sorted(gold, key=str)
    known = {task: gold[task] for task in tasks[::5]}
    by_class: dict[Any, list[Any]] = {}
    for task in tasks[1:120]:
        by_class.setdefault(gold[task], []).append(task)
    must = [pair for same in by_class.values() for pair in zip(same, same[3:], strict=False)]
    firsts = list(by_class.values())
    cannot = [pair for a, b in pairwise(firsts) for pair in zip(a, b[2:], strict=False)]
    links = tb.Links.from_pairs(must, cannot, sampling="pairs")
    fits: dict[str, Callable[[], Any]] = {
        "ds": lambda: tb.DawidSkene().fit(responses),
        "vb": lambda: tb.VariationalBayes().fit(responses),
        "gold": lambda: tb.VariationalBayes().fit(responses, gold=known),
        "links": lambda: tb.VariationalBayes().fit(responses, links=links),
        "auto": lambda: tb.Auto().fit(responses),
        "auto-gold": lambda: tb.Auto().fit(responses, gold=known),
    }
    return kept(fits[method]())


DATA_FITS = {
    f"{name}-{method}": (name, method)
    for name in DATASETS
    for method in ("ds", "vb", "gold", "links", "auto", "auto-gold")
}
LONG = {f"{name}-auto-gold" for name in ("product", "sentence_polarity", "trec", "web")}  # 5 s each

for _add in (
    *(_votes_and_dawid_skene, _plain, _worker_models, _gold_and_links, _mean_field, _starts),
    *(_shard_fits, _auto),
):
    _add()
for _name, _given in DATA_FITS.items():
    FITS[_name] = partial(_data, *_given)


# Gibbs sampling: means of draws -----------------------------------------------------------------

GIBBS_SEEDS = 6


def gibbs(seed: int) -> npt.NDArray[Any]:
    """Return the probabilities that one run of the sampler gives, with links and gold."""
    few = crowd(3, 90)
    sampler = tb.GibbsSampler(n_chains=2, n_draws=300, n_warmup=100, random_state=seed)
    with quiet():
        fitted = sampler.fit(few.rows, gold=few.gold(15), links=few.links(30))
    return np.asarray(fitted.probabilities_)


def frozen_gibbs() -> Result:
    """Return the mean over several runs, and the variance of one run, for each probability."""
    runs = np.stack([gibbs(seed) for seed in range(GIBBS_SEEDS)])
    return {"mean": runs.mean(axis=0), "variance": runs.var(axis=0, ddof=1)}


def gibbs_misfit(found: npt.NDArray[Any], frozen: Result) -> float:
    """Return the mean square of the difference, in units of what two runs differ by: 1 expected.

    The variance of a run is that of draws, q (1 - q) / n, with one effective n for all tasks,
    since six runs say little about one task.
    """
    q = np.clip(frozen["mean"], 1e-4, 1.0 - 1e-4)
    per_draw = q * (1.0 - q)
    open_ones = frozen["variance"] > 0.0
    scale = frozen["variance"][open_ones].sum() / per_draw[open_ones].sum()
    expected = scale * per_draw * (1.0 + 1.0 / GIBBS_SEEDS)
    gap = (found - frozen["mean"]) ** 2
    return float(gap[open_ones].sum() / expected[open_ones].sum())


# Reading and comparing --------------------------------------------------------------------------


@contextmanager
def quiet() -> Iterator[None]:
    """Notes are the subject of other tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.InputNote)
        warnings.simplefilter("ignore", tb.errors.ConvergenceWarning)
        yield


def run(name: str) -> Result:
    """Make one fit."""
    with quiet():
        return FITS[name]()


def read() -> dict[str, Result]:
    """Return the frozen results by name."""
    found: dict[str, Result] = {}
    with np.load(RESULTS) as file:
        for key in file.files:
            name, _, part = key.partition("/")
            found.setdefault(name, {})[part] = file[key]
    return found


def differences(found: Result, frozen: Result) -> list[str]:
    """Say what differs by more than the tolerance."""
    told = [f"{part}: {'gone' if part in frozen else 'new'}" for part in found.keys() ^ frozen]
    for part in sorted(found.keys() & frozen):
        new, old = found[part], frozen[part]
        if new.shape != old.shape:
            told.append(f"{part}: shape {new.shape}, was {old.shape}")
        elif part == "labels":
            told += [] if str(new) == str(old) else ["labels: not the same"]
        else:
            gap = np.abs(new - old) / np.maximum(1.0, np.abs(old))
            if not np.all(gap <= TOLERANCE):  # so that nan differs too
                told.append(f"{part}: differs by {np.max(gap):.3g}")
    return told
