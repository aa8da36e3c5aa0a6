"""The cost of a fit with many classes, before it: confusion matrices have workers × K² cells."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from tiebreak.errors import OptionError, note
from tiebreak.inference.inputs import require_memory, without_memory_check
from tiebreak.responses import Responses

SECONDS_PER_CELL = 3e-8  # of one sweep: 20 workers, 1,000 classes, two cores
SWEEPS = 40  # as many as fits with many classes take; 23 to 50 were seen
LONG = 60.0  # seconds from which it is said
TOO_LONG = 600.0  # and refused


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
