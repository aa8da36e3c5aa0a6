"""tiebreak stream: events in, labels out, into a model file that no kill can harm."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tiebreak.cli.arguments import Quiet, Wait, refuse_model_name
from tiebreak.cli.messages import print_message

if TYPE_CHECKING:
    from tiebreak.life.events import Service


class _Stopped(Exception):
    """Somebody asked the stream to end."""


def stream(
    model: Annotated[
        str, typer.Argument(help="A model file; made where there is none.", metavar="MODEL.tbm")
    ],
    every: Annotated[
        int, typer.Option(help="Events between two answers.", metavar="N", min=1)
    ] = 1_000,
    save_every: Annotated[
        int, typer.Option(help="Events between two saves.", metavar="N", min=1)
    ] = 100_000,
    keep: Annotated[
        Literal["responses", "counts"] | None,
        typer.Option(help="All responses, or only counts of tasks long untouched. [as it is]"),
    ] = None,
    open_tasks: Annotated[
        int, typer.Option(help="With counts: tasks that stay open.", metavar="N", min=1)
    ] = 100_000,
    wait: Wait = 0.0,
    quiet: Quiet = False,
) -> None:
    """Read events from stdin, one JSON object a line, and write labels that change to stdout.

    Events have a number "seq" that only grows; {"done": seq} says up to where they are kept.
    """
    refuse_model_name(model)
    from tiebreak.life.events import Journal, Service, Settings

    path = Path(model)
    settings = Settings(every, save_every, keep, open_tasks)
    with Journal(path, wait=wait) as journal:
        service = Service(path, settings, _write, print_message, journal)
        _read(service)
        service.end()
    done = service.tally
    if not quiet:
        print_message(
            f"{done.events:,} events, {done.labels:,} labels told, {done.seen_before:,} events "
            f"seen before, {done.broken:,} broken\nwrote {model}"
        )


def _write(line: str) -> None:
    """Write a line to stdout; an acknowledgement leaves at once, with all before it."""
    sys.stdout.write(f"{line}\n")
    if line.startswith('{"done"'):
        sys.stdout.flush()


def _read(service: Service) -> None:
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
