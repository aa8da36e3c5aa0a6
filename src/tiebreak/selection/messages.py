"""What errors about questions say, by code."""

from __future__ import annotations

from tiebreak.errors import Message, register
from tiebreak.wording import worded

MESSAGES: dict[str, Message] = {
    "nothing-to-ask": "There is one class only, so there is nothing to ask.",
    "no-question-state": "Questions are chosen by what VariationalBayes finds; got {model}. "
    "strategy='bvsb' takes any estimator.",
    "among-unknown-tasks": "among names {n:,} tasks that no response names, {first!r} first.",
    "vote-of-unknown-worker": "vote names a worker who gave no response: {name!r}.",
    "kinds-twice": "kinds must name each kind once; got {kinds:list}.",
    "margin-shape": "Pairs need probabilities of two classes or more; got shape {shape}.",
}
register(worded(MESSAGES))
