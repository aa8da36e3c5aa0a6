"""Constraints on small crowds: what enumeration says of probabilities, labels, contradictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from constrained_crowds import CLASSES, draw_records, enumerate_all

import tiebreak as tb
from tiebreak.data import Ids
from tiebreak.errors import ConstraintError
from tiebreak.inference import Inputs, read_and_check_inputs
from tiebreak.inference.door import rules_of
from tiebreak.inference.tasks.coupling.constrain import constrain
from tiebreak.links import factors

pytestmark = pytest.mark.filterwarnings("ignore:The responses speak against")
N_QUICK = 60
MOST_LABELLINGS = 1100


class Case:
    """A drawn crowd: scores, constraints, known labels."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n_classes = int(rng.integers(2, 5))
        n_tasks = int(rng.integers(2, 9))
        while n_classes**n_tasks > MOST_LABELLINGS:
            n_tasks -= 1
        self.tasks = [f"t{i}" for i in range(n_tasks)]
        self.classes = list(CLASSES[:n_classes])
        self.scores = rng.normal(0.0, 2.0, (n_tasks, n_classes))
        self.records = draw_records(rng, self.tasks, n_classes)
        is_known = rng.random(n_tasks) < 0.15
        self.known = {
            t: self.classes[int(rng.integers(n_classes))]
            for t, known in zip(self.tasks, is_known, strict=True)
            if known
        }
        self.truth = enumerate_all(self.scores, self.tasks, self.records, self.known)

    def inputs(self) -> Inputs:
        empty = np.zeros(len(self.tasks) + 1, np.int64), np.empty(0, np.int32)
        crowd = tb.Responses(*empty, Ids(self.tasks), Ids(["w"]), Ids(self.classes))
        gold = None
        if self.known:
            gold = tb.Gold.from_dict(self.known).on(crowd.tasks, crowd.classes)
        return Inputs(crowd, None, None, None, gold, None)

    def conditioned(self) -> tuple[Any, Any]:
        q = np.exp(self.scores - np.logaddexp.reduce(self.scores, axis=1, keepdims=True))
        for task, name in self.known.items():
            q[self.tasks.index(task)] = np.arange(q.shape[1]) == self.classes.index(name)
        rules = rules_of(self.inputs(), tb.Constraints.from_records(self.records))
        assert rules is not None
        q, label, _ = constrain(rules, q, q.argmax(axis=1).astype(np.int32))
        return q, label


def agrees(seed: int) -> bool:
    """Compare with enumeration; return whether the constraints can hold."""
    case = Case(seed)
    if not case.truth.is_feasible:
        with pytest.raises(ConstraintError) as raised:
            case.conditioned()
        assert raised.value.code == "constraints-contradict"
        check_conflict(case, raised.value)
        return False
    q, label = case.conditioned()
    np.testing.assert_allclose(q, case.truth.q, atol=1e-9)
    row = np.flatnonzero((case.truth.labellings == label).all(axis=1))[0]
    assert np.isfinite(case.truth.worth[row])
    check_joint(case, label)
    return True


def check_joint(case: Case, label: Any) -> None:
    """Where a component does not have its likeliest single labels, it has its best joint ones."""
    marginal = case.truth.q.argmax(axis=1)
    rules = rules_of(case.inputs(), tb.Constraints.from_records(case.records))
    assert rules is not None
    tied = rules.network()
    component = np.full(len(case.tasks), -1)
    component[tied.member] = tied.network.component[tied.node]
    for c in np.unique(component[label != marginal]):
        same_elsewhere = (case.truth.labellings == label)[:, component != c].all(axis=1)
        own = (case.truth.labellings == label).all(axis=1)
        assert case.truth.worth[own][0] >= case.truth.worth[same_elsewhere].max() - 1e-9


def check_conflict(case: Case, error: ConstraintError) -> None:
    """What is named cannot hold together, and nothing of it can be spared."""
    table = tb.Constraints.from_records(case.records)
    codes = case.inputs().gold_codes
    given = [] if codes is None else codes.task.tolist()
    named: list[Any] = []
    for kind, at in zip(error.fields["kinds"], error.fields["places"], strict=True):  # type: ignore[call-overload]
        if kind == "gold":
            named.append((case.tasks[given[at]], case.known[case.tasks[given[at]]]))
        else:
            named.append(case.records[int(table.row[at])])

    def can_hold(items: list[Any]) -> bool:
        known: dict[str, str] = dict(item for item in items if isinstance(item, tuple))
        records = [item for item in items if isinstance(item, dict)]
        return enumerate_all(case.scores, case.tasks, records, known).is_feasible

    assert not can_hold(named)
    for i in range(len(named)):
        rest = named[:i] + named[i + 1 :]
        assert can_hold(rest), f"{named[i]} can be spared"


def test_small_crowds_are_as_enumeration_says() -> None:
    feasible = [agrees(seed) for seed in range(N_QUICK)]
    assert 0 < sum(feasible) < len(feasible)  # both kinds were met


def test_compiled_elimination_is_as_enumeration_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "COMPILED", 0)
    for seed in range(20):
        agrees(seed)


@pytest.mark.long
def test_thousands_of_small_crowds_are_as_enumeration_says() -> None:
    for seed in range(N_QUICK, 2500):
        agrees(seed)


@pytest.mark.filterwarnings("ignore")
def test_hard_links_beside_constraints_are_as_enumeration_says() -> None:
    """Links merge tasks, with two classes cannot-links too: as if they were rules."""
    n_feasible = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_classes, n_tasks = int(rng.integers(2, 4)), int(rng.integers(3, 6))
        tasks, classes = [f"t{i}" for i in range(n_tasks)], CLASSES[:n_classes]
        votes = [(task, "w", classes[0]) for task in tasks]
        votes += [(tasks[0], f"v{k}", k) for k in classes]
        records = draw_records(rng, tasks, n_classes)[:3]
        pairs: dict[str, list[Any]] = {"must": [], "cannot": []}
        for _ in range(rng.integers(1, 3)):
            pair = rng.choice(tasks, 2, replace=False).tolist()
            pairs["must" if rng.random() < 0.5 else "cannot"].append(tuple(pair))
        linked = [{"same": list(pair)} for pair in pairs["must"]]
        linked += [{"different": list(pair)} for pair in pairs["cannot"]]
        scores = rng.normal(0.0, 2.0, (n_tasks, n_classes))
        truth = enumerate_all(scores, tasks, records + linked, {})
        links = tb.Links.from_pairs(**pairs, sampling="pairs")
        try:
            inputs = read_and_check_inputs(votes, links, None, constraints=records)
        except tb.InputError:
            assert not truth.is_feasible
            continue
        assert truth.is_feasible
        n_feasible += 1
        assert inputs.rules is not None
        at = inputs.responses.tasks.codes(tasks)
        q = np.empty(scores.shape)
        q[at] = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
        q, _, _ = constrain(inputs.rules, q, q.argmax(axis=1).astype(np.int32))
        tied = np.isin(at, inputs.rules.network().member)  # links alone act before this stage
        expected = np.zeros(scores.shape)
        expected[:, : truth.q.shape[1]] = truth.q
        np.testing.assert_allclose(q[at][tied], expected[tied], atol=1e-9)
    assert n_feasible > 30
