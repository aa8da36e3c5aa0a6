"""A stream: responses, links and gold as they come, batch by batch.

A batch touches some tasks. What these add to the counts of workers and classes is taken out, the
tasks are fitted with the rest as their prior, and what they add now is put in. So the bound of the
whole cannot fall. Then the tasks that were visited longest ago are visited again, because workers
have since turned out to be other than was believed; while a stream is small, all tasks start from
votes again now and then. Tasks that nobody has touched for long may settle: only counts remember
them, and memory does not grow with the stream.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.gold import Gold, GoldCodes
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Label, Labels
from tiebreak.errors import GoldError, LinkError, ResponseError, note
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.inference import calibration, dirichlet
from tiebreak.inference.climb import FitState, Problem, Stopping, climb, start_alone
from tiebreak.inference.door import lay_out
from tiebreak.inference.known import Known, with_fixed
from tiebreak.inference.stages import joint_labels
from tiebreak.inference.tasks import Independent, Parameters
from tiebreak.inference.tasks.coupling.linked import Linked, with_links
from tiebreak.inference.tasks.coupling.starts import start_at
from tiebreak.inference.workers import AnswerCounts, CrowdFacts, CrowdModel
from tiebreak.inference.workers.base import NEW
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import likeliest, softmax
from tiebreak.kernels.contract import Backend, choose_backend
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats, Offsets
from tiebreak.life.open_tasks import NONE, OpenTasks, codes_in
from tiebreak.life.predict import link_odds
from tiebreak.life.update import Carried, SortedRows, batches_of
from tiebreak.links import Links
from tiebreak.links import graph as link_graph
from tiebreak.links.check import check
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.options import ExactLinkOptions

VISIT = Stopping(1e-3, 4, accelerate=False)  # of a batch: what is left, revisits do
REVISITED = 2.0  # so many old responses are visited again for each new one
RESTART = Stopping(1e-3, 100, accelerate=True)
# All open tasks start from votes again when responses have grown by the share (n / SMALL)², within
# these limits: up to SMALL / 2 responses that takes some seconds in all, from there on about as
# long as reading the responses does.
SMALL = 200_000
LEAST_GROWTH = 0.005
MOST_GROWTH = 0.25
LARGEST_RESTART = 1_000_000  # responses: from here on what is believed of workers stands
SLACK = 1.25  # open tasks over their limit before the oldest settle, all at once
LAST = Stopping(1e-3, 1, accelerate=False)  # of all open tasks, before a model is made of them
TINY = 1e-300


class StreamCounts(NamedTuple):
    """What some tasks add: by worker, label and state, and by state."""

    of_workers: Floats  # (n_workers, n_classes, n_states)
    of_states: Floats  # (n_states,)

    def plus(self, other: StreamCounts) -> StreamCounts:
        """Return the sum of both."""
        return StreamCounts(self.of_workers + other.of_workers, self.of_states + other.of_states)

    def padded(self, *more: int) -> StreamCounts:
        """Return the same with zeros for so many more workers, labels and states."""
        of_workers = np.pad(self.of_workers, [(0, n) for n in more])
        return StreamCounts(of_workers, np.pad(self.of_states, (0, more[2])))


class FittedTasks(NamedTuple):
    """Where the fit of some tasks ended."""

    slots: Codes
    label: Codes
    probabilities: Floats  # (n_tasks, n_classes), calibrated
    bounds: list[float]


class Stream:
    """A model that takes responses, links and gold as they come.

    Parameters
    ----------
    model
        A fitted model: where the stream starts. It stays as it is.
    n_open
        The most tasks that stay open; None: all do.
    """

    def __init__(self, model: VariationalBayes, *, n_open: int | None = None) -> None:
        self.template = model
        self.n_open = n_open
        self.crowd_model: CrowdModel = model._crowd_model
        self.classes = {name: k for k, name in enumerate(model.classes_)}
        self.workers = {name: w for w, name in enumerate(model.workers_)}
        self.n_batches = 0
        self.n_seen = 0  # responses of this process
        self._waiting: list[tuple[Codes, Codes, Codes]] = []  # slots, workers, labels: to be fitted
        self._oldest = 0  # the slot that is visited again next
        self._is_behind = False  # whether something came since `catch_up`
        crowd = model.responses_
        n_states = self.crowd_model.workers.n_states
        self.tasks = OpenTasks(crowd, n_states)
        state = self.tasks.state
        state["q"] = model._state.q
        state["reported"] = model.labels_.label
        if model.gold_ is not None:
            known = model.gold_.on(crowd.tasks, crowd.classes)
            state["known"][known.task] = known.label
        # What only counts remember, and with what is open
        shape = (len(self.workers), len(self.classes), n_states)
        self.settled = StreamCounts(np.zeros(shape), np.zeros(n_states))
        carried = model._carried
        if carried is not None:
            of_workers = carried.counts.reshape(shape).copy()
            self.settled = StreamCounts(of_workers, carried.totals.copy())
            state["n_dropped"] = carried.n_dropped
            # Links and gold of then are in what dropped responses said: log q − E[log π].
            log_prior = self.crowd_model.states.expected_log(model._state.parameters[0])
            said = np.log(np.maximum(state["q"], TINY)) - log_prior
            state["evidence"] = np.where(state["n_dropped"][:, None] > 0.0, said, 0.0)
        self.counts = self.settled.plus(self.count(self._everyone()))
        self._n_settled = 0  # the first links, which what is believed of their tasks holds already
        self._set_links(None)
        self._take_links(model)
        self._restart_at = self._next_restart()  # responses at which all start from votes again

    # What comes in

    def add(
        self, task: Sequence[Hashable], worker: Sequence[Hashable], label: Sequence[Hashable]
    ) -> Codes:
        """Take responses, which count from the next fit on; return the slots they touch."""
        labels = self._class_codes(label)
        n_former = len(self.workers)
        workers = codes_in(self.workers, worker)
        n_new = len(self.workers) - n_former
        if n_new:
            at = np.append(np.arange(n_former), np.full(n_new, NEW)).astype(np.int32)
            chosen = self.crowd_model.workers.select(at)
            self.crowd_model = self.crowd_model._replace(workers=chosen)
            self.counts = self.counts.padded(n_new, 0, 0)
            self.settled = self.settled.padded(n_new, 0, 0)
        slots = self.tasks.slots(task)
        if len(slots):
            self._waiting.append((slots, workers, labels))
        self.n_seen += len(slots)
        return slots

    def know(self, task: Sequence[Hashable], label: Sequence[Hashable]) -> Codes:
        """Take gold; a task that is known otherwise, or that links contradict, is refused."""
        codes = self._class_codes(label)
        slots = self.tasks.slots(task)
        known = self.tasks.state["known"]
        former = known[slots]
        wrong = np.flatnonzero((former != NONE) & (former != codes))
        if len(wrong):
            at = int(wrong[0])
            raise GoldError(
                f"Task {task[at]!r} is known as {list(self.classes)[former[at]]!r} already, and "
                f"now as {label[at]!r}."
            )
        known[slots] = codes
        try:
            self._check_links(slots)
        except LinkError:
            known[slots] = former
            raise
        return slots

    def link(self, links: Links) -> Codes:
        """Take links; where one contradicts others, or gold, all of these are refused.

        One that is there already takes the new weight, with a note.
        """
        one, other = (links.tasks.take(ends) for ends in (links.left, links.right))
        slots = np.concatenate([self.tasks.slots(one), self.tasks.slots(other)])
        itself = np.flatnonzero(links.left == links.right)
        if len(itself):
            raise LinkError(f"Task {one[int(itself[0])]!r} is linked to itself.")
        former = self.links
        with warnings.catch_warnings(record=True, action="always") as notes:  # told once taken
            self._set_links(links if former is None else former + links)
        try:
            self._check_links(slots)
        except LinkError:
            self._set_links(former)
            raise
        for each in notes:
            note(str(each.message))
        return np.unique(slots)

    def _class_codes(self, label: Sequence[Hashable]) -> Codes:
        """Return the codes of labels; one that is new is a class from now on."""
        n_former = len(self.classes)
        found = codes_in(self.classes, label)
        n_new = len(self.classes) - n_former
        if not n_new:
            return found
        n_classes = len(self.classes)
        template = self.template
        by_label = self.counts.of_workers.sum(axis=2)
        crowd = CrowdFacts(
            Ids(self.workers),
            n_classes,
            template.confusion_prior,
            dirichlet.class_prior(template.class_prior, n_classes),
            template.trust,
            answers=AnswerCounts(np.pad(by_label, [(0, 0), (0, n_new)]), None),
        )
        model = self.crowd_model.workers.with_classes(crowd)
        if model is None:
            unseen = [self.classes.popitem()[0] for _ in range(n_new)][-1]
            raise ResponseError(
                f"Label {unseen!r} is a new class, and what was learnt of this crowd's workers as "
                "a whole does not tell how they give it. Fit the model again with all responses."
            )
        n_states = model.workers.n_states
        more = (0, n_new, n_states - self.crowd_model.workers.n_states)
        self.tasks.recode(n_former, n_new, n_states)
        self.counts = self.counts.padded(*more)
        self.settled = self.settled.padded(*more)
        self.crowd_model = model
        return found

    # Links and gold among some tasks

    def _take_links(self, model: VariationalBayes) -> None:
        """Take over links; what dropped responses said has those of their tasks in it already."""
        links = model.links_
        if links is None or not len(links):
            return
        if model._carried is None:
            codes = model._read_inputs(model.responses_, links, model.gold_).link_codes
            self._set_links(None if codes is None else links.select(np.unique(codes.row)))
            return
        code = model.tasks_.codes(links.tasks)
        links = links.select((code[links.left] >= 0) & (code[links.right] >= 0))
        is_dropped = model._carried.n_dropped > 0.0
        is_settled = is_dropped[code[links.left]] | is_dropped[code[links.right]]
        self._n_settled = int(is_settled.sum())
        self._set_links(links.select(np.argsort(~is_settled, kind="stable")))

    def _set_links(self, links: Links | None) -> None:
        self.links: Links | None = links
        self._ends = np.empty((2, 0), dtype=np.int32)  # slots of open links
        self._component = np.empty(0, dtype=np.int32)
        if links is not None:
            slot = np.array([self.tasks.slot.get(name, NONE) for name in links.tasks], np.int32)
            both = np.stack([slot[links.left], slot[links.right]])
            self._ends = both[:, self._n_settled :]

    def _tied_to(self, slots: Codes | Offsets) -> Codes:
        """Return these slots and all that links tie to them, sorted."""
        n = len(self.tasks)
        if not self._ends.size:
            return np.unique(slots).astype(np.int32)
        if len(self._component) != n:
            self._component = link_graph.components(n, *self._ends)
        chosen = np.zeros(n, dtype=bool)
        chosen[self._component[slots]] = True
        ends = link_graph.each_once(self._ends.ravel())
        return np.union1d(slots, ends[chosen[self._component[ends]]]).astype(np.int32)

    def _links_among(self, slots: Codes) -> LinkCodes | None:
        """Return the open links between these slots, which are sorted, numbered by place."""
        inside = np.flatnonzero(np.isin(self._ends, slots).all(axis=0))
        if self.links is None or not len(inside):
            return None
        chosen = self.links.select(inside + self._n_settled)
        odds = link_odds(self.template, chosen)
        weight = np.where(np.isinf(odds), np.nan, np.abs(odds))
        left, right = np.searchsorted(slots, self._ends[:, inside]).astype(np.int32)
        found = link_graph.distinct(
            left, right, odds > 0.0, None if np.isnan(weight).all() else weight, None
        )
        if found.weight is not None:
            found = found.keep(found.weight != 0.0)  # where what two links say cancels
        if chosen.duplicate is None:
            return found
        return found._replace(duplicate=chosen.duplicate[found.row] & found.must)

    def _gold_among(self, slots: Codes) -> GoldCodes | None:
        label = self.tasks.state["known"][slots]
        place = np.flatnonzero(label != NONE)
        return GoldCodes(place.astype(np.int32), label[place]) if len(place) else None

    def _imply(self, links: LinkCodes, gold: GoldCodes | None) -> Implications:
        return link_graph.imply(links, len(self.classes), firm=links.is_hard, gold=gold)

    def _check_links(self, slots: Codes) -> None:
        """Refuse links and gold, among what is tied to these slots, that cannot all hold."""
        tied = self._tied_to(slots)
        links = self._links_among(tied)
        if links is not None:
            implied = self._imply(links, self._gold_among(tied))
            names = Ids([self.tasks.names[slot] for slot in tied.tolist()])
            check(implied, names, classes=Ids(self.classes))

    # When tasks are fitted

    def visit(
        self, slots: Codes, stopping: Stopping = VISIT, *, revisit: bool = True
    ) -> list[Label]:
        """Fit the tasks that were touched, then some old ones; return labels that changed."""
        self.n_batches += 1
        n_new = sum(len(slot) for slot, _, _ in self._waiting)
        changed: list[Label] = []
        if len(slots):
            self._is_behind = True
            self.tasks.state["touched"][slots] = self.n_batches
            changed = self._report_changed(self.fit(slots, stopping))
        if revisit and self._restart_at <= self.tasks.n_responses <= LARGEST_RESTART:
            changed += self.restart()
        elif revisit and n_new:
            changed += self._revisit(int(REVISITED * n_new), stopping)
        if self.n_open is not None and len(self.tasks) > SLACK * self.n_open:
            self._settle(self.n_open)
        return changed

    def restart(self, stopping: Stopping = RESTART) -> list[Label]:
        """Fit all open tasks together, from their votes; return labels that changed.

        A stream knows little of its workers when it begins, and what it believes of them then
        confirms itself.
        """
        self._add_waiting()
        self._restart_at = self._next_restart()
        n_classes = len(self.classes)
        states, workers = self.crowd_model
        tasks = self._lay_out(self.tasks.rows, len(self.workers))
        problem = Problem(tasks, Independent(states), workers, self.backend)
        known = Known.of(self._gold_among(self._everyone()))
        votes = known.clamp(problem.votes(), n_classes)
        state = self.tasks.state
        is_dropped = state["evidence"].any(axis=1, keepdims=True)
        state["q"] = np.where(is_dropped, state["q"], votes)
        self.counts = self.settled.plus(self.count(self._everyone()))
        return self.visit_all(stopping)

    def catch_up(self) -> list[Label]:
        """Fit all open tasks, from their votes, if something came since; return what changed.

        Which mode a fit ends in hangs on the votes it starts from, all of them: on a crowd with
        several near modes the last few responses can choose. So whoever publishes a stream, or
        ends one, catches up first; then labels are those of a fit.
        """
        if not self._is_behind or self.tasks.n_responses > LARGEST_RESTART:
            return []
        self._is_behind = False
        model = self.template
        return self.restart(Stopping(model.tol, model.max_iter, accelerate=True))

    def visit_all(self, stopping: Stopping = VISIT) -> list[Label]:
        """Fit all open tasks together; return labels that changed."""
        return self._report_changed(self.fit(self._everyone(), stopping))

    def ask(self, task: Hashable) -> Label | None:
        """Return the label of a task as it is now; None where it is not open."""
        slot = self.tasks.slot.get(task)
        if slot is None:
            return None
        fitted = self.fit(np.array([slot], np.int32))
        return self._report(fitted, np.flatnonzero(fitted.slots == slot))[0]

    def report_all(self) -> list[Label]:
        """Return the labels of all open tasks."""
        fitted = self.fit(self._everyone())
        return self._report(fitted, np.arange(len(fitted.slots)))

    def _everyone(self) -> Codes:
        return np.arange(len(self.tasks), dtype=np.int32)

    def _next_restart(self) -> float:
        n = self.tasks.n_responses
        return n * (1.0 + min(max(LEAST_GROWTH, (n / SMALL) ** 2), MOST_GROWTH))

    def _revisit(self, n_responses: int, stopping: Stopping) -> list[Label]:
        """Visit tasks again, in turn, so many responses in all."""
        n_tasks = len(self.tasks)
        first = self._oldest % n_tasks
        turn = (first + np.arange(min(n_responses, n_tasks))) % n_tasks
        n_each = np.maximum(np.diff(self.tasks.rows.start)[turn], 1)
        chosen = turn[: int(np.searchsorted(np.cumsum(n_each), n_responses)) + 1]
        self._oldest = int(first + len(chosen)) % n_tasks
        return self._report_changed(self.fit(chosen, stopping))

    def _report_changed(self, fitted: FittedTasks) -> list[Label]:
        former = self.tasks.state["reported"][fitted.slots]
        return self._report(fitted, np.flatnonzero(former != fitted.label))

    def _report(self, fitted: FittedTasks, places: Offsets) -> list[Label]:
        slots, label = fitted.slots[places], fitted.label[places]
        self.tasks.state["reported"][slots] = label
        classes = list(self.classes)
        chance = fitted.probabilities[places, label]
        rows = zip(slots.tolist(), label.tolist(), chance.tolist(), strict=True)
        return [Label(self.tasks.names[s], classes[k], p) for s, k, p in rows]

    def _settle(self, n_open: int) -> None:
        """Keep the tasks that were touched last open; only counts remember the others."""
        n_gone = max(len(self.tasks) - n_open, 0)
        gone, kept = np.split(np.argsort(self.tasks.state["touched"], kind="stable"), [n_gone])
        self.settled = self.settled.plus(self.count(gone.astype(np.int32)))
        self.tasks.keep(np.sort(kept).astype(np.int32))
        self._oldest = 0
        links = self.links
        if links is not None:
            is_open = np.array([name in self.tasks.slot for name in links.tasks], dtype=bool)
            both = is_open[links.left] & is_open[links.right]
            self._n_settled = int(both[: self._n_settled].sum())
            links = links.select(both)
            used = link_graph.each_once(np.concatenate([links.left, links.right]))
            left, right = (link_graph.places_in(used, end) for end in (links.left, links.right))
            names = links.tasks.take(used)
            self._set_links(replace(links, left=left, right=right, tasks=names))

    # How tasks are fitted

    @property
    def backend(self) -> Backend:
        """The kernels: compiled ones once so much has come that they repay it."""
        return choose_backend(self.template.backend, self.n_seen)

    def count(self, slots: Codes) -> StreamCounts:
        """Return what open tasks add to the counts."""
        return self._count(self.tasks.on(slots), self.tasks.state["q"][slots], len(self.workers))

    def _count(self, rows: SortedRows, q: Floats, n_workers: int) -> StreamCounts:
        counts, totals = self.backend.open(self._lay_out(rows, n_workers), q).tally()
        return StreamCounts(counts.reshape(n_workers, len(self.classes), q.shape[1]), totals)

    def _lay_out(self, rows: SortedRows, n_workers: int) -> ByTask:
        """Lay out responses in codes of so many workers."""
        role = np.full(len(rows.start) - 1, FREE, dtype=np.int8)
        n_codes = n_workers * len(self.classes)
        n_states = self.crowd_model.workers.n_states
        return layout.lay_out(rows.start, rows.code, role, n_codes, n_states, rows.weight)

    def _add_waiting(self) -> Codes:
        """Put what came among the responses; return the slots of what came."""
        if not self._waiting:
            return np.empty(0, dtype=np.int32)
        slots, workers, labels = map(np.concatenate, zip(*self._waiting, strict=True))
        self._waiting = []
        self.tasks.add(slots, workers, labels, len(self.classes))
        return np.asarray(slots)

    def fit(self, slots: Codes | Offsets, stopping: Stopping = VISIT) -> FittedTasks:
        """Fit tasks, those for which something waits, and all that are tied to them.

        What they add now takes the place of what they added before.
        """
        came = [slot for slot, _, _ in self._waiting]
        slots = self._tied_to(np.concatenate([slots, *came]))
        former = self.tasks.on(slots)
        fresh = self._add_waiting()
        rows = self.tasks.on(slots)
        state = self.tasks.state[slots]
        q = np.ascontiguousarray(state["q"])
        is_fresh = np.isin(slots, fresh) | (q.sum(axis=1) == 0.0)
        # Codes of the workers who answered these tasks
        n_classes = len(self.classes)
        at = np.unique(rows.code // n_classes).astype(np.int32)
        place = np.zeros(len(self.workers), dtype=np.int32)
        place[at] = np.arange(len(at))
        former, rows = (
            each._replace(
                code=(place[each.code // n_classes] * n_classes + each.code % n_classes).astype(
                    np.int32
                )
            )
            for each in (former, rows)
        )
        before = self._count(former, q, len(at))
        problem = self._problem(rows, at, before, state["evidence"])
        if is_fresh.any():
            q[is_fresh] = self._first_q(problem, at, np.flatnonzero(is_fresh).astype(np.int32))
        n_given = layout.total_weights(rows.start, rows.weight) + state["n_dropped"]
        end, label, probabilities = self._climb(problem, q, slots, n_given, stopping)
        after = self._count(rows, end.q, len(at))
        changed = after.of_workers - before.of_workers
        self.counts.of_workers[at] = np.maximum(self.counts.of_workers[at] + changed, 0.0)
        self.counts.of_states[:] += after.of_states - before.of_states
        self.tasks.state["q"][slots] = end.q
        return FittedTasks(slots, label, probabilities, list(end.bounds))

    def _problem(
        self, rows: SortedRows, at: Codes, before: StreamCounts, evidence: Floats
    ) -> Problem:
        """Return the fit of a batch: the counts of all other tasks are part of the prior."""
        states, workers = self.crowd_model
        chosen = workers.select(at)
        others = np.maximum(self.counts.of_workers[at] - before.of_workers, 0.0)
        carried = (
            np.maximum(self.counts.of_states - before.of_states, 0.0),
            chosen.collect(others.reshape(-1, workers.n_states)),
        )
        tasks = self._lay_out(rows, len(at))
        problem = Problem(tasks, Independent(states), chosen, self.backend, 1, carried=carried)
        has_more = np.flatnonzero(evidence.any(axis=1))  # what dropped responses said is given
        return with_fixed(problem, has_more, evidence[has_more]) if len(has_more) else problem

    def _first_q(self, problem: Problem, at: Codes, tasks: Codes) -> Floats:
        """Return what tasks are by their responses, with workers as they are believed to be now."""
        states, workers = self.crowd_model
        chosen = workers.select(at)
        now = chosen.collect(self.counts.of_workers[at].reshape(-1, workers.n_states))
        parameters = (states.prior + self.counts.of_states, chosen.prior + now)
        part = layout.part_of(problem.rows, tasks, workers.n_states)
        scores = problem.backend.score_tasks(part, *problem.logs(parameters))
        own = problem.tasks.own
        if own is not None and own.fixed is not None:
            place = np.searchsorted(tasks, own.at)
            inside = np.flatnonzero(np.isin(own.at, tasks))
            scores[place[inside]] += own.fixed[inside]
        return np.asarray(softmax(scores))

    def _climb(
        self, problem: Problem, q: Floats, slots: Codes, n_given: Floats, stopping: Stopping
    ) -> tuple[FitState, Codes, Floats]:
        """Return where tasks end, their labels, and the calibrated probabilities of classes."""
        gold = self._gold_among(slots)
        links = self._links_among(slots)
        known = Known.of(gold)
        options = ExactLinkOptions(decode=getattr(self.template.link_options, "decode", None))
        if links is None:
            problem = known.on(problem)
            end = climb(problem, FitState(q=known.clamp(q, problem.n_classes)), stopping)
        else:
            plain = FitState(q, problem.implied(q))
            problem = with_links(problem, self._imply(links, gold), options)
            assert isinstance(problem.tasks, Linked)
            known = problem.tasks.known
            start = start_at(problem, plain)
            if not start.parameters:
                start = start._replace(parameters=problem.implied(start.q))
            end = climb(problem, start_alone(problem, start), stopping)
        found = self.template.calibration_
        q, memory = calibration.probabilities(problem, end, found, n_given, known)
        if links is None:
            label, _ = likeliest(problem.by_class(end.q))
            return end, label, q
        assert isinstance(problem.tasks, Linked)
        label, _ = likeliest(q)
        decoded = joint_labels(problem.tasks, memory, options)
        if decoded is not None:
            label[problem.tasks.task] = decoded
        return end, label, q

    # What is kept of a stream

    def notes(self) -> dict[str, Any]:
        """Return what is not in a model, for a stream that goes on elsewhere: plain numbers."""
        touched = [] if self.n_open is None else self.tasks.state["touched"].tolist()
        return {
            "n_batches": self.n_batches,
            "n_seen": self.n_seen,
            "oldest": self._oldest,
            "restart_at": self._restart_at,
            "touched": touched,
        }

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Take what `notes` returned."""
        self.n_batches = int(notes.get("n_batches", 0))
        self.n_seen = int(notes.get("n_seen", 0))
        self._oldest = int(notes.get("oldest", 0))
        self._restart_at = float(notes.get("restart_at", self._restart_at))
        touched = notes.get("touched") or []
        if len(touched) <= len(self.tasks):  # an update since then puts new tasks at the end
            self.tasks.state["touched"] = self.n_batches
            self.tasks.state["touched"][: len(touched)] = touched

    def to_model(self) -> VariationalBayes:
        """Visit all open tasks once, and return a model of what the stream knows."""
        return self.publish()[0]

    def publish(self) -> tuple[VariationalBayes, list[Label]]:
        """Return a model of what the stream knows, and the labels that changed on the way there."""
        fitted = self.fit(self._everyone(), LAST)
        changed = self._report_changed(fitted)
        model = copy.copy(self.template)
        crowd = self._responses()
        known = self.tasks.state["known"]
        slots = np.flatnonzero(known != NONE)
        model.responses_ = crowd
        model.tasks_ = crowd.tasks
        model.workers_ = crowd.workers
        model.classes_ = crowd.classes
        model.gold_ = None
        if len(slots):
            model.gold_ = Gold(crowd.tasks.take(slots), known[slots], crowd.classes, slots)
        model.probabilities_ = fitted.probabilities
        model.labels_ = Labels.from_probabilities(
            crowd.tasks, crowd.classes, fitted.probabilities, label=fitted.label, frame=crowd.frame
        )
        model.links_ = self.links
        model.violations_ = None
        if self.links is not None:
            codes = self.links.on(crowd.tasks)
            broken = link_graph.violated(fitted.label, codes)
            model.violations_ = self.links.select(codes.row[broken])
        model.bounds_ = fitted.bounds
        model.n_iter_ = len(fitted.bounds)
        model.converged_ = True
        model.doubtful_links_ = None
        model.link_report_ = None
        model.uncertain_groups_ = []
        self._set_beliefs(model, crowd)
        return model, changed

    def _responses(self) -> Responses:
        former = self.template.responses_
        has_grown = len(self.classes) > former.n_classes  # new classes stand at the end
        return Responses(
            *self.tasks.rows[:2],
            Ids(self.tasks.names),
            Ids(self.workers),
            Ids(self.classes),
            frame=former.frame,
            is_class_ordered=former.is_class_ordered or has_grown,
            weight=self.tasks.rows.weight,
        )

    def _set_beliefs(self, model: VariationalBayes, crowd: Responses) -> None:
        """Give a model what the stream believes, and what only counts remember."""
        states, workers = self.crowd_model
        added = workers.collect(self.counts.of_workers.reshape(-1, workers.n_states))
        parameters: Parameters = (states.prior + self.counts.of_states, workers.prior + added)
        problem = Problem(lay_out(crowd), Independent(states), workers, self.backend)
        model._crowd_model = self.crowd_model
        model._state = FitState(self.tasks.state["q"].copy(), parameters)
        model._plain = parameters
        model.class_prior_ = states.mean(parameters[0])
        model.confusion_ = problem.confusion(parameters)
        n_dropped = self.tasks.state["n_dropped"].copy()
        model._carried = None
        if self.settled.of_workers.any() or self.settled.of_states.any() or n_dropped.any():
            counts = self.settled.of_workers.reshape(-1, workers.n_states).copy()
            model._carried = Carried(counts, self.settled.of_states.copy(), n_dropped)
            model._batches = batches_of(self.template)
