"""Datasets: the ten real crowds of the paper, by name.

They are found in the folder that TIEBREAK_DATA names, or in your cache, where `fetch` puts them.
What each is, where it comes from and where it differs from the paper can be asked without them.

>>> from tiebreak import datasets
>>> datasets.names()[:3]
('bluebird', 'dog', 'web')
>>> datasets.info("rte").task
'Two texts: does the second follow from the first?'
"""

from tiebreak.datasets.catalogue import Info, info, names
from tiebreak.datasets.fetching import fetch
from tiebreak.datasets.loading import Dataset, load, path

__all__ = ["Dataset", "Info", "fetch", "info", "load", "names", "path"]
