"""Worker models: how answers come about, one class a model.

A model turns expected counts (how often each worker gave each label to tasks in each state) into
parameters, and parameters into the log table `[code, state]` that sweeps look up. Whatever else is
asked of workers (their intervals, new workers, their place in a model file) the same class answers.
So a new model is one file here and one line in `MODELS`; fits, links, gold, prediction, updates,
streams, files and the command line know nothing of it. Users may also pass an object of their own:
`VariationalBayes(worker_model=MyWorkers())`.

`n_classes` is how many labels workers may give, and how many classes are reported. `n_states` is
how many states a task may be in, inside: as many as classes, or more where a class is split into
subtypes.
"""

from __future__ import annotations

from typing import Any

from tiebreak.errors import OptionError
from tiebreak.inference.workers.base import AnswerCounts as AnswerCounts
from tiebreak.inference.workers.base import CrowdFacts as CrowdFacts
from tiebreak.inference.workers.base import CrowdModel as CrowdModel
from tiebreak.inference.workers.base import WorkerCells as WorkerCells
from tiebreak.inference.workers.base import Workers as Workers
from tiebreak.inference.workers.coin import Coins
from tiebreak.inference.workers.confusion import ConfusionMatrices as ConfusionMatrices
from tiebreak.inference.workers.kinds import Kinds
from tiebreak.inference.workers.scale import Channels as Channels
from tiebreak.options import AUTO, require_word

N_SUBTYPES = 5
COMMUNITIES = "communities"
PLAIN = "confusion"
SCALE = "scale"  # the model that the option `scale` chooses: it alone names the levels

MODELS: dict[str, Workers] = {
    PLAIN: ConfusionMatrices(),
    "coin": Coins(),
    "kinds": Kinds(),
    "subtypes": ConfusionMatrices(n_subtypes=N_SUBTYPES),
    "kinds+subtypes": Kinds(n_subtypes=N_SUBTYPES),
    COMMUNITIES: Kinds(heeds_rules=False),  # what `communities.learn` starts from
}

WorkerModel = str | Workers


def require_model(given: object, allowed: tuple[str, ...] | None = None) -> None:
    """Refuse what is no worker model: neither a name of one nor an object."""
    if isinstance(given, Workers) and allowed is None:
        return
    if isinstance(given, str) and given == AUTO:
        raise OptionError("no-auto-model")
    require_word("worker_model", given, tuple(MODELS) if allowed is None else allowed)


def named(given: WorkerModel) -> Workers:
    """Return the model of a name; a model is its own."""
    return given if isinstance(given, Workers) else MODELS[given]


def name_of(given: WorkerModel) -> str:
    """Return what a model is called: equal names mean equal models."""
    return given if isinstance(given, str) else repr(given)


def has_subtypes(given: WorkerModel) -> bool:
    """Say whether a model splits classes into subtypes."""
    return named(given).n_subtypes > 1


def crowd_model(given: WorkerModel, crowd: CrowdFacts) -> CrowdModel:
    """Return the model for a crowd: of its tasks' states and of its workers."""
    return named(given).bind(crowd)


def __getattr__(name: str) -> Any:
    """Return the names of all models, `NAMES`, as they are now."""
    if name == "NAMES":
        return tuple(MODELS)
    raise AttributeError(name)
