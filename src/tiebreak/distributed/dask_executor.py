"""Work on a Dask cluster, with places that stay where they are and move when their worker dies.

Tasks are tied to one worker each. Where that worker is gone, the driver gives its places to others
and sends what was asked once more; Dask is not asked to guess. So each lost unit is loaded once.
"""

from __future__ import annotations

import contextlib
import secrets
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import Any, NamedTuple

from tiebreak._version import __version__
from tiebreak.distributed.executor import Result
from tiebreak.errors import ClusterError, MissingExtraError, OptionError, TiebreakError
from tiebreak.wording import counted

POLL_S = 0.25  # between looks at what is done
LOOK_S = 1.0  # between looks at which workers are there: each costs some milliseconds
RETURN_S = 4.0  # that a lost worker is waited for, before its places go to the others
ALONE_S = 30.0  # that any worker at all is waited for
SCHEDULER_S = 15.0  # without a word of the scheduler: it is lost
FETCH_S = 4.0  # that a fetch may take at first
MOST_DEATHS = 3  # of workers while they did one thing: that thing kills them
WAY_ON = "Start the cluster again, and go on with --resume (resume=True)."


class DaskExecutor:
    """Does tasks on the workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.n_lost = 0  # workers, since the beginning
        self.n_moved = 0  # places, to workers that came later
        self._home: dict[int, str] = {}
        self._seen: dict[str, int] = {}  # workers that are there, and how many threads each has
        self._heard = time.monotonic()
        self._spent: list[Any] = []  # futures of results that are here
        self._require_tiebreak()

    def each(
        self, task: Callable[..., Result], arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Result]:
        """Call the task for every place on the worker of that place; return by place."""
        self._settle(arguments)
        round_ = _Round(task, arguments)
        self._submit(round_, list(arguments))
        while round_.pending:
            self._collect(round_)
            lost = [place for place in round_.pending if self._home[place] not in self._seen]
            if lost:
                self._redo(round_, lost)
        if round_.errors:
            raise _worded(round_.errors[min(round_.errors)].error)
        return {place: round_.done[place] for place in sorted(round_.done)}

    def everywhere(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Call a task once on every worker that is there; whoever is gone needs no call."""
        with contextlib.suppress(Exception):
            self.client.run(task, *arguments, on_error="ignore")

    def _submit(self, round_: _Round, places: list[int]) -> None:
        """Send what is asked of some places: one call for each thread of a worker, in one message.

        A client talks to its scheduler every 10 ms at most. So all is submitted where the client
        talks, which waits for the end of it, and what was fetched before is let go of there too:
        a word of its own would make the work wait.
        """
        calls: dict[tuple[str, int], dict[int, tuple[Any, ...]]] = {}
        n_of: Counter[str] = Counter()
        for place in places:
            home = self._home[place]
            calls.setdefault((home, n_of[home] % self._seen.get(home, 1)), {})[place] = (
                round_.arguments[place]
            )
            n_of[home] += 1

        async def submit() -> None:
            self._spent.clear()
            for (home, _), given in calls.items():
                key = f"tiebreak-{round_.task.__name__}-{min(given)}-{secrets.token_hex(4)}"
                future = self.client.submit(
                    Calls(round_.task, given), key=key, workers=[home], pure=False
                )
                round_.pending.update(dict.fromkeys(given, future))

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            self.client.sync(submit)

    def _collect(self, round_: _Round) -> None:
        """Wait a moment; take in what is done, and see which workers are there."""
        pending = round_.pending
        try:
            self.client.sync(_wait_a_moment, _each_once(pending.values()))
        except CancelledError as error:  # by the client, once the scheduler is gone
            raise self._scheduler_lost() from error
        of_status: dict[str, list[Any]] = {"finished": [], "error": []}
        for future in _each_once(pending.values()):
            of_status.setdefault(future.status, []).append(future)
        if of_status["finished"]:
            for done in self._fetch(of_status["finished"], round_):
                for place, result in done.items():
                    self._spent.append(pending.pop(place))
                    kept = round_.errors if isinstance(result, Failed) else round_.done
                    kept[place] = result
        for future in of_status["error"]:  # of Dask itself: what a task raises comes as Failed
            for place in [place for place, each in pending.items() if each is future]:
                round_.errors[place] = Failed(future.exception())
                self._spent.append(pending.pop(place))
        if pending and time.monotonic() - self._heard > LOOK_S:
            self._look()

    def _fetch(self, ready: list[Any], round_: _Round) -> list[dict[int, Any]]:
        """Fetch what is done, or nothing: its worker may have died with it, and a fetch waits on.

        Where the worker is slow and alive, the next try has more time.
        """

        async def fetch() -> Any:
            return await self.client.gather(ready, errors="skip", direct=True, asynchronous=True)

        try:
            return list(self.client.sync(fetch, callback_timeout=round_.patience_s))
        except TimeoutError:
            round_.patience_s *= 2.0
            return []
        except (OSError, CancelledError) as error:
            raise self._scheduler_lost() from error

    def _look(self) -> None:
        """See which workers there are; a scheduler that says nothing for long is lost."""
        try:
            there = self._addresses()
        except (OSError, TimeoutError) as error:
            if time.monotonic() - self._heard > SCHEDULER_S:
                raise self._scheduler_lost() from error
            time.sleep(POLL_S)
            return
        self._heard = time.monotonic()
        self.n_lost += len(self._seen.keys() - there)
        self._seen = there

    def _addresses(self) -> dict[str, int]:
        """Ask the scheduler itself: what the client remembers may be old."""
        if self.client.status not in ("running", "connecting"):
            raise ConnectionError("the client is closed")
        if self.client.status == "connecting":
            raise ConnectionError("the scheduler does not answer")
        info = self.client.sync(self.client.scheduler.identity, callback_timeout=5)
        return {address: int(each["nthreads"]) for address, each in info["workers"].items()}

    def _settle(self, places: Mapping[int, Any]) -> None:
        """Give each place a home; move some where workers came that have none."""
        if not self._seen or time.monotonic() - self._heard > LOOK_S:
            self._heard = time.monotonic()
            self._look()
        if not self._seen:
            self._wait_for_any()
        self._rehome([p for p in places if self._home.get(p) not in self._seen])
        load = self._load()
        while load and max(load.values()) - min(load.values()) > 1:
            fullest = max(sorted(load), key=lambda address: load[address])
            emptiest = min(sorted(load), key=lambda address: load[address])
            self._home[max(p for p, home in self._home.items() if home == fullest)] = emptiest
            self.n_moved += 1
            load = self._load()

    def _rehome(self, lost: list[int]) -> None:
        """Give places to the workers that have fewest, once a lost worker had time to return."""
        if not lost:
            return
        n_before = len(set(self._home.values()))
        until = time.monotonic() + (RETURN_S if self._home else 0.0)
        while len(self._seen) < n_before and time.monotonic() < until:
            time.sleep(POLL_S)
            self._look()
        if not self._seen:
            self._wait_for_any()
        for place in lost:
            self._home.pop(place, None)
        for place in sorted(lost):
            load = self._load()
            self._home[place] = min(sorted(load), key=lambda address: load[address])

    def _load(self) -> dict[str, int]:
        """Return how many places each worker has."""
        count = Counter(self._home.values())
        return {address: count[address] for address in self._seen}

    def _wait_for_any(self) -> None:
        until = time.monotonic() + ALONE_S
        while not self._seen:
            if time.monotonic() > until:
                raise ClusterError(f"The cluster has no worker for {ALONE_S:.0f} s. {WAY_ON}")
            time.sleep(POLL_S)
            self._look()

    def _redo(self, round_: _Round, lost: list[int]) -> None:
        """Give lost places to other workers, and ask again.

        Those that were at work in two deaths go one by one, so that it is found who kills.
        """
        round_.deaths.update(lost)
        self._refuse_deadly(round_, lost)
        for future in _each_once([round_.pending.pop(place) for place in lost]):
            future.cancel()
        self._rehome(lost)
        suspects = [place for place in lost if round_.deaths[place] >= MOST_DEATHS - 1]
        self._submit(round_, [place for place in lost if place not in suspects])
        for n, place in enumerate(suspects):
            self._rehome([place] if self._home[place] not in self._seen else [])
            self._submit(round_, [place])
            while place in round_.pending and self._home[place] in self._seen:
                self._collect(round_)
            if place in round_.pending:  # its worker died: the others wait, and are not to blame
                self._submit(round_, suspects[n + 1 :])
                round_.deaths.subtract(suspects[n + 1 :])
                return

    @staticmethod
    def _refuse_deadly(round_: _Round, lost: list[int]) -> None:
        """Refuse a place at which every worker dies."""
        worst = max(lost, key=lambda place: round_.deaths[place])
        n_deaths = round_.deaths[worst]
        if n_deaths < MOST_DEATHS:
            return
        raise ClusterError(
            f"{counted(n_deaths, 'worker')} died one after the other at {round_.task.__name__} of "
            f"{_described(round_.arguments[worst])}. Memory is the usual reason: cut shards "
            "smaller (tiebreak shuffle --parts), or give workers more memory; then go on with "
            "--resume."
        )

    def _require_tiebreak(self) -> None:
        """Refuse a cluster on which tiebreak is missing somewhere, or of another version."""

        def version() -> str:
            try:
                from tiebreak._version import __version__ as found
            except ImportError:
                return ""
            return str(found)

        with self._saying_what_is_lost():
            self.client.wait_for_workers(1, timeout=ALONE_S)
            found = dict(self.client.run(version))
            found["the scheduler"] = self.client.run_on_scheduler(version)
        for where, there in sorted(found.items()):
            place = where if where == "the scheduler" else f"worker {where}"
            if not there:
                raise ClusterError(
                    f"tiebreak is not installed on {place}. Install tiebreak[dask] {__version__} "
                    "on the scheduler and on every worker."
                )
            if there != __version__:
                raise ClusterError(
                    f"tiebreak is {there} on {place} and {__version__} here. Install one version "
                    "everywhere."
                )

    @contextlib.contextmanager
    def _saying_what_is_lost(self) -> Iterator[None]:
        try:
            yield
        except TiebreakError:
            raise
        except TimeoutError:
            raise ClusterError(f"The cluster has no worker for {ALONE_S:.0f} s. {WAY_ON}") from None
        except (OSError, CancelledError) as error:
            raise self._scheduler_lost() from error

    def _scheduler_lost(self) -> ClusterError:
        address = getattr(self.client.scheduler, "address", None) or "the cluster"
        return ClusterError(f"The scheduler at {address} is lost. {WAY_ON}")


