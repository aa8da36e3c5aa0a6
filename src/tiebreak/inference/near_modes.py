"""A second look at plain VB: is there another mode nearly as likely, and what hangs on it?

Where half of a crowd contradicts the other half, whom to believe is a toss, and a fit does not show
it: every probability is sure within its mode. So small fits without links and gold climb once more,
with the two classes that workers confuse most swapped, for less than half the sweeps that the fit
took. The fit itself stays as it is.
"""

from __future__ import annotations

import numpy as np

from tiebreak.data import Responses
from tiebreak.errors import note
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.climb import FitState, Problem, Stopping, Sweeps, climb
from tiebreak.kernels.arrays import likeliest
from tiebreak.kernels.layout import Floats

LARGEST = 200_000  # responses; above, a second look takes time that nobody asked for
SHARE = 0.45  # of the sweeps of the fit: with what stands around them, less than half its time
NEAR = 3.0  # nats, scaled: odds of 20 to 1
AHEAD = 0.1  # nats, scaled: by less, one mode may have been climbed to from two sides
SAME = 1e-9  # relative: bounds that are equal but for rounding
KEPT = 0.5  # of the labels that were swapped: where fewer stay changed, the climb leads back
SETTLED = 1e-2  # no q moves by more: only then is an end another mode, and not a way to this one


def note_near_mode(
    problem: Problem, run: FitState, responses: Responses, stopping: Stopping, dependence: float
) -> None:
    """Say so where labels hang on which of two modes a fit of plain responses ended in.

    A climb that is cut short may be on its way back to where the fit ended: where labels have come
    back, or q still moves. One that is ahead of it cannot be, as bounds never fall. Bounds differ
    by what a crowd says that believes to err apart, so that they are scaled as its probabilities
    are, by the design effect.
    """
    max_iter = int(SHARE * run.n_sweeps) - 1  # and one pass that counts what the start implies
    if responses.n_responses > LARGEST or problem.n_classes < 2:
        return
    if max_iter < 1 or not run.converged:
        return
    swapped = most_confused(problem, run)
    start: Floats = run.q.reshape(len(run.q), problem.n_classes, -1).copy()
    start[:, swapped] = start[:, swapped[::-1]]
    start = start.reshape(run.q.shape)
    loose = Stopping(max(stopping.tol, SETTLED), max_iter, stopping.accelerate)
    other = climb(problem, FitState(q=start), loose)
    if abs(run.bounds[-1] - other.bounds[0]) <= SAME * abs(run.bounds[-1]):
        return  # nothing but the start names the classes: the prior was chosen to be so
    scale = Calibration(dependence).scale(np.array([problem.mean_responses]))[0]
    behind = float(scale) * (run.bounds[-1] - other.bounds[-1])
    copies = np.ones(len(run.q)) if problem.copies is None else problem.copies
    mine, at_start, yours = (likeliest(problem.by_class(q))[0] for q in (run.q, start, other.q))
    n_changed = int(copies[mine != yours].sum())
    is_kept = n_changed >= KEPT * copies[mine != at_start].sum()
    is_near = behind <= NEAR and other.converged and is_kept
    if n_changed and (is_near or behind < -AHEAD):
        one, two = (responses.classes[k] for k in swapped)
        how = {"behind": behind, "n_changed": n_changed, "n_tasks": responses.n_tasks}
        note("near-mode", one=one, other=two, **how)


def most_confused(problem: Problem, run: FitState) -> list[int]:
    """Return the two classes that responses to tasks of one of them most often mix up.

    In shares of the responses to either class, so that large classes are not always taken.
    """
    n_classes = problem.n_classes
    counted = Sweeps(problem, np.array(run.q)).tally().codes
    by_worker = counted.reshape(-1, n_classes, n_classes, problem.n_states // n_classes)
    counts = by_worker.sum(axis=(0, 3))  # [answer, class]
    mixed = counts + counts.T
    own = np.diag(counts)
    share = mixed / np.maximum(mixed + own[:, None] + own[None, :], 1e-300)
    np.fill_diagonal(share, -1.0)
    return sorted(int(each) for each in np.unravel_index(int(share.argmax()), share.shape))
