"""Gold that overturns the crowd: how sure so many known labels can make anyone.

Workers may agree with each other, and gold may say that what they call one class is another one.
A fit follows gold then, and is as sure of the rest as the workers agree. Yet all that tells that
they are wrong is gold, and that is so many labels. So where gold contradicts the crowd, a task that
most workers call class a has a label of at most the probability that the rule of succession gives
it, two of three labels being right as expected before: [eq:overturned].

    p(label) ≤ (c + 2) / (n + 3)    c of n known tasks that most workers call a have that label

    of 25 known tasks that workers call "cat", gold calls 24 "dog":    p("dog") ≤ 26/28 = .93

What is taken away goes to what else gold calls such tasks, and to the class of the crowd. Votes are
what the crowd says, for every estimator alike. Labels stay what they are. So do probabilities where
gold does not contradict the crowd, and those of tasks that workers call a class as gold does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.errors import note
from tiebreak.gold import GoldCodes
from tiebreak.inference.inputs import Inputs
from tiebreak.kernels.arrays import majority
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats, Mask, chunk_edges, part_of
from tiebreak.labels import Labels
from tiebreak.responses import Responses
from tiebreak.wording import counted

# Chosen on draws 10 to 29 of gold of experiments/07_juries, so that no crowd of people is touched;
# shown on draws 200 to 299 there, and on simulated crowds: see `against.py` beside it.
LEAST_AGAINST = 5  # known tasks, as where a note says that gold disagrees with the crowd
BY_CHANCE = 0.5  # at most so often as by chance workers are right where gold contradicts a class
LEAST_BY_CHANCE = 1.0  # known tasks on which they would be right by chance, …
SHARE_OF_GOLD = 0.5  # … or so much of gold is against them: classes of one or two tasks do not tell
RENAMED = 2 / 3  # of the tasks of a class have another label where gold overturns it
LEAST_LEAD = 1e-9  # of a class, in shares of votes
BEHIND = 0.98  # so far others may come up to the label, which stays the likeliest

NOBODY = -1  # most workers call a task no class: there are no votes, or as many for two


class Overturned(NamedTuple):
    """What gold says of tasks by what most workers call them."""

    counts: Floats  # (n_classes, n_classes) known tasks, by the crowd's class and by gold's
    is_limited: Mask  # (n_classes,) the crowd's classes that gold contradicts

    def most(self) -> Floats:
        """Return the highest probability of a label, (crowd's class, label): [eq:overturned].

        >>> found = Overturned(np.array([[1, 24], [0, 9]]), np.array([True, False]))
        >>> found.most().round(2).tolist()
        [[0.11, 0.93], [1.0, 1.0]]
        """
        n_known = self.counts.sum(axis=1, keepdims=True)
        return np.where(self.is_limited[:, None], (self.counts + 2.0) / (n_known + 3.0), 1.0)

    def limit(self, q: Floats, label: Codes, votes: Floats, among: Mask) -> Floats:
        """Return probabilities of which none is above its limit; a copy.

        Parameters
        ----------
        label, votes
            (n_tasks,) the labels, which stay the likeliest; (n_tasks, n_classes) vote shares.
        among
            (n_tasks,) which tasks to look at.
        """
        crowd = crowd_class(votes)
        task = np.flatnonzero(among & (crowd != NOBODY) & self.is_limited[crowd])
        task = task[q[task, label[task]] > self.most()[crowd[task], label[task]]]
        found = q.copy()
        if len(task):
            found[task] = self._lowered(q[task], label[task], crowd[task])
        return found

    def _lowered(self, q: Floats, label: Codes, crowd: Codes) -> Floats:
        """Return rows with the label at its limit, or just ahead of the next class."""
        place = np.arange(len(q))
        is_other = crowd != label
        to = self.counts[crowd] + np.where(is_other, 0.0, 1.0 / (q.shape[1] - 1))[:, None]
        to[place, crowd] += is_other
        to[place, label] = 0.0
        to /= to.sum(axis=1, keepdims=True)
        own = q[place, label]
        room = (BEHIND * own[:, None] - q) / (to + BEHIND)  # until each class meets the label
        room[place, label] = np.inf
        taken = np.minimum(own - self.most()[crowd, label], np.maximum(room.min(axis=1), 0.0))
        found = q + taken[:, None] * to
        found[place, label] -= taken
        return np.asarray(found)


def limit(inputs: Inputs, q: Floats, label: Codes) -> tuple[Floats, Overturned | None]:
    """Return probabilities no surer than gold can show, and what it shows; say so to the user."""
    crowd = inputs.responses
    gold = inputs.gold_codes
    if gold is None or crowd.n_classes < 2:
        return q, None
    tasks = _lay_out(crowd)
    counts = _count(tasks, gold, crowd.n_classes)
    contradicted = _contradicted(counts)
    if not contradicted.any():
        return q, None
    votes = majority(tasks, crowd.n_classes)
    among = np.ones(crowd.n_tasks, dtype=bool)
    among[gold.task] = False
    if inputs.implied is not None:  # what follows from gold by links is as sure as gold
        among[inputs.implied.known_labels()[0]] = False
    renamed = _renamed(votes[among], label[among])
    found = Overturned(counts, contradicted | renamed)
    limited = found.limit(q, label, votes, among)
    n_lowered = int(np.count_nonzero((limited != q).any(axis=1)))
    if n_lowered:
        crowd_says = crowd_class(votes)
        alike = among & (crowd_says != NOBODY) & found.is_limited[crowd_says]
        follows = np.mean(crowd_says[alike] != label[alike]) > 0.5
        _note_limited(counts[contradicted], counts.diagonal()[contradicted], n_lowered, follows)
    return limited, found


def limit_new(
    found: Overturned, responses: Responses, labels: Labels, *, are_linked: bool
) -> Labels:
    """Return labels of tasks to come, no surer than gold could show when the model was fitted.

    What links make certain stays so.
    """
    assert labels.probabilities is not None  # of a prediction
    assert labels.probability is not None
    votes = np.zeros(labels.probabilities.shape)
    own = labels.classes.codes(responses.classes)
    votes[:, own[own >= 0]] = majority(_lay_out(responses), responses.n_classes)[:, own >= 0]
    is_open = (labels.probability < 1.0) | (not are_linked)
    q = found.limit(labels.probabilities, labels.label, votes, is_open)
    return Labels.from_probabilities(
        labels.tasks, labels.classes, q, label=labels.label, frame=labels.frame
    )


def crowd_class(votes: Floats) -> Codes:
    """Return the class with the most votes, (n_tasks,); NOBODY where two have as many.

    >>> crowd_class(np.array([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]])).tolist()
    [0, -1, 1]
    """
    top_two = np.partition(votes, -2, axis=1)[:, -2:]
    is_tie = top_two[:, 1] - top_two[:, 0] < LEAST_LEAD
    return np.where(is_tie, NOBODY, votes.argmax(axis=1)).astype(np.int32)


def _lay_out(responses: Responses) -> ByTask:
    """Lay out responses to count their votes only."""
    role = np.full(responses.n_tasks, FREE, dtype=np.int8)
    edges = chunk_edges(responses.start, 0)
    n_codes = responses.n_workers * responses.n_classes
    return ByTask(responses.start, responses.code, role, edges, n_codes, weight=responses.weight)


def _count(tasks: ByTask, gold: GoldCodes, n_classes: int) -> Floats:
    """Count known tasks by what most workers call them, and by what gold does."""
    crowd = crowd_class(majority(part_of(tasks, gold.task, n_classes), n_classes))
    agrees = crowd != NOBODY
    cell = crowd[agrees] * n_classes + gold.label[agrees]
    counts = np.bincount(cell, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes).astype(np.float64)


def _contradicted(counts: Floats) -> Mask:
    """Return which of the crowd's classes gold contradicts, (n_classes,): none, unless by many."""
    right = counts.diagonal()
    called = counts.sum(axis=1)
    against = called - right
    n_known = max(float(counts.sum()), 1.0)
    by_chance = called * counts.sum(axis=0) / n_known
    clearly = (against > 0.0) & (right <= BY_CHANCE * by_chance)
    n_against = against[clearly].sum()
    is_told = by_chance[clearly].sum() >= LEAST_BY_CHANCE or n_against >= SHARE_OF_GOLD * n_known
    return np.asarray((against > right) & (n_against >= LEAST_AGAINST) & is_told)


def _renamed(votes: Floats, label: Codes) -> Mask:
    """Return which of the crowd's classes most labels have otherwise, (n_classes,)."""
    n_classes = votes.shape[1]
    crowd = crowd_class(votes)
    agrees = crowd != NOBODY
    called = np.bincount(crowd[agrees], minlength=n_classes)
    other = np.bincount(crowd[agrees & (crowd != label)], minlength=n_classes)
    return np.asarray((other > 0) & (other >= RENAMED * called))


def _note_limited(counts: Floats, right: Floats, n_lowered: int, follows: Any) -> None:
    """Say how far gold contradicts the crowd; `counts` and `right` are of the classes it does."""
    n_known = int(counts.sum())
    n_against = n_known - int(right.sum())
    whose = "follow gold" if follows else "are still what most workers say"
    note(
        f"Gold contradicts most workers on {n_against:,} of {n_known:,} known tasks of "
        f"{counted(len(counts), 'class')}. Labels of others like these {whose}, and "
        f"{n_lowered:,} got a lower probability: so few known labels cannot make them sure. Is "
        "gold of the same question, and are its classes not swapped?"
    )
