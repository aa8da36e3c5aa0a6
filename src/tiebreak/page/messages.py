"""What the page and its server say, by code."""

from __future__ import annotations

from tiebreak.errors import register
from tiebreak.wording import worded

MESSAGES = {
    # The command
    "host-needs-token": (
        "--host {host} lets other machines reach this server. Choose a secret for leads with "
        "--token TEXT ({least} characters or more)."
    ),
    "weak-token": "--token must have at least {least} printable characters.",
    "port-taken": "Cannot listen on port {port} of {host}: {reason}. Choose another: --port N.",
    "unreadable-guidelines": "Cannot read the guidelines in {file}: {reason}.",
    "no-media-folder": "{folder} is not a folder. --media names a folder of images or sounds.",
    "media-needed": "The texts name images or sounds. Name their folder: --media DIR.",
    "remote-media": (
        "{n:count address} of images or sounds not shown. --allow-remote lets browsers fetch "
        "them, which tells those servers which tasks are looked at."
    ),
    # The door
    "unknown-host": "Unknown host name. Add it with --allow-host.",
    "bad-header": "The header {header} is malformed.",
    "bad-method": "Method not allowed.",
    "other-site": "This form was sent from another site, or without saying from where.",
    "too-long": "A request may have {most} bytes.",
    "broken-off": "The request was broken off.",
    "too-many": "Too many requests. Wait a second.",
    "not-let-in": "Open the address that `tiebreak serve` printed, or ask for an invitation.",
    "old-address": "This link has expired. Use the address printed by the current run.",
    "bad-invitation": "This invitation is not from this server. Ask for a new one.",
    "used-invitation": (
        "This invitation was used in another browser, or replaced by a newer one. Ask for a "
        "new one."
    ),
    "leads-only": "This page is for leads.",
    "has-name": "You have a name already.",
    "bad-name": "A name has 1 to {most} characters.",
    "name-of-guest": "{who} is the name of an invited person. Choose another name.",
    "name-of-lead": "{who} is the name of a lead. Choose another name.",
    "name-in-use": (
        "The name {who} is in use. Choose another, or confirm that it is the same person."
    ),
    # The pages
    "no-page": "There is no such page.",
    "no-file": "There is no such file.",
    "no-task": "There is no such task or class.",
    "bad-number": "A number is missing or wrong. Reload the page.",
    "bad-question": "This question is not from this page. Reload the page.",
    "question-of-other": "This question was asked of another person. Reload the page.",
    "question-of-other-job": "This question belongs to another job. Reload the page.",
    "bad-answer": "This is not one of the answers to the question. Reload the page.",
    "answer-of-other": "This answer is another person's. Only they or a lead can change it.",
    "label-given": "The label of {task} was given with the job and cannot be changed here.",
    "label-gone": "This label was already removed.",
    "our-fault": "Something went wrong. Every confirmed answer is kept; try again.",
}
register(worded(MESSAGES))
