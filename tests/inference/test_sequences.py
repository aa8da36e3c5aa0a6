"""Tasks in sequences: what holds for every crowd, and what a small one gives exactly."""

from __future__ import annotations

import warnings
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumeration
from properties.test_bound import assert_never_falls
from scipy.special import logsumexp

import tiebreak as tb
from tiebreak.data import GoldCodes, Ids, SequenceCodes, Tags
from tiebreak.errors import GoldError, InputNote, LinkError, OptionError
from tiebreak.inference import (
    ClassPrior,
    ConfusionMatrices,
    FitState,
    Independent,
    Known,
    Problem,
    Stopping,
    climb,
    lay_out,
)
from tiebreak.inference.sequencing import Candidate, Placed, chosen, spans_of
from tiebreak.inference.tasks.chains import MarkovChains, Potentials, with_chains
from tiebreak.kernels import reference
from tiebreak.links.graph import LinkCodes

TAGS = ("O", "B-X", "I-X", "B-Y", "I-Y")
KINDS = ("chain", "chain+back", "chain+words", "chain+back+words")


def sentences(
    n: int = 40, n_workers: int = 6, per_task: float = 2.0, seed: int = 0, right: float = 0.75
) -> tuple[tb.Responses, tb.Sequences, dict[str, str]]:
    """Draw sentences with spans, workers who take a tag for another, and words that tell a bit."""
    rng = np.random.default_rng(seed)
    truth: list[str] = []
    columns: dict[str, list[Any]] = {"task": [], "sequence": [], "text": []}
    for s in range(n):
        t, length = 0, int(rng.integers(1, 12))
        while t < length:
            kind = rng.choice(["O", "X", "Y"], p=[0.7, 0.15, 0.15])
            size = 1 if kind == "O" else min(int(rng.integers(1, 4)), length - t)
            truth += ["O"] if kind == "O" else [f"B-{kind}"] + [f"I-{kind}"] * (size - 1)
            columns["text"] += [f"{kind}{rng.integers(3)}" for _ in range(size)]
            columns["sequence"] += [f"s{s}"] * size
            columns["task"] += [f"s{s}:{t + i}" for i in range(size)]
            t += size
    rows = []
    for w in range(n_workers):
        marked = rng.random(n) < per_task / n_workers
        for task, sequence, label in zip(columns["task"], columns["sequence"], truth, strict=True):
            if marked[int(sequence[1:])]:
                said = label if rng.random() < right else str(rng.choice(TAGS))
                rows.append((task, f"w{w}", said))
    known = dict(zip(columns["task"], truth, strict=True))
    return tb.Responses.from_rows(rows), tb.Sequences.from_table(columns), known


def fit(*given: Any, **options: Any) -> tb.VariationalBayes:
    how = {name: options.pop(name) for name in ("model", "words", "tags") if name in options}
    more = {name: options.pop(name) for name in ("gold", "links", "start") if name in options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)
        model = tb.VariationalBayes(sequence_options=tb.SequenceOptions(**how), **options)
        return model.fit(given[0], sequences=given[1], **more)


def n_impossible(model: tb.VariationalBayes, sequences: tb.Sequences) -> int:
    label = model.labels_.best()
    n = 0
    for low, high in pairwise(sequences.start.tolist()):
        before = "O"
        for task in sequences.tasks[int(low) : int(high)]:
            tag = str(label[task])
            n += tag.startswith("I-") and before[1:] != tag[1:]
            before = tag
    return n


# -- small crowds, exactly ------------------------------------------------------------------------


