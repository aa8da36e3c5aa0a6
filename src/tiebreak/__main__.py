"""Run the command line: `tiebreak`, or `python -m tiebreak`."""

from __future__ import annotations

from tiebreak.cli.app import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
