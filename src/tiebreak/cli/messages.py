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
    from tiebreak.inference.estimator import Estimator

LONG = 2.0  # seconds of work, before its stages are told in a pipe
SURE = 0.9  # labels below this probability are counted
MEMBER_TITLES = {
    "vb": "VB",
    "pool": "pool",
    "best worker": "best worker",
    "best+crowd": "best worker and crowd",
    "mv": "votes",
}


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
        "responses": crowd.n_responses,
        "tasks": crowd.n_tasks,
        "workers": crowd.n_workers,
        "classes": crowd.n_classes,
        "gold": 0 if gold is None else len(gold),
        "links": 0 if links is None else len(links),
        "links_broken": None if model.violations_ is None else len(model.violations_),
        "link_strength": strength,
        "links_doubtful": _length(getattr(model, "doubtful_links_", None)),
        "link_components": _as_dict(getattr(model, "link_report_", None)),
        "calibration": _as_dict(model.calibration_),
        "worker_model": getattr(model, "worker_model_", None),
        "models_tried": _tried(getattr(model, "models_tried_", None)),
        "chosen": getattr(model, "chosen_", None),
        "members": members_of(getattr(model, "members_", None)),
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
        *_methods_lines(n),
        *_links_lines(n),
        f"{unsure} below probability {SURE}",
    ]
    return "\n".join(lines)


def _inputs_line(n: dict[str, Any]) -> str:
    parts = [counted(n[f"{noun}s"], noun) for noun in ("response", "task", "worker")]
    parts.append(counted(n["classes"], "class"))
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


def _methods_lines(n: dict[str, Any]) -> Iterator[str]:
    if n["models_tried"]:
        tried = n["models_tried"].items()
        others = [f"{name} {count:,}" for name, count in tried if name != n["worker_model"]]
        found = f"worker model: {n['worker_model']}"
        yield f"{found}; labels that others would change: {', '.join(others)}"
    if n["members"]:
        yield describe_members(n["members"], n["gold"])


def _links_lines(n: dict[str, Any]) -> Iterator[str]:
    if n["links"]:
        yield f"{n['links_broken']:,} of {counted(n['links'], 'link')} broken"
    if n["links_doubtful"] is not None:
        yield f"{counted(n['links_doubtful'], 'link')} more likely wrong than right"
    if n["link_components"] and n["link_components"]["large"]:
        n_large = counted(n["link_components"]["large"], "component")
        yield f"{n_large} of linked tasks too loopy to be exact: approximate"


def _tried(found: Any) -> dict[str, int] | None:
    """Return how many labels each member would change, by the run of it with the best bound."""
    if found is None:
        return None
    best: dict[str, Any] = {}
    for each in found:
        if each.worker_model not in best or each.bound > best[each.worker_model].bound:
            best[each.worker_model] = each
    return {name: each.n_changed for name, each in best.items()}


def _length(found: Any) -> int | None:
    return None if found is None else len(found)


def _as_dict(found: Any) -> dict[str, Any] | None:
    return None if found is None else found._asdict()


def describe_members(members: dict[str, dict[str, Any]], n_gold: int) -> str:
    """Say what each member of --method auto scored on held-out gold, and how much it counts.

    >>> pool = {"accuracy": 0.8, "interval": (0.67, 0.89), "weight": 0.7}
    >>> votes = {"accuracy": 0.76, "interval": (0.63, 0.86), "weight": 0.3}
    >>> describe_members({"mv": votes, "pool": pool}, 50)
    'with 50 gold labels: pool .80 ± .11, votes .76 ± .11; pooled, they count .70, .30'
    """
    parts = []
    weights = []
    for name, each in sorted(members.items(), key=lambda pair: -pair[1]["weight"]):
        title = MEMBER_TITLES.get(name, f"VB with {name}")
        low, high = each["interval"]
        parts.append(f"{title} {_short(each['accuracy'])} ± {_short((high - low) / 2.0)}")
        weights.append(_short(each["weight"]))
    counts = f"pooled, they count {', '.join(weights)}"
    return f"with {counted(n_gold, 'gold label')}: {', '.join(parts)}; {counts}"


def _short(share: float) -> str:
    return f"{share:.2f}".removeprefix("0")


def members_of(found: Any) -> dict[str, dict[str, Any]] | None:
    """Return what each member scored, by its name; None where nothing was compared."""
    if not found:
        return None
    return {
        each.name: {key: value for key, value in each._asdict().items() if key != "name"}
        for each in found
    }
