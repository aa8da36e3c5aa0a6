"""The right mode: when a fit has settled, where it starts, and how often a group pays the prior."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from links.graphs import Rows as LinkRows
from links.graphs import codes, graphs
from properties.strategies import Crowd, crowds, problem_of
from properties.test_bound import assert_never_falls
from scipy.special import gammaln

import tiebreak as tb
from tiebreak.data import Ids, Responses
from tiebreak.inference import FitState, Known, Problem, Stopping, climb
from tiebreak.inference.tasks import mean_field
from tiebreak.inference.tasks.coupling import starts
from tiebreak.inference.tasks.coupling.linked import with_links
from tiebreak.inference.tasks.coupling.starts import LinkedGroups
from tiebreak.kernels import Floats
from tiebreak.links.graph import LinkCodes, components, imply

Rows = list[tuple[str, str, str]]

SEQUENCES = Path(__file__).parents[2] / "experiments" / "04_modes" / "sequences.npz"
LEARN = tb.ExactLinkOptions(error="learn")


# 1. A fit has settled when links have reached workers and free tasks.


def cannot_links_between_equal_votes() -> tuple[Rows, dict[str, Any]]:
    rows: Rows = []
    for pair in range(30):
        for side in "ab":
            rows += [(f"{side}{pair}", worker, "xy"[pair % 2]) for worker in ("w1", "w2", "w3")]
    for free, votes in enumerate(("xxx", "xxy", "yyx", "yyy")):
        rows += [(f"free{free}", f"w{w + 1}", vote) for w, vote in enumerate(votes)]
    left = [f"a{pair}" for pair in range(30)]
    right = [f"b{pair}" for pair in range(30)]
    return rows, {"left": left, "right": right, "link": ["cannot"] * 30}


@pytest.mark.parametrize("is_warm", [False, True], ids=["cold", "warm"])
def test_a_fit_does_not_settle_before_links_have_reached_workers(is_warm: bool) -> None:
    rows, links = cannot_links_between_equal_votes()
    plain = tb.VariationalBayes(calibrate="none").fit(rows)
    start = {"start": plain} if is_warm else {}
    model = tb.VariationalBayes(calibrate="none").fit(rows, links=links, **start)
    place = [list(model.tasks_).index(f"free{free}") for free in range(4)]
    assert model.converged_
    assert model.n_iter_ > 3
    assert model.bounds_[-1] == pytest.approx(-164.91, abs=0.005)
    assert model.probabilities_[place, 0] == pytest.approx([0.549, 0.518, 0.482, 0.451], abs=5e-4)


def test_a_fit_does_not_settle_while_error_rates_of_links_move() -> None:
    """Votes are tied, so that no q moves; rates do."""
    rows: Rows = []
    for pair in range(30):
        for side in "ab":
            rows += [(f"{side}{pair}", "w1", "x"), (f"{side}{pair}", "w2", "y")]
    links = tb.Links.from_columns(
        [f"a{pair}" for pair in range(30)],
        [f"b{pair}" for pair in range(30)],
        [pair % 3 != 0 for pair in range(30)],
    )
    options = tb.ExactLinkOptions(error="learn", error_prior=(1.0, 19.0))
    model = tb.VariationalBayes(link_options=options).fit(rows, links=links)
    end = tb.VariationalBayes(link_options=options, tol=0.0, max_iter=2000).fit(rows, links=links)
    assert model.converged_
    assert model.bounds_[-1] == pytest.approx(end.bounds_[-1], abs=1e-4)
    assert model.link_errors_ is not None
    assert end.link_errors_ is not None
    assert model.link_errors_[None] == pytest.approx(end.link_errors_[None], abs=1e-4)


# 2. Two classes do not swap names.


def crowd_that_confuses_classes() -> tuple[Responses, dict[str, str]]:
    """120 tasks of four classes; more than half of each look like the next one to everybody."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 120)
    looks = np.where(rng.random(120) < 0.55, (truth + 1) % 4, truth)
    rows = []
    for task in range(120):
        for worker in range(5):
            label = looks[task] if rng.random() < 0.8 else rng.integers(0, 4)
            rows.append((f"t{task}", f"w{worker}", f"c{label}"))
    return Responses.from_rows(rows), {f"t{task}": f"c{truth[task]}" for task in range(120)}


