"""Variational Bayes with links and gold: VB, VB-LC and VB-ILC of the paper."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from tiebreak.errors import NotFittedError, OptionError, note
from tiebreak.gold import GoldCodes
from tiebreak.inference import dirichlet, mean_field, priors, response_patterns, spectral, vb
from tiebreak.inference.estimator import Estimator, start_from
from tiebreak.inference.exact_links import fit as joint
from tiebreak.inference.exact_links.fit import JointOptions, Start
from tiebreak.inference.exact_links.plan import LinkReport
from tiebreak.inference.inputs import Inputs, read_and_check_inputs
from tiebreak.inference.link_errors.suspect import (
    LinkErrors,
    doubtful,
    errors_by_source,
)
from tiebreak.inference.mean_field import GridPoint, MeanField
from tiebreak.inference.options import check_options
from tiebreak.inference.priors import ClassPrior, ConfusionPrior
from tiebreak.inference.response_patterns import Rows
from tiebreak.inference.vb import Problem, Run
from tiebreak.inference.warm_start import Ended
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import ByTask, Floats
from tiebreak.kernels.threads import default_threads
from tiebreak.link_graph import Implications, LinkCodes
from tiebreak.links import OnContradiction
from tiebreak.responses import Responses


class Found(NamedTuple):
    """What a fit found: where it ended, and linked tasks with labels that were decoded jointly."""

    run: Run
    decoded: GoldCodes | None
    end: Floats  # q before any temperature


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
        "exact": linked tasks are inferred jointly, and links without weight always hold.
        "mean-field": the paper's, where links pull and push with one strength.
    link_error
        How often links without weight are wrong (exact links only). None: never, they are hard.
        A number such as 0.02: soft. "auto", the choice for doubtful links: two rates estimated
        before the fit, for same tasks and for different ones; near 0.02 where links are few.
        "asked": the same for answers to questions that `selection` chose, which count more.
        "learn": rates for each source (`who` in links), learnt in the fit, to compare sources.
    link_error_prior
        Pseudo-answers (wrong, right) that learnt error rates start from.
    decode
        "joint": labels break no hard link. "marginal": the likeliest class of each task. None:
        joint where links are hard.
    calibrate
        Whether to scale scores once at the end by a temperature fitted to links and gold. None:
        where they are trusted, that is without soft links.
    link_strength
        For mean-field: a number, or "grid" (also None), the strength of twelve whose labels break
        fewest links.
    schedule
        For mean-field: "in-turn" (the bound never falls), "parallel" (the paper's), "damped".
    closure
        For mean-field: whether links imply others: a = b, b = c give a = c; a = b, b ≠ c give
        a ≠ c. Links with weights are used as given. Exact links always imply what follows.
    on_contradiction
        "error", or "drop": leave out cannot-links whose tasks must-links join. Soft links may
        contradict each other.
    init
        "majority"; "spectral", from moments of the votes (majority where they do not suffice, with
        a note that says why); probabilities (n_tasks, n_classes) in the order of `tasks_`; or a
        model fitted to the same responses, with fewer links or labels, to go on from its end.
    tol, max_iter
        Stop when no probability moves by `tol`, or after `max_iter` sweeps. With `tol=0` exactly
        `max_iter` sweeps are made.
    accelerate
        Whether sweeps may leap ahead, so that fewer are needed; the bound never falls. Sweeps
        over links, and those of `tol=0`, are plain.
    backend, n_threads
        "numpy", "numba", or "auto": compiled code where the input is large enough to repay it.
    random_state
        Seeds `init="spectral"`, which draws groups of workers; nothing else draws.

    Attributes
    ----------
    labels_, probabilities_
        The labels; (n_tasks, n_classes), in the order of `tasks_` and `classes_`.
    confusion_, class_prior_
        E[θ], (n_workers, truth, answer); E[π], (n_classes,).
    bounds_, n_iter_, converged_
        The bound at the start of the last ascent and after each of its sweeps.
    violations_
        The links that the labels break, or None without links.
    doubtful_links_
        The soft links that are likelier wrong than right, most doubtful first, or None.
    link_report_
        How many components of linked tasks were settled exactly and how many approximately.
    link_errors_
        Error rates of links, estimated or learnt, by source, or None.
    temperature_
        The temperature that scaled the scores at the end, or None.
    link_strength_, link_grid_
        For mean-field: the strength used; what each strength of the grid gave, or None.

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
    link_report_: LinkReport | None
    link_errors_: LinkErrors | None
    _ended: Ended

    supports_adaptive_selection = True

    def __init__(
        self,
        *,
        class_prior: ClassPrior = 1.0,
        confusion_prior: ConfusionPrior = "diagonal",
        link_inference: str = "exact",
        link_error: float | str | None = None,
        link_error_prior: tuple[float, float] = (1.0, 19.0),
        decode: str | None = None,
        calibrate: bool | None = None,
        link_strength: float | str | None = None,
        schedule: str = "in-turn",
        closure: bool = True,
        on_contradiction: OnContradiction = "error",
        init: str | Floats | VariationalBayes = "majority",
        tol: float = 1e-6,
        max_iter: int = 500,
        accelerate: bool = True,
        backend: str = "auto",
        n_threads: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.class_prior = class_prior
        self.confusion_prior = confusion_prior
        self.link_inference = link_inference
        self.link_error = link_error
        self.link_error_prior = link_error_prior
        self.decode = decode
        self.calibrate = calibrate
        self.link_strength = link_strength
        self.schedule = schedule
        self.closure = closure
        self.on_contradiction = on_contradiction
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.backend = backend
        self.n_threads = n_threads
        self.random_state = random_state

    @property
    def links_may_err(self) -> bool:
        """Whether links without weight count as fallible."""
        return self.link_error is not None

    def fit(self, responses: Any, *, links: Any = None, gold: Any = None) -> Self:
        """Fit to responses and, if given, links and gold."""
        check_options(self)
        inputs = read_and_check_inputs(
            responses,
            links,
            gold,
            on_contradiction=self.on_contradiction,
            soft_links=self.link_error is not None,
            may_break=self.link_inference == "mean-field",
        )
        self._forget()
        whole = self._lay_out(inputs.responses)
        rows, q = self._rows(whole, inputs)
        by_row = inputs._replace(
            link_codes=rows.links(inputs.link_codes),
            gold_codes=rows.gold(inputs.gold_codes),
            implied=rows.implied(inputs.implied),
        )
        problem = self._problem(rows, inputs)
        start = self._start(problem, q, by_row)
        run, decoded, end = self._fit_rows(problem, start, by_row)
        self._ended = Ended(
            inputs.responses,
            whole,
            start.plain,
            rows.spread(end),
            vb.counted(problem, run.beliefs),
            rows.row is not None,
        )
        label, top = problem.backend.likeliest(run.q)
        if decoded is not None:
            label[decoded.task] = decoded.label
            top[decoded.task] = run.q[decoded.task, decoded.label]
        self._keep(run)
        self._publish(inputs, *(rows.spread(each) for each in (run.q, label, top)))
        if decoded is not None:
            self._warn_broken()
        self._warn_unsettled(self.tol)
        return self

    def _fit_rows(self, problem: Problem, start: Start, inputs: Inputs) -> Found:
        if inputs.link_codes is not None and problem.n_classes > 1:
            fit = self._fit_exact if self.link_inference == "exact" else self._fit_mean_field
            return fit(problem, start, inputs, inputs.link_codes)
        if inputs.gold_codes is not None:
            return self._fit_gold(problem, start, inputs.gold_codes)
        return Found(start.run, None, start.run.q)

    def _forget(self) -> None:
        self.link_strength_ = self.link_grid_ = self.link_report_ = None
        self.link_errors_ = self.doubtful_links_ = self.temperature_ = None

    def _lay_out(self, crowd: Responses) -> ByTask:
        """Lay out responses by task, unless an earlier model of the same ones did."""
        begin = self._before(crowd)
        if begin is not None and begin.saw(crowd):
            return begin.tasks
        return vb.lay_out(crowd, vb.roles(crowd.n_tasks, None, None))

    def _rows(self, tasks: ByTask, inputs: Inputs) -> tuple[Rows, Floats | None]:
        """Collapse equal rows; return also where q starts, if not by votes."""
        crowd, whole = inputs.responses, Rows(tasks)
        q, begin = None, self._before(crowd)
        if begin is not None:
            q = begin.q
        elif not isinstance(self.init, str):
            q = start_from(self.init, crowd)
        elif self.init == "spectral":
            q = spectral.start(self._problem(whole, inputs), self.random_state)
        if begin is not None and begin.saw(crowd) and not begin.collapses:
            return whole, q
        alone = response_patterns.special(crowd.n_tasks, inputs.link_codes, inputs.gold_codes)
        rows = response_patterns.rows_of(whole.tasks, crowd.n_classes, alone, q)
        return rows, None if q is None else rows.gather(q)

    def _problem(self, rows: Rows, inputs: Inputs) -> Problem:
        """Set up plain VB: no links, nothing known."""
        crowd = inputs.responses
        n_linked = 0 if inputs.link_codes is None else 2 * len(inputs.link_codes.left)
        return Problem(
            rows.tasks,
            priors.class_prior(self.class_prior, crowd.n_classes),
            priors.confusion_prior(self.confusion_prior, crowd.workers, crowd.n_classes),
            choose_backend(self.backend, len(rows.tasks.code), n_linked),
            self.n_threads or default_threads(),
            copies=rows.copies,
        )

    def _start(self, problem: Problem, q: Floats | None, inputs: Inputs) -> Start:
        """Fit plain VB: links and gold start from what it finds, as in the paper.

        Probabilities given as `init` are taken as they are where links or gold follow, and so is
        the end of an earlier model, with what plain VB believed there.
        """
        plain = inputs.link_codes is None and inputs.gold_codes is None
        if q is None:
            q = vb.majority(problem.tasks, problem.n_classes)
        elif not isinstance(self.init, str) and not plain:
            return self._start_at(problem, q, inputs.responses)
        run = self._ascend(problem, q)
        return Start(run, run.beliefs)

    def _start_at(self, problem: Problem, q: Floats, crowd: Responses) -> Start:
        begin = self._before(crowd)
        if begin is not None and begin.saw(crowd):
            implied = begin.implied(problem)
        else:
            implied = vb.first_beliefs(problem, q)
        run = Run(q, implied, [], 0, converged=True)
        if begin is None:
            return Start(run, implied)
        return Start(run, begin.plain, is_warm=True)

    def _before(self, crowd: Responses) -> Ended | None:
        """Return where the model given as `init` ended; None where that is something else."""
        if not isinstance(self.init, VariationalBayes):
            return None
        if not hasattr(self.init, "_ended"):
            raise NotFittedError("init is a model that was not fitted yet. Call its fit first.")
        self.init._ended.require_names(crowd)
        return self.init._ended

    def _ascend(self, problem: Problem, q: Floats) -> Run:
        return vb.ascend(
            problem, q, tol=self.tol, max_iter=self.max_iter, accelerate=self.accelerate
        )

    def _fit_gold(self, plain: Problem, start: Start, gold: GoldCodes) -> Found:
        run = self._ascend(_with_known(plain, gold), vb.clamp(start.run.q, gold))
        end = run.q
        if self.calibrate is not False:
            run, self.temperature_ = joint.calibrated(plain, start, run, gold)
        return Found(run, None, end)

    def _fit_exact(self, plain: Problem, start: Start, inputs: Inputs, links: LinkCodes) -> Found:
        if self.link_error in joint.FOUND and links.weight is not None:
            raise OptionError(
                f"Weights already say how sure each link is, so link_error={self.link_error!r} "
                "has nothing to find. Leave link_error out, or remove the weights."
            )
        all_hard = self.link_error is None and links.weight is None
        some_hard = self.link_error is None and bool(links.is_hard.any())
        options = JointOptions(
            link_error=self.link_error,
            error_prior=self.link_error_prior,
            decode_jointly=some_hard if self.decode is None else self.decode == "joint",
            calibrate=all_hard if self.calibrate is None else self.calibrate,
            tol=self.tol,
            max_iter=self.max_iter,
            accelerate=self.accelerate,
        )
        assert inputs.implied is not None  # made with the codes of links
        fit = joint.fit_joint(plain, start, links, inputs.implied, inputs.gold_codes, options)
        self.link_report_, self.temperature_ = fit.report, fit.temperature
        self.doubtful_links_ = doubtful(inputs.links, links, fit.wrong)
        if fit.rates is not None:
            self.link_errors_ = errors_by_source(inputs.links, fit.rates)
        return Found(fit.run, fit.decoded, fit.end)

    def _fit_mean_field(
        self, plain: Problem, begin: Start, inputs: Inputs, links: LinkCodes
    ) -> Found:
        assert inputs.implied is not None  # made with the codes of links
        gold = inputs.gold_codes
        if self.closure and links.weight is None:
            gold = None if gold is None else _with_implied(gold, inputs.implied)
            groups = mean_field.closed_groups(inputs.implied)
        else:
            groups = mean_field.given_groups(links)
        problem = _with_known(plain, gold, linked=groups.task)

        def ascent(strength: float, start: Floats) -> Run:
            model = MeanField(groups, strength, problem.tasks.role, plain.backend, self.schedule)
            return self._ascend(problem._replace(links=model), start)

        start = vb.clamp(begin.run.q, gold)
        in_turn = self.schedule == "in-turn"
        if self.link_strength is None or isinstance(self.link_strength, str):
            run, strength, grid = mean_field.choose_strength(ascent, start, links, warm=in_turn)
            self.link_strength_, self.link_grid_ = strength, grid
            return Found(run, None, run.q)
        self.link_strength_ = float(self.link_strength)
        if in_turn:
            run = mean_field.approach_strength(ascent, start, self.link_strength_)
        else:
            run = ascent(self.link_strength_, start)
        return Found(run, None, run.q)

    def _keep(self, run: Run) -> None:
        self.class_prior_ = dirichlet.mean(run.beliefs.alpha)
        by_answer = dirichlet.mean(run.beliefs.beta, axis=1)
        self.confusion_ = np.ascontiguousarray(by_answer.transpose(0, 2, 1))
        self.bounds_, self.n_iter_ = run.bounds, run.n_sweeps
        self.converged_ = run.converged

    def _warn_broken(self) -> None:
        """Say so where joint decoding found no labelling that breaks no hard link."""
        if not self.violations_ or self.on_contradiction == "drop":
            return
        hard = self.violations_.weight is None or bool(np.isnan(self.violations_.weight).any())
        if hard and self.link_error is None:
            note(f"No labelling was found that breaks no link: {len(self.violations_)} are broken.")


def _with_known(problem: Problem, gold: GoldCodes | None, linked: Any = None) -> Problem:
    """Return the problem with roles for known and linked tasks."""
    role = vb.roles(problem.tasks.n_tasks, gold, linked)
    return problem._replace(tasks=problem.tasks._replace(role=role))


def _with_implied(gold: GoldCodes, implied: Implications) -> GoldCodes:
    """Add to gold what links make of it: a known task settles its group, and so on."""
    task, label = implied.known_labels()
    unlinked = ~np.isin(gold.task, implied.task)
    return GoldCodes(
        np.concatenate([task, gold.task[unlinked]]), np.concatenate([label, gold.label[unlinked]])
    )
