"""Updates: a model goes on with more responses, links and gold.

Where responses are kept, an update is a fit of everything together that starts from the model.
Where only counts are kept, the tasks that have responses are fitted with the counts as their prior.
Beliefs of workers are a prior plus counts, so that a worker loses nothing. A task keeps its q; what
its responses said is then `log q − E[log π]`, as of now: later it moves by new responses and links
alone, and not because its workers turn out to be other than was believed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tiebreak import tables
from tiebreak.arguments import checks, number
from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Ids, as_text, hash_ids, mixed
from tiebreak.data.labels import Labels
from tiebreak.data.responses import INT32_END
from tiebreak.errors import GoldError, NotFittedError, OptionError, note
from tiebreak.inference import calibration
from tiebreak.inference.climb import Stopping
from tiebreak.inference.door import lay_out
from tiebreak.kernels.arrays import default_threads
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Codes, Floats, Offsets, weights_or_ones
from tiebreak.life import messages  # noqa: F401  # registered
from tiebreak.links import Constraints, Links
from tiebreak.options import require_word
from tiebreak.wording import Source

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator
    from tiebreak.estimators.variational_bayes import VariationalBayes

Fitted = TypeVar("Fitted", bound="Estimator")
KEEPS = ("responses", "counts")
CHUNK = 1 << 20  # responses whose marks are added up at a time


class Carried(NamedTuple):
    """What stays of responses that were dropped."""

    counts: Floats  # (n_codes, n_states) how often each worker gave each label in each state
    totals: Floats  # (n_states,) tasks that are gone wholly
    n_dropped: Floats  # (n_tasks,) responses that were dropped, by weight; 0: none


def refuse_unfitted(model: Estimator) -> None:
    if "labels_" not in vars(model):
        raise NotFittedError("not-fitted", name=type(model).__name__)


def require_keep(keep: str) -> None:
    require_word("keep", keep, KEEPS)


@checks(forget=number("above 0 and 1 at most", above=0.0, most=1.0))
def update(
    model: Estimator,
    responses: Any,
    links: Any,
    gold: Any,
    forget: float = 1.0,
    again: bool = False,
    features: Any = None,
    constraints: Any = None,
) -> None:
    """Let a model go on in its place; where that fails it stays as it was."""
    from tiebreak.estimators.variational_bayes import VariationalBayes

    refuse_unfitted(model)
    new = None if responses is None else tables.read_responses(responses)
    pairs = None if links is None else tables.read_links(links)
    known = None if gold is None else tables.read_gold(gold)
    if model.scale_ is not None:
        new = None if new is None else model.scale_.on(new)
        known = None if known is None else model.scale_.on_gold(known)
    rules = None if constraints is None else tables.read_constraints(constraints)
    keeps_counts = model._carried is not None or forget < 1.0
    if model.pairs_ is not None:
        raise OptionError("pairs-not-updated")
    has_features = model.classifier_weight_ is not None
    if has_features != (features is not None) or (has_features and keeps_counts):
        raise OptionError("features-not-updated", has_features=has_features)
    if keeps_counts and (rules is not None or model.constraints_ is not None):
        raise OptionError("constraints-need-responses")
    batches = model._batches
    if new is not None:
        before = batches_of(model)
        batch = digest(new)
        if keeps_counts and batch in before and not again:
            note("given-before", n=new.n_responses)
            new = None
            if pairs is None and known is None:
                return
        else:
            batches = (*before, batch)
    if not keeps_counts:
        made = _fit_all(model, new, pairs, known, features, rules)
    elif isinstance(model, VariationalBayes):
        made = _fit_touched(model, new, pairs, known, forget)
    else:
        raise OptionError("needs-responses", name=type(model).__name__)
    made._stream_notes = model._stream_notes
    made._batches = batches
    vars(model).clear()
    vars(model).update(vars(made))


def _fit_all(
    model: Estimator,
    new: Responses | None,
    links: Links | None,
    gold: Gold | None,
    features: Any = None,
    rules: Constraints | None = None,
) -> Estimator:
    """Fit everything together, from where the model is."""
    from tiebreak.estimators.majority_vote import MajorityVote
    from tiebreak.estimators.variational_bayes import VariationalBayes

    crowd = model.responses_ if new is None else join_responses(model.responses_, new)
    pairs = model.links_ if links is None else links
    if links is not None and model.links_ is not None:
        pairs = model.links_ + links
    if rules is not None and model.constraints_ is not None:
        rules = model.constraints_ + rules
    given: dict[str, Any] = {"links": pairs, "gold": _join_gold(model.gold_, gold)}
    if vars(model).get("sequences_") is not None:
        given["sequences"] = model.sequences_
    if vars(model).get("network_") is not None:
        given["links"] = model.network_
    if features is not None:
        given["features"] = features
    given["constraints"] = model.constraints_ if rules is None else rules
    made = copy.copy(model)
    if isinstance(model, MajorityVote):
        return made.fit(crowd, **given)
    options = made.get_params()
    if model.scale_ is not None:  # found once; more responses do not ask again
        made.set_params(scale=model.scale_)
    if not isinstance(model, VariationalBayes):
        return made.fit(crowd, **given, start=model).set_params(**options)
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
        assert model._carried is not None  # they were dropped
        model._carried = model._carried._replace(counts=model._carried.counts * forget)
    stream = Stream(model)
    tasks = model.tasks_ if new is None else model.tasks_.merge(new.tasks)
    touched = [np.flatnonzero(np.diff(model.responses_.start)).astype(np.int32)]
    if new is not None:
        stream.tasks.slots(_named(tasks, new.tasks, np.arange(new.n_tasks)))  # answered or not
        columns = (
            _named(tasks, new.tasks, new.task_of_each()),
            _named(model.workers_.merge(new.workers), new.workers, new.worker_of_each()),
            _named(model.classes_.merge(new.classes), new.classes, new.label_of_each()),
        )
        touched.append(stream.add(*columns))
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
    return stream.publish()[0]


def _named(merged: Ids, given: Ids, codes: Any) -> list[Any]:
    """Return ids as the model has them: 7 of a table is "7" where those of the model are text."""
    return list(merged.take(merged.codes(given)[codes]))


# Batches that were given


def batches_of(model: Estimator) -> tuple[str, ...]:
    """Return what a model was given so far: that of its fit, where it was never updated."""
    return model._batches or (digest(model.responses_),)


def digest(responses: Responses) -> str:
    """Return a short name of what responses say; the order of rows and of ids does not count.

    >>> rows = [("a", "ann", "x"), ("b", "bob", "y"), ("b", "ann", "x")]
    >>> digest(Responses.from_rows(rows)) == digest(Responses.from_rows(rows[::-1]))
    True
    """
    names = (responses.tasks, responses.workers, responses.classes)
    of_task, of_worker, of_label = (hash_ids(Ids(as_text(each.values))) for each in names)
    task = responses.task_of_each()
    total = 0
    for low in range(0, responses.n_responses, CHUNK):
        part = slice(low, low + CHUNK)
        worker, label = np.divmod(responses.code[part], responses.n_classes)
        marks = mixed(of_task[task[part]] + mixed(of_worker[worker] + mixed(of_label[label])))
        if responses.weight is not None:
            marks = mixed(marks + np.ascontiguousarray(responses.weight[part]).view(np.uint64))
        total += int(marks.sum(dtype=np.uint64))
    return f"{responses.n_responses}-{total % (1 << 64):016x}"


# Counts in the place of responses


def refuse_counts(model: Any) -> None:
    """Refuse to go on from counts where tasks are in sequences, or depend on more."""
    if model.pairs_ is not None:
        raise OptionError("pairs-not-updated")
    if any(vars(model).get(name) is not None for name in ("sequences_", "network_")):
        raise OptionError("sequences-need-responses")
    if model.classifier_weight_:
        raise OptionError("features-not-counted")


def drop_responses(model: Fitted) -> Fitted:
    """Return the model with counts in the place of all its responses."""
    if "_opinions" in vars(model):
        raise OptionError("votes-not-counted")
    refuse_counts(model)
    crowd = model.responses_
    state = vars(model).get("_state")
    q = model.probabilities_ if state is None else state.q
    rows = lay_out(crowd)
    backend = choose_backend("auto", crowd.n_responses)
    counts, _ = backend.open(rows, np.ascontiguousarray(q), default_threads()).tally()
    carried = Carried(counts, np.zeros(counts.shape[1]), calibration.n_responses(rows))
    former = model._carried
    if former is not None:
        n_dropped = carried.n_dropped + former.n_dropped
        carried = Carried(counts + former.counts, former.totals, n_dropped)
    made = copy.copy(model)
    made._batches = batches_of(model)
    made._carried = carried
    made.responses_ = replace(
        crowd, start=np.zeros_like(crowd.start), code=crowd.code[:0].copy(), weight=None
    )
    return made


def drop_tasks(model: Estimator, empty: Responses, n_states: int) -> None:
    """Let a model of counts keep no task: `empty` has its workers and classes alone."""
    model.responses_ = empty
    model.tasks_ = empty.tasks
    model.probabilities_ = np.zeros((0, empty.n_classes))
    model.labels_ = Labels.from_probabilities(empty.tasks, empty.classes, model.probabilities_)
    state = vars(model).get("_state")
    if state is not None:
        vars(model)["_state"] = state._replace(q=np.zeros((0, n_states)))


# Old and new together


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
        note("answered-anew", n=n_again)
    runs = old.runs or new.runs
    if runs is not None:
        n_given = len(rows.code) if n_again else old.n_given + new.n_given
        runs = runs.joined(None if old.runs is None else new.runs, n_given)
    return replace(
        old,
        start=rows.start,
        code=rows.code,
        tasks=tasks,
        workers=workers,
        n_empty=old.n_empty + new.n_empty,
        n_repeats=old.n_repeats + new.n_repeats + n_again,
        weight=rows.weight,
        runs=runs,
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

        old of task 0     u:K v:K x:K         new of task 0     v:M w:K
        places            0   1   2           v replaces 1, w goes before 2

    They are inserted: to sort all again takes many times as long where few come to a million.
    """
    order = np.lexsort((code, task))
    task, code = task[order], code[order]
    n_workers = 1 + max(int(code.max(initial=0)), int(old.code.max(initial=0))) // n_classes
    of_old = np.repeat(np.arange(len(old.start) - 1) * n_workers, np.diff(old.start))
    of_old += old.code // n_classes  # task and worker in one number, ascending
    pair = task.astype(np.int64) * n_workers + code // n_classes
    low = np.searchsorted(of_old, pair, "left")
    high = np.searchsorted(of_old, pair, "right")
    n_old = len(of_old)
    has_some = high > low
    edges = np.bincount(np.unique(low[has_some]), minlength=n_old + 1)
    edges -= np.bincount(np.unique(high[has_some]), minlength=n_old + 1)
    is_kept = np.cumsum(edges[:-1]) == 0
    n_kept = np.concatenate([[0], np.cumsum(is_kept)])  # before each place
    start = n_kept[old.start]
    start[1:] += np.cumsum(np.bincount(task, minlength=len(start) - 1))
    kind = np.int64 if n_workers * n_classes >= INT32_END else np.int32
    both = np.insert(old.code[is_kept].astype(kind, copy=False), n_kept[low], code)
    both_weight = None
    if old.weight is not None or weight is not None:
        first = weights_or_ones(old.weight, n_old)[is_kept]
        both_weight = np.insert(first, n_kept[low], weights_or_ones(weight, len(code))[order])
    return SortedRows(start, both, both_weight), n_old - int(n_kept[-1])


def _join_gold(old: Gold | None, new: Gold | None) -> Gold | None:
    """Return both as one table; a task that is known otherwise now is refused."""
    if old is None or new is None:
        return new if old is None else old
    known = old.to_dict()
    for task, label in new.to_dict().items():
        former = known.setdefault(task, label)
        if former != label:
            raise GoldError("gold-changed", task=task, former=former, label=label)
    tasks = old.tasks.merge(new.tasks)
    classes = old.classes.merge(new.classes)
    codes = np.empty(len(tasks), dtype=np.int32)
    codes[tasks.codes(list(known))] = classes.codes(list(known.values()))
    return Gold(tasks, codes, classes, np.arange(len(tasks)), Source("the model and what is new"))
