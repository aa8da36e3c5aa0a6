"""Routing: which tasks go to a human, which get another judge, which are done."""

from tiebreak.routing.plan import DONE, HUMAN, JUDGE, ROUTES, Route, plan

__all__ = ["DONE", "HUMAN", "JUDGE", "ROUTES", "Route", "plan"]
