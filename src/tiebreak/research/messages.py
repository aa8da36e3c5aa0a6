"""The sentences of research, by code."""

from __future__ import annotations

from tiebreak.errors import register

register(
    {
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
        "links-classes": "links count {links} classes, the assumptions {assumed}.",
        "links-tasks": "links name {links:,} tasks, the assumptions only {assumed:,}.",
        "no-finished-run": (
            "{path}, line {line} is no finished run. Remove that line, or the file to start afresh."
        ),
        "no-results": "{path} holds no results of tiebreak.research.paper: {reason}.",
        "no-spectral-start": "Votes allow no spectral start, so the start is majority: {reason}.",
        "not-toml": "{path} is not a TOML file: {reason}.",
        "one-class-theory": "The theorems need responses and two classes or more.",
        "perfect-worker": (
            "confusion[{at}] is 0: the theorems exclude workers who never confuse two classes. "
            "Give every entry a small positive probability, for instance 0.001."
        ),
        "responses-per-task": (
            "A task can have 1 to {most:,} responses from these workers; got {given}."
        ),
        "theory-counts": "confusion_counts: {reason}",
        "too-few-runs": "{option} must be {least} or more; got {given}.",
        "unreadable-assumptions": "{path} cannot be read: {reason}.",
        "wrong-assumptions": "{path}: {reason}",
    }
)
