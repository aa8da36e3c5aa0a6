"""Ascents: joint inference of one set of links, set up once and climbed from several starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.gold import GoldCodes
from tiebreak.inference import honest, vb
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.exact_links import merge as merging
from tiebreak.inference.exact_links import starts
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.exact_links.merge import Merged
from tiebreak.inference.exact_links.on_device import DeviceLinks
from tiebreak.inference.exact_links.starts import LinkedGroups
from tiebreak.inference.exact_links.subtypes import SubtypeLinks
from tiebreak.inference.link_errors import learnt
from tiebreak.inference.link_errors.learnt import Answers, LearntLinks, Rates
from tiebreak.inference.vb import Beliefs, Problem, Run, Stopping
from tiebreak.kernels.contract import Backend, sweeps_nodes
from tiebreak.kernels.layout import ByTask, Codes, Floats, Mask
from tiebreak.kernels.sweeper import Sweeper
from tiebreak.link_graph import Implications, LinkCodes
from tiebreak.options import ExactLinkOptions

HIGHER = 1e-6  # relative: bounds that differ by less are equal
NEAR = 10.0  # nats, scaled: modes with bounds this close are both possible; see docs/links.md
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
    merged = merging.merge(implied)
    known = _union(gold, merged.known())
    if plain.elsewhere is not None and plain.elsewhere.join is not None:
        return Setup(plain.elsewhere.join(links, merged, gold, options), hard, known)
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
    return merging.log_odds_of(links, error, n_classes)


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
        return SubtypeLinks(*given, n_subtypes=n_states // n_classes)
    unit = units_of_copies(links, tasks.n_tasks)
    if sweeps_nodes(backend) and not len(log_odds):
        return DeviceLinks(*given, unit=unit)
    return ExactLinks(*given, takes_everyone=takes_everyone, unit=unit)


def _learnt(
    links: LinkCodes, n_sources: int, setup: Setup, options: ExactLinkOptions
) -> LearntLinks | None:
    """Wrap the links so that the error rates of their sources are learnt."""
    if options.error != "learn":
        return None
    soft = ~setup.hard
    who = np.zeros(links.n_links, np.int32) if links.who is None else links.who + 1
    duplicate = None if links.duplicate is None else links.duplicate[soft]
    answers = Answers(links.must[soft], who[soft], n_sources, duplicate)
    prior = learnt.prior_rates(n_sources, *options.error_prior)
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
        whole = run.q.copy()
        self.setup.exact.spread(whole)
        return End(run, whole, self.rates)

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


def best_mode(
    ascents: Ascents, start: Run, gold: GoldCodes | None
) -> tuple[End, tuple[Codes, ...]]:
    """Ascend from the start with the highest bound; return also groups that may be another class.

    Where links make no group of three or more, and gold does not contradict the crowd, there is one
    start, as plain VB ended.
    """
    plain = ascents.plain
    known = ascents.setup.known
    classes = vb.class_probabilities(plain, start.q)
    sure = starts.sureness(classes)
    groups = starts.linked_groups(ascents.links, ascents.implied, sure, known)
    against = gold is not None and starts.contradicts(classes, gold)
    there = start.elsewhere
    if not groups.needs_starts and not against:
        return ascents.ascend(start.q, ascents.implied_by(start), elsewhere=there), ()
    trial = ascents.stopping._replace(
        tol=max(starts.TRIAL_TOL, ascents.stopping.tol),
        max_iter=min(starts.TRIAL_SWEEPS, ascents.stopping.max_iter),
    )
    again = partial(ascents.ascend, stopping=trial, elsewhere=there)
    ends = [again(start.q, ascents.implied_by(start))]
    if against:
        of_gold = vb.beliefs_of_known(plain, start.q, known)
        ends.append(again(start.q, of_gold))
    if groups.needs_starts:
        surest = starts.at_surest(classes, groups, sure)
        ends.append(again(_with_classes(plain, start.q, surest)))
        ends.append(_sure_first(ascents, start, sure, trial))
    best = max(ends, key=lambda end: end.bound)
    if groups.needs_starts:
        best = _with_swaps(ascents, best, classes, groups, ends, trial)
    last = ascents.ascend(best.q, best.run.beliefs, best.rates, elsewhere=best.run.elsewhere)
    return last, _uncertain(plain, last, ends, groups)


def _sure_first(ascents: Ascents, start: Run, sure: Floats, trial: Stopping) -> End:
    """Add links part by part, those between the surest tasks first; each part starts warm."""
    few = trial._replace(max_iter=min(starts.PART_SWEEPS, trial.max_iter))
    end = End(start, start.q, None)
    for links in starts.in_parts(ascents.links, sure):
        part = ascents.of_part(links)
        end = part.ascend(
            end.q, part.implied_by(end.run), end.rates, few, elsewhere=end.run.elsewhere
        )
    return ascents.ascend(
        end.q, ascents.implied_by(end.run), end.rates, trial, elsewhere=end.run.elsewhere
    )


def _with_swaps(
    ascents: Ascents,
    best: End,
    plain_q: Floats,
    groups: LinkedGroups,
    ends: list[End],
    trial: Stopping,
) -> End:
    """Exchange two classes in large groups while that raises the bound; add to `ends`."""
    plain = ascents.plain
    few = trial._replace(max_iter=min(starts.SWAP_SWEEPS, trial.max_iter))
    tried: set[tuple[int, int]] = set()
    for _ in range(starts.SWAP_ROUNDS):
        classes = vb.class_probabilities(plain, best.q)
        pairs = [
            pair for pair in starts.doubtful_pairs(classes, plain_q, groups) if pair not in tried
        ]
        for pair in pairs:
            tried.add(pair)
            q = _with_classes(plain, best.q, starts.swapped(classes, groups, *pair))
            end = ascents.ascend(q, None, best.rates, few, elsewhere=best.run.elsewhere)
            ends.append(end)
            if end.bound > best.bound + HIGHER * abs(best.bound):
                best = end
                tried = {pair}
                break
        else:
            break
    return best


def _uncertain(
    plain: Problem, last: End, ends: list[End], groups: LinkedGroups
) -> tuple[Codes, ...]:
    """Return the tasks of each large group that an end nearly as likely calls otherwise.

    Bounds differ by what a crowd says that believes to err apart, so that they are scaled as its
    probabilities are: [eq:design-effect].
    """
    scale = float(Calibration().scale(np.array([honest.mean_responses(plain)]))[0])
    label = vb.class_probabilities(plain, last.q).argmax(axis=1)
    size = np.bincount(groups.group)
    is_uncertain = np.zeros(len(size), dtype=bool)
    for end in ends:
        if scale * (last.bound - end.bound) > NEAR:
            continue
        other = vb.class_probabilities(plain, end.q).argmax(axis=1)
        differs = other[groups.task] != label[groups.task]
        is_uncertain |= np.bincount(groups.group, weights=differs, minlength=len(size)) > size / 2
    chosen = np.flatnonzero(is_uncertain & groups.is_large)
    return tuple(groups.task[groups.group == group] for group in chosen)


def _with_classes(problem: Problem, q: Floats, of_class: Floats) -> Floats:
    """Return q with these class probabilities; subtypes keep their shares of each class."""
    if problem.n_states == problem.n_classes:
        return of_class
    by_class = q.reshape(len(q), problem.n_classes, -1)
    total = by_class.sum(axis=2, keepdims=True)
    even = np.full_like(by_class, 1.0 / by_class.shape[2])
    share = np.divide(by_class, total, out=even, where=total > 0.0)
    return np.asarray((of_class[:, :, None] * share).reshape(q.shape))