def small(seed: int, kind: str) -> tuple[Problem, Any, dict[str, Any]]:
    """Three sequences of up to four tasks, K = 3 with a step that is forbidden, and what is known.

    Returns the problem, and the log of the joint probability of a labelling with parameters
    integrated out.
    """
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 4, 3))])
    n, n_workers, n_classes = int(start[-1]), 3, 3
    tags = Tags.of(["B-X", "I-X", "O"])
    truth = np.array([2] * n)
    for low, high in pairwise(start.tolist()):
        for t in range(low, high):
            can = np.flatnonzero(
                tags.rules().first if t == low else tags.rules().follows[truth[t - 1]]
            )
            truth[t] = rng.choice(can)
    answered = rng.random((n, n_workers)) < 0.6
    task, worker = (each.astype(np.int32) for each in np.nonzero(answered))
    noise = rng.integers(0, n_classes, len(task))
    label = np.where(rng.random(len(task)) < 0.6, truth[task], noise).astype(np.int32)
    crowd = tb.Responses.from_codes(
        task, worker, label, Ids(range(n)), Ids(range(n_workers)), Ids(range(n_classes))
    )
    words = rng.integers(0, 3, n).astype(np.int32)
    order = np.arange(n, dtype=np.int32)
    codes = SequenceCodes(order, start, n, words, 4)
    alpha, beta = rng.uniform(0.5, 3.0, 3), rng.uniform(0.5, 4.0, (1, 3, 3))
    known = Known.of(None)
    if rng.random() < 0.5:
        at = np.flatnonzero(rng.random(n) < 0.3).astype(np.int32)
        known = Known.of(GoldCodes(at, truth[at].astype(np.int32)))
    plain = Problem(
        lay_out(crowd),
        Independent(ClassPrior(alpha)),
        ConfusionMatrices(beta, n_workers),
        reference,
    )
    problem = with_chains(plain, codes, tags.rules(), known, kind=kind)
    after = codes.previous(task, worker, label, n_classes)
    first = set(start[:-1].tolist())

    def log_joint(y: tuple[int, ...]) -> float:
        total = enumeration.log_beta(alpha + np.bincount([y[i] for i in first], minlength=3))
        total -= enumeration.log_beta(alpha)
        steps = np.zeros((3, 3))
        for i in range(n):
            if i not in first:
                steps[y[i - 1], y[i]] += 1
        follows = tags.rules().follows
        if (steps[~follows] > 0).any() or any(not tags.rules().first[y[i]] for i in first):
            return -np.inf
        for j in range(3):
            ones = np.ones(follows[j].sum())
            total += enumeration.log_beta(ones + steps[j, follows[j]]) - enumeration.log_beta(ones)
        counts: dict[Any, np.ndarray] = {}
        for i, w, c, d in zip(
            task.tolist(), worker.tolist(), label.tolist(), after.tolist(), strict=True
        ):
            key = w, y[i], d if "+back" in kind else 0
            counts.setdefault(key, np.zeros(3))[c] += 1
        for (_, k, _), n_each in counts.items():
            prior = beta[0, :, k]
            total += enumeration.log_beta(prior + n_each) - enumeration.log_beta(prior)
        if "+words" in kind:
            for k in range(3):
                said = np.bincount([words[i] for i in range(n) if y[i] == k], minlength=4)
                total += enumeration.log_beta(0.1 + said) - enumeration.log_beta(np.full(4, 0.1))
        return total

    gold = dict(zip(known.task.tolist(), known.label.tolist(), strict=True))
    facts = {"n": n, "gold": gold, "known": known, "plain": plain, "codes": codes}
    return problem, log_joint, facts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_the_bound_rises_in_every_sweep_and_stays_below_the_evidence(seed: int, kind: str) -> None:
    problem, log_joint, facts = small(seed, kind)
    every = enumeration.labellings(facts["n"], 3, facts["gold"])
    evidence = logsumexp([log_joint(y) for y in every])
    start = FitState(facts["known"].clamp(problem.votes()))
    plain = climb(problem, start, Stopping(0.0, 30, accelerate=False))
    assert_never_falls(list(plain.bounds))
    assert plain.bounds[-1] <= evidence + 1e-9
    fast = climb(problem, start, Stopping(1e-9, 2000))
    assert_never_falls(list(fast.bounds))
    assert fast.bounds[-1] <= evidence + 1e-9
    for i, k in facts["gold"].items():
        assert fast.q[i, k] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_bound_rises_with_gold_and_soft_links(kind: str, seed: int) -> None:
    problem, _, facts = small(seed, kind)
    rng = np.random.default_rng(seed)
    n, start = facts["n"], problem.tasks.start  # type: ignore[attr-defined]
    sequence = np.searchsorted(start, np.arange(n), side="right") - 1
    pairs = {tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(6)}
    ends = np.array([p for p in sorted(pairs) if sequence[p[0]] != sequence[p[1]]], np.int32)
    ends = ends.reshape(-1, 2)
    if not len(ends):
        return
    must, weight = rng.random(len(ends)) < 0.5, rng.uniform(0.1, 4.0, len(ends))
    links = LinkCodes(ends[:, 0], ends[:, 1], must, weight, None, np.arange(len(ends)))
    given_ = facts["plain"], facts["codes"], Tags.of(["B-X", "I-X", "O"]).rules(), facts["known"]
    linked = with_chains(*given_, kind=kind, links=(links, None))
    state = climb(linked, FitState(facts["known"].clamp(linked.votes())), Stopping(0.0, 20))
    assert_never_falls(list(state.bounds))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scheme", ["bio", "none"])
