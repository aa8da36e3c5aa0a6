"""Verdicts on pairs of items: files of arenas and judges, and any table of three columns.

model_a   model_b   winner    judge   question_id
gpt-4     llama     model_a   ann     81             ann saw gpt-4 first, and preferred it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tiebreak.data import Builder, Repeats
from tiebreak.data.building import read_weights
from tiebreak.data.ids import MISSING, Column, Ids, as_numbers, as_text, composed, encode, offenders
from tiebreak.data.pairs import FIRST, SECOND, VERDICTS, WORDS, PairVerdicts
from tiebreak.errors import InputError, note
from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.tables import columns as schemas
from tiebreak.tables.columns import find_columns, squashed
from tiebreak.tables.formats import format_of, records_of
from tiebreak.tables.formats.judges import GAMES
from tiebreak.tables.options import ReadingOptions
from tiebreak.tables.plain import Opened, open_source
from tiebreak.tables.probabilities import complete
from tiebreak.tables.table import Table, arrays, read_stripped
from tiebreak.wording import Source

SHOWN = 5  # wrong verdicts
SIDES = (("first", "second"), ("left", "right"), ("a", "b"), ("1", "2"))  # endings of columns


def read_pairs(
    source: Any,
    *,
    columns: Mapping[str, object] | None = None,
    format: str | None = None,
    repeats: Repeats | None = None,
    covariates: Sequence[str] = (),
    baseline: str | None = None,
) -> PairVerdicts:
    """Read which of two items is better, as judges said.

    Columns are first, second and verdict, and optionally worker (the judge), task (the prompt), run
    and weight; other common names are understood, such as those of MT-Bench, crowd-kit and evalica.
    A verdict is one of the two items, or a word: first, second, left, right, model_a, A>B, tie …
    See `read_responses` for what `source`, `columns`, `format` and `repeats` may be. `covariates`
    have a column for each side, such as length_first and length_second; `baseline` is the model
    that all others were compared with, where an Arena-Hard file does not say so.

    Examples
    --------
    >>> read_pairs([("gpt", "llama", "first"), ("bert", "gpt", "gpt"), ("bert", "llama", "tie")])
    PairVerdicts(3 verdicts, 3 items, 0 judges, 0 prompts)
    """
    if isinstance(source, PairVerdicts):
        return source
    how = ReadingOptions(columns=columns, format=format, repeats=repeats, baseline=baseline)
    opened = open_source(source, None, schemas.PAIRS)
    form = format_of(opened, format) if not (columns or covariates) else None
    is_game = form is not None and form.name in GAMES
    table = _table_of_games(opened, form, how) if is_game else opened.table
    found = find_columns(table, schemas.PAIRS, how.named)
    values = dict(zip(found, read_stripped(table, list(found.values())), strict=True))
    pairs, rows = _coded(table, values)
    sides = [_side(table, name) for name in covariates]
    if sides:
        pairs = replace(pairs, sides=np.stack(sides, axis=1)[rows], covariates=tuple(covariates))
    return _settled(pairs, repeats or ("runs" if "run" in values else "last"))


def _table_of_games(opened: Opened, form: Any, how: ReadingOptions) -> Table:
    """Make a table of the games of a tool's file."""
    games = [game for record in records_of(opened) for game in GAMES[form.name](record, how)]
    parts: dict[str, list[Any]] = {
        "first": [game.first for game in games],
        "second": [game.second for game in games],
        "verdict": [None if g.verdict is None else _word(g.verdict, g.word) for g in games],
        "worker": [game.worker for game in games],
        "task": [game.prompt for game in games],
    }
    parts = {name: each for name, each in parts.items() if any(v is not None for v in each)}
    source = Source(opened.name, lambda row: games[row].record.at)
    return arrays(parts, source)


def _word(verdict: int, word: str) -> str:
    """Return a verdict as the table of words has it, which keeps how strong it was."""
    return word if WORDS.get(word.casefold()) == verdict else VERDICTS[verdict]


