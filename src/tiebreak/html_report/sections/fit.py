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
    members = [each._asdict() for each in getattr(model, "members_", ())]
    calibration = None if members else model.calibration_  # an average is not scaled
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
        "members": members,
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say so where the fit did not settle."""
    said = []
    if not found["settled"]:
        text = f"The fit did not settle within {counted(found['sweeps'], 'sweep')}: raise max_iter."
        said.append(Sentence(text, LOOK))
    return said


def show(found: dict[str, Any]) -> Markup:
    """Show what was fitted, the bound, and the members of a committee."""
    rows: list[Row] = [("model", tag("code", found["method"]))]
    if found["worker_model"]:
        rows.append(("worker model", found["worker_model"]))
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
    if found["members"]:
        parts.append(_members_table(found["members"]))
    return join(parts)


def _members_table(members: list[dict[str, Any]]) -> Markup:
    rows = [(each["name"], number(each["weight"], 2), number(each["n_differ"])) for each in members]
    header = ("member", "weight", "labels it alone would give otherwise than the vote")
    return charts.table("The committee whose probabilities are averaged", header, rows)
