"""Schemas of tables: what each has, and the names people give columns."""

from __future__ import annotations

from tiebreak.errors import GoldError, InputError, LinkError, ResponseError
from tiebreak.files.columns import Role, Schema


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _with_ids(words: str) -> frozenset[str]:
    """Accept each word, and the word followed by id."""
    return frozenset(word + ending for word in words.split() for ending in ("", "id"))


TASK = Role(
    "task",
    _with_ids(
        "item question example datum object unit image sentence document doc instance sample "
        "hit prompt query tweet"
    )
    | {"taskid", "taskname"},
    weak=frozenset({"id"}),
)
WORKER = Role(
    "worker",
    _with_ids(
        "annotator rater judge model labeler labeller user person coder participant respondent "
        "reviewer assessor grader llm performer contributor expert classifier"
    )
    | {"workerid", "workername", "username", "modelname", "judgename", "who"},
)
LABEL = Role(
    "label",
    _words(
        "answer response vote class annotation value rating choice category judgment judgement "
        "verdict prediction decision tag grade result"
    ),
)
TRUTH = Role(
    "label",
    LABEL.others
    | _words(
        "truth gold goldlabel truelabel trueclass groundtruth correctlabel correctanswer "
        "target expected"
    ),
)
LEFT = Role(
    "left",
    _words("a taska task1 first item1 itema lefttask lefttaskid leftid taskleft"),
)
RIGHT = Role(
    "right",
    _words("b taskb task2 second item2 itemb righttask righttaskid rightid taskright"),
)
LINK = Role("link", _words("kind type relation constraint answer linktype"))
WEIGHT = Role("weight", is_needed=False)
WHO = Role("who", frozenset({"source", "by"}), is_needed=False)
PROBABILITY = Role("probability", is_needed=False)
TEXT = Role("text", frozenset({"content", "body", "snippet"}))

PREFIX = "probability_"  # and the name of a class: its probability

RESPONSES = Schema("responses", ResponseError, (TASK, WORKER, LABEL))
GOLD = Schema("gold", GoldError, (TASK, TRUTH))
LINKS = Schema("links", LinkError, (LEFT, RIGHT, LINK, WEIGHT, WHO))
LABELS = Schema("labels", InputError, (TASK, LABEL, PROBABILITY))
TASKS = Schema("tasks", InputError, (TASK,))
CONTENTS = Schema(
    "texts",
    InputError,
    (
        TASK,
        Role("text", TEXT.others, is_needed=False),
        *(Role(name, is_needed=False) for name in ("markdown", "image", "audio")),
    ),
)
TEXTS = Schema("texts", InputError, (TASK, TEXT))
CLASS_TEXTS = Schema("class texts", InputError, (Role("class", LABEL.others | {"label"}), TEXT))
