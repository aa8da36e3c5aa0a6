"""Random small crowds, and what they actually did."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from oracles import dense_vb
from oracles.dense_vb import Floats, Posterior

from tiebreak.research import theory


class Drawn(NamedTuple):
    """A crowd, its data, and class probabilities that are somewhat wrong."""

    crowd: theory.Assumptions
    truth: npt.NDArray[np.int64]
    answers: Floats  # (n_tasks, n_workers, n_classes), one-hot, 0 where nobody answered
    q: Floats
    is_linked: npt.NDArray[np.bool_]

    @property
    def indicator(self) -> Floats:
        return np.eye(self.crowd.n_classes)[self.truth]

    @property
    def posterior(self) -> Posterior:
        prior = self.crowd.class_prior_counts, self.crowd.confusion_counts
        return dense_vb.count(self.answers, self.q, *prior)

    @property
    def label_errors(self) -> theory.LabelErrors:
        error = np.abs(self.q - self.indicator).max(axis=1)
        linked = error[self.is_linked]
        unlinked = error[~self.is_linked]
        worst = unlinked.max(initial=0.0), linked.max(initial=0.0)
        return theory.LabelErrors(*worst, linked_share=float(self.is_linked.mean()))

    @property
    def deviations(self) -> theory.Deviations:
        """How far this crowd's counts strayed."""
        crowd = self.crowd
        share = self.indicator.T / self.crowd.n_tasks
        answers = np.einsum("kn,nmc->mkc", share, self.answers)
        rate = crowd.response_rate[:, None] * crowd.class_prior
        return theory.Deviations(
            np.abs(share.sum(axis=1) - crowd.class_prior),
            np.abs(answers - rate[:, :, None] * crowd.confusion),
            np.abs(answers.sum(axis=2) - rate),
        )

    @property
    def plain_deviations(self) -> theory.Deviations:
        """The same, as the plain theorem has them: s = min t/γ, so t must be at least γ s."""
        gamma = self.crowd.confusion
        tasks, answers, answered = self.deviations
        answers = np.maximum(answers, gamma * answered[:, :, None])
        return theory.Deviations(tasks, answers, (answers / gamma).min(axis=2))

    def parameter_errors(self, posterior: Posterior) -> theory.ParameterErrors:
        return theory.ParameterErrors(
            np.abs(posterior.class_prior - self.crowd.class_prior),
            np.abs(posterior.confusion - self.crowd.confusion),
            float(posterior.alpha.sum()),
            posterior.beta.sum(axis=2),
        )

    @property
    def evidence(self) -> Floats:
        """Σ ln(γ_truth / γ_l) over the answers on each task, (n_tasks, n_classes)."""
        log_confusion = np.log(self.crowd.confusion)
        scores = np.einsum("nmc,mkc->nk", self.answers, log_confusion)
        own = scores[np.arange(len(scores)), self.truth]
        return np.asarray(own[:, None] - scores)


def draw(seed: int) -> Drawn:
    """Draw a crowd in which every worker is a kind of their own; some are nearly balanced."""
    rng = np.random.default_rng(seed)
    floor = float(rng.choice([0.02, 0.1, 10.0]))
    n_classes, n_workers, n_tasks = rng.integers([2, 1, 5], [5, 6, 81])
    crowd = theory.Assumptions(
        class_prior=_rows(rng, (n_classes,), floor=floor),
        confusion=_rows(rng, (n_workers, n_classes, n_classes), floor=floor),
        n_tasks=int(n_tasks),
        response_rate=rng.uniform(0.3, 1.0, n_workers),
        class_prior_counts=rng.uniform(0.5, 5.0, n_classes),
        confusion_counts=rng.uniform(0.5, 5.0, (n_workers, n_classes, n_classes)),
    )
    truth, answers = draw_data(crowd, rng)
    wrong = rng.dirichlet(np.ones(n_classes), n_tasks)
    doubt = rng.uniform(0, rng.choice([0.001, 0.05, 0.3]), (n_tasks, 1))
    q = (1 - doubt) * np.eye(n_classes)[truth] + doubt * wrong
    return Drawn(crowd, truth, answers, q, rng.random(n_tasks) < 0.3)