def ask(responses: Responses, truth: dict[str, str]) -> tuple[tb.Links, tb.VariationalBayes]:
    """Ask in six rounds, as a session does; return the links and the warm model."""
    model = tb.VariationalBayes(backend="numpy").fit(responses)
    left: list[Any] = []
    right: list[Any] = []
    for _ in range(6):
        rng = np.random.default_rng(0)
        for one, other, _ in tb.selection.pairs(model, 10, "adaptive", None, rng):
            left.append(one)
            right.append(other)
        same = [truth[one] == truth[other] for one, other in zip(left, right, strict=True)]
        links = tb.Links.from_columns(left, right, same, sampling="pairs")
        model = tb.VariationalBayes(backend="numpy").fit(responses, links=links, start=model)
    return links, model


def test_a_cold_fit_finds_the_mode_of_the_session() -> None:
    """With one start it ends lower, and classes have swapped names in 21 tasks of 120."""
    responses, truth = crowd_that_confuses_classes()
    links, warm = ask(responses, truth)
    cold = tb.VariationalBayes(backend="numpy").fit(responses, links=links)
    assert cold.bounds_[-1] == pytest.approx(warm.bounds_[-1], abs=1e-3)
    assert cold.labels_.best() == warm.labels_.best()
    with mock.patch.object(LinkedGroups, "needs_starts", new=False):
        one = tb.VariationalBayes(backend="numpy").fit(responses, links=links)
    assert one.bounds_[-1] < cold.bounds_[-1] - 5.0
    n_right = [
        sum(truth[str(task)] == label for task, label in model.labels_.best().items())
        for model in (cold, one)
    ]
    assert n_right[0] >= n_right[1] + 20


@pytest.mark.parametrize("options", [None, LEARN], ids=["hard", "learn"])
def test_links_and_responses_in_any_order_give_the_same(options: Any) -> None:
    responses, truth = crowd_that_confuses_classes()
    links, _ = ask(responses, truth)
    rng = np.random.default_rng(1)
    rows = list(
        zip(
            (responses.tasks[int(task)] for task in responses.task_of_each()),
            (responses.workers[int(worker)] for worker in responses.worker_of_each()),
            (responses.classes[int(label)] for label in responses.label_of_each()),
            strict=True,
        )
    )
    shuffled = Responses.from_rows([rows[at] for at in rng.permutation(len(rows))])
    model = tb.VariationalBayes(link_options=options, backend="numpy")
    first = model.fit(responses, links=links)
    probabilities = dict(zip(first.tasks_, first.probabilities_.tolist(), strict=True))
    bound = first.bounds_[-1]
    turned = links.select(rng.permutation(len(links)))
    again = model.fit(shuffled, links=turned)
    assert again.bounds_[-1] == pytest.approx(bound, abs=1e-4)
    for task, row in zip(again.tasks_, again.probabilities_.tolist(), strict=True):
        assert row == pytest.approx(probabilities[task], abs=1e-3)


def test_links_that_make_only_pairs_are_fitted_from_one_start() -> None:
    crowd = tb.simulate.crowd(60, 5, 3, random_state=0)
    names = list(crowd.gold.tasks)
    label = crowd.gold.label
    chain = {at for k in range(3) for at in np.flatnonzero(label == k)[:3].tolist()}
    in_pairs = [(at, at + 1) for at in range(0, 60, 2)]
    in_chain = [(one, other) for one in chain for other in chain if one < other]
    for ends, n_starts in ((in_pairs, 0), (in_chain, 1)):
        left, right = zip(*ends, strict=True)
        must = [bool(label[one] == label[other]) for one, other in ends]
        columns = ([names[at] for at in left], [names[at] for at in right], must)
        with mock.patch.object(starts, "at_surest", side_effect=starts.at_surest) as surest:
            tb.VariationalBayes().fit(
                crowd.responses, links=tb.Links.from_columns(*columns, sampling="pairs")
            )
        assert surest.call_count == n_starts


