"""The sentences of research, by code."""

from __future__ import annotations

from tiebreak.errors import register

register(
    {
        "class-prior-shape": (
            "class_prior must have one entry for each of the {n_classes} classes of confusion; "
            "got shape {shape}."
        ),
        "class-prior-zero": "class_prior must be above 0 for every class; got {given}.",
        "confusion-shape": (
            "confusion must be one square matrix or a stack of them; got shape {shape}."
        ),
        "dataset-changed": "The files of {name} changed while it was run. Start again.",
        "false-cannot-link": (
            "A cannot-link joins two tasks of one class; the theorem takes every link to be "
            "correct. Move the count to another class, or leave the link out."
        ),
        "false-links": (
            "{n:,} links contradict the true classes, first the one of tasks {left} and {right}; "
            "the theorem takes every link to be correct."
        ),
        "fixed-threshold": "Only sharp bounds can choose a threshold; got {given}.",
        "gibbs-learnt-links": (
            "GibbsSampler cannot learn how often links are wrong. VariationalBayes can; or give a "
            "rate: tb.ExactLinkOptions(error=0.02)."
        ),
        "gibbs-link-options": (
            "link_options of GibbsSampler must be tb.ExactLinkOptions(…); got {given!r}."
        ),
        "gibbs-not-mixed": (
            "The chains have not mixed: R-hat is {r_hat:.2f}, above {most}. They may sit in "
            "different modes, so that probabilities and intervals mean little. Raise n_draws and "
            "n_warmup; where that does not help, some gold labels settle which class is which."
        ),
        "gibbs-start": "start must be a fitted model; got {given!r}.",
        "linked-each": "{name} must be one number, or one for each of {n} kinds of linked task.",
        "linked-kinds": (
            "truth and cannot must name the same kinds of linked task; got {n_truth} true classes "
            "and {n_cannot} rows of cannot-links."
        ),
        "linked-truth": "truth must be below {n_classes}, the columns of cannot; got {given}.",
        "links-classes": "links count {links} classes, the assumptions {assumed}.",
        "links-tasks": "links name {links:,} tasks, the assumptions only {assumed:,}.",
        "no-finished-run": (
            "{path}, line {line} is no finished run. Remove that line, or the file to start afresh."
        ),
        "no-results": "{path} holds no results of tiebreak.research.paper: {reason}.",
        "no-spectral-start": "Votes allow no spectral start, so the start is majority: {reason}.",
        "not-counts": "{name} must be whole numbers, 0 or more; got {given!r}.",
        "not-finite": "{name} must be finite; got {given!r}.",
        "not-numbers": "{name} must be numbers in equal rows; got {given!r}.",
        "not-summing": "{name} must sum to 1; got {given:.6g}.",
        "not-toml": "{path} is not a TOML file: {reason}.",
        "not-whole": "{name} must be a whole number, 1 or more; got {given!r}.",
        "one-class-theory": "The theorems need responses and two classes or more.",
        "one-for-each": (
            "{name} must be one number, or one for each of the {n} {what}; got shape {shape}."
        ),
        "perfect-worker": (
            "confusion[{at}] is 0: the theorems exclude workers who never confuse two classes. "
            "Give every entry a small positive probability, for instance 0.001."
        ),
        "prior-too-small": (
            "{name} must be {least} or more, else the bounds do not hold; got {given:g}."
        ),
        "response-rate": (
            "response_rate must be above 0 and at most 1; got {given}. Leave out workers who never "
            "answer."
        ),
        "responses-per-task": (
            "A task can have 1 to {most:,} responses from these workers; got {given}."
        ),
        "theory-counts": "confusion_counts: {reason}",
        "theory-counts-shape": (
            "confusion_counts must be 'diagonal', 'uniform', (right, wrong) or an array of shape "
            "{shape}, or that of one kind; got shape {given}."
        ),
        "too-few-runs": "{option} must be {least} or more; got {given}.",
        "unreadable-assumptions": "{path} cannot be read: {reason}.",
        "wrong-assumptions": "{path}: {reason}",
    }
)
