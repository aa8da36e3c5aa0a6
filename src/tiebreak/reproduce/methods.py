"""Methods: what is compared, what each is given, and how its labels are scored."""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np

from tiebreak import evaluate, link_graph
from tiebreak.inference.variational_bayes import VariationalBayes
from tiebreak.kernels.layout import Codes
from tiebreak.links import Links, links_from_gold
from tiebreak.options import MeanFieldOptions
from tiebreak.reproduce import draws
from tiebreak.reproduce.draws import Draw, FittedDataset

Given = Literal["nothing", "labels", "random", "bvsb", "derived"]
Score = dict[str, float | int]

PAPER: dict[str, Any] = {"link_options": MeanFieldOptions(schedule="parallel", strength="grid")}
IN_TURN: dict[str, Any] = {"link_options": MeanFieldOptions(schedule="in-turn", strength="grid")}
PLAIN: dict[str, Any] = {"calibrate": "none"}  # F asks for labels only


class Method(NamedTuple):
    """A line of the figures: its name there, what it is given, how it is fitted."""

    title: str
    given: Given
    options: dict[str, Any] | None = None
    only: tuple[str, ...] | None = None  # the datasets it is run on; None: all


SLOW_COMPARISON = ("rte", "dog")  # updates in turn beside the paper's

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
    """Return the methods that are run on a dataset."""
    return {
        name: method
        for name, method in METHODS.items()
        if method.only is None or dataset in method.only
    }


def score_all(of: FittedDataset, drawn: Draw, n: int) -> dict[str, Score]:
    """Fit and score every method with n labels or links."""
    is_given = np.zeros(of.n_gold, dtype=bool)
    is_given[drawn.labels[:n]] = True
    return {name: _score(of, name, drawn, n, ~is_given) for name in methods_on(of.name)}


def _score(of: FittedDataset, name: str, drawn: Draw, n: int, is_free: Any) -> Score:
    method = METHODS[name]
    links = _links(of, method, drawn, n)
    label = of.plain["vb"]
    unsettled = 0
    if method.given == "nothing":
        label = of.plain[name]
    elif n:
        model = _fit(of, method, drawn, n, links)
        label = model.labels_.label
        unsettled = sum(not point.converged for point in model.link_grid_ or ())
    found = {**_f_scores(of, label, is_free), **_broken(of, method, label, links)}
    if method.options is not None and "link_options" in method.options:
        found["unsettled"] = unsettled  # of the twelve strengths of the grid
    return found


def _links(of: FittedDataset, method: Method, drawn: Draw, n: int) -> Links | None:
    if method.given in ("nothing", "labels") or not n:
        return None
    if method.given == "derived":  # all that the labels say of pairs: [eq:label-derived]
        return links_from_gold(draws.labels_given(of, drawn, n))
    pairs = drawn.random if method.given == "random" else drawn.bvsb
    return draws.links_given(of, pairs, n)


def _fit(
    of: FittedDataset, method: Method, drawn: Draw, n: int, links: Links | None
) -> VariationalBayes:
    """Fit from what VB found, as the paper does."""
    model = VariationalBayes(
        confusion_prior=draws.prior_of(of.name),
        init=of.q,
        backend=draws.BACKEND,
        n_threads=1,
        gold_weight=1,  # the paper's VB-LC
        **(method.options or {}),
    )
    gold = draws.labels_given(of, drawn, n) if method.given == "labels" else None
    with warnings.catch_warnings(action="ignore"):  # results count what does not converge
        return model.fit(of.responses, links=links, gold=gold)


def _f_scores(of: FittedDataset, label: Codes, is_free: Any) -> Score:
    """Score all gold tasks, and those whose label no method was given in this run."""
    found: Score = {}
    guess = label[of.truth.task]
    for ending, asked in (("", slice(None)), ("_free", is_free)):
        counts = evaluate.count_classes(of.truth.label[asked], guess[asked], of.responses.n_classes)
        found[f"macro_f{ending}"] = round(evaluate.macro_f(counts), 6)
        found[f"micro_f{ending}"] = round(evaluate.micro_f(counts), 6)
    return found


def _broken(of: FittedDataset, method: Method, label: Codes, links: Links | None) -> Score:
    """Count broken links: of those given or, where labels gave them, of all that follow."""
    if method.given in ("nothing", "labels"):
        return {}
    if links is None:
        return {"n_links": 0, "n_broken": 0}
    codes = links.on(of.responses.tasks)
    if method.given != "derived":
        broken = link_graph.violated(label, codes)
        return {"n_links": len(broken), "n_broken": int(np.count_nonzero(broken))}
    closed = link_graph.close(of.responses.n_tasks, codes)
    broken_closed = link_graph.count_violated_closed(label, closed, of.responses.n_classes)
    return {"n_links": int(closed.n_must + closed.n_cannot), "n_broken": int(broken_closed)}
