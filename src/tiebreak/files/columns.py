"""Columns: what each kind of table has, the names people give it, and which column holds it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import NamedTuple

from tiebreak.errors import GoldError, InputError, LinkError, OptionError, ResponseError, note
from tiebreak.files.table import Table
from tiebreak.ids import as_list
from tiebreak.wording import first_few

LONGEST_LINE = 200  # characters of a header that a message shows
LOOKED_AT = 200_000  # rows, where two columns are compared


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
        """Ids of all roles, needed ones first."""
        return tuple(role.name for role in self.roles)

    @property
    def needed(self) -> tuple[str, ...]:
        """Ids of the roles that must be there."""
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
        "verdict prediction decision tag grade result"
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
SYSTEM = Role("system", frozenset({"model", "variant", "arm", "candidate", "version", "by"}))
CHANCE = Role("probability", frozenset({"chance", "pi", "inclusionprobability"}))

EXTRAS: dict[str, tuple[str, ...]] = {  # that responses may have too: the role, and its names
    "run": ("run", "runid", "epoch", "seed", "attempt", "trial", "repetition", "replicate"),
    "order": ("order", "position", "swapped", "presentationorder"),
    "group": ("group", "family", "modelfamily"),
    "confidence": ("confidence",),
    "weight": ("weight",),  # how often a response counts
    "time": ("time",),
}
PREFIX = "probability_"  # and the name of a class: its probability

RESPONSES = Schema("responses", ResponseError, (TASK, WORKER, LABEL))
WITH_EXTRAS = RESPONSES._replace(
    roles=(
        *RESPONSES.roles,
        *(Role(name, frozenset(words), is_needed=False) for name, words in EXTRAS.items()),
    )
)
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
SYSTEMS = Schema("systems", InputError, (TASK, SYSTEM))
SELECTION = Schema("selection", InputError, (TASK, CHANCE))
CLASS_TEXTS = Schema("class texts", InputError, (Role("class", LABEL.others | {"label"}), TEXT))


def find_columns(
    table: Table, schema: Schema, chosen: Mapping[str, object] | None = None
) -> dict[str, int]:
    """Return the position of the column for each role; optional roles may be absent.

    Exact names win, without regard to case and blanks around them; else one other common name,
    reported. `chosen` maps roles to names and wins over both.
    """
    found = _chosen(table, schema, chosen or {})
    said = []
    for role in schema.roles:
        if role.name not in found:
            position = _position(table, schema, role, taken=set(found.values()))
            if position is not None:
                found[role.name] = position
                if _folded(table.names[position]) != role.name:
                    said.append(f"{table.names[position]!r} as {role.name}")
    missing = [name for name in schema.needed if name not in found]
    if missing:
        raise schema.error(_explain_missing(table, schema, missing, is_any_known=bool(found)))
    _refuse_two_choices(table, schema, found, chosen or {})
    if said:
        note(f"{table.title}: read column {', '.join(said)}.")
    return {name: found[name] for name in schema.names if name in found}


def has_column(table: Table, name: str) -> bool:
    """Tell whether a table has a column of that name, without regard to case."""
    return bool(positions_of(table, name))


def squashed(name: str) -> str:
    """Fold case and drop blanks, hyphens and underscores.

    >>> squashed(" Task-ID "), squashed("worker_id")
    ('taskid', 'workerid')
    """
    return "".join(c for c in name.casefold() if c not in " \t_-")


def _chosen(table: Table, schema: Schema, chosen: Mapping[str, object]) -> dict[str, int]:
    """Look up the columns that the caller names."""
    found = {}
    for role, wanted in chosen.items():
        if role not in schema.names:
            raise OptionError.unknown("columns: the key", role, schema.names)
        found[role] = chosen_column(table, schema, role, wanted)
    return found


def chosen_column(table: Table, schema: Schema, role: str, wanted: object) -> int:
    """Return the position of the column that the caller names for a role."""
    name = str(wanted)
    matches = positions_of(table, name)
    if not matches:
        raise schema.error(
            f"{table.title} has no column {name!r} for {role}. {existing(table)}"
            f"{_did_you_mean(name, table)}"
        )
    return _only(table, schema, role, matches)


def positions_of(table: Table, name: str) -> list[int]:
    """Find the columns of a name: as it is written, else without regard to case and blanks."""
    exact = [i for i, there in enumerate(table.names) if there == name]
    return exact or [i for i, there in enumerate(table.names) if _folded(there) == _folded(name)]


def _position(table: Table, schema: Schema, role: Role, taken: set[int]) -> int | None:
    """Find the column for one role: by its own name, then by other names, then by weak ones."""
    free = [i for i in range(len(table.names)) if i not in taken]
    for matches in (
        [i for i in free if _folded(table.names[i]) == role.name],
        [i for i in free if squashed(table.names[i]) in role.others],
        [i for i in free if squashed(table.names[i]) in role.weak],
    ):
        if matches:
            return _only(table, schema, role.name, matches)
    return None


def _refuse_two_choices(
    table: Table, schema: Schema, found: Mapping[str, int], chosen: Mapping[str, object]
) -> None:
    """Refuse a task found by a common name beside an `id` that groups rows otherwise.

    `prompt` and `id`: where each prompt has one id, either will do. An `id` that no two rows share,
    or all of them, is no choice.
    """
    at = found.get(TASK.name)
    if schema.what != "responses" or at is None or TASK.name in chosen:
        return
    if _folded(table.names[at]) == TASK.name:
        return
    free = [i for i in range(len(table.names)) if i not in found.values()]
    for other in (i for i in free if squashed(table.names[i]) in TASK.weak):
        if not _group_alike(table, at, other):
            _only(table, schema, TASK.name, [at, other])


def _group_alike(table: Table, at: int, other: int) -> bool:
    """Tell whether two columns make the same groups of rows, or the other one numbers the rows."""
    first: dict[object, object] = {}
    second: dict[object, object] = {}
    n_rows = 0
    is_same = True
    for one, two in table.batches([at, other]):
        for a, b in zip(as_list(one), as_list(two), strict=True):
            has_one = first.setdefault(a, b) == b
            is_one = second.setdefault(b, a) == a
            is_same &= has_one and is_one
        n_rows += len(one)
        if n_rows >= LOOKED_AT:
            break
    return is_same or len(second) in (1, n_rows)


def _only(table: Table, schema: Schema, role: str, matches: list[int]) -> int:
    """Return the one match, or say that there are several."""
    if len(matches) == 1:
        return matches[0]
    names = [table.names[i] for i in matches]
    if len(set(names)) == 1:
        raise schema.error(
            f"{table.title} has {len(names)} columns called {names[0]!r}. Rename all but one."
        )
    shown = ", ".join(map(repr, names))
    raise schema.error(
        f"{table.title} has {len(names)} columns that may be the {role}: {shown}.\n"
        f"Choose one with {_override({role: names[0]})}."
    )


def _explain_missing(
    table: Table, schema: Schema, missing: list[str], *, is_any_known: bool
) -> str:
    if table.has_header and not is_any_known and len(table.names) >= len(schema.needed):
        guess = dict(zip(schema.needed, table.names, strict=False))
        return (
            f"{table.title}: the header is missing: the first line is "
            f"{_shortened(','.join(table.names))!r}.\n"
            f"Add {','.join(schema.needed)} as the first line; or, if this is a header, "
            f"name its columns with {_override(guess)}."
        )
    close = {name: table.names[i] for name in missing if (i := _closest(name, table)) is not None}
    guess = {name: close.get(name, "…") for name in missing}
    hint = "".join(f" Did you mean {there!r} for {name}?" for name, there in close.items())
    return (
        f"{table.title} has no column for {' and '.join(missing)} ({schema.what} need "
        f"{', '.join(schema.needed)}). {existing(table)}{hint}\n"
        f"Rename it, or name it with {_override(guess)}.{_wide_hint(table, missing)}"
    )


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


def _wide_hint(table: Table, missing: list[str]) -> str:
    """Say how a table of tasks is read in which each other column may be a worker."""
    if missing != ["worker", "label"] or len(table.names) < 3:
        return ""
    return (
        "\nIf each other column is a worker, read the table with wide=True (--wide). Where a "
        "command lacks that, make a long table first: tiebreak convert IN --wide -o FILE.csv"
    )


def existing(table: Table) -> str:
    """Say which columns a table has."""
    return f"Its columns are {first_few([repr(name) for name in table.names], 20)}."


def _did_you_mean(name: str, table: Table) -> str:
    i = _closest(name, table)
    return "" if i is None else f" Did you mean {table.names[i]!r}?"


def _closest(name: str, table: Table) -> int | None:
    folded = [squashed(there) for there in table.names]
    close = difflib.get_close_matches(squashed(name), folded, n=1, cutoff=0.6)
    return folded.index(close[0]) if close else None


def _override(columns: Mapping[str, str]) -> str:
    """Show how to name columns, in Python and on the command line."""
    pairs = ",".join(f"{role}={name}" for role, name in columns.items())
    return f"columns={dict(columns)!r} (--columns {pairs!r})"


def _folded(name: str) -> str:
    return name.strip().casefold()
