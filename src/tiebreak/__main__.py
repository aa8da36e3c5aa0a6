"""Run the command line: `tiebreak`, or `python -m tiebreak`."""

from __future__ import annotations

from tiebreak import cli

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name; Ctrl-C ends it with 130 from the first import on."""
    cli.end_on_interrupt()
    from tiebreak.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
