"""Updates: a model goes on with more responses, links and gold.

Where responses are kept, an update is a fit of everything together that starts from the model.
Where only counts are kept, the tasks that have responses are fitted with the counts as their prior.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tiebreak import tables
from tiebreak.arguments import checks, number
from tiebreak.data import Responses, ids
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Ids
from tiebreak.errors import NotFittedError, OptionError, note
from tiebreak.estimators.base import Estimator
from tiebreak.estimators.majority_vote import MajorityVote
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.inference.vb import Stopping
from tiebreak.life.dropping import batches_of, digest, drop_responses
from tiebreak.life.joining import join_gold, join_links, join_responses
from tiebreak.life.online import Stream
from tiebreak.links import Links
from tiebreak.wording import counted


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
                "and are left out. again=True (--again) counts them once more."
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
    crowd = model.responses_ if new is None else join_responses(model.responses_, new)
    pairs = join_links(model.links_, links)
    known = join_gold(model.gold_, gold)
    given: dict[str, Any] = {"links": pairs, "gold": known}
    if isinstance(model, MajorityVote):
        return copy.copy(model).fit(crowd, **given)
    if not isinstance(model, VariationalBayes):
        return copy.copy(model).fit(crowd, **given, start=model)
    made = copy.copy(model)
    options = made.get_params()
    made.set_params(confusion_prior=_by_worker(model), init=_init(options["init"]))
    made.fit(crowd, **given, start=model)
    return made.set_params(**options)


def _by_worker(model: VariationalBayes) -> Any:
    """Return the prior of workers; one array for all of them is named by worker: more may come."""
    prior = model.confusion_prior
    if isinstance(prior, str | Mapping) or np.ndim(prior) != 3:
        return prior
    return dict(zip(model.workers_, np.asarray(prior), strict=True))


def _init(given: Any) -> Any:
    """Return the option; probabilities that the first fit started from have served."""
    return given if isinstance(given, str) else "majority"


def _fit_touched(
    model: VariationalBayes,
    new: Responses | None,
    links: Links | None,
    gold: Gold | None,
    forget: float,
) -> VariationalBayes:
    """Fit tasks that are touched or have responses, with the counts of others as their prior."""
    if forget < 1.0:
        model = drop_responses(model)
        assert model._carried is not None
        faded = model._carried._replace(counts=model._carried.counts * forget)
        model._carried = faded
    stream = Stream(model)
    tasks = model.tasks_ if new is None else ids.merge(model.tasks_, new.tasks)
    touched = [np.flatnonzero(np.diff(model.responses_.start)).astype(np.int32)]
    if new is not None:
        stream.tasks.slots(_names(tasks, new.tasks, np.arange(new.n_tasks)))  # answered or not
        touched.append(
            stream.add(
                _names(tasks, new.tasks, new.task_of_each()),
                _names(ids.merge(model.workers_, new.workers), new.workers, new.worker_of_each()),
                _names(ids.merge(model.classes_, new.classes), new.classes, new.label_of_each()),
            )
        )
    if links is not None:
        links.on(tasks)  # refuses unknown tasks
        own = Ids(ids.as_list(tasks.take(tasks.codes(links.tasks))))
        touched.append(stream.link(replace(links, tasks=own)))
    if gold is not None:
        classes = ids.merge(Ids(stream.classes), gold.classes)
        known = gold.on(tasks, classes)  # refuses unknown tasks
        touched.append(
            stream.know(ids.as_list(tasks.take(known.task)), ids.as_list(classes.take(known.label)))
        )
    stopping = Stopping(model.tol, model.max_iter, accelerate=False)
    stream.visit(np.unique(np.concatenate(touched)), stopping, revisit=False)
    return stream.to_model()


def _names(merged: Ids, given: Ids, codes: Any) -> list[Any]:
    """Return ids as the model has them: 7 of a table is "7" where those of the model are text."""
    return ids.as_list(merged.take(merged.codes(given)[codes]))
