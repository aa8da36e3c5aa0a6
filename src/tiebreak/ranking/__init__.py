"""Ranking: who is best by verdicts on pairs, and how far to trust it."""

from tiebreak.ranking import messages as messages
from tiebreak.ranking.bradley_terry import BradleyTerry, JudgeHabits
from tiebreak.ranking.ranks import NextPair, Ranking

__all__ = ["BradleyTerry", "JudgeHabits", "NextPair", "Ranking"]
