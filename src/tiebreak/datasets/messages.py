"""What is said where a dataset is not here or does not come."""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.errors import register
from tiebreak.wording import worded


def _not_fetched(name: str, reason: str, addresses: Mapping[str, str], folder: object) -> str:
    saved = "".join(f"\n  {address} as {file}" for file, address in addresses.items())
    return (
        f"{name} cannot be fetched: {reason}\n"
        "Another copy, a web address or a folder, can be named in TIEBREAK_DATASETS_URL.\n"
        f"By hand: save{saved}\nin {folder} and fetch again, which then needs no network. "
        "Or put responses.csv (task,worker,label) and gold.csv (task,label) there."
    )


def _counts(folder: str, name: str, found: Mapping[str, int], expected: Mapping[str, int]) -> str:
    wrong = (f"{n:,} {count[2:]} (expected {expected[count]:,})" for count, n in found.items())
    return f"{folder} is not the {name} of the catalogue: it has {', '.join(wrong)}."


MESSAGES = {
    "unknown-dataset": (
        "There is no dataset {name!r}.{meant:meant}\nThe datasets are {names:list}."
    ),
    "dataset-not-here": (
        "The dataset {name!r} is not here. Looked for responses.csv and gold.csv in {looked}.\n"
        "Fetch it with: tiebreak datasets fetch {name}\n"
        "Or put responses.csv (task,worker,label) and gold.csv (task,label) into one of these."
    ),
    "dataset-not-fetched": _not_fetched,
    "dataset-counts": _counts,
    "data-folder-missing": "TIEBREAK_DATA names {folder}, which is not a folder.",
    "data-folder-first": "TIEBREAK_DATA comes before the cache, so {folder} is what counts.",
}
register(worded(MESSAGES))
