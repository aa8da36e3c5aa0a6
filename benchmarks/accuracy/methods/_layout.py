"""What baselines share: responses as arrays, four sparse sums made once, and three equations.

Response r: worker j[r] said label[r] of task i[r]. Of Q (tasks × classes): votes V(w) = Σ_r w_r
at [i, l]; counts n[j, k, l] = Σ_{r: j, l} Q[i_r, k]; evidence E[i, k] = Σ_{r: i} T[j_r, k, l_r].
"""

import numpy as np
import scipy.sparse as sp


class Layout:
    def __init__(self, crowd):
        self.i = crowd.task_of_each()
        self.j = crowd.worker_of_each()
        self.label = crowd.label_of_each()
        self.n_tasks, self.n_workers = crowd.n_tasks, crowd.n_workers
        self.k = crowd.n_classes
        self.n_answers = len(self.i)
        self.start = crowd.start
        self.answers = np.eye(self.k)[self.label]
        self.by_task = self._sum_over(self.i, self.n_tasks)
        self.by_worker = self._sum_over(self.j, self.n_workers)
        self.by_answer = self._sum_over(self.j * self.k + self.label, self.n_workers * self.k)
        self.n_of_task = np.diff(self.start)
        self.n_of_worker = np.bincount(self.j, minlength=self.n_workers)
        votes = self.votes(np.ones(self.n_workers))
        answered = votes.sum(1, keepdims=True)
        self.shares = np.where(answered > 0, votes / np.maximum(answered, 1), 1 / self.k)

    def _sum_over(self, at, n):
        rows = np.arange(self.n_answers)
        return sp.csr_matrix((np.ones(self.n_answers), (at, rows)), shape=(n, self.n_answers))

    def votes(self, of_worker):
        """Return V, where each answer of a worker weighs the same."""
        return self.weigh(of_worker[self.j])

    def weigh(self, of_answer):
        return self.by_task @ (self.answers * of_answer[:, None])

    def agreement(self, q):
        """Return the mean belief that each worker is right."""
        return (self.by_worker @ q[self.i, self.label]) / np.maximum(self.n_of_worker, 1)

    def errors(self, q):
        return self.by_worker @ (1 - q[self.i, self.label])

    def counts(self, q):
        n = (self.by_answer @ q[self.i]).reshape(self.n_workers, self.k, -1)
        return n.transpose(0, 2, 1)

    def evidence(self, log_table):
        return self.by_task @ log_table[self.j, :, self.label]


def winners(score):
    """Return 1 at the highest score of each task; ties share it."""
    top = score >= score.max(1, keepdims=True) - 1e-12
    return top / top.sum(1, keepdims=True)


def weighted_until_same(c, weights, rounds=100):
    """Weigh workers by the last labels and vote again, until no label changes."""
    q = winners(c.shares)
    for _ in range(rounds):
        score = c.votes(weights(q))
        new = winners(score)
        if np.array_equal(new, q):
            break
        q = new
    return score


def climb(q, update, tol=1e-6, rounds=500):
    """Update q until no probability moves by tol."""
    for _ in range(rounds):
        new = update(q)
        moved = abs(new - q).max()
        q = new
        if moved < tol:
            break
    return q


def share_out(counts):
    return counts / counts.sum(-1, keepdims=True)


def likelihood_of_answers(c, label):
    """Return log p(answers | labels, counts of these + 1): how Tian and Zhu choose a margin."""
    n = share_out(c.counts(np.eye(c.k)[label]) + 1)
    return np.log(n)[c.j, label[c.i], c.label].sum()
