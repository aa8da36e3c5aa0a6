"""What errors, notes and warnings of estimators say, by code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tiebreak.errors import register
from tiebreak.wording import counted, first_few

NAMED = 3  # workers or classes named in a note
SHOWN = 5  # groups


def _uncertain(groups: Sequence[Sequence[Hashable]]) -> str:
    n_tasks = sum(map(len, groups))
    firsts = first_few([repr(group[0]) for group in groups], SHOWN)
    return (
        f"The class of {counted(len(groups), 'group')} of linked tasks ({n_tasks:,} tasks) is "
        "uncertain: another way to name the classes fits nearly as well. Label one task of "
        f"each: {firsts}."
    )


def _missing(classes: Sequence[tuple[Hashable, float, int]]) -> str:
    named = [f"{name!r} ({votes:,.0f} responses, {n:,} labels)" for name, votes, n in classes]
    return f"Classes that got no task, or nearly none: {first_few(named, NAMED)}."


def _below_chance(workers: Sequence[tuple[Hashable, int, int]]) -> str:
    named = [f"{name!r} ({right:,} of {given:,})" for name, right, given in workers]
    return (
        "Workers who are right on gold less often than by guessing: "
        f"{first_few(named, NAMED)}. Did they swap classes?"
    )


def _split(tasks: Sequence[Hashable], n_differ: int, n_tasks: int, shown: int) -> str:
    return (
        f"The members disagree: kinds gives {counted(n_differ, 'task')} of {n_tasks:,} another "
        "label than the votes, and may be wrong as a whole. Known labels decide it (gold). Label "
        f"some of these: {first_few(list(map(repr, tasks)), shown)}."
    )


register(
    {
        # what is refused
        "no-links": "{estimator} cannot use links. VariationalBayes can: use it, or drop links.",
        "exact-links-only": "{estimator} infers links exactly: link_options must be "
        "tb.ExactLinkOptions(…) or None; got {value!r}.",
        "no-link-options": "link_options must be tb.ExactLinkOptions(…), tb.MeanFieldOptions(…) or "
        "None; got {value!r}.",
        "subtypes-need-exact-links": "worker_model={worker_model!r} needs exact links: "
        "tb.ExactLinkOptions().",
        "network-beside-others": "Edges of a network (near) go without sequences, features and "
        "constraints. Leave one of them out.",
        "no-committee-of-sequences": "Auto has no committee for tasks in sequences. "
        "VariationalBayes().fit(…, sequences=) chooses among models of them.",
        "no-sequence-options": "sequence_options must be tb.SequenceOptions(…) or None; got "
        "{value!r}.",
        "subtypes-with-sequences": "worker_model={worker_model!r} splits classes into subtypes, "
        "which tasks in sequences cannot have. Leave worker_model out.",
        "scale-without-levels": "worker_model='scale' needs its levels: scale='1..5' or the like "
        "makes it the worker model.",
        "scale-and-model": "scale has a worker model of its own: leave out "
        "worker_model={worker_model!r}, or the scale.",
        "scale-and-prior": "On a scale there is no confusion prior: leave out confusion_prior, or "
        "the scale.",
        "no-start": "MajorityVote counts votes once: it needs no start. Leave it out.",
        "start-no-model": "start must be a fitted model; got {given}. {hint}",
        "start-not-fitted": "start is a model that was not fitted yet. Call its fit first.",
        "start-not-init": "To go on from a fitted model, write fit(…, start=model), not init=.",
        "no-members": "members is empty. Name some of: {members}.",
        # what may be wrong with the labels
        "not-converged": lambda n: (
            f"Not converged after {counted(n, 'iteration')}; labels may "
            "still change. Raise max_iter, or accept a larger tol."
        ),
        "uncertain-groups": _uncertain,
        "links-broken": "No labelling was found that breaks no link: {n} are broken.",
        "collapsed": "Class {name!r} has {votes:.0%} of the responses but got {tasks:.0%} of the "
        "tasks: the fit may have collapsed to it. Compare with MajorityVote; a few gold labels, "
        "or links, show which is right.",
        "missing-classes": _missing,
        "swapped-classes": "Tasks labelled {one!r} have more responses {other!r}, and those "
        "labelled {other!r} more responses {one!r} ({n:,} tasks): the two classes may have "
        "swapped. Compare with MajorityVote, or use VariationalBayes, whose prior keeps classes "
        "apart.",
        "few-responses": "There are {a_task:.2g} responses a task and {a_worker:.2g} a worker: too "
        "few to learn who errs. MajorityVote is likely right more often here; so is a fit with "
        "more responses, gold or links.",
        "gold-against-crowd": "Gold disagrees with the crowd on {n_wrong:,} of {n:,} tasks, where "
        "{expected:.0f} were expected: the workers err together, or gold is of another question. "
        "Gold was taken as true.",
        "workers-below-chance": _below_chance,
        "members-disagree": _split,
        "gold-of-one-class": "All gold is {name!r}: it says how sure to be, and nothing of workers "
        "or other classes. Label tasks of other classes too.",
    }
)
