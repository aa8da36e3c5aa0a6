"""Work on a Dask cluster, with places that stay where they are and move when their worker dies.

The driver talks to each worker itself: a task of Dask's would go by the scheduler, which takes 11
to 15 ms where a message and its answer take 2. So a worker that dies breaks off its answer; the
driver gives its places to others and asks once more. Each lost unit is loaded once.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from tiebreak._version import __version__
from tiebreak.errors import ClusterError, TiebreakError
from tiebreak.shards.executor import Result, offer_threads
from tiebreak.wording import counted

POLL_S = 0.25  # between looks at what is done
LOOK_S = 1.0  # between looks at which workers are there: each costs some milliseconds
REACH_S = 4.0  # that a worker is waited for at first; then it is spoken to by the scheduler
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
        self.n_moved = 0  # places, to workers that came later
        self._home: dict[int, str] = {}
        self._seen: set[str] = set()  # workers that are there
        self._is_near: dict[str, bool] = {}  # whether a worker can be reached from here
        self._heard = time.monotonic()
        self._require_tiebreak()

    def each(
        self, task: Callable[..., Result], arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Result]:
        """Call the task for every place on the worker of that place; return by place."""
        if time.monotonic() - self._heard > LOOK_S:
            self._heard = time.monotonic()
            self._look()
        round_ = _Round(task, arguments)
        try:
            self._submit(round_, list(arguments))
            while round_.pending or round_.suspects:
                if not round_.pending:
                    self._submit(round_, [round_.suspects.pop()])
                self._redo(round_, self._collect(round_))
        finally:
            for call in round_.pending:
                call.cancel()
        done = dict(sorted(round_.done.items()))
        for outcome in done.values():
            if isinstance(outcome, Failed):
                raise _worded(outcome.error)
        return done

    def everywhere(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Call a task once on every worker that is there; whoever is gone needs no call."""
        with contextlib.suppress(Exception):
            self.client.run(task, *arguments, on_error="ignore")

    def _submit(self, round_: _Round, places: list[int]) -> None:
        """Send what is asked of some places, in one message for each worker."""
        self._settle(places)
        loop = self.client.loop.asyncio_loop
        calls: dict[str, dict[int, tuple[Any, ...]]] = {}
        for place in places:
            calls.setdefault(self._home[place], {})[place] = round_.arguments[place]
        for home, given in calls.items():
            call = asyncio.run_coroutine_threadsafe(self._call(home, round_.task, given), loop)
            round_.pending[call] = home, list(given)

    async def _call(
        self, home: str, task: Callable[..., Any], given: dict[int, tuple[Any, ...]]
    ) -> dict[int, Any]:
        """Have a worker do some calls; of one that is lost nothing comes back."""
        from distributed.core import clean_exception
        from distributed.protocol.pickle import dumps

        message = {"function": dumps(do_calls), "args": dumps((task, given)), "wait": True}
        try:
            if await self._reaches(home):
                answer = await self.client.rpc(home).run(**message)
            else:
                answer = await self.client.scheduler.proxy(worker=home, msg=message | {"op": "run"})
        except OSError:
            return {}
        except Exception as error:
            is_cut_off = self.client.status != "running"
            return {} if is_cut_off else dict.fromkeys(given, Failed(error))
        if answer["status"] != "OK":  # there was no call: what a task raises is in the result
            _, raised, _ = clean_exception(**answer)
            return dict.fromkeys(given, Failed(raised))
        return dict(answer["result"])

    async def _reaches(self, home: str) -> bool:
        """Say whether a worker answers here; behind a wall it is spoken to by the scheduler."""
        if home not in self._is_near:
            asked = asyncio.ensure_future(self.client.rpc(home).identity())
            await asyncio.wait([asked], timeout=REACH_S)
            self._is_near[home] = asked.done() and asked.exception() is None
            asked.cancel()
        return self._is_near[home]

    def _collect(self, round_: _Round) -> dict[int, str]:
        """Wait a moment; take in what is done. Return the places that wait in vain, and where."""
        lost: dict[int, str] = {}
        for call in wait(round_.pending, timeout=POLL_S).done:
            home, places = round_.pending.pop(call)
            round_.done |= call.result()
            lost |= {place: home for place in places if place not in round_.done}
        until = time.monotonic() + LOOK_S
        while self._seen.intersection(lost.values()) and time.monotonic() < until:
            self._look()  # the scheduler may hear of a death later; else the line is broken
            time.sleep(POLL_S)
        if round_.pending and time.monotonic() - self._heard > LOOK_S:
            self._look()
        gone = [call for call, (home, _) in round_.pending.items() if home not in self._seen]
        for call in gone:
            home, places = round_.pending.pop(call)
            call.cancel()
            lost |= dict.fromkeys(places, home)
        return lost

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
        # A task for the scheduler to see: it does not hear what is said to workers, and one that
        # closes when it has nothing to do would close.
        self.client.submit(int, key=f"tiebreak-is-here-{secrets.token_hex(4)}")
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
            self.n_moved += 1
            load = self._by_load()

    def _by_load(self) -> list[tuple[int, str]]:
        """Return how many places each worker has, and its address, fewest first."""
        count = Counter(self._home.values())
        return sorted((count[address], address) for address in self._seen)

    def _redo(self, round_: _Round, lost: dict[int, str]) -> None:
        """Ask lost places again, of other workers where theirs died.

        Those that were lost twice go one by one, so that it is found who kills.
        """
        for place, home in lost.items():
            round_.losses[place] += 1
            if home in self._seen:
                round_.breaks[place].append(home)
            if round_.losses[place] == MOST_LOSSES:
                raise _lost_too_often(round_, place)
        alone = [place for place in lost if round_.losses[place] == MOST_LOSSES - 1]
        round_.suspects += alone
        self._submit(round_, [place for place in lost if place not in alone])

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

    error: BaseException | None


