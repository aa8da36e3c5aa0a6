"""Columns: what each kind of table has, the names people give it, and which column holds it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tiebreak.data.labels import SCORES
from tiebreak.errors import (
    ConstraintError,
    GoldError,
    InputError,
    LinkError,
    OptionError,
    ResponseError,
    note,
)
from tiebreak.tables.table import Table

LOOKED_AT = 200_000  # rows, where two columns are compared
PREFIX = "probability_"  # and the name of a class: its probability


class Role(NamedTuple):
    """What a column is for, and other names under which people keep it.

    `weak` names are taken only where nothing else fits: an `id` may be anything.
    """

    name: str
    others: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    is_needed: bool = True


class Schema(NamedTuple):
    """What a table holds, the error for it, and its columns."""

    what: str
    error: type[InputError]
    roles: tuple[Role, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all roles, needed ones first."""
        return tuple(role.name for role in self.roles)

    @property
    def needed(self) -> tuple[str, ...]:
        """Names of the roles that must be there."""
        return tuple(role.name for role in self.roles if role.is_needed)


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
        "reviewer assessor grader llm performer contributor expert classifier evaluator scorer"
    )
    | _words(
        "workerid workername username modelname judgename annotatorname ratername gradername "
        "evaluatorname judgemodel gradermodel evaluatormodel judgellm llmjudge who"
    ),
)
LABEL = Role(
    "label",
    _words(
        "answer response vote class annotation value rating choice category judgment judgement "
        "verdict prediction decision tag grade result stars"
    ),
    weak=_words("score outcome assessment evaluation preference winner mark"),
)
TRUTH = Role(
    "label",
    LABEL.others
    | _words(
        "truth gold goldlabel truelabel trueclass groundtruth correctlabel correctanswer "
        "target expected"
    ),
    weak=LABEL.weak,
)
LEFT = Role("left", _words("a taska task1 first item1 itema lefttask lefttaskid leftid taskleft"))
RIGHT = Role(
    "right", _words("b taskb task2 second item2 itemb righttask righttaskid rightid taskright")
)
LINK = Role("link", _words("kind type relation constraint answer linktype"))
TEXT = Role("text", _words("content body snippet"))
SEQUENCE = Role(
    "sequence",
    _with_ids("sentence document doc series night recording video session abstract thread"),
)
SYSTEM = Role("system", _words("model variant arm candidate version by"))
CHANCE = Role("probability", _words("chance pi inclusionprobability"))

FIRST = Role(
    "first",
    _words("a left modela model1 itema item1 firstitem leftitem systema system1 playera player1"),
    weak=_words("answera answer1 optiona option1 responsea response1 candidatea candidate1"),
)
SECOND = Role(
    "second",
    _words(
        "b right modelb model2 itemb item2 seconditem rightitem systemb system2 playerb player2"
    ),
    weak=_words("answerb answer2 optionb option2 responseb response2 candidateb candidate2"),
)
VERDICT = Role(
    "verdict",
    _words("winner preference preferred better choice judgment judgement decision label"),
    weak=_words("answer response vote annotation result outcome rating score"),
)

EXTRAS: dict[str, tuple[str, ...]] = {  # that responses may have too: the role, and its names
    "run": ("run", "runid", "epoch", "seed", "attempt", "trial", "repetition", "replicate"),
    "order": ("order", "position", "swapped", "presentationorder"),
    "group": ("group", "family", "modelfamily"),
    "confidence": ("confidence",),
    "weight": ("weight",),  # how often a response counts
    "time": ("time",),
}


def _optional(*names: str, **others: frozenset[str]) -> tuple[Role, ...]:
    return tuple(Role(name, others.get(name, frozenset()), is_needed=False) for name in names)


RESPONSES = Schema("responses", ResponseError, (TASK, WORKER, LABEL))
VOTERS = Schema("soft votes", ResponseError, (TASK, WORKER))
WITH_EXTRAS = RESPONSES._replace(
    roles=(
        *RESPONSES.roles,
        *_optional(*EXTRAS, **{name: frozenset(words) for name, words in EXTRAS.items()}),
    )
)
GOLD = Schema("gold", GoldError, (TASK, TRUTH))
LINKS = Schema(
    "links", LinkError, (LEFT, RIGHT, LINK, *_optional("weight", "who", who=_words("source by")))
)
SEQUENCES = Schema(
    "sequences",
    InputError,
    (
        TASK._replace(
            others=TASK.others - {"sentence", "document", "doc", "sentenceid", "docid"}
            | {"token", "tokenid"}
        ),
        SEQUENCE,
        *_optional(
            "position",
            "text",
            "begin",
            "end",
            position=_words("index order offset"),
            text=TEXT.others | {"word", "tokentext"},
        ),
    ),
)
GROUPS = Schema(
    "groups", ConstraintError, (TASK, Role("group", _with_ids("mention cluster record block set")))
)
CONSTRAINTS = Schema(
    "constraints",
    ConstraintError,
    (
        Role("constraint", _with_ids("rule group")),
        *(TASK, LABEL, Role("count", _words("counts how"))),
        *_optional("weight", "who", who=_words("source by")),
    ),
)
SPANS = Schema("spans", InputError, (SEQUENCE, LABEL, *_optional("begin", "end", "probability")))
LABELS = Schema("labels", InputError, (TASK, LABEL, *_optional("probability", *SCORES)))
TASKS = Schema("tasks", InputError, (TASK,))
FEATURES = Schema("features", InputError, (TASK,))
CONTENTS = Schema(
    "texts",
    InputError,
    (TASK, *_optional("text", "markdown", "image", "audio", text=TEXT.others)),
)
TEXTS = Schema("texts", InputError, (TASK, TEXT))
SYSTEMS = Schema("systems", InputError, (TASK, SYSTEM))
OPPONENTS = Schema("systems", InputError, (TASK, FIRST, SECOND))
SELECTION = Schema("selection", InputError, (TASK, CHANCE))
PAIRS = Schema(
    "pairs",
    InputError,
    (
        *(FIRST, SECOND, VERDICT),
        *(TASK._replace(is_needed=False), WORKER._replace(is_needed=False)),
        *_optional("run", "weight", run=frozenset(EXTRAS["run"])),
    ),
)
CLASS_TEXTS = Schema("class texts", InputError, (Role("class", LABEL.others | {"label"}), TEXT))


