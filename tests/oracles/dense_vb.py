"""Variational Bayes on dense arrays, written out plainly: one line per equation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, softmax

Floats = npt.NDArray[np.float64]


class Posterior(NamedTuple):
    """Dirichlet parameters: α, (n_classes,), and β, (n_workers, truth, answer)."""

    alpha: Floats
    beta: Floats

    @property
    def class_prior(self) -> Floats:
        return np.asarray(self.alpha / self.alpha.sum())

    @property
    def confusion(self) -> Floats:
        return np.asarray(self.beta / self.beta.sum(axis=2, keepdims=True))


def count(answers: Floats, q: Floats, class_prior: Floats, confusion_prior: Floats) -> Posterior:
    """Add what q counts to the priors; answers is (n_tasks, n_workers, n_classes), one-hot or 0."""
    n_tasks, n_workers, n_classes = answers.shape
    tables = answers.reshape(n_tasks, -1).T @ q  # (worker and answer, truth)
    by_worker = tables.reshape(n_workers, n_classes, n_classes).transpose(0, 2, 1)
    return Posterior(class_prior + q.sum(axis=0), confusion_prior + by_worker)


def label(answers: Floats, posterior: Posterior, link_field: Floats | float = 0.0) -> Floats:
    """Return class probabilities, (n_tasks, n_classes), given the posterior of the parameters."""
    alpha, beta = posterior
    log_prior = digamma(alpha) - digamma(alpha.sum())
    log_confusion = digamma(beta) - digamma(beta.sum(axis=2, keepdims=True))
    n_tasks, n_workers, n_classes = answers.shape
    table = log_confusion.transpose(0, 2, 1).reshape(n_workers * n_classes, n_classes)
    scores = log_prior + answers.reshape(n_tasks, -1) @ table + link_field
    return np.asarray(softmax(scores, axis=1))
