"""The report of agreement: every coefficient, with the workers that stand out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak import tables
from tiebreak.agreement.coefficients import (
    Alpha,
    count_labels,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from tiebreak.agreement.pairs import CohenKappas, cohen_kappas, shared_rows
from tiebreak.agreement.suspects import Copies, Spam, find_copies, find_spam
from tiebreak.arguments import FUNCTION, SEED, SEVERAL, checks, optional, whole
from tiebreak.errors import InputError, OptionError
from tiebreak.ids import Ids
from tiebreak.responses.weighing import plurality


class AgreementReport(NamedTuple):
    """How far workers agree; codes of workers are places in `workers`."""

    n_tasks: int  # with at least two labels
    percent: float  # how often two labels of a task are equal, 0 to 1
    alpha: Alpha
    alpha_ordinal: Alpha | None  # None where the classes have no known order
    fleiss_kappa: float
    cohen_kappa: float  # mean over pairs of workers, weighted by shared tasks
    pairs: CohenKappas
    spam: list[Spam]
    copies: list[Copies]
    workers: Ids


@checks(order=optional(SEVERAL), n_resamples=whole(0), random_state=SEED, watch=optional(FUNCTION))
def report(
    responses: Any,
    *,
    order: Sequence[Hashable] | None = None,
    n_resamples: int = 1000,
    random_state: int = 0,
    watch: Callable[[str], None] | None = None,
) -> AgreementReport:
    """Measure agreement in all the ways that papers report.

    Parameters
    ----------
    responses
        Responses, or anything that `read_responses` takes.
    order
        Classes from lowest to highest, for ordinal α. Labels that are numbers need none.
    n_resamples
        How often tasks are drawn again for the intervals of α; 0: no intervals.
    watch
        Called with the name of each step, before it.
    """
    tell = watch or (lambda _: None)
    tell("counting labels")
    crowd = plurality(tables.read_responses(responses))
    counts = count_labels(crowd)
    if not counts.n_tasks:
        raise InputError("No task has two labels, so agreement cannot be told.")
    percent = percent_agreement(counts)
    codes = _ordered_codes(crowd.classes, order)
    options: dict[str, Any] = {"n_resamples": n_resamples, "random_state": random_state}
    tell("Krippendorff's α, with its interval")
    nominal = krippendorff_alpha(counts, **options)
    ordinal = None
    if codes is not None:
        tell("ordinal α, with its interval")
        ordinal = krippendorff_alpha(counts, "ordinal", order=codes, **options)
    tell("pairs of workers")
    rows = shared_rows(crowd, random_state=random_state)
    kappas = cohen_kappas(crowd, rows)
    tell("workers that stand out")
    return AgreementReport(
        counts.n_tasks,
        percent,
        nominal,
        ordinal,
        fleiss_kappa(counts),
        kappas.mean(),
        kappas,
        find_spam(crowd),
        find_copies(crowd, kappas, rows, percent),
        crowd.workers,
    )


def _ordered_codes(classes: Ids, order: Sequence[Hashable] | None) -> npt.NDArray[np.int64] | None:
    """Return the codes of classes from lowest to highest, None where they have no order."""
    if order is not None:
        codes = classes.codes(list(order))
        if len(order) != len(classes) or set(codes.tolist()) != set(range(len(classes))):
            raise OptionError(
                f"order must name each class once: {', '.join(map(str, classes))}; got "
                f"{', '.join(map(str, order))}."
            )
        return codes.astype(np.int64)
    try:
        numbers = [float(str(name)) for name in classes]
    except ValueError:
        return None
    return np.argsort(numbers, kind="stable") if len(numbers) > 2 else None
