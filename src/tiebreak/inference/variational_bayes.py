"""Variational Bayes with links and gold: VB, VB-LC and VB-ILC of the paper."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tiebreak import link_graph
from tiebreak.errors import OptionError
from tiebreak.gold import GoldCodes
from tiebreak.inference import dirichlet, mean_field, priors, vb
from tiebreak.inference.estimator import (
    Estimator,
    Inputs,
    require_tolerance,
    start_from,
    take_in,
)
from tiebreak.inference.mean_field import GridPoint, MeanField
from tiebreak.inference.priors import ClassPrior, ConfusionPrior
from tiebreak.inference.vb import Problem, Run
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Floats
from tiebreak.kernels.threads import default_threads
from tiebreak.link_graph import LinkCodes
from tiebreak.links import OnContradiction

LINK_INFERENCES = ("mean-field",)
STRENGTHS = ("grid",)


class VariationalBayes(Estimator):
    """Infer true labels from noisy responses, links between tasks and known labels.

    Every worker has a confusion matrix with a Dirichlet prior; links pull the classes of two
    tasks together or push them apart; known labels stay fixed. Fitted by coordinate ascent on
    the bound [eq:bound]. Without links and gold this is the paper's VB, with gold its VB-LC, with
    links its VB-ILC (as printed there: `schedule="parallel"`, `link_strength="grid"`).

    Parameters
    ----------
    class_prior
        Pseudo-counts of the classes: one number, or one a class.
    confusion_prior
        "diagonal" (K for the right answer, 1 for each wrong one), "uniform", (right, wrong), an
        array (truth, answer) or (worker, truth, answer), or a mapping of worker to array: what
        they did in earlier jobs.
    link_inference
        "mean-field", the paper's.
    link_strength
        A number, or "grid" (also None): the strength of twelve whose labels break fewest links.
    schedule
        "in-turn" (the bound never falls), "parallel" (the paper's), "damped".
    closure
        Whether links imply others: a = b, b = c give a = c; a = b, b ≠ c give a ≠ c. Links with
        weights are used as given.
    on_contradiction
        "error", or "drop": leave out cannot-links whose tasks must-links join.
    init
        "majority", or probabilities (n_tasks, n_classes) in the order of `tasks_`.
    tol, max_iter
        Stop when no probability moves by `tol`, or after `max_iter` sweeps. With `tol=0` exactly
        `max_iter` sweeps are made.
    backend, n_threads
        "numpy", "numba", or "auto": compiled code where the input is large enough to repay it.
    random_state
        Kept for starts that draw; the present ones do not.

    Attributes
    ----------
    labels_, probabilities_
        The labels; (n_tasks, n_classes), in the order of `tasks_` and `classes_`.
    confusion_, class_prior_
        E[θ], (n_workers, truth, answer); E[π], (n_classes,).
    bounds_, n_iter_, converged_
        The bound at the start of the last ascent and after each of its sweeps.
    link_strength_, link_grid_
        The strength used; what each strength of the grid gave, or None.
    violations_
        The links that the labels break, or None without links.

    Examples
    --------
    >>> import tiebreak as tb
    >>> votes = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x"), ("c", "bob", "x")]
    >>> apart = tb.Links.from_pairs(cannot=[("a", "b")])
    >>> tb.VariationalBayes().fit(votes, links=apart).labels_.best()
    {'a': 'x', 'b': 'y', 'c': 'x'}
    """

    link_strength_: float | None
    link_grid_: tuple[GridPoint, ...] | None

    def __init__(
        self,
        *,
        class_prior: ClassPrior = 1.0,
        confusion_prior: ConfusionPrior = "diagonal",
        link_inference: str = "mean-field",
        link_strength: float | str | None = None,
        schedule: str = "in-turn",
        closure: bool = True,
        on_contradiction: OnContradiction = "error",
        init: str | Floats = "majority",
        tol: float = 1e-6,
        max_iter: int = 500,
        backend: str = "auto",
        n_threads: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.class_prior = class_prior
        self.confusion_prior = confusion_prior
        self.link_inference = link_inference
        self.link_strength = link_strength
        self.schedule = schedule
        self.closure = closure
        self.on_contradiction = on_contradiction
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.backend = backend
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(self, responses: Any, *, links: Any = None, gold: Any = None) -> Self:
        """Fit to responses and, if given, links and gold."""
        self._check_options()
        inputs = take_in(responses, links, gold, on_contradiction=self.on_contradiction)
        problem = self._problem(inputs)
        q = self._start(problem, inputs)
        self.link_strength_, self.link_grid_ = None, None
        if inputs.link_codes is not None:
            run = self._fit_links(problem, q, inputs, inputs.link_codes)
        else:
            known = _with_known(problem, inputs.gold_codes)
            run = self._ascend(known, vb.clamp(q, inputs.gold_codes))
        self._keep(inputs, run)
        return self

    def _check_options(self) -> None:
        require_tolerance(self.tol, self.max_iter)
        if self.link_inference not in LINK_INFERENCES:
            raise OptionError.unknown("link_inference", self.link_inference, LINK_INFERENCES)
        if self.schedule not in mean_field.SCHEDULES:
            raise OptionError.unknown("schedule", self.schedule, mean_field.SCHEDULES)
        strength = self.link_strength
        if isinstance(strength, str):
            if strength not in STRENGTHS:
                raise OptionError.unknown("link_strength", strength, STRENGTHS)
        elif strength is not None and not (np.isfinite(strength) and strength >= 0.0):
            raise OptionError(f"link_strength must be 0 or more and finite; got {strength!r}.")

    def _problem(self, inputs: Inputs) -> Problem:
        """Lay out plain VB: no links, nothing known."""
        crowd = inputs.responses
        n_linked = 0 if inputs.link_codes is None else 2 * len(inputs.link_codes.left)
        return Problem(
            vb.lay_out(crowd, vb.roles(crowd.n_tasks, None, None)),
            priors.class_prior(self.class_prior, crowd.n_classes),
            priors.confusion_prior(self.confusion_prior, crowd.workers, crowd.n_classes),
            choose_backend(self.backend, crowd.n_responses, n_linked),
            self.n_threads or default_threads(),
        )

    def _start(self, problem: Problem, inputs: Inputs) -> Floats:
        """Return the start; links and gold start from what plain VB finds, as in the paper."""
        if not isinstance(self.init, str):
            return start_from(self.init, inputs.responses)
        if self.init != "majority":
            raise OptionError.unknown("init", self.init, ("majority", "an array"))
        q = vb.majority(problem.tasks, problem.n_classes)
        plain = inputs.link_codes is None and inputs.gold_codes is None
        return q if plain else self._ascend(problem, q).q

    def _ascend(self, problem: Problem, q: Floats) -> Run:
        return vb.ascend(problem, q, tol=self.tol, max_iter=self.max_iter)

    def _fit_links(self, plain: Problem, q: Floats, inputs: Inputs, links: LinkCodes) -> Run:
        n_tasks, n_classes = inputs.responses.n_tasks, inputs.responses.n_classes
        closure = self.closure and links.weight is None
        gold = inputs.gold_codes
        if closure and gold is not None:
            gold = _implied(link_graph.close(n_tasks, links), gold, n_classes)
        groups = mean_field.groups_of(links, n_tasks, closure=closure)
        problem = _with_known(plain, gold, linked=groups.task)

        def ascent(strength: float, start: Floats) -> Run:
            model = MeanField(groups, strength, problem.tasks.role, plain.backend, self.schedule)
            return self._ascend(problem._replace(links=model), start)

        start = vb.clamp(q, gold)
        if self.link_strength is None or isinstance(self.link_strength, str):
            warm = self.schedule == "in-turn"
            run, strength, grid = mean_field.choose_strength(ascent, start, links, warm=warm)
            self.link_strength_, self.link_grid_ = strength, grid
            return run
        self.link_strength_ = float(self.link_strength)
        if self.schedule == "in-turn":
            return mean_field.approach_strength(ascent, start, self.link_strength_)
        return ascent(self.link_strength_, start)

    def _keep(self, inputs: Inputs, run: Run) -> None:
        self.class_prior_ = dirichlet.mean(run.beliefs.alpha)
        by_answer = dirichlet.mean(run.beliefs.beta, axis=1)
        self.confusion_ = np.ascontiguousarray(by_answer.transpose(0, 2, 1))
        self.bounds_, self.n_iter_ = run.bounds, run.n_sweeps
        self.converged_ = run.converged
        self._publish(inputs, run.q)
        self._warn_unsettled(self.tol)


def _with_known(problem: Problem, gold: GoldCodes | None, linked: Any = None) -> Problem:
    """Return the problem with roles for known and linked tasks."""
    role = vb.roles(problem.tasks.n_tasks, gold, linked)
    return problem._replace(tasks=problem.tasks._replace(role=role))


def _implied(closed: link_graph.Closure, gold: GoldCodes, n_classes: int) -> GoldCodes:
    """Add to gold what links make of it: a known task settles its group, and so on."""
    known = link_graph.propagate(closed, gold.task, gold.label, n_classes)
    task = np.flatnonzero(known.group_class[closed.group] >= 0).astype(np.int32)
    return GoldCodes(task, known.group_class[closed.group[task]].astype(np.int32))
