"""The engine room: arrays in, arrays out, nothing about files or names.

Its seams are `Backend`, which `choose_backend` chooses, and `Sweeper`. What the rooms above share
with them stands here.
"""

from tiebreak.kernels.arrays import by_class, count_codes, for_each, likeliest, majority, softmax
from tiebreak.kernels.contract import CUDA_ROWS, Backend, choose_backend
from tiebreak.kernels.layout import AWAY, FREE, KNOWN, ByTask, Codes, Floats, Mask, Offsets, lay_out
from tiebreak.kernels.sweeper import HostSweeper, Logs, Sweeper

__all__ = ["AWAY", "CUDA_ROWS", "FREE", "KNOWN", "Backend", "ByTask", "choose_backend", "lay_out"]
__all__ += ["Codes", "Floats", "HostSweeper", "Logs", "Mask", "Offsets", "Sweeper"]
__all__ += ["by_class", "count_codes", "for_each", "likeliest", "majority", "softmax"]
