"""Work on partitions: on a cluster, or out of core on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from tiebreak.cli.arguments import Partitions, named_columns
from tiebreak.cli.messages import describe, is_terminal, print_message, stages, summarise
from tiebreak.errors import ClusterError, MissingExtraError, OptionError
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator
    from tiebreak.shards import DistributedFit, Executor, FitProgress

PAUSE = 10.0  # seconds between lines about progress, in a pipe


class FuseWish(NamedTuple):
    """What `fuse` was asked to do with partitions."""

    method: str
    source: list[str]
    out: str
    links: Any
    gold: Any
    columns: str | None
    repeats: Any
    probabilities: bool
    workers: str | None
    doubtful: str | None
    save: str | None
    force: bool
    as_json: bool
    quiet: bool


@contextmanager
def executor_of(chosen: Partitions) -> Iterator[Executor | None]:
    """Give what does the work; None: this process."""
    if chosen.cluster is None:
        yield None
        return
    from tiebreak.shards.dask import DaskExecutor

    with connected(chosen.cluster) as client:
        yield DaskExecutor(client)


@contextmanager
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
    from tiebreak.kernels.arrays import default_threads

    _, _, number = address.partition(":")
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


def fuse_partitions(estimator: Estimator, chosen: Partitions, wish: FuseWish) -> None:
    """Fit partitions and say what came out."""
    from tiebreak import shards, tables

    with stages(quiet=wish.quiet) as tell, executor_of(chosen) as executor:
        tell("looking at shards")
        made = shards.fit(
            wish.source,
            wish.out,
            estimator=estimator,
            links=None if wish.links is None else tables.read_links(wish.links),
            gold=None if wish.gold is None else tables.read_gold(wish.gold),
            resume=chosen.resume,
            force=wish.force,
            probabilities=wish.probabilities,
            columns=named_columns(wish.columns) or None,
            repeats=wish.repeats,
            progress=_told_now_and_then(tell),
            executor=executor,
        )
    _write_tables(made, wish)
    summary = _summarise(made, wish.method)
    if wish.as_json:
        more = {"out": wish.out, "workers_out": wish.workers, "saved": wish.save}
        typer.echo(json.dumps(summary | more))
    if not wish.quiet:
        print_message(describe(summary))
        if made.n_lost:
            print_message(f"{counted(made.n_lost, 'worker')} lost on the way; nothing is missing")
        written = [name for name in (wish.out, wish.workers, wish.doubtful, wish.save) if name]
        print_message(f"wrote {', '.join(written)}")


def _told_now_and_then(tell: Callable[[str], None]) -> Callable[[FitProgress], None]:
    """Return what tells progress: on a terminal each sweep, in a pipe every few seconds."""
    last = -PAUSE

    def told(progress: FitProgress) -> None:
        nonlocal last
        now = time.monotonic()
        if is_terminal() or now - last >= PAUSE:
            last = now
            tell(describe_progress(progress))

    return told


def describe_progress(progress: FitProgress) -> str:
    """Say how far a fit is."""
    parts = [f"sweep {progress.n_sweeps:,}"]
    if progress.bound is not None:
        parts.append(f"bound {progress.bound:,.1f}")
    parts.append(f"{progress.rate:.3g} responses/s")
    if progress.n_lost:
        parts.append(f"{counted(progress.n_lost, 'worker')} lost")
    return ", ".join(parts)


def _write_tables(made: DistributedFit, wish: FuseWish) -> None:
    from tiebreak import tables
    from tiebreak.cli.fuse import doubtful_columns

    if wish.workers:
        tables.write_workers(wish.workers, made.model, counts=made.answers)
    if wish.doubtful:
        tables.write_table(wish.doubtful, doubtful_columns(made.model))
    if wish.save:
        made.save(wish.save)


def _summarise(made: DistributedFit, method: str) -> dict[str, Any]:
    return summarise(method, made.model) | {
        "responses": made.n_responses,
        "tasks": made.n_tasks,
        "labels_below_0.9": made.n_unsure,
        "workers_lost": made.n_lost,
    }


def predict_partitions(
    model: str,
    source: list[str],
    out: str,
    chosen: Partitions,
    probabilities: bool,
    columns: str | None,
    repeats: Any,
) -> int:
    """Label the tasks of shards by a model; return how many there are."""
    from tiebreak import shards
    from tiebreak.life import model_file

    with executor_of(chosen) as executor:
        made = shards.predict(
            model_file.load(model),
            source,
            out,
            probabilities=probabilities,
            columns=named_columns(columns) or None,
            repeats=repeats,
            executor=executor,
        )
    return int(made.dataset().count_rows())
