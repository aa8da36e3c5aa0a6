"""The messages of the command line, by their codes."""

from __future__ import annotations

from tiebreak.errors import Message, register
from tiebreak.wording import worded

OWN: dict[str, Message] = {
    # Files
    "stdin-twice": "Only one file can be '-', the standard {stream}. Name the others.",
    "stdin-not-here": "{why}, so no file can be '-'. Name the file.",
    "file-taken": "{file} is read or written by this command already. Name another.",
    "file-not-usable": "{file} cannot be used: {reason}.",
    "out-folder-not-made": "The folder {folder} cannot be made: {reason}.",
    "file-exists": "{file} exists already, and may be yours. Name another folder with -o, or "
    "overwrite it with --force.",
    "stdout-is-closed": "Standard output is closed, so nothing can be written there. Use -o FILE.",
    "json-needs-out": "--json writes the summary to stdout, where the labels go. Name a file "
    "with -o.",
    "session-or-list": "Name the file of answers with --session FILE, or list questions with "
    "--list N.",
    "gold-overrides-file": "--gold is used; the {n:,} known labels in {file} are not.",
    # Options
    "unknown-setting": "--set {name}: there is no such option here.{meant:meant} There are: "
    "{known}.",
    "pairs-expected": "{option} takes name=value,name=value; got {text!r}.",
    "numbers-expected": "{option} takes name=number, such as {example}; got {text!r}.",
    "option-needs": "{option} needs {other}.",
    "options-exclude": "{one} and {other} exclude each other.",
    "method-without-links": "--method {method} cannot use --links; --method vb can.",
    "method-without-sequences": "--method {method} cannot use {what}; --method vb can.",
    "method-without-pairs": "--method {method} cannot label --pairs; auto and vb can.",
    "method-without-features": "--method {method} cannot use --features; auto and vb can.",
    "tool-of-spans": "{to} takes spans, and this table has labels: give what fuse --spans-out "
    "wrote.",
    "method-without-workers": "--method mv does not model workers; --worker-summary needs it to.",
    "method-without-scale": "--method {method} reads no scale; --method auto and vb do.",
    "nothing-new": "There is nothing new: name responses, --links or --gold.",
    "not-over-shards": "{what} over shards has no {options}. Leave it out.",
    "shards-need-folder": "Labels of shards go into a folder: name it with -o FOLDER.",
    "no-bench-gold": "Methods are compared on known labels, and there are none. Name them with "
    "--gold FILE.",
    "bench-one-source": "Name responses, or datasets with --dataset NAME, and not both.",
    "processes-not-counted": "--cluster local:N takes a number of processes; got {address!r}.",
    "no-scheduler": "No scheduler answers at {address} ({reason}). Start one with: dask scheduler",
    # Conversion, questions, judges
    "no-probabilities-below": "--below needs a column of probabilities in LABELS.",
    "no-label-below": "No label is below {below}: nothing to write.",
    "strategy-draws-pairs": "strategy={strategy!r} draws pairs; leave out --kinds.",
    "no-matrix-without-gold": "How errors correlate cannot be seen without gold. Leave out "
    "--matrix.",
    "labels-and-gold-differ": "Labels and gold share no class: {labels} against {gold}. "
    "{meant!r} and {other!r} {difference}. Write them alike, or fuse with --set fold_labels.",
    "scores-need-probabilities": "Log loss and Brier score need one probability per class: "
    "tiebreak fuse --probabilities.",
    "needs-page-extra": "tiebreak serve needs the extra page: pip install 'tiebreak[page]'.",
}
register(worded(OWN))
