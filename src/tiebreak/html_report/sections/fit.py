"""How the fit went."""

from __future__ import annotations

from typing import Any

from tiebreak import charts
from tiebreak.charts import number
from tiebreak.charts.table import Row
from tiebreak.html_report.subject import LOOK, Sentence, Subject, known
from tiebreak.markup import Markup, clip, join, tag
from tiebreak.plots import drawings
from tiebreak.wording import counted

TITLE = "How the fit went"


def measure(subject: Subject) -> dict[str, Any] | None:
    """Collect how the model was fitted."""
    model = subject.model
    calibration = model.calibration_
    tried = getattr(model, "models_tried_", None)
    return {
        "method": clip(repr(model), 300),
        "worker_model": getattr(model, "worker_model_", None),
        "sweeps": model.n_iter_,
        "settled": bool(model.converged_),
        "bounds": [
            [sweep, known(b)] for sweep, b in drawings.thinned(model.bounds_, model.n_iter_)
        ],
        "dependence": None if calibration is None else float(calibration.dependence),
        "multiplier": None if calibration is None else float(calibration.multiplier),
        "n_gold": 0 if model.gold_ is None else len(model.gold_),
        "tried": None if tried is None else [_tried(each) for each in tried],
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say so where the fit did not settle, and which worker model was chosen."""
    said = []
    if found["tried"]:
        text = f"Of the worker models tried, {found['worker_model']!r} fits these workers best."
        said.append(Sentence(text))
    if not found["settled"]:
        text = f"The fit did not settle within {counted(found['sweeps'], 'sweep')}: raise max_iter."
        said.append(Sentence(text, LOOK))
    return said


def show(found: dict[str, Any]) -> Markup:
    """Show what was fitted, the bound, and the worker models that were tried."""
    rows: list[Row] = [("model", tag("code", found["method"]))]
    if found["worker_model"]:
        chosen = ", chosen by “auto”" if found["tried"] else ""
        rows.append(("worker model", f"{found['worker_model']}{chosen}"))
    rows.append(
        ("sweeps", f"{found['sweeps']:,}, {'settled' if found['settled'] else 'not settled'}")
    )
    if found["n_gold"]:
        rows.append(("known labels given", f"{found['n_gold']:,}"))
    if found["dependence"] is not None:
        said = f"{found['dependence']:.2f} of errors shared, scores times {found['multiplier']:.2f}"
        rows.append(("probabilities scaled by", said))
    parts = [charts.table("What was fitted", ("", ""), rows, shows_caption=False, has_head=False)]
    if found["bounds"]:
        points = [(int(sweep), float(value)) for sweep, value in found["bounds"]]
        drawn = drawings.bound(points, found["sweeps"], settled=found["settled"])
        parts.append(drawn.html("bound"))
    if found["tried"]:
        parts.append(_tried_table(found))
    return join(parts)


def _tried(each: Any) -> dict[str, Any]:
    return {
        "worker_model": each.worker_model,
        "seed": each.seed,
        "bound": known(each.bound),
        "gold_log_likelihood": known(each.gold_log_likelihood),
        "labels_changed": each.n_changed,
    }


def _tried_table(found: dict[str, Any]) -> Markup:
    rows = [
        (
            each["worker_model"],
            number(each["seed"]),
            number(each["bound"], 1),
            number(each["gold_log_likelihood"], 1),
            number(each["labels_changed"]),
        )
        for each in found["tried"]
    ]
    header = ("worker model", "seed", "bound", "log-likelihood of gold", "labels it would change")
    caption = (
        f"Worker models tried on the responses; {found['worker_model']} was chosen, by gold where "
        "there is enough of it, else by the bound"
    )
    return charts.table(caption, header, rows)
