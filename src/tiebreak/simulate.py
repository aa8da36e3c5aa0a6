"""Simulate: crowds and links whose truth is known, drawn from the model itself.

Each task has a class drawn from the class prior; each of its workers, all different, gives a
label drawn from the row of their confusion matrix that belongs to that class. The same seed
gives the same crowd.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak import arguments
from tiebreak.data import Gold, Ids, Responses
from tiebreak.data.scale import channels
from tiebreak.errors import OptionError
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.links import Links

__all__ = [
    "Crowd",
    "crowd",
    "crowd_for",
    "links",
]

MOST = 2**31 - 1  # codes have 32 bits
Seed = int | np.random.Generator | None
Accuracy = float | tuple[float, float] | npt.ArrayLike


class Crowd(NamedTuple):
    """A simulated crowd and the truth behind it.

    `confusion` is (n_workers, n_classes, n_classes) = [worker, truth, answer] in the order of
    `responses.workers` (of first appearance) and `responses.classes`; `class_prior` is
    (n_classes,).
    """

    responses: Responses
    gold: Gold
    confusion: Floats
    class_prior: Floats


@arguments.checks(
    n_tasks=arguments.whole(1, MOST),
    n_workers=arguments.whole(1, MOST),
    n_classes=arguments.whole(2, MOST),
    responses_per_task=arguments.whole(1),
    classes=arguments.optional(arguments.COLUMN),
    scale=arguments.optional(arguments.whole(2)),
    bias=arguments.number("0 or more", least=0.0),
    gain=arguments.number("0 or more", least=0.0),
    lapse=arguments.PROBABILITY,
    random_state=arguments.SEED,
)
def crowd(
    n_tasks: int = 1000,
    n_workers: int = 20,
    n_classes: int = 2,
    *,
    responses_per_task: int = 5,
    accuracy: Accuracy = (0.6, 0.95),
    class_prior: npt.ArrayLike | None = None,
    confusion: npt.ArrayLike | None = None,
    classes: Sequence[Hashable] | None = None,
    shared: float = 0.0,
    scale: int | None = None,
    bias: float = 0.6,
    gain: float = 0.25,
    blur: tuple[float, float] = (0.3, 1.1),
    lapse: float = 0.05,
    random_state: Seed = None,
) -> Crowd:
    """Draw a crowd: responses, gold for every task, and the true parameters.

    Parameters
    ----------
    responses_per_task
        How many different workers label each task.
    accuracy
        How often a worker is right, whatever the class: one number for all, a tuple (low, high)
        to draw each worker's from, or an array (n_workers,), first that of "w1" (or "w01", …).
        Wrong labels fall evenly on the other classes.
    class_prior
        (n_classes,), sums to 1; by default all classes are equally likely.
    confusion
        (n_classes, n_classes) for all workers, or (n_workers, n_classes, n_classes):
        [truth, answer], rows sum to 1. Takes the place of `accuracy`.
    classes
        Ids of the classes, sorted, so that `class_prior` and `confusion` follow the order that
        they have everywhere; else "c0", "c1", ….
    shared
        The chance that workers err together on a task. On such a task one draw decides for all of
        them: whoever is right less often than it says errs, and all who err give one wrong class
        (where their rows of the confusion are alike). Each worker is right as often as without.
    scale
        How many levels classes are, 1, 2, …, where they are a scale; each worker reads it through
        a channel, in the place of `accuracy` and `n_classes`.
    bias, gain, blur, lapse
        Of workers on a scale: standard deviations of biases (in steps) and of the log of gains,
        the range of blurs (in steps), and how often a worker answers at random. Biases and blurs
        are those on five levels, larger in proportion on longer scales.

    Examples
    --------
    >>> list(crowd(50, 6, scale=3, random_state=0).responses.classes)
    [1, 2, 3]
    >>> simulated = crowd(100, 8, 3, accuracy=0.8, random_state=0)
    >>> simulated.responses, simulated.gold
    (Responses(500 responses, 100 tasks, 8 workers, 3 classes), Gold(100 tasks, 3 classes))
    """
    rng = np.random.default_rng(random_state)
    if scale is not None:
        n_classes = scale
        classes = list(range(1, scale + 1)) if classes is None else classes
        words = "a range (low, high), with 0 < low <= high"
        blurs = arguments.as_floats(
            "blur", blur, words, shapes=[(2,)], are_right=lambda each: 0 < each[0] <= each[1]
        )
        size = (scale - 1) / 4.0
        confusion = channels(
            np.arange(scale, dtype=np.float64),
            np.full(scale, 1.0 / scale),
            rng.normal(0.0, bias * size, n_workers),
            np.exp(rng.normal(0.0, gain, n_workers)),
            rng.uniform(blurs[0], blurs[1], n_workers) * size**0.75,
            lapse,
        )
    prior = np.full(n_classes, 1.0 / n_classes)
    if class_prior is not None:
        words = f"{n_classes} probabilities that sum to 1"
        prior = arguments.as_floats(
            "class_prior", class_prior, words, shapes=[(n_classes,)], are_right=_are_shares
        )
        prior = prior / prior.sum()
    truth = rng.choice(n_classes, size=n_tasks, p=prior).astype(np.int32)
    tasks = Ids(_numbered("t", n_tasks, start=1))
    gold = Gold(tasks, truth, _class_names(classes, n_classes), row=np.arange(n_tasks))
    drawn = crowd_for(
        gold,
        n_workers,
        responses_per_task=responses_per_task,
        accuracy=accuracy,
        confusion=confusion,
        shared=shared,
        random_state=rng,
    )
    return drawn._replace(class_prior=prior)


@arguments.checks(
    gold=Gold,
    n_workers=arguments.whole(1, MOST),
    responses_per_task=arguments.whole(1),
    shared=arguments.PROBABILITY,
    random_state=arguments.SEED,
)
def crowd_for(
    gold: Gold,
    n_workers: int = 20,
    *,
    responses_per_task: int = 5,
    accuracy: Accuracy = (0.6, 0.95),
    confusion: npt.ArrayLike | None = None,
    shared: float = 0.0,
    random_state: Seed = None,
) -> Crowd:
    """Draw responses to tasks whose classes are given; see `crowd`.

    The classes of gold, sorted, are those of the crowd; its class prior is their share in gold.

    Examples
    --------
    >>> gold = Gold.from_dict({"a": "dog", "b": "cat"})
    >>> crowd_for(gold, 3, responses_per_task=3, accuracy=1.0).responses
    Responses(6 responses, 2 tasks, 3 workers, 2 classes)
    """
    class_names, new_code = gold.classes.sorted()
    n_tasks = len(gold)
    n_classes = len(class_names)
    if n_tasks < 1 or n_classes < 2:
        raise OptionError.must_be("gold", "tasks of two classes or more", gold)
    if responses_per_task > n_workers:
        words = f"at most the number of workers, {n_workers}"
        raise OptionError.must_be("responses_per_task", words, responses_per_task)
    rng = np.random.default_rng(random_state)
    theta = _checked_confusion(confusion, accuracy, n_workers, n_classes, rng)
    truth = new_code[gold.label]
    worker = _draw_workers(n_tasks, n_workers, responses_per_task, rng).ravel()
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), responses_per_task)
    label = _draw_labels(theta, worker, truth[task], rng)
    if shared:
        # On shared tasks one draw says who errs, one says how.
        again = np.flatnonzero((rng.random(n_tasks) < shared)[task])
        errs_above, place = rng.random((2, n_tasks))[:, task[again]]
        k = truth[task[again]]
        label[again] = _err_together(theta[worker[again], k], k, errs_above, place)
    order, new_worker = _by_appearance(worker, n_workers)
    workers = Ids(_numbered("w", n_workers, start=1)).take(order)
    responses = Responses.from_codes(
        task, new_worker[worker], label, gold.tasks, workers, class_names
    )
    prior = np.bincount(truth, minlength=n_classes) / n_tasks
    return Crowd(responses, gold, theta[order], prior)


@arguments.checks(
    gold=Gold, n=arguments.WHOLE, wrong=arguments.PROBABILITY, random_state=arguments.SEED
)
def links(gold: Gold, n: int, *, wrong: float = 0.0, random_state: Seed = None) -> Links:
    """Draw n different pairs of gold tasks at random and link each by what gold says.

    Parameters
    ----------
    wrong
        The probability that a link says the opposite of the truth.

    Examples
    --------
    >>> links(Gold.from_dict({"a": 0, "b": 0}), 1)
    Links(1 must, 0 cannot, 2 tasks)
    """
    n_pairs = len(gold) * (len(gold) - 1) // 2
    if not 0 <= n <= n_pairs:
        raise OptionError.must_be("n", f"from 0 to {n_pairs:,}, the pairs among gold", n)
    rng = np.random.default_rng(random_state)
    left, right = unrank_pairs(rng.choice(n_pairs, size=n, replace=False) if n else np.empty(0))
    is_must = gold.label[left] == gold.label[right]
    is_must ^= rng.random(n) < wrong
    kind = np.where(is_must, "must", "cannot").tolist()
    ends = (gold.tasks.take(left), gold.tasks.take(right))
    return Links.from_columns(*ends, kind, sampling="pairs")


def unrank_pairs(index: npt.NDArray[Any]) -> tuple[Offsets, Offsets]:
    """Return the pairs (i, j), i < j, that stand at these places in the list of all pairs.

    The list runs (0, 1), (0, 2), (1, 2), (0, 3), …: pair (i, j) has place j (j - 1) / 2 + i.

    >>> unrank_pairs(np.arange(4))
    (array([0, 0, 1, 0]), array([1, 2, 2, 3]))
    """
    index = index.astype(np.int64)
    j = ((1.0 + np.sqrt(1.0 + 8.0 * index)) / 2.0).astype(np.int64)
    j -= j * (j - 1) // 2 > index  # beyond 2**26 the root may be rounded up
    return index - j * (j - 1) // 2, j


def _draw_workers(n_tasks: int, n_workers: int, n_each: int, rng: np.random.Generator) -> Codes:
    """Draw different workers for each task, every set equally likely: (n_tasks, n_each), sorted.

    Where most workers answer, the smallest of one random key per worker decide; else workers are
    drawn freely and repeats drawn anew. Both cost about as much as there are responses.
    """
    if 2 * n_each > n_workers:
        keys = rng.random((n_tasks, n_workers), dtype=np.float32)
        chosen = np.argsort(keys, axis=1)[:, :n_each].astype(np.int32)
        chosen.sort(axis=1)
        return chosen
    chosen = np.sort(rng.integers(n_workers, size=(n_tasks, n_each), dtype=np.int32), axis=1)
    row, column = np.nonzero(chosen[:, 1:] == chosen[:, :-1])
    while len(row):
        chosen[row, column + 1] = rng.integers(n_workers, size=len(row), dtype=np.int32)
        touched = np.unique(row)
        again = np.sort(chosen[touched], axis=1)
        chosen[touched] = again
        row, column = np.nonzero(again[:, 1:] == again[:, :-1])
        row = touched[row]
    return chosen


def _by_appearance(worker: Codes, n_workers: int) -> tuple[Offsets, Codes]:
    """Order workers by their first response, silent ones last; return also their new codes."""
    first = np.full(n_workers, len(worker), dtype=np.int64)
    first[worker[::-1]] = np.arange(len(worker) - 1, -1, -1)  # of equal places the last is kept
    order = np.argsort(first, kind="stable")
    new = np.empty(n_workers, dtype=np.int32)
    new[order] = np.arange(n_workers, dtype=np.int32)
    return order, new


def _draw_labels(theta: Floats, worker: Codes, truth: Codes, rng: np.random.Generator) -> Codes:
    """Draw a label for each response by one search among all cumulative rows laid end to end."""
    n_workers, n_classes, _ = theta.shape
    row = worker.astype(np.int64) * n_classes + truth
    cumulative = np.cumsum(theta.reshape(-1, n_classes), axis=1)
    cumulative /= cumulative[:, -1:]
    ladder = (cumulative + np.arange(n_workers * n_classes)[:, None]).ravel()
    # Row r owns the numbers from r to below r + 1; adding may round a draw up to r + 1.
    draw = np.minimum(row + rng.random(len(row)), np.nextafter(row + 1.0, 0.0))
    found = np.searchsorted(ladder, draw, side="right")
    return np.asarray(found - row * n_classes, dtype=np.int32)


def _err_together(rows: Floats, truth: Codes, errs_above: Floats, place: Floats) -> Codes:
    """Draw labels by rows of confusions, (n, answer), from draws that workers on a task share.

    A worker errs where the first draw exceeds θ[k, k], and then takes from its own wrong classes
    the one at the second's place, so that each worker's confusions stay what they are.
    """
    each = np.arange(len(rows))
    right = rows[each, truth]
    wrong = rows.copy()
    wrong[each, truth] = 0.0
    cumulative = np.cumsum(wrong, axis=1)
    taken = (cumulative <= (place * cumulative[:, -1])[:, None]).sum(axis=1)
    return np.where(errs_above < right, truth, taken).astype(np.int32)


def _numbered(letter: str, n: int, *, start: int) -> list[str]:
    """Name n things so that sorting the names keeps their order: w01, w02, …"""
    width = len(str(n - 1 + start))
    return [f"{letter}{i:0{width}d}" for i in range(start, n + start)]


def _class_names(classes: Sequence[Hashable] | None, n_classes: int) -> Ids:
    """Return the names of the classes; sorted, since arrays follow that order everywhere."""
    given = Ids(_numbered("c", n_classes, start=0) if classes is None else classes)
    are_names = all(isinstance(name, Hashable) for name in given)
    is_each_once = are_names and len(set(given)) == len(given) == n_classes
    if not is_each_once or given.sorted()[0] != given:
        raise OptionError.must_be("classes", f"{n_classes} different names, sorted", given)
    return given


def _checked_confusion(
    confusion: npt.ArrayLike | None,
    accuracy: Accuracy,
    n_workers: int,
    n_classes: int,
    rng: np.random.Generator,
) -> Floats:
    one, each = (n_classes, n_classes), (n_workers, n_classes, n_classes)
    if confusion is not None:
        words = f"of shape {one} or {each}, with rows that sum to 1"
        theta = arguments.as_floats(
            "confusion", confusion, words, shapes=(one, each), are_right=_are_shares
        )
        return np.broadcast_to(theta / theta.sum(axis=-1, keepdims=True), each).copy()
    is_range = isinstance(accuracy, tuple) and len(accuracy) == 2
    right = arguments.as_floats(
        "accuracy",
        accuracy,
        "one probability, a tuple (low, high) or an array with one for each of the "
        f"{n_workers} workers",
        shapes=((2,),) if is_range else ((), (n_workers,)),
        are_right=lambda given: (
            (given >= 0) & (given <= 1) & (not is_range or given[0] <= given[1])
        ),
    )
    right = (
        rng.uniform(right[0], right[1], n_workers)
        if is_range
        else np.broadcast_to(right, n_workers)
    )
    wrong = (1.0 - right) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), right[:, None, None], wrong[:, None, None])


def _are_shares(rows: Floats) -> bool:
    sums = rows.sum(axis=-1)
    return bool(((rows >= 0.0) & (rows <= 1.0)).all() and np.allclose(sums, 1.0))
