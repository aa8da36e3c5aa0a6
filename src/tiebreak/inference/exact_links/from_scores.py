"""Joint inference from scores that another model gives: links without an ascent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import vb
from tiebreak.inference.exact_links.ascents import Ascents
from tiebreak.inference.exact_links.fit import decoded_jointly, probability_wrong
from tiebreak.inference.exact_links.starts import best_mode
from tiebreak.inference.problem import Fit
from tiebreak.inference.vb import Problem, Run, Stopping
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Floats
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.options import ExactLinkOptions


class ClassScores(NamedTuple):
    """Scores of tasks by their responses, and those that every task has before any response."""

    of_responses: Floats  # (n_tasks, n_classes)
    of_prior: Floats  # (n_classes,)


def infer_alone(run: Run, scores: ClassScores, gold: GoldCodes | None) -> Fit:
    """Turn scores into probabilities where there are no links; known tasks keep their class."""
    q = vb.clamp(softmax(scores.of_responses + scores.of_prior), gold)
    return Fit(run._replace(q=q), q)


def infer_linked(
    plain: Problem,
    run: Run,
    scores: ClassScores,
    links: LinkCodes,
    implied: Implications,
    gold: GoldCodes | None,
    options: ExactLinkOptions,
    stopping: Stopping,
) -> Fit:
    """Turn scores into probabilities that links have joined, and decode the labels.

    Parameters
    ----------
    plain, run
        Plain VB and where it ended: error rates of links, if they are to be learnt, come from it.
    """
    ascents = Ascents(plain, links, implied, gold, options, stopping)
    exact = ascents.setup.exact
    if options.error == "learn":
        best_mode(ascents, run, gold)
    known = ascents.setup.known
    q = vb.clamp(softmax(scores.of_responses + scores.of_prior), known)
    exact.gather(q)  # known tasks may be nodes too, and keep their class
    pays = exact.pool.pays[:, None]
    exact.infer_from(
        scores.of_responses[exact.task] + np.where(pays, scores.of_prior, 0.0), is_last=True
    )
    report = exact.finish()
    exact.spread(q)
    q = vb.clamp(q, known)
    return Fit(
        run._replace(q=q),
        q,
        decoded=decoded_jointly(links, exact, options),
        link_report=report,
        rates=ascents.rates,
        wrong=probability_wrong(links, ascents.setup),
    )
