"""Inputs: responses, links and gold, read, checked, in one set of codes; what their fit takes.

Confusion matrices have workers × K² cells: with many classes that is said, or refused, before.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

import numpy as np

from tiebreak import tables
from tiebreak.data import Responses
from tiebreak.data.gold import Gold, GoldCodes, note_unused_classes
from tiebreak.errors import GoldError, InputError, OptionError, ResponseError, note
from tiebreak.inference.workers import AnswerCounts
from tiebreak.kernels.contract import Backend
from tiebreak.links import Links, OnContradiction
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes
from tiebreak.links.table import Asker
from tiebreak.options import CONTRADICTIONS
from tiebreak.wording import first_few


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
    soft_links: bool = False,
    may_break: bool = False,
    asker: Asker = "fit",
) -> Inputs:
    """Read whatever was handed over, translate it into codes, and check it.

    Soft links imply nothing for sure: they may contradict each other and gold.
    """
    crowd, pairs, known = _read(responses, links, gold)
    if known is not None and not len(known):
        known = None
    if known is not None:
        crowd = _with_gold_classes(crowd, known)
    require_memory(crowd)
    if crowd.n_classes == 1:
        note(
            f"All labels are {crowd.classes[0]!r}, so every task gets it. Are there other classes?"
        )
    gold_codes = None if known is None else known.on(crowd.tasks, crowd.classes)
    if pairs is None or not len(pairs):
        return Inputs(crowd, pairs, known, None, gold_codes, None)
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
    return Inputs(crowd, pairs, known, given_codes, gold_codes, implied)


def _read(responses: Any, links: Any, gold: Any) -> tuple[Responses, Links | None, Gold | None]:
    """Read what is not read yet."""
    if not isinstance(responses, Responses):
        responses = tables.read_responses(responses)
    if not isinstance(gold, Gold | None):
        gold = tables.read_gold(gold)
    if not isinstance(links, Links | None):
        links = tables.read_links(links)
    return responses, links, gold


def _with_gold_classes(responses: Responses, gold: Gold) -> Responses:
    """Add the classes that only gold names; refuse those that cannot be classes of responses."""
    unseen = [name for name in gold.classes if responses.classes.codes([name])[0] < 0]
    if not unseen:
        return responses
    try:
        wider = responses.with_classes(gold.classes)
    except InputError:
        raise _of_another_type(unseen, responses) from None
    if (wider.classes.codes(gold.classes) < 0).any():
        raise _of_another_type(unseen, responses)
    note_unused_classes(unseen, responses.classes)
    return wider


def _of_another_type(unseen: list[Hashable], responses: Responses) -> GoldError:
    labels = list(responses.classes)
    return GoldError(
        f"Gold names {unseen[0]!r} ({type(unseen[0]).__name__}), and the labels of responses are "
        f"{first_few(list(map(repr, labels)), 3)} ({type(labels[0]).__name__}). Write both as one "
        "type, for instance text."
    )


# Of fits with many classes:
SECONDS_PER_CELL = 3e-8  # of one sweep: 20 workers, 1,000 classes, two cores
SWEEPS = 40  # as many as fits with many classes take; 23 to 50 were seen
LONG = 60.0  # seconds from which it is said
TOO_LONG = 600.0  # and refused
TOO_MANY = "Is the label column the right one? Text answers must be grouped into classes first."
_HAS_MEMORY_CHECK: ContextVar[bool] = ContextVar("has_memory_check", default=True)


@contextmanager
def without_memory_check() -> Iterator[None]:
    """Let fits begin that seem too large for this machine: somebody said so (`--force`)."""
    token = _HAS_MEMORY_CHECK.set(False)
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
        raise ResponseError(
            f"{n_classes:,} classes and {responses.n_workers:,} workers need about "
            f"{needed / 2**30:,.0f} GiB for confusion matrices; this machine has "
            f"{limit / 2**30:,.0f} GiB.\n{TOO_MANY} --force tries it all the same."
        )
    if responses.n_workers * n_classes >= 2**31:
        raise ResponseError(
            f"{n_classes:,} classes and {responses.n_workers:,} workers are more than codes of 31 "
            f"bits can name.\n{TOO_MANY}"
        )


def memory_bytes() -> int:
    """Return how much memory this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # pragma: no cover - not on this system
        return 8 << 30


def estimate_seconds(responses: Responses, worker_model: str = "confusion") -> float:
    """Return about how long the sweeps over the cells of confusion matrices take."""
    n_cells = responses.n_workers * responses.n_classes**2
    share = 1.0 if worker_model == "confusion" else 0.25  # one coin: its table is filled, no more
    return n_cells * share * SECONDS_PER_CELL * SWEEPS


def unchecked(*, force: bool) -> AbstractContextManager[None]:
    """Let what is inside begin whatever it costs, if forced; without that change nothing."""
    return without_memory_check() if force else nullcontext()


def note_or_refuse(
    responses: Responses, worker_model: str = "confusion", *, force: bool = False
) -> None:
    """Say that a fit takes minutes; refuse one that takes more than ten unless forced."""
    require_memory(responses)
    seconds = estimate_seconds(responses, worker_model)
    if seconds < LONG:
        return
    minutes = round(seconds / 60.0)
    said = (
        f"{responses.n_workers:,} confusion matrices over {responses.n_classes:,} classes: the fit "
        f"takes about {minutes:,} minute{'s' if minutes > 1 else ''}."
    )
    way_out = (
        "worker_model='coin' learns one accuracy per worker; rare classes can be grouped before. "
        "Is this the label column?"
    )
    if seconds > TOO_LONG and not force:
        raise OptionError(f"{said} {way_out} --force fits all the same.")
    note(f"{said} {way_out}")
