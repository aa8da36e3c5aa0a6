"""The sentences of asking people: what is wrong with a session, an answer, a question."""

from __future__ import annotations

from tiebreak.errors import register
from tiebreak.wording import worded

PATIENCE = 10.0  # seconds to wait for another process that writes
RESTORE = "Put an earlier copy in its place, or name another file."


MESSAGES = {
    "which-needs-rules": "Questions of the kind 'which' are about groups of tasks of which at "
    "most one, or exactly one, is of a class, and no constraint says that.",
    # the file
    "session-version": (
        "{path} is a session file of version {version}; this tiebreak reads version {known}. "
        "Use the tiebreak that made it, or begin with another file."
    ),
    "session-of-another-program": (
        "{path} is a database of another program. Name another file for the session."
    ),
    "session-of-another-job": (
        "{path} belongs to another job: it was made for {made_for}; these responses have "
        "{given}.\nPass the responses that it was made for, or name another file for this "
        "session."
    ),
    "session-names-unknown": (
        "{path} holds an answer about {what} {name!r}, which the responses do not have. "
        "Pass the responses that it was made for."
    ),
    "session-damaged": "{path} is damaged ({reason}). " + RESTORE,
    "session-not-one": "{path} is not a session file, or it is damaged ({reason}). " + RESTORE,
    "session-disk-full": (
        "{path} cannot be written ({reason}): is the disk full?\n"
        "Answers that were confirmed are kept, the last one is not. Make room and run this "
        "again."
    ),
    "session-read-only": (
        "{path} is read-only, so no answer can be kept ({reason}). "
        "Make the file and its folder writable, or copy it to where you may write."
    ),
    "session-is-a-folder": "{path} is a folder. Name a file in it, such as {path}/session.db.",
    "session-in-no-folder": "{path} cannot be made: there is no folder {path.parent}.",
    "session-not-opened": (
        "{path} cannot be opened ({reason}). May you read and write it and its folder?"
    ),
    "session-held": (
        "{path} has been locked by another program for over "
        f"{PATIENCE:.0f} seconds ({{reason}}). "
        "Close it there and run this again; answers that were confirmed are kept."
    ),
    "session-failed": "{path}: {reason}. Answers that were confirmed are kept.",
    "session-worker-ended": (
        "The fits that run in the background have stopped: {error!r}. Every answer is kept; "
        "start the server again to go on."
    ),
    "session-model-unreadable": (
        "The last fit in {path} cannot be read ({reason}): fitted from the start."
    ),
    # answers
    "answer-not-offered": "answer must be one of {allowed}; got {answer!r}.",
    "answer-given-before": "This question was answered before. Undo that, and ask again.",
    "answer-not-there": "There is no answer {id} to {what}: it was undone, or never was.",
    "answered-labels-left-out": "{n:count task} with different labels: left out.",
    # what is asked
    "question-about-two-things": ("A question is about other or about label; give one of them."),
    "unknown-task": "There is no task {task!r} among the responses.",
    "unknown-class": "There is no class {label!r}; the classes are {classes:list 10}.",
    "among-unknown": "Tasks to ask about are not among the responses: {tasks:list 3}. Correct "
    "or remove them.",
    "texts-unused": "Texts of {of} are not used: {names:list 3}.",
    "texts-missing": "{n:count task} of {n_tasks:,} {n:verb have} no text: ids are shown.",
    # options
    "costs-unknown-word": "costs must be a mapping of kind to cost, or 'time'; got {costs!r}.",
    "kinds-need-adaptive": ("strategy={strategy!r} draws pairs, so kinds can be ('same',) only."),
    "votes-need-one-person": (
        "Questions that are chosen ahead are for anybody: kinds can be same, label and is "
        "there, and costs must be numbers. Votes, and costs by time, are for `tiebreak ask`."
    ),
    "who-empty": "who must name the person who answers; got {who!r}.",
    "links-of-spans": "Where spans are asked about, links and texts of tokens have no place. "
    "Leave them out.",
    "no-span-marked": "Nobody marked a span in these sequences: there is nothing to ask about.",
    "answered-spans-overlap": "{n:,} spans overlap others that are said to be spans, too: they "
    "are left out of the labels. Undo one of each.",
}
register(worded(MESSAGES))
