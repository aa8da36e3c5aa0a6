"""Why a task has its label: its votes, what each vote counts, and the links that moved it.

A vote for l counts θ(k, l) / θ(k', l): how many times as often its worker says so of tasks of the
label k as of tasks of the class k' that the label competes with. What the votes say together is
what the model predicts for the same votes without links. A must-link brings the votes of the other
task along; a cannot-link makes the class of the other task less likely. The message files of the
README have an example:

    m39 has four votes for billing, which alone would make it billing (80 %). But m39 ≠ m37 = m34,
    and the votes on those two are for billing: so m39 is something else.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tiebreak import templating
from tiebreak.arguments import WITH_RESPONSES, checks
from tiebreak.data.ids import MISSING
from tiebreak.errors import InputNote, OptionError
from tiebreak.estimators.majority_vote import MajorityVote
from tiebreak.inference.tasks.classifier import raised
from tiebreak.kernels.layout import Floats
from tiebreak.life.predict import label_crowd
from tiebreak.report import charts
from tiebreak.report.charts import Chart
from tiebreak.wording import clip, counted, first_few

MOST_REACHED = 30  # tasks that the must-links of one task are followed to
MOST_VOTES = 12  # in the chart, the strongest; all others are one bar
MOST_LINKS = 6  # in the chart and in words, the strongest
LEAST = 1e-3  # no probability is taken to be smaller: one vote or link decides nothing for ever
MOST = math.log(1e12)  # of the odds, that votes change
Reached = tuple[int, str, int]  # a task that links lead to, the chain, the row of its first link
TOLD = math.log(1.2)  # votes and links that change the odds by less are not told in words


class VoteEffect(NamedTuple):
    """One vote, and how much it favours the label over the class it competes with."""

    worker: Hashable
    label: Hashable
    factor: float  # of the odds; above 1: for the label


class LinkEffect(NamedTuple):
    """What links to another task say, and how much that favours the label."""

    chain: str  # m39 ≠ m37 = m34
    where: str  # the place of its first link
    is_same: bool  # whether both tasks have the same class, or different ones
    task: Hashable  # the other one
    label: Hashable  # its label
    probability: float | None
    factor: float


@dataclass(frozen=True)
class Explanation:
    """Why a task has its label: `print` it for words; notebooks show it with a chart."""

    task: Hashable
    label: Hashable
    probability: float | None
    other: Hashable | None  # the class it competes with: that of most votes, or the next likely
    alone: Hashable | None  # the label without links
    alone_probability: float | None
    is_known: bool  # whether the label was given as gold
    votes: tuple[VoteEffect, ...] = field(repr=False)
    links: tuple[LinkEffect, ...] = field(repr=False)  # the strongest first
    features: float | None = None  # how much a classifier on features favours the label
    ranking: float | None = None  # how much a ranking of the items does
    rules: tuple[str, ...] = ()  # constraints on the task, where these changed its label
    without: Hashable | None = None  # the label that it would have without them

    @property
    def sentences(self) -> list[str]:
        """The explanation in words."""
        counts = Counter(vote.label for vote in self.votes).most_common()
        # The vote that did most for a label against which most votes are.
        is_against = self.other is not None and counts and counts[0][0] != self.label
        strongest = [each for each in self.links[:MOST_LINKS] if abs(math.log(each.factor)) >= TOLD]
        return templating.sentences(
            "tiebreak.report",
            "explanation.txt",
            e=self,
            counts=counts,
            by_label=first_few([f"{n:,} for {clip(each, 30)}" for each, n in counts], 6),
            best=max(self.votes, key=lambda vote: vote.factor) if is_against else None,
            least=1.0 + LEAST,
            links=strongest,
        )

    @property
    def chart(self) -> Chart | None:
        """What favours the label, and what the other class; None where nothing does."""
        return chart_of(self.to_dict())

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        page = charts.templates().get_template("explanation.html")
        return page.render(found=self.to_dict(), chart=self.chart, style=charts.stylesheet())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text, with names as the report writes them."""
        votes = sorted(self.votes, key=lambda vote: -abs(math.log(vote.factor)))
        more = votes[MOST_VOTES:]
        return {
            "task": clip(self.task, 60),
            "label": clip(self.label, 60),
            "other": None if self.other is None else clip(self.other, 60),
            "alone": None if self.alone is None else clip(self.alone, 60),
            "alone_probability": self.alone_probability,
            "votes": [
                {"worker": clip(vote[0], 30), "label": clip(vote[1], 30), "factor": vote[2]}
                for vote in votes[:MOST_VOTES]
            ],
            "more_votes": len(more),
            "more_votes_factor": math.exp(
                max(-MOST, min(MOST, sum(math.log(vote.factor) for vote in more)))
            ),
            "links": [
                {
                    "chain": clip(link.chain, 120),
                    "where": clip(link.where, 80),
                    "label": clip(link.label, 60),
                    "probability": link.probability,
                    "factor": link.factor,
                }
                for link in self.links[:MOST_LINKS]
            ],
            "features": self.features,
            "ranking": self.ranking,
            "rules": list(self.rules),
            "without_rules": None if self.without is None else clip(self.without, 60),
            "sentences": self.sentences,
        }


