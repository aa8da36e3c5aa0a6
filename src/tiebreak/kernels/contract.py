"""What a backend offers, and which one a problem gets."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from threading import Thread
from typing import Protocol

from tiebreak.kernels.layout import ByGroup, ByTask, CalibrationData, Codes, Floats, Offsets
from tiebreak.kernels.network import Cliques, Network
from tiebreak.kernels.sweeper import Sweeper, SweepKernels
from tiebreak.options import PROCESSOR, require_word

BACKENDS = ("auto", "numpy", "numba", "cuda")
COMPILED_ROWS = 200_000  # responses fitted; below, numba costs more than it saves
# Rows read, where no compiled code is in the process yet: with 1e6 rows compiled loops take 1.1 s,
# Arrow and NumPy 0.3 s, with 5e6 2.0 and 1.7 s. With no cache of compiled code either, 3 s more.
COMPILED_INTAKE = 3_000_000
# Responses from which the first fit of a process is about as soon done on an H200 as on 16 threads
# beside it: below, what a device costs to start is more than it saves (docs/gpu.md).
CUDA_ROWS = 30_000_000
COMPILED_LINKED = 1_000  # linked tasks take turns: a loop that only compiled code does fast


class SweepBackend(SweepKernels, Protocol):
    """What a fit without links calls: the kernels of a sweep, and what stands around them."""

    @property
    def sweeps_here(self) -> bool:
        """Whether sweepers work in this process's memory."""

    def open(
        self, tasks: ByTask, q: Floats, n_threads: int = 1, copies: Floats | None = None
    ) -> Sweeper:
        """Open a sweeper on responses and a start of q, which it then owns."""

    def score_tasks(
        self, tasks: ByTask, log_prior: Floats, log_table: Floats, n_threads: int = 1
    ) -> Floats:
        """Return the score of every task and class."""

    def scaled_probabilities(
        self,
        tasks: ByTask,
        log_prior: Floats,
        log_table: Floats,
        scale: Floats,
        n_threads: int = 1,
    ) -> Floats:
        """Return the softmax of the scores of every task, times its scale."""

    def classify(
        self,
        tasks: ByTask,
        log_prior: Floats,
        log_table: Floats,
        n_classes: int,
        dependence: float,
        multiplier: float,
        n_threads: int = 1,
    ) -> tuple[Floats, Codes, Floats]:
        """Return calibrated probabilities, labels, and the probability of each label."""

    def calibration_log_likelihood(
        self, data: CalibrationData, dependence: float, multiplier: float
    ) -> float:
        """Return how well the probabilities of a calibration fit links and gold."""

    def likeliest(self, q: Floats) -> tuple[Codes, Floats]:
        """Return the likeliest class of each row of q, the first one on ties, and its q."""


class LinkBackend(Protocol):
    """What links need besides: mean field, belief propagation, elimination, decoding."""

    def link_field(self, q: Floats, links: ByGroup) -> Floats:
        """Return what links say about each linked task."""

    def link_term(self, q: Floats, links: ByGroup) -> float:
        """Return Σ w_ij ⟨q_i, q_j⟩ over all links."""

    def update_together(
        self, q: Floats, u: Floats, links: ByGroup, strength: float, at: Codes
    ) -> float:
        """Update linked tasks all at once; return the largest change."""

    def update_in_turn(
        self, q: Floats, u: Floats, links: ByGroup, strength: float, order: Offsets
    ) -> float:
        """Update linked tasks one after the other; return the largest change."""

    def expected_score(self, belief: Floats, scores: Floats, n_threads: int = 1) -> float:
        """Return Σ ⟨belief, score⟩ over nodes."""

    def pass_messages(
        self,
        scores: Floats,
        network: Network,
        coupling: Floats,
        messages: Floats,
        belief: Floats,
        span: tuple[int, int],
        damping: float,
        *,
        down: bool,
        update_beliefs: bool = True,
    ) -> tuple[float, float]:
        """Pass messages up or down; return the largest change and the log partition."""

    def agreement(
        self, scores: Floats, network: Network, coupling: Floats, messages: Floats
    ) -> Floats:
        """Return for each edge the probability that its ends agree."""

    def eliminate(
        self, scores: Floats, cliques: Cliques, coupling: Floats, belief: Floats, agree: Floats
    ) -> tuple[float, float]:
        """Sum out small loopy components; return the largest change and the log partition."""

    def decode_forest(
        self,
        scores: Floats,
        network: Network,
        coupling: Floats,
        span: tuple[int, int],
        label: Codes,
    ) -> None:
        """Set the likeliest joint labels of nodes without loops."""

    def decode_greedily(
        self, wish: Floats, network: Network, coupling: Floats, order: Codes, label: Codes
    ) -> None:
        """Give nodes, in order, their best class of those that break fewest hard links."""

    def decode_cliques(
        self, scores: Floats, cliques: Cliques, coupling: Floats, label: Codes
    ) -> None:
        """Set the likeliest joint labels of small loopy components."""


class Backend(SweepBackend, LinkBackend, Protocol):
    """Kernels with one meaning: `reference` says which."""


def choose_backend(
    name: str, n_responses: int, n_linked: int = 0, *, may_be_device: bool = True
) -> Backend:
    """Return the kernels of a name; "auto" compiles only what is large enough to repay it.

    Where it may not be a device, "auto" goes by the input alone: every machine gives the same bits.
    """
    require_word("backend", name, BACKENDS)
    is_for_device = name == "auto" and may_be_device and n_responses >= CUDA_ROWS
    if name == "cuda" or (is_for_device and _has_device()):
        from tiebreak.kernels import cuda

        cuda.device.cupy()
        return cuda
    large = n_responses >= COMPILED_ROWS or n_linked >= COMPILED_LINKED
    if name == "numba" or (name == "auto" and large):
        from tiebreak.kernels import compiled

        return compiled
    from tiebreak.kernels import reference

    return reference


@cache
def load_compiled_early() -> Thread:
    """Start to load compiled code while something is read: that takes as long as some sweeps."""
    thread = Thread(target=lambda: importlib.import_module("tiebreak.kernels.compiled"))
    thread.start()
    return thread


def repays_compiled_intake(n_rows: int) -> bool:
    """Say whether compiled loops read so many rows sooner than Arrow and NumPy do.

    Where a fit has loaded numba and its first kernels already, loading those of the intake takes
    0.05 s, and half the time is saved from then on. Both ways give the same codes, bit by bit.
    """
    is_loaded = "tiebreak.kernels.compile" in sys.modules
    return n_rows >= (COMPILED_ROWS if is_loaded else COMPILED_INTAKE)


def where(backend: Backend) -> str:
    """Say what sweeps ran on: the processor, or the name of a device."""
    if backend.sweeps_here:
        return PROCESSOR
    from tiebreak.kernels.cuda import device

    return device.name()


def _has_device() -> bool:
    """Whether a CUDA device is there, and what drives it is installed."""
    if importlib.util.find_spec("cupy") is None:
        return False
    from tiebreak.kernels.cuda import device

    return device.is_available()
