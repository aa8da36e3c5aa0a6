"""Ask: people say which tasks are of the same class, and every answer is kept."""

from tiebreak.ask.results import Answer, Contradiction, Progress, Question, Vote
from tiebreak.ask.session import Session

__all__ = ["Answer", "Contradiction", "Progress", "Question", "Session", "Vote"]
