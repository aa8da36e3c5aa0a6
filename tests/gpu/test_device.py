"""The CUDA backend against the NumPy oracle. Everything here needs a device."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tiebreak as tb
from tiebreak.data import Ids, Responses
from tiebreak.kernels import AWAY, FREE, KNOWN, ByTask, lay_out, reference
from tiebreak.kernels.cuda import device, plan
from tiebreak.kernels.cuda.sweeper import CudaSweeper
from tiebreak.tables.array_folder import write_packed

pytestmark = pytest.mark.skipif(not device.is_available(), reason="no CUDA device")

TEN = [
    "bluebird",
    "dog",
    "music_genre",
    "product",
    "rte",
    "sentence_polarity",
    "trec",
    "web",
    "zencrowd_india",
    "zencrowd_us",
]


def laid_out(
    n_tasks: int, n_workers: int, n_classes: int, seed: int = 0, *, weighted: bool = False
) -> ByTask:
    """Tasks of 0 to 30 responses, one with 5,000, of all roles that a device sweeps."""
    rng = np.random.default_rng(seed)
    degree = rng.integers(0, 30, n_tasks)
    degree[n_tasks // 2] = 5_000
    start = np.concatenate([[0], np.cumsum(degree)])
    code = rng.integers(0, n_workers * n_classes, start[-1]).astype(np.int32)
    role = rng.choice([AWAY, FREE, KNOWN], n_tasks, p=[0.8, 0.1, 0.1]).astype(np.int8)
    weight = rng.uniform(0.1, 2.0, start[-1]) if weighted else None
    return lay_out(start, code, role, n_workers * n_classes, n_classes, weight)


def start_of(tasks: ByTask, n_states: int, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(n_states), tasks.n_tasks)
    known = tasks.role == KNOWN
    q[known] = np.eye(n_states)[q[known].argmax(axis=1)]
    return q


def logs_of(tasks: ByTask, n_states: int, seed: int = 2) -> Any:
    rng = np.random.default_rng(seed)
    table = np.log(rng.dirichlet(np.ones(n_states), tasks.n_codes))
    return np.log(rng.dirichlet(np.ones(n_states))), table


@pytest.mark.parametrize("n_states", [2, 3, 4, 8, 16, 20, 64])
@pytest.mark.parametrize("kind", ["plain", "weighted", "copies"])
@pytest.mark.parametrize("n_workers", [3, 40, 30_000])
def test_a_sweep_equals_the_reference(n_states: int, kind: str, n_workers: int) -> None:
    from tiebreak.kernels import cuda

    n_classes = min(n_states, 5)
    tasks = laid_out(1_000, n_workers, n_classes, weighted=kind == "weighted")
    rng = np.random.default_rng(3)
    copies = rng.integers(1, 1000, tasks.n_tasks).astype(float) if kind == "copies" else None
    q = start_of(tasks, n_states)
    logs = logs_of(tasks, n_states)
    oracle = reference.open(tasks, q.copy(), 1, copies)
    found = cuda.open(tasks, q.copy(), 1, copies)
    scale = 1.0 if copies is None else float(copies.max())
    for chosen in (None, tasks.role == AWAY):
        for ours, theirs in zip(found.tally(chosen), oracle.tally(chosen), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-3 * scale)
    assert found.entropy() == pytest.approx(oracle.entropy(), rel=1e-5)
    for _ in range(2):
        expected = oracle.sweep(logs)
        swept = found.sweep(logs)
        np.testing.assert_allclose(swept.counts, expected.counts, rtol=1e-4, atol=2e-3 * scale)
        np.testing.assert_allclose(swept.totals, expected.totals, rtol=1e-5, atol=1e-3 * scale)
        assert swept.change == pytest.approx(expected.change, abs=1e-4)
        assert swept.entropy == pytest.approx(expected.entropy, rel=1e-4, abs=1e-3)
    close = np.abs(found.q() - oracle.q())
    assert np.delete(close, tasks.n_tasks // 2, axis=0).max() < 2e-5
    assert close.max() < 1e-2  # 5,000 random responses: large sums in float32 tables
    found.close()


@pytest.mark.parametrize("n_classes", [2, 4, 8])
def test_a_million_responses_equal_float64(n_classes: int) -> None:
    crowd = tb.simulate.crowd(
        100_000, 1_000, n_classes, responses_per_task=10, random_state=n_classes
    )
    kept = {}
    for backend in ("numba", "cuda"):
        for sweeps in (1, 30):
            model = tb.VariationalBayes(backend=backend, tol=0.0, max_iter=sweeps, calibrate="none")
            kept[backend, sweeps] = model.fit(crowd.responses)
            del model
    for sweeps, limit in ((1, 2e-6), (30, 2e-5)):
        host, ours = kept["numba", sweeps], kept["cuda", sweeps]
        assert np.abs(host.probabilities_ - ours.probabilities_).max() <= limit
        assert (host.labels_.label == ours.labels_.label).all()
        assert ours.bounds_[-1] == pytest.approx(host.bounds_[-1], rel=1e-7)


def test_same_bits_on_two_grids_and_in_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiebreak.kernels import cuda

    tasks = laid_out(5_000, 50, 4)
    q = start_of(tasks, 4)
    logs = logs_of(tasks, 4)
    kept = []
    for blocks in (132, 132, 37):
        sweeper = cuda.open(tasks, q.copy())
        assert isinstance(sweeper, CudaSweeper)
        sweeper._blocks = blocks
        swept = sweeper.sweep(logs)
        kept.append((swept.counts, swept.entropy, sweeper.q()))
    for other in kept[1:]:
        assert (kept[0][0] == other[0]).all()
        assert kept[0][1] == other[1]
        assert (kept[0][2] == other[2]).all()


def test_pieces_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiebreak.kernels import cuda

    tasks = laid_out(50_000, 50, 3)
    q = start_of(tasks, 3)
    logs = logs_of(tasks, 3)
    whole = cuda.open(tasks, q.copy())
    expected = whole.sweep(logs)
    must, words = plan.bytes_needed(len(tasks.code), tasks.n_tasks, 3, tasks.n_codes)
    monkeypatch.setenv(device.MEMORY_LIMIT, str(must + words))
    pieces = cuda.open(tasks, q.copy())
    assert isinstance(pieces, CudaSweeper)
    assert len(pieces.crowd.slices.pieces) > 3
    swept = pieces.sweep(logs)
    assert (swept.counts == expected.counts).all()
    assert (pieces.q() == whole.q()).all()
    assert swept.entropy == expected.entropy


def test_too_little_memory_is_said_before_anything_is_allocated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(device.MEMORY_LIMIT, "100000")
    crowd = tb.simulate.crowd(20_000, 50, 3, responses_per_task=3, random_state=0)
    with pytest.raises(tb.errors.OptionError, match=r"GB to use, and .* tasks with 3 states need"):
        tb.VariationalBayes(backend="cuda").fit(crowd.responses)


def test_memory_that_runs_out_in_a_fit_is_said() -> None:
    pool = device.cupy().get_default_memory_pool()
    pool.free_all_blocks()
    crowd = tb.simulate.crowd(200_000, 50, 3, responses_per_task=3, random_state=0)
    pool.set_limit(size=4_000_000)
    try:
        with pytest.raises(tb.errors.OptionError, match=r"ran out of memory.*numba"):
            tb.VariationalBayes(backend="cuda").fit(crowd.responses)
    finally:
        pool.set_limit(size=0)


@pytest.mark.parametrize("worker_model", ["confusion", "coin", "kinds", "subtypes", "communities"])
def test_worker_models_give_the_labels_of_the_processor(worker_model: str) -> None:
    crowd = tb.simulate.crowd(2_000, 30, 3, responses_per_task=5, random_state=4)
    gold = dict(list(zip(crowd.gold.tasks, crowd.gold.label.tolist(), strict=True))[:50])
    fits = [
        tb.VariationalBayes(backend=backend, worker_model=worker_model, tol=1e-4).fit(
            crowd.responses, gold={task: crowd.gold.classes[code] for task, code in gold.items()}
        )
        for backend in ("numba", "cuda")
    ]
    share = np.mean(fits[0].labels_.label == fits[1].labels_.label)
    assert share > 0.99  # subtypes have many modes near each other, and q is float32 there


def test_links_and_other_estimators_run_there_too() -> None:
    crowd = tb.simulate.crowd(3_000, 30, 3, responses_per_task=5, random_state=5)
    links = tb.simulate.links(crowd.gold, 1_500, random_state=5)
    for options in (tb.ExactLinkOptions(), tb.MeanFieldOptions(strength=2.0)):
        fits = [
            tb.VariationalBayes(backend=backend, link_options=options).fit(
                crowd.responses, links=links
            )
            for backend in ("numba", "cuda")
        ]
        assert np.mean(fits[0].labels_.label == fits[1].labels_.label) > 0.999
    for estimator in (tb.DawidSkene, tb.MajorityVote):
        host = estimator(backend="numba").fit(crowd.responses)
        ours = estimator(backend="cuda").fit(crowd.responses)
        assert np.abs(host.probabilities_ - ours.probabilities_).max() < 1e-4
    committees = [
        tb.Auto(backend=backend).fit(crowd.responses, links=links) for backend in ("numba", "cuda")
    ]
    assert np.mean(committees[0].labels_.label == committees[1].labels_.label) > 0.999


@pytest.mark.parametrize("n_classes", [2, 3, 4, 8, 20])
@pytest.mark.parametrize("kind", ["links", "gold", "duplicates"])
def test_fits_with_links_equal_the_processor(n_classes: int, kind: str) -> None:
    crowd = tb.simulate.crowd(20_000, 50, n_classes, responses_per_task=4, random_state=7)
    links = tb.simulate.links(crowd.gold, 9_000, random_state=8)
    options: dict[str, Any] = {"tol": 0.0, "max_iter": 12, "calibrate": "none"}
    if kind == "duplicates":
        label = crowd.gold.to_dict()
        pairs = np.random.default_rng(8).choice(np.array(list(label)), (9_000, 2)).tolist()
        pairs = [pair for pair in pairs if pair[0] != pair[1]]
        words = ["duplicate" if label[a] == label[b] else "cannot" for a, b in pairs]
        left, right = (list(ends) for ends in zip(*pairs, strict=True))
        links = tb.Links.from_columns(left, right, words)
    known = dict(list(crowd.gold.to_dict().items())[:500]) if kind == "gold" else None
    host, ours = (
        tb.VariationalBayes(backend=backend, **options).fit(
            crowd.responses, links=links, gold=known
        )
        for backend in ("numba", "cuda")
    )
    assert np.abs(host.probabilities_ - ours.probabilities_).max() < 1e-3
    assert np.mean(host.labels_.label == ours.labels_.label) > 0.9995
    np.testing.assert_allclose(ours.bounds_, host.bounds_, rtol=1e-6)


def test_a_million_workers() -> None:
    from tiebreak.kernels import compiled, cuda

    tasks = laid_out(100_000, 1_000_000, 2)
    q = start_of(tasks, 2)
    logs = logs_of(tasks, 2)
    expected = compiled.open(tasks, q.copy()).sweep(logs)
    swept = cuda.open(tasks, q.copy()).sweep(logs)
    np.testing.assert_allclose(swept.counts, expected.counts, atol=2e-3)
    np.testing.assert_allclose(swept.totals, expected.totals, rtol=1e-5)


def test_predict_with_a_model_fitted_there() -> None:
    crowd = tb.simulate.crowd(3_000, 30, 3, responses_per_task=5, random_state=9)
    host, ours = (
        tb.VariationalBayes(backend=backend).fit(crowd.responses) for backend in ("numba", "cuda")
    )
    there = ours.predict(crowd.responses)
    here = host.predict(crowd.responses)
    assert np.mean(there.label == here.label) > 0.999


def test_a_warm_start_ends_where_the_cold_fit_does() -> None:
    crowd = tb.simulate.crowd(3_000, 30, 3, responses_per_task=5, random_state=9)
    links = tb.simulate.links(crowd.gold, 800, random_state=9)
    first = tb.VariationalBayes(backend="cuda").fit(crowd.responses)
    warm = tb.VariationalBayes(backend="cuda").fit(crowd.responses, links=links, start=first)
    cold = tb.VariationalBayes(backend="numba").fit(crowd.responses, links=links)
    assert np.mean(warm.labels_.label == cold.labels_.label) > 0.999


@pytest.mark.parametrize("wait", [2.0, 5.0, 8.0])
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, wait: float) -> None:
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(2_000_000), 10)
    names = [Ids(pa.array(np.arange(n))) for n in (2_000_000, 1_000, 4)]
    worker = rng.integers(0, 1_000, len(task))
    label = rng.integers(0, 4, len(task))
    write_packed(tmp_path / "crowd.tb", Responses.from_codes(task, worker, label, *names))
    out = tmp_path / "labels.parquet"
    command = [sys.executable, "-m", "tiebreak", "fuse", str(tmp_path / "crowd.tb")]
    command += [
        "--set",
        "backend=cuda",
        "--set",
        "tol=0",
        "--set",
        "max_iter=200000",
        "-o",
        str(out),
    ]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(wait)
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=30)
    assert running.returncode not in (0, None), said
    assert "Traceback" not in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["crowd.tb"]


def test_one_task_with_a_million_responses() -> None:
    rng = np.random.default_rng(0)
    task = np.concatenate([np.zeros(1_000_000, np.int64), rng.integers(1, 1_000, 100_000)])
    order = np.argsort(task, kind="stable")
    code = rng.integers(0, 40, len(task)).astype(np.int32)[order]
    start = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=1_000))])
    names = [
        Ids([f"{kind}{i}" for i in range(n)]) for kind, n in (("t", 1_000), ("w", 10), ("c", 4))
    ]
    task = np.repeat(np.arange(1_000), np.diff(start))
    responses = Responses.from_codes(task, code // 4, code % 4, *names)
    fits = [
        tb.VariationalBayes(backend=backend, tol=0.0, max_iter=3).fit(responses)
        for backend in ("numba", "cuda")
    ]
    assert np.mean(fits[0].labels_.label == fits[1].labels_.label) > 0.99


@pytest.mark.skipif("TIEBREAK_DATA" not in os.environ, reason="TIEBREAK_DATA is not set")
@pytest.mark.parametrize("name", TEN)
def test_real_datasets_have_the_labels_of_the_processor(name: str) -> None:
    responses = tb.read_responses(Path(os.environ["TIEBREAK_DATA"]) / name / "responses.csv")
    fits = [tb.VariationalBayes(backend=b).fit(responses) for b in ("numpy", "cuda")]
    q = np.sort(fits[0].probabilities_, axis=1)
    clear = q[:, -1] - q[:, -2] > 1e-3
    assert (fits[0].labels_.label == fits[1].labels_.label)[clear].all()


def test_the_bound_hardly_ever_falls() -> None:
    """Counts are rounded: to about 1e-9 of the bound."""
    crowd = tb.simulate.crowd(20_000, 100, 4, responses_per_task=5, random_state=6)
    model = tb.VariationalBayes(backend="cuda").fit(crowd.responses)
    bounds = np.array(model.bounds_)
    assert (np.diff(bounds) > -2e-9 * np.abs(bounds[1:])).all()
