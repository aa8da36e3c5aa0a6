"""Run the command line: `tiebreak`, or `python -m tiebreak`."""

from __future__ import annotations


def main() -> None:
    """Run the command that the arguments name."""
    from tiebreak.cli.app import app

    app(prog_name="tiebreak")


if __name__ == "__main__":
    main()
