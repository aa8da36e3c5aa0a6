"""Noisy labels into answers one can trust."""

from tiebreak._version import __version__

__all__ = ["__version__"]
