"""What commands on model files share: their options, and a look inside."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

ModelFile = Annotated[str, typer.Argument(help="A model file.", metavar="MODEL.tbm")]
Keep = Annotated[
    Literal["responses", "counts"],
    typer.Option(help="What a model file keeps: all responses, or only what they add up to."),
]


def refuse_model_name(name: str | None) -> None:
    """Refuse, before any work is done, a place where no model file can be written."""
    if name is None:
        return
    from tiebreak.inference.kept import model_file

    model_file.refuse_unwritable(name)
