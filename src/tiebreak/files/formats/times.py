"""Times: when an answer was given, as seconds, so that "last" means last in time."""

from __future__ import annotations

from datetime import UTC, datetime

MTURK = "%a %b %d %H:%M:%S %Z %Y"  # Thu Oct 09 07:30:20 UTC 2025


def seconds(value: object) -> float | None:
    """Read a time; None where there is none or it cannot be read.

    >>> seconds("2025-10-09T07:30:20Z") == seconds("Thu Oct 09 07:30:20 UTC 2025")
    True
    >>> seconds(1759995020), seconds("yesterday"), seconds(None)
    (1759995020.0, None, None)
    """
    if isinstance(value, datetime):
        return _stamp(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str) or not value:
        return None
    try:
        return _stamp(datetime.fromisoformat(value))
    except ValueError:
        pass
    for zone in ("UTC", "PDT", "PST"):
        value = value.replace(f" {zone} ", " UTC ")
    try:
        return _stamp(datetime.strptime(value, MTURK))
    except ValueError:
        return None


def _stamp(value: datetime) -> float:
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
