"""What errors and notes about fits say, by code."""

from __future__ import annotations

from tiebreak.errors import register
from tiebreak.wording import agreeing, counted

TOO_MANY = "Is the label column the right one? Text answers must be grouped into classes first."
COARSER = (
    "worker_model='coin' learns one accuracy per worker; rare classes can be grouped before. "
    "Is this the label column?"
)


def _slow(n_workers: int, n_classes: int, minutes: int) -> str:
    return (
        f"{n_workers:,} confusion matrices over {n_classes:,} classes: the fit takes about "
        f"{counted(minutes, 'minute')}. {COARSER}"
    )


def _near_mode(one: object, other: object, behind: float, n_changed: int, n_tasks: int) -> str:
    where = "behind" if behind >= 0.0 else "ahead"
    return (
        f"Responses alone do not settle what is {one!r} and what is {other!r}: a fit that starts "
        f"with the two swapped ends {abs(behind):.1f} nats {where} and changes "
        f"{counted(n_changed, 'label')} of {n_tasks:,}. Some gold or links decide."
    )


def _out_of_sequence(one: tuple[object, object], other: tuple[object, object]) -> str:
    task, label = other
    if one == other:
        return f"Known label {label!r} of task {task!r} cannot begin a sequence. Correct it."
    return (
        f"Known label {label!r} of task {task!r} cannot follow {one[1]!r} of task {one[0]!r}. "
        "Correct one of them."
    )


