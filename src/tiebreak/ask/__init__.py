"""Ask: people say which tasks are of the same class, or which class, and every answer is kept."""

from tiebreak.ask.desk import Desk
from tiebreak.ask.results import Answer, Contradiction, Progress, Question, Vote
from tiebreak.ask.session import Session

__all__ = ["Answer", "Contradiction", "Desk", "Progress", "Question", "Session", "Vote"]
