"""Scores and calibration, where some labels are known."""

from __future__ import annotations

from typing import Any

from tiebreak import charts, evaluate
from tiebreak.charts import number, percent
from tiebreak.html_report.subject import FINE, LOOK, Sentence, Subject, name
from tiebreak.juries.known import interval_of_share
from tiebreak.markup import Markup, join, tag
from tiebreak.plots import drawings
from tiebreak.plots.calibration_curve import CalibrationPoint, calibration_curve
from tiebreak.wording import counted

TITLE = "Against known labels"
HONEST = 0.05  # how far the mean probability may be from the share that is right
NARROW = 0.2  # width of an interval of that share, by which probabilities can be called honest


def measure(subject: Subject) -> dict[str, Any] | None:
    """Score labels that have not seen what they are compared with."""
    if subject.to_score is None:
        return None
    labels, gold, is_fitted_again = subject.to_score
    figures = evaluate.report(labels, gold)
    points = calibration_curve(labels, gold)
    n_scored = sum(point.n for point in points)
    by_class = sorted(figures.f_by_class.items(), key=lambda item: item[1])
    return {
        "fitted_again_without_gold": is_fitted_again,
        "n_tasks": figures.n_tasks,
        "n_gold": figures.n_gold,
        "accuracy": figures.accuracy,
        "macro_f": figures.macro_f,
        "log_loss": figures.log_loss,
        "brier_score": figures.brier_score,
        "calibration_error": figures.calibration_error,
        "mean_probability": sum(point.stated * point.n for point in points) / n_scored,
        "calibration": [point._asdict() for point in points],
        "n_classes": len(by_class),
        "f_by_class": [
            {"class": name(each), "f": f} for each, f in by_class[: subject.limits.classes]
        ],
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say how many known labels are found, and whether probabilities are honest."""
    stated = found["mean_probability"]
    right = found["accuracy"]
    n = found["n_tasks"]
    low, high = interval_of_share(right * n, n)
    is_too_sure = stated > high and stated - right > HONEST
    if is_too_sure:
        judged = "which is too sure"
    elif stated < low and right - stated > HONEST:
        judged = "which is too modest"
    elif abs(stated - right) <= HONEST and high - low <= NARROW:
        judged = "which is honest"
    else:
        judged = "and these are too few to tell whether that is honest"
    text = (
        f"{percent(right)} of {counted(n, 'known label')} are found; the probabilities said "
        f"{percent(stated)}, {judged}."
    )
    return [Sentence(text, LOOK if is_too_sure else FINE)]


def show(found: dict[str, Any]) -> Markup:
    """Show scores and the calibration curve."""
    how = (
        "The known labels were given to the fit, so they prove nothing of it. These figures are of "
        "the same fit made again without them."
        if found["fitted_again_without_gold"]
        else "These known labels were not given to the fit."
    )
    rows = [
        ("accuracy", number(found["accuracy"])),
        ("macro F", number(found["macro_f"])),
        ("mean stated probability", number(found["mean_probability"])),
        ("calibration error", number(found["calibration_error"])),
        ("log loss", number(found["log_loss"])),
        ("Brier score", number(found["brier_score"])),
    ]
    of_gold = f"{counted(found['n_tasks'], 'task')} of {found['n_gold']:,} known"
    points = [CalibrationPoint(**point) for point in found["calibration"]]
    curve = drawings.calibration(points, found["n_tasks"]).html("calibration")
    by_class = [(each["class"], number(each["f"])) for each in found["f_by_class"]]
    hidden = found["n_classes"] - len(by_class)
    caption = "F of each class, the worst first" + (
        f"; {hidden:,} more are better" if hidden else ""
    )
    tables = join(
        [
            charts.table(f"Scores on {of_gold}", ("figure", "value"), rows),
            charts.table(caption, ("class", "F"), by_class),
        ]
    )
    return join([tag("p", how), tag("div", curve, tag("div", tables), class_="columns")])