@checks(model=WITH_RESPONSES)
def explain(model: Any, task: Hashable) -> Explanation:
    """Return why a fitted model gives a task its label.

    >>> import tiebreak as tb
    >>> votes = [("a", "ann", "x"), ("b", "ann", "x"), ("a", "bob", "x"), ("b", "cid", "y")]
    >>> apart = tb.Links.from_pairs(cannot=[("a", "b")])
    >>> found = explain(tb.VariationalBayes().fit(votes, links=apart), "b")
    >>> found.label, [link.chain for link in found.links]
    ('y', ['b ≠ a'])
    """
    code = int(model.tasks_.codes([task])[0])
    if code == MISSING:
        raise OptionError("explain-unknown-task", task=task, n=len(model.tasks_))
    return explain_tasks(model, [code])[0]


def explain_tasks(model: Any, tasks: Sequence[int]) -> list[Explanation]:
    """Return the explanations of some tasks, by code; all of them take one prediction."""
    if not tasks:
        return []
    links = _Links(model)
    reached = [links.reach(task) for task in tasks]
    codes = {*tasks, *(each[0] for groups in reached for group in groups for each in group)}
    needed = np.array(sorted(codes), dtype=np.int64)
    with warnings.catch_warnings(action="ignore", category=InputNote):  # said by the fit
        log_prior = None
        if model.classifier_weight_:
            f = model.classifier_probabilities_[needed]
            log_prior = raised(np.log(f), model.classifier_weight_)
        elif model.pair_prior_ is not None:
            log_prior = np.log(np.maximum(model.pair_prior_[needed], 1e-300))
        crowd = model.responses_.on_tasks(needed)
        q = label_crowd(model, crowd, log_prior=log_prior).probabilities
    q = np.maximum(np.array(q), LEAST)
    known: dict[int, int] = {}
    if model.gold_ is not None:
        gold = model.gold_.on(model.tasks_, model.classes_)
        known = dict(zip(gold.task.tolist(), gold.label.tolist(), strict=True))
    for place, task in enumerate(needed.tolist()):
        if task in known:
            q[place] = LEAST
            q[place, known[task]] = 1.0
    alone = dict(zip(needed.tolist(), q, strict=True))
    return [
        _explain(model, task, groups, alone, links, is_known=task in known)
        for task, groups in zip(tasks, reached, strict=True)
    ]


def chart_of(found: dict[str, Any]) -> Chart | None:
    """Draw votes and links to the side that they favour, from what `to_dict` returned."""
    bars = [(f"{each['worker']}: {each['label']}", each["factor"]) for each in found["votes"]]
    if found["more_votes"]:
        bars.append((counted(found["more_votes"], "more vote"), found["more_votes_factor"]))
    bars += [(each["chain"], each["factor"]) for each in found["links"]]
    bars += [(each, found[each]) for each in ("features", "ranking") if found[each] is not None]
    if found["other"] is None or all(abs(math.log(factor)) < 1e-9 for _, factor in bars):
        return None
    title = f"Why {found['task']} is {found['label']} and not {found['other']}"
    described = f"Bars to the right favour {found['label']}, to the left {found['other']}: "
    return charts.balance(
        (title, f"{described}×3 makes it three times as likely."),
        ("vote or link", f"favours {found['label']} by"),
        [(name, _times(factor)) for name, factor in bars],
        [math.log(factor) for _, factor in bars],
        (found["other"], found["label"]),
    )


class _Links:
    """The links of a model by task, and how often they are right."""

    def __init__(self, model: Any) -> None:
        self.links, self.names = model.links_, model.tasks_
        if self.links is None:
            return
        code = model.tasks_.codes(self.links.tasks)
        left, right = code[self.links.left], code[self.links.right]
        ends = np.concatenate([left, right])
        self.order = np.argsort(ends, kind="stable")
        self.near = ends[self.order]
        self.far = np.concatenate([right, left])[self.order]
        error = model.link_error
        if isinstance(error, str):
            rates = [each for rate in model.link_errors_.values() for each in rate[:2]]
            error = float(np.mean(rates)) if rates else None
        self.right = 1.0 - (error or 0.0)

    def reach(self, task: int) -> list[list[Reached]]:
        """Return the tasks of the same class, then each group of the same class that is not it."""
        seen = {task}
        same = self._follow((task, str(self.names[task]), -1), seen)
        others = [
            self._follow(start, seen)
            for member in same
            for start in self._onward(member, "≠", seen)
        ]
        return [same[1:], *others]

    def _follow(self, start: Reached, seen: set[int]) -> list[Reached]:
        """Follow must-links from a task, the nearest first."""
        found = [start]
        for each in found:
            found.extend(self._onward(each, "=", seen))
        return found

    def _onward(self, member: Reached, sign: str, seen: set[int]) -> Iterator[Reached]:
        """Yield the unseen tasks that are one link further, until enough were reached."""
        if self.links is None:
            return
        task, chain, first = member
        for at in range(*np.searchsorted(self.near, [task, task + 1]).tolist()):
            if len(seen) > MOST_REACHED:
                return
            far, row = int(self.far[at]), int(self.order[at]) % len(self.links)
            if far != MISSING and far not in seen and self.links.must[row] == (sign == "="):
                seen.add(far)
                yield far, f"{chain} {sign} {self.names[far]}", row if first < 0 else first

    def holds(self, row: int) -> float:
        weight = np.nan if self.links.weight is None else float(self.links.weight[row])
        return self.right if np.isnan(weight) else 1.0 / (1.0 + math.exp(-weight))


