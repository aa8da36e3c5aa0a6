"""Executors: where the work on partitions is done.

The one seam between a fit and an engine is `each`. `Serial` does one after the other in this
process: partitions are mapped into memory, so that it is the way to fit more than memory holds, and
the oracle of every other executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from tiebreak.arguments import MAPPING, PATH, TEXT, having, optional
from tiebreak.kernels.arrays import default_threads

Result = TypeVar("Result")


class Executor(Protocol):
    """Does a task with each of several arguments."""

    def each(
        self, task: Callable[..., Result], arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Result]:
        """Call `task(*arguments[place])` for every place; return what came out, by place.

        What has the same place is done by the same process, call after call, while that lives:
        it may hold on to what it has loaded. A process may die at any time; its places go on in
        another, which holds nothing.
        """


class Serial:
    """One place after the other, in this process."""

    def each(
        self, task: Callable[..., Result], arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Result]:
        """Call the task for every place, in their order."""
        return {place: task(*arguments[place]) for place in sorted(arguments)}


def each_of(
    executor: Executor, task: Callable[..., Result], arguments: Iterable[tuple[Any, ...]]
) -> list[Result]:
    """Call the task with each of several arguments; return what came out in their order."""
    found = executor.each(task, dict(enumerate(arguments)))
    return [found[place] for place in sorted(found)]


# What public functions over shards take, all of them.
SHARDED = {
    "out": PATH,
    "columns": optional(MAPPING),
    "repeats": optional(TEXT),
    "client": optional(having("scheduler", words="a client of dask")),
    "executor": optional(having("each", words="an Executor")),
}


def executor_of(client: Any) -> Executor:
    """Return what works on the cluster of a client; None: in this process."""
    if client is None:
        return Serial()
    from tiebreak.shards.dask import DaskExecutor

    return DaskExecutor(client)


_OFFERED: list[int] = []


def offer_threads(n_threads: int) -> None:
    """Let kernels in this process use so many threads: an engine knows how many are its own."""
    _OFFERED[:] = [n_threads]


def own_threads() -> int:
    """Return how many threads a kernel may use."""
    return _OFFERED[0] if _OFFERED else default_threads()
