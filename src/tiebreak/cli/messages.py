"""What a command says: words and progress on stderr, and the summary of a fit."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tiebreak.options import PROCESSOR
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator

LONG = 2.0  # seconds of work, before its stages are told in a pipe
SURE = 0.9  # labels below this probability are counted


def print_message(words: str) -> None:
    """Write words to stderr; stdout is for data."""
    if sys.stderr is None:  # closed: nobody listens
        return
    sys.stderr.write(f"{words}\n")  # not typer.echo, which writes into the line of a spinner


def is_terminal() -> bool:
    """Say whether somebody may be looking at stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def working(what: str, *, quiet: bool) -> Iterator[None]:
    """Show that something long is going on, on a terminal only."""
    if quiet or not is_terminal():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def stages(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that shows the stage of long work: a spinner on a terminal, else lines.

    In a pipe a stage is told only after LONG seconds, so that short work stays silent.
    """
    if quiet or sys.stderr is None:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield lambda stage: status.update(stage)
    else:
        began = time.monotonic()

        def tell(stage: str) -> None:
            if time.monotonic() - began > LONG:
                print_message(f"{stage} …")

        yield tell


def summarise(method: str, model: Estimator) -> dict[str, Any]:
    """Collect what the summary says, under names that a program can read."""
    crowd = model.responses_
    links = model.links_
    gold = model.gold_
    strength = getattr(model, "link_strength_", None)
    stated = model.labels_.probability
    mixing = {"r_hat": model.r_hat_} if method == "gibbs" else {}
    return {
        "method": method,
        "responses": crowd.n_given,
        "size": crowd.size(),
        "tasks": crowd.n_tasks,
        "workers": crowd.n_workers,
        "classes": crowd.n_classes,
        "gold": 0 if gold is None else len(gold),
        "links": 0 if links is None else len(links),
        "links_broken": None if model.violations_ is None else len(model.violations_),
        "link_strength": strength,
        "links_doubtful": _length(getattr(model, "doubtful_links_", None)),
        "link_components": _as_dict(getattr(model, "link_report_", None)),
        "calibration": None if method == "auto" else _as_dict(model.calibration_),
        "worker_model": getattr(model, "worker_model_", None),
        "members": [each._asdict() for each in getattr(model, "members_", ())],
        "from_vote": _from_vote(model),
        "ran_on": model.ran_on_,
        "sweeps": model.n_iter_,
        "converged": model.converged_,
        "bound": float(model.bounds_[-1]) if len(model.bounds_) else None,
        "labels_below_0.9": 0 if stated is None else int((stated < SURE).sum()),
        **mixing,
    }


def describe(summary: dict[str, Any]) -> str:
    """Put the summary into a few lines."""
    n = summary
    unsure = f"{n['labels_below_0.9']:,} of {counted(n['tasks'], 'label')}"
    lines = [
        _inputs_line(n),
        *_sweeps_lines(n),
        *_links_lines(n),
        f"{unsure} below probability {SURE}",
        *_from_vote_lines(n),
    ]
    return "\n".join(lines)


def _inputs_line(n: dict[str, Any]) -> str:
    parts = [n["size"], counted(n["classes"], "class")]
    if n["links"]:
        parts.append(counted(n["links"], "link"))
    if n["gold"]:
        parts.append(f"{n['gold']:,} gold")
    return ", ".join(parts)


def _sweeps_lines(n: dict[str, Any]) -> Iterator[str]:
    if "r_hat" in n:
        mixed = "chains have mixed" if n["converged"] else "chains have not mixed"
        yield f"{mixed}: R-hat {n['r_hat']:.3f} after {counted(n['sweeps'], 'sweep')}"
    elif n["sweeps"]:
        settled = "settled" if n["converged"] else "not settled"
        place = "" if n["ran_on"] == PROCESSOR else f" on {n['ran_on']}"
        yield f"{settled} after {counted(n['sweeps'], 'sweep')}{place}"


def _links_lines(n: dict[str, Any]) -> Iterator[str]:
    if n["links"]:
        yield f"{n['links_broken']:,} of {counted(n['links'], 'link')} broken"
    if n["links_doubtful"] is not None:
        yield f"{counted(n['links_doubtful'], 'link')} more likely wrong than right"
    if n["link_components"] and n["link_components"]["large"]:
        n_large = counted(n["link_components"]["large"], "component")
        yield f"{n_large} of linked tasks too loopy to be exact: approximate"


def _length(found: Any) -> int | None:
    return None if found is None else len(found)


def _as_dict(found: Any) -> dict[str, Any] | None:
    return None if found is None else found._asdict()


def _from_vote(model: Any) -> dict[str, Any] | None:
    """Return how labels differ from the vote; what to expect of it only with workers enough."""
    found = getattr(model, "from_vote_", None)
    if found is None:
        return None
    from tiebreak.estimators.committee import FEW_WORKERS

    tells = len(model.workers_) > FEW_WORKERS
    return {
        "n_differ": found.n_differ,
        "of": len(model.labels_),
        "expected_right": round(found.expected_right, 1) if tells else None,
    }


def _from_vote_lines(n: dict[str, Any]) -> Iterator[str]:
    if n["from_vote"] is None:
        return
    from tiebreak.estimators.committee import FromVote

    found = n["from_vote"]
    differ = FromVote(found["n_differ"], found["expected_right"] or 0.0)
    yield differ.sentence(found["of"], n["workers"], has_gold=n["gold"] > 0)