register(
    {
        # what is given
        "one-class": "All labels are {label!r}, so every task gets it. Are there other classes?",
        "gold-of-another-type": "Gold names {gold!r} ({gold_type}), and the labels of responses "
        "are {labels} ({label_type}). Write both as one type, for instance text.",
        "too-many-classes": "{n_classes:,} classes and {n_workers:,} workers need about "
        "{needed:,.0f} GiB for confusion matrices; this machine has {limit:,.0f} GiB.\n"
        f"{TOO_MANY} --force tries it all the same.",
        "too-many-codes": "{n_classes:,} classes and {n_workers:,} workers are more than codes of "
        f"31 bits can name.\n{TOO_MANY}",
        "slow-fit": _slow,
        "too-slow-fit": lambda **fields: f"{_slow(**fields)} --force fits all the same.",
        # priors
        "class-prior-shape": "class_prior must be one number or {n_classes} numbers, one a class "
        "in the order of classes_; got shape {shape}.",
        "confusion-prior-shape": "confusion_prior must be 'diagonal', 'uniform', (right, wrong), "
        "an array of shape ({n_classes}, {n_classes}) or ({n_workers}, {n_classes}, {n_classes}) "
        "as [worker, truth, answer], or a mapping by worker; got shape {shape}.",
        "confusion-prior-of-worker-shape": "confusion_prior of worker {worker!r} must have shape "
        "({n_classes}, {n_classes}) as [truth, answer]; got {shape}.",
        "prior-of-nobody": "{name} names worker {worker!r}, who gave no response.",
        "prior-not-positive": "{name} must be positive and finite; got {value}.",
        "kinds-share-a-prior": "Kinds of workers share one prior: confusion_prior cannot differ "
        "by worker.",
        "no-auto-model": "worker_model='auto' is gone: Auto() pools several models instead of "
        "choosing one. Or name a worker model.",
        # starts and links
        "init-shape": "init must have shape {shape}, tasks by classes; got {given}.",
        "init-no-probabilities": "init must hold probabilities: each row non-negative with sum 1.",
        "weights-leave-nothing-to-learn": "Weights already say how sure each link is, so "
        "ExactLinkOptions.error='learn' has nothing to find. Leave it out, or remove the weights.",
        "source-worse-than-a-coin": "{who} look worse than a coin: wrong on {same:.0%} of pairs "
        "that are the same and {different:.0%} of pairs that differ. Are the words swapped?",
        # sequences
        "classes-for-sequences": "{n:,} classes are too many for sequences, which learn how often "
        "each follows each ({most} at most). Is this the label column?",
        "tags-without-beginning": "No label begins a span of {kinds}: tags are B-X for the first "
        "token of a span and I-X for the others. Write them so, or say "
        "SequenceOptions(tags='none').",
        "no-words-in-sequences": "words=True needs a text for each task: a column text of "
        "sequences, or drop words.",
        "gold-out-of-sequence": _out_of_sequence,
        "hard-links-in-sequences": lambda n: (
            f"{counted(n, 'link')} always hold, and tasks in sequences can have links that may be "
            "wrong only. Say how often they are, with "
            "link_options=tb.ExactLinkOptions(error=0.02), or give them weights."
        ),
        "links-within-sequence": lambda n, tasks: (
            f"{counted(n, 'link')} join tasks of one sequence, such as {tasks[0]!r} and "
            f"{tasks[1]!r}: a chain says already how these depend on each other. Remove them."
        ),
        "links-of-sequences": "Links between tasks in sequences need a stated error rate or "
        "weights: link_options=tb.ExactLinkOptions(error=0.02).",
        "responses-in-no-sequence": lambda n: (
            f"{counted(n, 'response')} {agreeing(n, 'are')} on tasks in no sequence; these are "
            "inferred one by one."
        ),
        "impossible-answers": lambda n: (
            f"{counted(n, 'response')} cannot follow what the worker said before, such as I-X "
            "after O: kept as answers; labels are always possible."
        ),
        # a classifier on features
        "no-predict-proba": "ClassifierPrior.classifier must be None, 'given' or a scikit-learn "
        "estimator with predict_proba; got {classifier!r}. To give one class probabilities, wrap "
        "it: sklearn.calibration.CalibratedClassifierCV(estimator).",
        "no-given-probabilities": "Columns of ClassifierPrior('given') are class probabilities: 0 "
        "or more, and not all 0 for a task.",
        "classifier-failed": "The classifier could not be trained on these features: {reason}",
        "classifier-unweighted": "{classifier} takes no sample_weight: it is trained on doubtful "
        "labels as on sure ones.",
        "classifier-rare-classes": "Only one task to train on has class {classes}: the classifier "
        "hardly knows it.",
        "classifier-dropped": "Features predict the responses no better than class shares do "
        "({nats:.2f} nats a task, {standard_errors:.1f} standard errors): the classifier was "
        "dropped.",
        "classifier-not-kept": "A model file holds no {classifier}, as loading it would run code. "
        "Give the trained one: predict(…, classifier=…).",
        "classifier-of-other-classes": "The classifier has classes {given}, those of the crowd are "
        "{classes}. Name columns of given probabilities as the classes.",
        "features-without-classifier": "This model was fitted without features, or dropped its "
        "classifier: leave features out.",
        "other-features": "The classifier was trained on {kind} {columns}; these features are "
        "others. Give the same columns.",
        "task-model-without-features": "task_model needs features of tasks: fit(…, features=…).",
        "no-task-model": "task_model must be tb.ClassifierPrior(…) or None; got {value!r}.",
        "features-with-sequences": "Features and sequences cannot be fitted together: leave one "
        "of them out.",
        "features-need-exact-links": "With features, links are inferred exactly: leave out "
        "MeanFieldOptions.",
        "features-not-counted": "Counts and streams do not hold features, on which labels of this "
        "model depend: keep the responses, and update with features of all tasks.",
        "features-not-updated": lambda has_features: (
            "This model was fitted with features: an update needs those of all tasks, old and new, "
            "and all responses (no forget)."
            if has_features
            else "This model was fitted without features: leave them out, or fit again with them."
        ),
        # a ranking of pairs
        "pairs-beside-others": "Verdicts on pairs cannot be fitted together with sequences or "
        "features: leave these out.",
        "option-without-pairs": "With pairs=True {name} cannot be {value!r}: leave it as it is.",
        "pairs-not-updated": "The ranking is learnt from all verdicts together: fit again with old "
        "and new ones.",
        # what a fit found
        "near-mode": _near_mode,
        "no-worker-model": "{name} does not model workers, so there are no intervals to give. Use "
        "Auto, VariationalBayes, DawidSkene or GibbsSampler.",
    }
)