def draw_exact(seed: int) -> Drawn:
    """Draw a crowd whose counts are exactly as expected, and probabilities wrong at their worst.

    One worker answers half of the tasks of each class, those that are linked. All errors push the
    same entry of the confusions the same way.
    """
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 4))
    truth = np.repeat(np.arange(n_classes), 2 * rng.choice([8, 20, 200], n_classes))
    given = np.arange(len(truth)) % 2 == 0
    answer = np.where(rng.random(len(truth)) < 0.1, rng.integers(n_classes, size=len(truth)), truth)
    answer[np.searchsorted(truth, np.arange(n_classes)) + 2 * np.arange(n_classes)[:, None]] = (
        np.arange(n_classes)[:, None]  # every class gets every answer once
    )
    answers = (np.eye(n_classes)[answer] * given[:, None])[:, None]
    table = np.eye(n_classes)[truth].T @ answers[:, 0]
    crowd = theory.Assumptions(
        class_prior=np.bincount(truth) / len(truth),
        confusion=table / table.sum(axis=1, keepdims=True),
        n_tasks=len(truth),
        response_rate=0.5,
        confusion_counts=np.full((n_classes, n_classes), 0.5),
    )
    row, column = rng.integers(n_classes, size=2)
    linked_error, other_error = rng.uniform(0.0, 0.1, 2)
    error = np.where(given, linked_error, other_error)
    pushed = np.where(answer == column, row, (row + 1) % n_classes)
    q = (1 - error[:, None]) * np.eye(n_classes)[truth] + error[:, None] * np.eye(n_classes)[pushed]
    return Drawn(crowd, truth, answers, q, given)


def draw_posterior(found: Drawn, seed: int) -> Posterior:
    """Draw Dirichlets whose means err by up to a share of the rarest probability."""
    rng = np.random.default_rng(seed)
    crowd = found.crowd
    share = rng.uniform(0.0, 0.9)
    total = rng.uniform(1.0, 100.0) / (2 * min(crowd.rarest_class, crowd.rarest_answer))
    class_prior = crowd.class_prior + share * crowd.rarest_class * _slant(rng, (crowd.n_classes,))
    slant = _slant(rng, crowd.confusion.shape)
    return Posterior(
        np.maximum(total * class_prior, 0.5),
        np.maximum(total * (crowd.confusion + share * crowd.rarest_answer * slant), 0.5),
    )


def _slant(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Rows that sum to 0 and reach 1, most entries at an end."""
    sign = rng.choice([-1.0, 1.0], shape)
    sign -= sign.mean(axis=-1, keepdims=True)
    return np.asarray(sign / np.maximum(np.abs(sign).max(axis=-1, keepdims=True), 1e-9))


def draw_data(
    crowd: theory.Assumptions, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Draw true classes and answers; a kind with several workers stands for all of them."""
    kind = np.repeat(np.arange(len(crowd.n_workers)), crowd.n_workers)
    truth = rng.choice(crowd.n_classes, size=crowd.n_tasks, p=crowd.class_prior)
    steps = crowd.confusion[kind].cumsum(axis=2)[:, truth].transpose(1, 0, 2)
    drawn = rng.random((crowd.n_tasks, len(kind), 1))
    answer = np.minimum((drawn > steps).sum(axis=2), crowd.n_classes - 1)
    given = rng.random((crowd.n_tasks, len(kind))) < crowd.response_rate[kind]
    return truth, np.eye(crowd.n_classes)[answer] * given[:, :, None]


def _rows(rng: np.random.Generator, shape: tuple[int, ...], floor: float) -> Floats:
    rows = rng.dirichlet(np.ones(shape[-1]), shape[:-1]) + floor
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))
