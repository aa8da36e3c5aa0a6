"""A fit over partitions, one after the other, is the fit of one machine."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from cluster.shards import assert_alike, assert_same_fit, cut, even, outcome
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import fs
from refusals import noted, refused

import tiebreak as tb
from tiebreak.errors import FileError, OptionError

CROWD = tb.simulate.crowd(1200, 30, 3, random_state=1)
TRUTH = CROWD.gold.to_dict()
GOLD = dict(list(TRUTH.items())[::13])
MUCH_GOLD = dict(list(TRUTH.items())[::5])  # enough that known tasks are scored by folds
LINKS = tb.simulate.links(CROWD.gold, 300, random_state=2)

FITS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (tb.VariationalBayes(), {}),
    "coin": (tb.VariationalBayes(worker_model="coin"), {}),
    "kinds": (tb.VariationalBayes(worker_model="kinds"), {}),
    "communities": (tb.VariationalBayes(worker_model="communities"), {"gold": GOLD}),
    "subtypes": (tb.VariationalBayes(worker_model="subtypes"), {}),
    "subtypes without leaps": (
        tb.VariationalBayes(worker_model="subtypes", accelerate=False),
        {},
    ),
    "subtypes and gold": (tb.VariationalBayes(worker_model="kinds+subtypes"), {"gold": GOLD}),
    "subtypes and links": (
        tb.VariationalBayes(worker_model="subtypes"),
        {"links": LINKS, "gold": GOLD},
    ),
    "trust": (tb.VariationalBayes(trust={"w02": 30.0}), {}),
    "not accelerated": (tb.VariationalBayes(accelerate=False, calibrate="none"), {}),
    "ten sweeps": (tb.VariationalBayes(tol=0.0, max_iter=10), {}),
    "gold": (tb.VariationalBayes(), {"gold": GOLD}),
    "much gold": (tb.VariationalBayes(), {"gold": MUCH_GOLD}),
    "gold counts once": (tb.VariationalBayes(gold_weight=1.0), {"gold": GOLD}),
    "links": (tb.VariationalBayes(), {"links": LINKS}),
    "links and gold": (tb.VariationalBayes(), {"links": LINKS, "gold": GOLD}),
    "soft links": (
        tb.VariationalBayes(link_options=tb.ExactLinkOptions(error=0.1)),
        {"links": LINKS, "gold": GOLD},
    ),
    "learnt links": (
        tb.VariationalBayes(link_options=tb.ExactLinkOptions(error="learn")),
        {"links": LINKS},
    ),
    "em": (tb.DawidSkene(), {}),
    "em with gold": (tb.DawidSkene(worker_model="coin"), {"gold": GOLD}),
    "votes": (tb.MajorityVote(), {"gold": GOLD}),
}
NAMES = list(CROWD.gold.classes)
TURNED = dict(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))
AGAINST = {task: TURNED[label] for task, label in MUCH_GOLD.items()}  # gold that contradicts all


def _q(labels: tb.Labels) -> Any:
    return labels.probabilities


def on_one_machine(estimator: Any, responses: tb.Responses, **given: Any) -> Any:
    return type(estimator)(**estimator.get_params()).fit(responses, **given)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowd") / "shards"
    return cut(CROWD.responses, [0, 1, 300, 700, 701, 1200], folder)


@pytest.mark.filterwarnings("ignore:Not converged after:tiebreak.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_the_fit_is_that_of_one_machine(name: str, shards: Path, tmp_path: Path) -> None:
    estimator, given = FITS[name]
    one = on_one_machine(estimator, CROWD.responses, **given)
    made = tb.shards.fit(shards, tmp_path / "out", estimator=estimator, probabilities=True, **given)
    assert_same_fit(one, made)
    if name not in ("em", "em with gold", "votes"):
        assert (made.calibration_ is None) == (one.calibration_ is None)
        if one.calibration_ is not None:
            assert made.calibration_[:2] == pytest.approx(one.calibration_[:2])
    if "links" in given:
        assert len(made.violations_) == len(one.violations_)


def assert_subtypes_are_fitted_alike(seed: int, folder: Path, **options: Any) -> None:
    """Fit a crowd whose shards name workers in orders of their own; compare with one machine."""
    rng = np.random.default_rng(seed)
    n_tasks = int(rng.integers(200, 900))
    sizes = int(rng.integers(8, 30)), int(rng.integers(2, 6))
    crowd = tb.simulate.crowd(n_tasks, *sizes, random_state=seed).responses
    edges = [0, *sorted(rng.choice(np.arange(1, n_tasks), 4, replace=False).tolist()), n_tasks]
    rows = list(
        zip(
            *(list(crowd.tasks.take(crowd.task_of_each())),
              list(crowd.workers.take(crowd.worker_of_each())),
              list(crowd.classes.take(crowd.label_of_each()))),
            strict=True,
        )
    )  # fmt: skip
    draw = rng.random(len(rows))
    order = sorted(range(len(rows)), key=lambda r: (crowd.task_of_each()[r], draw[r]))
    shard_of = np.searchsorted(edges, crowd.task_of_each(), side="right") - 1
    folder.mkdir()
    for shard in range(5):
        own = [rows[r] for r in order if shard_of[r] == shard]
        if own:
            part = tb.Responses.from_rows(own)
            part.write(folder / f"{shard}.csv")
    estimator = tb.VariationalBayes(worker_model="subtypes", **options)
    one = on_one_machine(estimator, tb.Responses.from_rows([rows[r] for r in order]))
    made = tb.shards.fit(folder, folder / "out", estimator=estimator, probabilities=True)
    assert_same_fit(one, made)


@pytest.mark.filterwarnings("ignore:Not converged after:tiebreak.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("seed", [4, 14])
def test_subtypes_are_fitted_as_on_one_machine(seed: int, accelerate: bool, tmp_path: Path) -> None:
    """They start near a saddle: with sums that round, leaps are 1e-11 apart on these crowds."""
    assert_subtypes_are_fitted_alike(seed, tmp_path / "in", accelerate=accelerate)


@pytest.mark.filterwarnings("ignore:Not converged after:tiebreak.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_subtypes_of_sixty_crowds_are_fitted_as_on_one_machine(seed: int, tmp_path: Path) -> None:
    assert_subtypes_are_fitted_alike(seed, tmp_path / "in")


@pytest.mark.filterwarnings("ignore:Not converged after:tiebreak.errors.ConvergenceWarning")
def test_subtypes_of_tasks_with_equal_responses_start_alike(tmp_path: Path) -> None:
    """On one machine such tasks are fitted as one."""
    crowd = tb.simulate.crowd(12_000, 4, 2, responses_per_task=4, random_state=1).responses
    estimator = tb.VariationalBayes(worker_model="subtypes")
    one = on_one_machine(estimator, crowd)
    shards = cut(crowd, even(12_000, 3), tmp_path / "in")
    made = tb.shards.fit(shards, tmp_path / "out", estimator=estimator, probabilities=True)
    assert_same_fit(one, made)


def test_responses_have_weights(tmp_path: Path) -> None:
    weight = np.random.default_rng(3).uniform(0.2, 2.0, CROWD.responses.n_responses)
    crowd = CROWD.responses
    weighted = tb.Responses.from_codes(
        crowd.task_of_each(),
        crowd.worker_of_each(),
        crowd.label_of_each(),
        crowd.tasks,
        crowd.workers,
        crowd.classes,
        weight=weight,
    )
    shards = cut(weighted, even(1200, 4), tmp_path / "in")
    one = tb.VariationalBayes().fit(weighted, gold=GOLD)
    made = tb.shards.fit(shards, tmp_path / "out", gold=GOLD, probabilities=True)
    assert_same_fit(one, made)
    kinds = tb.VariationalBayes(worker_model="kinds")  # their priors count answers
    one = on_one_machine(kinds, weighted)
    made = tb.shards.fit(shards, tmp_path / "kinds", estimator=kinds, probabilities=True)
    assert_same_fit(one, made)
    assert np.allclose(made.answers, weighted.count_labels())
    table = cut(weighted, [0, 1200], tmp_path / "table", ".parquet")
    with noted("weights-found"):
        tb.shards.fit(table, tmp_path / "out", gold=GOLD)


def test_a_crowd_of_rules_keeps_their_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 400)
    rows = [
        (f"t{i}", f"rule{r}", "xy"[r % 2])
        for i in range(400)
        for r in range(6)
        if rng.random() < (0.5 if r % 2 == truth[i] else 0.1)
    ]
    crowd = tb.Responses.from_rows(rows)
    shards = cut(crowd, even(crowd.n_tasks, 3), tmp_path / "in")
    one = tb.VariationalBayes().fit(crowd)
    made = tb.shards.fit(shards, tmp_path / "out", probabilities=True)
    assert_same_fit(one, made)


@settings(max_examples=12)
@given(st.data())
def test_any_cut_gives_the_fit_of_one_machine(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("cut")
    n_tasks = data.draw(st.integers(8, 40))
    n_shards = data.draw(st.integers(1, 7))
    seed = data.draw(st.integers(0, 99))
    crowd = tb.simulate.crowd(n_tasks, 6, 3, responses_per_task=3, random_state=seed)
    inner = data.draw(
        st.lists(
            st.integers(1, n_tasks - 1), min_size=n_shards - 1, max_size=n_shards - 1, unique=True
        )
    )
    shards = cut(crowd.responses, [0, *sorted(inner), n_tasks], folder / "in")
    names = list(crowd.responses.tasks)
    some = data.draw(st.sets(st.sampled_from(names), max_size=5))
    truth = crowd.gold.to_dict()
    known = {name: truth[name] for name in names if name in some} or None
    apart = data.draw(st.integers(1, n_tasks - 1))
    kind = "must" if truth[names[0]] == truth[names[apart]] else "cannot"
    links = [(names[0], names[apart], kind)] if data.draw(st.booleans()) else None
    one = tb.VariationalBayes().fit(crowd.responses, links=links, gold=known)
    made = tb.shards.fit(shards, folder / "out", links=links, gold=known, probabilities=True)
    assert_same_fit(one, made)


DATASETS = (
    *("bluebird", "dog", "music_genre", "product", "rte", "sentence_polarity", "trec", "web"),
    *("zencrowd_india", "zencrowd_us"),
)


REAL_FITS: dict[str, tuple[Any, str]] = {  # and what is given beside responses
    "plain": (tb.VariationalBayes(), ""),
    "gold": (tb.VariationalBayes(), "gold"),
    "links": (tb.VariationalBayes(), "links"),
    "both": (tb.VariationalBayes(), "gold links"),
    "coin": (tb.VariationalBayes(worker_model="coin"), "gold"),
    "subtypes": (tb.VariationalBayes(worker_model="subtypes"), ""),
    "em": (tb.DawidSkene(max_iter=40), "gold"),
    "votes": (tb.MajorityVote(), "gold"),
}
N_SHORT = 6_000  # responses: larger crowds are fitted in the long form alone


def beside(name: str, wanted: str) -> dict[str, Any]:
    """Return some gold, and links between others, of a dataset."""
    truth = tb.datasets.load(name).gold
    named = list(truth.to_dict().items())
    given: dict[str, Any] = {}
    if "gold" in wanted:
        given["gold"] = dict(named[::17])
    if "links" in wanted:
        linked = {task: label for i, (task, label) in enumerate(named) if i % 17}
        n_links = min(120, len(linked) // 4)
        given["links"] = tb.simulate.links(tb.Gold.from_dict(linked), n_links)
    return given


def assert_fitted_alike(name: str, fit: str, n_shards: int, seed: int, folder: Path) -> None:
    """Cut a dataset into shards at places that a seed draws; compare with one machine."""
    estimator, wanted = REAL_FITS[fit]
    crowd = tb.datasets.load(name).responses
    given = beside(name, wanted)
    one = on_one_machine(estimator, crowd, **given)
    rng = np.random.default_rng(seed)
    inner = np.sort(rng.choice(np.arange(1, crowd.n_tasks), n_shards - 1, replace=False))
    shards = cut(crowd, [0, *inner.tolist(), crowd.n_tasks], folder / "in")
    made = tb.shards.fit(shards, folder / "out", estimator=estimator, probabilities=True, **given)
    assert_same_fit(one, made)


@pytest.mark.data
@pytest.mark.parametrize("name", DATASETS)
def test_real_crowds_are_fitted_alike(name: str, data_dir: Path, tmp_path: Path) -> None:
    for n_shards in (1, int(np.random.default_rng(len(name)).integers(2, 8))):
        assert_fitted_alike(name, "plain", n_shards, len(name), tmp_path / str(n_shards))


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=12)
@given(
    st.sampled_from(DATASETS), st.sampled_from(list(REAL_FITS)), st.integers(1, 7), st.integers()
)
def test_any_real_crowd_cut_anyhow_is_fitted_alike(
    tmp_path_factory: Any, data_dir: Path, name: str, fit: str, n_shards: int, seed: int
) -> None:
    assume(tb.datasets.load(name).responses.n_responses <= N_SHORT)
    assert_fitted_alike(name, fit, n_shards, abs(seed), tmp_path_factory.mktemp("real"))


@pytest.mark.data
@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("fit", REAL_FITS)
@pytest.mark.parametrize("name", DATASETS)
@settings(max_examples=1)
@given(st.integers(0, 6), st.integers(0))
def test_every_real_crowd_is_fitted_alike(
    tmp_path_factory: Any, data_dir: Path, name: str, fit: str, more: int, seed: int
) -> None:
    own = zlib.crc32(f"{name} {fit}".encode())  # the one example is another for each
    folder = tmp_path_factory.mktemp("real")
    assert_fitted_alike(name, fit, (own + more) % 7 + 1, own + seed, folder)


def test_a_model_is_a_start(shards: Path, tmp_path: Path) -> None:
    one = tb.VariationalBayes().fit(CROWD.responses)
    made = tb.shards.fit(shards, tmp_path / "out", start=one, probabilities=True)
    assert made.n_iter_ < one.n_iter_
    np.testing.assert_allclose(made.confusion_, one.confusion_, atol=1e-4)
    with_gold = tb.VariationalBayes().fit(CROWD.responses, gold=GOLD)
    again = tb.shards.fit(shards, tmp_path / "gold", start=made.model, gold=GOLD)
    np.testing.assert_allclose(again.confusion_, with_gold.confusion_, atol=1e-4)


def test_the_model_is_saved_asked_and_updated(shards: Path, tmp_path: Path) -> None:
    made = tb.shards.fit(shards, tmp_path / "out")
    made.save(tmp_path / "model.tbm")
    kept = tb.load(tmp_path / "model.tbm")
    one = tb.VariationalBayes().fit(CROWD.responses)
    new = tb.simulate.crowd(50, 30, 3, random_state=9).responses
    expected = one.predict(new)
    found = kept.predict(new)
    np.testing.assert_allclose(_q(found), _q(expected), atol=1e-9)
    folder = cut(new, even(50, 3), tmp_path / "new")
    labels = tb.shards.predict(made, folder, tmp_path / "predicted", probabilities=True)
    assert [row["task"] for row in labels] == list(new.tasks)
    top = [row["probability"] for row in labels]
    np.testing.assert_allclose(top, _q(expected).max(axis=1), atol=1e-9)
    updated = kept.update(new)
    assert len(updated.tasks_) == 50


def test_tables_are_packed_first_and_fitted_alike(tmp_path: Path) -> None:
    tables = cut(CROWD.responses, even(1200, 3), tmp_path / "parquet", ".parquet")
    made = tb.shards.fit(tables, tmp_path / "out")
    assert made.n_iter_ == tb.VariationalBayes().fit(CROWD.responses).n_iter_
    assert not (tmp_path / "out" / ".tiebreak").exists()
    expected = outcome(made)
    for suffix in (".csv", ".csv.gz", ".jsonl"):
        tables = cut(CROWD.responses, even(1200, 3), tmp_path / suffix[1:], suffix)
        assert_alike(tb.shards.fit(f"{tables}/*{suffix}", tmp_path / "again"), expected)
    for suffix in (".parquet", ".csv", ".csv.gz", ".jsonl"):
        uri = f"file://{tmp_path}/{suffix[1:]}/*{suffix}"
        assert_alike(tb.shards.fit(uri, tmp_path / "uri"), expected)
    (tmp_path / "csv" / "shard-99.csv").write_text("task,worker,label\n", encoding="utf-8")
    with noted("shards-empty"):
        made = tb.shards.fit(f"file://{tmp_path}/csv", tmp_path / "uri")
    assert_alike(made, expected)


class NoBucket:
    """What pyarrow makes of an address: this machine's disk, or a refusal."""

    given: ClassVar[list[str]] = []

    @classmethod
    def from_uri(cls, uri: str) -> tuple[Any, str]:
        cls.given.append(uri)
        path = uri.removeprefix("s3://").partition("?")[0]
        return cls() if "closed" in uri else fs.LocalFileSystem(), path

    def get_file_info(self, _: Any) -> Any:
        raise PermissionError("ACCESS_DENIED")