def _explain(
    model: Any,
    task: int,
    groups: list[list[Reached]],
    alone: dict[int, Floats],
    links: _Links,
    *,
    is_known: bool,
) -> Explanation:
    label = int(model.labels_.label[task])
    worker, given = model.responses_.of(task)
    weight = np.ones(len(given))
    if model.responses_.weight is not None:
        weight = model.responses_.weight[slice(*model.responses_.start[task : task + 2])]
    q = np.asarray(model.probabilities_[task])
    votes = np.bincount(given, weight, len(q))
    rest = np.arange(len(q)) != label
    other = None
    if rest.any():
        # Of the classes with most votes, then the likeliest.
        is_voted = votes[label] < votes.max() * (1.0 - 1e-9)
        rank = np.lexsort((q, votes)) if is_voted else np.argsort(q, kind="stable")
        other = int(rank[rest[rank]][-1])
    theta = np.maximum(model.confusion_[worker, :, given], LEAST)
    factor = np.ones(len(worker))
    if other is not None and not isinstance(model, MajorityVote):
        factor = np.exp(np.clip(weight * np.log(theta[:, label] / theta[:, other]), -MOST, MOST))
    prior = np.maximum(np.asarray(model.class_prior_), LEAST)
    effects = []
    singles = [(True, [each]) for each in groups[0]]
    for is_same, group in [*singles, *((False, group) for group in groups[1:])]:
        far, chain, row = group[0]
        its_label = int(model.labels_.label[far])
        said = np.exp(sum(np.log(alone[each[0]] / prior) for each in group) + np.log(prior))
        said = np.maximum(said / said.sum(), LEAST)
        right = links.holds(row)
        heard = right * said / prior + 1.0 - right if is_same else 1.0 - right * said
        heard = np.maximum(heard, LEAST)
        if len(group) > 1:
            chain += f" = {links.names[group[1][0]]}" + (" = …" if len(group) > 2 else "")
        effects.append(
            LinkEffect(
                chain,
                links.links.where(row),
                is_same,
                links.names[far],
                model.classes_[its_label],
                float(model.probabilities_[far, its_label]),
                1.0 if other is None else float(heard[label] / heard[other]),
            )
        )
    effects.sort(key=lambda effect: -abs(math.log(effect.factor)))
    features = ranking = None
    if model.pair_prior_ is not None and other is not None:
        ranking = float(model.pair_prior_[task, label] / model.pair_prior_[task, other])
    if model.classifier_weight_ and other is not None:
        f = np.maximum(model.classifier_probabilities_[task], LEAST)
        features = float((f[label] / f[other]) ** model.classifier_weight_)
    classes = model.classes_
    stated = model.labels_.probability
    top = int(alone[task].argmax())
    return Explanation(
        model.tasks_[task],
        classes[label],
        None if stated is None else float(stated[task]),
        None if other is None else classes[other],
        classes[top] if len(given) and not is_known else None,
        float(alone[task][top]) if len(given) and not is_known else None,
        is_known,
        tuple(
            VoteEffect(model.workers_[int(w)], classes[int(g)], float(f))
            for w, g, f in zip(worker, given, factor, strict=True)
        ),
        tuple(effects),
        features,
        ranking,
        *_rules_of(model, task, label),
    )


def _rules_of(model: Any, task: int, label: int) -> tuple[tuple[str, ...], Hashable | None]:
    """Return the constraints of a task, and the label without them, where they changed it."""
    own = model.own_probabilities_
    table = model.constraints_
    if own is None or table is None or int(np.argmax(own[task])) == label:
        return (), None
    code = table.tasks.codes([model.tasks_[task]])[0]
    owner = np.searchsorted(table.start, np.flatnonzero(table.task == code), "right") - 1
    said = tuple(f"{table.say(int(f))} ({table.where(int(f))})" for f in owner[:MOST_LINKS])
    return said, model.classes_[int(np.argmax(own[task]))]


def _times(factor: float) -> str:
    """Write a factor, or what it divides by.

    >>> _times(3.21), _times(0.5), _times(326.4), _times(0.99)
    ('×3.2', '÷2.0', '×326', '×1')
    """
    size = max(factor, 1.0 / factor)
    if size < 1.05:
        return "×1"
    sign = "×" if factor > 1.0 else "÷"
    if size > 1e6:
        return f"{sign}10⁶+"
    return f"{sign}{size:,.1f}" if size < 10.0 else f"{sign}{size:,.0f}"
