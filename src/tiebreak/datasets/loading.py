"""Loading: a dataset as responses, gold and what is known about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tiebreak.datasets import catalogue, places
from tiebreak.datasets.catalogue import Info
from tiebreak.datasets.convert import wrong_counts
from tiebreak.errors import note

if TYPE_CHECKING:
    from tiebreak.gold import Gold
    from tiebreak.responses import Responses


class Dataset(NamedTuple):
    """A real crowd: what workers said, what is known to be true, and what the dataset is."""

    responses: Responses
    gold: Gold
    info: Info


def path(name: str) -> Path:
    """Return the folder that holds responses.csv and gold.csv of a dataset.

    Raises FileError where the dataset is not here; the message says how to fetch it.
    """
    return places.find(catalogue.find(name).info.name)


def load(name: str) -> Dataset:
    """Read a dataset that is here; see `names` for which there are, and `fetch`.

    It is looked for in the folder that TIEBREAK_DATA names, then in the cache. Where the files
    do not have the catalogue's counts, a note reports it.

    Returns
    -------
    Dataset
        Responses, gold and info: ``responses, gold, info = load("rte")``.

    Raises
    ------
    FileError
        Where the dataset is not here; the message says how to fetch it.
    OptionError
        Where there is no dataset of that name.
    """
    from tiebreak.tables import read_gold, read_responses

    info = catalogue.info(name)
    folder = path(name)
    responses = read_responses(folder / places.RESPONSES)
    gold = read_gold(folder / places.GOLD)
    wrong = wrong_counts(responses, gold, info)
    if wrong:
        note(f"{folder} is not the {name} of the catalogue: it has {wrong}.")
    return Dataset(responses, gold, info)