def test_addresses_may_have_options_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = cut(CROWD.responses, even(1200, 2), tmp_path / "in", ".parquet")
    expected = outcome(tb.shards.fit(tables, tmp_path / "out"))
    monkeypatch.setattr(fs, "FileSystem", NoBucket)
    options = "?endpoint_override=127.0.0.1:9000&scheme=http"
    for pattern in ("/*.parquet", "/shard-0?.parquet", ""):
        uri = f"s3://{tables}{pattern}{options}"
        assert_alike(tb.shards.fit(uri, tmp_path / "again"), expected)
    assert all(uri.endswith(options) for uri in NoBucket.given)
    for address, code in (
        ("s3://key:secret@bucket/*.parquet", "keys-in-address"),
        ("s3://closed", "file-unreadable"),
    ):
        with refused(FileError, code):
            tb.shards.fit(address, tmp_path / "again")


REFUSED = {
    "shards-init": tb.VariationalBayes(init=np.full((2, 2), 0.5)),
    "shards-mean-field": tb.VariationalBayes(link_options=tb.MeanFieldOptions()),
    "shards-backend": tb.VariationalBayes(backend="cuda"),
    "shards-estimator": tb.Auto(),
    "wrong-value smoothing": tb.DawidSkene(smoothing=-1.0),
    "wrong-value tol": tb.DawidSkene(tol=-1.0),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_fitted_is_refused_before_any_work(code: str, tmp_path: Path) -> None:
    with refused(OptionError, code):
        tb.shards.fit(tmp_path / "nowhere", tmp_path / "out", estimator=REFUSED[code])
    assert not (tmp_path / "out").exists()


def test_votes_need_no_start(shards: Path, tmp_path: Path) -> None:
    one = tb.VariationalBayes().fit(CROWD.responses)
    with pytest.raises(OptionError, match="MajorityVote counts votes once: it needs no start"):
        tb.shards.fit(shards, tmp_path / "out", estimator=tb.MajorityVote(), start=one)
