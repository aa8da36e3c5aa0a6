"""Ascents: joint inference of one set of links, set up once and climbed from several starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.inference import vb
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.exact_links.plan import Merged, log_odds_of, merge
from tiebreak.inference.vb import Beliefs, Problem, Run, Stopping
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByTask, Codes, Floats, Mask
from tiebreak.kernels.sweeper import Sweeper
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.options import ExactLinkOptions

if TYPE_CHECKING:
    from tiebreak.inference.link_errors.learnt import LearntLinks, Rates

HIGHER = 1e-6  # relative: bounds that differ by less are equal
MANY = 0.3  # of all tasks: so many linked ones take the others with them, to lie side by side


class Setup(NamedTuple):
    """Joint inference, ready for the ascent."""

    exact: ExactLinks
    hard: Mask  # (n_links,) which links always hold
    known: GoldCodes  # gold, and what follows from it


def set_up(
    plain: Problem,
    links: LinkCodes,
    implied: Implications,
    gold: GoldCodes | None,
    options: ExactLinkOptions,
) -> Setup:
    """Set up joint inference; say which links are hard, and what is known or follows."""
    log_odds, hard = expected_log_odds(links, options, plain.n_classes)
    merged = merge(implied)
    known = _union(gold, merged.known())
    tasks = vb.with_known(plain, known).tasks
    many = plain.copies is None and len(merged.task) > MANY * tasks.n_tasks
    many = many and plain.backend.sweeps_here
    exact = join(
        tasks, merged, links.keep(~hard), log_odds[~hard], links, plain.n_classes,
        plain.n_states, plain.backend, plain.n_threads, takes_everyone=many,
    )  # fmt: skip
    return Setup(exact, hard, known)


def expected_log_odds(
    links: LinkCodes, options: ExactLinkOptions, n_classes: int
) -> tuple[Floats, Mask]:
    """Return the log-odds, before any sweep, that each link's tasks agree; which are hard."""
    wrong, right = options.error_prior
    error = wrong / (wrong + right) if options.error == "learn" else options.error
    assert not isinstance(error, str)  # checked by the options
    return log_odds_of(links, error, n_classes)


