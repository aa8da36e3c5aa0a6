"""What errors and notes about juries say, by code."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.errors import Message, register
from tiebreak.wording import agreeing, counted, first_few


def _few_known(n: int) -> str:
    return (
        f"With {counted(n, 'known label')} all figures are rough; 50 are enough to see shared "
        "errors."
    )


def _names(names: Sequence[object]) -> str:
    return first_few([str(name) for name in names], 5)


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
    "gold-without-responses": lambda n: (
        f"{counted(n, 'task')} of gold {agreeing(n, 'are')} not among the responses; left out."
    ),
    "known-tasks-drawn": "{n:,} of the known tasks are drawn for the report.",
    # panels
    "panel-of-one-class": "All gold is of one class: judges that always say that class look "
    "perfect, and nothing is known of the others. Whether the panel is better than its best "
    "judge, and what a smaller one would do, is not known. Label tasks of other classes.",
    "few-known-labels": _few_known,
    "no-accepting-class": "Self-preference needs accepts=, the class that accepts an answer.",
    "unknown-accepting-class": lambda label, classes: (
        f"accepts must be one of {', '.join(repr(str(each)) for each in classes)}; got {label!r}."
    ),
    "price-of-no-judge": lambda names: (
        f"prices name no judge of the responses: {_names(names)}. Use names that are there."
    ),
    "no-price": lambda names: (
        f"{counted(len(names), 'judge')} {agreeing(len(names), 'have')} no price and "
        f"{agreeing(len(names), 'count')} as free: {_names(names)}."
    ),
    "no-groups": "No groups are known. Give groups={{judge: family}}, or a column 'group' in "
    "the file.",
    "no-task-to-label": "There is no task to label: all tasks with responses are known.",
    "no-tags-of-spans": lambda classes: (
        f"Spans need tags such as B-PER, I-PER and O; the classes are {_names(list(classes))}."
    ),
    # rates
    "no-such-rate": "There is no rate of {label!r} for {system!r} by {method!r}.",
    "rates-without-gold": "Without gold only the judges' own share is known, and no interval "
    "holds: judges share errors that cannot be seen. `tiebreak judges panel --sample FILE` draws "
    "tasks to label.",
    "rates-of-one-class": "All gold is of one class; intervals of the others rest on that alone.",
    "few-known-of-systems": lambda systems, least: (
        f"Fewer than {least} known labels for {_names(systems)}: intervals are wide, or missing."
    ),
    "known-unlike-all": _unlike_all,
    "no-classes-of-pairs": lambda classes: (
        "Two systems a task need verdicts such as model_a, model_b and tie; the classes are "
        f"{_names(list(classes))}."
    ),
    "no-task-of-systems": "No task of systems= is among the responses. Use the ids of tasks there.",
    "systems-without-responses": lambda n: (
        f"{counted(n, 'task')} of systems {agreeing(n, 'are')} not among the responses; left out."
    ),
    "system-called-all": "A system cannot be called 'all', which stands for all tasks. Rename it.",
    "no-selection-probability": lambda n, task: (
        f"{counted(n, 'known task')} {agreeing(n, 'have')} no selection probability; the first "
        f"is {task!r}. Give one for every task of gold, or none at all."
    ),
    # agreement
    "no-two-labels": "No task has two labels, so agreement cannot be measured.",
    "order-not-classes": lambda classes, order: (
        f"order must name each class once: {', '.join(map(str, classes))}; got "
        f"{', '.join(map(str, order))}."
    ),
}
register(MESSAGES)
