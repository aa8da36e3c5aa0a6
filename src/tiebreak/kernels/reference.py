"""The NumPy backend, the oracle of every other one."""

from functools import partial

from tiebreak.kernels import numpy_sweep
from tiebreak.kernels.numpy_chains import *  # noqa: F403
from tiebreak.kernels.numpy_links import *  # noqa: F403
from tiebreak.kernels.numpy_neighbours import *  # noqa: F403
from tiebreak.kernels.numpy_sweep import *  # noqa: F403
from tiebreak.kernels.sweeper import HostSweeper

sweeps_here = True  # in this process's memory
open = partial(HostSweeper, numpy_sweep)  # on responses and a start of q, which it then owns