@pytest.mark.data
@pytest.mark.parametrize(("name", "checkpoint"), [("zencrowd_india", 1), ("web", 2)])
def test_a_cold_fit_of_asked_links_is_as_good_as_the_session(
    data_dir: Path, name: str, checkpoint: int
) -> None:
    gold = tb.read_gold(data_dir / name / "gold.csv")
    responses = tb.read_responses(data_dir / name / "responses.csv").with_classes(gold.classes)
    stored = np.load(SEQUENCES)
    n = int(stored[f"{name}/0/n"][checkpoint])
    left, right, must = (stored[f"{name}/0/{part}"][:n] for part in ("left", "right", "must"))
    ends = (responses.tasks.take(left), responses.tasks.take(right))
    links = tb.Links.from_columns(*ends, must, sampling="pairs")
    cold = tb.VariationalBayes().fit(responses, links=links)
    score = tb.evaluate.f_score(cold.labels_, gold, average="macro")
    assert score >= float(stored[f"{name}/0/warm"][checkpoint]) - 0.01


# 3. Gold is not outvoted.


def accuracy_with_gold(n_gold: int, seed: int, *, accuracy: float, flip: bool) -> float:
    crowd = tb.simulate.crowd(300, 5, 2, responses_per_task=5, accuracy=accuracy, random_state=seed)
    known = dict(list(crowd.gold.to_dict().items())[:n_gold])
    if flip:
        one, other = crowd.responses.classes
        known = {task: other if label == one else one for task, label in known.items()}
    model = tb.VariationalBayes().fit(crowd.responses, gold=known)
    return tb.evaluate.accuracy(model.labels_, crowd.gold)


@pytest.mark.parametrize("n_gold", [10, 20, 60])
def test_gold_turns_an_inverted_crowd_round(n_gold: int) -> None:
    for seed in range(3):
        assert accuracy_with_gold(n_gold, seed, accuracy=0.2, flip=False) > 0.85


@pytest.mark.long
@pytest.mark.parametrize("n_gold", [10, 20, 60])
def test_gold_turns_twenty_inverted_crowds_round(n_gold: int) -> None:
    for seed in range(20):
        assert accuracy_with_gold(n_gold, seed, accuracy=0.2, flip=False) > 0.85


def test_five_wrong_gold_labels_do_not_turn_a_crowd_that_is_right() -> None:
    for seed in range(5):
        assert accuracy_with_gold(5, seed, accuracy=0.8, flip=True) > 0.8


# 4. Duplicates are one draw of the class: the prior is paid once per unit.


