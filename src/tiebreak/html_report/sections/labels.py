"""Classes, and how sure the labels are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak import charts
from tiebreak.charts import number, percent
from tiebreak.html_report.subject import LOOK, Sentence, Subject, histogram, known, name
from tiebreak.markup import Markup, join, tag
from tiebreak.wording import counted

TITLE = "Labels and how sure they are"
SURE = 0.9  # labels below this probability are doubtful


def measure(subject: Subject) -> dict[str, Any] | None:
    """Count labels by class and by probability."""
    labels = subject.model.labels_
    stated = labels.probability
    if stated is None or not len(labels):
        return None
    n_classes = len(labels.classes)
    n_of_class = np.bincount(labels.label, minlength=n_classes)
    total = np.bincount(labels.label, stated, minlength=n_classes)
    doubtful = np.bincount(labels.label[stated < SURE], minlength=n_classes)
    prior = np.asarray(subject.model.class_prior_)
    order = np.argsort(-n_of_class, kind="stable")[: subject.limits.classes]
    return {
        "n_tasks": len(labels),
        "n_classes": n_classes,
        "doubtful_below": SURE,
        "n_doubtful": int((stated < SURE).sum()),
        "expected_wrong": float((1.0 - stated).sum()),
        **histogram(stated),
        "n_without_label": int((n_of_class == 0).sum()),
        "classes": [
            {
                "class": name(labels.classes[k]),
                "labels": int(n_of_class[k]),
                "prior": float(prior[k]),
                "mean_probability": known(total[k] / n_of_class[k]) if n_of_class[k] else None,
                "doubtful": int(doubtful[k]),
            }
            for k in order.tolist()
        ],
    }


def words(found: dict[str, Any]) -> list[Sentence]:
    """Say how many labels are doubtful."""
    n = found["n_doubtful"]
    wrong = _about(found["expected_wrong"])
    if not n:
        return [
            Sentence(
                f"All {counted(found['n_tasks'], 'label')} are {percent(SURE, 0)} sure or more; "
                f"{wrong} of them should be wrong."
            )
        ]
    verb = "is" if n == 1 else "are"
    return [
        Sentence(
            f"{n:,} of {counted(found['n_tasks'], 'label')} {verb} doubtful (below "
            f"{percent(SURE, 0)}); {wrong} of all labels should be wrong.",
            LOOK,
        )
    ]


def show(found: dict[str, Any]) -> Markup:
    """Show a histogram of probabilities and the classes."""
    sure = charts.histogram(
        "How sure the labels are",
        f"The probability of each task's label. {found['n_doubtful']:,} labels to the left of the "
        f"dashed line are below {found['doubtful_below']:g}.",
        ("probability of the label", "labels"),
        found["edges"],
        found["counts"],
        mark=found["doubtful_below"],
        mark_text="doubtful",
    )
    return join([sure.html("sure"), _classes(found).html("classes"), _more(found)])


def _classes(found: dict[str, Any]) -> charts.Chart:
    rows = [
        (
            each["class"],
            number(each["labels"]),
            percent(each["labels"] / found["n_tasks"]),
            percent(each["prior"]),
            number(each["mean_probability"]),
            number(each["doubtful"]),
        )
        for each in found["classes"]
    ]
    header = ("class", "labels", "share", "class prior", "mean probability", "doubtful")
    return charts.bars(
        "Labels of each class",
        "How many tasks got each class as their label.",
        header,
        [each["class"] for each in found["classes"]],
        [each["labels"] for each in found["classes"]],
        shown=[
            f"{each['labels']:,} ({percent(each['labels'] / found['n_tasks'], 0)})"
            for each in found["classes"]
        ],
        rows=rows,
    )


def _more(found: dict[str, Any]) -> Markup | None:
    hidden = found["n_classes"] - len(found["classes"])
    said = []
    if hidden:
        said.append(f"{counted(hidden, 'class')} with fewer labels are not shown.")
    if found["n_without_label"]:
        n = found["n_without_label"]
        said.append(f"{counted(n, 'class')} got no task at all.")
    return tag("p", " ".join(said), class_="note") if said else None


def _about(wrong: float) -> str:
    """Write how many labels should be wrong.

    >>> _about(0.2), _about(3.4), _about(1234.5)
    ('fewer than one', 'about 3', 'about 1,234')
    """
    return "fewer than one" if wrong < 1.0 else f"about {wrong:,.0f}"
