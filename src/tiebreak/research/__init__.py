"""Research: what the paper proves and measures, on top of the public names of tiebreak.

- `spectral_start`: a start from moments of the votes
- `gibbs`: draws from the exact posterior (`tb.GibbsSampler`)
- `theory`: the two theorems as calculators; `python -m tiebreak.research.theory crowd.toml`
- `paper`: the paper's experiments and claims; `python -m tiebreak.research.paper`
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tiebreak.research.spectral import spectral_start

if TYPE_CHECKING:
    from tiebreak.research import gibbs, paper, theory

__all__ = ["gibbs", "paper", "spectral_start", "theory"]


def __getattr__(name: str) -> Any:
    """Load a module when it is used."""
    if name in __all__:
        return importlib.import_module(f"tiebreak.research.{name}")
    raise AttributeError(f"module 'tiebreak.research' has no attribute {name!r}")
