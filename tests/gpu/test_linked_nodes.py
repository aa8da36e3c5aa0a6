"""Links where sweeps run elsewhere: what crosses, what is inferred there, what is inferred here.

`NodesElsewhere` stands for a device: it does what `CudaNodes` does, with the reference kernels.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.inference import estimator, publishing
from tiebreak.inference.exact_links import on_device
from tiebreak.kernels import reference
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import LINKED, ByTask, Floats, Swept
from tiebreak.kernels.network import Forest
from tiebreak.kernels.sweeper import Logs


class NodesElsewhere:
    """Trees by messages between neighbours that differ, one node after the other."""

    opened = 0

    def __init__(self, nodes: ByTask, q: Floats, forest: Forest, forbidden: Any) -> None:
        NodesElsewhere.opened += 1
        self.nodes = nodes
        self.q = q.copy()
        self.forest = forest
        self.forbidden = forbidden
        self.tied = np.flatnonzero(nodes.role == LINKED)
        is_rest = np.ones(len(self.tied), dtype=bool)
        is_rest[forest.visit] = False
        self.rest = self.tied[is_rest]

    def score(self, logs: Logs) -> Floats:
        u = np.empty_like(self.q)
        before = self.q.copy()
        self.alone = reference.sweep_tasks(self.q, u, self.nodes, *logs, counting=False)
        rest = u[self.rest].copy()
        tied = u[self.tied]
        tied[self.forbidden] = -np.inf
        self.value = 0.0
        for low, high in zip(self.forest.first[:-1], self.forest.first[1:], strict=True):
            self.value += self._infer(tied, low, high)
        self.change = np.abs(self.q - before)[self.tied].max(initial=0.0)
        return np.asarray(rest)

    def _infer(self, tied: Floats, low: int, high: int) -> float:
        score = tied[self.forest.visit[low:high]]
        parent = self.forest.parent[low:high] - low
        total = score.copy()
        up = np.zeros_like(total)
        for i in range(high - low - 1, 0, -1):
            up[i] = _all_others(total[i])
            total[parent[i]] += up[i]
        log_partition = np.logaddexp.reduce(total[0])
        for i in range(1, high - low):
            total[i] += _all_others(total[parent[i]] - up[i])
        belief = np.exp(total - np.logaddexp.reduce(total, axis=1)[:, None])
        self.q[self.tied[self.forest.visit[low:high]]] = belief
        expected = (belief * np.where(belief > 0.0, score, 0.0)).sum()
        return float(log_partition - expected)

    def count(self, beliefs: Floats) -> Swept:
        self.q[self.rest] = beliefs
        everyone = np.ones(len(self.q), dtype=bool)
        counts, totals = reference.tally(self.q, self.nodes, everyone)
        change = max(self.alone.change, float(self.change))
        return Swept(counts, totals, change, self.alone.entropy + self.value, 0.0)

    def put(self, q: Floats) -> None:
        self.q[:] = q

    def close(self) -> None:
        del self.q


def _all_others(given: Floats) -> Floats:
    """Return of each class the log of the sum over all others."""
    n = len(given)
    return np.array([np.logaddexp.reduce(np.delete(given, k)) for k in range(n)])


class Elsewhere(SimpleNamespace):
    """The reference kernels, with nodes elsewhere."""

    sweeps_here = False
    open_nodes = staticmethod(NodesElsewhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(reference, name)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `backend="cuda"` be the reference kernels with nodes elsewhere."""

    def chosen(name: str, *sizes: int) -> Any:
        return Elsewhere() if name == "cuda" else choose_backend(name, *sizes)

    monkeypatch.setattr(estimator, "choose_backend", chosen)
    monkeypatch.setattr(publishing, "where", lambda backend: "elsewhere")
    monkeypatch.setattr(NodesElsewhere, "opened", 0)


CROWD = tb.simulate.crowd(120, 20, 4, responses_per_task=4, random_state=3)


def fit(backend: str, links: Any, **options: Any) -> tb.VariationalBayes:
    model = tb.VariationalBayes(backend=backend, tol=0.0, max_iter=25, **options)
    return model.fit(CROWD.responses, links=links)


@pytest.mark.parametrize("largest", [1, 3, 256])
@pytest.mark.parametrize("n_links", [25, 80, 200])
@pytest.mark.parametrize("calibrate", ["auto", "none"])
def test_a_fit_elsewhere_equals_one_here(
    elsewhere: None, monkeypatch: pytest.MonkeyPatch, largest: int, n_links: int, calibrate: str
) -> None:
    """Small trees there; large trees, small loops and large loops here, in one fit."""
    monkeypatch.setattr(on_device, "LARGEST_TREE", largest)
    links = tb.simulate.links(CROWD.gold, n_links, random_state=n_links)
    here = fit("numpy", links, calibrate=calibrate)
    there = fit("cuda", links, calibrate=calibrate)
    assert NodesElsewhere.opened
    assert there.link_report_ == here.link_report_
    np.testing.assert_allclose(there.bounds_, here.bounds_, rtol=1e-12)
    np.testing.assert_allclose(there.probabilities_, here.probabilities_, atol=1e-9)
    assert (there.labels_.label == here.labels_.label).all()


def test_classes_that_known_tasks_forbid(elsewhere: None) -> None:
    links = tb.simulate.links(CROWD.gold, 60, random_state=1)
    known = dict(list(CROWD.gold.to_dict().items())[:25])
    fits = [
        tb.VariationalBayes(backend=backend, tol=1e-9).fit(CROWD.responses, links=links, gold=known)
        for backend in ("numpy", "cuda")
    ]
    np.testing.assert_allclose(fits[1].bounds_, fits[0].bounds_, rtol=1e-12)
    np.testing.assert_allclose(fits[1].probabilities_, fits[0].probabilities_, atol=1e-9)


def test_nodes_that_do_not_fit_are_swept_here(
    elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Elsewhere, "open_nodes", staticmethod(lambda *given: None))
    links = tb.simulate.links(CROWD.gold, 60, random_state=1)
    there = fit("cuda", links)
    np.testing.assert_allclose(there.bounds_, fit("numpy", links).bounds_, rtol=1e-12)


def test_links_that_may_be_wrong_are_inferred_here(elsewhere: None) -> None:
    links = tb.simulate.links(CROWD.gold, 60, random_state=1)
    options = tb.ExactLinkOptions(error=0.1)
    soft = [fit(backend, links, link_options=options) for backend in ("numpy", "cuda")]
    assert not NodesElsewhere.opened
    np.testing.assert_allclose(soft[1].probabilities_, soft[0].probabilities_, atol=1e-12)
