"""The same variational updates by sparse matrices: what one writes without kernels."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma

from tiebreak.kernels.layout import ByTask, Floats


class SparseIbcc:
    """Responses as a matrix of tasks by (worker, label), and its transpose."""

    def __init__(self, tasks: ByTask, class_prior: Floats, confusion_prior: Floats) -> None:
        ones = np.ones(len(tasks.code))
        shape = (tasks.n_tasks, tasks.n_codes)
        self.responses = csr_array((ones, tasks.code, tasks.start), shape=shape)
        self.by_code = self.responses.T.tocsr()
        self.class_prior, self.confusion_prior = class_prior, confusion_prior
        self.n_classes = len(class_prior)

    def sweep(self, q: Floats) -> Floats:
        """Return q after one update of the beliefs and of the tasks."""
        alpha = self.class_prior + q.sum(axis=0)
        counts = (self.by_code @ q).reshape(-1, self.n_classes, self.n_classes)
        beta = self.confusion_prior + counts  # [worker, answer, truth]
        log_prior = digamma(alpha) - digamma(alpha.sum())
        log_table = digamma(beta) - digamma(beta.sum(axis=1, keepdims=True))
        score = self.responses @ log_table.reshape(-1, self.n_classes) + log_prior
        score -= score.max(axis=1, keepdims=True)
        np.exp(score, out=score)
        score /= score.sum(axis=1, keepdims=True)
        return score