def join(
    tasks: ByTask,
    merged: Merged,
    soft: LinkCodes,
    log_odds: Floats,
    links: LinkCodes,
    n_classes: int,
    n_states: int,
    backend: Backend,
    n_threads: int,
    *,
    takes_everyone: bool = False,
) -> ExactLinks:
    """Return joint inference of linked tasks; `log_odds` are those of the soft links."""
    given = (tasks, merged, soft, log_odds, n_classes, backend, n_threads)
    if n_states > n_classes:
        from tiebreak.inference.exact_links.subtypes import SubtypeLinks

        return SubtypeLinks(*given, n_subtypes=n_states // n_classes)
    unit = units_of_copies(links, tasks.n_tasks)
    return ExactLinks(*given, takes_everyone=takes_everyone, unit=unit)


def _learnt(
    links: LinkCodes, n_sources: int, setup: Setup, options: ExactLinkOptions
) -> LearntLinks | None:
    """Wrap the links so that the error rates of their sources are learnt."""
    if options.error != "learn":
        return None
    from tiebreak.inference.link_errors.learnt import Answers, LearntLinks, prior_rates

    soft = ~setup.hard
    who = np.zeros(links.n_links, np.int32) if links.who is None else links.who + 1
    duplicate = None if links.duplicate is None else links.duplicate[soft]
    answers = Answers(links.must[soft], who[soft], n_sources, duplicate)
    prior = prior_rates(n_sources, *options.error_prior)
    return LearntLinks(setup.exact, answers, prior)


def units_of_copies(links: LinkCodes, n_tasks: int) -> Codes | None:
    """Number copies of one task alike: components of duplicates; None where there are none."""
    if links.duplicate is None or not links.duplicate.any():
        return None
    return link_graph.components(n_tasks, links.left[links.duplicate], links.right[links.duplicate])


def _union(gold: GoldCodes | None, implied: GoldCodes) -> GoldCodes:
    if gold is None:
        return implied
    task = np.concatenate([gold.task, implied.task])
    label = np.concatenate([gold.label, implied.label])
    task, first = np.unique(task, return_index=True)
    return GoldCodes(task.astype(np.int32), label[first].astype(np.int32))


def _update_linked(
    problem: Problem, exact: ExactLinks, sweeper: Sweeper, beliefs: Beliefs
) -> Beliefs:
    """Infer the linked tasks alone; return the beliefs that are then implied.

    Where the free tasks have settled and only links are new, this does what a whole sweep would,
    at the cost of the linked tasks. The bound cannot fall: all else stays as it is.
    """
    assert problem.links is not None  # exact, or what learns its error rates
    counts_before, totals_before = exact.counted(sweeper.q())
    nobody = np.empty((0, problem.n_states))
    swept = problem.links.sweep(sweeper, nobody, vb.expected_logs(problem, beliefs))
    added = problem.workers.collect(swept.counts - counts_before)
    return Beliefs(beliefs.alpha + (swept.totals - totals_before), beliefs.beta + added)


class End(NamedTuple):
    """Where an ascent from one start ended."""

    run: Run
    q: Floats  # of all tasks, linked ones too
    rates: Rates | None

    @property
    def bound(self) -> float:
        """The bound."""
        return self.run.bounds[-1]


class Ascents:
    """Joint inference of one set of links, from which several starts ascend."""

    def __init__(
        self,
        plain: Problem,
        links: LinkCodes,
        implied: Implications,
        gold: GoldCodes | None,
        options: ExactLinkOptions,
        stopping: Stopping,
        n_sources: int | None = None,
    ) -> None:
        self.plain = plain
        self.links = links
        self.implied = implied
        self.gold = gold
        self.options = options
        self.stopping = stopping
        self.setup = set_up(plain, links, implied, gold, options)
        if n_sources is None:
            n_sources = 1 if links.who is None else int(links.who.max(initial=-1)) + 2
        self.n_sources = n_sources
        self._model = _learnt(links, n_sources, self.setup, options)
        exact = self.setup.exact
        self.problem = vb.with_nodes(plain, self._model or exact, exact.task, self.setup.known)

    @property
    def rates(self) -> Rates | None:
        """Error rates of links at the last update, where they are learnt."""
        return None if self._model is None else self._model.rates

    def ascend(
        self,
        q: Floats,
        implied: Beliefs | None = None,
        rates: Rates | None = None,
        stopping: Stopping | None = None,
        elsewhere: Any = None,
    ) -> End:
        """Ascend from q; `implied` is where beliefs start: None, at what q and gold imply.

        `elsewhere` is that of the run from which q comes.
        """
        if self._model is not None:
            self._model.reset(rates)
        else:
            self.setup.exact.reset()
        run = self._run(q, implied, stopping or self.stopping, elsewhere=elsewhere)
        self.setup.exact.spread(run.q)
        return End(run, run.q, self.rates)

    def ascend_warm(self, start: Run) -> End:
        """Ascend from a fit with fewer links: the linked tasks are inferred alone first."""
        exact = self.setup.exact
        alone_first = None
        if not exact.takes_everyone:
            alone_first = partial(_update_linked, self.problem, exact)
        run = self._run(
            start.q, self.implied_by(start), self.stopping, alone_first, start.elsewhere
        )
        exact.spread(run.q)
        return End(run, run.q, self.rates)

    def implied_by(self, start: Run) -> Beliefs | None:
        """Return the beliefs of a run; None where known labels change what its q implies."""
        return None if len(self.setup.known.task) else start.beliefs

    def _run(
        self,
        q: Floats,
        implied: Beliefs | None,
        stopping: Stopping,
        first: Callable[[Sweeper, Beliefs], Beliefs] | None = None,
        elsewhere: Any = None,
    ) -> Run:
        clamped = vb.clamp(q, self.setup.known, self.problem.n_classes)
        self.setup.exact.gather(clamped)
        return vb.ascend(
            self.problem,
            clamped,
            **stopping._asdict(),
            implied=implied,
            first=first,
            elsewhere=elsewhere,
            may_overwrite=clamped is not q,
        )

    def of_part(self, links: LinkCodes) -> Ascents:
        """Return the same with some of the links."""
        firm = np.zeros(links.n_links, dtype=bool) if self.options.is_soft else links.is_hard
        implied = link_graph.imply(links, self.plain.n_classes, firm=firm, gold=self.gold)
        given = (self.plain, links, implied, self.gold, self.options, self.stopping)
        return Ascents(*given, n_sources=self.n_sources)
