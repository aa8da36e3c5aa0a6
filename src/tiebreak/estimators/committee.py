"""The committee: the votes, two short steps from them, and a full model, pooled with equal weights.

A model that runs to the end finds most of what votes miss, and sometimes ends in a mode that
responses like and the truth does not. Its first step makes most of the gain and none of the
disasters. So the committee believes several points of the way: [eq:committee].

    votes        (v + 1/K) / (s + 1): doubts every model of workers
    first-step   confusion matrices counted once against the votes, class shares learnt
    even         the same matrices, classes equally common
    kinds        good, middling and flat workers, fitted to the end

Tasks that hard must-links join are one unit in every member. Other links act in the fit of kinds
and once more on the pool.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.errors import OptionError
from tiebreak.inference import CrowdModel, FitState, Parameters, Problem, Rows, calibration, lay_out
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.tasks.coupling.linked import units_of_copies
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import majority, softmax
from tiebreak.kernels.layout import FREE, TIED, ByTask, Codes, Floats, total_weights
from tiebreak.wording import counted

VOTES, FIRST_STEP, EVEN, KINDS = "votes", "first-step", "even", "kinds"
MEMBERS = (VOTES, FIRST_STEP, EVEN, KINDS)
VB = "vb"  # no member: with gold, one more opinion that the stage of gold may heed
# With so few workers what is expected is not told: on 120 panels of 3 to 5 judges 33 labels more
# were expected to be right than of the vote, and 18 were, of 225 that differ: docs/default.md.
FEW_WORKERS = 5
LINKED_WEIGHT = 2.0  # what kinds weighs more where links teach it; on nine sets: docs/default.md
ALL_LINKED = 0.8  # share of linked tasks from which on it weighs that much


class Member(NamedTuple):
    """A member of a fitted committee."""

    name: str
    weight: float  # its share of the pool
    n_differ: int  # tasks to which it alone would give another label than the votes


class FromVote(NamedTuple):
    """How the labels differ from those of a majority vote; known tasks do not count."""

    n_differ: int
    expected_right: float  # how many more of these the model expects to be right than the vote's

    def sentence(self, n_labels: int, n_workers: int, *, has_gold: bool) -> str:
        """Say how many labels differ, and what the model expects of them.

        >>> print(FromVote(112, 32.0).sentence(700, 9, has_gold=True))
        112 of 700 labels differ from the majority vote. The model expects 32 more of these to be \
