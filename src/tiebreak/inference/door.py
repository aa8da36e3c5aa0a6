"""The door: responses, links and gold come in, read and checked, in one set of codes and by row.

A row is a task, or stands for all tasks with the same responses. A jury of five judges and three
classes can give 243 patterns of responses, however many tasks it saw; tasks with equal responses
have equal q after every sweep. Example: tasks a, b, c, d with responses (x, y), (x, x), (x, y),
(x, y) are two rows, of which a and b are the first tasks:

    row = [0, 1, 0, 0]    copies = [3, 1]    first = [0, 1]

Confusion matrices have workers × K² cells: with many classes that is said, or refused, before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tiebreak import tables
from tiebreak.data import Responses
from tiebreak.data.gold import Gold, GoldCodes, note_unused_classes
from tiebreak.data.ids import encode
from tiebreak.data.pairs import PairTasks
from tiebreak.data.scale import Scale, ScaleOption, with_scale
from tiebreak.errors import ConstraintError, GoldError, InputError, OptionError, ResponseError, note
from tiebreak.inference.workers import AnswerCounts
from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats, Mask, Offsets
from tiebreak.links import Constraints, Links, OnContradiction
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.links.table import Asker
from tiebreak.options import CONTRADICTIONS
from tiebreak.tables import Features
from tiebreak.tables.table import like
from tiebreak.wording import first_few

if TYPE_CHECKING:
    from tiebreak.inference.sequencing import Placed
    from tiebreak.inference.tasks.coupling.constrain import ConstraintCodes

MOST_NAMED = 100  # tasks in a note


class RemoteTasks(Protocol):
    """Tasks on other machines: without links, and none of them known."""

    @property
    def answers(self) -> AnswerCounts:
        """What all workers said, on tasks here too."""

    def backend(self, name: str, n_responses: int, n_linked: int) -> Backend:
        """Return a backend whose sweeps are of these tasks too, for so many responses here."""


class Inputs(NamedTuple):
    """Responses, links and gold, read and translated into one set of codes."""

    responses: Responses
    links: Links | None
    gold: Gold | None
    given_codes: LinkCodes | None  # every link, as given
    gold_codes: GoldCodes | None
    implied: Implications | None  # what follows from the links to use and from gold
    remote: RemoteTasks | None = None  # beside those of `responses`
    sequences: Placed | None = None
    network: tuple[Codes, Codes] | None = None  # ends of edges between neighbours
    features: Features | None = None  # of every task
    scale: Scale | None = None  # of the classes
    rules: ConstraintCodes | None = None  # constraints, checked
    pairs: PairTasks | None = None  # which two items each task is about

    @property
    def link_codes(self) -> LinkCodes | None:
        """The links to use: checked, contradictions dropped if asked."""
        return None if self.implied is None else self.implied.given


def read_and_check_inputs(
    responses: Any,
    links: Any,
    gold: Any,
    *,
    on_contradiction: OnContradiction = "error",
    features: Any = None,
    soft_links: bool = False,
    may_break: bool = False,
    asker: Asker = "fit",
    scale: ScaleOption = None,
    constraints: Any = None,
) -> Inputs:
    """Read whatever was handed over, translate it into codes, and check it.

    Soft links imply nothing for sure: they may contradict each other and gold.
    """
    if not isinstance(responses, Responses):
        responses = tables.read_responses(responses, scale=scale)
    known = gold if isinstance(gold, Gold | None) else tables.read_gold(gold)
    pairs = links if isinstance(links, Links | None) else tables.read_links(links)
    table = None if constraints is None else tables.read_constraints(constraints)
    crowd: Responses = responses
    if table is not None and len(table):
        crowd = with_constrained_tasks(crowd, table)
    if known is not None and not len(known):
        known = None
    crowd, known, found = with_scale(scale, crowd, known)
    if known is not None:
        crowd = _with_gold_classes(crowd, known)
    if features is not None:
        features = tables.read_features(features)
        crowd = crowd.with_tasks(encode(like(crowd.tasks, features.tasks, "tasks"))[1])
        features.on(crowd.tasks)  # refuses tasks without
    require_memory(crowd)
    if crowd.n_classes == 1:
        note("one-class", label=crowd.classes[0])
    gold_codes = None if known is None else known.on(crowd.tasks, crowd.classes)
    given_codes = implied = None
    if pairs is not None and len(pairs):
        given_codes = pairs.on(crowd.tasks)
        firm = np.zeros(given_codes.n_links, dtype=bool) if soft_links else given_codes.is_hard
        implied = link_graph.imply(given_codes, crowd.n_classes, firm=firm, gold=gold_codes)
        if on_contradiction not in CONTRADICTIONS or not implied.surely_hold():
            from tiebreak.links.check import check

            implied = check(
                implied,
                crowd.tasks,
                classes=crowd.classes,
                links=pairs,
                on_contradiction=on_contradiction,
                may_break=may_break,
                asker=asker,
            )
    more = {"features": features, "scale": found}
    inputs = Inputs(crowd, pairs, known, given_codes, gold_codes, implied, **more)
    return inputs if table is None else inputs._replace(rules=rules_of(inputs, table))


def with_constrained_tasks(crowd: Responses, table: Constraints) -> Responses:
    """Add tasks that only constraints name: they are inferred from these."""
    named = table.used_tasks()
    unknown = np.flatnonzero(crowd.tasks.codes(named) < 0)
    if not len(unknown):
        return crowd
    shown = {"n": len(unknown), "tasks": list(named.take(unknown[:MOST_NAMED]))}
    if len(unknown) == len(named):
        raise ConstraintError("constraints-name-no-task", **shown)
    note("constraints-add-tasks", **shown)
    return crowd.with_tasks(named.take(unknown))


def rules_of(inputs: Inputs, table: Constraints) -> ConstraintCodes | None:
    """Return constraints in the codes of the responses; refuse those that cannot all hold."""
    if not len(table):
        return None
    from tiebreak.inference.tasks.coupling import conflict
    from tiebreak.inference.tasks.coupling.constrain import ConstraintCodes

    crowd = inputs.responses
    literals = table.on(crowd.tasks, crowd.classes, is_ordered=crowd.is_class_ordered)
    implied = inputs.implied if crowd.n_classes > 1 else None
    given = crowd.n_tasks, crowd.n_classes, inputs.gold_codes, implied
    rules = ConstraintCodes(table, literals, *given)
    conflict.check(rules, crowd.tasks, crowd.classes, inputs.links)
    return rules


def _with_gold_classes(responses: Responses, gold: Gold) -> Responses:
    """Add the classes that only gold names; refuse those that cannot be classes of responses."""
    unseen = [name for name in gold.classes if responses.classes.codes([name])[0] < 0]
    if not unseen:
        return responses
    try:
        wider = responses.with_classes(gold.classes)
        is_known = bool((wider.classes.codes(gold.classes) >= 0).all())
    except InputError:
        is_known = False
    if not is_known:
        labels = list(responses.classes)
        raise GoldError(
            "gold-of-another-type",
            gold=unseen[0],
            gold_type=type(unseen[0]).__name__,
            labels=first_few(list(map(repr, labels)), 3),
            label_type=type(labels[0]).__name__,
        )
    note_unused_classes(unseen, responses.classes)
    return wider


# Of fits with many classes:
SECONDS_PER_CELL = 3e-8  # of one sweep: 20 workers, 1,000 classes, two cores
SWEEPS = 40  # as many as fits with many classes take; 23 to 50 were seen
LONG = 60.0  # seconds from which it is said
TOO_LONG = 600.0  # and refused
_HAS_MEMORY_CHECK: ContextVar[bool] = ContextVar("has_memory_check", default=True)


@contextmanager
def unchecked(*, force: bool) -> Iterator[None]:
    """Let fits begin that seem too large for this machine, if somebody said so (`--force`)."""
    token = _HAS_MEMORY_CHECK.set(not force)
    try:
        yield
    finally:
        _HAS_MEMORY_CHECK.reset(token)


def require_memory(responses: Responses) -> None:
    """Refuse more classes than memory can hold confusions for."""
    n_classes = responses.n_classes
    needed = 8 * n_classes * (4 * responses.n_workers * n_classes + 3 * responses.n_tasks)
    limit = memory_bytes()
    if needed > limit and _HAS_MEMORY_CHECK.get():
        sizes = {"needed": needed / 2**30, "limit": limit / 2**30}
        given = {"n_classes": n_classes, "n_workers": responses.n_workers}
        raise ResponseError("too-many-classes", **given, **sizes)
    if responses.n_workers * n_classes >= 2**31:
        raise ResponseError("too-many-codes", n_classes=n_classes, n_workers=responses.n_workers)


def memory_bytes() -> int:
    """Return how much memory this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # pragma: no cover - not on this system
        return 8 << 30


