"""A worker model in one file works everywhere: in fits, files, streams, shards and commands.

Two models of a user's own: confusion matrices written anew with the methods of the seam and nothing
else, and one with a single parameter a worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, psi
from typer.testing import CliRunner

import tiebreak as tb
from tiebreak.cli.app import app
from tiebreak.inference import workers
from tiebreak.kernels import Floats
from tiebreak.life import Stream


@dataclass(frozen=True, eq=False)
class Toy(workers.Workers):
    """Confusion matrices under another name."""

    prior: Any = None
    n_workers: int = 0
    prior_of_new: Any = None

    def of(self, crowd: workers.CrowdFacts) -> Toy:
        return Toy(crowd.whole_prior(), crowd.n_workers, crowd.prior_of_new())

    def collect(self, counts: Floats) -> Floats:
        return counts.reshape(self.n_workers, self.n_classes, self.n_states)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        logs = psi(parameters) - psi(parameters.sum(axis=1, keepdims=True))
        return np.asarray(logs.reshape(-1, self.n_states))

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        prior = np.broadcast_to(self.prior, parameters.shape)
        after, before = (
            gammaln(each).sum() - gammaln(each.sum(axis=1)).sum() for each in (parameters, prior)
        )
        return float(after - before)

    def confusion(self, parameters: Floats) -> Floats:
        mean = parameters / parameters.sum(axis=1, keepdims=True)
        return np.ascontiguousarray(mean.transpose(0, 2, 1))


@dataclass(frozen=True, eq=False)
class Slips(workers.Workers):
    """One parameter a worker: its wrong answers, a Poisson count with a Gamma prior on its rate.

    Right answers are the rule and weigh nothing; a wrong one weighs the expected log of the rate.
    """

    by_worker = ("prior", "n_answers")

    prior: Any = None  # (1, 1)
    n_workers: int = 0
    prior_of_new: Any = None
    n_answers: Any = None  # (n_workers,) of each, and as many as the prior has
    n_answers_of_new: Any = None
    labels: int = 0

    @property
    def n_classes(self) -> int:
        return self.labels

    @property
    def n_states(self) -> int:
        return self.labels

    def of(self, crowd: workers.CrowdFacts) -> Slips:
        one, few = np.ones((1, 1)), np.full(1, 4.0)
        counts = crowd.counts_of_labels()
        n_answers = counts.sum(axis=1) + few
        return Slips(one, crowd.n_workers, one, n_answers, few, crowd.n_classes)

    def collect(self, counts: Floats) -> Floats:
        table = counts.reshape(self.n_workers, self.labels, self.labels)
        wrong = table.sum(axis=(1, 2)) - np.trace(table, axis1=1, axis2=2)
        return np.asarray(wrong[:, None])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        rate = psi(parameters[:, 0]) - np.log(self.n_answers * (self.labels - 1))
        return self._table(np.zeros(self.n_workers), rate).reshape(-1, self.labels)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        n_wrong = (parameters - self.prior)[:, 0]
        return float(
            gammaln(parameters).sum() - n_wrong @ np.log(self.n_answers * (self.labels - 1))
        )

    def confusion(self, parameters: Floats) -> Floats:
        wrong = np.minimum(parameters[:, 0] / self.n_answers, 0.99)
        return self._table(1.0 - wrong, wrong / (self.labels - 1))

    def cells(self, parameters: Floats) -> workers.WorkerCells:
        return workers.WorkerCells.of_confusions(
            self.confusion(parameters).transpose(0, 2, 1) + 1.0
        )

    def _table(self, right: Floats, wrong: Floats) -> Floats:
        is_right = np.eye(self.labels, dtype=bool)
        return np.where(is_right, right[:, None, None], wrong[:, None, None])


CROWD = tb.simulate.crowd(200, 8, 3, responses_per_task=4, random_state=0)
GOLD = dict(list(CROWD.gold.to_dict().items())[:30])
LINKS = tb.simulate.links(CROWD.gold, 40, random_state=1)
OWN = pytest.mark.parametrize("own", [Toy(), Slips()], ids=["toy", "slips"])


def made(own: workers.Workers) -> tb.VariationalBayes:
    return tb.VariationalBayes(worker_model=own)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Callable[[workers.Workers], str]:
    """Let a name stand for a model, as a line in MODELS does."""

    def name(own: workers.Workers) -> str:
        monkeypatch.setitem(workers.MODELS, "own", own)
        return "own"

    return name


@OWN
def test_fits_climb_with_gold_and_links(own: workers.Workers) -> None:
    for given in ({}, {"gold": GOLD}, {"links": LINKS}, {"gold": GOLD, "links": LINKS}):
        model = made(own).fit(CROWD.responses, **given)
        assert np.diff(model.bounds_).min() >= -1e-9
        assert tb.evaluate.accuracy(model.labels_, CROWD.gold) > 0.8


@OWN
def test_the_table_is_the_gradient_of_the_evidence(own: workers.Workers) -> None:
    model = own.of(workers.CrowdFacts.of_responses(CROWD.responses))
    rng = np.random.default_rng(0)
    shape = (model.n_workers * model.n_classes, model.n_states)
    counts = rng.uniform(0.5, 5.0, shape)

    def evidence(at: Floats) -> float:
        return model.log_evidence(model.prior + model.collect(at))

    table = model.log_table(model.prior + model.collect(counts))
    for _ in range(20):
        way = rng.normal(size=shape)
        step = 1e-5
        slope = (evidence(counts + step * way) - evidence(counts - step * way)) / (2 * step)
        assert slope == pytest.approx(float((table * way).sum()), rel=1e-5, abs=1e-5)


@OWN
def test_everything_else_works(own: workers.Workers, tmp_path: Path) -> None:
    model = made(own).fit(CROWD.responses)
    label = CROWD.responses.classes[0]
    worker = CROWD.responses.workers[0]
    with pytest.warns(tb.InputNote, match="stranger"):
        labels = model.predict([("n", worker, label), ("n", "stranger", label)])
    assert labels.best() == {"n": label}
    assert len(model.workers_table().workers) == 8
    assert len(model.decide().decision) == 200
    assert len(tb.selection.questions(model, n=3)) == 3
    model.save(tmp_path / "m.tbm")
    opened: Any = tb.load(tmp_path / "m.tbm")
    assert np.array_equal(opened.probabilities_, model.probabilities_)
    assert type(opened._crowd_model.workers) is type(own)
    for each in (opened, model):
        each.update([("new", worker, label), ("new", "newcomer", label)])
    assert opened.labels_.best() == model.labels_.best()
    stream = Stream(made(own).fit(CROWD.responses))
    slots = stream.add(["new"], ["somebody"], [label])
    assert len(slots) == 1


@OWN
def test_shards_and_commands_take_it_by_name(
    own: workers.Workers,
    named: Callable[[workers.Workers], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = named(own)
    monkeypatch.chdir(tmp_path)
    CROWD.responses.write("responses.csv")
    run = ("fuse", "responses.csv", "--method", "vb", "--set", f"worker_model={name}")
    result = CliRunner().invoke(app, [*run, "-o", "labels.csv"])
    assert result.exit_code == 0, result.output
    expected = made(own).fit(CROWD.responses).labels_.best()
    assert tb.read_labels("labels.csv").best() == expected
    result = CliRunner().invoke(app, [*run, "-o", "shards.csv", "--out-of-core"])
    assert result.exit_code == 0, result.output
    assert tb.read_labels("shards.csv").best() == expected


def test_toy_is_the_model_it_copies() -> None:
    for given in ({}, {"gold": GOLD}, {"links": LINKS}):
        own = made(Toy()).fit(CROWD.responses, **given)
        plain = tb.VariationalBayes().fit(CROWD.responses, **given)
        assert np.abs(own.probabilities_ - plain.probabilities_).max() < 1e-9


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(tb.errors.OptionError, match="worker_model"):
        tb.VariationalBayes(worker_model=3).fit(CROWD.responses)  # type: ignore[arg-type]
