"""A fitted model that is kept: saved and loaded, asked about new tasks, told of new responses.

`records` turns what a model holds into plain arrays and JSON, and back; `model_file` says what is
kept. `predict` labels new tasks by workers as they are known. `update` goes on with more responses,
links and gold: exactly where responses are kept, else from counts. `online` fits tasks batch by
batch (`Stream`), and `events` feeds it from a stream that no kill can harm (`Service`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiebreak.life.events import Journal, Service, Settings, StreamEvent, read_event
    from tiebreak.life.online import Stopping, Stream
    from tiebreak.life.update import join_responses

__all__ = ["Journal", "Service", "Settings", "Stopping", "Stream", "StreamEvent", "read_event"]
__all__ += ["join_responses"]
_HOMES = {
    "Stopping": "online",
    "Stream": "online",
    "join_responses": "update",
}  # all others: events


def __getattr__(name: str) -> Any:
    """Load a module when it is used."""
    if name in __all__:
        home = importlib.import_module(f"tiebreak.life.{_HOMES.get(name, 'events')}")
        return getattr(home, name)
    raise AttributeError(f"module 'tiebreak.life' has no attribute {name!r}")
