"""Updates: a model goes on with more responses, links and gold.

Where responses are kept, an update is a fit of everything together that starts from the model.
Where only counts are kept, the tasks that have responses are fitted with the counts as their prior.
Beliefs of workers are a prior plus counts, so that a worker loses nothing. A task keeps its q; what
its responses said is then `log q − E[log π]`, as of now: later it moves by new responses and links
alone, and not because its workers turn out to be other than was believed.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tiebreak import tables
from tiebreak.arguments import checks, number
from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Labels
from tiebreak.data.responses import INT32_END
from tiebreak.errors import GoldError, NotFittedError, OptionError, note
from tiebreak.inference import calibration
from tiebreak.inference.climb import Stopping
from tiebreak.inference.door import lay_out
from tiebreak.kernels.arrays import default_threads
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Codes, Floats, Offsets, weights_or_ones
from tiebreak.links import Links
from tiebreak.options import require_word
from tiebreak.wording import Source, counted

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator
    from tiebreak.estimators.variational_bayes import VariationalBayes

Fitted = TypeVar("Fitted", bound="Estimator")
KEEPS = ("responses", "counts")
CHUNK = 1 << 20  # responses at a time


@checks(forget=number("above 0 and 1 at most", above=0.0, most=1.0))
def update(
    model: Estimator,
    responses: Any,
    links: Any,
    gold: Any,
    forget: float = 1.0,
    again: bool = False,
) -> None:
    """Let a model go on in its place; where that fails it stays as it was."""
    from tiebreak.estimators.variational_bayes import VariationalBayes

    if "labels_" not in vars(model):
        raise NotFittedError(f"{type(model).__name__} has nothing to go on from. Call fit first.")
    new = None if responses is None else tables.read_responses(responses)
    pairs = None if links is None else tables.read_links(links)
    known = None if gold is None else tables.read_gold(gold)
    batches = model._batches
    if new is not None:
        before = batches_of(model)
        batch = digest(new)
        counts_alone = model._carried is not None or forget < 1.0
        if counts_alone and batch in before and not again:
            note(
                f"The same {counted(new.n_responses, 'response')} were given to this model before, "
                "and are left out. again=True counts them once more."
            )
            new = None
            if pairs is None and known is None:
                return
        else:
            batches = (*before, batch)
    if model._carried is None and forget == 1.0:
        made = _fit_all(model, new, pairs, known)
    elif isinstance(model, VariationalBayes):
        made = _fit_touched(model, new, pairs, known, forget)
    else:
        raise OptionError(
            f"{type(model).__name__} cannot go on from counts, nor forget: use VariationalBayes, "
            "or keep the responses."
        )
    made._stream_notes = model._stream_notes
    made._batches = batches
    vars(model).clear()
    vars(model).update(vars(made))


def _fit_all(
    model: Estimator, new: Responses | None, links: Links | None, gold: Gold | None
) -> Estimator:
    """Fit everything together, from where the model is."""
    from tiebreak.estimators.majority_vote import MajorityVote
    from tiebreak.estimators.variational_bayes import VariationalBayes

    crowd = model.responses_ if new is None else join_responses(model.responses_, new)
    pairs = links if model.links_ is None else model.links_
    if links is not None and model.links_ is not None:
        pairs = model.links_ + links
    given: dict[str, Any] = {"links": pairs, "gold": _join_gold(model.gold_, gold)}
    if isinstance(model, MajorityVote):
        return copy.copy(model).fit(crowd, **given)
    if not isinstance(model, VariationalBayes):
        return copy.copy(model).fit(crowd, **given, start=model)
    made = copy.copy(model)
    options = made.get_params()
    prior, init = options["confusion_prior"], options["init"]
    if not isinstance(prior, str | Mapping) and np.ndim(prior) == 3:  # more workers may come
        prior = dict(zip(model.workers_, np.asarray(prior), strict=True))
    # Probabilities that the first fit started from have served.
    made.set_params(confusion_prior=prior, init=init if isinstance(init, str) else "majority")
    made.fit(crowd, **given, start=model)
    return made.set_params(**options)


def _fit_touched(
    model: VariationalBayes,
    new: Responses | None,
    links: Links | None,
    gold: Gold | None,
    forget: float,
) -> VariationalBayes:
    """Fit tasks that are touched or have responses, with the counts of others as their prior."""
    from tiebreak.life.online import Stream

    if forget < 1.0:
        model = drop_responses(model)
        assert model._carried is not None
        model._carried = model._carried._replace(counts=model._carried.counts * forget)
    stream = Stream(model)
    tasks = model.tasks_ if new is None else model.tasks_.merge(new.tasks)
    touched = [np.flatnonzero(np.diff(model.responses_.start)).astype(np.int32)]
    if new is not None:
        stream.tasks.slots(_names(tasks, new.tasks, np.arange(new.n_tasks)))  # answered or not
        touched.append(
            stream.add(
                _names(tasks, new.tasks, new.task_of_each()),
                _names(model.workers_.merge(new.workers), new.workers, new.worker_of_each()),
                _names(model.classes_.merge(new.classes), new.classes, new.label_of_each()),
            )
        )
    if links is not None:
        links.on(tasks)  # refuses unknown tasks
        own = tasks.take(tasks.codes(links.tasks))
        touched.append(stream.link(replace(links, tasks=own)))
    if gold is not None:
        classes = Ids(stream.classes).merge(gold.classes)
        known = gold.on(tasks, classes)  # refuses unknown tasks
        touched.append(stream.know(list(tasks.take(known.task)), list(classes.take(known.label))))
    stopping = Stopping(model.tol, model.max_iter, accelerate=False)
    stream.visit(np.unique(np.concatenate(touched)), stopping, revisit=False)
    return stream.to_model()


def _names(merged: Ids, given: Ids, codes: Any) -> list[Any]:
    """Return ids as the model has them: 7 of a table is "7" where those of the model are text."""
    return list(merged.take(merged.codes(given)[codes]))


# -- from counts -----------------------------------------------------------------------------------


class Carried(NamedTuple):
    """What stays of responses that were dropped."""

    counts: Floats  # (n_codes, n_states) how often each worker gave each label in each state
    totals: Floats  # (n_states,) tasks that are gone wholly
    n_dropped: Floats  # (n_tasks,) responses that were dropped, by weight; 0: none


def digest(responses: Responses) -> str:
    """Return a short name of what responses say; the order of rows and of ids does not count.

    >>> from tiebreak.data import Responses
    >>> rows = [("a", "ann", "x"), ("b", "bob", "y"), ("b", "ann", "x")]
    >>> digest(Responses.from_rows(rows)) == digest(Responses.from_rows(rows[::-1]))
    True
    """
    names = (responses.tasks, responses.workers, responses.classes)
    marks = [_marks(each, salt) for salt, each in enumerate(names)]
    total = 0
    for at in range(0, responses.n_responses, CHUNK):
        part = slice(at, at + CHUNK)
        task = (
            np.searchsorted(responses.start, np.arange(at, at + len(responses.code[part])), "right")
            - 1
        )
        worker, label = np.divmod(responses.code[part], responses.n_classes)
        of_each = _mix(marks[0][task] + _mix(marks[1][worker] + _mix(marks[2][label])))
        if responses.weight is not None:
            of_each = _mix(of_each + np.ascontiguousarray(responses.weight[part]).view(np.uint64))
        total += int(of_each.sum(dtype=np.uint64))
    return f"{responses.n_responses}-{total % (1 << 64):016x}"


def batches_of(model: Estimator) -> tuple[str, ...]:
    """Return what a model was given so far: that of its fit, where it was never updated."""
    return model._batches or (digest(model.responses_),)


def _marks(names: Ids, salt: int) -> npt.NDArray[np.uint64]:
    """Return a number for each id; 7 of one table is "7" of another."""
    text = (zlib.crc32(str(name).encode(), salt) for name in names)
    return _mix(np.fromiter(text, dtype=np.uint64, count=len(names)))


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread 64 bits so that sums of them tell sets apart (the last steps of MurmurHash3)."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(x ^ (x >> np.uint64(33)))


def require_keep(keep: str) -> None:
    """Refuse a word that says nothing of what to keep."""
    require_word("keep", keep, KEEPS)


def drop_tasks(model: Estimator, empty: Responses, n_states: int) -> None:
    """Let a model of counts keep no task: `empty` has its workers and classes alone."""
    none = np.zeros((0, empty.n_classes))
    model.responses_ = empty
    model.tasks_ = empty.tasks
    model.probabilities_ = none
    model.labels_ = Labels.from_probabilities(empty.tasks, empty.classes, none)
    state = vars(model).get("_state")
    if state is not None:
        vars(model)["_state"] = state._replace(q=np.zeros((0, n_states)))


def drop_responses(model: Fitted) -> Fitted:
    """Return the model with counts in the place of all its responses."""
    if "_opinions" in vars(model):
        raise OptionError(
            "Auto needs the responses: a vote cannot be told from counts. Keep the responses, or "
            "use VariationalBayes (--method vb)."
        )
    crowd = model.responses_
    former = model._carried
    state = vars(model).get("_state")
    q = model.probabilities_ if state is None else state.q
    tasks = lay_out(crowd)
    backend = choose_backend("auto", crowd.n_responses)
    counts, _ = backend.open(tasks, np.ascontiguousarray(q), default_threads()).tally()
    n_dropped = calibration.n_responses(tasks)
    totals = np.zeros(counts.shape[1])
    if former is not None:
        counts = counts + former.counts
        n_dropped = n_dropped + former.n_dropped
        totals = former.totals
    empty = replace(
        crowd, start=np.zeros_like(crowd.start), code=crowd.code[:0].copy(), weight=None
    )
    made = copy.copy(model)
    made._batches = batches_of(model)
    made.responses_ = empty
    made._carried = Carried(counts, totals, n_dropped)
    return made


# -- old and new together --------------------------------------------------------------------------


def join_responses(old: Responses, new: Responses) -> Responses:
    """Return both as one table: the same as if all rows had been read together, old ones first.

    What a worker says again on a task takes the place of what it said there before.

    >>> old = Responses.from_rows([("a", "ann", "x"), ("b", "ann", "x")])
    >>> new = Responses.from_rows([("b", "bob", "y"), ("c", "bob", "x")])
    >>> joined = join_responses(old, new)
    >>> joined, joined.label_of_each().tolist()
    (Responses(4 responses, 3 tasks, 2 workers, 2 classes), [0, 0, 1, 0])
    """
    tasks = old.tasks.merge(new.tasks)
    workers = old.workers.merge(new.workers)
    old = old.with_classes(new.classes)
    classes = old.classes
    worker = workers.codes(new.workers)[new.worker_of_each()].astype(np.int64)
    nothing = np.full(len(tasks) - old.n_tasks, old.n_responses)
    rows, n_again = merge(
        SortedRows(np.concatenate([old.start, nothing]), old.code, old.weight),
        tasks.codes(new.tasks)[new.task_of_each()],
        worker * len(classes) + classes.codes(new.classes)[new.label_of_each()],
        new.weight,
        len(classes),
    )
    if n_again:
        note(
            f"{counted(n_again, 'response')} of the model said anew by the same worker on "
            "the same task; the last one counts."
        )
    known = old.runs or new.runs
    newer = None if old.runs is None else new.runs
    n_given = len(rows.code) if n_again else old.n_given + new.n_given
    return Responses(
        rows.start,
        rows.code,
        tasks,
        workers,
        classes,
        n_empty=old.n_empty + new.n_empty,
        n_repeats=old.n_repeats + new.n_repeats + n_again,
        frame=old.frame,
        is_class_ordered=old.is_class_ordered,
        weight=rows.weight,
        runs=None if known is None else known.joined(newer, n_given),
    )


class SortedRows(NamedTuple):
    """Responses sorted by task and code: those of task i are code[start[i]:start[i + 1]]."""

    start: Offsets
    code: Codes  # or of 64 bits, where there are too many for 32
    weight: Floats | None


def merge(
    old: SortedRows, task: Codes, code: Offsets, weight: Floats | None, n_classes: int
) -> tuple[SortedRows, int]:
    """Put new responses among the old ones; return all, and how many old ones were said anew.

    Tasks that get none move as a block: where a thousand come to a million this takes 0.01 s, and
    sorting all of them 0.28 s.
    """
    touched = np.unique(task)
    n_of_each = np.diff(old.start)
    place = _ranges(old.start[touched], n_of_each[touched])  # of old responses on touched tasks
    former = np.repeat(touched, n_of_each[touched])
    n_workers = 1 + max(int(code.max(initial=0)), int(old.code.max(initial=0))) // n_classes
    is_again = np.isin(
        former.astype(np.int64) * n_workers + old.code[place] // n_classes,
        task.astype(np.int64) * n_workers + code // n_classes,
    )
    place_kept = place[~is_again]
    both_task = np.concatenate([former[~is_again], task])
    both_code = np.concatenate([old.code[place_kept], code])
    order = np.lexsort((both_code, both_task))
    n_of_each[touched] = np.bincount(np.searchsorted(touched, both_task), minlength=len(touched))
    start = np.concatenate([[0], np.cumsum(n_of_each)])
    is_old = np.ones(len(old.code), dtype=bool)
    is_old[place] = False
    is_new = np.zeros(start[-1], dtype=bool)
    is_new[_ranges(start[touched], n_of_each[touched])] = True

    def spread(all_old: Any, of_touched: Any, kind: Any) -> Any:
        out = np.empty(start[-1], dtype=kind)
        out[~is_new] = all_old[is_old]
        out[is_new] = of_touched[order]
        return out

    both_weight = None
    if old.weight is not None or weight is not None:
        first = weights_or_ones(old.weight, len(old.code))
        second = weights_or_ones(weight, len(code))
        both_weight = spread(first, np.concatenate([first[place_kept], second]), np.float64)
    kind = np.int64 if n_workers * n_classes >= INT32_END else np.int32
    return SortedRows(start, spread(old.code, both_code, kind), both_weight), int(is_again.sum())


def _ranges(start: Offsets, length: Offsets) -> Offsets:
    """Return start[0], …, start[0] + length[0] − 1, start[1], … and so on.

    >>> _ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(length) - length
    return np.asarray(np.arange(int(length.sum())) + np.repeat(start - before, length))


def _join_gold(old: Gold | None, new: Gold | None) -> Gold | None:
    """Return both as one table; a task that is known otherwise now is refused."""
    if old is None or new is None:
        return new if old is None else old
    known = old.to_dict()
    for task, label in new.to_dict().items():
        former = known.setdefault(task, label)
        if former != label:
            raise GoldError(
                f"Task {task!r} is known as {former!r} in the model, and now as {label!r}. "
                "Correct the one that is wrong; to change what the model knows, fit it again."
            )
    tasks = old.tasks.merge(new.tasks)
    classes = old.classes.merge(new.classes)
    codes = np.empty(len(tasks), dtype=np.int32)
    codes[tasks.codes(list(known))] = classes.codes(list(known.values()))
    return Gold(tasks, codes, classes, np.arange(len(tasks)), Source("the model and what is new"))