correct than the vote's.
        """
        if not self.n_differ:
            return "No label differs from the majority vote."
        verb = "differs" if self.n_differ == 1 else "differ"
        said = f"{self.n_differ:,} of {counted(n_labels, 'label')} {verb} from the majority vote."
        if n_workers <= FEW_WORKERS:
            return (
                f"{said} With {FEW_WORKERS} workers or fewer the model cannot tell which is "
                "right: label some of them (--gold)."
            )
        sure = "" if has_gold else "; known labels (--gold) would confirm it"
        more = f"{self.expected_right:,.0f} more"
        return f"{said} The model expects {more} of these to be correct than the vote's{sure}."


class Opinion(NamedTuple):
    """What stays of a member: enough to say what it thinks of new tasks."""

    name: str
    weight: float  # in the pool; 0: heard by the stage of gold alone
    model: CrowdModel | None  # None: votes
    parameters: Parameters | None  # (α, β)


def require_members(names: object) -> tuple[str, ...]:
    """Return the names of members; refuse none at all, and names that no member has."""
    given = tuple(names) if isinstance(names, tuple | list) else (names,)
    for name in given:
        if not isinstance(name, str) or name not in MEMBERS:
            raise OptionError.unknown("Each of members", name, MEMBERS)
    if not given:
        raise OptionError("no-members", members=", ".join(MEMBERS))
    return tuple(name for name in MEMBERS if name in given)


def join_must_linked(rows: Rows, n_classes: int) -> Rows:
    """Return rows with those that must be one class as one: units; its "tasks" are the rows given.

    A known unit is known once, and units are in order: that of gold is nothing.
    """
    tasks, implied, gold = rows.laid, rows.implied, rows.gold
    alone = Rows(tasks, rows.copies, gold=_once(gold, None))
    if implied is None or implied.closure.n_groups == len(implied.task):
        return alone
    first = np.arange(tasks.n_tasks)
    _, first_place = np.unique(implied.closure.group, return_index=True)
    first[implied.task] = implied.task[first_place[implied.closure.group]]
    representative, numbered = np.unique(first, return_inverse=True)
    unit = numbered.astype(np.int32)
    of_each = unit[tasks.task_of_each()]
    order = np.argsort(of_each, kind="stable")
    size = np.bincount(of_each, minlength=len(representative))
    start = np.concatenate([[0], np.cumsum(size)])
    weight = None if tasks.weight is None else tasks.weight[order]
    role = np.full(len(representative), FREE, dtype=np.int8)
    joined = layout.lay_out(start, tasks.code[order], role, tasks.n_codes, n_classes, weight)
    copies = None if rows.copies is None else rows.copies[representative]
    return Rows(joined, copies, unit, representative.astype(np.int32), _once(gold, unit))


def _once(gold: GoldCodes | None, unit: Codes | None) -> GoldCodes | None:
    if gold is None:
        return None
    task, first = np.unique(gold.task if unit is None else unit[gold.task], return_index=True)
    return GoldCodes(task.astype(np.int32), gold.label[first])


def prior_of_units(log_prior: Floats, rows: Rows, units: Rows) -> Floats:
    """Return the log prior of each unit from that of the rows in it: their sum, of copies the mean.

    It is normalised, (n_units, n_classes).
    """
    if units.row is None or rows.implied is None:
        return log_prior
    unit = units_of_copies(rows.implied.given, len(log_prior))
    if unit is not None:
        log_prior = log_prior / np.bincount(unit)[unit, None]
    summed = [np.bincount(units.row, each, units.laid.n_tasks) for each in log_prior.T]
    return np.log(softmax(np.stack(summed, axis=1)))


def by_votes(tasks: ByTask, n_classes: int, log_prior: Floats | None = None) -> Floats:
    """Return (v + 1/K) / (s + 1): shares of votes, drawn by one vote to even ones or the prior."""
    total = total_weights(tasks.start, tasks.weight)[:, None]
    shares = majority(tasks, n_classes)
    one = 1.0 / n_classes if log_prior is None else np.exp(log_prior)
    return np.asarray((total * shares + one) / (total + 1.0))


def by_step(problem: Problem, parameters: Parameters) -> dict[str, Floats]:
    """Return what the step says of each task, with class shares learnt and with even ones.

    Of tasks with a prior of their own, even ones are those divided by their means.
    """
    log_shares, table = problem.logs(parameters)
    scores = problem.backend.score_tasks(problem.rows, np.zeros(problem.n_classes), table)
    own = problem.tasks.own
    if own is None or own.fixed is None:
        return {FIRST_STEP: softmax(scores + log_shares), EVEN: softmax(np.array(scores))}
    balance = np.log(softmax(own.fixed).mean(axis=0))
    return {FIRST_STEP: softmax(scores + own.fixed), EVEN: softmax(scores + own.fixed - balance)}


def by_model(problem: Problem, parameters: Parameters, dependence: float = 0.0) -> Floats:
    """Return what a model that was fitted to the end says of each row, scaled by `dependence`."""
    n_given = calibration.n_responses(problem.rows)
    if problem.tasks.own is not None:  # the prior counts as one more response
        n_given = n_given + 1.0
    unread = np.empty((problem.rows.n_tasks, problem.n_states))  # q follows from parameters
    state = FitState(unread, parameters)
    return calibration.probabilities(problem, state, Calibration(dependence), n_given)[0]


def weight_of_kinds(share_linked: float) -> float:
    """Return ω: links teach the model that runs to the end, and hardly those near the votes."""
    return 1.0 + LINKED_WEIGHT * min(1.0, share_linked / ALL_LINKED)


def pool(said: dict[str, Floats], weight: dict[str, float]) -> Floats:
    """Return the linear pool: Σ w q / Σ w."""
    total = sum(weight.values())
    pooled = np.zeros_like(next(iter(said.values())))
    for name, share in weight.items():
        pooled += (share / total) * said[name]
    return pooled


def differs_from_votes(votes: Floats, label: layout.Codes) -> layout.Mask:
    """Say which labels are none of those that most votes went to; a task without votes has all."""
    return np.asarray(votes[np.arange(len(label)), label] < votes.max(axis=1) - TIED)


def vote_of_each(responses: Responses) -> layout.Codes:
    """Return the class that most votes of each task are for; −1 where several tie, or none is.

    >>> said = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "x"), ("b", "bob", "y")]
    >>> vote_of_each(Responses.from_rows(said)).tolist()
    [0, -1]
    """
    tasks = lay_out(responses)
    shares = majority(tasks, responses.n_classes)
    top = shares >= shares.max(axis=1, keepdims=True) - TIED
    return np.where(top.sum(axis=1) == 1, top.argmax(axis=1), -1).astype(np.int32)


def compare_with_votes(
    votes: Floats, q: Floats, label: layout.Codes, is_known: layout.Mask
) -> FromVote:
    """Count labels that differ from the vote; where classes tie for it, it has their mean."""
    at = np.flatnonzero(differs_from_votes(votes, label) & ~is_known)
    top = votes[at] >= votes[at].max(axis=1, keepdims=True) - TIED
    of_vote = (q[at] * top).sum(axis=1) / top.sum(axis=1)
    return FromVote(len(at), float((q[at, label[at]] - of_vote).sum()))
