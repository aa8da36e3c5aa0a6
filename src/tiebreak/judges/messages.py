"""What errors and notes about juries say, by code."""

from __future__ import annotations

from tiebreak.errors import Message, register
from tiebreak.wording import worded


def _unlike_all(label: object, of_known: float, of_all: float, one_class: bool) -> str:
    nothing = " Gold also has one class only, so nothing is known: intervals are 0 to 1."
    return (
        f"Known tasks are not like all tasks: judges call {of_known:.0%} of them {label!r}, and "
        f"{of_all:.0%} of all. Intervals hold for a random sample; otherwise give the chance with "
        f"which each task was drawn (selection=).{nothing if one_class else ''}"
    )


MESSAGES: dict[str, Message] = {
    # known tasks
    "no-known-response": "No task of gold has a response, so judges cannot be compared with it. "
    "Give gold of tasks that they answered.",
    "gold-without-responses": "{n:count task} of gold {n:verb are} not among the responses; left "
    "out.",
    "known-tasks-drawn": "{n:,} of the known tasks are drawn for the report.",
    # panels
    "panel-of-one-class": "All gold is of one class: judges that always say that class look "
    "perfect, and nothing is known of the others. Whether the panel is better than its best "
    "judge, and what a smaller one would do, is not known. Label tasks of other classes.",
    "few-known-labels": "With {n:count known label} all figures are rough; 50 are enough to see "
    "shared errors.",
    "no-accepting-class": "Self-preference needs accepts=, the class that accepts an answer.",
    "unknown-accepting-class": "accepts must be one of {classes:list}; got {label!r}.",
    "price-of-no-judge": "prices name no judge of the responses: {names:list 5}. Use names that "
    "are there.",
    "no-price": "No price is given for {names:list 5}: counted as free.",
    "no-groups": "No groups are known. Give groups={{judge: family}}, or a column 'group' in "
    "the file.",
    "no-task-to-label": "There is no task to label: all tasks with responses are known.",
    "no-tags-of-spans": "Spans need tags such as B-PER, I-PER and O; the classes are "
    "{classes:list 5}.",
    # rates
    "no-such-rate": "There is no rate of {label!r} for {system!r} by {method!r}.",
    "rates-without-gold": "Without gold only the judges' own share is known, and no interval "
    "holds: judges share errors that cannot be seen. `tiebreak judges panel --sample FILE` draws "
    "tasks to label.",
    "rates-of-one-class": "All gold is of one class; intervals of the others rest on that alone.",
    "few-known-of-systems": "Fewer than {least} known labels for {systems:list 5}: intervals are "
    "wide, or missing.",
    "known-unlike-all": _unlike_all,
    "no-classes-of-pairs": "Two systems a task need verdicts such as model_a, model_b and tie; the "
    "classes are {classes:list 5}.",
    "no-task-of-systems": "No task of systems= is among the responses. Use the ids of tasks there.",
    "systems-without-responses": "{n:count task} of systems {n:verb are} not among the responses; "
    "left out.",
    "system-called-all": "A system cannot be called 'all', which stands for all tasks. Rename it.",
    "no-selection-probability": "{n:count known task} {n:verb have} no selection probability; the "
    "first is {task!r}. Give one for every task of gold, or none at all.",
    # agreement
    "no-two-labels": "No task has two labels, so agreement cannot be measured.",
    "order-not-classes": "order must name each class once: {classes:list}; got {order:list}.",
}
register(worded(MESSAGES))