def as_duplicates(crowd: Crowd, seed: int, *, alone: bool = False) -> LinkCodes:
    """Let links hold for some labelling, and let some of the must-links join duplicates."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, crowd.responses.n_classes, crowd.responses.n_tasks)
    links = crowd.links
    must = truth[links.left] == truth[links.right]
    return links._replace(must=must, duplicate=must & (alone or rng.random(len(must)) < 0.7))


def units_of(links: LinkCodes, n_tasks: int) -> list[int]:
    """Return one task of each unit: of each component of duplicates."""
    assert links.duplicate is not None
    unit = components(n_tasks, links.left[links.duplicate], links.right[links.duplicate])
    return [int(first) for first in np.unique(unit, return_index=True)[1]]


def dirichlet(prior: Floats, counts: Floats) -> float:
    """Return the log probability of what was counted, with shares integrated out."""
    after = prior + counts
    return float(
        (gammaln(after) - gammaln(prior)).sum() + gammaln(prior.sum()) - gammaln(after.sum())
    )


def log_joint(crowd: Crowd, y: tuple[int, ...], units: list[int]) -> float:
    """Return log p(y, responses), with π drawn once per unit; parameters are integrated out."""
    responses = crowd.responses
    n_classes = responses.n_classes
    counts = np.zeros((responses.n_workers, n_classes, n_classes))  # [worker, truth, answer]
    each = (responses.task_of_each(), responses.worker_of_each(), responses.label_of_each())
    for task, worker, label in zip(*each, strict=True):
        counts[worker, y[task], label] += 1.0
    totals = np.bincount([y[task] for task in units], minlength=n_classes).astype(float)
    prior = crowd.confusion_prior[0].T  # [truth, answer]
    of_workers = sum(
        dirichlet(prior[k], counts[worker, k])
        for worker in range(responses.n_workers)
        for k in range(n_classes)
    )
    return dirichlet(crowd.class_prior, totals) + of_workers


def labellings(crowd: Crowd, links: LinkCodes, known: dict[int, int]) -> list[tuple[int, ...]]:
    """Return every labelling that keeps the links and what is known."""
    responses = crowd.responses
    ends = list(zip(links.left, links.right, links.must, strict=True))
    return [
        y
        for y in product(range(responses.n_classes), repeat=responses.n_tasks)
        if all((y[i] == y[j]) == must for i, j, must in ends)
        and all(y[task] == label for task, label in known.items())
    ]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("are_hard", [True, False])
@given(graph=graphs(6))
def test_only_links_that_tie_three_tasks_need_several_starts(
    n_classes: int, are_hard: bool, graph: tuple[int, LinkRows]
) -> None:
    n_tasks, rows = graph
    links = codes(rows)
    implied = imply(links, n_classes, firm=np.full(links.n_links, are_hard))
    groups = starts.linked_groups(implied, np.arange(n_tasks, dtype=float), Known.of(None))
    several = starts.ties_three(links, n_classes)
    assert several or not groups.needs_starts
    each_once = len({tuple(sorted(row[:2])) for row in rows}) == links.n_links
    if each_once and not len(implied.odd) and not len(implied.closure.conflicts):
        assert several == groups.needs_starts


FEW = Stopping(0.0, 12, accelerate=False)


def problem_with(crowd: Crowd, links: LinkCodes, options: tb.ExactLinkOptions) -> Problem:
    firm = np.zeros(links.n_links, dtype=bool) if options.is_soft else None
    implied = imply(links, crowd.responses.n_classes, firm=firm)
    return with_links(problem_of(crowd), implied, options)


@settings(max_examples=60)
@given(crowds(max_tasks=5), st.integers(0, 1000))
def test_the_bound_of_a_labelling_draws_the_class_once_per_unit(crowd: Crowd, seed: int) -> None:
    """Where q is certain, nothing is approximate: the bound is log p, and each unit is one draw."""
    links = as_duplicates(crowd, seed)
    if not links.n_links:
        return
    n_tasks = crowd.responses.n_tasks
    problem = problem_with(crowd, links, tb.ExactLinkOptions())
    every = labellings(crowd, links, {})
    for y in every[:: max(1, len(every) // 5)]:
        q = np.eye(problem.n_classes)[list(y)]
        bound = problem.bound(problem.implied(q), 0.0)
        assert bound == pytest.approx(log_joint(crowd, y, units_of(links, n_tasks)), abs=1e-9)


@settings(max_examples=60)
@given(crowds(max_tasks=5), st.integers(0, 1000))
def test_the_bound_with_duplicates_stays_below_the_evidence(crowd: Crowd, seed: int) -> None:
    links = as_duplicates(crowd, seed)
    if not links.n_links:
        return
    problem = problem_with(crowd, links, tb.ExactLinkOptions())
    bounds = climb(problem, FitState(q=problem.votes()), FEW).bounds
    units = units_of(links, crowd.responses.n_tasks)
    scores = [log_joint(crowd, y, units) for y in labellings(crowd, links, {})]
    assert bounds[-1] <= np.logaddexp.reduce(scores) + 1e-9
    assert bounds[-1] >= max(scores) - 5.0  # and not far below


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_unit_has_the_exact_posterior_where_parameters_are_known(n_classes: int) -> None:
    """Priors of a million pseudo-counts leave nothing to learn: q is the posterior itself."""
    share = np.array([0.2, 0.8] if n_classes == 2 else [0.1, 0.3, 0.6])
    right = 0.7
    wrong = (1.0 - right) / (n_classes - 1)
    rows = [("a", "w", "c0"), ("b", "w", "c1"), ("c", "w", "c0"), ("d", "w", "c1")]
    rows += [("e", "w", f"c{n_classes - 1}")]
    links = tb.Links.from_columns(
        ["a", "b", "c", "d"], ["b", "c", "d", "e"], ["duplicate", "duplicate", "must", "cannot"]
    )
    model = tb.VariationalBayes(
        class_prior=(1e8 * share).tolist(),
        confusion_prior=(1e8 * right, 1e8 * wrong),
        calibrate="none",
    ).fit(
        Responses.from_rows(rows).with_classes(Ids([f"c{k}" for k in range(n_classes)])),
        links=links,
    )
    vote = [int(row[2][1]) for row in rows]
    posterior = np.zeros((5, n_classes))
    for y in product(range(n_classes), repeat=5):
        if len(set(y[:4])) > 1 or y[3] == y[4]:
            continue
        weight = share[y[0]] * share[y[3]] * share[y[4]]  # a, b and c are one draw
        weight *= np.prod([right if y[i] == vote[i] else wrong for i in range(5)])
        posterior[np.arange(5), y] += weight
    posterior /= posterior.sum(axis=1, keepdims=True)
    assert model.probabilities_ == pytest.approx(posterior, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_soft_copies_have_the_exact_posterior_where_parameters_are_known(n_classes: int) -> None:
    """A copy is another class with the error rate, and then each other class alike."""
    right = 0.7
    wrong = (1.0 - right) / (n_classes - 1)
    error = 0.2
    rows = [("a", "w", "c0"), ("b", "w", "c1"), ("c", "w", "c0"), ("d", "w", "c1")]
    links = tb.Links.from_columns(["a", "b"], ["b", "c"], ["duplicate", "duplicate"])
    model = tb.VariationalBayes(
        class_prior=1e8,
        confusion_prior=(1e8 * right, 1e8 * wrong),
        link_options=tb.ExactLinkOptions(error="learn", error_prior=(0.2e8, 0.8e8)),
        calibrate="none",
    ).fit(
        Responses.from_rows(rows).with_classes(Ids([f"c{k}" for k in range(n_classes)])),
        links=links,
    )
    posterior = np.zeros((4, n_classes))
    log_evidence = -np.inf
    for y in product(range(n_classes), repeat=4):
        weight = 1.0 / n_classes**2  # of a and of d; b is a copy of a, c of b
        for i, j in ((0, 1), (1, 2)):
            weight *= 1.0 - error if y[i] == y[j] else error / (n_classes - 1)
        votes = [right if y[i] == int(rows[i][2][1]) else wrong for i in range(4)]
        weight *= float(np.prod(votes))
        posterior[np.arange(4), y] += weight
        log_evidence = np.logaddexp(log_evidence, np.log(weight))
    posterior /= posterior.sum(axis=1, keepdims=True)
    assert model.probabilities_ == pytest.approx(posterior, abs=1e-5)
    assert model.bounds_[-1] == pytest.approx(log_evidence, abs=1e-4)


def test_copies_with_a_rate_that_is_known_have_the_exact_posterior() -> None:
    """As where rates are learnt, but given: three classes, and classes of different shares."""
    right = 0.7
    wrong = 0.15
    error = 0.2
    share = np.array([0.5, 0.3, 0.2])
    rows = [("a", "w", "c0"), ("b", "w", "c1"), ("c", "w", "c2")]
    links = tb.Links.from_columns(["a"], ["b"], ["duplicate"])
    model = tb.VariationalBayes(
        class_prior=(1e8 * share).tolist(),
        confusion_prior=(1e8 * right, 1e8 * wrong),
        link_options=tb.ExactLinkOptions(error=error),
        calibrate="none",
    ).fit(rows, links=links)
    joint = np.zeros((3, 3))
    for y in product(range(3), repeat=2):
        joint[y] = np.sqrt(share[y[0]] * share[y[1]])  # one prior, shared evenly
        joint[y] *= 1.0 - error if y[0] == y[1] else error / 2.0
        joint[y] *= np.prod([right if y[i] == i else wrong for i in range(2)])
    joint /= joint.sum()
    found = model.probabilities_[model.tasks_.codes(["a", "b"])]
    assert found == pytest.approx(np.array([joint.sum(axis=1), joint.sum(axis=0)]), abs=1e-5)


@settings(max_examples=60)
@given(crowds(max_tasks=6), st.integers(0, 1000), st.sampled_from([None, 0.1, "learn"]))
def test_the_bound_never_falls_with_duplicates(crowd: Crowd, seed: int, error: Any) -> None:
    links = as_duplicates(crowd, seed)
    if not links.n_links:
        return
    problem = problem_with(crowd, links, tb.ExactLinkOptions(error=error))
    assert_never_falls(list(climb(problem, FitState(q=problem.votes()), FEW).bounds))


@settings(max_examples=60)
@given(crowds(max_tasks=6), st.integers(0, 1000), st.sampled_from([0.5, 2.0, 20.0]))
def test_the_bound_never_falls_with_duplicates_in_mean_field(
    crowd: Crowd, seed: int, strength: float
) -> None:
    links = as_duplicates(crowd, seed)
    if not links.n_links:
        return
    implied = imply(links, crowd.responses.n_classes)
    options = tb.MeanFieldOptions(strength=strength)
    problem, _ = mean_field.with_mean_field(problem_of(crowd), implied, options)
    start = FitState(q=problem.votes())
    state, *_ = mean_field.climb_strengths(problem, start, options, links, FEW)
    assert_never_falls(list(state.bounds))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_warm_fit_with_duplicates_ends_where_the_cold_one_does(n_classes: int) -> None:
    crowd = tb.simulate.crowd(80, 6, n_classes, responses_per_task=3, random_state=1)
    tasks = np.array(list(crowd.gold.tasks))
    rows = []
    for k in range(n_classes):
        mine = tasks[crowd.gold.label == k][:15]
        rows += [(one, other, "duplicate") for one, other in pairwise(mine)]
    links = tb.Links.from_rows(rows)
    plain = tb.VariationalBayes(tol=1e-9).fit(crowd.responses)
    cold = tb.VariationalBayes(tol=1e-9).fit(crowd.responses, links=links)
    warm = tb.VariationalBayes(tol=1e-9).fit(crowd.responses, links=links, start=plain)
    assert warm.bounds_[-1] == pytest.approx(cold.bounds_[-1], abs=1e-4)
    assert warm.probabilities_ == pytest.approx(cold.probabilities_, abs=1e-4)


def test_groups_of_duplicates_do_not_drown_a_rare_class() -> None:
    """Nine tasks in ten are of one class: groups that paid for each task would join it."""
    crowd = tb.simulate.crowd(
        200, 8, 2, responses_per_task=3, accuracy=0.65, class_prior=[0.9, 0.1], random_state=4
    )
    tasks = np.array(list(crowd.gold.tasks))
    left: list[Any] = []
    right: list[Any] = []
    for k in range(2):
        mine = tasks[crowd.gold.label == k]
        for begin in range(0, len(mine) - 1, 5):
            group = mine[begin : begin + 5]
            left += group[:-1].tolist()
            right += group[1:].tolist()
    scores = {}
    for sampling in ("pairs", "duplicates"):
        links = tb.Links.from_columns(left, right, [True] * len(left), sampling=sampling)
        model = tb.VariationalBayes().fit(crowd.responses, links=links)
        scores[sampling] = tb.evaluate.f_score(model.labels_, crowd.gold, average="macro")
    assert scores["duplicates"] > scores["pairs"] + 0.05


# 5. Error rates of links.


def test_a_source_of_must_links_alone_keeps_their_force() -> None:
    """Two rates would let "same of different tasks" run away: no answer of it speaks against."""
    crowd = tb.simulate.crowd(200, 10, 4, responses_per_task=3, accuracy=0.5, random_state=0)
    rng = np.random.default_rng(0)
    left: list[Any] = []
    right: list[Any] = []
    tasks = np.array(list(crowd.gold.tasks))
    for k in range(4):
        mine = rng.permutation(tasks[crowd.gold.label == k])
        left += mine[:-1].tolist()
        right += mine[1:].tolist()
    links = tb.Links.from_columns(left, right, [True] * len(left))
    plain = tb.VariationalBayes().fit(crowd.responses)
    soft = tb.VariationalBayes(link_options=LEARN).fit(crowd.responses, links=links)
    assert soft.link_errors_ is not None
    same, different = soft.link_errors_[None][:2]
    assert same == pytest.approx(different)
    assert different < 0.2
    assert tb.evaluate.accuracy(soft.labels_, crowd.gold) > 0.05 + tb.evaluate.accuracy(
        plain.labels_, crowd.gold
    )


@pytest.mark.parametrize("wrong", [0.15, 0.3])
def test_wrong_links_are_found_out(wrong: float) -> None:
    """The prior is overruled where many links show the rate."""
    crowd = tb.simulate.crowd(400, 10, 2, responses_per_task=5, random_state=0)
    links = tb.simulate.links(crowd.gold, 400, wrong=wrong, random_state=0)
    soft = tb.VariationalBayes(link_options=LEARN).fit(crowd.responses, links=links)
    assert soft.link_errors_ is not None
    assert np.mean(soft.link_errors_[None][:2]) == pytest.approx(wrong, abs=0.05)


@pytest.mark.parametrize(
    "options",
    [
        tb.ExactLinkOptions(),
        tb.ExactLinkOptions(error=0.1),
        tb.ExactLinkOptions(error="learn"),
        tb.MeanFieldOptions(strength=2.0),
    ],
    ids=["hard", "rate", "learn", "mean field"],
)
def test_duplicates_in_any_order_of_rows_give_the_same(options: Any) -> None:
    """Also where copies have different numbers of responses, which scale them differently."""
    rows = [("few", "ann", "x")]
    rows += [("many", f"w{w}", "xxyxy"[w]) for w in range(5)]
    rows += [("third", f"w{w}", "yyxx"[w]) for w in range(4)]
    rows += [(f"t{i}", f"w{w}", "y") for i in range(6) for w in range(5)]
    links = {"left": ["few", "many"], "right": ["many", "third"], "link": ["duplicate"] * 2}
    model = tb.VariationalBayes(tol=1e-9, link_options=options)
    one = model.fit(rows, links=links)
    code = one.tasks_.codes(sorted(one.tasks_))
    expected = one.probabilities_[code]
    bound = one.bounds_[-1]
    other = model.fit(rows[::-1], links=links)
    code = other.tasks_.codes(sorted(other.tasks_))
    assert np.abs(expected - other.probabilities_[code]).max() < 1e-6
    assert other.bounds_[-1] == pytest.approx(bound)


@pytest.mark.parametrize("n_others", [1, 30])
def test_copies_of_a_known_task_share_one_prior(n_others: int) -> None:
    """Classes are counted once for three copies, whether all tasks are pooled or only some."""
    rows = [(task, "w", "x") for task in "abc"] + [(f"d{i}", "w", "y") for i in range(n_others)]
    links = {"left": ["a", "b"], "right": ["b", "c"], "link": ["duplicate"] * 2}
    model = tb.VariationalBayes(calibrate="none").fit(rows, links=links, gold={"b": "x"})
    others = model.probabilities_[model.tasks_.codes([f"d{i}" for i in range(n_others)])]
    alpha = 1.0 + np.array([1.0, 0.0]) + others.sum(axis=0)
    assert model.class_prior_ == pytest.approx(alpha / alpha.sum(), abs=1e-4)


def test_how_near_modes_are_depends_on_how_far_errors_are_shared() -> None:
    made = tb.simulate.crowd(60, 8, 3, responses_per_task=6, accuracy=(0.4, 0.6), random_state=5)
    links = tb.simulate.links(made.gold, 60, random_state=5)
    apart, shared = (
        tb.VariationalBayes(dependence=each).fit(made.responses, links=links).uncertain_groups_
        for each in (0.01, 0.99)
    )
    assert len(apart) < len(shared)
    assert all(group in shared for group in apart)
