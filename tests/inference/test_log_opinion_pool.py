"""The log opinion pool: weights learnt from gold, links joined as ever, little gold no harm."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

import tiebreak as tb
from tiebreak import simulate
from tiebreak.gold import GoldCodes
from tiebreak.inference import opinion_weights
from tiebreak.kernels import layout
from tiebreak.kernels.contract import choose_backend

CROWD = simulate.crowd(300, 6, 3, responses_per_task=5, shared=0.5, random_state=0)
TRUTH = CROWD.gold.to_dict()
KNOWN = dict(list(TRUTH.items())[:60])


def _accuracy(model: Any) -> float:
    labels = model.labels_.best()
    return float(np.mean([labels[task] == k for task, k in TRUTH.items() if task not in KNOWN]))


def _jury(n_tasks: int, rights: list[float], seed: int = 0) -> tuple[list[Any], dict[str, str]]:
    """Make judges who are right so often, each by itself; one below .5 is mostly wrong."""
    rng = np.random.default_rng(seed)
    truth = {f"t{i}": "xy"[rng.integers(2)] for i in range(n_tasks)}
    rows = []
    for task, k in truth.items():
        for j, right in enumerate(rights):
            said = k if rng.random() < right else ("y" if k == "x" else "x")
            rows.append((task, f"j{j}", said))
    return rows, truth


def _terms(n_tasks: int = 30, weighted: bool = False) -> tuple[opinion_weights.Terms, GoldCodes]:
    rng = np.random.default_rng(3)
    n_workers, n_classes = 4, 3
    code = np.sort(rng.integers(0, n_workers * n_classes, (n_tasks, 3)), axis=1).ravel()
    weight = rng.uniform(0.2, 2.0, len(code)) if weighted else None
    tasks = layout.lay_out(
        np.arange(n_tasks + 1) * 3,
        code.astype(np.int32),
        np.zeros(n_tasks, np.int8),
        n_workers * n_classes,
        n_classes,
        weight,
    )
    table = np.log(rng.dirichlet(np.ones(n_classes), n_workers * n_classes))
    table -= table.mean(axis=1, keepdims=True)
    scale = rng.uniform(0.3, 1.0, n_tasks)
    terms = opinion_weights.Terms(tasks, table, scale, np.full(n_classes, 1 / 3))
    known = GoldCodes(
        np.arange(0, n_tasks, 2, dtype=np.int32),
        rng.integers(0, n_classes, (n_tasks + 1) // 2).astype(np.int32),
    )
    return terms, known


@pytest.mark.parametrize("weighted", [False, True])
def test_the_design_of_known_tasks_gives_the_scores_of_all_tasks(weighted: bool) -> None:
    """Gold is laid out as a matrix, other tasks are scored by kernels: the same X."""
    from tiebreak.kernels import reference

    terms, gold = _terms(weighted=weighted)
    known = opinion_weights._lay_out(terms, gold)
    x = np.random.default_rng(0).normal(size=known.design.shape[1])
    extra = np.zeros(terms.n_workers)
    extra[known.worker] = x[1:-3]
    nothing = np.zeros(terms.n_workers)
    opinion = opinion_weights.Opinion(float(x[0]), extra, x[-3:], 1.0, 1.0, nothing, nothing)
    whole = terms.scores(opinion, reference) + opinion.offset
    np.testing.assert_allclose(whole[gold.task].ravel(), known.design @ x)


def test_newton_finds_the_minimum_and_sparse_designs_agree(monkeypatch: Any) -> None:
    terms, gold = _terms()
    known = opinion_weights._lay_out(terms, gold)
    penalty = opinion_weights._penalty(known, terms, 0.7)
    found = opinion_weights._minimise(known, penalty, penalty.centre)

    def cost(x: Any) -> float:
        return opinion_weights._cost(known, penalty, x)[0]

    def gradient(x: Any) -> Any:
        return opinion_weights._cost(known, penalty, x)[1]

    assert check_grad(cost, gradient, found + 0.3) < 1e-5
    other = minimize(cost, penalty.centre, jac=gradient, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(found, other.x, atol=1e-5)
    numeric = np.array(
        [(gradient(found + h) - gradient(found - h)) / 2e-5 for h in 1e-5 * np.eye(len(found))]
    )
    q = opinion_weights._cost(known, penalty, found)[2]
    np.testing.assert_allclose(opinion_weights._curvature(known, penalty, q), numeric, atol=1e-5)
    dense = opinion_weights.learn(terms, gold)
    monkeypatch.setattr(opinion_weights, "DENSE_CELLS", 0)
    again = opinion_weights.learn(terms, gold)
    for one, two in zip(map(np.asarray, dense), map(np.asarray, again), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
    monkeypatch.setattr(opinion_weights, "MOST_FOR_NEWTON", 0)
    many = opinion_weights.learn(terms, gold)
    np.testing.assert_allclose(many.extra, dense.extra, atol=1e-3)


def test_a_judge_who_is_mostly_wrong_counts_against_what_it_says() -> None:
    rows, truth = _jury(400, [0.6, 0.6, 0.6, 0.15])
    known = dict(list(truth.items())[:100])
    model = tb.LogOpinionPool().fit(rows, gold=known)
    vb = tb.VariationalBayes().fit(rows)
    assert float(model.confusion_[3, 0, 0]) < 0.5 or model.weights_[3] < 0.0
    assert model.weight_intervals_.shape == (4, 2)
    assert (
        (model.weight_intervals_[:, 0] < model.weights_)
        & (model.weights_ < model.weight_intervals_[:, 1])
    ).all()
    rest = [task for task in truth if task not in known]

    def right(fitted: Any) -> float:
        best = fitted.labels_.best()
        return float(np.mean([best[task] == truth[task] for task in rest]))

    assert right(model) > 0.8
    assert right(model) >= right(vb)


def test_three_who_err_as_one_count_as_one() -> None:
    """Copies of one bad judge outvote two good ones; with gold they do not."""
    rows, truth = _jury(400, [0.85, 0.85, 0.6], seed=1)
    copies = [(t, f"copy{n}", k) for t, w, k in rows if w == "j2" for n in range(4)]
    known = dict(list(truth.items())[:60])
    pool = tb.LogOpinionPool().fit(rows + copies, gold=known)
    vb = tb.VariationalBayes().fit(rows + copies, gold=known)
    rest = {task: k for task, k in truth.items() if task not in known}

    def right(fitted: Any) -> float:
        best = fitted.labels_.best()
        return float(np.mean([best[task] == k for task, k in rest.items()]))

    assert right(pool) > right(vb) + 0.1


def test_links_join_the_probabilities_and_no_hard_link_is_broken() -> None:
    links = simulate.links(CROWD.gold, 80, random_state=1)
    alone = tb.LogOpinionPool().fit(CROWD.responses, gold=KNOWN)
    model = tb.LogOpinionPool().fit(CROWD.responses, gold=KNOWN, links=links)
    assert model.violations_ is not None
    assert len(model.violations_) == 0
    assert _accuracy(model) > _accuracy(alone)
    best = model.labels_.best()
    assert all(best[task] == k for task, k in KNOWN.items())
    learnt = tb.LogOpinionPool(link_options=tb.ExactLinkOptions(error="learn"))
    assert learnt.fit(CROWD.responses, gold=KNOWN, links=links).doubtful_links_ is not None


def test_two_linked_tasks_are_inferred_by_the_sum_of_their_scores() -> None:
    """A must-link adds up scores; enumerated: p(k) ∝ exp(X_a(k) + X_b(k))."""
    a, b = (task for task in list(TRUTH)[100:102])
    alone = tb.LogOpinionPool().fit(CROWD.responses, gold=KNOWN)
    links = tb.Links.from_pairs(must=[(a, b)], sampling="pairs")
    model = tb.LogOpinionPool().fit(CROWD.responses, gold=KNOWN, links=links)
    rows = [alone.probabilities_[alone.tasks_.codes([task])[0]] for task in (a, b)]
    product = rows[0] * rows[1]
    for task in (a, b):
        row = model.probabilities_[model.tasks_.codes([task])[0]]
        np.testing.assert_allclose(row, product / product.sum(), atol=1e-9)


def test_without_gold_it_says_what_to_give() -> None:
    with pytest.raises(tb.GoldError, match=r"some 50 known labels do\), or use VariationalBayes"):
        tb.LogOpinionPool().fit(CROWD.responses)


def test_mean_field_links_are_refused() -> None:
    with pytest.raises(tb.OptionError, match="infers links exactly"):
        tb.LogOpinionPool(link_options=tb.MeanFieldOptions()).fit(CROWD.responses, gold=KNOWN)


def test_gold_of_one_class_teaches_nothing_and_says_so() -> None:
    one = {task: k for task, k in TRUTH.items() if k == "c1"}
    with pytest.warns(tb.InputNote, match="All gold is 'c1'"):
        model = tb.LogOpinionPool().fit(CROWD.responses, gold=one)
    assert np.ptp(model.weights_) < 0.1
    known = set(one)
    rest = [i for i, task in enumerate(model.tasks_) if task not in known]
    honest = tb.VariationalBayes(calibrate="votes").fit(CROWD.responses).probabilities_
    assert np.abs(model.probabilities_[rest] - honest[rest]).max() < 0.1


def test_five_gold_labels_leave_weights_near_what_is_expected() -> None:
    few = dict(list(TRUTH.items())[:5])
    with pytest.warns(tb.InputNote, match="With 5 gold labels the weights"):
        model = tb.LogOpinionPool().fit(CROWD.responses, gold=few)
    assert model.ridge_ == opinion_weights.RIDGES[0]
    assert np.ptp(model.weights_) < 0.1


def test_odd_juries_are_fitted_without_a_crash() -> None:
    rows, truth = _jury(80, [0.8])
    known = dict(list(truth.items())[:30])
    same = [(t, name, k) for t, _, k in rows for name in ("a", "b", "c")]
    against = {task: "y" if k == "x" else "x" for task, k in known.items()}
    for crowd, gold in ((rows, known), (same, known), (same, against)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tb.InputNote)
            model = tb.LogOpinionPool().fit(crowd, gold=gold)
        assert np.isfinite(model.probabilities_).all()
        rest = [i for i, task in enumerate(model.tasks_) if task not in gold]
        assert model.probabilities_[rest].max() < 0.97, "one judge's word is never that sure"
    assert len(set(model.weights_.round(6))) == 1, "identical judges count alike"


def test_it_keeps_its_parameters_and_starts_from_a_model() -> None:
    from sklearn.base import clone

    model = tb.LogOpinionPool(dependence=0.5)
    assert clone(model).get_params() == model.get_params()
    first = tb.VariationalBayes().fit(CROWD.responses)
    cold = clone(model).fit(CROWD.responses, gold=KNOWN)
    warm = clone(model).fit(CROWD.responses, gold=KNOWN, start=first)
    assert np.abs(cold.probabilities_ - warm.probabilities_).max() < 1e-3


def test_where_all_gold_contradicts_the_judges_it_is_no_surer_than_gold_can_show(
    monkeypatch: Any,
) -> None:
    """Fifty labels that are all turned round: (50 + 2) / (50 + 3) at most, by [eq:opinion-fit].

    Votes that gold contradicts limit it further, which is left out here: [eq:overturned].
    """
    rows, truth = _jury(200, [0.95] * 8)
    known = {task: "y" if k == "x" else "x" for task, k in list(truth.items())[:50]}
    monkeypatch.setattr(tb.LogOpinionPool, "_heeds_gold", False)
    pool = tb.LogOpinionPool().fit(rows, gold=known)
    plain = tb.VariationalBayes().fit(rows)
    rest = np.array([task not in known for task in pool.tasks_])
    is_other = pool.labels_.label[rest] != plain.labels_.label[rest]
    assert is_other.mean() > 0.95
    n = pool._opinion.overturned
    assert n is not None
    assert 45 <= n <= 50
    top = pool.probabilities_[rest].max(axis=1)
    assert top[is_other].max() == pytest.approx((n + 2) / (n + 3))


def test_a_limit_lowers_the_highest_score_only_and_keeps_the_label() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(0.0, 4.0, (200, 3))
    found = opinion_weights._limited(scores, 5)
    top = np.exp(found - np.logaddexp.reduce(found, axis=1)[:, None]).max(axis=1)
    assert top.max() <= 7 / 8 + 1e-12
    assert (found.argmax(axis=1) == scores.argmax(axis=1)).all()
    assert (found != scores).sum(axis=1).max() == 1
    low = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None]).max(axis=1) <= 7 / 8
    assert (found[low] == scores[low]).all()
    assert not low.all()


def test_what_gold_does_not_overturn_is_not_limited_nor_are_weights_kept_before_that() -> None:
    terms, known = _terms()
    opinion = opinion_weights.learn(terms, known)
    assert opinion.overturned is not None
    backend = choose_backend("numpy", 10)
    free = terms.scores(opinion._replace(overturned=None), backend)
    limited = terms.scores(opinion._replace(overturned=0), backend)
    before = terms.together(backend) + np.log(terms.shares)
    same = (free + opinion.offset).argmax(axis=1) == before.argmax(axis=1)
    assert (free[same] == limited[same]).all()
    own = (free + opinion.offset)[known.task].argmax(axis=1)
    assert opinion.overturned == np.count_nonzero(own != before[known.task].argmax(axis=1))
