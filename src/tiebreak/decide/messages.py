"""What errors and notes about decisions say, by code."""

from __future__ import annotations

from tiebreak.errors import Message, register
from tiebreak.wording import worded

MESSAGES: dict[str, Message] = {
    "features-needed-again": "This fits the model again, which takes the features of its tasks; a "
    "saved model does not hold them. Fit it with features first.",
    # cost matrices
    "cost-shape": "cost_matrix must have shape ({n_classes}, {n_classes}), truth by decision in "
    'the order of classes_, or one column more for "abstain"; got {shape}.',
    "cost-no-truth": "{title} has no column {column!r}. A cost matrix has one row per true class: "
    "truth, then one column per decision.",
    "cost-rows": lambda title, missing, unknown, classes: (
        f"{title}: "
        + (f"no row for {', '.join(missing)}" if missing else "rows that are no class, or twice")
        + (f"; unknown: {', '.join(unknown)}" if unknown else "")
        + f". It needs one row per class: {', '.join(classes)}."
    ),
    "cost-unknown-decision": "{title}: decisions {unknown:list} are neither classes nor one of "
    "{open_names:list}. The classes are {classes:list}.",
    "cost-decisions": "{title} needs at least one class to decide for, and at most one of "
    "{open_names:list}.",
    "cost-not-finite": "{title}: every truth and decision needs a cost, a finite number.",
    "costs-without-scale": "cost_matrix={costs!r} needs classes on a scale: fit with scale='1..5' "
    "or the like.",
    "cost-of-abstaining": "cost_matrix says already what {decision!r} costs: leave out "
    "abstain_rate.",
    # who may be asked
    "probabilities-not-scaled": "Probabilities of this model are not scaled by shared errors; the "
    "plan trusts them.",
    "judges-without-response": "These judges gave no response: {names:list 5}.",
    "workers-without-response": "workers names nobody who answered: {names}.",
}
register(worded(MESSAGES))
