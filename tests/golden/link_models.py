"""Link models of the golden numbers that the package itself does not offer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import betaln

from tiebreak.inference.tasks.coupling import link_errors as learnt
from tiebreak.inference.tasks.coupling.infer import ExactLinks
from tiebreak.inference.tasks.coupling.link_errors import Answers, Rates
from tiebreak.inference.tasks.mean_field import MeanField, given_groups
from tiebreak.kernels.arrays import entropy
from tiebreak.kernels.layout import LINKED, Floats, Offsets, Swept
from tiebreak.kernels.sweeper import Logs, Sweeper
from tiebreak.links.graph import LinkCodes


class InTaskOrder(MeanField):
    """Mean field whose tasks take turns by their number, not by margin."""

    def turns(self, q: Floats) -> Offsets:
        by_task = np.argsort(self.groups.task, kind="stable")
        return np.asarray(by_task[self.role[self.groups.task[by_task]] == LINKED])


@dataclass
class GivenLinks(InTaskOrder):
    """Mean field whose links carry log-odds that can be set between sweeps."""

    given: LinkCodes = field(kw_only=True)

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        self.q = sweeper.q()
        return super().sweep(sweeper, scores, logs)

    def entropy(self) -> float:
        return entropy(self.q[self.role == LINKED])

    def agreement(self) -> Floats:
        return np.asarray((self.q[self.given.left] * self.q[self.given.right]).sum(axis=1))

    def set_log_odds(self, log_odds: Floats) -> None:
        signed = self.given._replace(must=log_odds > 0.0, weight=np.abs(log_odds))
        self.groups = given_groups(signed)


@dataclass
class TiedRates:
    """Links whose sources err as often on tasks that are the same as on tasks that differ.

    `LearntRates` learns both rates; here the two rows of `Rates` are one.
    """

    links: ExactLinks | GivenLinks
    answers: Answers
    prior: Rates

    may_cycle = False
    remembers = True

    def __post_init__(self) -> None:
        self.rates = self.prior
        self.links.set_log_odds(learnt.log_odds(self.rates, self.answers))

    def value(self, q: Floats) -> float | None:
        return None

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        swept = self.links.sweep(sweeper, scores, logs)
        value = self.links.entropy()
        apart = learnt.learn_rates(self.prior, self.answers, self.links.agreement())
        tied = self.answers.one_rate  # both rows hold the sum already
        wrong = apart.wrong - self.prior.wrong
        right = apart.right - self.prior.right
        self.rates = Rates(
            self.prior.wrong + np.where(tied, wrong[0], wrong.sum(axis=0)),
            self.prior.right + np.where(tied, right[0], right.sum(axis=0)),
        )
        self.links.set_log_odds(learnt.log_odds(self.rates, self.answers))
        gain = betaln(self.rates.wrong, self.rates.right) - betaln(
            self.prior.wrong, self.prior.right
        )
        return swept._replace(entropy=value + float(gain[0].sum()))