def _coded(table: Table, values: Mapping[str, Column]) -> tuple[PairVerdicts, Offsets]:
    """Return verdicts in codes, and their rows in the table; those without one are left out."""
    sides = [complete(name, as_text(values[name]), table) for name in ("first", "second")]
    items = sides[0][1].merge(sides[1][1])
    first, second = (items.codes(names)[codes] for codes, names in sides)
    _refuse(table, "item-against-itself", first == second, values["first"])
    said, words = encode(as_text(values["verdict"]))
    folded = [str(word).strip().casefold() for word in words]
    none = len(words)
    as_item = np.append(items.codes(words), MISSING)[said]
    as_word = np.array([_number(word) for word in folded] + [NOTHING])[said]
    verdict = np.where(as_item == second, SECOND, as_word)
    verdict = np.where((as_item == first) & (said != MISSING), FIRST, verdict)
    _refuse(table, "no-verdict", verdict == UNKNOWN, values["verdict"])
    counts = Counter(
        {
            word: int(n)
            for word, n in zip(folded, np.bincount(said[said >= 0], minlength=none), strict=True)
        }
    )
    strong = sum(n for word, n in counts.items() if ">>" in word or "<<" in word)
    bad = sum(n for word, n in counts.items() if "bad" in word)
    if strong or bad:
        note("verdicts-plain", strong=strong, bad=bad)
    rows = np.flatnonzero(verdict >= 0)
    if len(rows) < len(verdict):
        note("verdicts-empty", n=len(verdict) - len(rows))
    if not len(rows):
        raise InputError("no-rows", table=table.title)
    more: dict[str, Any] = {}
    for role, name, plural in (("worker", "worker", "workers"), ("task", "prompt", "prompts")):
        if role in values:
            code, ids = complete(role, values[role], table)
            more |= {name: code[rows], plural: ids}
    if "weight" in values:
        more["weight"] = read_weights(values["weight"], table.source, 0)[rows]
    kept = {"first": first[rows], "second": second[rows], "verdict": verdict[rows]}
    coded: dict[str, Any] = {name: np.asarray(each, dtype=np.int32) for name, each in kept.items()}
    return PairVerdicts(**coded, **more, items=items, frame=table.frame), rows


NOTHING, UNKNOWN = -1, -2  # a row without a verdict, and a word that is none


def _number(word: str) -> int:
    found = WORDS.get(word, UNKNOWN)
    return NOTHING if found is None else found


def _refuse(table: Table, code: str, wrong: Any, column: Column) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        shown = offenders(rows[:SHOWN], column, table.source)
        raise InputError(code, table=table.title, n=len(rows), shown=shown)


def _side(table: Table, name: str) -> Floats:
    """Return a covariate of the first item less that of the second."""
    known = {squashed(column): i for i, column in enumerate(table.names)}
    for endings in SIDES:
        for wanted in (
            [name + e for e in endings],
            [e + name for e in endings],
            [f"{name}model{e}" for e in endings],
        ):
            at = [known.get(squashed(each)) for each in wanted]
            if None not in at:
                one, two = (as_numbers(column)[0] for column in table.read(at))  # type: ignore[arg-type]
                return one - two
    raise InputError("no-side", table=table.title, name=name)


def _settled(pairs: PairVerdicts, repeats: Repeats) -> PairVerdicts:
    """Settle what one judge said twice of a pair, shown alike on one prompt, as for responses."""
    if pairs.worker is None or pairs.prompt is None:
        return pairs
    n = len(pairs.items)
    shown = (pairs.prompt.astype(np.int64) * n + pairs.first) * n + pairs.second
    _, first, task = np.unique(shown, return_index=True, return_inverse=True)
    both = task * len(pairs.workers) + pairs.worker
    if len(np.unique(both)) == len(pairs):
        return pairs
    names = [
        composed((pairs.prompts[int(q)], f"{pairs.items[int(a)]} vs {pairs.items[int(b)]}"))
        for q, a, b in zip(
            pairs.prompt[first], pairs.first[first], pairs.second[first], strict=True
        )
    ]
    builder = Builder(repeats)
    verdicts = Ids(list(VERDICTS))
    task_names = Ids(names).take(task)
    builder.add(
        task_names,
        pairs.workers.take(pairs.worker),
        verdicts.take(pairs.verdict),
        weight=pairs.weight,
    )
    made = builder.finish()
    row = first[np.argsort(task[first])][Ids(names).codes(made.tasks)][made.task_of_each()]
    worker = pairs.workers.codes(made.workers)[made.worker_of_each()]
    verdict = verdicts.codes(made.classes)[made.label_of_each()]
    return replace(pairs.take(row), worker=worker, verdict=verdict, weight=made.weight)
