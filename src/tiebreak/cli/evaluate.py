"""tiebreak evaluate: how good labels are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.arguments import check_files
from tiebreak.cli.tables import Columns, open_files, read_if_given
from tiebreak.errors import note
from tiebreak.wording import first_few

if TYPE_CHECKING:
    from tiebreak.data.gold import Gold
    from tiebreak.data.labels import Labels
    from tiebreak.evaluate import Report


def evaluate(
    labels: Annotated[
        str, typer.Argument(help="Table of task, label[, probability].", metavar="LABELS")
    ],
    gold: Annotated[
        str, typer.Argument(help="Table of task, label: known classes.", metavar="GOLD")
    ],
    links: Annotated[
        str | None, typer.Option(help="Count the links that the labels break.", metavar="FILE")
    ] = None,
    given: Annotated[
        str | None,
        typer.Option(help="Gold that fuse was given: not scored.", metavar="FILE"),
    ] = None,
    columns: Columns = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes.")] = False,
) -> None:
    """Score labels against gold.

    Accuracy, F scores, calibration, and the links that the labels break.
    """
    check_files((labels, gold, links, given), ())
    from tiebreak import tables
    from tiebreak.evaluate import report

    opened = open_files(columns, labels=labels, gold=gold, links=links, given=given)
    given_labels = opened["labels"].read(tables.read_labels)
    known = opened["gold"].read(tables.read_gold)
    warn_of_forms(given_labels, known)
    figures = report(
        given_labels,
        known,
        read_if_given(opened, "links", tables.read_links),
        given=read_if_given(opened, "given", tables.read_gold),
    )
    if as_json:
        typer.echo(json.dumps(figures.to_dict(), ensure_ascii=False))
        return
    typer.echo(as_table(figures))
    if figures.log_loss is None:
        note(
            "Log loss and Brier score need one probability per class: "
            "tiebreak fuse --probabilities."
        )


def warn_of_forms(labels: Labels, gold: Gold) -> None:
    """Say that labels and gold share no class, but would if case and spaces did not count."""
    from tiebreak.data.ids import difference, fold

    said = set(labels.classes)
    known = set(gold.classes)
    if said & known:
        return
    forms = {fold(name): name for name in said}
    other = next((name for name in gold.classes if fold(name) in forms), None)
    if other is not None:
        meant = forms[fold(other)]
        note(
            f"Labels and gold share no class: {first_few(sorted(map(str, said)), 3)} against "
            f"{first_few(sorted(map(str, known)), 3)}. {meant!r} and {other!r} "
            f"{difference([meant, other])}. Write them alike, or fuse with --fold-labels."
        )


def as_table(figures: Report) -> str:
    """Lay the figures out as two aligned columns; what is not known is left out."""
    rows = [(name, value) for name, value in _rows(figures) if value is not None]
    shown = [(name, f"{v:,}" if isinstance(v, int) else f"{v:.4f}") for name, v in rows]
    name_width = max(len(name) for name, _ in shown)
    value_width = max(len(value) for _, value in shown)
    return "\n".join(f"{name:<{name_width}}  {value:>{value_width}}" for name, value in shown)


def _rows(figures: Report) -> Iterator[tuple[str, float | int | None]]:
    yield "tasks scored", figures.n_tasks
    yield "coverage of gold", figures.coverage
    yield "accuracy", figures.accuracy
    yield "micro F", figures.micro_f
    yield "macro F", figures.macro_f
    for name, f in figures.f_by_class.items():
        yield f"F of {name}", f
    yield "log loss", figures.log_loss
    yield "Brier score", figures.brier_score
    yield "calibration error", figures.calibration_error
    yield "links broken", figures.violated_given
    yield "links broken in the closure", figures.violated_closed
