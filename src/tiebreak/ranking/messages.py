"""What errors and notes about rankings say, by code."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.errors import Message, register
from tiebreak.wording import agreeing, counted, first_few


def _won_or_lost_all(items: Sequence[object]) -> str:
    names = first_few([str(each) for each in items], 5)
    many = f"{counted(len(items), 'item')} won, or lost, every verdict: {names}. "
    return many + f"How far {agreeing(len(items), 'are')} ahead or behind is the prior's word."


MESSAGES: dict[str, Message] = {
    "too-many-effects": "The ranking needs {n:,} parameters beside each other, and takes {most:,}. "
    "Rank fewer items, or leave out effects of judges or of prompts (judges=False, prompts=False).",
    "ranking-not-converged": "The ranking has not converged; its intervals may be off.",
    "no-prompts": "prompts=True needs to know which prompt each verdict is on: a column 'task'.",
    "prompts-not-told": "No item has two verdicts on one prompt, so how items vary from prompt to "
    "prompt is not known: intervals take verdicts as independent.",
    "few-prompts": lambda n: (
        f"There {agreeing(n, 'are')} {counted(n, 'prompt')}: how items do on other prompts "
        "is hardly known."
    ),
    "items-never-meet": "Items are in {n:,} groups that never meet: ranks count within each group. "
    "together=True ranks across them, by the prior alone.",
    "all-ties": "All verdicts are ties: any item may be best.",
    "won-or-lost-all": _won_or_lost_all,
    "no-finite-strength": lambda items: (
        f"With a flat prior an item that won, or lost, every verdict has no finite strength: "
        f"{first_few([str(each) for each in items], 5)}. Leave the prior as it is."
    ),
    "order-goes-with-strength": "Items shown first are also the stronger ones, or the weaker "
    "(correlation {correlation:.2f}): what is due to place is hard to tell from strength.",
    "no-such-item": "No verdict is about the item {item!r}.",
}
register(MESSAGES)
