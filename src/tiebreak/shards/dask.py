"""Work on a Dask cluster: each place has a worker, and another one when that dies.

A place is a task of Dask's that only its worker may do, since that holds what it has loaded. Dask
does not know where else it could go, so the driver looks who is there; what was lost is asked again
elsewhere, and loaded once.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from tiebreak._version import __version__
from tiebreak.errors import ClusterError, TiebreakError
from tiebreak.shards.executor import Result, offer_threads
from tiebreak.wording import counted

POLL_S = 0.25  # between looks while workers are waited for
LOOK_S = 1.0  # between looks at which workers are there: each costs some milliseconds
RETURN_S = 4.0  # that a lost worker is waited for, before its places go to the others
ALONE_S = 30.0  # that any worker at all is waited for
SCHEDULER_S = 15.0  # without a word of the scheduler: it is lost
MOST_LOSSES = 3  # of workers while they did one thing: that thing kills them
WAY_ON = "Start the cluster again, and go on with --resume (resume=True)."


class DaskExecutor:
    """Does tasks on the workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.n_lost = 0  # workers, since the beginning
        self._home: dict[int, str] = {}
        self._seen: set[str] = set()  # workers that are there
        self._heard = time.monotonic()
        self._require_tiebreak()

    def each(
        self, task: Callable[..., Result], arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Result]:
        """Call the task for every place on the worker of that place; return by place.

        Places that were lost twice go one by one, so that it is found who kills workers.
        """
        done: dict[int, Any] = {}
        losses: Counter[int] = Counter()
        todo, alone = list(arguments), list[int]()
        while todo or alone:
            asked = todo or [alone.pop()]
            done |= self._ask(task, {place: arguments[place] for place in asked})
            lost = [place for place in asked if place not in done]
            losses.update(lost)
            for place in lost:
                if losses[place] == MOST_LOSSES:
                    raise _lost_too_often(task, arguments[place])
            todo = [place for place in lost if losses[place] < MOST_LOSSES - 1]
            alone += [place for place in lost if losses[place] == MOST_LOSSES - 1]
        for place in sorted(done):
            if isinstance(done[place], Failed):
                raise done[place].error
        return {place: done[place] for place in sorted(done)}

    def everywhere(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Call a task once on every worker that is there; whoever is gone needs no call."""
        with contextlib.suppress(Exception):
            self.client.run(task, *arguments, on_error="ignore")

    def _ask(
        self, task: Callable[..., Any], arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Any]:
        """Call the task for some places; of those whose worker dies nothing comes back."""
        from distributed.protocol.pickle import dumps

        if time.monotonic() - self._heard > LOOK_S:
            self._look()
        self._settle(arguments)
        futures = {
            place: self.client.submit(
                do_call,
                place,
                dumps((task, given)),  # the scheduler need not read it
                key=f"tiebreak-{getattr(task, '__name__', 'task')}-{secrets.token_hex(8)}",
                workers=[self._home[place]],
            )
            for place, given in arguments.items()
        }
        pool = ThreadPoolExecutor(1)
        try:
            found = pool.submit(self.client.gather, list(futures.values()), errors="skip")
            while True:
                with contextlib.suppress(TimeoutError):
                    return dict(found.result(timeout=LOOK_S))
                self._look()
                gone = [f for place, f in futures.items() if self._home[place] not in self._seen]
                self.client.cancel(gone, force=True)
        finally:
            pool.shutdown(wait=False)

    def _look(self) -> None:
        """Ask the scheduler who is there; one that says nothing for long is lost."""
        try:
            if self.client.status != "running":
                raise ConnectionError("the scheduler does not answer")
            info = self.client.sync(self.client.scheduler.identity, callback_timeout=5)
        except (OSError, TimeoutError) as error:
            if time.monotonic() - self._heard > SCHEDULER_S:
                raise self._scheduler_lost() from error
            time.sleep(POLL_S)
            return
        self._heard = time.monotonic()
        self.n_lost += len(self._seen - set(info["workers"]))
        self._seen = set(info["workers"])

    def _wait_for(self, n_workers: int) -> None:
        """Wait for so many workers, but not for long; for any at all longer."""
        began = time.monotonic()
        while len(self._seen) < n_workers:
            if time.monotonic() - began > (RETURN_S if self._seen else ALONE_S):
                break
            time.sleep(POLL_S)
            self._look()
        if not self._seen:
            raise ClusterError(f"The cluster has no worker for {ALONE_S:.0f} s. {WAY_ON}")

    def _settle(self, places: Iterable[int]) -> None:
        """Give places without a worker to those that have fewest; a lost one may return.

        Where workers came that have none, some places move there.
        """
        lost = sorted(place for place in places if self._home.get(place) not in self._seen)
        if lost:
            self._wait_for(max(1, len(set(self._home.values()))))
        for place in lost:
            self._home.pop(place, None)
        for place in lost:
            self._home[place] = self._by_load()[0][1]
        load = self._by_load()
        while load and load[-1][0] - load[0][0] > 1:
            of_fullest = (place for place, home in self._home.items() if home == load[-1][1])
            self._home[max(of_fullest)] = load[0][1]
            load = self._by_load()

    def _by_load(self) -> list[tuple[int, str]]:
        """Return how many places each worker has, and its address, fewest first."""
        count = Counter(self._home.values())
        return sorted((count[address], address) for address in self._seen)

    def _require_tiebreak(self) -> None:
        """Refuse a cluster on which tiebreak is missing somewhere, or of another version."""

        def version() -> str:
            try:
                from tiebreak._version import __version__ as found
            except ImportError:
                return ""
            return str(found)

        self._look()
        self._wait_for(1)
        try:
            found = {f"worker {each}": there for each, there in self.client.run(version).items()}
            found["the scheduler"] = self.client.run_on_scheduler(version)
        except OSError as error:
            raise self._scheduler_lost() from error
        for where, there in sorted(found.items()):
            if not there:
                raise ClusterError(
                    f"tiebreak is not installed on {where}. Install tiebreak[dask] {__version__} "
                    "on the scheduler and on every worker."
                )
            if there != __version__:
                raise ClusterError(
                    f"tiebreak is {there} on {where} and {__version__} here. Install one version "
                    "everywhere."
                )

    def _scheduler_lost(self) -> ClusterError:
        address = getattr(self.client.scheduler, "address", None) or "the cluster"
        return ClusterError(f"The scheduler at {address} is lost. {WAY_ON}")


class Failed(NamedTuple):
    """What a task raised."""

    error: BaseException


def do_call(place: int, message: bytes) -> tuple[int, Any]:
    """On a worker: call a task; return its place, and what it returned or raised."""
    from distributed import get_worker
    from distributed.protocol.pickle import loads

    offer_threads(get_worker().state.nthreads)
    try:
        task, given = loads(message)
        return place, task(*given)
    except (TiebreakError, MemoryError) as error:
        return place, Failed(error)
    except Exception as error:  # it may be of a kind that the driver cannot read
        words = f"A worker failed: {type(error).__name__}: {error}"
        return place, Failed(ClusterError(words))


def _lost_too_often(task: Callable[..., Any], given: tuple[Any, ...]) -> ClusterError:
    what = str(given[0])
    if isinstance(given[0], int) and len(given) > 1:
        what = f"partition {given[0]} ({getattr(given[1], 'path', given[1])})"
    return ClusterError(
        f"{counted(MOST_LOSSES, 'worker')} died one after the other at {task.__name__} of {what}. "
        "Memory is the usual reason: cut shards smaller (tiebreak shuffle --parts), or give "
        "workers more memory; then go on with --resume."
    )
