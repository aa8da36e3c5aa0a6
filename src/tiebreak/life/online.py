"""A stream: responses, links and gold as they come, batch by batch.

A batch touches some tasks. What these add to the counts of workers and classes is taken out, the
tasks are fitted with the rest as their prior, and what they add now is put in. So the bound of the
whole cannot fall. Then the tasks that were visited longest ago are visited again, because workers
have since turned out to be other than was believed; while a stream is small, all tasks start from
votes again now and then. Tasks that nobody has touched for long may settle: only counts remember
them, and memory does not grow with the stream.

    counts = settled (tasks that are gone) + Σ over open tasks of q, by worker, label and state
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data import Responses
from tiebreak.data.gold import Gold, GoldCodes
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Label
from tiebreak.data.responses import INT32_END
from tiebreak.errors import GoldError, LinkError, OptionError, ResponseError
from tiebreak.estimators import publishing
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.inference import calibration, dirichlet, stages
from tiebreak.inference.climb import FitState, Problem
from tiebreak.inference.climb import Stopping as Stopping
from tiebreak.inference.door import Inputs, lay_out
from tiebreak.inference.known import Known, with_fixed
from tiebreak.inference.stages import FitOptions, Scored, Start
from tiebreak.inference.tasks import Independent
from tiebreak.inference.tasks.coupling.linked import Linked
from tiebreak.inference.workers import AnswerCounts, CrowdFacts, CrowdModel
from tiebreak.inference.workers.base import NEW
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import likeliest, softmax
from tiebreak.kernels.contract import Backend, choose_backend
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats, Offsets
from tiebreak.life.predict import decoding_of, weighed
from tiebreak.life.update import Carried, SortedRows, batches_of, merge, refuse_counts
from tiebreak.links import Links
from tiebreak.links import graph as link_graph
from tiebreak.links.check import check
from tiebreak.links.graph import Implications, LinkCodes

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
NONE = -1
NOTES = ("n_batches", "n_seen", "oldest", "restart_at")  # of a stream, which no model keeps


class StreamCounts(NamedTuple):
    """What some tasks add: by worker, label and state, and by state."""

    of_workers: Floats  # (n_workers, n_classes, n_states)
    of_states: Floats  # (n_states,)

    def plus(self, other: StreamCounts) -> StreamCounts:
        return StreamCounts(self.of_workers + other.of_workers, self.of_states + other.of_states)

    def padded(self, *more: int) -> StreamCounts:
        """Return the same with zeros for so many more workers, labels and states."""
        of_workers = np.pad(self.of_workers, [(0, n) for n in more])
        return StreamCounts(of_workers, np.pad(self.of_states, (0, more[2])))

    def take_out(self, at: Codes, some: StreamCounts) -> None:
        """Take out what some tasks added, whose workers are `at`."""
        self.of_workers[at] = np.maximum(self.of_workers[at] - some.of_workers, 0.0)
        self.of_states[:] = np.maximum(self.of_states - some.of_states, 0.0)

    def put_in(self, at: Codes, some: StreamCounts) -> None:
        """Put in what some tasks add, whose workers are `at`."""
        self.of_workers[at] += some.of_workers
        self.of_states[:] += some.of_states


class FittedTasks(NamedTuple):
    """Where the fit of some tasks ended."""

    slots: Codes
    label: Codes
    probabilities: Floats  # (n_tasks, n_classes), calibrated
    bounds: tuple[float, ...]


class OpenTasks:
    """Tasks by slot: their responses, sorted by slot, and what they are believed to be.

    `state` has one row a task:

    q            what it is believed to be; zeros: it has responses that do not count yet
    evidence     what responses said that only counts remember, as log scores; zeros: nothing
    n_dropped    how many these were, by weight
    known        the class of a gold task, else `NONE`
    reported     the label that was reported last
    touched      the batch that touched it last
    """

    def __init__(self, responses: Responses, n_states: int) -> None:
        self._room = _blank(responses.n_tasks, n_states)
        self.names: list[Hashable] = list(responses.tasks)
        self.slot = {name: slot for slot, name in enumerate(self.names)}
        self.rows = SortedRows(responses.start, responses.code, responses.weight)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def state(self) -> npt.NDArray[Any]:
        """What is known of each task: a view that may be written to."""
        return self._room[: len(self)]

    def slots(self, names: Iterable[Hashable]) -> Codes:
        """Return the slots of tasks; a new one is made for each that has none."""
        n_former = len(self)
        found = codes_in(self.slot, names)
        n_new = len(self.slot) - n_former
        if n_new:
            newest = reversed(self.slot)
            self.names += [next(newest) for _ in range(n_new)][::-1]
            end = np.full(n_new, self.rows.start[-1])
            self.rows = self.rows._replace(start=np.concatenate([self.rows.start, end]))
            if len(self) > len(self._room):  # twice the room, so that growth costs little
                more = _blank(max(n_new, n_former), self._room["q"].shape[1])
                self._room = np.concatenate([self._room[:n_former], more])
        return found

    def on(self, slots: Codes) -> SortedRows:
        """Return the responses on some tasks, in their order."""
        start, code = layout.responses_on(self.rows, slots)
        return SortedRows(start, code, layout.weights_on(self.rows, slots))

    def add(self, slot: Codes, worker: Codes, label: Codes, n_classes: int) -> None:
        """Take responses; the last one of a worker on a task counts."""
        pair = slot.astype(np.int64) * (1 + int(worker.max())) + worker
        _, from_end = np.unique(pair[::-1], return_index=True)
        kept = len(pair) - 1 - from_end
        code = worker[kept].astype(np.int64) * n_classes + label[kept]
        self.rows, _ = merge(self.rows, slot[kept], code, None, n_classes)

    def recode(self, n_classes: int, n_more: int, n_states: int) -> None:
        """Add classes and states at the end, which no task is in so far."""
        worker, label = np.divmod(self.rows.code, n_classes)
        code = worker.astype(np.int64) * (n_classes + n_more) + label
        kind = np.int64 if int(code.max(initial=0)) >= INT32_END else np.int32
        self.rows = self.rows._replace(code=code.astype(kind))
        former = self.state
        self._room = _blank(len(self), n_states)
        for name in ("n_dropped", "known", "reported", "touched"):
            self._room[name] = former[name]
        n_former = former["q"].shape[1]
        self._room["q"][:, :n_former] = former["q"]
        self._room["evidence"][:, :n_former] = former["evidence"]
        # Dropped responses said the new states as little as any.
        self._room["evidence"][:, n_former:] = former["evidence"].min(axis=1, keepdims=True)

    def keep(self, slots: Codes) -> None:
        """Forget all tasks but these, and number them anew."""
        self.rows = self.on(slots)
        self._room = self.state[slots]
        self.names = [self.names[slot] for slot in slots.tolist()]
        self.slot = {name: slot for slot, name in enumerate(self.names)}


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
        refuse_counts(model)
        if model.constraints_ is not None:
            raise OptionError("no-constraints", what="A stream")
        self.template = model
        self.n_open = n_open
        self.crowd_model: CrowdModel = model._crowd_model
        self.classes = {name: k for k, name in enumerate(model.classes_)}
        self.workers = {name: w for w, name in enumerate(model.workers_)}
        self._n_batches = 0
        self._n_seen = 0  # responses of this process
        self._fresh = np.empty(0, dtype=np.int32)  # slots with responses that do not count yet
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
        self.links: Links | None = None
        self._n_settled = 0  # the first links, which what is believed of their tasks holds already
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
            touched = np.unique(slots)
            rows, at = self._rows_on(touched)
            q = np.ascontiguousarray(self.tasks.state["q"][touched])
            self.counts.take_out(at, self._count(rows, q, len(at)))
            self.tasks.state["q"][touched] = 0.0
            self.tasks.add(slots, workers, labels, len(self.classes))
            self._fresh = np.union1d(self._fresh, touched).astype(np.int32)
        self._n_seen += len(slots)
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
            before = list(self.classes)[former[at]]
            raise GoldError("gold-changed", task=task[at], former=before, label=label[at])
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
            raise LinkError("linked-to-itself", task=one[int(itself[0])])
        former = self.links
        with warnings.catch_warnings(record=True, action="always") as notes:  # told once taken
            self._set_links(links if former is None else former + links)
        try:
            self._check_links(slots)
        except LinkError:
            self._set_links(former)
            raise
        for each in notes:
            warnings.warn(each.message, stacklevel=2)
        return np.unique(slots)

    def _class_codes(self, label: Sequence[Hashable]) -> Codes:
        """Return the codes of labels; one that is new is a class from now on."""
        if self.template.scale_ is not None:
            return self.template.scale_.require(label)
        n_former = len(self.classes)
        found = codes_in(self.classes, label)
        n_classes = len(self.classes)
        n_new = n_classes - n_former
        if not n_new:
            return found
        template = self.template
        by_label = np.pad(self.counts.of_workers.sum(axis=2), [(0, 0), (0, n_new)])
        crowd = CrowdFacts(
            Ids(self.workers),
            n_classes,
            template.confusion_prior,
            dirichlet.class_prior(template.class_prior, n_classes),
            template.trust,
            answers=AnswerCounts(by_label, None),
        )
        if not self.crowd_model.workers.can_widen:
            unseen = [self.classes.popitem()[0] for _ in range(n_new)][-1]
            raise ResponseError("class-not-taken", label=unseen)
        model = self.crowd_model.workers.bind(crowd)
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
        if links is not None and not len(links):
            links = None
        if links is not None and model._carried is None:
            codes = model._read_inputs(model.responses_, links, model.gold_).link_codes
            links = None if codes is None else links.select(np.unique(codes.row))
        elif links is not None and model._carried is not None:
            code = model.tasks_.codes(links.tasks)
            links = links.select((code[links.left] >= 0) & (code[links.right] >= 0))
            is_dropped = (model._carried.n_dropped > 0.0)[code]
            is_settled = is_dropped[links.left] | is_dropped[links.right]
            self._n_settled = int(is_settled.sum())
            links = links.select(np.argsort(~is_settled, kind="stable"))
        self._set_links(links)

    def _set_links(self, links: Links | None) -> None:
        self.links = links
        self._ends = np.empty((2, 0), dtype=np.int32)  # slots of open links
        self._component = np.empty(0, dtype=np.int32)
        if links is not None:
            slot = np.array([self.tasks.slot.get(name, NONE) for name in links.tasks], np.int32)
            self._ends = slot[np.stack([links.left, links.right])][:, self._n_settled :]

    def _tied_to(self, slots: Codes | Offsets) -> Codes:
        """Return these slots and all that links tie to them, sorted."""
        n = len(self.tasks)
        if not self._ends.size:
            return np.unique(slots).astype(np.int32)
        if len(self._component) != n:
            self._component = link_graph.components(n, *self._ends)
        chosen = np.zeros(n, dtype=bool)
        chosen[self._component[slots]] = True
        ends = np.unique(self._ends)
        return np.union1d(slots, ends[chosen[self._component[ends]]]).astype(np.int32)

    def _links_among(self, slots: Codes) -> LinkCodes | None:
        """Return the open links between these slots, which are sorted, numbered by place."""
        inside = np.flatnonzero(np.isin(self._ends, slots).all(axis=0))
        if self.links is None or not len(inside):
            return None
        chosen = self.links.select(inside + self._n_settled)
        left, right = np.searchsorted(slots, self._ends[:, inside]).astype(np.int32)
        return weighed(self.template, chosen, left, right)

    def _gold_among(self, slots: Codes) -> GoldCodes | None:
        label = self.tasks.state["known"][slots]
        place = np.flatnonzero(label != NONE)
        return GoldCodes(place.astype(np.int32), label[place]) if len(place) else None

    def _implied_among(self, slots: Codes) -> Implications | None:
        """Return what follows from links and gold among these slots; None: there are no links."""
        links = self._links_among(slots)
        if links is None:
            return None
        gold = self._gold_among(slots)
        return link_graph.imply(links, len(self.classes), firm=links.is_hard, gold=gold)

    def _check_links(self, slots: Codes) -> None:
        """Refuse links and gold, among what is tied to these slots, that cannot all hold."""
        tied = self._tied_to(slots)
        implied = self._implied_among(tied)
        if implied is not None:
            names = Ids([self.tasks.names[slot] for slot in tied.tolist()])
            check(implied, names, classes=Ids(self.classes))

    # When tasks are fitted

    def visit(
        self, slots: Codes, stopping: Stopping = VISIT, *, revisit: bool = True
    ) -> list[Label]:
        """Fit the tasks that were touched, then some old ones; return labels that changed."""
        self._n_batches += 1
        n_new = int(np.diff(self.tasks.rows.start)[self._fresh].sum())
        changed: list[Label] = []
        if len(slots):
            self._is_behind = True
            self.tasks.state["touched"][slots] = self._n_batches
            changed = self._report_changed(self.fit(slots, stopping))
        if revisit and self._restart_at <= len(self.tasks.rows.code) <= LARGEST_RESTART:
            changed += self.restart()
        elif revisit and n_new:
            changed += self._revisit(int(REVISITED * n_new), stopping)
        if self.n_open is not None and len(self.tasks) > SLACK * self.n_open:
            self._settle(self.n_open)
        return changed

    def restart(self, stopping: Stopping = RESTART) -> list[Label]:
        """Fit all open tasks together, as a cold fit begins; return labels that changed.

        A stream knows little of its workers when it begins, and what it believes of them then
        confirms itself.
        """
        self._restart_at = self._next_restart()
        everyone = self._everyone()
        states, workers = self.crowd_model
        laid = self._lay_out(self.tasks.rows, len(self.workers))
        problem = Problem(laid, Independent(states), workers, self.backend)
        known = Known.of(self._gold_among(everyone))
        votes = problem.votes()
        starts = [votes, *workers.starts(laid)]
        if len(known.task) and workers.starts_at_gold:
            logs = problem.logs(known.parameters(problem, votes))
            starts.append(softmax(problem.backend.score_tasks(laid, *logs)))
        state = self.tasks.state
        is_dropped = state["evidence"].any(axis=1, keepdims=True)
        n_classes = len(self.classes)
        starts = [np.where(is_dropped, state["q"], known.clamp(q, n_classes)) for q in starts]
        self.counts = self.settled.plus(self.count(everyone))
        return self._report_changed(self.fit(everyone, stopping, starts))

    def catch_up(self) -> list[Label]:
        """Fit all open tasks, from their votes, if something came since; return what changed.

        Which mode a fit ends in depends on the votes it starts from, all of them: on a crowd with
        several near modes the last few responses can choose. So whoever publishes a stream, or
        ends one, catches up first; then labels are those of a fit.
        """
        if not self._is_behind or len(self.tasks.rows.code) > LARGEST_RESTART:
            return []
        self._is_behind = False
        model = self.template
        return self.restart(Stopping(model.tol, model.max_iter, accelerate=True))

    def ask(self, task: Hashable) -> Label | None:
        """Return the label of a task as it is now; None where it is not open."""
        slot = self.tasks.slot.get(task)
        if slot is None:
            return None
        fitted = self.fit(np.array([slot], np.int32))
        return self._report(fitted, np.flatnonzero(fitted.slots == slot))[0]

    def report_all(self) -> list[Label]:
        fitted = self.fit(self._everyone())
        return self._report(fitted, np.arange(len(fitted.slots)))

    def _everyone(self) -> Codes:
        return np.arange(len(self.tasks), dtype=np.int32)

    def _next_restart(self) -> float:
        n = len(self.tasks.rows.code)
        return n * (1.0 + min(max(LEAST_GROWTH, (n / SMALL) ** 2), MOST_GROWTH))

    def _revisit(self, n_responses: int, stopping: Stopping) -> list[Label]:
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
            used, ends = np.unique(np.stack([links.left, links.right]), return_inverse=True)
            left, right = ends.reshape(2, -1).astype(np.int32)
            self._set_links(replace(links, left=left, right=right, tasks=links.tasks.take(used)))

    # How tasks are fitted

    @property
    def backend(self) -> Backend:
        """The kernels: compiled ones once so much has come that they repay it."""
        return choose_backend(self.template.backend, self._n_seen)

    def count(self, slots: Codes) -> StreamCounts:
        """Return what open tasks add to the counts."""
        return self._count(self.tasks.on(slots), self.tasks.state["q"][slots], len(self.workers))

    def _count(self, rows: SortedRows, q: Floats, n_workers: int) -> StreamCounts:
        counts, totals = self.backend.open(self._lay_out(rows, n_workers), q).tally()
        return StreamCounts(counts.reshape(n_workers, len(self.classes), q.shape[1]), totals)

    def _lay_out(self, rows: SortedRows, n_workers: int) -> ByTask:
        role = np.full(len(rows.start) - 1, FREE, dtype=np.int8)
        n_codes = n_workers * len(self.classes)
        n_states = self.crowd_model.workers.n_states
        return layout.lay_out(rows.start, rows.code, role, n_codes, n_states, rows.weight)

    def _rows_on(self, slots: Codes) -> tuple[SortedRows, Codes]:
        """Return the responses on some tasks, in codes of the workers who gave them, and these."""
        rows = self.tasks.on(slots)
        n_classes = len(self.classes)
        worker, label = np.divmod(rows.code, n_classes)
        at, place = np.unique(worker, return_inverse=True)
        code = (place * n_classes + label).astype(np.int32)
        return rows._replace(code=code), at.astype(np.int32)

    def fit(
        self, slots: Codes | Offsets, stopping: Stopping = VISIT, starts: Sequence[Floats] = ()
    ) -> FittedTasks:
        """Fit tasks, those that do not count yet, and all that are tied to them.

        What they add now takes the place of what they added before. Of several `starts`, q of all
        tasks, the one with the highest bound is kept; without any, tasks go on from where they are.
        """
        slots = self._tied_to(np.concatenate([slots, self._fresh]))
        self._fresh = self._fresh[:0]
        rows, at = self._rows_on(slots)
        state = self.tasks.state[slots]
        q = np.ascontiguousarray(state["q"])
        now = self._beliefs(at)
        self.counts.take_out(at, self._count(rows, q, len(at)))
        states, workers = self.crowd_model
        others = self._beliefs(at)  # counts of all other tasks are part of the prior
        laid = self._lay_out(rows, len(at))
        plain = Problem(
            laid, Independent(states), workers.select(at), self.backend, 1, carried=others
        )
        has_more = np.flatnonzero(state["evidence"].any(axis=1))  # of dropped responses: given
        if len(has_more):
            plain = with_fixed(plain, has_more, state["evidence"][has_more])
        new = np.flatnonzero(q.sum(axis=1) == 0.0).astype(np.int32)
        if len(new) and not starts:  # as workers are believed to be now
            prior = (states.prior, plain.workers.prior)
            logs = plain.logs(tuple(each + more for each, more in zip(prior, now, strict=True)))
            part = layout.part_of(laid, new, workers.n_states)
            scores = plain.backend.score_tasks(part, *logs)
            q[new] = softmax(scores + state["evidence"][new])
        n_given = layout.total_weights(rows.start, rows.weight) + state["n_dropped"]
        ends = [self._climb(plain, each, slots, n_given, stopping) for each in starts or (q,)]
        end, scored = max(ends, key=lambda each: each[0].bounds[-1])
        self.counts.put_in(at, self._count(rows, end.q, len(at)))
        self.tasks.state["q"][slots] = end.q
        return FittedTasks(slots, scored.label, scored.q, end.bounds)

    def _beliefs(self, at: Codes) -> tuple[Floats, Floats]:
        """Return what all tasks that count add to the priors of classes and of the workers `at`."""
        workers = self.crowd_model.workers.select(at)
        of_workers = self.counts.of_workers[at].reshape(-1, workers.n_states)
        return self.counts.of_states.copy(), workers.collect(of_workers)

    def _climb(
        self, plain: Problem, q: Floats, slots: Codes, n_given: Floats, stopping: Stopping
    ) -> tuple[FitState, Scored]:
        """Fit from q with what is known of these tasks, and score, as the stages of a fit do."""
        implied = self._implied_among(slots)
        known = Known.of(self._gold_among(slots))
        links = decoding_of(self.template)
        options = FitOptions(stopping, links=links)
        begin = Start(FitState(q), is_cold=False, is_warm=True)
        if implied is None:
            problem, end, _ = stages.fit_gold(plain, begin.state, known, begin, options)
        else:
            state = FitState(q, plain.implied(q))
            problem, end, _ = stages.fit_links(plain, state, implied, links, begin, options)
            assert isinstance(problem.tasks, Linked)
            known = problem.tasks.known
        found = self.template.calibration_
        by_class, memory = calibration.probabilities(problem, end, found, n_given, known)
        label, _ = likeliest(problem.by_class(end.q))
        scored = Scored(q=by_class, label=label, memory=memory)
        return end, stages.decode(problem, end.parameters, scored, links)

    # What is kept of a stream

    def notes(self) -> dict[str, Any]:
        """Return what is not in a model, for a stream that goes on elsewhere: plain numbers."""
        touched = [] if self.n_open is None else self.tasks.state["touched"].tolist()
        return {name: getattr(self, f"_{name}") for name in NOTES} | {"touched": touched}

    def restore(self, notes: Mapping[str, Any]) -> None:
        for name in NOTES:
            setattr(self, f"_{name}", notes.get(name, getattr(self, f"_{name}")))
        touched = notes.get("touched") or []
        if len(touched) <= len(self.tasks):  # an update since then puts new tasks at the end
            self.tasks.state["touched"] = self._n_batches
            self.tasks.state["touched"][: len(touched)] = touched

    def to_model(self) -> VariationalBayes:
        """Visit all open tasks once, and return a model of what the stream knows."""
        return self.publish()[0]

    def publish(self) -> tuple[VariationalBayes, list[Label]]:
        """Return a model of what the stream knows, and the labels that changed on the way there."""
        fitted = self.fit(self._everyone(), LAST)
        changed = self._report_changed(fitted)
        template = self.template
        model = copy.copy(template)
        rows, state = self.tasks.rows, self.tasks.state
        has_grown = len(self.classes) > template.responses_.n_classes  # new ones are at the end
        crowd = Responses(
            rows.start,
            rows.code,
            Ids(self.tasks.names),
            Ids(self.workers),
            Ids(self.classes),
            frame=template.responses_.frame,
            is_class_ordered=template.responses_.is_class_ordered or has_grown,
            weight=rows.weight,
        )
        known = np.flatnonzero(state["known"] != NONE)
        gold = None
        if len(known):
            label = state["known"][known]
            gold = Gold(crowd.tasks.take(known), label, crowd.classes, known)
        given = None if self.links is None else self.links.on(crowd.tasks)
        inputs = Inputs(crowd, self.links, gold, given, None, None, scale=template.scale_)
        model._publish(inputs, fitted.probabilities, fitted.label)
        model._batches = template._batches
        model.doubtful_links_ = None
        model.link_report_ = None
        model.uncertain_groups_ = []
        states, workers = self.crowd_model
        problem = Problem(lay_out(crowd), Independent(states), workers, self.backend)
        of_states, of_workers = self._beliefs(np.arange(len(self.workers), dtype=np.int32))
        parameters = (states.prior + of_states, workers.prior + of_workers)
        model._crowd_model = self.crowd_model
        model._state = FitState(state["q"].copy(), parameters)
        model._plain = parameters
        ended = model._state._replace(
            bounds=fitted.bounds, n_sweeps=len(fitted.bounds), converged=True
        )
        publishing.publish_state(model, problem, ended, inputs)
        n_dropped = state["n_dropped"].copy()
        if self.settled.of_workers.any() or self.settled.of_states.any() or n_dropped.any():
            counts = self.settled.of_workers.reshape(-1, workers.n_states).copy()
            model._carried = Carried(counts, self.settled.of_states.copy(), n_dropped)
            model._batches = batches_of(template)
        return model, changed


def codes_in(index: dict[Hashable, int], names: Iterable[Hashable]) -> Codes:
    """Return the codes of names; those that have none get the next ones, and are added.

    >>> index = {"a": 0}
    >>> codes_in(index, ["b", "a", "b"]).tolist(), index
    ([1, 0, 1], {'a': 0, 'b': 1})
    """
    return np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int32)


def _blank(n: int, n_states: int) -> npt.NDArray[Any]:
    """Return the state of tasks of which nothing is known."""
    made = np.zeros(
        n,
        dtype=[
            ("q", np.float64, (n_states,)),
            ("evidence", np.float64, (n_states,)),
            ("n_dropped", np.float64),
            ("known", np.int32),
            ("reported", np.int32),
            ("touched", np.int64),
        ],
    )
    made["known"] = made["reported"] = NONE
    return made