def find_columns(
    table: Table, schema: Schema, chosen: Mapping[str, object] | None = None
) -> dict[str, int]:
    """Return the position of the column for each role; optional roles may be absent.

    Exact names win, without regard to case and blanks around them; else one other common name,
    reported. `chosen` maps roles to names and wins over both.
    """
    found = {}
    for name, wanted in (chosen or {}).items():
        if name not in schema.names:
            raise OptionError.unknown("columns: the key", name, schema.names)
        found[name] = chosen_column(table, schema, name, wanted)
    read_as = []
    for role in schema.roles:
        if role.name not in found:
            matches = positions_for(table, role, set(found.values()))
            if matches:
                found[role.name] = _only(table, schema, role.name, matches)
                name = table.names[found[role.name]]
                if _folded(name) != role.name:
                    read_as.append((name, role.name))
    missing = [name for name in schema.needed if name not in found]
    if missing:
        raise _missing(table, schema, missing, is_any_known=bool(found))
    _refuse_two_choices(table, schema, found, chosen or {})
    if read_as:
        note("columns-read-as", table=table.title, pairs=read_as)
    return {name: found[name] for name in schema.names if name in found}


def squashed(name: str) -> str:
    """Fold case and drop blanks, hyphens and underscores.

    >>> squashed(" Task-ID "), squashed("worker_id")
    ('taskid', 'workerid')
    """
    return "".join(c for c in name.casefold() if c not in " \t_-")


def chosen_column(table: Table, schema: Schema, role: str, wanted: object) -> int:
    """Return the position of the column that the caller names for a role."""
    name = str(wanted)
    matches = positions_of(table.names, name)
    if not matches:
        meant = _closest(name, table)
        raise schema.error(
            "no-such-column",
            table=table.title,
            column=name,
            role=role,
            columns=table.names,
            meant=meant,
        )
    return _only(table, schema, role, matches)


def positions_of(names: Sequence[str], name: str) -> list[int]:
    """Find the columns of a name: as it is written, else without regard to case and blanks."""
    exact = [i for i, there in enumerate(names) if there == name]
    return exact or [i for i, there in enumerate(names) if _folded(there) == _folded(name)]


def positions_for(table: Table, role: Role, taken: Iterable[int] = ()) -> list[int]:
    """Find the columns for one role: by its own name, else by other names, else by weak ones."""
    free = [i for i in range(len(table.names)) if i not in taken]
    for matches in (
        [i for i in free if _folded(table.names[i]) == role.name],
        [i for i in free if squashed(table.names[i]) in role.others],
        [i for i in free if squashed(table.names[i]) in role.weak],
    ):
        if matches:
            return matches
    return []


def _refuse_two_choices(
    table: Table, schema: Schema, found: Mapping[str, int], chosen: Mapping[str, object]
) -> None:
    """Refuse a task found by a common name beside an `id` that groups rows differently.

    `prompt` and `id`: where each prompt has one id, either will do. An `id` that is different in
    every row, or the same in all, is no choice.
    """
    at = found.get(TASK.name)
    if schema.what != "responses" or at is None or TASK.name in chosen:
        return
    if _folded(table.names[at]) == TASK.name:
        return
    free = [i for i in range(len(table.names)) if i not in found.values()]
    for other in (i for i in free if squashed(table.names[i]) in TASK.weak):
        rows: list[tuple[object, object]] = []
        for columns in table.batches([at, other]):
            rows += zip(*(column.to_pylist() for column in columns), strict=True)
            if len(rows) >= LOOKED_AT:
                break
        pairs = set(rows)
        n_tasks, n_others = (len({pair[i] for pair in pairs}) for i in (0, 1))
        if not n_tasks == n_others == len(pairs) and n_others not in (1, len(rows)):
            _only(table, schema, TASK.name, [at, other])


def _only(table: Table, schema: Schema, role: str, matches: list[int]) -> int:
    """Return the one match, or say that there are several."""
    if len(matches) == 1:
        return matches[0]
    names = [table.names[i] for i in matches]
    if len(set(names)) == 1:
        raise schema.error("columns-alike", table=table.title, column=names[0], n=len(names))
    raise schema.error("two-columns", table=table.title, n=len(names), role=role, candidates=names)


def _missing(table: Table, schema: Schema, missing: list[str], *, is_any_known: bool) -> InputError:
    if table.has_header and not is_any_known and len(table.names) >= len(schema.needed):
        return schema.error(
            "header-missing", table=table.title, columns=table.names, needed=schema.needed
        )
    return schema.error(
        "column-missing",
        table=table.title,
        missing=missing,
        what=schema.what,
        needed=schema.needed,
        columns=table.names,
        close={name: meant for name in missing if (meant := _closest(name, table))},
    )


def _closest(name: str, table: Table) -> str | None:
    folded = [squashed(there) for there in table.names]
    close = difflib.get_close_matches(squashed(name), folded, n=1, cutoff=0.6)
    return table.names[folded.index(close[0])] if close else None


def _folded(name: str) -> str:
    return name.strip().casefold()
