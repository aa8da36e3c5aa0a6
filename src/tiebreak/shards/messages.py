"""What errors and notes about shards and clusters say, by code."""

from __future__ import annotations

from tiebreak.errors import Message, register
from tiebreak.wording import worded

RESUME = "go on with resume=True"


MESSAGES: dict[str, Message] = {
    # shards
    "shard-memory": "{where}: memory ran out. Cut it into smaller shards, or give each process "
    "more memory.",
    "shard-unreadable": "{where}: {reason}.",
    "shards-empty": "{n:count shard} of {n_shards:,} empty: left out.",
    "more-notes-on-shards": "There are {n:,} more notes like these on other shards.",
    "shards-without-responses": "There is no response in any of the shards.",
    "shards-of-other-types": "The {what} of {first} are of type {kind}, those of {other} of type "
    "{other_kind}. Write all shards with one type, for instance text.",
    "shard-classes-differ": "The classes of {n:count shard} differ from those of {first}: "
    "all {n_classes} are used everywhere.",
    "tasks-spread": "{n:count task} {n:verb have} responses in several shards: all {n_shards:,} "
    "are cut anew, by task. Shards that hold whole tasks need no such copy.",
    "repeats-between-shards": "{n:count response} of several shards {n:verb repeat} a worker on a "
    "task: the last one counts, in the order of the shards.",
    # what is fitted
    "shards-estimator": "{name} is not fitted over shards. VariationalBayes, DawidSkene and "
    "MajorityVote are (--method vb, ds or mv).",
    "shards-backend": "backend={backend!r} sweeps on one machine. Over shards it is one of "
    "{allowed}.",
    "shards-auto-scale": "Over shards a scale is declared: scale='1..5' or the like, not 'auto'.",
    "shards-init": "Over shards q starts at the votes: init='majority'.",
    "shards-mean-field": "Mean-field links are fitted on one machine. Over shards links are exact: "
    "leave out link_options, or give tb.ExactLinkOptions(…).",
    "shards-too-large": "{n_workers:,} workers and {n_classes:,} classes make a table of "
    "{table:size} (workers · classes · states · 8 bytes), of which the driver holds {n_tables}; "
    "{n_named:,} tasks that links and gold name take {named:size}; all else {rest:size}. Together "
    "that is {needed:size}, and this machine has {limit:size}. Start the driver on a larger "
    "machine, fit fewer workers or classes at a time, or name fewer tasks.",
    # the folder of labels
    "labels-into-file": "{path} is a file. Labels of shards go into a folder: name another.",
    "labels-into-foreign": "{path} holds {name!r}, which is none of the labels of a fit. Choose "
    "another folder.",
    "folder-not-made": "The folder {path} cannot be made: {reason}.",
    "fit-broken-off": "{path} holds a fit that was broken off after {n:,} sweeps. "
    "Go on with resume=True, or begin anew with force=True.",
    "labels-not-written": f"{{reason}} The fit is kept: {RESUME}.",
    "table-not-written": "A table of {size:,} bytes was not written into {folder}: {reason}. "
    f"Free some room and {RESUME}.",
    "checkpoint-not-written": "The checkpoint of sweep {number} was not written: {reason} "
    f"Free some room and {RESUME}.",
    "checkpoint-missing": "There is no checkpoint in {folder} to go on from. Leave out resume.",
    "checkpoint-of-other-fit": "The checkpoint in {folder} is of another fit: {names:list} differ. "
    "Give the same inputs and options, or fit anew with force=True.",
    "checkpoint-of-other-sweep": "{file} is of another fit: its sweep began elsewhere. Remove the "
    "folder {folder} and fit anew.",
    "checkpoint-damaged": "{file} is damaged ({reason}). Remove it and the later ones; then "
    f"{RESUME} from the one before.",
    # the cluster
    "workers-died": "{n:count worker} died one after the other at {item}. Memory is the usual "
    f"reason: cut shards smaller, or give workers more memory; then {RESUME}.",
    "worker-failed": "A worker failed: {kind}: {error}",
    "cluster-without-workers": "The cluster has no worker for {seconds:.0f} s. Start the cluster "
    f"again, and {RESUME}.",
    "scheduler-lost": "The scheduler at {address} is lost. Start the cluster again, and "
    f"{RESUME}.",
    "tiebreak-missing": "tiebreak is not installed on {where}. Install tiebreak[dask] {here} on "
    "the scheduler and on every worker.",
    "version-differs": "tiebreak is {there} on {where} and {here} here. Install one version "
    "everywhere.",
}
register(worded(MESSAGES))
