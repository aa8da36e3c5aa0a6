"""tiebreak describe: what responses are like before they are fused, or what a model file holds."""

from __future__ import annotations

import json
import math
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.arguments import check_files, split_list
from tiebreak.cli.messages import stages
from tiebreak.cli.tables import (
    GoldFile,
    InputTables,
    ResponsesFiles,
    TasksFile,
    takes_reading_options,
)
from tiebreak.wording import counted, first_few

if TYPE_CHECKING:
    from collections.abc import Callable

    from tiebreak.data import Responses
    from tiebreak.judges import AgreementReport, Alpha, PanelReport

RARE = 0.005  # of all labels: a class below it is near-empty
MAX_SHOWN = 20  # classes, workers and pairs that the text shows; --json has all of them


@takes_reading_options
def describe(
    responses: ResponsesFiles,
    gold: GoldFile = None,
    tasks: TasksFile = None,
    reading: Any = None,
    ordered: Annotated[
        str | None,
        typer.Option(help="Classes from lowest to highest, for ordinal α.", metavar="A,B,…"),
    ] = None,
    resamples: Annotated[
        int, typer.Option(help="For the interval of α; 0: none.", metavar="N", min=0)
    ] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Describe responses before they are fused, or a saved model.

    Of responses: what was read and how, how far workers agree, and what looks odd; with gold, also
    how good the workers are and what errors they share. Of MODEL.tbm: what it holds; its checksums
    are verified.
    """
    if len(responses) == 1 and responses[0].lower().rstrip("/").endswith(".tbm"):
        _describe_model(responses[0], as_json=as_json)
        return
    check_files((responses, gold, tasks), ())
    from tiebreak.data.weighing import plurality

    with stages(quiet=quiet) as tell:
        tell("reading")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            given = reading.read(responses, gold=gold, tasks=tasks)
        crowd = plurality(given.responses)  # a worker that was asked ten times agrees once
        found = look_at(given.responses, crowd)
        found["format"] = given.form
        found["columns"] = given.columns
        found["notes"] = list(dict.fromkeys(str(each.message) for each in caught))
        order = None if ordered is None else split_list(ordered)
        found |= measure(crowd, order, resamples, tell)
        about_panel = _panel(given, tell) if gold is not None else None
    if as_json:
        known = {} if about_panel is None else {"panel": about_panel.to_dict()}
        typer.echo(json.dumps(found | known, ensure_ascii=False))
        return
    typer.echo(as_text(found))
    if about_panel is not None:
        typer.echo(f"\npanel\n{about_panel}")


def _describe_model(path: str, *, as_json: bool) -> None:
    """Print what a model file holds."""
    from tiebreak.life import model_file

    model_file.load(path)  # every checksum, and that all fits together
    found = model_file.about(path)
    typer.echo(json.dumps(found) if as_json else "\n".join(_model_lines(found)))


def _model_lines(found: dict[str, Any]) -> list[str]:
    kept = "responses" if found["keep"] == "responses" else "counts, not all responses"
    lines = [
        f"{found['estimator']}, written by tiebreak {found['tiebreak']} (version "
        f"{found['version']} of model files)",
        f"keeps {kept}; {found['bytes'] / 2**20:,.2f} MiB, all as written",
    ]
    parts = [found["size"]]
    if found["links"]:
        parts.append(counted(found["links"], "link"))
    if found["gold"]:
        parts.append(f"{found['gold']:,} gold")
    lines.append(", ".join(parts))
    if found["responses_counted_only"]:
        lines.append(f"and {found['responses_counted_only']:,.0f} responses as counts")
    shares = zip(found["classes"], found["class_shares"], strict=True)
    classes = [f"{name} {share:.1%}" for name, share in shares]
    lines.append(f"{counted(len(classes), 'class')}: {first_few(classes, MAX_SHOWN)}")
    if found["worker_model"]:
        lines.append(f"worker model: {found['worker_model']}")
    if found["stream"]:
        lines.append(f"a stream has seen events up to {found['stream']['seq']:,}")
    return lines


def _panel(given: InputTables, tell: Callable[[str], None]) -> PanelReport:
    """Fit the responses, and report on the workers by gold."""
    from tiebreak.cli.judging import JUDGES
    from tiebreak.estimators.auto import Auto
    from tiebreak.judges import panel_report

    tell("fitting")
    model = Auto(dependence=JUDGES).fit(given.responses)
    return panel_report(model, given.gold, progress=tell)


def look_at(responses: Responses, once: Responses) -> dict[str, Any]:
    """Count what was read; `once` has one response of each worker to each task."""
    import numpy as np

    from tiebreak.data.ids import variants

    worker, task = responses.worker_of_each(), responses.task_of_each()
    is_vote = np.ones(len(worker), dtype=bool)
    if responses.runs is not None:
        is_vote[1:] = (np.diff(worker) != 0) | (np.diff(task) != 0)
    votes = np.bincount(task[is_vote], minlength=responses.n_tasks)
    n_of_worker = np.bincount(worker[is_vote], minlength=responses.n_workers)
    n_of_class = np.bincount(once.label_of_each(), minlength=once.n_classes)
    names = [str(name) for name in responses.classes]
    by_class = dict(zip(names, n_of_class.tolist(), strict=True))
    rare = [name for name, n in by_class.items() if n < RARE * once.n_responses]
    return {
        "responses": responses.n_given,
        "size": responses.size(),
        "has_runs": responses.runs is not None,
        "tasks": responses.n_tasks,
        "workers": responses.n_workers,
        "classes": by_class,
        "votes_per_task": _spread(votes),
        "tasks_without_votes": int((votes == 0).sum()),
        "responses_per_worker": _spread(n_of_worker),
        "rows_without_label": responses.n_empty,
        "repeated_answers": responses.n_repeats,
        "near_empty_classes": rare,
        "label_variants": [[str(name) for name in group] for group in variants(responses.classes)],
    }


def measure(responses: Responses, order: list[str] | None, n_resamples: int, tell: Any) -> Any:
    """Measure agreement; None where no task has two labels."""
    from tiebreak.judges import agreement_report

    if not (responses.start[1:] - responses.start[:-1] >= 2).any():
        return {"agreement": None, "spam": [], "copies": []}
    found = agreement_report(responses, order=order, n_resamples=n_resamples, watch=tell)
    return {
        "agreement": _coefficients(found),
        "spam": [
            {
                "worker": str(found.workers[each.worker]),
                "responses": each.n_answers,
                "kappa": _number(each.kappa),
                "reason": each.reason,
            }
            for each in found.spam
        ],
        "copies": [
            {
                "workers": [str(found.workers[each.first]), str(found.workers[each.second])],
                "shared": each.n_shared,
                "equal": each.n_equal,
                "reason": each.reason,
            }
            for each in found.copies
        ],
    }


def as_text(found: dict[str, Any]) -> str:
    """Lay out what was found for people."""
    n = found
    lines = [f"{n['size']}, {counted(len(n['classes']), 'class')}"]
    if n["format"]:
        lines.append(f"format: {n['format']}")
    if n["columns"]:
        lines.append("columns: " + ", ".join(f"{r} is {c!r}" for r, c in n["columns"].items()))
    lines.append(f"votes per task: {_spread_text(n['votes_per_task'])}")
    lines.append(f"responses per worker: {_spread_text(n['responses_per_worker'])}")
    for name, words in (
        ("tasks_without_votes", "tasks without a vote"),
        ("rows_without_label", "rows without a label"),
    ):
        if n[name]:
            lines.append(f"{n[name]:,} {words}")
    if n["repeated_answers"] and not n["has_runs"]:
        lines.append(f"{n['repeated_answers']:,} answers repeat a worker on a task")
    once = ", by what each worker says most often of a task" if n["has_runs"] else ""
    lines += [
        "",
        f"classes{once}",
        *_class_lines(n),
        "",
        "agreement",
        *_agreement_lines(n["agreement"]),
    ]
    lines += _suspect_lines(n)
    lines += [f"note: {note}" for note in n["notes"]]
    return "\n".join(lines)


def _class_lines(found: dict[str, Any]) -> list[str]:
    by_count = sorted(found["classes"].items(), key=lambda item: -item[1])
    width = max(len(name) for name, _ in by_count[:MAX_SHOWN])
    total = max(sum(found["classes"].values()), 1)
    lines = [f"  {name:<{width}}  {n:>10,}  {n / total:6.1%}" for name, n in by_count[:MAX_SHOWN]]
    if len(by_count) > MAX_SHOWN:
        lines.append(f"  and {len(by_count) - MAX_SHOWN:,} more")
    if found["near_empty_classes"]:
        rare = first_few(found["near_empty_classes"], MAX_SHOWN)
        lines.append(f"  near-empty (below {RARE:.1%}): {rare}")
    from tiebreak.data.ids import difference

    for group in found["label_variants"][:MAX_SHOWN]:
        joined = ", ".join(map(repr, group))
        lines.append(f"  {difference(group)}: {joined} (--fold-labels)")
    return lines


def _agreement_lines(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return ["  no task has two labels"]
    rows = [("Krippendorff's α", found["alpha"], found["alpha_interval"])]
    if found["alpha_ordinal"] is not None:
        rows.append(("ordinal α", found["alpha_ordinal"], found["alpha_ordinal_interval"]))
    rows += [
        ("Fleiss' κ", found["fleiss_kappa"], None),
        ("Cohen's κ, mean of pairs", found["cohen_kappa"], None),
        ("equal pairs of labels", found["percent"], None),
    ]
    lines = []
    for name, value, interval in rows:
        shown = "unknown" if value is None else f"{value:.4f}"
        between = f"  95 %: {interval[0]:.4f} to {interval[1]:.4f}" if interval else ""
        lines.append(f"  {name:<26}{shown:>8}{between}")
    return lines


def _suspect_lines(found: dict[str, Any]) -> list[str]:
    lines = []
    if found["spam"]:
        lines += ["", "workers that look like spam"]
    for each in found["spam"][:MAX_SHOWN]:
        lines.append(f"  {each['worker']}: {each['reason']} ({each['responses']:,} responses)")
    if found["copies"]:
        lines += ["", "workers that look like copies of each other"]
    for each in found["copies"][:MAX_SHOWN]:
        pair = " and ".join(each["workers"])
        equal = f"{each['equal']:,} of {each['shared']:,} shared tasks equal"
        lines.append(f"  {pair}: {each['reason']} ({equal})")
    return [*lines, ""] if found["notes"] else lines


def _coefficients(found: AgreementReport) -> dict[str, Any]:
    ordinal = found.alpha_ordinal
    return {
        "tasks": found.n_tasks,
        "percent": _number(found.percent),
        "alpha": _number(found.alpha.value),
        "alpha_interval": _interval(found.alpha),
        "alpha_ordinal": None if ordinal is None else _number(ordinal.value),
        "alpha_ordinal_interval": None if ordinal is None else _interval(ordinal),
        "fleiss_kappa": _number(found.fleiss_kappa),
        "cohen_kappa": _number(found.cohen_kappa),
        "pairs": len(found.pairs.first),
    }


def _interval(alpha: Alpha) -> list[float] | None:
    return None if alpha.low is None or alpha.high is None else [alpha.low, alpha.high]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _spread(counts: Any) -> dict[str, float]:
    if not len(counts):
        return {"least": 0, "mean": 0.0, "most": 0}
    return {
        "least": int(counts.min()),
        "mean": round(float(counts.mean()), 4),
        "most": int(counts.max()),
    }


def _spread_text(spread: dict[str, float]) -> str:
    return f"{spread['least']:,} to {spread['most']:,}, mean {spread['mean']:,.2f}"