async def do_calls(
    task: Callable[..., Any], arguments: Mapping[int, tuple[Any, ...]], dask_worker: Any
) -> dict[int, Any]:
    """On a worker: call a task for some places, in its threads; return what came out by place."""
    offer_threads(dask_worker.state.nthreads)
    pool = dask_worker.executors["default"]
    loop = asyncio.get_running_loop()
    try:
        made = [loop.run_in_executor(pool, _outcome, task, given) for given in arguments.values()]
    except RuntimeError:  # its threads are gone: the worker is closing, and as good as lost
        return {}
    return dict(zip(arguments, await asyncio.gather(*made), strict=True))


def _outcome(task: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return what a task returns or raises: one that fails does not end the others."""
    try:
        return task(*arguments)
    except Exception as error:
        return Failed(error)


class _Round:
    """What is asked in one call of `each`, and how far it is."""

    def __init__(self, task: Callable[..., Any], arguments: Mapping[int, tuple[Any, ...]]) -> None:
        self.task = task
        self.arguments = arguments
        self.pending: dict[Future[dict[int, Any]], tuple[str, list[int]]] = {}  # of whom, of what
        self.suspects: list[int] = []  # places that wait, to be asked one by one
        self.done: dict[int, Any] = {}
        self.losses: Counter[int] = Counter()  # calls of a place without an answer
        # Those whose worker did not die: its address, as the line to it is broken.
        self.breaks: defaultdict[int, list[str]] = defaultdict(list)


def _lost_too_often(round_: _Round, place: int) -> ClusterError:
    """Say what was lost at a place again and again: workers, or the lines to them."""
    at = f"at {round_.task.__name__} of {_described(round_.arguments[place])}"
    breaks = round_.breaks[place]
    n_deaths = round_.losses[place] - len(breaks)
    if not breaks:
        return ClusterError(
            f"{counted(n_deaths, 'worker')} died one after the other {at}. Memory is the usual "
            "reason: cut shards smaller (tiebreak shuffle --parts), or give workers more memory; "
            "then go on with --resume."
        )
    died = f"{counted(n_deaths, 'worker')} died, and the" if n_deaths else "The"
    return ClusterError(
        f"{died} connection to {breaks[-1]} broke {counted(len(breaks), 'time')} {at}, though the "
        "scheduler still had that worker. Look at the network between this machine and the "
        "workers; then go on with --resume."
    )


def _worded(error: BaseException | None) -> BaseException:
    """Return an error that a user can do something with."""
    if isinstance(error, TiebreakError | MemoryError):
        return error
    return ClusterError(f"A worker failed: {type(error).__name__}: {error}")


def _described(arguments: tuple[Any, ...]) -> str:
    """Name the partitions that a call is about."""
    if isinstance(arguments[0], int) and len(arguments) > 1:
        return f"partition {arguments[0]} ({getattr(arguments[1], 'path', arguments[1])})"
    return str(arguments[0])
