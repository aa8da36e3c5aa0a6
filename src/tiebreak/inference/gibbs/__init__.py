"""Collapsed Gibbs sampling: Kim and Ghahramani's BCC, with links and gold.

- `graph`: tasks that hard links make one, couplings between the others, blocks drawn together
- `chains`: sweeps, and what is kept of them
- `mixing`: whether the chains agree
- `sampler`: the estimator
"""

from tiebreak.inference.gibbs.sampler import GibbsSampler

__all__ = ["GibbsSampler"]
