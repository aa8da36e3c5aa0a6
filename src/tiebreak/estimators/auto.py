"""Auto, the default: a committee of simple models, moved by known labels where there are any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tiebreak.errors import OptionError, note
from tiebreak.estimators import committee, gold_stage, publishing
from tiebreak.estimators.base import BayesEstimator
from tiebreak.estimators.committee import KINDS, VB, VOTES, FromVote, Member, Opinion
from tiebreak.estimators.gold_stage import GoldStage
from tiebreak.inference import (
    FIXED,
    CrowdModel,
    FitState,
    Inputs,
    Known,
    Problem,
    Rows,
    calibration,
    lay_out,
    rows_of,
    stages,
)
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.known import weight_of_gold
from tiebreak.inference.stages import FitOptions, Fitted, Scored, Start
from tiebreak.inference.tasks import of_shares, with_log_prior
from tiebreak.inference.tasks.coupling.plan import LinkReport
from tiebreak.inference.workers import PLAIN, SCALE
from tiebreak.kernels.arrays import likeliest, majority
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.links import graph as link_graph
from tiebreak.options import AUTO, ExactLinkOptions, check_common

# Of all tasks: where kinds differs from the votes on so many, it is in another mode. On the ten
# datasets and five of six juries it differs on .15 at most, on the sixth, ws_trec, on .48.
SPLIT = 0.25
SHOWN = 20  # tasks to label, named in a note


@dataclass(kw_only=True, eq=False, repr=False)
class Auto(BayesEstimator):
    """Infer true labels with a committee: the default, with or without links and gold.

    Its members are the votes, one step of the model from the votes (with class shares learnt, and
    with even ones), and a model of good, middling and flat workers fitted to the end. Their
    probabilities are averaged. Known labels move the average, the more of them the
    further; links join tasks in every member and once more at the end.

    Parameters
    ----------
    members
        Some of "votes", "first-step", "even", "kinds". `("votes", "first-step")` is the careful
        choice: it stays closest to the votes, and gains less where workers differ much.
    class_prior, confusion_prior, task_model, trust, scale
        As in `VariationalBayes`. On a scale the model of every member is that of the scale, and
        the member that is fitted to the end is called "scale".
    dependence
        How much errors of workers on one task are shared, 0 to 1: of the model that only the stage
        of gold hears, and of what one more vote is worth. The average itself is not scaled by it.
    link_options, on_contradiction
        As in `VariationalBayes`; links are inferred exactly.
    tol, max_iter, accelerate, backend, n_threads
        As in `VariationalBayes`: of the member that is fitted to the end.

    Attributes
    ----------
    labels_, probabilities_, violations_
        As in `VariationalBayes`.
    classifier_, classifier_weight_, classifier_gain_, classifier_probabilities_
        As in `VariationalBayes`.
    members_
        Name, weight and, for each, how many labels it alone would give otherwise than the votes.
    from_vote_
        `n_differ` labels differ from the majority vote; the model expects `expected_right` more of
        them to be right than of the vote's. Known tasks are not counted.
    confusion_, class_prior_
        Workers and classes as the probabilities show them.
    weights_, weight_intervals_
        With gold: (n_workers,) the vote that gold adds to each worker's word; (n_workers, 2) where
        it lies with 95 %. None without gold.
    best_worker_
        With gold: the worker who is expected to be right most often; None without.
    bounds_, n_iter_, converged_
        Of the member that is fitted to the end.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(200, 6, 2, responses_per_task=6, shared=0.5, random_state=0)
    >>> auto = tb.Auto().fit(crowd.responses)
    >>> [member.name for member in auto.members_]
    ['votes', 'first-step', 'even', 'kinds']
    """

    members_: tuple[Member, ...] = field(init=False)
    from_vote_: FromVote = field(init=False)
    weights_: Floats | None = field(init=False)
    weight_intervals_: Floats | None = field(init=False)
    best_worker_: Any = field(init=False)
    link_report_: LinkReport | None = field(init=False)
    _opinions: tuple[Opinion, ...] = field(init=False)
    _gold_stage: GoldStage | None = field(init=False, default=None)
    _may_find = ("calibration_", "link_report_", "doubtful_links_")

    members: tuple[str, ...] = committee.MEMBERS

    def fit(
        self,
        responses: Any,
        *,
        links: Any = None,
        gold: Any = None,
        start: Any = None,
        features: Any = None,
        constraints: Any = None,
        sequences: Any = None,
        pairs: Any = False,
    ) -> Self:
        """Fit to responses and, if given, links and gold; keep constraints.

        A committee begins at the votes: from any `start` it would come to the same. `features` as
        in `VariationalBayes`: the classifier is the class prior of each task for every member.
        So is the ranking of verdicts on `pairs`. Sequences are refused: `VariationalBayes` chooses
        among models of them.
        """
        if sequences is not None:
            raise OptionError("no-committee-of-sequences")
        check_common(self.get_params())
        self._check_scale()
        names = committee.require_members(self.members)
        options = ExactLinkOptions() if self.link_options is None else self.link_options
        if not isinstance(options, ExactLinkOptions):
            raise OptionError("exact-links-only", estimator=type(self).__name__, value=options)
        about = None
        if pairs:
            responses, about = self._as_pairs(responses, pairs, features)
        inputs = self._read_inputs(responses, links, gold, features, constraints)
        inputs = inputs._replace(pairs=about)
        crowd = inputs.responses
        n_classes = crowd.n_classes
        to_end = KINDS
        if inputs.scale is not None:
            to_end = SCALE
            names = tuple(SCALE if name == KINDS else name for name in names)
        learnt = self._learn_prior(inputs)
        rows = rows_of(inputs, alone=learnt is not None)
        implied = rows.implied
        units = committee.join_must_linked(rows, n_classes)

        # Ask every member; nobody hears known labels.
        near = self._plain_problem(PLAIN, units, inputs)
        shares = near.tasks.shares
        model = CrowdModel(shares, near.workers)
        step = near.implied(near.votes())
        prior = None
        if learnt is not None:
            prior = committee.prior_of_units(learnt.log_prior, rows, units)
            near = with_log_prior(near, prior)
        said = {VOTES: committee.by_votes(near.rows, n_classes, prior)}
        said |= committee.by_step(near, step)
        opinions = {name: Opinion(name, 1.0, model, step) for name in said}
        opinions[VOTES] = Opinion(VOTES, 1.0, None, None)
        whole = self._plain_problem(PLAIN, rows, inputs)
        state = FitState(whole.votes(), step, converged=True)
        if to_end in names:
            whole = self._plain_problem(to_end, rows, inputs)
            of_kinds = CrowdModel(whole.tasks.shares, whole.workers)
            if learnt is not None:
                whole = with_log_prior(whole, learnt.log_prior)
            state, q = self._fit_to_end(whole, rows, options)
            said[to_end] = units.to_rows(q)
            share_linked = 0.0 if implied is None else len(implied.given.tasks()) / crowd.n_tasks
            weight = committee.weight_of_kinds(share_linked)
            alpha, *_, beta = of_shares(state.parameters, whole.tasks.shares, of_kinds.states)
            opinions[to_end] = Opinion(to_end, weight, of_kinds, (alpha, beta))
        heard = [opinions[name] for name in names]
        p = committee.pool(said, {each.name: each.weight for each in heard})

        stage = None
        if units.gold is not None:
            ended = self._climb(near, units)
            said[VB] = committee.by_model(near, ended.parameters, self.dependence)
            end = of_shares(ended.parameters, near.tasks.shares, shares)
            heard.append(Opinion(VB, 0.0, model, end))
            of_each = [p, *(said[each.name] for each in heard if each.name != VOTES)]
            seen = np.unique(units.gold.label)
            if len(seen) < 2 <= n_classes:
                note("gold-of-one-class", name=crowd.classes[int(seen[0])])
            words = None
            if inputs.scale is not None:  # each response as the channel of a fit with gold
                known = Known.of(units.gold, weight_of_gold(AUTO, inputs))
                how = FitOptions(self._stopping, weight=known.weight)
                _, with_gold, _ = stages.fit_gold(near, ended, known, Start(ended), how)
                channels = near.workers.confusion(with_gold.parameters[-1]).transpose(0, 2, 1)
                words = gold_stage.centred(np.log(channels)).reshape(-1, n_classes)
            given = of_each, near.rows, units.gold, words
            stage = gold_stage.learn(*given, knows_shares=shares.read == FIXED)
            p = stage.probabilities(of_each, near.rows, near.backend)

        # From the pool on the stages are those of every fit.
        q, known = units.to_tasks(p), Known.of(rows.gold)
        problem, of_known = whole, None if rows.gold is None else q[rows.gold.task]
        if implied is None:
            q = known.clamp(q)
            scored = Scored(q=q, label=likeliest(q)[0])
        else:
            scores = np.log(np.maximum(q, 1e-300))
            if units.first is not None:  # of a unit once: they add up
                scores[~np.isin(np.arange(len(scores)), units.first)] = 0.0
            given_links = implied, options, self._stopping
            problem, scored = stages.join_scores(whole, state, scores, *given_links)
        plain = self._plain_problem(PLAIN, rows, inputs)
        implied_by_q = plain.implied(scored.q)
        state = state._replace(parameters=implied_by_q, q=scored.q)
        fitted = Fitted(inputs, rows, plain, implied_by_q, problem, known, state)
        # Not what scaled these probabilities, which nothing does: what decisions and routes expect
        # of one more vote, and of errors that nobody can see without gold.
        scored = scored.adding(calibration_=Calibration(self.dependence))
        scored = stages.constrain(inputs, problem, scored, of_known)
        publishing.publish(self, fitted, scored)
        publishing.note_doubts(fitted, self.labels_.label, self.dependence)
        self._opinions = tuple(heard)
        self._gold_stage = stage
        labels = {name: rows.to_tasks(units.to_tasks(likeliest(said[name])[0])) for name in names}
        self._publish_members(labels, inputs)
        self._warn_unconverged(self.tol)
        return self

    def _fit_to_end(
        self, problem: Problem, rows: Rows, options: ExactLinkOptions
    ) -> tuple[FitState, Floats]:
        """Fit to responses and links; return class probabilities by row too."""
        state = self._climb(problem, rows)
        implied = rows.implied
        if implied is not None:
            if rows.gold is not None:  # what follows from links without known labels
                links = implied.given
                firm = np.zeros(links.n_links, dtype=bool) if options.is_soft else links.is_hard
                implied = link_graph.imply(links, problem.n_classes, firm=firm)
            how = FitOptions(self._stopping, options, None, "none", self.dependence)
            begin = Start(state)
            problem, state, _ = stages.fit_links(problem, state, implied, options, begin, how)
        return state, calibration.probabilities(problem, state, None)[0]

    def _climb(self, problem: Problem, rows: Rows) -> FitState:
        """Fit to responses alone."""
        others = problem.workers.starts(rows.laid, rows.copies)
        start = Start(FitState(problem.votes()))
        return stages.fit_plain(problem, start, self._stopping, others, is_alone=True)[0]

    def _publish_members(self, labels: dict[str, Codes], inputs: Inputs) -> None:
        """Say what each member would do alone, how the labels differ from the vote, and why."""
        crowd = inputs.responses
        votes = majority(lay_out(crowd), crowd.n_classes)
        weight = {each.name: each.weight for each in self._opinions}
        total = sum(weight.values())
        differs = {name: committee.differs_from_votes(votes, of) for name, of in labels.items()}
        self.members_ = tuple(
            Member(name, weight[name] / total, int(each.sum())) for name, each in differs.items()
        )
        is_known = np.zeros(crowd.n_tasks, dtype=bool)
        if inputs.gold_codes is not None:
            is_known[inputs.gold_codes.task] = True
        elif KINDS in differs and crowd.n_tasks >= publishing.LEAST_TASKS:
            at = np.flatnonzero(differs[KINDS])
            if len(at) >= SPLIT * crowd.n_tasks:
                ordered = np.sort(self.probabilities_[at], axis=1)
                closest = at[np.argsort(ordered[:, -1] - ordered[:, -2], kind="stable")]
                tasks = [self.tasks_[int(i)] for i in closest[: SHOWN + 1]]
                sizes = {"n_differ": len(at), "n_tasks": crowd.n_tasks, "shown": SHOWN}
                note("members-disagree", tasks=tasks, **sizes)
        self.from_vote_ = committee.compare_with_votes(
            votes, self.probabilities_, self.labels_.label, is_known
        )
        self.weights_ = self.weight_intervals_ = self.best_worker_ = None
        stage = self._gold_stage
        if stage is not None:
            self.weights_ = stage.weights()
            self.weight_intervals_ = stage.weight_intervals()
            self.best_worker_ = crowd.workers[int(stage.best.accuracy().argmax())]
