"""Streaming variational inference: responses, links and gold as they come, batch by batch.

Each batch touches some tasks. These are fitted with the counts of all other tasks as their prior
(`batches.py`), then some tasks that were visited longest ago are visited again, because workers
have since turned out to be other than was believed. Tasks that nobody has touched for long may
settle: only counts remember them then, and memory does not grow with the stream.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Label
from tiebreak.errors import GoldError, LinkError, TiebreakError, note
from tiebreak.inference.vb import Stopping
from tiebreak.inference.workers import CrowdModel
from tiebreak.kernels.contract import Backend, choose_backend
from tiebreak.kernels.layout import Codes, Offsets, total_weights
from tiebreak.life import growth
from tiebreak.life.batches import (
    FittedBatch,
    StreamBatch,
    StreamCounts,
    StreamCrowd,
    count_batch,
    fit_batch,
)
from tiebreak.life.corrections import replace_repeats, start_from_votes
from tiebreak.life.open_tasks import NONE, OpenTasks, codes_in
from tiebreak.life.stream_links import LinkRows, StreamLinks, imply
from tiebreak.links.check import check
from tiebreak.options import ExactLinkOptions
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.estimators.variational_bayes import VariationalBayes

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
        from tiebreak.life import publication

        self.template = model
        self.n_open = n_open
        self.crowd_model: CrowdModel = model._crowd_model
        self.classes: list[Hashable] = list(model.classes_)
        self.class_code = {name: k for k, name in enumerate(self.classes)}
        self.workers: list[Hashable] = list(model.workers_)
        self.worker_code = {name: w for w, name in enumerate(self.workers)}
        self.tasks = OpenTasks(self.crowd_model.workers.n_states)
        self.links = StreamLinks(model)
        self.n_batches = 0
        self.n_seen = 0  # responses of this process
        self._restart_at = 0.0  # responses at which all open tasks start from votes again
        self._oldest = 0  # the slot that is visited again next
        self._is_behind = False  # whether something came since `catch_up`
        n_states = self.crowd_model.workers.n_states
        shape = (len(self.workers), len(self.classes), n_states)
        self.counts = StreamCounts(np.zeros(shape), np.zeros(n_states))
        self.settled = StreamCounts(np.zeros(shape), np.zeros(n_states))
        publication.take_over(self, model)
        self._restart_at = self._next_restart()

    # What comes in

    def add(
        self, task: Sequence[Hashable], worker: Sequence[Hashable], label: Sequence[Hashable]
    ) -> Codes:
        """Take responses, which count from the next `visit` on; return the slots they touch."""
        labels = self._class_codes(label)  # first: other codes are of all classes
        code = self._worker_codes(worker) * np.int32(len(self.classes)) + labels
        slots = self.tasks.slots(task)
        self.tasks.add(slots, code.astype(np.int32))
        self.n_seen += len(code)
        return slots

    def know(self, task: Sequence[Hashable], label: Sequence[Hashable]) -> Codes:
        """Take gold; a task that is known otherwise, or that links contradict, is refused."""
        codes = self._class_codes(label)
        slots = self.tasks.slots(task)
        former = self.tasks.known.now[slots]
        wrong = np.flatnonzero((former != NONE) & (former != codes))
        if len(wrong):
            at = int(wrong[0])
            raise GoldError(
                f"Task {task[at]!r} is known as {self.classes[int(former[at])]!r} already, and "
                f"now as {label[at]!r}."
            )
        self.tasks.known.now[slots] = codes
        try:
            self._check_links(slots)
        except LinkError:
            self.tasks.known.now[slots] = former
            raise
        return slots

    def link(
        self,
        left: Sequence[Hashable],
        right: Sequence[Hashable],
        must: Sequence[bool],
        *,
        weight: Sequence[float] | None = None,
        duplicate: Sequence[bool] | None = None,
        who: Sequence[Hashable] | None = None,
    ) -> Codes:
        """Take links; where one contradicts others, or gold, all of these are refused."""
        one = self.tasks.slots(left)
        other = self.tasks.slots(right)
        n = len(one)
        if (one == other).any():
            raise LinkError(f"Task {left[int((one == other).argmax())]!r} is linked to itself.")
        sources = [-1] * n if who is None else [self.links.source_code(name) for name in who]
        n_changed = self.links.add(
            LinkRows(
                one,
                other,
                np.array(must, dtype=bool),
                np.full(n, np.nan) if weight is None else np.array(weight, dtype=np.float64),
                np.zeros(n, dtype=bool) if duplicate is None else np.array(duplicate, dtype=bool),
                np.array(sources, dtype=np.int32),
            )
        )
        slots = np.unique(np.concatenate([one, other]))
        try:
            self._check_links(slots)
        except LinkError:
            self.links.take_back()
            raise
        if n_changed:
            note(
                f"{counted(n_changed, 'link')} given again with another weight: the last weight "
                "counts."
            )
        return slots

    def _worker_codes(self, worker: Sequence[Hashable]) -> Codes:
        index = self.worker_code
        before = len(index)
        found = codes_in(index, worker)
        if len(index) > before:
            self.workers = list(index)
            growth.add_workers(self, before)
        return found

    def _class_codes(self, label: Sequence[Hashable]) -> Codes:
        index = self.class_code
        before = len(index)
        found = codes_in(index, label)
        if len(index) > before:
            try:
                growth.add_classes(self, list(index))
            except TiebreakError:
                self.class_code = {name: k for k, name in enumerate(self.classes)}
                raise
        return found

    def _check_links(self, slots: Codes) -> None:
        """Refuse links and gold, among what is tied to these slots, that cannot all hold."""
        tied = self.links.tied_to(slots, len(self.tasks))
        links = self.links.among(tied)
        if links is None:
            return
        gold = self._gold(tied)
        implied = imply(links, gold, len(self.classes))
        names = Ids([self.tasks.names[slot] for slot in tied.tolist()])
        check(links, implied, names, classes=Ids(self.classes))

    # Fitting

    def visit(
        self, slots: Codes, stopping: Stopping = VISIT, *, revisit: bool = True
    ) -> list[Label]:
        """Fit the tasks that were touched, then some old ones; return labels that changed."""
        self.n_batches += 1
        n_new = 0
        changed: list[Label] = []
        if len(slots):
            self._is_behind = True
            touched = self.links.tied_to(slots, len(self.tasks))
            self.tasks.touched.now[np.unique(slots)] = self.n_batches
            n_new = int((self.tasks.n_responses_of(touched) - self.counted[touched]).sum())
            changed = self._fit(touched, stopping)
        if revisit and self._restart_at <= self.tasks.n_responses <= LARGEST_RESTART:
            changed += self.restart()
        elif revisit:
            changed += self._revisit(int(REVISITED * n_new), stopping)
        if self.n_open is not None and len(self.tasks) > SLACK * self.n_open:
            self.settle(self.n_open)
        return changed

    def restart(self, stopping: Stopping = RESTART) -> list[Label]:
        """Fit all open tasks together, from their votes; return labels that changed."""
        self._restart_at = self._next_restart()
        start_from_votes(self)
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

    def _next_restart(self) -> float:
        n = self.tasks.n_responses
        return n * (1.0 + min(max(LEAST_GROWTH, (n / SMALL) ** 2), MOST_GROWTH))

    def visit_all(self, stopping: Stopping = VISIT) -> list[Label]:
        """Fit all open tasks together; return labels that changed."""
        return self._fit(np.arange(len(self.tasks), dtype=np.int32), stopping)

    def ask(self, task: Hashable) -> Label | None:
        """Return the label of a task as it is now; None where it is not open."""
        slot = self.tasks.slot_of(task)
        if slot is None:
            return None
        found, fitted = self._fitted(
            self.links.tied_to(np.array([slot], np.int32), len(self.tasks))
        )
        return self._report(found, fitted, np.flatnonzero(found == slot))[0]

    def _fit(self, slots: Codes, stopping: Stopping) -> list[Label]:
        return self.fit_and_report(slots, stopping)[1] if len(slots) else []

    def fit_and_report(self, slots: Codes, stopping: Stopping) -> tuple[FittedBatch, list[Label]]:
        """Fit these tasks; return where that ended, and labels that changed."""
        found, fitted = self._fitted(slots, stopping)
        changed = np.flatnonzero(self.tasks.reported.now[found] != fitted.label)
        return fitted, self._report(found, fitted, changed)

    def _fitted(self, slots: Codes, stopping: Stopping = VISIT) -> tuple[Codes, FittedBatch]:
        """Fit a batch and put what its tasks add now in the place of what they added."""
        batch = self.batch(slots)
        fitted = fit_batch(self.crowd(), batch, stopping)
        at = fitted.workers
        changed = fitted.after.of_workers - fitted.before.of_workers
        self.counts.of_workers[at] = np.maximum(self.counts.of_workers[at] + changed, 0.0)
        self.counts.of_states[:] += fitted.after.of_states - fitted.before.of_states
        self.tasks.q.now[slots] = fitted.q
        self.counted[slots] = np.diff(batch.chains.start)
        return slots, fitted

    def _report(self, slots: Codes, fitted: FittedBatch, places: Codes | Offsets) -> list[Label]:
        label = fitted.label[places]
        self.tasks.reported.now[slots[places]] = label
        chance = fitted.probabilities[places, label]
        rows = zip(slots[places].tolist(), label.tolist(), chance.tolist(), strict=True)
        return [Label(self.tasks.names[s], self.classes[k], p) for s, k, p in rows]

    def crowd(self) -> StreamCrowd:
        """Return workers and classes as they are now."""
        options = self.template.link_options
        decode = options.decode if isinstance(options, ExactLinkOptions) else None
        return StreamCrowd(
            self.crowd_model,
            self.counts,
            self.template.calibration_,
            ExactLinkOptions(decode=decode),
            self.backend,
        )

    @property
    def backend(self) -> Backend:
        """The kernels: compiled ones once so much has come that they repay it."""
        return choose_backend(self.template.backend, self.n_seen)

    @property
    def counted(self) -> Codes:
        """How many responses of each slot are among the counts."""
        return self.tasks.counted.now

    def batch(self, slots: Codes) -> StreamBatch:
        """Return some tasks with all that is known of them; what was said again is settled."""
        chains = replace_repeats(self, slots)
        links = self.links.among(slots)
        gold = self._gold(slots)
        implied = None if links is None else imply(links, gold, len(self.classes))
        evidence = self.tasks.evidence
        return StreamBatch(
            chains,
            self.counted[slots],
            total_weights(chains.start, chains.weight) + self.tasks.n_dropped.now[slots],
            self.tasks.q.now[slots],
            None if evidence is None else evidence.now[slots],
            gold,
            links,
            implied,
        )

    def count(self, batch: StreamBatch) -> StreamCounts:
        """Return what the tasks of a batch add to the counts."""
        return count_batch(batch, len(self.workers), len(self.classes), self.backend)

    def _gold(self, slots: Codes) -> GoldCodes | None:
        label = self.tasks.known.now[slots]
        place = np.flatnonzero(label != NONE)
        return GoldCodes(place.astype(np.int32), label[place]) if len(place) else None

    def _revisit(self, n_responses: int, stopping: Stopping) -> list[Label]:
        """Visit tasks again, in turn, so many responses in all."""
        n_tasks = len(self.tasks)
        if not n_responses or not n_tasks:
            return []
        first = self._oldest % n_tasks
        turn = (first + np.arange(min(n_responses, n_tasks), dtype=np.int64)) % n_tasks
        n_each = np.maximum(self.tasks.n_responses_of(turn), 1)
        chosen = turn[: int(np.searchsorted(np.cumsum(n_each), n_responses)) + 1]
        self._oldest = int(first + len(chosen)) % n_tasks
        return self._fit(self.links.tied_to(chosen.astype(np.int32), n_tasks), stopping)

    def report_all(self) -> list[Label]:
        """Return the labels of all open tasks."""
        slots = np.arange(len(self.tasks), dtype=np.int32)
        if not len(slots):
            return []
        found, fitted = self._fitted(slots)
        return self._report(found, fitted, slots)

    # What a stream that goes on elsewhere needs to know

    def notes(self) -> dict[str, Any]:
        """Return what is not in a model: plain numbers."""
        touched = [] if self.n_open is None else self.tasks.touched.now.tolist()
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
            self.tasks.touched.now[: len(touched)] = touched
            self.tasks.touched.now[len(touched) :] = self.n_batches

    # Settling

    def settle(self, n_open: int) -> None:
        """Keep the tasks that were touched last open; only counts remember the others."""
        by_age = np.argsort(self.tasks.touched.now, kind="stable")
        gone = np.sort(by_age[: max(len(self.tasks) - n_open, 0)]).astype(np.int32)
        if not len(gone):
            return
        kept = np.setdiff1d(np.arange(len(self.tasks), dtype=np.int32), gone)
        batch = self.batch(gone)
        added = self.count(batch)
        self.settled.of_workers[:] += added.of_workers
        self.settled.of_states[:] += added.of_states
        self.links.renumber(self.tasks.keep(kept))
        self._oldest = 0
