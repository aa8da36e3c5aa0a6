"""A classifier on the tasks' own features as their class prior, learnt from the crowd.

    y_i ~ Cat(p_i),   p_i(k) ∝ f_i(k)^a,   0 ≤ a ≤ 1

f_i has the class probabilities of a classifier that was not trained on task i. The one new
parameter is a: how far the classifier is believed. It is chosen by how well it predicts responses
of workers as all other tasks show them, so that nothing confirms itself; a classifier that predicts
them no better than class shares is dropped.

    votes ──▶ train out of fold ──f──▶ a ──rows of log prior──▶ plain VB ──q──▶ train again
"""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.arguments import optional, whole
from tiebreak.data import Responses
from tiebreak.data.ids import MISSING, Ids
from tiebreak.errors import InputError, MissingExtraError, OptionError, note
from tiebreak.inference.calibration import Calibration, n_responses
from tiebreak.inference.climb import FitState, Problem, Stopping, climb
from tiebreak.inference.dirichlet import confusion_prior
from tiebreak.inference.known import Known
from tiebreak.inference.tasks import with_log_prior
from tiebreak.inference.workers import ConfusionMatrices
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Floats, Mask, Offsets, weights_or_ones

if TYPE_CHECKING:
    from tiebreak.tables import Features

GIVEN = "given"  # the features are class probabilities already
# Standard errors by which responses are predicted better; twenty columns of noise had 3.8 at most,
# useful features 19 or more, in 18 fits of music_genre and sentence_polarity.
LEAST_GAIN = 5.0
MIXED = 1e-3  # of the class shares in f: nothing is impossible
TINY = 1e-12
FEW_TEXTS = 200  # below, a term of one text counts: there may be no other
LOOSE, LAST = Stopping(1e-2), Stopping(1e-5)  # of ascents between trainings, and of the last one


@dataclass(frozen=True, eq=False)
class ClassifierPrior:
    """A classifier, trained on what the crowd says of tasks, is the class prior of each task.

    Parameters
    ----------
    classifier
        Any scikit-learn estimator with `predict_proba`; it is cloned, never fitted in place. None:
        logistic regression, for numbers on standardised columns with C = 0.1, for text on TF-IDF of
        words and pairs of words with C = 1. "given": the columns of the features are named as the
        classes and hold their probabilities, by a model that was not trained on these tasks.
    n_rounds, n_folds
        How often it is trained anew on the labels of the fit before, and in how many folds: each
        task is classified by training on the other ones.
    random_state
        Draws the folds; None: 0.

    Examples
    --------
    >>> import tiebreak as tb
    >>> model = tb.VariationalBayes(task_model=tb.ClassifierPrior(n_folds=10))
    """

    classifier: Any = None
    _: KW_ONLY
    n_rounds: int = 2
    n_folds: int = 5
    random_state: int | None = None

    def __post_init__(self) -> None:
        whole(1)("ClassifierPrior.n_rounds", self.n_rounds)
        whole(2)("ClassifierPrior.n_folds", self.n_folds)
        optional(whole(0))("ClassifierPrior.random_state", self.random_state)

    def without_code(self) -> ClassifierPrior:
        """Return the same with the name of an estimator in its place: what a model file holds."""
        is_code = not isinstance(self.classifier, str | None)
        return replace(self, classifier=type(self.classifier).__name__) if is_code else self

    def untrained(self, features: Features) -> Any:
        """Return the classifier to train on these features."""
        made = self.classifier
        if isinstance(made, str) and made == GIVEN:
            return Given(features.columns)
        if made is not None:
            if not hasattr(made, "predict_proba"):
                raise OptionError("no-predict-proba", classifier=made)
            return made
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        except ImportError:
            what = "A classifier on features"
            raise MissingExtraError.needed("scikit-learn", "features", what) from None
        if features.is_text:
            least = 2 if len(features.values) >= FEW_TEXTS else 1  # texts that a term is in
            words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=least)
            return make_pipeline(words, LogisticRegression(C=1.0, max_iter=1000))
        scaler = StandardScaler(with_mean=not hasattr(features.values, "tocsr"))
        return make_pipeline(scaler, LogisticRegression(C=0.1, max_iter=1000))


