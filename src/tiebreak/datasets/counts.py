"""Counts: how large a dataset is, so that a wrong copy is noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tiebreak.datasets.catalogue import Info

if TYPE_CHECKING:
    from tiebreak.gold import Gold
    from tiebreak.responses import Responses


class Counts(NamedTuple):
    """The counts that the catalogue has too, under the same names."""

    n_tasks: int
    n_workers: int
    n_classes: int
    n_responses: int
    n_gold: int


def counts_of(responses: Responses, gold: Gold) -> Counts:
    """Count tasks, workers, classes, responses and gold."""
    return Counts(
        n_tasks=responses.n_tasks,
        n_workers=responses.n_workers,
        n_classes=responses.with_classes(gold.classes).n_classes,
        n_responses=responses.n_responses,
        n_gold=len(gold),
    )


def differences(counts: Counts, info: Info) -> str:
    """List the counts that are not as the catalogue says; empty if all are.

    >>> from tiebreak.datasets import info
    >>> differences(Counts(800, 164, 2, 7999, 800), info("rte"))
    '7,999 responses (expected 8,000)'
    """
    return ", ".join(
        f"{found:,} {field.removeprefix('n_')} (expected {getattr(info, field):,})"
        for field, found in counts._asdict().items()
        if found != getattr(info, field)
    )
