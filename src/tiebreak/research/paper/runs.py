"""Runs: the paper's three experiments, as cases that can stop and go on at any time.

All three share their draws. At each number N_C of labels or links,

(a) VB-LC has N_C random labels, VB-ILC N_C random links; MV, DS and VB have nothing;
(b) VB-ILC has N_C links chosen by BVSB, beside those at random;
(c) VB-ILC has the links that follow from the labels that VB-LC has.

Each run draws once, for the largest number of labels and links; smaller numbers are the first of
that draw. A case depends on its dataset, run and number alone, so that a series that was stopped
ends with the same numbers. Every finished case is one line of `runs.jsonl`: see `runner`.
"""

from __future__ import annotations

import functools
import json
import time
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

import tiebreak as tb
from tiebreak.errors import FileError, OptionError
from tiebreak.research import messages  # noqa: F401
from tiebreak.research.paper.runner import RUNS, Progress, Row, made_on, run_cases
from tiebreak.selection.draws import bvsb_pairs, random_pairs

SEED = 2021  # of all draws, with the dataset's name and the number of the run
BACKEND = "numba"  # compiled, also where one small fit would not repay it: there are many
UNIFORM_PRIOR = ("web",)  # as in the paper; all others have the diagonal prior
SLOW_COMPARISON = ("rte", "dog")  # updates in turn beside the paper's

Floats = npt.NDArray[np.float64]
Given = Literal["nothing", "labels", "random", "bvsb", "derived"]
Score = dict[str, float | int]


class Method(NamedTuple):
    """A line of the figures: its name there, what it is given, how it is fitted."""

    title: str
    given: Given
    options: dict[str, Any] | None = None
    only: tuple[str, ...] | None = None  # the datasets it is run on; None: all


PLAIN: dict[str, Any] = {"calibrate": "none"}  # F asks for labels only
PAPER, IN_TURN = (
    {"link_options": tb.MeanFieldOptions(schedule=schedule, strength="grid")}
    for schedule in ("parallel", "in-turn")
)
METHODS: dict[str, Method] = {
    "mv": Method("MV", "nothing"),
    "ds": Method("DS", "nothing"),
    "vb": Method("VB", "nothing"),
    "vb_lc": Method("VB-LC", "labels", PLAIN),
    "vb_ilc": Method("VB-ILC", "random", PAPER),
    "vb_ilc_in_turn": Method("VB-ILC, in turn", "random", IN_TURN, SLOW_COMPARISON),
    "exact": Method("exact links", "random", PLAIN),
    "vb_ilc_bvsb": Method("VB-ILC, BVSB", "bvsb", PAPER),
    "exact_bvsb": Method("exact links, BVSB", "bvsb", PLAIN),
    "vb_ilc_derived": Method("VB-ILC, label-derived", "derived", PAPER),
    "exact_derived": Method("exact links, label-derived", "derived", PLAIN),
}


def methods_on(dataset: str) -> dict[str, Method]:
    return {
        name: method
        for name, method in METHODS.items()
        if method.only is None or dataset in method.only
    }


# Datasets and draws -----------------------------------------------------------------------------


class FittedDataset(NamedTuple):
    """A dataset and what needs no draw: where gold stands, and what the plain methods find."""

    name: str
    responses: tb.Responses
    gold: tb.Gold
    task: npt.NDArray[Any]  # (n_gold,) code of each known task
    truth: npt.NDArray[Any]  # and its class
    plain: dict[str, tb.Labels]  # by mv, ds and vb
    q: Floats  # class probabilities by VB, (n_tasks, n_classes)


class Draw(NamedTuple):
    """What one run gives, most of it first: places in gold, and pairs of such places."""

    labels: npt.NDArray[Any]
    random: npt.NDArray[Any]  # (2, n)
    bvsb: npt.NDArray[Any]


