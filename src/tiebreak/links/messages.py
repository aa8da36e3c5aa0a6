"""What errors and notes about links say, by code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tiebreak.errors import Message, register
from tiebreak.wording import agreeing, counted

Placed = Sequence[tuple[Hashable, str]]  # a task, and the file and line that names it

SHOWN = 8  # tasks of many
ALLOWED = (
    "Write must, cannot or duplicate; must-link, same, ml, +1, true and cannot-link, different, "
    "cl, -1, false are understood too."
)
MAY_ERR = {"fit": "link_options=tb.ExactLinkOptions(error=0.02)", "session": "link_error=0.02"}
DROP = {"fit": 'drop such cannot-links with on_contradiction="drop", ', "session": ""}


def _soft(asker: str) -> str:
    """Say how links may contradict each other, as the asker writes it."""
    return (
        f"or allow wrong links with {MAY_ERR[asker]} or weights: soft links may "
        "contradict each other."
    )


def _places(places: Sequence[str], n_links: int) -> str:
    if not places:
        return ""
    n_more = n_links - len(places)
    return f" ({'; '.join(places)}{f'; and {n_more:,} more' if n_more > 0 else ''})"


def _few(words: Sequence[str]) -> str:
    if len(words) > SHOWN:
        return f"{', '.join(words[:SHOWN])} and {len(words) - SHOWN:,} more"
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _named(tasks: Placed) -> str:
    return "; ".join(f"{task!r} ({place})" for task, place in tasks)


def _contradict(
    chain: str, left: Hashable, right: Hashable, n_more: int, places: Sequence[str], n_links: int,
    asker: str,
) -> str:  # fmt: skip
    others = f"{counted(n_more, 'more cannot-link')} {agreeing(n_more, 'contradict')} must-links"
    return (
        f"The links contradict each other: {chain}, yet {left} ≠ {right}"
        f"{_places(places, n_links)}.{f' {others}.' if n_more else ''}\n"
        f"Remove one of these links, {DROP[asker]}{_soft(asker)}"
    )


def _too_few_classes(what: str, places: Sequence[str], n_links: int, asker: str) -> str:
    return (
        f"{what}{_places(places, n_links)}.\n"
        f"Remove one of these links, name the classes that are missing, {_soft(asker)}"
    )


def _must_differ(tasks: Sequence[str], n_classes: int) -> str:
    choice = "1 class" if n_classes == 1 else f"{n_classes:,} classes"
    return f"{_few(tasks)} must all differ, but there is a choice of {choice} only"


def _known(what: str, asker: str) -> str:
    return (
        f"The known labels {what}.\n"
        f"Correct one of these known labels, remove one of these links, {_soft(asker)}"
    )


def _both_known(left: Hashable, its: str, right: Hashable, others: str) -> str:
    if its == others:
        return f"both {left} and {right} are known as {its}"
    return f"{left} is known as {its} and {right} as {others}"


MESSAGES: dict[str, Message] = {
    # the table
    "links-unequal-columns": "The columns of links must be equally long; got {lengths}.",
    "links-not-a-pair": "A link joins two tasks: give (left, right) pairs; got {pair!r}.",
    "links-not-a-row": "Each row must be (left, right, link); got {row!r}.",
    "links-mixed-ids": "The ids of left and right cannot be used together: {reason}.",
    "links-odd-source": "A value of who cannot be used as a name: {reason}.",
    "links-no-task": lambda n, side, places: (
        f"{counted(n, 'link')} {agreeing(n, 'have')} no task id on the {side} "
        f"({'; '.join(places)}). Fill in the task or remove the row."
    ),
    "near-beside-others": "Links that say near are edges of a network: all of them are, and none "
    "has a weight. Keep must- and cannot-links out of this table.",
    "near-elsewhere": "Edges of a network (near) are taken by VariationalBayes().fit(…, links=) "
    "alone, without sequences; write must or cannot for links.",
    "links-odd-word": lambda n, shown: (
        f"{counted(n, 'link')} {agreeing(n, 'are')} neither must nor cannot: {shown}.\n{ALLOWED}"
    ),
    "links-odd-weight": lambda n, shown: (
        f"{counted(n, 'weight')} {agreeing(n, 'are')} not a finite number above 0: {shown}.\n"
        "A weight is the log-odds that the link is right; must or cannot gives its sign. "
        "Leave it empty for a link that holds for sure."
    ),
    "links-unknown-tasks": lambda n, tasks: (
        f"{counted(n, 'task')} of links {agreeing(n, 'are')} not among the responses: "
        f"{_named(tasks)}.\n"
        "Correct these ids, remove the rows, or list tasks without responses with tasks=."
    ),
    "links-unlike-itself": lambda n, tasks: (
        f"{counted(n, 'cannot-link')} {agreeing(n, 'join')} a task to itself: {_named(tasks)}. "
        "Correct or remove these rows."
    ),
    "links-to-itself": lambda n: (
        f"{counted(n, 'must-link')} {agreeing(n, 'join')} a task to itself: dropped."
    ),
    "links-cancel": "The weights of {n:,} pairs of tasks cancel: no link there.",
    "links-new-weight": lambda n: (
        f"{counted(n, 'link')} given again with another weight: the last weight counts."
    ),
    "links-words-read": lambda name, words: (
        f"{name or 'The table'}: read link "
        f"{', '.join(f'{word!r} as {meaning}' for word, meaning in words)}."
    ),
    "links-taken-for-duplicates": lambda n: (
        f"{counted(n, 'must-link')} {agreeing(n, 'come')} from a source without cannot-links: such "
        "links count as duplicates, one draw of the class per group. "
        'sampling="pairs" says that they answer questions.'
    ),
    # what cannot hold
    "links-contradict": _contradict,
    "links-dropped": lambda n: (
        f"{counted(n, 'cannot-link')} {agreeing(n, 'contradict')} must-links: dropped, "
        'as on_contradiction="drop" asks.'
    ),
    "links-odd-cycle": lambda chain, **where: _too_few_classes(
        f"With 2 classes these links cannot all hold: {chain}", **where
    ),
    "links-must-differ": lambda tasks, n_classes, **where: _too_few_classes(
        _must_differ(tasks, n_classes), **where
    ),
    "links-no-choice": lambda tasks, n_classes, **where: _too_few_classes(
        f"No choice among {n_classes:,} classes keeps apart what is cannot-linked: {_few(tasks)}",
        **where,
    ),
    "known-against-links": lambda chain, places, n_links, asker, **ends: _known(
        f"contradict the links: {chain}, yet {_both_known(**ends)}{_places(places, n_links)}", asker
    ),
    "known-leave-no-class": lambda task, takers, asker: _known(
        f"leave no class for {task}: it is cannot-linked to "
        f"{_few([f'{name} ({label})' for name, label in takers])}, whose classes are known or "
        "follow from known ones",
        asker,
    ),
    # constraints
    "constraint-odd-none": "none must be 'learn' or a number, 0 or more; got {value!r}.",
    "constraint-two-nones": "none is given twice: {values}. Give it once.",
    "constraint-odd-rule": "{rule!r} is no rule. Write 'exactly one', 'at most 2', 'at least one' "
    "or 'all or none', or counts such as '0-1' or [0, 1, 3].",
    "constraint-no-label": "The rule {rule!r} names no label. Write it behind, as 'at most one "
    "cat', or give label=.",
    "constraint-odd-record": lambda where, record: (
        f"{where} is no constraint: {str(record)[:200]}\n"
        'Write one of {"tasks": [...], "label": "1", "count": "0-1"}, {"if": {task: label}, '
        '"then": {task: label}}, {"task": "x", "labels": [...]}, {"task": "x", "not": [...]}, '
        '{"order": ["a", "b"]}, {"same": [...]}, {"different": [...]}, '
        '{"label": "x", "rate": [low, high]}.'
    ),
    "constraint-odd-weight": "{where}: the weight {weight!r} is not a number above 0. It is the "
    "log-odds that the constraint is right; leave it out where it holds for sure.",
    "constraint-empty": "{where} has no {what}. Fill it in or remove the row.",
    "constraint-unequal": lambda name, what, where: (
        f"The rows of constraint {name!r} differ in {what} ({' and '.join(where)}). "
        "Give all of them the same."
    ),
    "constraint-task-twice": lambda task, where: (
        f"Task {task!r} is twice in one constraint ({' and '.join(where)}). Remove one."
    ),
    "constraint-count": lambda n, rule, where: (
        f"{where}: no count of {counted(n, 'task')} keeps {rule!r}. Correct the count or the tasks."
    ),
    "constraint-unknown-label": lambda label, where, classes, meant: (
        f"{where}: {label!r} is no class of the responses, which are "
        f"{_few([repr(each) for each in classes])}."
        f"{f' Did you mean {meant!r}?' if meant else ''}\n"
        "Correct it, or name all classes with classes=."
    ),
    "constraint-no-order": "{where}: an order of tasks needs an order of classes. Give "
    "Constraints.order(…, classes=[lowest, …, highest]).",
    "constraint-rate": "{where}: the rate of {label!r} cannot be reached: the other constraints "
    "and known labels allow {nearest:.4g} at the nearest.",
    "constraints-contradict": lambda chain, **_: (
        "The constraints contradict each other: "
        f"{'; '.join(f'{text} ({where})' for text, where in chain)}.\n"
        "Remove or correct one of them, or give it a weight: soft constraints may be broken."
    ),
    "constraints-name-no-task": lambda n, tasks: (
        f"None of the {counted(n, 'task')} of the constraints is among the responses, such as "
        f"{_few([repr(each) for each in tasks])}. Check the ids."
    ),
    "constraints-add-tasks": lambda n, tasks: (
        f"{counted(n, 'task')} of constraints {agreeing(n, 'have')} no response: inferred from the "
        f"constraints alone ({_few([repr(each) for each in tasks])})."
    ),
    "constraints-name-classes": lambda n: (
        f"{counted(n, 'group')} of one task with 'exactly': its class follows from the rule."
    ),
    "constraints-against-responses": (
        "The responses speak against the constraints: evidence {evidence:,.1f} nats for "
        "{n:,} constraints, where true ones have more than 0. Check that they are about these "
        "tasks."
    ),
    "constraints-broken": lambda n: (
        f"{counted(n, 'constraint')} {agreeing(n, 'are')} broken: no joint labelling was found "
        "in time."
    ),
    "constraints-need-exact-links": "Constraints need links that are inferred exactly: leave "
    "link_options out, or give ExactLinkOptions.",
    "constraints-need-responses": "Constraints need responses, and this model keeps counts in "
    "their place. Save it with keep='responses'.",
    "constraints-beside-sequences": "Constraints and sequences cannot be used together yet.",
    "no-constraints": "{what} cannot use constraints. Fit VariationalBayes, Auto, DawidSkene or "
    "MajorityVote on one machine.",
    "known-leave-no-choice": lambda tasks, asker: _known(
        f"leave no choice of classes that keeps apart what is cannot-linked: {_few(tasks)}", asker
    ),
}

register(MESSAGES)
