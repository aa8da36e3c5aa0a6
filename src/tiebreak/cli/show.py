"""tiebreak show: what is inside a model file."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tiebreak.cli.arguments import ModelFile, Quiet
from tiebreak.wording import counted, first_few

SHOWN = 10  # classes


def show(
    model: ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Say what is inside a model file, and that it is whole."""
    from tiebreak.life import model_file

    model_file.load(model)  # every checksum, and that all fits together
    found = model_file.about(model)
    if as_json:
        typer.echo(json.dumps(found))
    elif not quiet:
        typer.echo("\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> list[str]:
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
    lines.append(f"{counted(len(classes), 'class')}: {first_few(classes, SHOWN)}")
    if found["worker_model"]:
        lines.append(f"worker model: {found['worker_model']}")
    if found["stream"]:
        lines.append(f"a stream has seen events up to {found['stream']['seq']:,}")
    return lines
