"""LA, two passes: one in random order, then w_j = K c_j / t_j − 1."""

from _layout import Layout
from la1 import in_order


def aggregate(crowd, seed):
    c = Layout(crowd)
    _, accuracy = in_order(c, seed)
    return c.votes(c.k * accuracy - 1)