class ClassifierGain(NamedTuple):
    """By how much the classifier predicts responses better than class shares do."""

    nats: float  # a task
    standard_errors: float


class Given:
    """Class probabilities that stand in the features, with the methods of a classifier."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.classes_ = columns

    def fit(self, values: Floats, label: Any, sample_weight: Any = None) -> Given:
        return self

    def predict_proba(self, values: Floats) -> Floats:
        total = values.sum(axis=1, keepdims=True)
        if (values < 0.0).any() or not (total > 0.0).all():
            raise InputError("no-given-probabilities")
        return np.asarray(values / total)


class LinearClassifier(NamedTuple):
    """A default classifier as plain arrays: it predicts what the pipeline predicts."""

    classes_: Ids
    coefficient: Floats  # (n_classes, n_columns)
    intercept: Floats  # (n_classes,)
    words: Ids | None = None  # of text: the terms,
    idf: Floats | None = None  # and their inverse document frequencies

    @classmethod
    def of(cls, pipeline: Any) -> LinearClassifier:
        """Take a trained default pipeline apart."""
        first, last = (each for _, each in pipeline.steps)
        coefficient, intercept = last.coef_, last.intercept_
        if len(intercept) == 1:  # of two classes: the log-odds of the second one
            coefficient = np.vstack([np.zeros_like(coefficient), coefficient])
            intercept = np.append(0.0, intercept)
        classes = Ids(last.classes_.tolist())
        if hasattr(first, "idf_"):
            words = Ids(first.get_feature_names_out().tolist())
            return cls(classes, coefficient, intercept, words, first.idf_)
        coefficient = coefficient / first.scale_
        if first.with_mean:
            intercept = intercept - coefficient @ first.mean_
        return cls(classes, coefficient, intercept)

    def predict_proba(self, values: Any) -> Floats:
        if self.words is not None:
            from sklearn.feature_extraction.text import TfidfVectorizer

            how = {"sublinear_tf": True, "ngram_range": (1, 2), "vocabulary": list(self.words)}
            reader = TfidfVectorizer(**how)
            reader.idf_ = self.idf
            values = reader.transform(values)
        return softmax(np.asarray(values @ self.coefficient.T) + self.intercept)


@dataclass(eq=False)
class TaskClassifier:
    """A classifier trained on all tasks of a fit: it says what new tasks may be by their features.

    `estimator` is the trained one; a model file holds the default ones alone, as arrays.
    """

    name: str
    share: Floats  # (n_classes,) mixed in
    columns: tuple[str, ...]
    shape: tuple[int, ...]  # of a row: (n_columns,), () of a text
    linear: LinearClassifier | None = None
    estimator: Any = field(default=None, init=False)

    def probabilities(self, features: Features, tasks: Ids, classes: Ids, other: Any) -> Floats:
        """Return f, (n_tasks, n_classes), by the trained classifier or by another one."""
        values = features.on(tasks)
        if self.columns and features.columns and self.shape and not features.is_text:
            at = Ids(list(features.columns)).codes(list(self.columns))  # by their names
            values = values[:, at[at != MISSING]]
        if values.shape[1:] != self.shape:
            kind = "numbers in columns" if self.shape else "texts"
            raise InputError("other-features", kind=kind, columns=list(self.columns))
        made = other or (Given(self.columns) if self.name == GIVEN else None)
        made = made or self.linear or self.estimator
        if made is None:
            raise OptionError("classifier-not-kept", classifier=self.name)
        return _probabilities(made, values, classes, self.share)


class Learnt(NamedTuple):
    """What a fit learns of features; `weight` 0: the classifier was dropped."""

    weight: float  # a
    gain: ClassifierGain
    probabilities: Floats  # f, (n_tasks, n_classes), each by training on other folds
    classifier: TaskClassifier | None
    log_prior: Floats  # ln p
    q: Floats  # where the last ascent ended


def learn(
    prior: ClassifierPrior,
    features: Features,
    plain: Problem,
    known: Known,
    crowd: Responses,
    dependence: float,
) -> Learnt:
    """Learn a classifier and its weight from responses and known labels.

    `plain` is plain VB of the crowd, with a row for each task, and neither links nor known labels.
    """
    values, n_given = features.on(crowd.tasks), n_responses(plain.rows)
    votes = q = target = known.clamp(plain.votes())
    informed = n_given > 0.0
    informed[known.task] = True
    scale = Calibration(dependence).scale(n_given)
    trainer = Trainer(prior.untrained(features), values, crowd.classes)
    most = weight = 1.0
    for turn in range(prior.n_rounds):
        rng = np.random.default_rng([prior.random_state or 0, turn])
        f = trainer.out_of_fold(target, informed, prior.n_folds, rng)
        log_f = np.log(f)
        if turn == 0:  # votes alone, and no table of workers: nothing is circular
            most = best_weight(log_f[informed], np.log(np.maximum(votes[informed], TINY)), 1.0)
        weight = most
        for step in range(3):
            log_prior = raised(log_f, weight)
            problem = known.on(with_log_prior(plain, log_prior))
            is_last = step == 2 and turn == prior.n_rounds - 1
            q = climb(problem, FitState(known.clamp(q)), LAST if is_last else LOOSE).q
            own = evidence_without_own(problem, q, known)
            if step < 2:
                weight = best_weight(log_f[informed], own[informed], most)
        target = known.clamp(softmax(np.log(np.maximum(q, 1e-300)), scale))
    # How much better responses are predicted than by class shares: [eq:classifier-gain].
    shares = np.log(np.maximum(q[informed].mean(axis=0), 1e-300))
    each = np.logaddexp.reduce(log_prior[informed] + own[informed], axis=1)
    each -= np.logaddexp.reduce(shares + own[informed], axis=1)
    error = float(each.std()) / np.sqrt(len(each))
    nats = float(each.mean())
    gain = ClassifierGain(nats, nats / error if error > 0.0 else 0.0)
    if gain.standard_errors < LEAST_GAIN:
        note("classifier-dropped", **gain._asdict())
        return Learnt(0.0, gain, f, None, log_prior, q)
    untrained = trainer.untrained
    name = GIVEN if isinstance(untrained, Given) else type(untrained).__name__
    about = (name, target[informed].mean(axis=0), features.columns, values.shape[1:])
    made = TaskClassifier(*about)
    made.estimator = trainer.train(target, np.flatnonzero(informed))
    if prior.classifier is None:
        made.linear = LinearClassifier.of(made.estimator)
    return Learnt(weight, gain, f, made, log_prior, q)


class Trainer:
    """A classifier to train on some tasks of a crowd, and to ask about others."""

    def __init__(self, untrained: Any, values: Any, classes: Ids) -> None:
        self.untrained, self.values, self.classes = untrained, values, classes
        last, self.weights = untrained, "sample_weight"  # the argument of fit
        if hasattr(untrained, "steps"):  # a pipeline hands it to its last step
            name, last = untrained.steps[-1]
            self.weights = f"{name}__sample_weight"
        self.is_weighted = "sample_weight" in inspect.signature(last.fit).parameters
        if not self.is_weighted:
            note("classifier-unweighted", classifier=untrained)

    def train(self, target: Floats, rows: Offsets) -> Any:
        """Train on the likeliest class of each task, weighed by how sure it is; None: it is one."""
        label = target[rows].argmax(axis=1)
        if len(np.unique(label)) < 2:
            return None
        sure = np.maximum(target[rows].max(axis=1) - 1.0 / len(self.classes), MIXED)
        made = self.untrained
        if not isinstance(made, Given):
            from sklearn.base import clone

            made = clone(made)
        weights = {self.weights: sure / sure.mean()} if self.is_weighted else {}
        try:
            return made.fit(self.values[rows], np.array(list(self.classes))[label], **weights)
        except ValueError as error:
            raise OptionError("classifier-failed", reason=str(error).split("\n")[0]) from error

    def out_of_fold(
        self, target: Floats, informed: Mask, n_folds: int, rng: np.random.Generator
    ) -> Floats:
        """Return f of each task by a classifier that was trained without it.

        Tasks that nothing is known of have the mean of all classifiers.
        """
        at = np.flatnonzero(informed)
        n_each = np.bincount(target[at].argmax(axis=1), minlength=len(self.classes))
        if n_each[n_each > 0].min() < n_folds:
            n_folds = 2
            if (n_each == 1).any():
                rare = [self.classes[int(k)] for k in np.flatnonzero(n_each == 1)]
                note("classifier-rare-classes", classes=rare)
        fold = np.full(len(target), MISSING)
        fold[rng.permutation(at)] = np.arange(len(at)) % n_folds
        f = np.zeros(target.shape)
        for own in range(n_folds):
            rows = at[fold[at] != own]
            share = target[rows].mean(axis=0)
            made = self.train(target, rows)
            for chosen, part in ((fold == own, 1.0), (fold == MISSING, 1.0 / n_folds)):
                if chosen.any():
                    some = self.values[chosen]
                    f[chosen] += part * _probabilities(made, some, self.classes, share)
        return f


def _probabilities(made: Any, values: Any, classes: Ids, share: Floats) -> Floats:
    """Return f by a trained classifier, mixed with class shares; None: by class shares alone."""
    f = np.tile(share, (values.shape[0], 1))
    if made is not None:
        seen = classes.codes(list(made.classes_))
        if (seen == MISSING).any() or (isinstance(made, Given) and len(seen) < len(classes)):
            given = {"classes": list(classes), "given": list(made.classes_)}
            raise InputError("classifier-of-other-classes", **given)
        f[:] = 0.0
        f[:, seen] = made.predict_proba(values)
    return np.asarray((1.0 - MIXED) * f + MIXED * np.maximum(share, TINY))


def raised(log_f: Floats, weight: float) -> Floats:
    """Return ln p, [eq:classifier-prior]."""
    scaled = weight * log_f
    return np.asarray(scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True))


def evidence_without_own(problem: Problem, q: Floats, known: Known) -> Floats:
    """Return s of [eq:classifier-weight]: what workers, as other tasks show them, say of a task.

    Its own share is taken out of their counts. A known class is certain.
    """
    rows, n_classes = problem.rows, problem.n_classes
    task, code = rows.task_of_each(), rows.code
    weight = weights_or_ones(rows.weight, len(code))[:, None]
    mine = weight * q[task]
    counts = np.stack([np.bincount(code, each, rows.n_codes) for each in mine.T], axis=1)
    prior = confusion_prior("diagonal", Ids(()), n_classes)
    if isinstance(problem.workers, ConfusionMatrices):
        prior = problem.workers.prior
    beta = prior + counts.reshape(-1, n_classes, n_classes)
    total = beta.sum(axis=1)[code // n_classes] - mine
    logs = weight * np.log((beta.reshape(-1, n_classes)[code] - mine) / total)
    found: Floats = np.stack([np.bincount(task, each, rows.n_tasks) for each in logs.T], axis=1)
    found[known.task] = -np.inf
    found[known.task, known.label] = 0.0
    return found


def best_weight(log_f: Floats, evidence: Floats, most: float) -> float:
    """Return a, 0 to `most`, with which the classifier predicts the evidence best."""
    from scipy.optimize import minimize_scalar

    def loss(weight: float) -> float:
        return -float(np.logaddexp.reduce(raised(log_f, weight) + evidence, axis=1).sum())

    found = float(minimize_scalar(loss, bounds=(0.0, most), method="bounded").x)
    return most if loss(most) <= loss(found) else found
