"""Work on shards: on a Dask cluster, or out of core on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tiebreak.cli.options import CommandInputs, check_files
from tiebreak.cli.output import STANDARD, has_safe_csv, is_terminal, say, stages
from tiebreak.errors import ClusterError, MissingExtraError, OptionError
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator
    from tiebreak.shards import DistributedFit, Executor, FitProgress

PAUSE = 10.0  # seconds between lines about progress, in a pipe

Where = tuple[str | None, bool]  # --cluster, --out-of-core


def fuse_shards(
    estimator: Estimator,
    inputs: CommandInputs,
    where: Where,
    unused: Mapping[str, Any],
    *,
    out: str | None,
    beside: tuple[str | None, ...],
    **settings: Any,
) -> DistributedFit:
    """Fit shards; `unused` are the options that such a fit does not have, by their flags."""
    from tiebreak import shards, tables

    folder, how = read_options(inputs, unused, "A fit", out)
    links, gold = inputs.files["links"], inputs.files["gold"]
    check_files((links, gold), beside)
    with stages() as tell, executor_of(where) as executor:
        tell("looking at shards")
        return shards.fit(
            inputs.responses,
            folder,
            estimator=estimator,
            links=None if links is None else tables.read_links(links),
            gold=None if gold is None else tables.read_gold(gold),
            progress=_told_now_and_then(tell),
            executor=executor,
            **how,
            **settings,
        )


def predict_shards(
    model: str,
    inputs: CommandInputs,
    where: Where,
    unused: Mapping[str, Any],
    *,
    out: str | None,
    probabilities: bool,
) -> int:
    from tiebreak import shards
    from tiebreak.life import model_file

    folder, how = read_options(inputs, unused, "A prediction", out)
    with stages("predicting"), executor_of(where) as executor:
        known = model_file.load(model)
        how |= {"probabilities": probabilities, "executor": executor}
        made = shards.predict(known, inputs.responses, folder, **how)
    return int(made.dataset().count_rows())


def read_options(
    inputs: CommandInputs, unused: Mapping[str, Any], what: str, out: str | None
) -> tuple[str, dict[str, Any]]:
    """Return the folder of the labels and how shards are read; refuse other options."""
    reading = {**inputs.reading, "tasks": inputs.files["tasks"]}
    repeats = reading.pop("repeats", None)
    reading.pop("scale", None)  # the estimator has it
    given = [name for name, value in unused.items() if value]
    given += [f"--set {name}" for name, value in reading.items() if value is not None]
    given += ["--safe-csv"] if has_safe_csv() else []
    if given:
        raise OptionError("not-over-shards", what=what, options=", ".join(given))
    if out is None or out == STANDARD:
        raise OptionError("shards-need-folder")
    return out, {"repeats": repeats, "columns": inputs.columns or None}


@contextmanager
def executor_of(where: Where) -> Iterator[Executor | None]:
    """Give what does the work; None: this process."""
    address, out_of_core = where
    if address is None:
        yield None
        return
    if out_of_core:
        raise OptionError("options-exclude", one="--cluster", other="--out-of-core")
    from tiebreak.shards.dask import DaskExecutor

    with connected(address) as client:
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
    with ExitStack() as stack:
        place: Any = address
        if address.partition(":")[0] == "local":
            place = stack.enter_context(_local(distributed, address))
        try:
            client = distributed.Client(place, timeout=10)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError("no-scheduler", address=address, reason=error) from None
        yield stack.enter_context(client)


def _local(distributed: Any, address: str) -> Any:
    from tiebreak.kernels.arrays import default_threads

    _, _, number = address.partition(":")
    if number and not (number.isdigit() and int(number)):
        raise OptionError("processes-not-counted", address=address)
    return distributed.LocalCluster(
        n_workers=int(number) if number else default_threads(),
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,  # mapped files count as memory to Dask, which would kill for them
        silence_logs=50,
    )


def _told_now_and_then(tell: Callable[[str], None]) -> Callable[[FitProgress], None]:
    """Return what tells progress: on a terminal each iteration, in a log every few seconds."""
    last = time.monotonic()

    def told(progress: FitProgress) -> None:
        nonlocal last
        now = time.monotonic()
        if is_terminal():
            tell(describe_progress(progress))
        elif now - last >= PAUSE:
            last = now
            say(describe_progress(progress))

    return told


def describe_progress(progress: FitProgress) -> str:
    parts = [f"iteration {progress.n_sweeps:,}"]
    if progress.bound is not None:
        parts.append(f"bound {progress.bound:,.1f}")
    parts.append(f"{progress.rate:.3g} responses/s")
    if progress.n_lost:
        parts.append(f"{counted(progress.n_lost, 'worker')} lost")
    return ", ".join(parts)
