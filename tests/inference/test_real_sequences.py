"""Sequences and networks that are there: published figures, and what the docs say was measured."""

from __future__ import annotations

import csv
import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.errors import InputNote

Rows = list[dict[str, str]]


def rows_of(folder: Path, name: str) -> Rows:
    packed = folder / f"{name}.csv.gz"
    if packed.exists():
        with gzip.open(packed, "rt", newline="") as file:
            return list(csv.DictReader(file))
    with (folder / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def read(folder: Path) -> tuple[Any, tb.Sequences, dict[str, str]]:
    tasks, said, gold = (rows_of(folder, name) for name in ("tasks", "responses", "gold"))
    columns: dict[str, list[Any]] = {
        k: [row[k] for row in tasks] for k in ("task", "sequence", "text")
    }
    columns["position"] = [int(row["position"]) for row in tasks]
    rows = [(row["task"], row["worker"], row["label"]) for row in said]
    truth = {row["task"]: row["label"] for row in gold}
    return tb.Responses.from_rows(rows), tb.Sequences.from_table(columns), truth


def fit(responses: Any, sequences: tb.Sequences, **how: Any) -> tb.VariationalBayes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)
        options = tb.SequenceOptions(**how)
        return tb.VariationalBayes(sequence_options=options).fit(responses, sequences=sequences)


def f1(model: Any, sequences: tb.Sequences, truth: dict[str, str]) -> tuple[float, float]:
    """Return strict and relaxed F1."""
    label = model.labels_.best()
    rows = [(task, "truth", each) for task, each in truth.items()]
    rows += [(task, "labels", str(label[task])) for task in truth]
    found = tb.judges.span_agreement(rows, sequences)
    return found.strict, found.relaxed


def log_loss(model: Any, truth: dict[str, str]) -> float:
    at = model.tasks_.codes(list(truth))
    code = model.classes_.codes(list(truth.values()))
    return float(-np.log(np.maximum(model.probabilities_[at, code], 1e-6)).mean())


@pytest.mark.data
def test_rules_with_chains_and_words_find_most_entities(sets_dir: Path) -> None:
    for name, least in (("weak_LaptopReview", 0.70), ("weak_NCBI-Disease", 0.63)):
        responses, sequences, truth = read(sets_dir / "data-sequences" / name)
        model = fit(responses, sequences, model="chain", words=True)
        assert f1(model, sequences, truth)[0] >= least


@pytest.mark.data
@pytest.mark.long
def test_pico_is_as_good_as_published(sets_dir: Path) -> None:
    responses, sequences, truth = read(sets_dir / "data-sequences" / "pico")
    model, plain = fit(responses, sequences), fit(responses, sequences, model="none")
    strict, relaxed = f1(model, sequences, truth)
    assert relaxed >= 0.71
    assert strict >= f1(plain, sequences, truth)[0]
    names = list(map(str, sequences.tasks))
    order = [str(sequences.names[int(s)]) for s in sequences.sequence_of_each()]
    known = [(task, s) for task, s in zip(names, order, strict=True) if task in truth]
    inside = list(dict.fromkeys(s for _, s in known))
    published = set(inside[: len(inside) // 2])
    half = {task: truth[task] for task, s in known if s in published}
    assert f1(model, sequences, half)[1] >= 0.72
    vb = tb.VariationalBayes().fit(responses)
    assert log_loss(model, truth) <= log_loss(vb, truth)
    for low, high in zip(sequences.start[:-1], sequences.start[1:], strict=True):
        before = "O"
        for task in names[int(low) : int(high)]:
            tag = str(model.labels_[task].label)
            assert not tag.startswith("I-") or before[1:] == tag[1:]
            before = tag


@pytest.mark.data
@pytest.mark.long
def test_a_fit_stops_after_as_many_sweeps_as_left_out_answers_say(sets_dir: Path) -> None:
    folder = sets_dir / "data-sequences" / "sleep_dodh"
    tasks = rows_of(folder, "tasks")
    nights = set(list(dict.fromkeys(row["sequence"] for row in tasks))[:10])
    order = {row["task"]: row["sequence"] for row in tasks if row["sequence"] in nights}
    said = [row for row in rows_of(folder, "responses") if row["task"] in order]
    kept = np.random.default_rng(0).random(len(said)) < 0.4
    rows = [
        (row["task"], row["worker"], row["label"])
        for row, is_kept in zip(said, kept, strict=True)
        if is_kept
    ]
    sequences = tb.Sequences.from_columns(list(order), list(order.values()))
    early = fit(tb.Responses.from_rows(rows), sequences)
    to_end = fit(tb.Responses.from_rows(rows), sequences, model="back")
    taken = next(each for each in early.sequence_choice_ if each.model == early.sequence_model_)
    assert taken.n_sweeps == early.n_iter_ <= 16
    assert early.converged_
    left_out = [row for row, is_kept in zip(said, kept, strict=True) if not is_kept]
    agreement = [
        np.mean([each.labels_[row["task"]].label == row["label"] for row in left_out])
        for each in (early, to_end)
    ]
    assert agreement[0] > agreement[1] + 0.01


@pytest.mark.data
@pytest.mark.parametrize(("name", "least"), [("net_cora", 0.88), ("net_citeseer", 0.76)])
def test_neighbours_help_on_citations(sets_dir: Path, name: str, least: float) -> None:
    folder = sets_dir / "data-sequences" / name
    truth = {row["task"]: row["label"] for row in rows_of(folder, "gold")}
    tasks, classes = list(truth), sorted(set(truth.values()))
    rng = np.random.default_rng(0)
    accuracy = rng.uniform(0.35, 0.75, 10)
    wrong = rng.dirichlet(np.ones(len(classes) - 1), (10, len(classes)))
    said = []
    for task, label in truth.items():
        k = classes.index(label)
        others = [each for each in classes if each != label]
        for w in np.flatnonzero(rng.random(10) < 0.2):
            is_right = rng.random() < accuracy[w]
            said.append(
                (task, f"w{w}", label if is_right else str(rng.choice(others, p=wrong[w, k])))
            )
    responses = tb.Responses.from_rows(said).with_tasks(tb.data.Ids(tasks))
    edges = [(row["left"], row["right"], "near") for row in rows_of(folder, "edges")]
    model = tb.VariationalBayes().fit(responses, links=tb.Links.from_rows(edges))
    label_of = model.labels_.best()
    assert np.mean([label_of[task] == truth[task] for task in tasks]) >= least
    assert model.converged_