class Failed(NamedTuple):
    """What a task raised."""

    error: BaseException


class Calls:
    """Calls of a task for some places, on their worker; one that fails does not end the others.

    Dask looks through tuples and dictionaries that it is given; into this it does not look.
    """

    def __init__(self, task: Callable[..., Any], arguments: Mapping[int, tuple[Any, ...]]) -> None:
        self.task = task
        self.arguments = arguments

    def __call__(self) -> dict[int, Any]:
        """Return what came out, or what was raised, by place."""
        done: dict[int, Any] = {}
        for place, given in self.arguments.items():
            try:
                done[place] = self.task(*given)
            except Exception as error:
                done[place] = Failed(error)
        return done


async def _wait_a_moment(futures: list[Any]) -> None:
    """Wait for futures, where the client talks.

    A timeout that reached the driver would hold its frames, and all tables in them, in a cycle.
    """
    from distributed import wait

    with contextlib.suppress(TimeoutError):
        await wait(futures, timeout=POLL_S)


def _each_once(futures: Iterable[Any]) -> list[Any]:
    """Return futures without those that are there again, in their order."""
    return list({future.key: future for future in futures}.values())


class _Round:
    """What is asked in one call of `each`, and how far it is."""

    def __init__(self, task: Callable[..., Any], arguments: Mapping[int, tuple[Any, ...]]) -> None:
        self.task = task
        self.arguments = arguments
        self.pending: dict[int, Any] = {}  # futures, by place; some share one
        self.done: dict[int, Any] = {}
        self.errors: dict[int, Failed] = {}
        self.deaths: Counter[int] = Counter()  # of workers, while a place was asked
        self.patience_s = FETCH_S


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give a client of a cluster: tcp://host:8786, tls://…, local or local:4.

    Security is Dask's own: what its settings say of TLS holds for the client as well.
    """
    try:
        import distributed
    except ImportError:
        raise MissingExtraError.needed("distributed", "dask", "A cluster") from None
    if address.partition(":")[0] == "local":
        with _local(distributed, address) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"No scheduler answers at {address} ({error}). Start one with: dask scheduler"
        ) from None
    with client:
        yield client


def _local(distributed: Any, address: str) -> Any:
    _, _, number = address.partition(":")
    from tiebreak.kernels.threads import default_threads

    if number and not (number.isdigit() and int(number)):
        raise OptionError(f"--cluster local:N takes a number of processes; got {address!r}.")
    return distributed.LocalCluster(
        n_workers=int(number) if number else default_threads(),
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,  # mapped files count as memory to Dask, which would kill for them
        silence_logs=50,
    )


def _worded(error: BaseException) -> BaseException:
    """Return an error that a user can do something with."""
    if isinstance(error, TiebreakError | MemoryError):
        return error
    return ClusterError(f"A worker failed: {type(error).__name__}: {error}")


def _described(arguments: tuple[Any, ...]) -> str:
    """Name the partitions that a call is about."""
    recipe = getattr(arguments[0], "recipe", None)
    if recipe is not None:
        return str(recipe)
    if isinstance(arguments[0], int) and len(arguments) > 1:
        return f"partition {arguments[0]} ({getattr(arguments[1], 'path', arguments[1])})"
    return str(getattr(arguments[0], "key", arguments[0]))
