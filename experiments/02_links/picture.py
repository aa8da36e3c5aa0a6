"""Draw docs/figures/links_two_tasks.svg: what one link does to two tasks, by inference.

python experiments/02_links/picture.py

The scores of both tasks are given, nobody is learnt: all that differs is how the link is used.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.inference.climb import Problem
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.tasks import Independent
from tiebreak.inference.tasks.coupling.linked import with_links
from tiebreak.inference.tasks.mean_field import given_groups
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import lay_out
from tiebreak.links.graph import LinkCodes, imply
from tiebreak.options import ExactLinkOptions

sys.path.append(str(Path(__file__).parents[1]))

from common import ROOT, STYLE, pyplot, save

OUT = ROOT / "docs" / "figures" / "links_two_tasks.svg"
BACKEND = choose_backend("numpy", 0, 0)
STRENGTHS = np.concatenate([[0.01], np.arange(0.1, 12.05, 0.1)])
SWEEPS = 400
SETTLED = 1e-9
BLUE = "#0072b2"
ORANGE = "#d55e00"
GREEN = "#009e73"
BLACK = "#000000"


class Pair(NamedTuple):
    """Two tasks of two classes, joined by one link."""

    scores: np.ndarray  # (2, 2): [task, class]
    must: bool

    def link(self, weight: float | None = None) -> LinkCodes:
        ends = np.array([0], np.int32), np.array([1], np.int32)
        weights = None if weight is None else np.array([weight])
        return LinkCodes(*ends, np.array([self.must]), weights, None, np.array([0]))


SURE_AND_DOUBTFUL = Pair(np.array([[3.0, 0.0], [0.0, 1.0]]), must=True)
ALIKE = Pair(np.log([[0.6, 0.4], [0.6, 0.4]]), must=False)


def exact(pair: Pair, strength: float) -> np.ndarray:
    """Return both tasks' probability of the first class, inferred jointly."""
    link = pair.link(strength)
    one = np.arange(3)  # a response each
    rows = lay_out(one, one[:-1].astype(np.int32), np.zeros(2, np.int8), 2, 2)
    workers: Any = None  # nobody is learnt
    plain = Problem(rows, Independent(ClassPrior(np.ones(2))), workers, BACKEND)
    tasks: Any = with_links(plain, imply(link, 2), ExactLinkOptions()).tasks
    found = tasks.infer(tasks.prior, pair.scores[tasks.task], pair.scores, None).q
    return found[np.argsort(tasks.task), 0]


def mean_field(pair: Pair, strength: float, schedule: str, first: int = 0) -> np.ndarray:
    """Return both tasks' probability of the first class after each of the last two sweeps.

    The two sweeps differ where updates swap for ever. `first` is the task whose turn comes first.
    """
    both = np.arange(2, dtype=np.int32)
    turns = np.array([first, 1 - first])
    groups = given_groups(pair.link())
    q = softmax(pair.scores)
    last = [q.copy()]
    for _ in range(SWEEPS):
        if schedule == "in-turn":
            BACKEND.update_in_turn(q, pair.scores, groups, strength, turns)
        else:
            BACKEND.update_together(q, pair.scores, groups, strength, both)
        last = [*last[-2:], q.copy()]
        if len(last) == 3 and np.abs(last[2] - last[0]).max() < SETTLED:
            break
    return np.array(last)[-2:, :, 0]


def main() -> None:
    plt = pyplot()
    with plt.rc_context({**STYLE, "font.size": 9}):
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.9), constrained_layout=True, sharey=True)
        draw_must(axes[0])
        draw_cannot(axes[1])
        axes[0].set(ylabel="probability of class 0", ylim=(-0.03, 1.03))
        for each in axes:
            each.set_xlabel("strength of the link")
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18)}
            each.legend(fontsize=8, frameon=False, ncol=2, **place)
        save(figure, OUT)


def draw_must(axes: Any) -> None:
    """Draw the surer task of a must-linked pair."""
    pair = SURE_AND_DOUBTFUL
    draw_cycle(axes, pair, ORANGE)
    sure_first = [mean_field(pair, s, "in-turn", first=0)[-1, 0] for s in STRENGTHS]
    sure_last = [mean_field(pair, s, "in-turn", first=1)[-1, 0] for s in STRENGTHS]
    axes.plot(STRENGTHS, sure_first, "--", color=BLUE, label="in turn, the surer task first")
    axes.plot(STRENGTHS, sure_last, "-.", color=GREEN, label="in turn, the doubtful task first")
    joint = [exact(pair, s)[0] for s in STRENGTHS]
    axes.plot(STRENGTHS, joint, color=BLACK, lw=2.2, label="exact", zorder=1)
    axes.set_title("a must-link: the surer task (0.95; the other 0.27)", fontsize=9)


def draw_cannot(axes: Any) -> None:
    """Draw both tasks of a cannot-linked pair with equal evidence."""
    draw_cycle(axes, ALIKE, ORANGE)
    turns = np.array([mean_field(ALIKE, s, "in-turn")[-1] for s in STRENGTHS])
    axes.plot(STRENGTHS, turns[:, 0], "--", color=BLUE, label="in turn, the first task")
    axes.plot(STRENGTHS, turns[:, 1], "-.", color=GREEN, label="in turn, the second task")
    joint = [exact(ALIKE, s)[0] for s in STRENGTHS]
    axes.plot(STRENGTHS, joint, color=BLACK, lw=2.2, label="exact, both tasks", zorder=1)
    axes.set_title("a cannot-link: two tasks alike (0.6 each)", fontsize=9)


def draw_cycle(axes: Any, pair: Pair, colour: str) -> None:
    """Draw where updates in parallel end: a point, or two that they swap between for ever."""
    ends = np.array([mean_field(pair, s, "parallel")[:, 0] for s in STRENGTHS])
    ends = np.sort(ends, axis=1)
    axes.fill_between(STRENGTHS, ends[:, 0], ends[:, 1], color=colour, alpha=0.15, lw=0)
    wide = {"color": colour, "lw": 4.5, "alpha": 0.4}  # seen below the lines on top of it
    axes.plot(STRENGTHS, ends[:, 0], label="in parallel; shaded: swaps for ever", **wide)
    axes.plot(STRENGTHS, ends[:, 1], **wide)


if __name__ == "__main__":
    main()
