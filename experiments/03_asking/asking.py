"""Asking, simulated: labels by margin, pairs, the mix, with free links, by two people who err.

Each returns what is kept of a case: numbers of questions or costs (`n`), macro-F after each, how
many labels and pairs were asked (`asked`), the most that exchanging two class names would gain
(`by_swap`), and how many labels a cold fit has otherwise, ties within .01 left out (`apart`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from crowds import CONFIG, Asked, macro_f, most_by_swap, new_model

BUDGETS: list[float] = CONFIG["budgets"]
TIE = 0.01


def stops(most: float, n_rounds: int, among: list[float]) -> list[float]:
    """Return after which costs a model is fitted: in rounds up to the most, and after budgets."""
    rounds = {round(most * (at + 1) / n_rounds) for at in range(n_rounds)}
    return sorted({*rounds, *among} - {0})


def kept(n: list[float], scores: list[float], **more: Any) -> dict[str, Any]:
    found = {"n": n, "macro_f": [round(score, 5) for score in scores]}
    return {**found, "by_swap": None, "apart": None, "asked": None, **more}


def ask_labels(crowd: Asked, seed: int, cost: float) -> dict[str, Any]:
    """Ask for the label of the tasks in most doubt, by the margin of their probabilities."""
    wanted = [int(b * crowd.n_gold / cost + 1e-9) for b in BUDGETS]
    after = stops(wanted[-1], CONFIG["rounds"], list(wanted))
    curve = labels_by_margin(crowd, crowd.label, seed, after)
    return kept(wanted, [curve[n] for n in wanted])


def labels_by_margin(
    crowd: Asked, label: np.ndarray, seed: int, after: list[float]
) -> dict[float, float]:
    """Return macro-F after so many labels, taken as gold as they are given here."""
    import tiebreak as tb

    rng = np.random.default_rng(seed)
    classes = crowd.responses.classes
    model = crowd.plain
    known: list[int] = []  # places in the gold tasks
    curve: dict[float, float] = {}
    for stop in after:
        margin = tb.selection.margins(model.probabilities_[crowd.task])
        margin[known] = np.inf
        ties = rng.random(len(margin))
        known += np.lexsort((ties, margin))[: int(stop) - len(known)].tolist()
        gold = {crowd.names[i]: classes[int(label[i])] for i in known}
        model = new_model().fit(crowd.responses, gold=gold, start=model)
        curve[stop] = macro_f(crowd, model.labels_.label)
    return curve


def ask_pairs(crowd: Asked, seed: int) -> dict[str, Any]:
    """Ask pairs as `strategy="adaptive"` does."""
    import tiebreak as tb

    rng = np.random.default_rng(seed)
    budgets = [round(b * crowd.n_gold) for b in BUDGETS]
    model = crowd.plain
    ends: list[tuple[Any, Any, bool]] = []
    curve = {}
    for stop in stops(budgets[-1], CONFIG["rounds"], list(budgets)):
        found = tb.selection.pairs(model, int(stop) - len(ends), "adaptive", crowd.names, rng)
        ends += [(a, b, is_same(crowd, a, b)) for a, b, _ in found]
        links = tb.Links.from_columns(*map(list, zip(*ends, strict=True)))
        model = new_model().fit(crowd.responses, links=links, start=model)
        curve[stop] = macro_f(crowd, model.labels_.label)
    return kept(budgets, [curve[n] for n in budgets])


def is_same(crowd: Asked, one: Any, other: Any) -> bool:
    codes = crowd.responses.tasks.codes([one, other])
    return bool(np.equal(*crowd.truth[codes]))


def ask_mixed(crowd: Asked, seed: int, cost: float) -> dict[str, Any]:
    """Ask labels and links together, by `selection.questions`."""
    budgets = [round(b * crowd.n_gold) for b in BUDGETS]
    after = stops(budgets[-1], CONFIG["rounds"], list(budgets))
    return mixed(crowd, np.random.default_rng(seed), cost, after, budgets)


def mixed(
    crowd: Asked,
    rng: np.random.Generator,
    cost: float,
    after: list[float],
    budgets: list[float],
    free: Any = None,
) -> dict[str, Any]:
    import tiebreak as tb

    classes = crowd.responses.classes
    model = crowd.plain if free is None else new_model().fit(crowd.responses, links=free)
    ends: list[tuple[Any, Any, bool]] = []
    gold: dict[Any, Any] = {}
    spent = 0.0
    curve = {0: macro_f(crowd, model.labels_.label)}
    swaps = []
    for stop in after:
        n = int(stop - spent) + 1
        found = tb.selection.questions(
            model, n, ("same", "label"), {"label": cost}, crowd.names, rng
        )
        for row in found:
            if spent + row.cost > stop + 1e-9:
                break
            spent += row.cost
            if row.kind == "same":
                ends.append((row.task, row.other, is_same(crowd, row.task, row.other)))
            else:
                code = int(crowd.responses.tasks.codes([row.task])[0])
                gold[row.task] = classes[int(crowd.truth[code])]
        links = tb.Links.from_columns(*map(list, zip(*ends, strict=True))) if ends else None
        links = free if links is None else (links if free is None else free + links)
        model = new_model().fit(crowd.responses, links=links, gold=gold or None, start=model)
        curve[stop] = macro_f(crowd, model.labels_.label)
        if stop in budgets:
            swaps.append(most_by_swap(crowd, model.labels_.label))
    cold = new_model().fit(crowd.responses, links=links, gold=gold or None)
    scores = [curve[n] for n in budgets]
    asked = [len(gold), len(ends)]
    return kept(budgets, scores, by_swap=max(swaps), apart=n_apart(model, cold), asked=asked)


def n_apart(one: Any, other: Any) -> int:
    """Count the labels in which two models differ, but for tasks within .01 of a tie."""
    top = -np.partition(-one.probabilities_, 1, axis=1)[:, :2]
    is_tie = top[:, 0] - top[:, 1] <= TIE
    return int(np.count_nonzero((one.labels_.label != other.labels_.label) & ~is_tie))


def ask_free(crowd: Asked, seed: int) -> dict[str, Any]:
    """Ask for labels where half of the tasks are linked to duplicates already."""
    rng = np.random.default_rng(seed)
    most = round(BUDGETS[-1] * crowd.n_gold)
    after = stops(most, CONFIG["free"]["rounds"], [])
    return mixed(crowd, rng, 1.0, after, [0, *after], duplicates(crowd, rng))


def duplicates(crowd: Asked, rng: np.random.Generator) -> Any:
    """Draw groups of two to ten tasks of one class until half of the tasks are in one."""
    import tiebreak as tb

    low, high = CONFIG["free"]["sizes"]
    chosen = rng.permutation(crowd.n_gold)[: crowd.n_gold // 2]
    must = []
    for k in range(crowd.responses.n_classes):
        members = [crowd.names[int(i)] for i in chosen if crowd.label[i] == k]
        while len(members) >= low:
            size = min(int(rng.integers(low, high + 1)), len(members))
            group = [members.pop() for _ in range(size)]
            must += [(group[0], other) for other in group[1:]]
    return tb.Links.from_pairs(must=must, sampling="duplicates")


def ask_two_people(crowd: Asked, seed: int, rate: float, *, as_gold: bool) -> dict[str, Any]:
    """Let two people answer in turn, of whom the second errs."""
    rng = np.random.default_rng([seed, round(1000 * rate)])
    cost = CONFIG["wrong"]["cost"]
    budgets = [round(b * crowd.n_gold) for b in CONFIG["wrong"]["budgets"]]
    if as_gold:
        wanted = [int(n / cost + 1e-9) for n in budgets]
        errs = (rng.random(crowd.n_gold) < rate) & (np.arange(crowd.n_gold) % 2 == 1)
        label = np.where(errs, another(crowd, crowd.label, rng), crowd.label)
        rounds = stops(wanted[-1], CONFIG["rounds"], list(wanted))
        curve = labels_by_margin(crowd, label, seed, rounds)
        return kept(budgets, [curve[n] for n in wanted])
    from two_people import answer_in_turn

    after = stops(budgets[-1], CONFIG["rounds"], list(budgets))
    return kept(budgets, answer_in_turn(crowd, rng, rate, cost, after, budgets))


def another(crowd: Asked, label: Any, rng: np.random.Generator) -> Any:
    """Return a wrong class for each."""
    n_classes = crowd.responses.n_classes
    return (label + rng.integers(1, n_classes, size=np.shape(label))) % n_classes