def test_spans_are_as_probable_as_by_enumeration(seed: int, scheme: str) -> None:
    rng = np.random.default_rng(seed)
    sequences = tb.Sequences.from_columns(list("abcdefg"), list("ssssttt"))
    classes = ("B-X", "I-X", "O")
    tags = Tags.of(classes, scheme)
    crowd = tb.Responses.from_rows([("abc"[i], "w", name) for i, name in enumerate(classes)])
    crowd = crowd.with_tasks(sequences.tasks)
    codes = sequences.on(crowd.tasks)
    plain = Problem(
        lay_out(crowd),
        Independent(ClassPrior(np.ones(3))),
        ConfusionMatrices(np.ones((1, 3, 3)), 1),
        reference,
    )
    problem = with_chains(plain, codes, tags.rules(), Known.of(None), kind="chain")
    chains = problem.tasks
    assert isinstance(chains, MarkovChains)
    assert chains.own is not None
    score = rng.normal(0, 2, (7, 3)) + chains.own.score(problem, (np.zeros(3), np.zeros((3, 3))))
    step = np.where(tags.rules().follows, rng.normal(0, 1, (3, 3)), -np.inf)
    potentials, q = Potentials(score, step), np.empty((7, 3))
    chains.forward_backward(score, step, q)
    label = chains.best_path(potentials)
    placed = Placed(sequences, codes, tags, tb.SequenceOptions())
    spans = spans_of(placed, chains, potentials, q, label)
    first, last, kind = tags.spans(label, sequences.start)
    assert (spans.first.tolist(), spans.last.tolist()) == (first.tolist(), last.tolist())
    for a, b, k, p in zip(first, last, kind, spans.probability, strict=True):  # type: ignore[arg-type]
        low, high = (0, 4) if a < 4 else (4, 7)
        total = found = 0.0
        for y in product(range(3), repeat=int(high - low)):
            log_p = sum(score[low + i, y[i]] for i in range(high - low))
            log_p += sum(step[y[i], y[i + 1]] for i in range(high - low - 1))
            total += np.exp(log_p)
            if not np.isfinite(log_p):
                continue
            own = tags.spans(np.array(y), np.array([0, high - low]))
            named = zip(*(each.tolist() for each in own), strict=True)
            found += np.exp(log_p) * ((a - low, b - low, k) in set(named))
        assert p == pytest.approx(found / total, abs=1e-10)


# -- invariants -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["none", "chain", "back"])
def test_sequences_of_one_task_are_plain_tasks(model: str) -> None:
    drawn = tb.simulate.crowd(60, 5, 3, responses_per_task=3, random_state=0).responses
    rows = zip(
        drawn.tasks.take(drawn.task_of_each()),
        drawn.workers.take(drawn.worker_of_each()),
        drawn.classes.take(drawn.label_of_each()),
        strict=True,
    )
    crowd = tb.Responses.from_rows(list(rows)[:150])  # some tasks have fewer responses
    alone = tb.Sequences.from_columns(crowd.tasks, crowd.tasks)
    plain = tb.VariationalBayes(tol=1e-12, max_iter=3000).fit(crowd)
    made = fit(crowd, alone, model=model, words=False, tol=1e-12, max_iter=3000)
    assert np.abs(made.probabilities_ - plain.probabilities_).max() < 1e-9
    assert made.bounds_[-1] == pytest.approx(plain.bounds_[-1], abs=1e-9)
    assert np.array_equal(made.labels_.label, plain.labels_.label)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", ["none", "chain", "back", "auto"])
def test_the_order_of_sequences_and_rows_does_not_matter(model: str, seed: int) -> None:
    # Many short sentences: workers say the same of many of them, or of one.
    responses, sequences, _ = sentences(30, 5, 3.0, seed, right=0.5 + 0.2 * seed)
    one = fit(responses, sequences, model=model)
    rng = np.random.default_rng(0)
    columns = {name: list(each) for name, each in sequences.columns().items()}
    mixed = rng.permutation(len(columns["task"]))
    other_order = tb.Sequences.from_table(
        {name: [each[i] for i in mixed] for name, each in columns.items()}
    )
    rows = list(
        zip(
            responses.tasks.take(responses.task_of_each()),
            responses.workers.take(responses.worker_of_each()),
            responses.classes.take(responses.label_of_each()),
            strict=True,
        )
    )
    shuffled = tb.Responses.from_rows([rows[i] for i in rng.permutation(len(rows))])
    other = fit(shuffled, other_order, model=model)
    assert one.sequence_model_ == other.sequence_model_
    assert one.labels_.best() == other.labels_.best()
    place = other.tasks_.codes(one.tasks_)
    assert np.abs(one.probabilities_ - other.probabilities_[place]).max() < 1e-9
    for each, again in zip(one.sequence_choice_, other.sequence_choice_, strict=True):
        assert each.score == pytest.approx(again.score, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["none", "chain", "back", "auto"]), st.booleans())
