"""Work on a Dask cluster: each worker process has its items, and another one when it dies.

The items of a worker are one task of Dask's, which only this worker may do, since it holds what it
has loaded: Dask would let others steal it, and load all of it again. But then Dask waits for a
worker that is gone. So the driver looks who is there; items of the dead are dealt to the others.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tiebreak._version import __version__
from tiebreak.errors import ClusterError, TiebreakError
from tiebreak.shards.executor import Item, Result, offer_threads

POLL_S = 0.25  # between looks while workers are waited for
LOOK_S = 1.0  # between looks at which workers are there: each costs some milliseconds
RETURN_S = 4.0  # that a lost worker is waited for, before its items go to the others
ALONE_S = 30.0  # that any worker at all is waited for
SCHEDULER_S = 15.0  # without a word of the scheduler: it is lost
MOST_LOSSES = 3  # of workers while they worked on one item: that item kills them


class DaskExecutor:
    """Runs tasks on the workers of a Dask cluster: an `Executor`."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.n_lost = 0
        self._home: dict[int, str] = {}  # the worker of each item
        self._seen: set[str] = set()  # workers that are there
        self._heard = time.monotonic()
        self._require_tiebreak()

    def share(self, task: Callable[[list[Item]], Result], items: Sequence[Item]) -> list[Result]:
        """Deal the items to workers, call the task on each deal, return what came out.

        Items that were lost twice go one by one, so that it is found which one kills workers.
        """
        found: list[Result] = []
        losses: Counter[int] = Counter()
        todo = list(range(len(items)))
        alone: list[int] = []
        while todo or alone:
            asked = todo or [alone.pop()]
            made, lost = self._ask(task, items, asked)
            found += made
            losses.update(lost)
            for number in lost:
                if losses[number] == MOST_LOSSES:
                    raise ClusterError("workers-died", n=MOST_LOSSES, item=str(items[number][0]))
            todo = [number for number in lost if losses[number] < MOST_LOSSES - 1]
            alone += [number for number in lost if losses[number] == MOST_LOSSES - 1]
        return found

    def everywhere(self, task: Callable[..., object], *arguments: Any) -> None:
        """Call a task once on every worker that is there; whoever is gone needs no call."""
        with contextlib.suppress(Exception):
            self.client.run(task, *arguments, on_error="ignore")

    def _ask(
        self, task: Callable[[list[Item]], Any], items: Sequence[Item], asked: list[int]
    ) -> tuple[list[Any], list[int]]:
        """Call the task on some items; return what came out, and the items of dead workers."""
        from distributed.protocol.pickle import dumps

        if time.monotonic() - self._heard > LOOK_S:
            self._look()
        self._settle(asked)
        deals: dict[str, list[int]] = {}
        for number in asked:
            deals.setdefault(self._home[number], []).append(number)
        futures = {
            home: self.client.submit(
                do_call,
                dumps((task, [items[number] for number in some])),  # the scheduler need not read it
                home,
                key=f"tiebreak-{secrets.token_hex(8)}",
                workers=[home],
            )
            for home, some in deals.items()
        }
        found = self._gather(futures)
        for _, error in found.values():
            if error is not None:
                raise error
        lost = [number for home, some in deals.items() if home not in found for number in some]
        return [result for result, _ in found.values()], lost

    def _gather(self, futures: dict[str, Any]) -> dict[str, Any]:
        """Return what workers gave, by address; of those that die nothing comes back."""
        pool = ThreadPoolExecutor(1)
        gather = partial(pool.submit, self.client.gather, list(futures.values()), errors="skip")
        try:
            gathered = gather()
            while True:
                try:
                    return dict(gathered.result(timeout=LOOK_S))
                except TimeoutError:
                    self._look()
                except OSError:  # no way to the scheduler: it may be lost
                    self._look()
                    gathered = gather()
                gone = [future for home, future in futures.items() if home not in self._seen]
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
            raise ClusterError("cluster-without-workers", seconds=ALONE_S)

    def _settle(self, asked: list[int]) -> None:
        """Give items without a worker to those that have fewest; a lost one may return.

        Where workers came that have none, some items move there.
        """
        homeless = [number for number in asked if self._home.get(number) not in self._seen]
        if homeless:
            self._wait_for(max(1, len(set(self._home.values()))))
        for number in homeless:
            self._home.pop(number, None)
        for number in homeless:
            self._home[number] = self._by_load()[0][1]
        load = self._by_load()
        while load and load[-1][0] - load[0][0] > 1:
            of_fullest = (number for number, home in self._home.items() if home == load[-1][1])
            self._home[max(of_fullest)] = load[0][1]
            load = self._by_load()

    def _by_load(self) -> list[tuple[int, str]]:
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
            if there != __version__:
                code = "version-differs" if there else "tiebreak-missing"
                raise ClusterError(code, where=where, there=there, here=__version__)

    def _scheduler_lost(self) -> ClusterError:
        address = getattr(self.client.scheduler, "address", None) or "the cluster"
        return ClusterError("scheduler-lost", address=address)


def do_call(message: bytes, home: str) -> tuple[str, tuple[Any, BaseException | None]]:
    """On a worker: call a task; return the worker's address, and what came out and was raised."""
    from distributed import get_worker
    from distributed.protocol.pickle import loads

    offer_threads(get_worker().state.nthreads)
    try:
        task, items = loads(message)
        return home, (task(items), None)
    except (TiebreakError, MemoryError) as error:
        return home, (None, error)
    except Exception as error:  # it may be of a kind that the driver cannot read
        kind = type(error).__name__
        return home, (None, ClusterError("worker-failed", kind=kind, error=str(error)))
