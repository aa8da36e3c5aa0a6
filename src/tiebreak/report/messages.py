"""What the report says where it cannot do what it is asked for."""

from __future__ import annotations

from tiebreak.errors import register

register(
    {
        "chart-ending": "A chart is saved as {endings}; got {path!r}.",
        "report-ending": "A report is written to a file that ends in .html; got {path!r}.",
        "report-foreign-file": (
            "{path} exists and is not a report. Name another file, or overwrite it "
            "(overwrite=True)."
        ),
        "report-not-measured": ("found must be what tiebreak.report.measure returned; got {type}."),
        "self-preference-needs-both": (
            "Self-preference needs both systems=, which model made each answer, and accepts=, the "
            "class that accepts an answer."
        ),
        "explain-unknown-task": "The model has no task {task!r} among its {n:,} tasks.",
        "plot-unknown-worker": "The model has no worker {worker!r} among its {n:,} workers.",
        "plot-no-bound": "{model} has no bound to draw. VariationalBayes has one.",
        "plot-no-gold": (
            "There are no known labels to compare with. Give some: plot.calibration(gold)."
        ),
        "gold-of-no-task": (
            "No known label belongs to a task of the model. Give both the same task ids."
        ),
        "gold-all-given": (
            "Every known label to compare with was given to the fit. Hold some back: fit without "
            "them, and give them here."
        ),
    }
)