def test_labels_are_possible_whatever_workers_say(seed: int, model: str, knows: bool) -> None:
    responses, sequences, truth = sentences(8, 3, 2.0, seed, right=0.3)
    known = dict(list(truth.items())[::5]) if knows else None
    made = fit(responses, sequences, model=model, gold=known, max_iter=500, tol=1e-2)
    assert n_impossible(made, sequences) == 0
    for task, label in (known or {}).items():
        assert made.labels_[task].label == label
    assert made.spans_ is not None
    assert all(0.0 <= span.probability <= 1.0 for span in made.spans_ if span.probability)


def test_spans_are_those_of_labels() -> None:
    responses, sequences, _ = sentences()
    model = fit(responses, sequences, model="chain")
    label = model.labels_.best()
    assert model.spans_ is not None
    inside = set()
    for span in model.spans_:
        tasks = list(sequences.tasks)
        some = tasks[tasks.index(span.first) : tasks.index(span.last) + 1]
        assert [label[task] for task in some] == [f"B-{span.label}"] + [f"I-{span.label}"] * (
            len(some) - 1
        )
        inside |= set(some)
    assert all((label[task] == "O") == (task not in inside) for task in sequences.tasks)


def test_tasks_that_nobody_answered_are_inferred_from_their_neighbours() -> None:
    rows = [(f"{n}:{t}", "ann", "AB"[t // 5]) for n in range(12) for t in range(10) if t != 2]
    order = [(f"{n}:{t}", str(n)) for n in range(12) for t in range(10)]
    table = {"task": [task for task, _ in order], "sequence": [name for _, name in order]}
    model = fit(tb.Responses.from_rows(rows), tb.Sequences.from_table(table), model="chain")
    assert {model.labels_[f"{n}:2"].label for n in range(12)} == {"A"}
    assert model.transitions_ is not None
    assert np.diag(model.transitions_).min() > 0.5


def test_gold_informs_its_neighbours() -> None:
    responses, sequences, truth = sentences(60, 4, 1.0)
    known = dict(list(truth.items())[::3])
    open_tasks = [task for task in truth if task not in known]

    def accuracy(gold: Any) -> float:
        label = fit(responses, sequences, model="chain", gold=gold).labels_.best()
        return float(np.mean([label[task] == truth[task] for task in open_tasks]))

    assert accuracy(known) > accuracy(None) + 0.02


def test_a_chain_and_words_beat_single_tasks_where_responses_are_few() -> None:
    responses, sequences, truth = sentences(150, 8, 1.5, right=0.6)

    def accuracy(model: Any) -> float:
        label = model.labels_.best()
        return float(np.mean([label[task] == truth[task] for task in truth]))

    plain = accuracy(tb.VariationalBayes().fit(responses.with_tasks(sequences.tasks)))
    chain = accuracy(fit(responses, sequences, model="chain", words=False))
    words = accuracy(fit(responses, sequences, model="chain", words=True))
    assert plain + 0.03 < chain
    assert chain + 0.03 < words


def test_auto_compares_models_and_says_what_it_saw() -> None:
    responses, sequences, _ = sentences(80, 6, 3.0)
    model = fit(responses, sequences)
    assert [each.model for each in model.sequence_choice_] == [
        *("none", "chain", "chain+back", "chain+back+words")
    ]
    best = max(each.score for each in model.sequence_choice_)
    taken = next(each for each in model.sequence_choice_ if each.model == model.sequence_model_)
    assert taken.score >= best - 0.01
    assert taken.error < 0.1
    assert fit(responses, sequences, model="none").sequence_choice_ == ()


def test_a_model_that_was_out_early_is_not_compared_with_means_of_more_folds() -> None:
    score = {"none": (0.45, 5), "chain": (0.48, 1), "chain+back": (0.445, 5)}
    choice = tuple(Candidate(name, mean, 0.01, n) for name, (mean, n) in score.items())
    assert chosen(choice).model == "chain+back"


def test_soft_links_pull_tasks_of_other_sequences() -> None:
    rows = [("a1", "ann", "x"), ("a2", "ann", "x"), ("b1", "ann", "y")]
    rows += [("c1", "ann", "x"), ("c2", "bob", "y"), ("b1", "bob", "y"), ("a1", "bob", "x")]
    table = {"task": ["a1", "a2", "b1", "b2", "c1", "c2"], "sequence": list("aabbcc")}
    crowd, sequences = tb.Responses.from_rows(rows), tb.Sequences.from_table(table)
    soft = tb.ExactLinkOptions(error=0.02)
    links = tb.Links.from_pairs(must=[("a2", "b2")])
    same, apart = (
        fit(crowd, sequences, model="chain", links=each, link_options=soft)
        for each in (links, tb.Links.from_pairs(cannot=[("a2", "b2")]))
    )
    x = list(same.classes_).index("x")
    at = same.tasks_.codes(["b2"])[0]
    assert same.probabilities_[at, x] > apart.probabilities_[at, x] + 0.1


def test_a_model_goes_on_from_where_it_ended_and_is_kept(tmp_path: Path) -> None:
    responses, sequences, _ = sentences(60, 6, 3.0)
    model = fit(responses, sequences, model="back", words=True)
    again = fit(responses, sequences, model="back", words=True, start=model)
    assert again.n_iter_ <= 10 < model.n_iter_
    assert np.abs(again.probabilities_ - model.probabilities_).max() < 1e-4
    model.save(tmp_path / "m.tbm")
    opened = tb.load(tmp_path / "m.tbm")
    assert list(opened.spans_) == list(model.spans_ or ())
    assert opened.sequence_model_ == "chain+back+words"
    assert opened.sequence_options == model.sequence_options
    assert model.transitions_ is not None
    assert np.array_equal(opened.transitions_, model.transitions_)
    assert opened.sequences_.columns()["task"].equals(sequences.columns()["task"])


# -- what is refused ------------------------------------------------------------------------------

PAIR = tb.Sequences.from_columns(["a", "b"], ["s", "s"])
SAID = [("a", "ann", "B-X"), ("b", "ann", "I-X"), ("a", "bob", "O"), ("c", "bob", "O")]


@pytest.mark.parametrize(
    ("gold", "tasks"),
    [({"a": "O", "b": "I-X"}, ("a", "b")), ({"a": "I-X"}, ("a", "a"))],
)
def test_known_labels_that_cannot_follow_each_other_are_refused(
    gold: dict[str, str], tasks: tuple[str, str]
) -> None:
    with pytest.raises(GoldError) as error:
        fit(tb.Responses.from_rows(SAID), PAIR, gold=gold)
    assert error.value.code == "gold-out-of-sequence"
    named = (error.value.fields["one"][0], error.value.fields["other"][0])  # type: ignore[index]
    assert named == tasks


def test_hard_links_and_links_within_a_sequence_are_refused() -> None:
    crowd = tb.Responses.from_rows(SAID)
    for pair, options, code in (
        (("a", "c"), None, "hard-links-in-sequences"),
        (("a", "b"), tb.ExactLinkOptions(error=0.02), "links-within-sequence"),
        (("a", "c"), tb.ExactLinkOptions(error="learn"), "links-of-sequences"),
        (("a", "c"), tb.MeanFieldOptions(), "links-of-sequences"),
    ):
        with pytest.raises((LinkError, OptionError)) as error:
            fit(crowd, PAIR, links=tb.Links.from_pairs(must=[pair]), link_options=options)
        assert error.value.code == code


def test_options_that_mean_nothing_are_refused() -> None:
    with pytest.raises(OptionError) as error:
        tb.SequenceOptions(model="hmm")
    assert error.value.code == "wrong-value"
    for options, code in (
        ({"words": True}, "no-words-in-sequences"),
        ({"worker_model": "subtypes"}, "subtypes-with-sequences"),
    ):
        with pytest.raises(OptionError) as error:
            fit(tb.Responses.from_rows(SAID), PAIR, **options)
        assert error.value.code == code
    with pytest.raises(OptionError) as error:
        fit(tb.Responses.from_rows([("a", "ann", "I-X"), ("b", "ann", "O")]), PAIR)
    assert error.value.code == "tags-without-beginning"
    many = tb.Responses.from_rows([(f"t{i}", "ann", f"c{i}") for i in range(120)])
    with pytest.raises(OptionError) as error:
        fit(many, PAIR)
    assert error.value.code == "classes-for-sequences"


def test_odd_answers_are_kept_and_said() -> None:
    rows = [*SAID, ("a", "cy", "O"), ("b", "cy", "I-X")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = tb.VariationalBayes(sequence_options=tb.SequenceOptions(model="chain"))
        model.fit(rows, sequences=PAIR)
    said = [each.message for each in caught if isinstance(each.message, InputNote)]
    notes = {each.code: each.fields for each in said}
    assert notes["impossible-answers"] == {"n": 1}
    assert notes["responses-in-no-sequence"] == {"n": 1}
    assert model.responses_.n_responses == len(rows)