def note_or_refuse(
    responses: Responses, worker_model: str = "confusion", *, force: bool = False
) -> None:
    """Say that a fit takes minutes; refuse one that takes more than ten unless forced."""
    require_memory(responses)
    n_cells = responses.n_workers * responses.n_classes**2
    share = 1.0 if worker_model == "confusion" else 0.25  # one coin: its table is filled, no more
    seconds = n_cells * share * SECONDS_PER_CELL * SWEEPS
    if seconds < LONG:
        return
    sizes = {"n_workers": responses.n_workers, "n_classes": responses.n_classes}
    sizes["minutes"] = round(seconds / 60.0)
    if seconds > TOO_LONG and not force:
        raise OptionError("too-slow-fit", **sizes)
    note("slow-fit", **sizes)


# -- rows ------------------------------------------------------------------------------------------

LEAST_TASKS = 10_000  # below, sweeps take no time
LARGEST_SHARE = 0.25  # of patterns among tasks: a pattern takes two passes where a task takes one
WINDOWS = 16  # of tasks: the sample that says whether to look at all of them
WINDOW = 512  # tasks
SAMPLE_SHARE = 0.5
BLOCK = 1 << 20  # responses at a time: memory stays small beside the responses themselves

Keys = npt.NDArray[np.uint64]


