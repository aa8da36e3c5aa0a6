"""The Gibbs sampler: what the model says exactly, but for the noise of draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from tiebreak.errors import ConvergenceWarning, OptionError, warn
from tiebreak.inference import dirichlet, vb
from tiebreak.inference.estimator import Estimator, start_from_model
from tiebreak.inference.gibbs import chains, mixing
from tiebreak.inference.gibbs.chains import Chain, DrawPriors, PosteriorMoments
from tiebreak.inference.gibbs.graph import DrawGraph, draw_graph
from tiebreak.inference.inputs import Inputs
from tiebreak.kernels.contract import choose_draw_backend
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.link_graph import violated
from tiebreak.links import OnContradiction
from tiebreak.options import ExactLinkOptions, check_common


class GibbsSampler(Estimator):
    """Draw true labels from their exact posterior, parameters integrated out.

    The model is that of `VariationalBayes` with confusion matrices (Kim and Ghahramani's BCC);
    tasks that links tie are drawn jointly where they are few. Slower than variational Bayes, and
    right in the limit of many draws: the oracle for intervals and probabilities. Probabilities are
    as the model says: they are not scaled by how much errors are shared.

    Parameters
    ----------
    class_prior, confusion_prior, trust, on_contradiction
        As in `VariationalBayes`.
    link_options
        `ExactLinkOptions(error=…)`: how often links without weight are wrong; None: never.
    n_chains, n_warmup, n_draws
        How many chains, each with so many sweeps that are dropped and so many that are kept.
    backend
        "numpy", "numba", or "auto": compiled code where there is enough to draw.
    progress
        Whether to show a bar on the terminal.
    random_state
        Seeds all draws; None is 0, so that the same input gives the same output.

    Attributes
    ----------
    labels_, probabilities_, confusion_, class_prior_
        The labels; (n_tasks, n_classes); E[θ], (n_workers, truth, answer); E[π], (n_classes,).
    r_hat_
        The largest R-hat over shares of classes and accuracies of workers: near 1 where all
        chains tell the same. Above 1.05 a warning says so, and `converged_` is False.

    Examples
    --------
    >>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("b", "bob", "y")]
    >>> GibbsSampler(n_draws=200, backend="numpy").fit(votes).labels_.best()
    {'a': 'x', 'b': 'y'}
    """

    r_hat_: float
    moments_: PosteriorMoments

    def __init__(
        self,
        *,
        class_prior: dirichlet.ClassPriorOption = 1.0,
        confusion_prior: dirichlet.ConfusionPrior = "diagonal",
        trust: dirichlet.Trust | None = None,
        link_options: ExactLinkOptions | None = None,
        on_contradiction: OnContradiction = "error",
        n_chains: int = 4,
        n_warmup: int = 200,
        n_draws: int = 500,
        backend: str = "auto",
        progress: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.class_prior = class_prior
        self.confusion_prior = confusion_prior
        self.trust = trust
        self.link_options = link_options
        self.on_contradiction = on_contradiction
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.backend = backend
        self.progress = progress
        self.random_state = random_state

    def fit(
        self, responses: Any, *, links: Any = None, gold: Any = None, start: Any = None
    ) -> Self:
        """Draw; chains begin at draws from the votes, or from the end of a fitted model."""
        error = self._checked_error()
        inputs = self._read_inputs(responses, links, gold)
        seeds = np.random.SeedSequence(self.random_state or 0).spawn(self.n_chains + 1)
        graph = draw_graph(inputs, error, np.random.default_rng(seeds[0]))
        found = self._run_chains(inputs, graph, self._start_of(inputs, start), seeds[1:])
        self._publish_chains(inputs, graph, found)
        return self

    def _checked_error(self) -> float | None:
        check_common(self.get_params())
        options = self.link_options
        if not isinstance(options, ExactLinkOptions | None):
            raise OptionError(
                f"link_options of GibbsSampler must be tb.ExactLinkOptions(…); got {options!r}."
            )
        error = self.link_error
        if isinstance(error, str):
            raise OptionError(
                "GibbsSampler cannot learn how often links are wrong. VariationalBayes can; or "
                "give a rate: tb.ExactLinkOptions(error=0.02)."
            )
        return error

    def _start_of(self, inputs: Inputs, start: Any) -> Floats:
        crowd = inputs.responses
        tasks = vb.lay_out(crowd, vb.roles(crowd.n_tasks, None, None))
        if start is not None:
            return start_from_model(start, crowd, tasks)
        return vb.majority(tasks, crowd.n_classes)

    def _run_chains(
        self,
        inputs: Inputs,
        graph: DrawGraph,
        q: Floats,
        seeds: list[np.random.SeedSequence],
    ) -> list[Chain]:
        crowd = inputs.responses
        prior = dirichlet.confusion_prior(self.confusion_prior, crowd.workers, crowd.n_classes)
        if self.trust is not None:
            prior = prior + dirichlet.trusted_answers(self.trust, crowd.workers, crowd.n_classes)
        shape = (crowd.n_workers, crowd.n_classes, crowd.n_classes)
        given = DrawPriors(
            dirichlet.class_prior(self.class_prior, crowd.n_classes), np.broadcast_to(prior, shape)
        )
        n_sweeps = self.n_warmup + self.n_draws
        n_items = len(graph.nodes.code) * n_sweeps * self.n_chains
        backend = choose_draw_backend(self.backend, n_items)
        with _progress_bar(n_sweeps * self.n_chains, shown=self.progress) as tick:
            return [
                chains.run_chain(
                    graph,
                    given,
                    graph.by_node(q),
                    backend,
                    np.random.default_rng(seed),
                    n_warmup=self.n_warmup,
                    n_draws=self.n_draws,
                    tick=tick,
                )
                for seed in seeds
            ]

    def _publish_chains(self, inputs: Inputs, graph: DrawGraph, found: list[Chain]) -> None:
        total = found[0].moments
        for chain in found[1:]:
            total = total.plus(chain.moments)
        self.moments_ = total.over(self.n_draws * len(found))
        self.confusion_ = np.ascontiguousarray(self.moments_.confusion.transpose(0, 2, 1))
        self.class_prior_ = self.moments_.class_prior
        self.bounds_ = []
        self.n_iter_ = self.n_warmup + self.n_draws
        r_hat = mixing.r_hat(np.stack([chain.watched for chain in found]))
        self.r_hat_ = float(r_hat.max())
        self.converged_ = self.r_hat_ <= mixing.MIXED
        marginal = np.mean([chain.marginal for chain in found], axis=0)
        q = graph.by_task(marginal)
        self._publish(inputs, q, _labels(inputs, graph, q, marginal, found))
        self._warn_unmixed()

    def _warn_unmixed(self) -> None:
        if self.converged_:
            return
        warn(
            f"The chains have not mixed: R-hat is {self.r_hat_:.2f}, above {mixing.MIXED}. They "
            "may sit in different modes, so that probabilities and intervals mean little. Raise "
            "n_draws and n_warmup; where that does not help, some gold labels settle which class "
            "is which.",
            ConvergenceWarning,
        )


def _labels(
    inputs: Inputs, graph: DrawGraph, q: Floats, marginal: Floats, found: list[Chain]
) -> Codes:
    """Return the likeliest class of each task; where these break hard links, a drawn labelling.

    Draws keep all hard links. A component whose likeliest classes break one takes, of the last
    draws of the chains, the one whose classes are likeliest.
    """
    label: Codes = q.argmax(axis=1).astype(np.int32)
    given = inputs.link_codes
    if given is None or graph.feasible is None:
        return label
    broken = violated(label, given) & given.is_hard
    node = graph.node_of_task
    wrong = np.isin(graph.component, graph.component[node[given.left[broken]]])
    if not wrong.any():
        return label
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(marginal), -1e3)  # a class that one chain alone has drawn
    n_components = int(graph.component.max()) + 1
    nodes = np.arange(len(marginal))
    scores = [
        np.bincount(graph.component, weights=logs[nodes, chain.state], minlength=n_components)
        for chain in found
    ]
    best = np.argmax(scores, axis=0)[graph.component]
    state = np.stack([chain.state for chain in found])[best, nodes]
    chosen = wrong[node]
    label[chosen] = (state[node] ^ graph.flip_of_task)[chosen]
    return label


@contextmanager
def _progress_bar(n_sweeps: int, *, shown: bool) -> Iterator[Callable[[], None]]:
    """Give a function that moves a bar by one sweep."""
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("drawing", total=n_sweeps)
        yield lambda: bar.advance(task)
