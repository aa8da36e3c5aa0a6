"""Two people who answer in turn, with the fits and the choices of a session, but no file."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
from crowds import Asked, macro_f, new_model

PEOPLE = ("ann", "bob")


def answer_in_turn(
    crowd: Asked,
    rng: np.random.Generator,
    rate: float,
    cost: float,
    after: list[float],
    budgets: list[float],
) -> list[float]:
    """Return macro-F after each budget; bob errs."""
    from tiebreak.ask.evidence import believed, fallible, state_of
    from tiebreak.ask.job import Job
    from tiebreak.options import ExactLinkOptions
    from tiebreak.selection.questions import check_costs, choose_questions
    from tiebreak.selection.state import own_probabilities

    job = Job(crowd.responses, among=crowd.names)
    costs = check_costs(("same", "label"), {"label": cost})
    events: list[Any] = []
    told: set[tuple[str, tuple[str, str, str]]] = set()
    model = crowd.plain
    given = fallible(job, events, own_probabilities(model))
    turn = cycle(PEOPLE)
    spent = 0.0
    scores = []
    for stop in after:
        q = believed(job, model, given.weighed, events)
        state = state_of(job, model, q, given.weighed)
        n = int(stop - spent) + 1 + len(told)
        for row in choose_questions(model, state, n, ("same", "label"), costs, rng):
            if spent + row.cost > stop + 1e-9:
                break
            who = next(turn)
            event = answered(
                job, crowd, row, who, len(events) + 1, rate if who == "bob" else 0, rng
            )
            if (who, event.subject) in told:
                continue
            told.add((who, event.subject))
            events.append(event)
            spent += row.cost
        given = fallible(job, events, own_probabilities(model))
        links = ExactLinkOptions(error=given.link_error)
        model = new_model(link_options=links).fit(
            given.responses, links=given.links, gold=given.gold, start=model
        )
        if stop in budgets:
            scores.append(macro_f(crowd, model.labels_.label))
    return scores


def answered(
    job: Any, crowd: Asked, row: Any, who: str, id: int, rate: float, rng: np.random.Generator
) -> Any:
    """Return the event of an answer, which is wrong so often."""
    from asking import another, is_same

    from tiebreak.ask.log import Event

    errs = rng.random() < rate
    left = job.key[job.code_of(row.task)]
    event = Event(id, str(id), "run", "now", who, "label", left, question=row.kind)
    if row.kind == "same":
        same = is_same(crowd, row.task, row.other) != errs
        right = job.key[job.code_of(row.other)]
        return event._replace(kind="same" if same else "different", right=right)
    label = int(crowd.truth[job.code_of(row.task)])
    label = int(another(crowd, label, rng)) if errs else label
    return event._replace(label=job.class_key[label])
