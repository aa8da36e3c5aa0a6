"""A second look at plain VB: is there another mode nearly as likely, and what hangs on it?

Where half of a crowd contradicts the other half, whom to believe is a toss, and a fit does not show
it: every probability is sure within its mode. So small fits without links and gold climb once more,
with the two classes that workers confuse most swapped, for less than half the sweeps that the fit
took. The fit itself stays as it is.
"""

from __future__ import annotations

from typing import NamedTuple

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


class NearMode(NamedTuple):
    """Another mode, nearly as likely."""

    swapped: tuple[int, int]  # the classes
    behind: float  # nats, scaled as probabilities are
    n_changed: int  # labels that differ


def note_near_mode(
    problem: Problem, run: FitState, responses: Responses, stopping: Stopping, dependence: float
) -> None:
    """Say so where labels hang on which of two modes a fit of plain responses ended in."""
    if responses.n_responses > LARGEST:
        return
    found = find_near_mode(problem, run, stopping, dependence)
    if found is None:
        return
    one, other = (responses.classes[k] for k in found.swapped)
    how = {"behind": found.behind, "n_changed": found.n_changed, "n_tasks": responses.n_tasks}
    note("near-mode", one=one, other=other, **how)


def find_near_mode(
    problem: Problem, run: FitState, stopping: Stopping, dependence: float
) -> NearMode | None:
    """Return the mode with two classes swapped, where it is near or ahead and has other labels.

    A climb that is cut short may be on its way back to where the fit ended: where labels have come
    back, or q still moves. One that is ahead of it cannot be, as bounds never fall. Bounds differ
    by what a crowd says that believes to err apart, so that they are scaled as its probabilities
    are, by the design effect.
    """
    max_iter = int(SHARE * run.n_sweeps) - 1  # and one pass that counts what the start implies
    if problem.n_classes < 2 or max_iter < 1 or not run.converged:
        return None
    swapped = most_confused(problem, run)
    start = _swap(problem, run.q, swapped)
    loose = Stopping(max(stopping.tol, SETTLED), max_iter, stopping.accelerate)
    other = climb(problem, FitState(q=start), loose)
    scale = float(Calibration(dependence).scale(np.array([problem.mean_responses]))[0])
    behind = scale * (run.bounds[-1] - other.bounds[-1])
    n_swapped, n_changed = (_n_changed(problem, run.q, each) for each in (start, other.q))
    if abs(run.bounds[-1] - other.bounds[0]) <= SAME * abs(run.bounds[-1]):
        return None  # nothing but the start names the classes: the prior was chosen to be so
    is_near = behind <= NEAR and other.converged and n_changed >= KEPT * n_swapped
    if not n_changed or not (is_near or behind < -AHEAD):
        return None
    return NearMode(swapped, behind, n_changed)


def most_confused(problem: Problem, run: FitState) -> tuple[int, int]:
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
    one, other = np.unravel_index(int(share.argmax()), share.shape)
    return int(min(one, other)), int(max(one, other))


def _swap(problem: Problem, q: Floats, classes: tuple[int, int]) -> Floats:
    by_class = q.reshape(len(q), problem.n_classes, -1).copy()
    one, other = classes
    by_class[:, [one, other]] = by_class[:, [other, one]]
    return by_class.reshape(q.shape)


def _n_changed(problem: Problem, q: Floats, other: Floats) -> int:
    """Return how many tasks have another label in the other q."""
    mine, yours = (likeliest(problem.by_class(each))[0] for each in (q, other))
    differs = mine != yours
    return int(differs.sum() if problem.copies is None else problem.copies[differs].sum())
