"""Trust: a worker who is known to be good starts with right answers, under every worker model."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

import tiebreak as tb
from tiebreak.data import Responses
from tiebreak.inference import MODELS, CrowdFacts, crowd_model

EVERY = pytest.mark.parametrize("name", MODELS)


def panel(n_classes: int, right: float, seed: int) -> tuple[Responses, tb.Gold, float]:
    """Draw six judges that err together and a person who errs apart, all right equally often."""
    judges = tb.simulate.crowd(
        800, 6, n_classes, responses_per_task=6, accuracy=right, shared=0.4, random_state=seed
    )
    gold = judges.gold
    person = tb.simulate.crowd_for(
        gold, 1, responses_per_task=1, accuracy=right, random_state=99 + seed
    )
    label = judges.responses.label_of_each().reshape(-1, 6)
    said = np.column_stack([label, person.responses.label_of_each()])
    names = ["j0", "j1", "j2", "j3", "j4", "j5", "ann"]
    rows = [
        (gold.tasks[i], names[w], gold.classes[int(said[i, w])])
        for i in range(800)
        for w in range(7)
    ]
    alone = float((said[:, 6] == gold.label).mean())
    return Responses.from_rows(rows), gold, alone


@pytest.mark.parametrize(("n_classes", "right"), [(2, 0.7), (2, 0.85), (4, 0.7)])
def test_a_trusted_person_is_not_outvoted_by_judges_that_err_together(
    n_classes: int, right: float
) -> None:
    responses, gold, alone = panel(n_classes, right, seed=3)
    trusted = tb.VariationalBayes(trust={"ann": 50}).fit(responses)
    assert tb.evaluate.accuracy(trusted.labels_, gold) >= alone


@EVERY
def test_trust_in_a_worker_raises_what_is_believed_of_them(name: str) -> None:
    crowd = tb.simulate.crowd(120, 6, 3, responses_per_task=4, random_state=1)
    who = crowd.responses.workers[2]
    place = 2
    diagonal = np.arange(3)
    plain = tb.VariationalBayes(worker_model=name).fit(crowd.responses)
    trusted = tb.VariationalBayes(worker_model=name, trust={who: 500}).fit(crowd.responses)
    gain = (
        trusted.confusion_[place, diagonal, diagonal] - plain.confusion_[place, diagonal, diagonal]
    )
    assert gain.min() > -1e-3
    assert trusted.confusion_[place, diagonal, diagonal].min() > 0.93


@EVERY
def test_trust_is_pseudo_counts_on_the_diagonal(name: str) -> None:
    """Only the trusted worker's prior moves, and only where answers are right."""
    responses = Responses.from_rows(
        [("a", "ann", "x"), ("b", "bob", "y"), ("b", "ann", "z"), ("c", "bob", "x")]
    )
    plain = crowd_model(name, CrowdFacts.of_responses(responses)).workers
    given = crowd_model(name, CrowdFacts.of_responses(responses, trust={"bob": 7.0})).workers
    added = np.broadcast_to(given.prior, (2, *given.prior.shape[1:])) - plain.prior
    assert np.allclose(added[0], 0.0)
    if name == "coin":
        assert np.allclose(added[1], [7.0, 0.0])
        return
    n_subtypes = given.n_states // 3
    assert np.allclose(added[1], 7.0 * np.repeat(np.eye(3), n_subtypes, axis=1))


def test_trust_in_nobody_and_in_less_than_nothing_is_refused() -> None:
    rows = [("a", "ann", "x"), ("a", "bob", "y")]
    with refused(tb.errors.OptionError, "prior-of-nobody trust"):
        tb.VariationalBayes(trust={"eve": 5}).fit(rows)
    with refused(tb.errors.OptionError, "wrong-value trust in worker 'ann'"):
        tb.VariationalBayes(trust={"ann": -1}).fit(rows)
