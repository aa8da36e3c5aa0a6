"""A classifier on features as the class prior: what is learnt, what is refused, what stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.test_bound import assert_never_falls
from refusals import noted
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import tiebreak as tb
from tiebreak.errors import OptionError, TiebreakError
from tiebreak.life import Stream
from tiebreak.tables import Features, read_features

N, N_NEW, K = 300, 60, 3
OPTION = (tb.VariationalBayes, tb.Auto)
pytestmark = pytest.mark.filterwarnings("ignore:Workers of|.*not seen by the model")


class Crowd:
    """A crowd with features that tell of classes, and tasks that nobody answered."""

    def __init__(self, seed: int = 0, distance: float = 1.5, responses_per_task: int = 2) -> None:
        made = tb.simulate.crowd(N, 12, K, responses_per_task=responses_per_task, random_state=seed)
        rng = np.random.default_rng(seed)
        self.responses = made.responses
        classes = list(self.responses.classes)
        self.truth = made.gold.to_dict() | {f"new{i}": classes[i % K] for i in range(N_NEW)}
        self.tasks: Any = list(self.truth)
        centre = rng.normal(0.0, distance, (K, 5))
        at = [classes.index(each) for each in self.truth.values()]
        self.values = centre[at] + rng.normal(size=(len(at), 5))
        self.features = (self.tasks, self.values)
        self.of_answered = read_features(self.features).on(self.responses.tasks)

    def accuracy(self, labels: tb.Labels, *, of_new: bool = False) -> float:
        best = labels.best()
        asked = [task for task in best if str(task).startswith("new") == of_new]
        return float(np.mean([best[task] == self.truth[task] for task in asked]))


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    return Crowd()


@pytest.fixture(scope="module")
def model(crowd: Crowd) -> Any:
    return tb.VariationalBayes().fit(crowd.responses, features=crowd.features)


def noise(crowd: Crowd, seed: int = 1) -> tuple[Any, Any]:
    values = np.random.default_rng(seed).normal(size=(crowd.responses.n_tasks, 20))
    return crowd.responses.tasks, values


def codes_of(refused: Any) -> str:
    return str(refused.value.code)


# -- what is learnt --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OPTION)
def test_features_help_where_responses_are_few_and_label_tasks_without_any(
    crowd: Crowd, kind: Any
) -> None:
    plain = kind().fit(crowd.responses)
    model = kind().fit(crowd.responses, features=crowd.features)
    assert crowd.accuracy(model.labels_) > crowd.accuracy(plain.labels_) + 0.03
    assert crowd.accuracy(model.labels_, of_new=True) > 0.85
    assert model.classifier_weight_ > 0.5
    assert model.classifier_gain_.standard_errors > 5.0
    assert model.classifier_probabilities_.shape == (N + N_NEW, K)
    assert model.classifier_probabilities_.sum(axis=1) == pytest.approx(1.0)
    assert list(model.classifier_.estimator.classes_) == list(model.classes_)
    assert plain.classifier_weight_ is plain.classifier_gain_ is None


def test_the_bound_never_falls_and_class_shares_are_those_of_labels(
    model: Any,
) -> None:
    assert_never_falls(model.bounds_)
    assert model.class_prior_ == pytest.approx(model._state.q.mean(axis=0), abs=0.01)


@pytest.mark.parametrize("kind", OPTION)
def test_noise_is_dropped_and_the_fit_is_that_without_features(crowd: Crowd, kind: Any) -> None:
    with pytest.warns(tb.InputNote) as notes:
        model = kind().fit(crowd.responses, features=noise(crowd))
    assert "classifier-dropped" in [getattr(each.message, "code", "") for each in notes]
    plain = kind().fit(crowd.responses)
    assert model.classifier_weight_ == 0.0
    assert model.classifier_ is None
    assert model.labels_.best() == plain.labels_.best()
    assert np.abs(model.probabilities_ - plain.probabilities_).max() < 1e-12


def test_what_says_nothing_else_may_be_said_in_any_order(crowd: Crowd) -> None:
    """Rows of features, and rows of responses: the order of neither is a feature."""
    model: Any = tb.VariationalBayes().fit(crowd.responses, features=crowd.features)
    turned = crowd.tasks[::-1], crowd.values[::-1]
    other = tb.VariationalBayes().fit(crowd.responses, features=turned)
    place = other.tasks_.codes(model.tasks_)
    answered = slice(0, N)
    gap = np.abs(other.probabilities_[place][answered] - model.probabilities_[answered])
    assert gap.max() < 1e-6


@settings(max_examples=10, deadline=None)
@given(st.integers(0, N - 1), st.integers(0, 2**16))
def test_no_task_is_classified_by_training_on_itself(task: int, seed: int) -> None:
    """With the labels of other tasks held fixed, f of a task does not move when its own does."""
    from tiebreak.inference.tasks.classifier import Trainer

    crowd = Crowd()
    rng = np.random.default_rng(seed)
    target = rng.dirichlet(np.ones(K), N)
    other = target.copy()
    other[task] = np.roll(target[task], 1)
    untrained = tb.ClassifierPrior().untrained(read_features(crowd.features))
    trainer = Trainer(untrained, crowd.of_answered, crowd.responses.classes)
    informed = np.ones(N, dtype=bool)
    f, g = (
        trainer.out_of_fold(each, informed, 5, np.random.default_rng(0)) for each in (target, other)
    )
    assert (f[task] == g[task]).all()
    assert (f != g).any()


def test_a_weight_of_two_is_a_response_given_twice() -> None:
    crowd = Crowd()
    task, worker = crowd.responses.task_of_each(), crowd.responses.worker_of_each()
    label = crowd.responses.label_of_each()
    named: Any = crowd.responses.tasks, crowd.responses.workers, crowd.responses.classes
    both: Any = [np.concatenate([each, each]) for each in (task, worker, label)]
    twice = tb.Responses.from_codes(*both, *named)
    heavy = tb.Responses.from_codes(task, worker, label, *named, weight=np.full(len(task), 2.0))
    one, other = (tb.VariationalBayes().fit(r, features=crowd.features) for r in (twice, heavy))
    assert one.classifier_weight_ == other.classifier_weight_
    assert np.abs(one.probabilities_ - other.probabilities_).max() < 1e-9


def test_without_features_scikit_learn_is_not_imported() -> None:
    script = (
        "import sys, tiebreak as tb\n"
        "model = tb.Auto().fit([('a', 'ann', 'x'), ('b', 'bob', 'y')])\n"
        "tb.VariationalBayes(task_model=None).fit([('a', 'ann', 'x'), ('b', 'bob', 'y')])\n"
        "model.predict([('c', 'ann', 'x')])\n"
        "assert 'sklearn' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)


# -- classifiers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classifier",
    [LogisticRegression(C=0.1), make_pipeline(StandardScaler(), GaussianNB()), "given"],
)
def test_any_classifier_with_probabilities_will_do(crowd: Crowd, classifier: Any) -> None:
    features: Any = crowd.features
    if classifier == "given":
        rows = LogisticRegression().fit(crowd.values, list(crowd.truth.values()))
        columns = dict(zip(rows.classes_, rows.predict_proba(crowd.values).T, strict=True))
        features = {"task": crowd.tasks, **columns}
    prior = tb.ClassifierPrior(classifier)
    model: Any = tb.VariationalBayes(task_model=prior).fit(crowd.responses, features=features)
    assert model.classifier_weight_ > 0.2
    assert crowd.accuracy(model.labels_, of_new=True) > 0.85
    again = model.predict(features=features)
    assert crowd.accuracy(again, of_new=True) > 0.85
    assert not hasattr(classifier, "classes_")  # it was cloned


def test_a_classifier_is_trained_eleven_times(crowd: Crowd) -> None:
    class Counted(LogisticRegression):  # type: ignore[misc]
        n = 0

        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            Counted.n += 1
            assert sample_weight is not None
            return super().fit(X, y, sample_weight=sample_weight)

    prior = tb.ClassifierPrior(Counted())
    tb.VariationalBayes(task_model=prior).fit(crowd.responses, features=crowd.features)
    assert Counted.n == 11


def test_few_texts_without_a_word_in_common() -> None:
    votes = [(task, who, task[0]) for task in ("x1", "x2", "y1", "y2") for who in ("ann", "bob")]
    texts = {"x1": "red cat", "x2": "blue dog", "y1": "green bird", "y2": "white fish"}
    with noted("classifier-dropped"):
        model = tb.VariationalBayes().fit(votes, features=texts)
    assert model.labels_.best() == {task: task[0] for task in texts}


def test_two_classes_texts_and_sparse_rows(crowd: Crowd) -> None:
    made = tb.simulate.crowd(200, 8, 2, responses_per_task=2, random_state=1)
    rng = np.random.default_rng(0)
    words = {"0": "good fine best", "1": "bad poor worst"}
    classes = list(made.responses.classes)
    texts = {
        task: " ".join(rng.permutation(words[str(classes.index(label))].split())[:2])
        for task, label in made.gold.to_dict().items()
    }
    model: Any = tb.VariationalBayes().fit(made.responses, features=texts)
    assert model.classifier_weight_ > 0.5
    new = model.predict(features={"p": "best fine", "q": "poor worst"})
    assert list(new.best().values()) == classes
    dense = tb.VariationalBayes().fit(crowd.responses, features=crowd.features)
    rows = crowd.tasks, sparse.csr_matrix(crowd.values)
    thin = tb.VariationalBayes().fit(crowd.responses, features=rows)
    assert crowd.accuracy(thin.labels_) == pytest.approx(crowd.accuracy(dense.labels_), abs=0.02)


# -- links and gold --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OPTION)
def test_links_and_gold_work_with_features(crowd: Crowd, kind: Any) -> None:
    rng = np.random.default_rng(0)
    pairs = [tuple(rng.choice(crowd.tasks[:N], 2, replace=False)) for _ in range(30)]
    same = [p for p in pairs if crowd.truth[p[0]] == crowd.truth[p[1]]]
    apart = [p for p in pairs if crowd.truth[p[0]] != crowd.truth[p[1]]]
    links = tb.Links.from_pairs(must=same, cannot=apart)
    gold = {task: crowd.truth[task] for task in crowd.tasks[::15]}  # of new tasks, too
    plain = kind().fit(crowd.responses, links=links)
    linked = kind().fit(crowd.responses, links=links, features=crowd.features)
    assert len(linked.violations_) == 0
    assert crowd.accuracy(linked.labels_) > crowd.accuracy(plain.labels_)
    known = kind().fit(crowd.responses, gold=gold, features=crowd.features)
    best = known.labels_.best()
    assert all(best[task] == label for task, label in gold.items())
    both = kind().fit(crowd.responses, gold=gold, links=links, features=crowd.features)
    assert len(both.violations_) == 0
    assert crowd.accuracy(both.labels_) > 0.9


@pytest.mark.parametrize("kind", OPTION)
def test_constraints_are_kept_with_features(crowd: Crowd, kind: Any) -> None:
    one = next(iter(crowd.responses.classes))
    of_one = [task for task in crowd.tasks[:N] if crowd.truth[task] == one][:20]
    others = [task for task in crowd.tasks[:N] if crowd.truth[task] != one][:40]
    groups = [*zip(of_one, range(20), strict=True), *zip(others, [*range(20)] * 2, strict=True)]
    rules = tb.Constraints.groups([(task, str(g)) for task, g in groups], "exactly one", one)
    model = kind().fit(crowd.responses, constraints=rules, features=crowd.features)
    best = model.labels_.best()
    named = [g for task, g in groups if best[task] == one]
    assert sorted(named) == list(range(20))
    plain = kind().fit(crowd.responses, features=crowd.features)
    assert crowd.accuracy(model.labels_) > crowd.accuracy(plain.labels_)


def test_predict_joins_new_tasks_by_links_and_features(crowd: Crowd, model: Any) -> None:
    new = (["p", "q"], crowd.values[[0, 0]])
    alone = model.predict(features=new)
    assert alone.best()["p"] == alone.best()["q"]
    apart = tb.Links.from_pairs(cannot=[("p", "q"), ("p", crowd.tasks[1])])
    linked = model.predict(features=new, links=apart)
    assert linked.best()["p"] != linked.best()["q"]


# -- a model that is kept --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OPTION)
def test_a_kept_model_predicts_from_features_alone(crowd: Crowd, kind: Any, tmp_path: Path) -> None:
    model = kind().fit(crowd.responses, features=crowd.features)
    model.save(tmp_path / "crowd.tbm")
    again = tb.load(tmp_path / "crowd.tbm")
    new = crowd.tasks[N:], crowd.values[N:]
    one, other = (each.predict(features=new) for each in (model, again))
    assert one.best() == other.best()
    assert np.abs(one.probabilities - other.probabilities).max() < 1e-12
    assert crowd.accuracy(one, of_new=True) > 0.85
    trained = model.classifier_.estimator.predict_proba(crowd.values[N:])
    assert trained.argmax(axis=1).tolist() == one.label.tolist()
    assert again.classifier_weight_ == model.classifier_weight_
    assert again.classifier_gain_ == model.classifier_gain_
    assert again.classifier_.estimator is None
    # Responses and features together; with no features, class shares are believed.
    said = [("new0", worker, crowd.truth["new1"]) for worker in list(again.workers_)[:6]]
    with_both = again.predict(said, features=(crowd.tasks[N : N + 1], crowd.values[N : N + 1]))
    assert with_both.probability[0] != again.predict(said).probability[0]


def test_a_classifier_of_ones_own_is_given_again_and_never_unpickled(
    crowd: Crowd, tmp_path: Path
) -> None:
    prior = tb.ClassifierPrior(LogisticRegression())
    model: Any = tb.VariationalBayes(task_model=prior).fit(crowd.responses, features=crowd.features)
    model.save(tmp_path / "crowd.tbm")
    again = tb.load(tmp_path / "crowd.tbm")
    new = crowd.tasks[N:], crowd.values[N:]
    with pytest.raises(OptionError) as refused:
        again.predict(features=new)
    assert codes_of(refused) == "classifier-not-kept"
    given_again = again.predict(features=new, classifier=model.classifier_.estimator)
    assert given_again.best() == model.predict(features=new).best()
    with pytest.raises(OptionError) as refused:
        again.update(gold={crowd.tasks[0]: crowd.truth[crowd.tasks[0]]}, features=crowd.features)
    assert codes_of(refused) == "no-predict-proba"


def test_an_update_needs_the_features_of_all_tasks(crowd: Crowd) -> None:
    half = crowd.responses.on_tasks(np.arange(N // 2))
    rest = crowd.responses.on_tasks(np.arange(N // 2, N))
    model: Any = tb.VariationalBayes().fit(half, features=crowd.features)
    for more in ({}, {"features": crowd.features, "forget": 0.5}):
        with pytest.raises(OptionError) as refused:
            model.update(rest, **more)
        assert codes_of(refused) == "features-not-updated"
    with pytest.raises(OptionError) as refused:
        tb.VariationalBayes().fit(half).update(rest, features=crowd.features)
    assert codes_of(refused) == "features-not-updated"
    model.update(rest, features=crowd.features)
    whole = tb.VariationalBayes().fit(crowd.responses, features=crowd.features)
    assert crowd.accuracy(model.labels_) == pytest.approx(crowd.accuracy(whole.labels_), abs=0.02)
    for needs_counts in (lambda: model.save("nowhere.tbm", keep="counts"), lambda: Stream(model)):
        with pytest.raises(OptionError) as refused:
            needs_counts()
        assert codes_of(refused) == "features-not-counted"


# -- what is refused -------------------------------------------------------------------------------


def frame(crowd: Crowd, **more: Any) -> dict[str, Any]:
    tasks = list(crowd.responses.tasks)
    return {"task": tasks, "one": crowd.of_answered[:, 0], **more}


@pytest.mark.parametrize(
    ("features", "code", "fields"),
    [
        (lambda c: {t: [1.0] for t in c.tasks[1:N]}, "tasks-without-features", {"n": 1}),
        (lambda c: frame(c, bad=[np.nan] + [1.0] * (N - 1)), "feature-not-finite", {"n": 1}),
        (lambda c: frame(c, bad=[np.inf] * N), "feature-not-finite", {"column": "bad", "n": N}),
        (lambda c: frame(c, bad=["so"] * N), "text-among-numbers", {"texts": ["bad"]}),
        (lambda c: {"task": c.tasks}, "no-features", {}),
        (lambda c: {"task": ["a", "a"], "one": [1.0, 2.0]}, "features-twice", {"task": "a"}),
        (lambda c: {"task": ["a", None], "one": [1.0, 2.0]}, "features-without-task", {}),
        (lambda c: {"a": [1.0], "b": [1.0, 2.0]}, "features-no-matrix", {}),
        (lambda c: (c.tasks, c.values[1:]), "features-no-matrix", {}),
        (lambda c: "rows.npy", "npy-without-tasks", {"file": "rows.npy"}),
    ],
)
def test_bad_features_are_refused(crowd: Crowd, features: Any, code: str, fields: Any) -> None:
    with pytest.raises(TiebreakError) as refused:
        tb.VariationalBayes().fit(crowd.responses, features=features(crowd))
    assert refused.value.code == code
    assert fields.items() <= refused.value.fields.items()


def test_bad_options_are_refused(crowd: Crowd, model: Any) -> None:
    def refused(code: str, kind: Any = tb.VariationalBayes, **options: Any) -> None:
        with pytest.raises(TiebreakError) as found:
            kind(**options).fit(crowd.responses, features=crowd.features)
        assert found.value.code == code

    refused("no-predict-proba", task_model=tb.ClassifierPrior(LinearSVC()))
    refused("no-predict-proba", task_model=tb.ClassifierPrior("forest"))
    refused("classifier-of-other-classes", task_model=tb.ClassifierPrior("given"))
    refused("no-task-model", task_model=LogisticRegression())
    refused("features-need-exact-links", link_options=tb.MeanFieldOptions())
    with pytest.raises(TiebreakError) as found:
        tb.VariationalBayes(task_model=tb.ClassifierPrior()).fit(crowd.responses)
    assert codes_of(found) == "task-model-without-features"
    for options in ({"n_rounds": 0}, {"n_folds": 1}, {"random_state": -1}):
        with pytest.raises(OptionError):
            tb.ClassifierPrior(**options)
    with pytest.raises(TiebreakError) as found:
        model.predict(features={"p": "a text"})
    assert codes_of(found) == "other-features"
    with pytest.raises(TiebreakError) as found:
        model.predict(features=(["p"], np.ones((1, 3))))
    assert codes_of(found) == "other-features"
    named = {"task": crowd.tasks, "b": crowd.values[:, 1], "a": crowd.values[:, 0]}
    of_names = tb.VariationalBayes().fit(crowd.responses, features=named)
    turned = {"task": ["p"], "z": [0.0], "a": crowd.values[:1, 0], "b": crowd.values[:1, 1]}
    as_given = {"task": ["p"], "b": crowd.values[:1, 1], "a": crowd.values[:1, 0]}
    one, other = (of_names.predict(features=each) for each in (turned, as_given))
    assert one.probability == pytest.approx(other.probability)
    with pytest.raises(TiebreakError) as found:
        of_names.predict(features={"task": ["p"], "a": [0.0], "c": [0.0]})
    assert codes_of(found) == "other-features"
    with pytest.raises(TiebreakError) as found:
        tb.VariationalBayes().fit(crowd.responses).predict(features=crowd.features)
    assert codes_of(found) == "features-without-classifier"
    with pytest.raises(TiebreakError) as found:
        model.predict()
    assert codes_of(found) == "nothing-to-predict"


def test_what_looks_like_ids_is_noted_and_equal_rows_count_once(crowd: Crowd) -> None:
    tasks = list(crowd.responses.tasks)
    with pytest.warns(tb.InputNote) as notes:
        read = read_features(frame(crowd, row=list(range(N))))
    (note,) = [each.message for each in notes if isinstance(each.message, tb.InputNote)]
    assert (note.code, note.fields["columns"]) == ("features-like-ids", ["row"])
    twice = read_features((tasks + tasks, np.vstack([crowd.of_answered] * 2)))
    assert isinstance(twice, Features)
    assert np.array_equal(twice.values, crowd.of_answered)
    assert read.columns == ("one", "row")


def test_rare_classes_and_classifiers_without_weights_train_all_the_same() -> None:
    crowd = Crowd()
    votes = [
        (
            crowd.responses.tasks[int(t)],
            crowd.responses.workers[int(w)],
            crowd.truth[crowd.tasks[t]],
        )
        for t, w in zip(
            crowd.responses.task_of_each(), crowd.responses.worker_of_each(), strict=True
        )
    ]
    odd = [(votes[0][0], who, "rare") for who in ("p", "q", "r")]
    with pytest.warns(tb.InputNote) as notes:
        model: Any = tb.VariationalBayes().fit([*votes[2:], *odd], features=crowd.features)
    assert "classifier-rare-classes" in [getattr(each.message, "code", "") for each in notes]
    assert model.classifier_weight_ > 0.5
    prior = tb.ClassifierPrior(KNeighborsClassifier())
    with pytest.warns(tb.InputNote) as notes:
        tb.VariationalBayes(task_model=prior).fit(crowd.responses, features=crowd.features)
    assert "classifier-unweighted" in [getattr(each.message, "code", "") for each in notes]


# -- what is said ----------------------------------------------------------------------------------


def test_the_report_shows_where_features_and_labels_differ_most(crowd: Crowd, model: Any) -> None:
    from tiebreak.report import explain, measure, render

    found = measure(model)
    section = found["sections"]["features"]
    assert section["weight"] == model.classifier_weight_
    assert section["n_without_responses"] == N_NEW
    f = model.classifier_probabilities_
    differs = (f.argmax(axis=1) != model.labels_.label)[: crowd.responses.n_tasks]
    assert section["n_differ"] == differs.sum()
    assert all(each["label"] != each["class"] for each in section["tasks"])
    assert section["tasks"][0]["task"] in render(found)
    assert measure(tb.VariationalBayes().fit(crowd.responses))["sections"]["features"] is None
    odd = section["tasks"][0]["task"]
    reason = explain(model, odd)
    assert reason.features is not None
    assert reason.features < 1.0
    assert "features" in [name for name, _ in _bars(reason)]


def _bars(reason: Any) -> list[Any]:
    return [(row[0], row[1]) for row in reason.chart.rows]


def test_gold_is_held_out_with_the_features_of_the_fit(crowd: Crowd, tmp_path: Path) -> None:
    gold = {task: crowd.truth[task] for task in crowd.tasks[:N:3]}
    model = tb.VariationalBayes().fit(crowd.responses, gold=gold, features=crowd.features)
    estimate = model.decide().estimate_accuracy()
    assert estimate.n_known > 0
    model.save(tmp_path / "crowd.tbm")
    again = tb.load(tmp_path / "crowd.tbm")
    assert again.decide().estimate_accuracy().n_known == 0


# -- real crowds -----------------------------------------------------------------------------------


class Real:
    """A development crowd, its known labels and features, and labels of tasks nobody answered."""

    def __init__(self, name: str, table: str, data_dir: Path, sets_dir: Path) -> None:
        here = sets_dir / "data-features" / name
        self.responses = tb.read_responses(data_dir / name / "responses.csv")
        self.gold = tb.read_gold(data_dir / name / "gold.csv")
        self.unanswered = tb.read_gold(here / "gold_unanswered.csv")
        self.features = read_features(here / table)

    def few(self, n: int, seed: int) -> tb.Responses:
        """Draw so many responses of each task."""
        crowd = self.responses
        order = np.random.default_rng(seed).permutation(crowd.n_responses)
        task = crowd.task_of_each()
        order = order[np.argsort(task[order], kind="stable")]
        rank = np.empty(len(task), dtype=int)
        rank[order] = np.arange(len(task)) - np.repeat(crowd.start[:-1], np.diff(crowd.start))
        kept = np.flatnonzero(rank < n)
        worker, label = crowd.worker_of_each()[kept], crowd.label_of_each()[kept]
        names: Any = {"tasks": crowd.tasks, "workers": crowd.workers, "classes": crowd.classes}
        return tb.Responses.from_codes(task[kept], worker, label, **names)

    def scores(self, model: Any) -> tuple[float, float, float]:
        """Return accuracy and log-loss on known tasks, and accuracy on unanswered ones."""
        labels = model.labels_
        at: Any = labels.tasks.codes(self.gold.tasks)
        truth: Any = labels.classes.codes(self.gold.classes)[self.gold.label]
        loss = -np.log(np.maximum(labels.probabilities[at, truth], 1e-4)).mean()
        accuracy = tb.evaluate.accuracy
        new = np.nan
        if (labels.tasks.codes(self.unanswered.tasks) >= 0).any():
            new = accuracy(labels, self.unanswered)
        return accuracy(labels, self.gold), float(loss), new


@pytest.fixture(scope="module")
def music(data_dir: Path, sets_dir: Path) -> Real:
    return Real("music_genre", "features.csv", data_dir, sets_dir)


@pytest.mark.data
def test_music_genre_with_its_features(music: Real, tmp_path: Path) -> None:
    model = tb.VariationalBayes().fit(music.responses, features=music.features)
    accuracy, loss, new = music.scores(model)
    assert (accuracy >= 0.795, loss <= 0.70, new >= 0.64) == (True, True, True)
    committee = tb.Auto().fit(music.responses, features=music.features)
    assert music.scores(committee)[0] >= music.scores(tb.Auto().fit(music.responses))[0] + 0.01
    model.save(tmp_path / "music.tbm")
    labels = tb.load(tmp_path / "music.tbm").predict(features=music.features)
    assert tb.evaluate.accuracy(labels, music.unanswered) >= 0.64
    two = music.few(2, 0)
    assert music.scores(tb.VariationalBayes().fit(two, features=music.features))[0] >= 0.74
    noisy = (two.tasks, np.random.default_rng(0).normal(size=(two.n_tasks, 20)))
    with pytest.warns(tb.InputNote):
        model = tb.VariationalBayes().fit(two, features=noisy)
    assert model.classifier_weight_ == 0.0


@pytest.mark.data
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_sentence_polarity_with_its_texts(data_dir: Path, sets_dir: Path) -> None:
    real = Real("sentence_polarity", "texts.csv", data_dir, sets_dir)
    for n, least in ((1, -1.0), (2, 0.003), (99, -0.002)):
        crowd = real.few(n, 0)
        accuracy, loss, new = real.scores(tb.VariationalBayes().fit(crowd, features=real.features))
        assert accuracy >= real.scores(tb.VariationalBayes().fit(crowd))[0] + least
        assert accuracy >= real.scores(tb.MajorityVote().fit(crowd))[0]
        assert n < 99 or (loss <= 0.248 and new >= 0.73)