class Rows(NamedTuple):
    """What a fit is of, by row. Where each task is a row of its own, the mapping is None."""

    laid: ByTask
    copies: Floats | None = None  # (n_rows,) how many tasks each stands for
    row: Codes | None = None  # (n_tasks,) the row of each task
    first: Codes | None = None  # (n_rows,) the first task of each row
    gold: GoldCodes | None = None
    implied: Implications | None = None  # each task that has a link has a row of its own

    def to_tasks(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each task the value of its row."""
        return values if self.row is None else values[self.row]

    def to_rows(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each row the value of its first task."""
        return values if self.first is None else values[self.first]

    def mean(self, values: Floats) -> Floats:
        """Return for each row the mean over its tasks."""
        if self.row is None or self.copies is None:
            return values
        sums = np.empty((len(self.copies), values.shape[1]))
        for k, column in enumerate(values.T):
            sums[:, k] = np.bincount(self.row, column, len(self.copies))
        return np.asarray(sums / self.copies[:, None])


def lay_out(responses: Responses) -> ByTask:
    """Cut responses, which are sorted by task, into chunks for the kernels: one row a task."""
    n_classes = responses.n_classes
    role = np.full(responses.n_tasks, FREE, dtype=np.int8)
    n_codes = responses.n_workers * n_classes
    given = responses.start, responses.code, role, n_codes, n_classes
    return layout.lay_out(*given, responses.weight)


def rows_of(inputs: Inputs, start: Floats | None = None, *, alone: bool = False) -> Rows:
    """Return the rows of a fit; tasks with links or a known class have rows of their own.

    `start`, (n_tasks, …), is where q starts, if it is not a function of the responses alone;
    `alone`: every task has a row of its own.
    """
    crowd, gold = inputs.responses, inputs.gold_codes
    implied = inputs.implied if crowd.n_classes > 1 else None
    tasks = lay_out(crowd)
    alone |= tasks.n_tasks < LEAST_TASKS or inputs.rules is not None
    if alone or tasks.weight is not None or inputs.remote is not None:
        return Rows(tasks, gold=gold, implied=implied)
    single = np.zeros(crowd.n_tasks, dtype=bool)
    if inputs.link_codes is not None:
        single[inputs.link_codes.left] = single[inputs.link_codes.right] = True
    if gold is not None:
        single[gold.task] = True
    rows = find_patterns(tasks, crowd.n_classes, single, start)
    if rows.row is None:
        return rows._replace(gold=gold, implied=implied)
    return rows._replace(
        gold=None if gold is None else gold._replace(task=rows.row[gold.task]),
        implied=None if implied is None else implied.renumbered(rows.row),
    )


def find_patterns(tasks: ByTask, n_classes: int, single: Mask, start: Floats | None = None) -> Rows:
    """Find equal response patterns where that pays, decided on a sample first.

    Parameters
    ----------
    tasks
        Responses by task, sorted within each task, without weights.
    single
        (n_tasks,) tasks that keep a row of their own.
    start
        (n_tasks, n_classes) where q starts, if it is not a function of the responses alone. Tasks
        that start apart are not equal, and then nothing is made one.
    """
    whole = Rows(tasks)
    salt = _salt(tasks.n_codes)
    # Windows spread over all tasks are the sample.
    ends = np.linspace(min(WINDOW, tasks.n_tasks), tasks.n_tasks, WINDOWS).astype(np.int64)
    parts = [_keys_between(tasks, salt, max(0, end - WINDOW), end) for end in np.unique(ends)]
    sample = np.concatenate(parts)
    if len(np.unique(sample)) > SAMPLE_SHARE * len(sample):
        return whole
    keys = [_keys_between(tasks, salt, *block) for block in _blocks(tasks.start)]
    representative = _representatives(np.concatenate(keys), single)
    is_own = representative == np.arange(len(representative), dtype=np.int32)
    first = np.flatnonzero(is_own).astype(np.int32)
    if len(first) > LARGEST_SHARE * tasks.n_tasks:
        return whole
    row = (np.cumsum(is_own, dtype=np.int32) - 1)[representative]
    laid = layout.part_of(tasks, first, n_classes)
    found = Rows(laid, np.bincount(row).astype(np.float64), row, first)
    if start is not None and not np.array_equal(found.to_tasks(found.to_rows(start)), start):
        return whole
    return found if _are_equal(tasks, laid, row) else whole


def _salt(n_codes: int) -> Keys:
    """Return one random number per code; a task's key is the sum over its responses."""
    return np.random.default_rng(0).integers(0, 2**64, n_codes, dtype=np.uint64)


def _keys_between(tasks: ByTask, salt: Keys, low: int, high: int) -> Keys:
    """Return the keys of tasks low … high − 1: equal where their responses are."""
    start = tasks.start[low : high + 1]
    sums = np.zeros(start[-1] - start[0] + 1, dtype=np.uint64)
    np.cumsum(salt[tasks.code[start[0] : start[-1]]], out=sums[1:])  # wraps, and so does −
    return np.asarray(np.diff(sums[start - start[0]]), dtype=np.uint64)


def _blocks(start: Offsets) -> Iterator[tuple[int, int]]:
    """Cut tasks into blocks of about as many responses each."""
    cuts = np.searchsorted(start, np.arange(0, start[-1], BLOCK))
    edges = np.unique(np.concatenate([[0], cuts, [len(start) - 1]])).tolist()
    yield from pairwise(edges)


def _representatives(keys: Keys, single: Mask) -> Codes:
    """Return for each task the first one with its key; itself where it stays single."""
    import pyarrow as pa

    representative = np.arange(len(keys), dtype=np.int32)
    others = representative[~single]
    encoded = pa.array(keys[~single]).dictionary_encode()
    code = encoded.indices.to_numpy(zero_copy_only=False)
    first = np.empty(len(encoded.dictionary), dtype=np.int32)
    first[code[::-1]] = others[::-1]  # of several values for one place the last one stays
    representative[~single] = first[code]
    return representative


def _are_equal(tasks: ByTask, few: ByTask, row: Codes) -> bool:
    """Compare each task with its pattern, response by response: equal keys are no proof."""
    length = np.diff(few.start)
    for low, high in _blocks(tasks.start):
        start, pattern = tasks.start[low : high + 1], row[low:high]
        if not np.array_equal(np.diff(start), length[pattern]):
            return False
        offset = np.repeat(few.start[pattern] - start[:-1], length[pattern])
        place = offset + np.arange(start[0], start[-1])
        if not np.array_equal(few.code[place], tasks.code[start[0] : start[-1]]):
            return False
    return True
