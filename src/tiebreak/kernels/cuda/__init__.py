"""The CUDA backend: sweeps over tasks run on a device, linked tasks are inferred by numba here."""

from tiebreak.kernels import compiled
from tiebreak.kernels.cuda import device
from tiebreak.kernels.cuda.sweeper import CudaSweeper
from tiebreak.kernels.layout import ByTask, Floats
from tiebreak.kernels.numba_chains import *  # noqa: F403
from tiebreak.kernels.numba_links import *  # noqa: F403
from tiebreak.kernels.numba_neighbours import *  # noqa: F403
from tiebreak.kernels.numba_sweep import *  # noqa: F403
from tiebreak.kernels.sweeper import Sweeper

sweeps_here = False


def open(tasks: ByTask, q: Floats, n_threads: int = 1, copies: Floats | None = None) -> Sweeper:
    """Open a sweeper on responses and a start of q, which it then owns."""
    device.cupy()
    if q.shape[1] < 2:
        return compiled.open(tasks, q, n_threads, copies)
    with device.says_what_did_not_fit():
        return CudaSweeper(tasks, q, copies)
