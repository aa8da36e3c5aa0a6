"""What errors and notes about kept models and streams say, by code."""

from __future__ import annotations

from tiebreak.errors import Message, register
from tiebreak.wording import worded

TYPES = {"str": "text", "int": "whole numbers", "float": "numbers", "bool": "true or false"}


def _event_type(name: str, value: object, kind: type) -> str:
    wanted = TYPES.get(kind.__name__, kind.__name__)
    return f"Ids of this model are {wanted}; got {name} {value!r}."


MESSAGES: dict[str, Message] = {
    # predict
    "workers-unseen": "{n:count worker} of {n_workers:,} not seen by the model: {names:list 3}. "
    "What they say counts as the prior has it.",
    "labels-unknown": "{n:count response} with labels that the model does not know left out: "
    "{names:list 3}. Update the model to make them classes.",
    "predicted-one-by-one": "The model knows sequences, and these tasks are labelled one by one: "
    "labels need not follow each other as they can. Fit them with sequences=, or update the model.",
    "nothing-to-predict": "Nothing to label: give responses, or features of tasks.",
    # update
    "given-before": "The same {n:count response} were given to this model before, and are left "
    "out. again=True counts them once more.",
    "answered-anew": "{n:count response} of the model said anew by the same worker on the same "
    "task; the last one counts.",
    "needs-responses": "{name} cannot go on from counts, nor forget: use VariationalBayes, or "
    "keep the responses.",
    "votes-not-counted": "Auto needs the responses: a vote cannot be told from counts. Keep the "
    "responses, or use VariationalBayes (--method vb).",
    "sequences-need-responses": "A model of tasks in sequences or a network keeps its responses: "
    "it takes no stream, forgets nothing and is not kept as counts. Give it more with "
    "update(responses).",
    "gold-changed": "Task {task!r} is known as {former!r} already, and now as {label!r}. Correct "
    "the one that is wrong; to change what the model knows, fit it again.",
    "unknown-record": "the model holds a {name}, which is not known here: where it is a worker "
    "model of your own, import its module first",
    # streams
    "linked-to-itself": "Task {task!r} is linked to itself.",
    "class-not-taken": "Label {label!r} is a new class, and what was learnt of this crowd's "
    "workers as a whole does not tell how they give it. Fit the model again with all responses.",
    "no-stream-of": "{path} is a model of {name}; only VariationalBayes takes a stream. Fit one: "
    "tiebreak fuse RESPONSES --method vb --save MODEL.tbm",
    "journal-not-written": "{path} cannot be written: {reason}.",
    "event-not-json": "This is not JSON: {reason}.",
    "event-no-object": 'An event is a JSON object, such as {{"seq": 1, "ask": "a"}}.',
    "event-seq": 'An event needs a whole number "seq", 0 or more; got {value!r}.',
    "event-without": "An event of this kind needs {name!r}; it has {names:list}.",
    "event-id": "{name!r} must be text or a number; got {value!r}.",
    "event-type": _event_type,
    "event-link": '"link" must be must or cannot; got {value!r}.',
    "event-weight": '"weight" must be above 0 and finite; got {value!r}.',
    # model files
    "not-kept": "{name} has no model to keep. {kinds} do: fit one of them, or write the labels "
    "alone with model.labels_.write.",
    "cannot-keep": "{name} holds a {type}, which a model file cannot keep.",
}
register(worded(MESSAGES))
