"""Ascents: joint inference of one set of links, set up once and climbed from several starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import vb
from tiebreak.inference.known import clamp
from tiebreak.inference.tasks.coupling.infer import ExactLinks, SubtypeLinks
from tiebreak.inference.tasks.coupling.nodes import units_of_copies
from tiebreak.inference.tasks.coupling.plan import log_odds_of, odds_of_copies
from tiebreak.inference.vb import Beliefs, Problem, Run, Stopping
from tiebreak.kernels.layout import Floats, Mask
from tiebreak.kernels.sweeper import Sweeper
from tiebreak.links.graph import Implications, LinkCodes, imply
from tiebreak.options import ExactLinkOptions

if TYPE_CHECKING:
    from tiebreak.inference.tasks.coupling.link_errors import LearntRates, Rates

HIGHER = 1e-6  # relative: bounds that differ by less are equal


class Setup(NamedTuple):
    """Joint inference, ready for the ascent."""

    exact: ExactLinks
    hard: Mask  # (n_links,) which links always hold
    known: GoldCodes  # gold, and what follows from it


def set_up(plain: Problem, implied: Implications, options: ExactLinkOptions) -> Setup:
    """Set up joint inference; say which links are hard, and what is known or follows."""
    wrong, right = options.error_prior
    error = wrong / (wrong + right) if options.error == "learn" else options.error
    assert not isinstance(error, str)  # checked by the options
    links = implied.given
    log_odds, hard = log_odds_of(links, error, plain.n_classes)
    known = known_tasks(implied)
    tasks = vb.with_known(plain, known).tasks
    n_subtypes = plain.n_states // plain.n_classes
    kind = ExactLinks if n_subtypes == 1 else partial(SubtypeLinks, n_subtypes=n_subtypes)
    exact = kind(
        tasks,
        implied,
        links.keep(~hard),
        log_odds[~hard],
        plain.n_classes,
        plain.backend,
        plain.n_threads,
        units_of_copies(links, tasks.n_tasks) if n_subtypes == 1 else None,
    )
    return Setup(exact, hard, known)


def known_tasks(implied: Implications) -> GoldCodes:
    """Return the tasks whose class is known or follows from known ones, and their classes."""
    task, label = implied.known_labels()
    if implied.gold is not None:
        task, first = np.unique(np.concatenate([implied.gold.task, task]), return_index=True)
        label = np.concatenate([implied.gold.label, label])[first]
    return GoldCodes(task.astype(np.int32), label.astype(np.int32))


class AscentStart(NamedTuple):
    """Where an ascent begins."""

    q: Floats
    beliefs: Beliefs | None = None  # None: those that q and known labels imply
    rates: Rates | None = None  # None: at the prior
    elsewhere: Any = None  # of the run from which q comes


class End(NamedTuple):
    """Where an ascent ended; q of the run has the linked tasks too."""

    run: Run
    rates: Rates | None

    @property
    def bound(self) -> float:
        """The bound."""
        return self.run.bounds[-1]

    @property
    def start(self) -> AscentStart:
        """Where another ascent goes on from here."""
        return AscentStart(self.run.q, self.run.beliefs, self.rates, self.run.elsewhere)

    def at(self, q: Floats) -> AscentStart:
        """Where another ascent goes on from here, but with this q."""
        return AscentStart(q, None, self.rates, self.run.elsewhere)


class Ascents:
    """Joint inference of one set of links, from which several starts ascend."""

    def __init__(
        self,
        plain: Problem,
        implied: Implications,
        options: ExactLinkOptions,
        stopping: Stopping,
        n_sources: int | None = None,
    ) -> None:
        self.plain = plain
        self.implied = implied
        self.links = links = implied.given
        self.options = options
        self.stopping = stopping
        self.setup = set_up(plain, implied, options)
        if n_sources is None:
            n_sources = 1 if links.who is None else int(links.who.max(initial=-1)) + 2
        self.n_sources = n_sources
        exact = self.setup.exact
        if options.error == "learn":
            exact.learn(self._error_rates())
        self.problem = vb.with_nodes(plain, exact, exact.task, self.setup.known)

    def _error_rates(self) -> LearntRates:
        from tiebreak.inference.tasks.coupling import link_errors

        soft = self.links.keep(~self.setup.hard)
        source = np.zeros(soft.n_links, np.int32) if soft.who is None else soft.who + 1
        copies = odds_of_copies(soft, self.plain.n_classes)
        answers = link_errors.Answers(soft.must, source, self.n_sources, copies)
        prior = link_errors.prior_rates(self.n_sources, *self.options.error_prior)
        return link_errors.LearntRates(answers, prior)

    def start_at(self, run: Run) -> AscentStart:
        """Where a run without links or gold ended; known labels change what its q implies."""
        knows = len(self.setup.known.task) > 0
        return AscentStart(run.q, None if knows else run.beliefs, None, run.elsewhere)

    def ascend(self, start: AscentStart, stopping: Stopping | None = None) -> End:
        """Ascend from a start."""
        self.setup.exact.reset(start.rates)
        return self._ascend(start, stopping or self.stopping)

    def ascend_warm(self, run: Run) -> End:
        """Ascend from a fit with fewer links: the linked tasks are inferred alone first."""
        alone_first = partial(update_linked, self.problem, self.setup.exact)
        return self._ascend(self.start_at(run), self.stopping, alone_first)

    def _ascend(
        self,
        start: AscentStart,
        stopping: Stopping,
        first: Callable[[Sweeper, Beliefs], Beliefs] | None = None,
    ) -> End:
        clamped = clamp(start.q, self.setup.known, self.problem.n_classes)
        run = vb.ascend(
            self.problem,
            clamped,
            **stopping._asdict(),
            implied=start.beliefs,
            first=first,
            elsewhere=start.elsewhere,
            may_overwrite=clamped is not start.q,
        )
        self.setup.exact.spread(run.q)
        return End(run, self.setup.exact.rates)

    def of_part(self, links: LinkCodes) -> Ascents:
        """Return the same with some of the links."""
        firm = np.zeros(links.n_links, dtype=bool) if self.options.is_soft else links.is_hard
        implied = imply(links, self.plain.n_classes, firm=firm, gold=self.implied.gold)
        given = (self.plain, implied, self.options, self.stopping)
        return Ascents(*given, n_sources=self.n_sources)


def update_linked(
    problem: Problem, exact: ExactLinks, sweeper: Sweeper, beliefs: Beliefs
) -> Beliefs:
    """Infer the linked tasks alone; return the beliefs that are then implied.

    Where the free tasks have settled and only links are new, this does what a whole sweep would,
    at the cost of the linked tasks. The bound cannot fall: all else stays as it is.
    """
    counts_before, totals_before = exact.counted(sweeper.q())
    nobody = np.empty((0, problem.n_states))
    swept = exact.sweep(sweeper, nobody, vb.expected_logs(problem, beliefs))
    added = problem.workers.collect(swept.counts - counts_before)
    return Beliefs(beliefs.alpha + (swept.totals - totals_before), beliefs.beta + added)
