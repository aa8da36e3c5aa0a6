"""tiebreak fuse, predict, update, stream: labels from responses, once and as more come in."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tiebreak.cli import options, output
from tiebreak.cli.options import CommandInputs, OptionValues, Text, file, option, require
from tiebreak.cli.output import STANDARD, print_json, print_message, say, stages, wrote
from tiebreak.errors import OptionError
from tiebreak.options import PROCESSOR, MeanFieldOptions, require_count
from tiebreak.wording import agreeing, counted

if TYPE_CHECKING:
    from tiebreak.decide import Decisions
    from tiebreak.estimators.base import Estimator
    from tiebreak.life.events import Service

EXPERT_FIRST = 5  # tasks that are named
SURE = 0.9  # labels below this probability are counted
COSTS = {"median": "absolute", "mean": "squared"}  # of what decides on a scale
USED_BY = {  # methods that can use a file or an option, and what the others say of it
    "links": ("method-without-links", ("auto", "vb", "gibbs")),
    "features": ("method-without-features", ("auto", "vb")),
    "pairs": ("method-without-pairs", ("auto", "vb")),
}


def fuse(
    responses: options.Responses,
    out: options.Out = None,
    links: options.Links = None,
    gold: options.Gold = None,
    sequences: options.Sequences = None,
    spans_out: Annotated[Text, file("With --sequences: write spans here.")] = None,
    features: options.Features = None,
    feature_columns: options.FeatureColumns = None,
    groups: options.Groups = None,
    rule: options.Rule = None,
    constraints: options.Constraints = None,
    method: options.ByMethod = None,
    columns: options.Columns = None,
    scale: options.Scale = None,
    pairs: Annotated[
        bool, options.flag("--pairs", "Responses say which of two items is better: see rank.")
    ] = False,
    given: options.Set = None,
    probabilities: options.Probabilities = False,
    workers: Annotated[Text, file("Write who confuses what here.")] = None,
    worker_summary: Annotated[
        Text, file("Write how good each worker is here, with intervals.")
    ] = None,
    doubtful: Annotated[Text, file("Write links that look wrong here.")] = None,
    cost_matrix: Annotated[Text, file("Decide by costs: truth, one column a decision.")] = None,
    by_scale: Annotated[
        Literal["median", "mean"] | None,
        typer.Option("--decide", help="Decide for this level of the scale, not the likeliest."),
    ] = None,
    save: options.Save = None,
    keep: options.Keep = None,
    cluster: options.Cluster = None,
    out_of_core: options.OutOfCore = False,
    force: options.Force = False,
    as_json: options.JsonSummary = False,
) -> None:
    """Infer one label per task from responses.

    Files are CSV, TSV, Parquet or JSON, or what annotation tools write. Labels come with their
    probability. Labels that the file says are true are used as gold. --set abstain_rate=.1 leaves
    the least certain tenth open; --set resume goes on with an interrupted fit over shards.
    """
    if as_json and out in (None, STANDARD):
        raise OptionError("json-needs-out")
    files = {"links": links, "gold": gold, "sequences": sequences, "features": features}
    files |= {"groups": groups, "rule": rule, "constraints": constraints}
    inputs = CommandInputs(responses, columns, given, scale, **files).of_features(feature_columns)
    inputs.are_pairs = pairs
    require("--decide", by_scale, "--scale", inputs.scale)
    if by_scale and cost_matrix:
        raise OptionError("options-exclude", one="--decide", other="--cost-matrix")
    abstaining = inputs.take("abstain_rate")
    resuming = inputs.take("resume")
    over_shards = cluster is not None or out_of_core
    needs_vb = over_shards or (bool(save) and keep == "counts")
    asked = method
    method, estimator = inputs.estimator(method, needs_vb=needs_vb)
    for name, (code, methods) in USED_BY.items():
        if {**files, "pairs": pairs}[name] and method not in methods:
            raise OptionError(code, method=method)
    if over_shards or method == "gibbs":
        what = "--cluster or --out-of-core" if over_shards else "--method gibbs"
        require("--groups or --constraints", inputs.has_constraints, f"no {what}", False)
    require("--spans-out", spans_out, "labels of one machine", not over_shards)
    is_exact = method != "gibbs" and not isinstance(estimator.link_options, MeanFieldOptions)
    require("--doubtful", doubtful, "--links, inferred exactly", links and is_exact)
    if worker_summary and method == "mv":
        raise OptionError("method-without-workers")
    options.check_model_name(save)
    decided: list[str] = []
    if over_shards:
        from tiebreak.cli.cluster import fuse_shards

        unused = {"--worker-summary": worker_summary, "--cost-matrix": cost_matrix, "--keep": keep}
        unused |= {"--sequences": sequences, "--features": features}
        unused |= {"--decide": by_scale, "--pairs": "yes" if pairs else None}
        made = fuse_shards(
            estimator,
            inputs,
            (cluster, out_of_core),
            {**unused, **abstaining},
            out=out,
            beside=(workers, doubtful),
            force=force,
            probabilities=probabilities,
            **resuming,
        )
        model, counts = made.model, made.answers
        summary = summarise(method, model) | {
            "responses": made.n_responses,
            "tasks": made.n_tasks,
            "labels_below_0.9": made.n_unsure,
            "workers_lost": made.n_lost,
        }
    else:
        require("--set resume", resuming, "--cluster or --out-of-core", False)
        out = out or STANDARD
        inputs.check(out, workers, worker_summary, doubtful, spans_out, also=(cost_matrix,))
        with stages("reading and fitting"):
            found = inputs.read()
            method, estimator = choose_by_tables(asked, method, estimator, found)
            has_options = estimator.get_params().get("sequence_options") is not None
            for name, is_given in (("--spans-out", spans_out), ("sequence_…", has_options)):
                require(name, is_given, "--sequences", found.sequences is not None)
            model = fit(method, estimator, found, force=force, pairs=pairs)
            decisions: Decisions | None = None
            costs = COSTS[by_scale] if by_scale else cost_matrix
            if costs or abstaining:
                decisions = model.decide(costs, **abstaining)
        counts = None
        write_labels(out, model, decisions, probabilities=probabilities)
        summary = summarise(method, model)
        if decisions is not None:
            summary["decisions"] = summarise_decisions(decisions)
            decided = describe_decisions(decisions)
    write_beside(model, workers, worker_summary, doubtful, counts)
    if spans_out:
        model.spans_.write(spans_out)
    if save:
        model.save(save, keep=keep or "responses")
    if as_json:
        print_json(summary | {"out": out, "workers_out": workers, "saved": save})
    say("\n".join([*describe_summary(summary), *decided]))
    say(wrote((out, workers, worker_summary, doubtful, spans_out, save)) or "labels are on stdout")


def choose_by_tables(
    asked: options.Method | None, method: options.Method, estimator: Estimator, found: Any
) -> tuple[options.Method, Estimator]:
    """Return the method; where nobody asked for one, vb for tasks in sequences or a network.

    What a file holds is known when it is read: an export may turn out to have spans.
    """
    import tiebreak as tb

    is_network = found.links is not None and found.links.near
    if method == "vb" or not (is_network or found.sequences is not None):
        return method, estimator
    if asked is not None or method != "auto":
        what = "--links that say near" if is_network else "--sequences"
        raise OptionError("method-without-sequences", method=method, what=what)
    made = tb.VariationalBayes()
    known, defaults = made.get_params().keys(), type(estimator)().get_params()
    chosen = {k: v for k, v in estimator.get_params().items() if v != defaults[k]}
    for name in chosen.keys() - known:
        require(f"--set {name}", True, "tasks without sequences", False)
    return "vb", made.set_params(**chosen)


def fit(
    method: options.Method, estimator: Estimator, inputs: Any, *, force: bool, pairs: bool = False
) -> Estimator:
    """Fit an estimator to tables that were read, unless that would take too long."""
    from tiebreak.inference import door as checks

    if method == "gibbs" and output.is_terminal() and not output.is_quiet():
        estimator.set_params(progress=True)
    with checks.unchecked(force=force):
        if method != "mv" and not pairs:
            worker_model = estimator.get_params().get("worker_model") or "confusion"
            checks.note_or_refuse(inputs.responses, worker_model, force=force)
        given = {"links": inputs.links, "gold": inputs.gold, "constraints": inputs.constraints}
        more = {"sequences": inputs.sequences, "features": inputs.features, "pairs": pairs or None}
        more = {name: each for name, each in more.items() if each is not None}
        return estimator.fit(inputs.responses, **given, **more)


def write_labels(
    out: str, model: Estimator, decisions: Decisions | None, *, probabilities: bool
) -> None:
    """Write labels with the vote beside them and, where costs decide, the decisions.

    On a scale the mean answer stands there, too.
    """
    from tiebreak import tables
    from tiebreak.estimators.committee import vote_of_each

    columns = model.labels_.columns(probabilities=probabilities)
    columns["label"] = tables.names_of_codes(model.classes_, model.labels_.label)
    if decisions is not None:
        columns |= decisions.columns()
    columns["vote"] = tables.names_of_codes(model.classes_, vote_of_each(model.responses_))
    if model.scale_ is not None:
        import pyarrow as pa

        columns["mean"] = pa.array(model.scale_.mean_answers(model.responses_), from_pandas=True)
    if model.pairs_ is not None:
        at = model.pairs_.tasks.codes(model.tasks_)
        columns |= {"model_a": model.pairs_.items.take(model.pairs_.first[at])}
        columns |= {"model_b": model.pairs_.items.take(model.pairs_.second[at])}
    tables.write_table(out, columns)


def write_beside(
    model: Any, workers: str | None, worker_summary: str | None, doubtful: str | None, counts: Any
) -> None:
    from tiebreak import tables

    if worker_summary:
        tables.write_table(worker_summary, model.workers_table().columns())
    if workers:
        tables.write_workers(workers, model, counts=counts)
    if doubtful:
        found = model.doubtful_links_
        columns: dict[str, Any] = {"left": [], "right": [], "link": [], "wrong": []}
        if found is not None:
            columns = {**found.links.columns(), "wrong": found.probability}
        tables.write_table(doubtful, columns)


def summarise(method: str, model: Any) -> dict[str, Any]:
    """Collect what the summary says, under names that a program can read."""
    from tiebreak.estimators.committee import FEW_WORKERS

    crowd, pairs = model.responses_, model.pairs_
    if pairs is not None:
        crowd = pairs.by_judge(crowd)
    stated = model.labels_.probability
    report, vote, spans = (
        getattr(model, name, None) for name in ("link_report_", "from_vote_", "spans_")
    )
    calibration = None if method == "auto" else model.calibration_
    rules, gain = model.constraint_report_, model.classifier_gain_
    n_broken = 0 if model.violations_ is None else len(model.violations_)
    found = {
        "method": method,
        "responses": crowd.n_given,
        "size": crowd.size(),
        "tasks": crowd.n_tasks,
        "workers": crowd.n_workers,
        "classes": crowd.n_classes,
        "gold": len(model.gold_ or ()),
        "links": len(model.links_ or ()),
        "links_broken": None,
        "constraints": None,
        "link_strength": getattr(model, "link_strength_", None),
        "links_doubtful": None if model.doubtful_links_ is None else len(model.doubtful_links_),
        "link_components": report and report._asdict(),
        "calibration": calibration and calibration._asdict(),
        "worker_model": getattr(model, "worker_model_", None),
        "features": gain and {"weight": model.classifier_weight_, **gain._asdict()},
        "members": [each._asdict() for each in getattr(model, "members_", ())],
        "from_vote": None,
        "ran_on": model.ran_on_,
        "sweeps": model.n_iter_,
        "converged": model.converged_,
        "bound": float(model.bounds_[-1]) if len(model.bounds_) else None,
        "labels_below_0.9": 0 if stated is None else int((stated < SURE).sum()),
    }
    if rules is not None:
        n_broken -= rules.n_broken
        found["constraints"] = {**rules._asdict(), "n": len(model.constraints_ or ())}
    if model.links_ is not None:
        found["links_broken"] = n_broken
    if vote is not None:  # what to expect of it is told only with workers enough
        tells = len(model.workers_) > FEW_WORKERS
        right = round(vote.expected_right, 1) if tells else None
        found["from_vote"] = {"n_differ": vote.n_differ, "of": len(model.labels_)}
        found["from_vote"]["expected_right"] = right
    if spans is not None:
        found |= {"sequences": len(spans.sequences), "spans": len(spans)}
        found["sequence_model"] = model.sequence_model_
        found["sequence_choice"] = [each._asdict() for each in model.sequence_choice_]
    if pairs is not None and model.strengths_ is not None:
        found["strongest"] = pairs.items[int(model.strengths_.argmax())]
    if model.scale_ is not None and crowd.n_tasks:
        found["scale"] = summarise_scale(model)
    if method == "gibbs":
        found["r_hat"] = model.r_hat_
    return found


def say_features(weight: float, nats: float, standard_errors: float) -> str:
    """Say what features gain.

    >>> say_features(0.7, 0.618, 19.3).partition("(")[2]
    '19 standard errors): weight 0.70'
    """
    better = "better" if nats >= 0.0 else "worse"
    said = f"features predict the responses {abs(nats):.2f} nats a task {better} than class shares"
    how = f"weight {weight:.2f}" if weight else "dropped"
    return f"{said} ({standard_errors:.0f} standard errors): {how}"


def summarise_scale(model: Any) -> dict[str, Any]:
    """Return the scale, and how many labels differ from the rounded mean of the answers."""
    import numpy as np

    scale = model.scale_
    mean = scale.mean_answers(model.responses_)
    answered = np.isfinite(mean)
    differs = scale.codes(mean[answered], is_binned=True) != model.labels_.label[answered]
    return {
        "levels": list(scale.levels),
        "declared": scale.declared,
        "share_of_orders": scale.share_of_orders,
        "n_differ_from_mean": int(differs.sum()),
    }


def summarise_decisions(decisions: Decisions) -> dict[str, Any]:
    accuracy = decisions.estimate_accuracy()
    n_decided = len(decisions) - decisions.n_left_open
    figures: dict[str, Any] = {
        "promised_accuracy": accuracy.promised,
        "expected_accuracy": accuracy.expected,
        "accuracy_low": accuracy.low,
        "accuracy_high": accuracy.high,
        "known_tasks_counted": accuracy.n_known,
    }
    return {
        "expected_cost": decisions.total_cost,
        "expected_cost_of_labels": decisions.argmax_cost,
        "left_open": decisions.n_left_open,
        **{name: value if n_decided else None for name, value in figures.items()},
    }


def describe_decisions(decisions: Decisions) -> list[str]:
    """Say what decisions cost, how many should be right, and which an expert should see."""
    lines = [f"decisions: {decisions}"]
    accuracy = decisions.estimate_accuracy()
    n_decided = len(decisions) - decisions.n_left_open
    if n_decided:
        is_at_its_word = decisions.stated.calibration is None and not accuracy.n_known
        condition = ", if its probabilities are right" if is_at_its_word else ""
        line = (
            f"promised{condition}: {accuracy.promised:.1%} or more of the "
            f"{counted(n_decided, 'label')} decided are right, by four chances in five "
            f"(expected {accuracy.expected:.1%}; {accuracy.level:.0%} interval {accuracy.low:.1%} "
            f"to {accuracy.high:.1%})"
        )
        if accuracy.n_known:
            line += f", as {counted(accuracy.n_known, 'known task')} say"
        elif accuracy.low < 1.0:  # not all that were decided are known
            line += "; known labels (--gold) say it more closely"
        lines.append(line)
    first = decisions.expert_first(EXPERT_FIRST)
    return [*lines, f"an expert should see first: {', '.join(map(str, first))}"] if first else lines


def describe_summary(n: dict[str, Any]) -> list[str]:
    parts = [n["size"], counted(n["classes"], "class")]
    if n["links"]:
        parts.append(counted(n["links"], "link"))
    if n["gold"]:
        parts.append(f"{n['gold']:,} gold")
    lines = [", ".join(parts)]
    if "spans" in n:
        found = counted(n["spans"], "span")
        where = counted(n["sequences"], "sequence")
        lines.append(f"{found} in {where}, by variational Bayes: {n['sequence_model']}")
    iterations = counted(n["sweeps"], "iteration")
    if "r_hat" in n:
        mixed = "chains have mixed" if n["converged"] else "chains have not mixed"
        lines.append(f"{mixed}: R-hat {n['r_hat']:.3f} in {iterations}")
    elif n["sweeps"]:
        place = "" if n["ran_on"] == PROCESSOR else f" on {n['ran_on']}"
        lines.append(f"{'converged' if n['converged'] else 'not converged'} in {iterations}{place}")
    if n["links"]:
        lines.append(f"{n['links_broken']:,} of {counted(n['links'], 'link')} broken")
    if n["constraints"]:
        rules = n["constraints"]
        lines.append(
            f"{rules['n_broken']:,} of {counted(rules['n'], 'constraint')} broken; labels without "
            f"them break {rules['n_broken_before']:,}; {counted(rules['n_moved'], 'label')} moved"
        )
        if rules["evidence"] is not None:
            lines.append(f"evidence for the constraints: {rules['evidence']:+,.1f} nats")
    if n["links_doubtful"] is not None:
        lines.append(f"{counted(n['links_doubtful'], 'link')} more likely wrong than right")
    if n["link_components"] and n["link_components"]["large"]:
        n_large = counted(n["link_components"]["large"], "component")
        lines.append(f"{n_large} of linked tasks too loopy to be exact: approximate")
    if "strongest" in n:
        lines.append(f"prior: a ranking of the items, {n['strongest']} first")
    if n["features"] is not None:
        lines.append(say_features(**n["features"]))
    lines.append(
        f"{n['labels_below_0.9']:,} of {counted(n['tasks'], 'label')} below probability {SURE}"
    )
    if n["from_vote"] is not None:
        from tiebreak.estimators.committee import FromVote

        found = n["from_vote"]
        differ = FromVote(found["n_differ"], found["expected_right"] or 0.0)
        lines.append(differ.sentence(found["of"], n["workers"], has_gold=n["gold"] > 0))
    if "scale" in n:
        n_differ, n_labels = n["scale"]["n_differ_from_mean"], counted(n["tasks"], "label")
        verb = agreeing(n_differ, "differ")
        lines.append(f"{n_differ:,} of {n_labels} {verb} from the rounded mean of the answers.")
    if n.get("workers_lost"):
        lines.append(f"{counted(n['workers_lost'], 'worker')} lost on the way; nothing is missing")
    return lines


def predict(
    model: options.Model,
    responses: options.ResponsesIfAny = None,
    out: options.Out = None,
    links: options.Links = None,
    features: options.Features = None,
    feature_columns: options.FeatureColumns = None,
    groups: options.Groups = None,
    rule: options.Rule = None,
    constraints: options.Constraints = None,
    columns: options.Columns = None,
    given: options.Set = None,
    probabilities: options.Probabilities = False,
    cluster: options.Cluster = None,
    out_of_core: options.OutOfCore = False,
    as_json: options.JsonSummary = False,
) -> None:
    """Label new tasks with a saved model, without changing it.

    Links and constraints may tie new tasks to each other and to tasks of the model. A model that
    was fitted with features labels tasks by their features, with responses or without any.
    """
    files = {"links": links, "features": features}
    files |= {"groups": groups, "rule": rule, "constraints": constraints}
    inputs = CommandInputs(responses or [], columns, given, **files).of_features(feature_columns)
    inputs.take_last()
    if as_json and out in (None, STANDARD):
        raise OptionError("json-needs-out")
    if cluster is not None or out_of_core:
        from tiebreak.cli.cluster import predict_shards

        unused = {"--links": links, "--features": features, "--json": as_json}
        unused["--constraints"] = inputs.has_constraints
        where = (cluster, out_of_core)
        n = predict_shards(model, inputs, where, unused, out=out, probabilities=probabilities)
        say(f"{counted(n, 'task')} labelled; {wrote((out,))}")
        return
    out = out or STANDARD
    inputs.check(out)
    from tiebreak.life import model_file

    with stages("reading and predicting"):
        known = model_file.load(model)
        found = inputs.read()
        given_too = {"links": found.links, "constraints": found.constraints}
        labels = known.predict(found.responses, features=found.features, **given_too)
    labels.write(out, probabilities=probabilities)
    n_unsure = 0 if labels.probability is None else int((labels.probability < SURE).sum())
    if as_json:
        crowd = found.responses
        unseen = 0 if crowd is None else int((known.workers_.codes(crowd.workers) < 0).sum())
        summary = {
            "responses": 0 if crowd is None else crowd.n_responses,
            "tasks": len(labels),
            "workers": 0 if crowd is None else crowd.n_workers,
            "workers_not_seen": unseen,
            "labels_below_0.9": n_unsure,
            "out": out,
        }
        print_json(summary)
    say(f"{counted(len(labels), 'task')} labelled, {n_unsure:,} below probability {SURE}")


def update(
    model: options.Model,
    responses: options.ResponsesIfAny = None,
    out: Annotated[Text, file("Write all labels here.", "-o", "--out")] = None,
    links: options.Links = None,
    gold: options.Gold = None,
    features: options.Features = None,
    constraints: options.Constraints = None,
    columns: options.Columns = None,
    given: options.Set = None,
    probabilities: options.Probabilities = False,
    save: Annotated[Text, option("MODEL.tbm", "Save the model here. [MODEL.tbm]")] = None,
    keep: options.Keep = None,
    again: Annotated[
        bool, options.flag("--again", "Count what a model of counts was given before once more.")
    ] = False,
    wait: options.Wait = 0.0,
    as_json: Annotated[bool, options.flag("--json", "Print the summary as JSON.")] = False,
) -> None:
    """Update a saved model with new responses, links or gold labels.

    Where responses are kept, it ends where a fit of everything together does.
    """
    if not (responses or links or gold or constraints):
        raise OptionError("nothing-new")
    files = {"links": links, "gold": gold, "features": features, "constraints": constraints}
    inputs = CommandInputs(responses or [], columns, given, **files).of_features()
    forget = inputs.take_last("forget")
    inputs.check(out)
    options.check_model_name(save)
    from tiebreak.life import model_file
    from tiebreak.tables.locks import Lock

    target = save or model
    new = inputs.read(may_be_empty=True)
    more = {"links": new.links, "gold": new.gold, "constraints": new.constraints}
    is_idle = new.responses is None and all(each is None for each in more.values())
    # From here to the end nobody else may write: what they add to the model would be lost.
    with Lock(target, "tiebreak update", wait=wait) as lock:
        with stages("fitting"):
            known = model_file.load(model)
            before = dict(zip(known.tasks_, known.labels_.label.tolist(), strict=True))
            names = list(known.classes_)
            batches = known._batches
            if not is_idle:
                more |= {"features": new.features}
                known.update(new.responses, again=again, **more, **forget)
        if not is_idle or save or keep:
            model_file.save(known, target, keep or "responses", lock=lock)
        if out:
            known.labels_.write(out, probabilities=probabilities)
    was_seen = new.responses is None or known._batches == batches
    summary = {
        "responses": 0 if was_seen else new.responses.n_responses,
        "tasks": len(known.tasks_),
        "tasks_new": len(known.tasks_) - len(before),
        "labels_changed": sum(
            each.task in before and names[before[each.task]] != each.label for each in known.labels_
        ),
        "sweeps": known.n_iter_,
        "converged": known.converged_,
        "saved": target,
        "out": out,
    }
    if as_json:
        print_json(summary)
    if is_idle:
        say("0 responses, nothing to do")
        return
    tasks = f"{counted(summary['tasks'], 'task')}, {summary['tasks_new']:,} of them new"
    say(f"{tasks}; {counted(summary['labels_changed'], 'label')} changed\n{wrote((out, target))}")


class _Stopped(Exception):
    """A signal asked the stream to end."""


def stream(
    model: Annotated[
        str, typer.Argument(help="A model file; made where there is none.", metavar="MODEL.tbm")
    ],
    keep: options.Keep = None,
    given: options.Set = None,
    wait: options.Wait = 0.0,
) -> None:
    """Read events from stdin, and write labels that change to stdout.

    An event is one JSON object on a line, with a number "seq" that only grows; {"done": seq} says
    up to where events are kept. --set every=N says after how many events to answer, save_every=N
    to save, open_tasks=N how many tasks stay open with --keep counts.
    """
    chosen = OptionValues(given).take_last("every", "save_every", "open_tasks")
    for name, value in chosen.items():
        require_count(name, value, 1)
    options.check_model_name(model)
    from tiebreak.life.events import Journal, Service, Settings

    path = Path(model)
    if "open_tasks" in chosen:
        chosen["n_open"] = chosen.pop("open_tasks")
    with Journal(path, wait=wait) as journal:
        settings = Settings(keep=keep, **chosen)
        service = Service(path, settings, _write_line, print_message, journal)
        _read_events(service)
        service.end()
    done = service.tally
    say(
        f"{done.events:,} events, {done.labels:,} labels reported, {done.seen_before:,} events "
        f"seen before, {done.broken:,} broken\nwrote {model}"
    )


def _write_line(line: str) -> None:
    """Write a line to stdout; an acknowledgement leaves at once, with all before it."""
    sys.stdout.write(f"{line}\n")
    if line.startswith('{"done"'):
        sys.stdout.flush()


def _read_events(service: Service) -> None:
    """Hand lines to the service until they end, or until a signal asks to stop."""
    waiting = False
    asked = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        if waiting:
            raise _Stopped

    former = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT)}
    lines = iter(sys.stdin.buffer)
    number = 0
    try:
        while not asked:
            waiting = True
            line = next(lines, None)
            waiting = False
            if line is None:
                break
            number += 1
            service.take(number, line)
    except _Stopped:
        pass
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
