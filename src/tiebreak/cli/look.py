"""tiebreak describe, evaluate, report: look at responses, at labels, and at what a fit found."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli import options, output
from tiebreak.cli.fuse import choose_by_tables, fit
from tiebreak.cli.options import CommandInputs, Text, as_cli_options, file, require, split_pairs
from tiebreak.cli.output import MAX_SHOWN, STANDARD, print_json, say, shortened, stages, wrote
from tiebreak.errors import note
from tiebreak.wording import counted, first_few

if TYPE_CHECKING:
    from tiebreak.data import Responses
    from tiebreak.data.gold import Gold
    from tiebreak.data.labels import Labels
    from tiebreak.evaluate import Report

RARE = 0.005  # of all labels: a class below it is near-empty
JUDGES = 0.5  # how much the errors of LLM judges are shared, before gold says otherwise


def describe(
    responses: options.Responses,
    gold: options.Gold = None,
    sequences: options.Sequences = None,
    columns: options.Columns = None,
    given: options.Set = None,
    as_json: options.AsJson = False,
) -> None:
    """Describe responses before they are fused, or a saved model.

    Of responses: what was read and how, how far workers agree, and what looks odd; with gold, also
    how good the workers are and what errors they share. Of MODEL.tbm: what it holds; its checksums
    are verified. --set order=low,high gives ordinal agreement.
    """
    if len(responses) == 1 and responses[0].lower().rstrip("/").endswith(".tbm"):
        from tiebreak.life import model_file

        model_file.load(responses[0])  # every checksum, and that all fits together
        about = model_file.about(responses[0])
        if as_json:
            print_json(about)
        else:
            typer.echo("\n".join(model_lines(about)))
        return
    inputs = CommandInputs(responses, columns, given, gold=gold, sequences=sequences)
    measuring = inputs.take_last("order")
    inputs.check()
    from tiebreak.data.runs import plurality

    with stages() as tell:
        tell("reading")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read = inputs.read()
        once = plurality(read.responses)  # a worker that was asked ten times agrees once
        found = count_responses(read.responses, once)
        found["format"] = read.form
        found["columns"] = read.columns
        found["notes"] = list(dict.fromkeys(as_cli_options(each.message) for each in caught))
        found |= measure_agreement(once, tell, measuring)
        if read.sequences is not None:
            tell("agreement on spans")
            found["spans"] = measure_spans(once, read.sequences)
        panel = None
        if gold is not None:
            from tiebreak.estimators.auto import Auto
            from tiebreak.judges import panel_report

            tell("fitting")
            model = Auto(dependence=JUDGES, scale=inputs.scale).fit(read.responses)
            panel = panel_report(model, read.gold, progress=tell)
    if as_json:
        print_json(found if panel is None else found | {"panel": panel.to_dict()})
        return
    lines = describe_lines(found)
    typer.echo("\n".join(lines if panel is None else [*lines, "", "panel", str(panel)]))


def count_responses(responses: Responses, once: Responses) -> dict[str, Any]:
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
        "near_empty_classes": [k for k, n in by_class.items() if n < RARE * once.n_responses],
        **_mean_of_numbers(once),
        "label_variants": [[str(name) for name in group] for group in variants(responses.classes)],
    }


def _mean_of_numbers(responses: Responses) -> dict[str, float]:
    """Return the mean of answers that are many numbers, over tasks, and its standard error."""
    import numpy as np

    from tiebreak.data.ids import as_numbers
    from tiebreak.data.scale import MOST_LEVELS

    values = as_numbers(responses.classes)[0]
    if len(values) <= MOST_LEVELS or not np.isfinite(values).all():
        return {}
    task = responses.task_of_each()
    total = np.bincount(task, minlength=responses.n_tasks)
    summed = np.bincount(task, values[responses.label_of_each()], responses.n_tasks)
    means = summed[total > 0] / total[total > 0]
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else math.nan
    return {"mean": float(means.mean()), "standard_error": float(error)}


def _spread(counts: Any) -> dict[str, float]:
    if not len(counts):
        return {"least": 0, "mean": 0.0, "most": 0}
    mean = round(float(counts.mean()), 4)
    return {"least": int(counts.min()), "mean": mean, "most": int(counts.max())}


def measure_agreement(
    responses: Responses, tell: Callable[[str], None], options: dict[str, Any]
) -> dict[str, Any]:
    """Measure agreement; None where no task has two labels."""
    from tiebreak.data.frames import as_plain
    from tiebreak.judges import agreement_report

    if not (responses.start[1:] - responses.start[:-1] >= 2).any():
        return {"agreement": None, "spam": [], "copies": []}
    found = agreement_report(responses, watch=tell, **options)
    name = [str(worker) for worker in found.workers]
    figures: dict[str, Any] = {
        "tasks": found.n_tasks,
        "percent": found.percent,
        "fleiss_kappa": found.fleiss_kappa,
        "cohen_kappa": found.cohen_kappa,
        "pairs": len(found.pairs.first),
        "share_of_orders": found.share_of_orders,
    }
    by_title = {
        "alpha": found.alpha,
        "alpha_ordinal": found.alpha_ordinal,
        "interval_alpha": found.alpha_interval,
    }
    for title, alpha in by_title.items():
        has_interval = alpha is not None and alpha.low is not None
        figures[title] = alpha and alpha.value
        figures[f"{title}_interval"] = [alpha.low, alpha.high] if alpha and has_interval else None
    spam = [
        {
            "worker": name[each.worker],
            "responses": each.n_answers,
            "kappa": each.kappa,
            "reason": each.reason,
        }
        for each in found.spam
    ]
    copies = [
        {
            "workers": [name[each.first], name[each.second]],
            "shared": each.n_shared,
            "equal": each.n_equal,
            "reason": each.reason,
        }
        for each in found.copies
    ]
    return dict(as_plain({"agreement": figures, "spam": spam, "copies": copies}))


def measure_spans(responses: Responses, sequences: Any) -> dict[str, Any] | None:
    """Measure how far annotators mark the same spans; None where classes are no tags of spans."""
    from tiebreak.data.frames import as_plain
    from tiebreak.data.tags import NONE, Tags
    from tiebreak.judges import span_agreement

    if Tags.of(responses.classes).scheme == NONE:
        return None
    found = span_agreement(responses, sequences)
    workers = [row._asdict() | {"worker": str(row.worker)} for row in found.workers]
    return dict(as_plain(found._asdict() | {"workers": workers}))


def describe_lines(n: dict[str, Any]) -> list[str]:
    lines = [f"{n['size']}, {counted(len(n['classes']), 'class')}"]
    if n["format"]:
        lines.append(f"format: {n['format']}")
    if n["columns"]:
        lines.append("columns: " + ", ".join(f"{r} is {c!r}" for r, c in n["columns"].items()))
    for title in ("votes per task", "responses per worker"):
        spread = n[title.replace(" ", "_")]
        least, most = f"{spread['least']:,}", f"{spread['most']:,}"
        lines.append(f"{title}: {least} to {most}, mean {spread['mean']:,.2f}")
    if "mean" in n:
        lines.append(
            f"mean: {n['mean']:.4g}, standard error {n['standard_error']:.2g} (over tasks)"
        )
    n_repeated = 0 if n["has_runs"] else n["repeated_answers"]
    for count, what in (
        (n["tasks_without_votes"], "tasks without a vote"),
        (n["rows_without_label"], "rows without a label"),
        (n_repeated, "answers repeat a worker on a task"),
    ):
        lines += [f"{count:,} {what}"] if count else []
    once = ", by what each worker says most often of a task" if n["has_runs"] else ""
    lines += ["", f"classes{once}", *_class_lines(n), "", "agreement"]
    lines += ["  no task has two labels"] if n["agreement"] is None else _rows(n["agreement"])
    if n.get("spans") is not None:
        lines += ["", "agreement on spans, F1 of all pairs of annotators", *_span_lines(n["spans"])]
    spam = [f"  {w['worker']}: {w['reason']} ({w['responses']:,} responses)" for w in n["spam"]]
    copies = [
        f"  {' and '.join(pair['workers'])}: {pair['reason']} ({pair['equal']:,} of "
        f"{pair['shared']:,} shared tasks equal)"
        for pair in n["copies"]
    ]
    if spam:
        lines += ["", "workers that look like spam", *shortened(spam)]
    if copies:
        lines += ["", "workers that look like copies of each other", *shortened(copies)]
    if n["notes"]:
        lines += ["", *(f"note: {each}" for each in n["notes"])]
    return lines


def _span_lines(spans: dict[str, Any]) -> list[str]:
    if spans["strict"] is None:
        return ["  no two annotators marked the same sequence"]

    def shown(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.4f}"

    rows = [
        ("", "strict", "relaxed", ""),
        ("all", *map(shown, (spans["strict"], spans["relaxed"])), ""),
    ]
    for each in spans["workers"]:
        figures = map(shown, (each["strict"], each["relaxed"]))
        rows.append((each["worker"], *figures, counted(each["n_spans"], "span")))
    return shortened(output.table(rows))


def _class_lines(n: dict[str, Any]) -> list[str]:
    from tiebreak.data.ids import difference

    total = max(sum(n["classes"].values()), 1)
    by_count = sorted(n["classes"].items(), key=lambda each: -each[1])
    lines = shortened(output.table((k, f"{c:>10,}", f"{c / total:>6.1%}") for k, c in by_count))
    if n["near_empty_classes"]:
        rare = first_few(n["near_empty_classes"], MAX_SHOWN)
        lines.append(f"  near-empty (below {RARE:.1%}): {rare}")
    for group in n["label_variants"][:MAX_SHOWN]:
        joined = ", ".join(map(repr, group))
        lines.append(f"  {difference(group)}: {joined} (--set fold_labels)")
    return lines


def _rows(agreement: dict[str, Any]) -> list[str]:
    titles = {
        "alpha": "Krippendorff's α",
        "alpha_ordinal": "ordinal α",
        "interval_alpha": "interval α",
        "fleiss_kappa": "Fleiss' κ",
        "cohen_kappa": "Cohen's κ, mean of pairs",
        "percent": "equal pairs of labels",
    }
    rows = []
    for name, title in titles.items():
        value, interval = agreement[name], agreement.get(f"{name}_interval")
        if name in ("alpha_ordinal", "interval_alpha") and value is None:
            continue
        shown = "unknown" if value is None else f"{value:.4f}"
        between = "95 %: {:.4f} to {:.4f}".format(*interval) if interval else ""
        rows.append((title, shown, between))
    share = agreement["share_of_orders"]
    if share is not None:
        rows.append(("orders of the classes as good", f"{share:.1%}", ""))
    return output.table(rows)


def model_lines(about: dict[str, Any]) -> list[str]:
    kept = "responses" if about["keep"] == "responses" else "counts, not all responses"
    parts = [about["size"]]
    if about["links"]:
        parts.append(counted(about["links"], "link"))
    if about["gold"]:
        parts.append(f"{about['gold']:,} gold")
    lines = [
        f"{about['estimator']}, written by tiebreak {about['tiebreak']} (version "
        f"{about['version']} of model files)",
        f"keeps {kept}; {about['bytes'] / 2**20:,.2f} MiB, all as written",
        ", ".join(parts),
    ]
    if about["responses_counted_only"]:
        lines.append(f"and {about['responses_counted_only']:,.0f} responses as counts")
    shares = zip(about["classes"], about["class_shares"], strict=True)
    classes = [f"{name} {share:.1%}" for name, share in shares]
    lines.append(f"{counted(len(classes), 'class')}: {first_few(classes, MAX_SHOWN)}")
    if about["worker_model"]:
        lines.append(f"worker model: {about['worker_model']}")
    if about["stream"]:
        lines.append(f"a stream has seen events up to {about['stream']['seq']:,}")
    return lines


def evaluate(
    labels: Annotated[
        str, typer.Argument(metavar="LABELS", help="Table of task, label[, probability].")
    ],
    gold: Annotated[
        str, typer.Argument(metavar="GOLD", help="Table of task, label: known classes.")
    ],
    links: Annotated[Text, file("Count the links that the labels break.")] = None,
    given: Annotated[Text, file("Leave out the gold that fuse was given.")] = None,
    groups: options.Groups = None,
    rule: options.Rule = None,
    constraints: options.Constraints = None,
    scale: options.Scale = None,
    columns: options.Columns = None,
    as_json: options.AsJson = False,
) -> None:
    """Score labels against gold: accuracy, F, calibration, broken links.

    Each figure is computed on the tasks that both tables name.
    """
    options.check_files((labels, gold, links, given, groups, constraints), ())
    rules = options.read_constraints(groups, rule, constraints)
    from tiebreak import tables
    from tiebreak.evaluate import report as score

    readers: dict[str, Any] = {
        "labels": tables.read_labels,
        "gold": tables.read_gold,
        "links": tables.read_links,
        "given": tables.read_gold,
    }
    names = {"labels": labels, "gold": gold, "links": links, "given": given}
    opened = tables.open_tables(names, split_pairs("--columns", columns))
    read: dict[str, Any] = {what: each.read(readers[what]) for what, each in opened.items()}
    note_of_forms(read["labels"], read["gold"])
    figures = score(
        read["labels"],
        read["gold"],
        read.get("links"),
        given=read.get("given"),
        scale=scale,
        constraints=rules,
    )
    if as_json:
        print_json(figures.to_dict())
        return
    typer.echo("\n".join(line.strip() for line in output.table(score_rows(figures))))
    if figures.log_loss is None:
        note("scores-need-probabilities")


def note_of_forms(labels: Labels, gold: Gold) -> None:
    """Say that labels and gold share no class, but would if case and spaces did not count."""
    from tiebreak.data.ids import difference, fold

    said = set(labels.classes)
    known = set(gold.classes)
    forms = {fold(name): name for name in said}
    other = next((name for name in gold.classes if fold(name) in forms), None)
    if said & known or other is None:
        return
    meant = forms[fold(other)]
    note(
        "labels-and-gold-differ",
        labels=first_few(sorted(map(str, said)), 3),
        gold=first_few(sorted(map(str, known)), 3),
        meant=meant,
        other=other,
        difference=difference([meant, other]),
    )


def score_rows(figures: Report) -> list[tuple[str, str]]:
    """Return the figures with their titles; what is not known is left out."""
    rows: list[tuple[str, float | int | None]] = [
        ("tasks scored", figures.n_tasks),
        ("coverage of gold", figures.coverage),
        ("accuracy", figures.accuracy),
        ("micro F", figures.micro_f),
        ("macro F", figures.macro_f),
        *((f"F of {name}", f) for name, f in figures.f_by_class.items()),
        ("log loss", figures.log_loss),
        ("Brier score", figures.brier_score),
        ("calibration error", figures.calibration_error),
        ("mean absolute error", figures.mean_absolute_error),
        ("weighted kappa, quadratic", figures.weighted_kappa),
        ("coverage of 90 % intervals", figures.interval_coverage),
        ("links broken", figures.violated_given),
        ("links broken in the closure", figures.violated_closed),
        ("constraints broken", figures.broken_constraints),
    ]
    return [
        (title, f"{value:,}" if isinstance(value, int) else f"{value:.4f}")
        for title, value in rows
        if value is not None
    ]


def report(
    responses: options.Responses,
    out: Annotated[str, file("Write the page here.", "-o", "--out")] = "report.html",
    json_path: Annotated[Text, file("Write the same numbers as JSON here.", "--json")] = None,
    links: options.Links = None,
    gold: options.Gold = None,
    sequences: options.Sequences = None,
    groups: options.Groups = None,
    rule: options.Rule = None,
    constraints: options.Constraints = None,
    features: options.Features = None,
    truth: Annotated[Text, file("Compare with known classes that the fit is not given.")] = None,
    texts: options.Texts = None,
    by: options.By = None,
    accepts: options.Accepts = None,
    columns: options.Columns = None,
    given: options.Set = None,
    force: options.Force = False,
) -> None:
    """Fuse responses and write a page about the result.

    The page says how far the labels can be used, compares them with voting, and shows workers,
    the tasks to look at with reasons, links and what to ask next. It is one file without scripts
    that needs no network. --set method=vb chooses another method than the committee, --set pairs
    reads verdicts on pairs, as fuse --pairs does, and ranks the items.
    """
    require_both(by, accepts)
    files = {"links": links, "gold": gold, "truth": truth, "texts": texts, "systems": by}
    files |= {"features": features, "groups": groups, "rule": rule, "constraints": constraints}
    files["sequences"] = sequences
    inputs = CommandInputs(responses, columns, given, **files).of_features()
    inputs.are_pairs = pairs = bool(inputs.take("pairs").get("pairs"))
    method, estimator = inputs.estimator(None, on_contradiction="drop")
    from tiebreak.report.write import check_target

    check_target(out, overwrite=force)
    inputs.check(out, json_path, are_tables=False)
    with stages() as tell:
        tell("reading")
        read = inputs.read()
        shown = read.texts if texts else inputs.texts_of_export()
        method, estimator = choose_by_tables(None, method, estimator, read)
        tell("fitting")
        fit(method, estimator, read, force=force, pairs=pairs).report(
            out,
            truth=read.truth,
            texts=shown,
            source=_title(responses),
            systems=read.systems,
            accepts=accepts,
            json_path=json_path,
            overwrite=force,
            watch=tell,
        )
    say(wrote((out, json_path)))


def require_both(by: str | None, accepts: str | None) -> None:
    """Refuse --by without --accepts, and the other way round: self-preference needs both."""
    require("--by", by, "--accepts CLASS, the class that accepts an answer", accepts is not None)
    require("--accepts", accepts is not None, "--by FILE, which says who made each answer", by)


def _title(responses: list[str]) -> str:
    first = "standard input" if responses == [STANDARD] else Path(responses[0]).name
    n_more = len(responses) - 1
    return f"{first} and {counted(n_more, 'other file')}" if n_more else first