def numbers_given(n_gold: int, n_steps: int) -> tuple[int, ...]:
    """Return the paper's N_C: from 0 to half of the gold tasks in equal steps.

    >>> numbers_given(800, 8)
    (0, 50, 100, 150, 200, 250, 300, 350, 400)
    """
    numbers = np.linspace(0.0, n_gold // 2, n_steps + 1).round().astype(int)
    return tuple(dict.fromkeys(numbers.tolist()))


def fingerprint(dataset: Any) -> str:
    """Return a short sum of responses and gold, to tell whether finished runs used the same."""
    crowd = dataset.responses
    columns = crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each()
    found = 0
    for codes in (*columns, dataset.gold.label):
        found = zlib.crc32(np.ascontiguousarray(codes).tobytes(), found)
    return f"{found:08x}"


def prior_of(name: str) -> str:
    return "uniform" if name in UNIFORM_PRIOR else "diagonal"


@functools.lru_cache(maxsize=1)  # runs come dataset by dataset
def crowd(name: str, expected: str) -> FittedDataset:
    """Load a dataset, whose fingerprint is known, and fit the methods that no draw changes."""
    with warnings.catch_warnings(action="ignore"):
        dataset = tb.datasets.load(name)
        if fingerprint(dataset) != expected:
            raise FileError("dataset-changed", name=name)
        gold = dataset.gold
        responses = dataset.responses.with_classes(gold.classes)
        vb = tb.VariationalBayes(confusion_prior=prior_of(name), backend=BACKEND, n_threads=1)
        plain = {
            "mv": tb.MajorityVote().fit(responses).labels_,
            "ds": tb.DawidSkene(backend=BACKEND, n_threads=1).fit(responses).labels_,
            "vb": vb.fit(responses).labels_,
        }
    known = gold.on(responses.tasks, responses.classes)
    return FittedDataset(name, responses, gold, known.task, known.label, plain, vb.probabilities_)


@functools.lru_cache(maxsize=2)
def draw(name: str, expected: str, run: int) -> Draw:
    """Draw the labels and links of a run among the gold tasks; the same for the same run."""
    of = crowd(name, expected)
    n_gold = len(of.gold)
    for_labels, for_random, for_bvsb = np.random.default_rng(
        [SEED, zlib.crc32(of.name.encode()), run]
    ).spawn(3)
    return Draw(
        for_labels.permutation(n_gold)[: n_gold // 2],
        random_pairs(n_gold, n_gold // 2, for_random),
        bvsb_pairs(of.q[of.task], n_gold // 2, random_state=for_bvsb),
    )


def labels_given(of: FittedDataset, drawn: Draw, n: int) -> tb.Gold:
    """Return the first n labels of a draw."""
    at = drawn.labels[:n]
    labels = of.gold.classes.take(of.gold.label[at])
    return tb.Gold.from_columns(of.gold.tasks.take(at), labels)


def links_given(of: FittedDataset, pairs: npt.NDArray[Any], n: int) -> tb.Links:
    """Return the first n pairs of a draw, linked by what gold says."""
    left, right = pairs[:, :n]
    one, other = (of.responses.tasks.take(of.task[each]) for each in (left, right))
    is_must = of.truth[left] == of.truth[right]
    return tb.Links.from_columns(one, other, is_must, sampling="pairs")


# One case ---------------------------------------------------------------------------------------


def score_all(of: FittedDataset, drawn: Draw, n: int) -> dict[str, Score]:
    """Fit and score every method with n labels or links."""
    known = labels_given(of, drawn, n) if n else None
    return {name: _score(of, name, drawn, n, known) for name in methods_on(of.name)}


def _score(of: FittedDataset, name: str, drawn: Draw, n: int, known: tb.Gold | None) -> Score:
    method = METHODS[name]
    links: tb.Links | None = None
    if n and method.given == "derived":  # all that the labels say of pairs
        assert known is not None
        links = tb.Links.from_gold(known)
    elif n and method.given in ("random", "bvsb"):
        links = links_given(of, getattr(drawn, method.given), n)
    labels = of.plain[name if method.given == "nothing" else "vb"]
    unsettled = 0
    if n and method.given != "nothing":
        model = tb.VariationalBayes(
            confusion_prior=prior_of(of.name),
            init=of.q,  # from what VB found, as the paper does
            backend=BACKEND,
            n_threads=1,
            gold_weight=1,  # the paper's VB-LC
            **(method.options or {}),
        )
        with warnings.catch_warnings(action="ignore"):  # results count what does not converge
            model.fit(of.responses, links=links, gold=known if method.given == "labels" else None)
        labels = model.labels_
        unsettled = sum(not point.converged for point in model.link_grid_ or ())
    found: Score = {}
    for ending, given in (("", None), ("_free", known)):  # free: no method was given the label
        for average in ("macro", "micro"):
            f_score = tb.evaluate.f_score(labels, of.gold, average, given=given)
            found[f"{average}_f{ending}"] = round(f_score, 6)
    found |= _broken(method, labels, links, known)
    if "link_options" in (method.options or {}):
        found["unsettled"] = unsettled  # of the twelve strengths of the grid
    return found


def _broken(
    method: Method, labels: tb.Labels, links: tb.Links | None, known: tb.Gold | None
) -> Score:
    """Count broken links: of those given or, where labels gave them, of all that follow."""
    if method.given in ("nothing", "labels"):
        return {}
    if links is None:
        return {"n_links": 0, "n_broken": 0}
    found = tb.evaluate.violations(labels, links)
    if method.given != "derived":
        return {"n_links": len(links), "n_broken": found.given}
    assert known is not None
    return {"n_links": len(known) * (len(known) - 1) // 2, "n_broken": found.closed}


# All cases --------------------------------------------------------------------------------------


class About(NamedTuple):
    """What a dataset is here; runs of another copy or version are not taken over."""

    title: str
    n_classes: int
    n_gold: int
    fingerprint: str


class Case(NamedTuple):
    """One draw of one dataset, up to one number of labels or links."""

    dataset: str
    run: int
    n_given: int
    crowd: str  # the fingerprint of the dataset
    version: str


class Reproduction(NamedTuple):
    """What is to be run: datasets by name, Monte Carlo runs, steps of N_C after 0."""

    about: dict[str, About]
    n_runs: int = 20
    n_steps: int = 8

    @classmethod
    def of(cls, names: Sequence[str], n_runs: int = 20, n_steps: int = 8) -> Reproduction:
        """Look at the datasets; one that is not here is an error that says how to get it."""
        for option, value, least in (("runs", n_runs, 1), ("steps", n_steps, 2)):
            if value < least:
                raise OptionError("too-few-runs", option=option, least=least, given=value)
        for name in names:
            tb.datasets.path(name)  # tell of all before any is read
        return cls({name: _look_at(name) for name in names}, n_runs, n_steps)

    def cases(self) -> list[Case]:
        """Return all cases, dataset by dataset and run by run, the largest numbers first."""
        return [
            Case(name, run, n_given, about.fingerprint, tb.__version__)
            for name, about in self.about.items()
            for run in range(self.n_runs)
            for n_given in reversed(self.numbers(name))
        ]

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return the numbers of labels and links that a dataset is given."""
        return numbers_given(self.about[name].n_gold, self.n_steps)


def _look_at(name: str) -> About:
    found = tb.datasets.load(name)
    classes = found.responses.with_classes(found.gold.classes).n_classes
    return About(found.info.title, classes, len(found.gold), fingerprint(found))


def run(
    plan: Reproduction, folder: Path, *, jobs: int = 1, progress: Progress | None = None
) -> list[Row]:
    """Run what is not finished yet in the folder, and return the rows of all cases in order."""
    return run_cases(plan.cases(), work, folder / RUNS, jobs=jobs, progress=progress)


def work(case: Case) -> Row:
    """Run one case: fit and score every method."""
    start = time.perf_counter()
    source = case.dataset, case.crowd
    scores = score_all(crowd(*source), draw(*source, case.run), case.n_given)
    seconds = round(time.perf_counter() - start, 3)
    return {**case._asdict(), "seconds": seconds, "scores": scores}


# Results ----------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """One dataset: figures[method][figure] is an array of runs by numbers given."""

    title: str
    n_classes: int
    n_gold: int
    n_given: tuple[int, ...]
    figures: dict[str, dict[str, Floats]]

    def has(self, *methods: str) -> bool:
        return all(method in self.figures for method in methods)

    def of(self, method: str, figure: str = "macro_f") -> Floats:
        """Return a figure of a method: (n_runs, n_numbers)."""
        return self.figures[method][figure]

    def share_broken(self, method: str) -> Floats:
        """Return which share of its links a method breaks: (n_runs, n_numbers); 0 of none is 0."""
        n_links = np.maximum(self.of(method, "n_links"), 1.0)
        return np.asarray(self.of(method, "n_broken") / n_links)

    @property
    def is_upper(self) -> Any:
        """Which numbers given are in the upper half: above half of the largest, (n_numbers,)."""
        return np.array(self.n_given) > self.n_given[-1] / 2.0


class Results(NamedTuple):
    """All datasets of a reproduction, and how it was made."""

    about: dict[str, Any]
    datasets: dict[str, Measured]

    def write(self, path: Path) -> None:
        measured = {name: each._asdict() for name, each in self.datasets.items()}
        whole = {"about": self.about, "datasets": measured}
        path.write_text(json.dumps(whole, default=_plain, separators=(",", ":")) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        try:
            whole = json.loads(path.read_text(encoding="utf-8"))
            found = {name: _measured(each) for name, each in whole["datasets"].items()}
            return cls(whole["about"], found)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError("no-results", path=path, reason=error) from None


def gather(plan: Reproduction, rows: list[Row]) -> Results:
    """Turn the rows of all cases into arrays."""
    about = {
        "version": rows[0]["version"],
        **made_on(),
        "runs": plan.n_runs,
        "steps": plan.n_steps,
        "fingerprints": {name: each.fingerprint for name, each in plan.about.items()},
    }
    scores = {(row["dataset"], row["run"], row["n_given"]): row["scores"] for row in rows}
    datasets = {}
    for name, each in plan.about.items():
        numbers = plan.numbers(name)
        figures = {
            method: {
                figure: [
                    [scores[name, run, n][method][figure] for n in numbers]
                    for run in range(plan.n_runs)
                ]
                for figure in of_method
            }
            for method, of_method in scores[name, 0, numbers[0]].items()
        }
        about_it = {"title": each.title, "n_classes": each.n_classes, "n_gold": each.n_gold}
        datasets[name] = _measured(about_it | {"n_given": numbers, "figures": figures})
    return Results(about, datasets)


def _measured(stored: dict[str, Any]) -> Measured:
    figures = {
        method: {figure: np.array(values, dtype=np.float64) for figure, values in each.items()}
        for method, each in stored["figures"].items()
    }
    return Measured(**{**stored, "n_given": tuple(stored["n_given"]), "figures": figures})


def _plain(values: Any) -> Any:
    """Return an array as lists for JSON, counts as whole numbers."""
    return (values.astype(np.int64) if np.all(values == np.round(values)) else values).tolist()
