"""What --method auto compared, in words and as JSON."""

from __future__ import annotations

from typing import Any

from tiebreak.wording import counted

MEMBER_TITLES = {"vb": "VB", "pool": "pool", "best worker": "best worker", "mv": "votes"}


def describe_members(members: dict[str, dict[str, Any]], n_gold: int) -> str:
    """Say what each member of --method auto scored on held-out gold, the chosen one first.

    >>> scored = {"accuracy": 0.8, "interval": (0.67, 0.89), "is_chosen": True}
    >>> describe_members({"pool": scored}, 50)
    'with 50 gold labels: pool .80 ± .11; pool is used'
    """
    parts = []
    chosen = ""
    for name, each in sorted(members.items(), key=lambda pair: not pair[1]["is_chosen"]):
        title = MEMBER_TITLES.get(name, f"VB with {name}")
        low, high = each["interval"]
        parts.append(f"{title} {_short(each['accuracy'])} ± {_short((high - low) / 2.0)}")
        if each["is_chosen"]:
            chosen = title
    return f"with {counted(n_gold, 'gold label')}: {', '.join(parts)}; {chosen} is used"


def _short(share: float) -> str:
    return f"{share:.2f}".removeprefix("0")


def members_of(found: Any) -> dict[str, dict[str, Any]] | None:
    """Return what each member scored, by its name; None where nothing was compared."""
    if not found:
        return None
    return {
        each.name: {key: value for key, value in each._asdict().items() if key != "name"}
        for each in found
    }
