"""Executors: where the work on shards is done.

The seam between a fit and an engine is `share`: items are dealt to processes, each of which works
on its own one after the other. `Serial` is this process. It maps shards from the disk, so that a
fit may be larger than memory, and it is the oracle of every other executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from tiebreak.kernels.arrays import default_threads

Result = TypeVar("Result")
Item = tuple[Any, ...]  # str of its first part names the shard in messages


class Executor(Protocol):
    """Runs tasks on shards."""

    @property
    def n_lost(self) -> int:
        """How many processes died on the way."""

    def share(self, task: Callable[[list[Item]], Result], items: Sequence[Item]) -> list[Result]:
        """Deal the items to processes, call the task on each deal, return what came out.

        An item of the same number goes to the same process, call after call, while that lives, so
        that it may keep what it has loaded. Nothing may depend on that: any process may die, and
        its items then go to others.
        """

    def everywhere(self, task: Callable[..., object], *arguments: Any) -> None:
        """Call a task once in every process."""


class Serial:
    """Does everything in this process, one item after the other."""

    n_lost = 0

    def share(self, task: Callable[[list[Item]], Result], items: Sequence[Item]) -> list[Result]:
        """Call the task on all items."""
        return [task(list(items))]

    def everywhere(self, task: Callable[..., object], *arguments: Any) -> None:
        """Call the task."""
        task(*arguments)


def executor_of(client: Any) -> Executor:
    """Return what works on the cluster of a `distributed.Client`; None: in this process."""
    if client is None:
        return Serial()
    from tiebreak.shards.dask import DaskExecutor

    return DaskExecutor(client)


def each(
    executor: Executor, task: Callable[..., Result], arguments: Iterable[Item]
) -> list[Result]:
    """Call a task with each of several arguments; return the results in their order."""
    items = [(*given, number) for number, given in enumerate(arguments)]
    found: dict[int, Result] = {}
    for some in executor.share(partial(_call_each, task), items):
        found |= some
    return [found[number] for number in range(len(items))]


def _call_each(task: Callable[..., Result], items: list[Item]) -> dict[int, Result]:
    return {number: task(*given) for *given, number in items}


_OFFERED: list[int] = []


def offer_threads(n_threads: int) -> None:
    """Let kernels in this process use so many threads: a cluster knows how many are its own."""
    _OFFERED[:] = [n_threads]


def own_threads() -> int:
    return _OFFERED[0] if _OFFERED else default_threads()
