"""The numba backend."""

from functools import partial

from tiebreak.kernels import numba_sweep
from tiebreak.kernels.numba_chains import *  # noqa: F403
from tiebreak.kernels.numba_links import *  # noqa: F403
from tiebreak.kernels.numba_neighbours import *  # noqa: F403
from tiebreak.kernels.numba_sweep import *  # noqa: F403
from tiebreak.kernels.sweeper import HostSweeper

sweeps_here = True  # in this process's memory
open = partial(HostSweeper, numba_sweep)  # on responses and a start of q, which it then owns
