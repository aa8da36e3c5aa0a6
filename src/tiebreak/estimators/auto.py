"""Auto, the default: a committee of simple models, moved by known labels where there are any."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from tiebreak.data.gold import GoldCodes
from tiebreak.errors import note
from tiebreak.estimators import committee, gold_stage, publishing
from tiebreak.estimators.base import BayesEstimator, require_exact_links
from tiebreak.estimators.committee import (
    KINDS,
    VB,
    VOTES,
    FromVote,
    Member,
    Opinion,
)
from tiebreak.estimators.gold_stage import GoldStage
from tiebreak.estimators.publishing import Fitted
from tiebreak.inference import dirichlet, stages, vb
from tiebreak.inference.calibration import DEPENDENCE, Calibration, Honesty
from tiebreak.inference.dirichlet import FIXED
from tiebreak.inference.inputs import Inputs
from tiebreak.inference.known import clamp
from tiebreak.inference.tasks.coupling import fit as exact_links
from tiebreak.inference.tasks.coupling.plan import LinkReport
from tiebreak.inference.vb import Fit, Patterns, Problem, Run
from tiebreak.inference.workers import PLAIN, CrowdModel
from tiebreak.kernels.arrays import likeliest
from tiebreak.kernels.contract import where
from tiebreak.kernels.layout import Floats, Mask
from tiebreak.links import OnContradiction
from tiebreak.links import graph as link_graph
from tiebreak.options import ExactLinkOptions, LinkOptions, check_common
from tiebreak.wording import counted, first_few

# Of all tasks: where kinds differs from the votes on so many, it is in another mode. On the ten
# datasets and five of six juries it differs on .15 at most, on the sixth, ws_trec, on .48.
SPLIT = 0.25
SHOWN = 20  # tasks to label, named in a note


class Auto(BayesEstimator):
    """Infer true labels with a committee: the default, with or without links and gold.

    Its members are the votes, one step of the model from the votes (with class shares learnt, and
    with even ones), and a model of good, middling and flat workers fitted to the end. Their
    probabilities are averaged [eq:committee]. Known labels move the average, the more of them the
    further [eq:committee-gold]; links join tasks in every member and once more at the end.

    Parameters
    ----------
    members
        Some of "votes", "first-step", "even", "kinds". `("votes", "first-step")` is the careful
        choice: it stays closest to the votes, and gains less where workers differ much.
    class_prior, confusion_prior, trust
        As in `VariationalBayes`.
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

    members_: tuple[Member, ...]
    from_vote_: FromVote
    weights_: Floats | None
    weight_intervals_: Floats | None
    best_worker_: Any
    link_report_: LinkReport | None
    _opinions: tuple[Opinion, ...]
    _gold_stage: GoldStage | None = None

    supports_adaptive_selection = False

    def __init__(
        self,
        *,
        members: tuple[str, ...] = tuple(committee.MEMBERS),
        class_prior: dirichlet.ClassPriorOption = 1.0,
        confusion_prior: dirichlet.ConfusionPrior = "diagonal",
        trust: dirichlet.Trust | None = None,
        dependence: float = DEPENDENCE,
        link_options: LinkOptions | None = None,
        on_contradiction: OnContradiction = "error",
        tol: float = 1e-6,
        max_iter: int = 500,
        accelerate: bool = True,
        backend: str = "auto",
        n_threads: int | None = None,
    ) -> None:
        self.members = members
        self.class_prior = class_prior
        self.confusion_prior = confusion_prior
        self.trust = trust
        self.dependence = dependence
        self.link_options = link_options
        self.on_contradiction = on_contradiction
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.backend = backend
        self.n_threads = n_threads

    def fit(
        self, responses: Any, *, links: Any = None, gold: Any = None, start: Any = None
    ) -> Self:
        """Fit to responses and, if given, links and gold.

        A committee begins at the votes: from any `start` it would come to the same.
        """
        check_common(self.get_params())
        names = committee.require_members(self.members)
        options = require_exact_links(self.link_options, type(self).__name__)
        inputs = self._read_inputs(responses, links, gold)
        rows = stages.patterns_of(inputs, vb.lay_out(inputs.responses), None)
        by_row = stages.to_patterns(inputs, rows)
        implied = by_row.implied if inputs.responses.n_classes > 1 else None
        units = committee.join_must_linked(rows, implied, inputs.responses.n_classes)
        made = self._hear(names, rows, units, inputs, by_row, options)
        p = committee.pool(made.said, made.weight)
        known = _of_units(by_row.gold_codes, units)
        if known is not None:
            p = self._move_by_gold(p, made, units, known, inputs)
        self._join_and_publish(p, made, rows, units, inputs, by_row, options)
        self._publish_members(made, rows, units, inputs)
        self._warn_unsettled(self.tol)
        return self

    def _hear(
        self,
        names: tuple[str, ...],
        rows: Patterns,
        units: Patterns,
        inputs: Inputs,
        by_row: Inputs,
        options: ExactLinkOptions,
    ) -> _Heard:
        """Ask every member; nobody hears known labels."""
        n_classes = inputs.responses.n_classes
        near = self._plain_problem(PLAIN, units, inputs)
        model = CrowdModel(near.states, near.workers)
        step = committee.one_step(near)
        by_step = committee.by_step(near, step)
        said = {}
        opinions = []
        run = Run(vb.majority(rows.tasks, n_classes), step, [], 0, converged=True)
        whole = self._plain_problem(PLAIN, rows, inputs)
        links = by_row.link_codes
        share_linked = 0.0 if links is None else len(links.tasks()) / inputs.responses.n_tasks
        weight = {
            name: committee.weight_of_kinds(share_linked) if name == KINDS else 1.0
            for name in names
        }
        for name in names:
            if name == VOTES:
                said[name] = committee.by_votes(units.tasks, n_classes)
                opinions.append(Opinion(name, weight[name], None, None))
            elif name in by_step:
                said[name] = by_step[name]
                opinions.append(Opinion(name, weight[name], model, step))
            else:
                whole, run, q = self._fit_to_end(name, rows, inputs, by_row, options)
                said[name] = units.to_patterns(q)
                of_kinds = CrowdModel(whole.states, whole.workers)
                opinions.append(Opinion(name, weight[name], of_kinds, run.beliefs))
        if by_row.gold_codes is not None:
            of_vb = vb.ascend(near, vb.majority(near.tasks, n_classes), **self._stopping._asdict())
            said[VB] = committee.by_model(near, of_vb.beliefs, self.dependence)
            opinions.append(Opinion(VB, 0.0, model, of_vb.beliefs))
        return _Heard(said, weight, opinions, near, whole, run)

    def _fit_to_end(
        self, name: str, rows: Patterns, inputs: Inputs, by_row: Inputs, options: ExactLinkOptions
    ) -> tuple[Problem, Run, Floats]:
        """Fit a worker model to responses and links; return its class probabilities by row too."""
        worker_model = committee.MEMBERS[name].worker_model
        assert worker_model is not None
        problem = self._plain_problem(worker_model, rows, inputs)
        q = vb.majority(problem.tasks, problem.n_classes)
        run = vb.ascend(problem, q, **self._stopping._asdict())
        links = by_row.link_codes
        if links is None or by_row.implied is None or problem.n_classes < 2:
            return problem, run, vb.class_probabilities(problem, run.q)
        implied = by_row.implied
        if by_row.gold_codes is not None:  # what follows from links without known labels
            firm = np.zeros(links.n_links, dtype=bool) if options.is_soft else links.is_hard
            implied = link_graph.imply(links, problem.n_classes, firm=firm)
        given = (links, implied, None, options, self._stopping, Honesty("none", self.dependence))
        found = exact_links.fit(problem, run, run.beliefs, *given)
        return problem, found.run, found.q

    def _move_by_gold(
        self, p: Floats, made: _Heard, units: Patterns, known: GoldCodes, inputs: Inputs
    ) -> Floats:
        """Learn from known labels, and return what the pool becomes."""
        classes = inputs.responses.classes
        seen = np.unique(known.label)
        if len(seen) < 2 <= len(classes):
            note(
                f"All gold is {classes[int(seen[0])]!r}: it says how sure to be, and nothing of "
                "workers or other classes. Label tasks of other classes too."
            )
        opinions = [p, *(q for name, q in made.said.items() if name != VOTES)]
        knows_shares = getattr(made.near.states, "read", None) == FIXED
        stage = gold_stage.learn(opinions, units.tasks, known, knows_shares=knows_shares)
        self._gold_stage = stage
        return stage.probabilities(opinions, units.tasks, made.near.backend)

    def _join_and_publish(
        self,
        p: Floats,
        made: _Heard,
        rows: Patterns,
        units: Patterns,
        inputs: Inputs,
        by_row: Inputs,
        options: ExactLinkOptions,
    ) -> None:
        """Join the pool by links, label tasks, and see workers by the probabilities."""
        links = by_row.link_codes
        gold = by_row.gold_codes
        n_classes = inputs.responses.n_classes
        if links is None or by_row.implied is None or n_classes < 2:
            q = clamp(np.array(units.to_tasks(p)), gold)
            found = Fit(made.run._replace(q=q), q)
        else:
            scores = np.log(np.maximum(units.to_tasks(p), 1e-300))
            if units.pattern is not None and units.representative is not None:
                is_first = np.zeros(len(scores), dtype=bool)
                is_first[units.representative] = True
                scores = np.where(is_first[:, None], scores, 0.0)  # of a unit once: they add up
            found = exact_links.fit_scores(
                made.whole, made.run, scores, links, by_row.implied, gold, options, self._stopping
            )
        plain = self._plain_problem(PLAIN, rows, inputs)
        beliefs = vb.implied_beliefs(plain, found.q)
        label, _ = likeliest(found.q)
        if found.decoded is not None:
            label[found.decoded.task] = found.decoded.label
        self.ran_on_ = where(plain.backend)
        # Not what scaled these probabilities, which nothing does: what decisions and routes expect
        # of one more vote, and of errors that nobody can see without gold.
        self.calibration_ = Calibration(self.dependence)
        self.class_prior_ = plain.states.mean(beliefs.alpha)
        self.confusion_ = vb.confusion(plain, beliefs)
        self.bounds_ = made.run.bounds
        self.n_iter_ = made.run.n_sweeps
        self.converged_ = made.run.converged
        self.link_report_ = found.link_report
        fitted = Fitted(inputs, by_row, plain, rows, beliefs, found)
        self.doubtful_links_ = publishing.doubtful_links(fitted)
        self._publish(inputs, rows.to_tasks(found.q), rows.to_tasks(label))
        may_break = self.on_contradiction == "drop" or self.link_error is not None
        if found.decoded is not None and not may_break:
            publishing.note_broken(self.violations_)
        publishing.note_doubts(fitted, self.labels_, self.dependence)

    def _publish_members(
        self, made: _Heard, rows: Patterns, units: Patterns, inputs: Inputs
    ) -> None:
        """Say what each member would do alone, how the labels differ from the vote, and why."""
        crowd = inputs.responses
        votes = vb.majority(vb.lay_out(crowd), crowd.n_classes)
        total = sum(made.weight.values())
        labels = {
            name: rows.to_tasks(units.to_tasks(likeliest(made.said[name])[0]))
            for name in made.weight
        }
        self.members_ = tuple(
            Member(
                name,
                weight / total,
                int(committee.differs_from_votes(votes, labels[name]).sum()),
            )
            for name, weight in made.weight.items()
        )
        is_known = np.zeros(crowd.n_tasks, dtype=bool)
        if inputs.gold_codes is not None:
            is_known[inputs.gold_codes.task] = True
        self.from_vote_ = committee.compare_with_votes(
            votes, self.probabilities_, self.labels_.label, is_known
        )
        if inputs.gold_codes is None and KINDS in labels:
            self._note_split(committee.differs_from_votes(votes, labels[KINDS]))
        self._opinions = tuple(made.opinions)
        stage = self._gold_stage if inputs.gold_codes is not None else None
        self._gold_stage = stage
        self.weights_ = None if stage is None else stage.weights()
        self.weight_intervals_ = None if stage is None else stage.weight_intervals()
        best = None if stage is None else int(stage.best.accuracy().argmax())
        self.best_worker_ = None if best is None else crowd.workers[best]

    def _note_split(self, differs: Mask) -> None:
        """Say so where the member that is fitted to the end left the votes on many tasks."""
        at = np.flatnonzero(differs)
        if len(differs) < publishing.LEAST_TASKS or len(at) < SPLIT * len(differs):
            return
        ordered = np.sort(self.probabilities_[at], axis=1)
        closest = at[np.argsort(ordered[:, -1] - ordered[:, -2], kind="stable")]
        names = first_few([repr(self.tasks_[int(i)]) for i in closest[: SHOWN + 1]], SHOWN)
        note(
            f"The members disagree: kinds gives {counted(len(at), 'task')} of {len(differs):,} "
            "another label than the votes, and may be wrong as a whole. Known labels decide it "
            f"(gold). Label some of these: {names}."
        )


class _Heard(NamedTuple):
    """What the members say, by unit, and how they came to it."""

    said: dict[str, Floats]  # with gold, that of honest VB too
    weight: dict[str, float]  # of members
    opinions: list[Opinion]
    near: Problem  # confusion matrices over units
    whole: Problem  # of the member that is fitted to the end, over rows
    run: Run  # its end


def _of_units(gold: GoldCodes | None, units: Patterns) -> GoldCodes | None:
    """Return known units, each once and in order: that of gold is nothing."""
    if gold is None:
        return None
    task = gold.task if units.pattern is None else units.pattern[gold.task]
    unit, first = np.unique(task, return_index=True)
    return GoldCodes(unit.astype(np.int32), gold.label[first])
