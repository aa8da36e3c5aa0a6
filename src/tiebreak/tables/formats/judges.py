"""Files of LLM judges: batch APIs, pairwise verdicts, logs of evaluations."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from tiebreak.data.ids import composed
from tiebreak.data.pairs import CLASSES, FIRST, SECOND, TIE, WORDS
from tiebreak.errors import InputError, OptionError
from tiebreak.tables.columns import LABEL
from tiebreak.tables.formats.records import (
    ID,
    NULL,
    NUMBER,
    AnswerRows,
    Entries,
    Entry,
    Format,
    first_text,
)
from tiebreak.tables.options import ReadingOptions
from tiebreak.tables.plain import Opened

LABEL_IN_TEXT = "label in text"  # what a format says that has labels inside of texts

# Batch APIs: lines with `custom_id` (the task) and the answer of a model (the worker).

SHORT = 60  # characters; a longer answer is prose, not a label
UNREADABLE = object()


def _is_batch(file: Opened) -> bool:
    return "custom_id" in file.keys and bool({"response", "result"} & {*file.keys})


def _read_batch(records: Entries, rows: AnswerRows) -> None:
    label_in = _label_finder(rows.options)
    parts_of = _id_splitter(rows.options.task_pattern)
    example = ""
    n = n_unreadable = 0
    for record in records():
        task, of_id = parts_of(record, record.need("custom_id", *ID))
        for model, run, content in _batch_answers(record, rows):
            label = label_in(content)
            n += 1
            if label is UNREADABLE:
                n_unreadable += 1
                example = example or content
                label = None
            more = dict(of_id)
            if run is not None:  # the number among the choices, and what the id says of the run
                more["run"] = f"{of_id['run']}.{run}" if "run" in of_id else run
            rows.add(record.at, task, model, label, **more)
    is_chosen = rows.options.label_pattern or rows.options.label_pointer
    if n_unreadable and (n_unreadable == n or (not is_chosen and 2 * n_unreadable > n)):
        raise InputError("no-label-in-text", file=rows.name, n=n_unreadable, of=n, text=example)


def _id_splitter(text: str | None) -> Callable[[Entry, Any], tuple[Any, dict[str, Any]]]:
    """Return a function from an id to the task, and to the run and order in the id."""
    if text is None:
        return lambda record, name: (name, {})
    pattern = _compiled("task_pattern", text)
    names = set(pattern.groupindex)
    if names - {"task", "run", "order"} or not pattern.groups or (names and "task" not in names):
        raise OptionError("task-pattern-groups", pattern=text)

    def split(record: Entry, name: Any) -> tuple[Any, dict[str, Any]]:
        found = pattern.search(str(name))
        if found is None:
            raise InputError("task-pattern-misses", at=record.at, id=name, pattern=text)
        parts: dict[str, Any] = {role: part for role, part in found.groupdict().items() if part}
        return parts.pop("task", found[1]), parts

    return split


def _compiled(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise OptionError("bad-pattern", option=option, pattern=text, reason=error) from None


def _batch_answers(record: Entry, rows: AnswerRows) -> Iterator[tuple[str, int | None, str]]:
    """Yield model, run (where several answers were asked for) and text of each answer."""
    if "result" in record.values:
        result = record.entry("result")
        if result.values.get("type") != "succeeded":
            rows.drop(f"requests that ended as {result.values.get('type')!r}")
            return
        message = result.entry("message")
        texts = [part.get("text", str) or "" for part in message.entries("content")]
        yield message.name("model"), None, "".join(texts)
        return
    response = record.need("response", dict, NULL)
    if record.values.get("error") or not response or response.get("status_code", 200) != 200:
        rows.drop("requests that failed")
        return
    body = Entry(record.at, response).entry("body")
    choices = list(body.entries("choices"))
    for number, choice in enumerate(choices):
        content = choice.entry("message").need("content", str, NULL) or ""
        yield body.name("model"), number if len(choices) > 1 else None, content


def _label_finder(options: ReadingOptions) -> Callable[[str], Any]:
    """Return a function from text to label, or to UNREADABLE."""
    if options.label_pattern is not None and options.label_pointer is not None:
        raise OptionError("pattern-and-pointer")
    if options.label_pattern is not None:
        pattern = _compiled("label_pattern", options.label_pattern)

        def by_pattern(content: str) -> Any:
            found = pattern.search(content)
            return UNREADABLE if found is None else found[1 if pattern.groups else 0].strip()

        return by_pattern
    if options.label_pointer is None:
        return _label_by_itself
    pointer = options.label_pointer
    if not pointer.startswith("/"):
        raise OptionError("bad-pointer", pointer=pointer)
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]

    def by_pointer(content: str) -> Any:
        value = _json_in(content)
        for step in steps:
            if isinstance(value, Mapping) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                return UNREADABLE
        return value if isinstance(value, str | int | float) else UNREADABLE

    return by_pointer


def _label_by_itself(content: str) -> Any:
    """Take a short text as the label; of a JSON object the one key that names a label."""
    value = _json_in(content)
    if isinstance(value, Mapping):
        named = [k for k in value if str(k).casefold() in {LABEL.name, *LABEL.others}]
        named = named or [k for k in value if str(k).casefold() in LABEL.weak]
        found = value[named[0]] if len(named) == 1 else UNREADABLE
        return found if isinstance(found, str | int | float) else UNREADABLE
    text = content.strip()
    return text if text and len(text) <= SHORT and "\n" not in text else UNREADABLE


def _json_in(content: str) -> Any:
    """Read the JSON that an answer consists of, or that it holds between fences."""
    fenced = re.search(r"```(?:json)?\s*(.*?)```", content, re.DOTALL)
    try:
        return json.loads(fenced[1] if fenced else content)
    except (ValueError, RecursionError):
        return None


# Verdicts on pairs: which of two models answered better. As responses, the task is the question and
# the two models by name; a comparison shown the other way round is turned back, and `order` keeps
# which way. `tables/pairs.py` reads the same games for a ranking, as they were shown.


class Game(NamedTuple):
    """A verdict on two answers as they were shown; a word where the file has one."""

    record: Entry
    first: str
    second: str
    verdict: int | None
    word: str
    prompt: str | None
    turn: Any
    worker: str | None


def _is_pairs(file: Opened) -> bool:
    models = file.has("model_a", "model_b") or file.has("model_1", "model_2")
    return models and ("winner" in file.keys or "g1_winner" in file.keys)


def _is_arena_hard(file: Opened) -> bool:
    return file.has("model", "judge", "games")


def _mt_bench_games(record: Entry, options: ReadingOptions) -> Iterator[Game]:
    """Yield the games of a record: one, or two of which the second was shown the other way."""
    ending = ("a", "b") if "model_a" in record.values else ("1", "2")
    one, other = (record.name(f"model_{e}") for e in ending)
    keys = ("question_id", "id", "item", "task", "question", "prompt")
    question = next((record.name(key) for key in keys if key in record.values), None)
    turn = record.get("turn", *ID)
    judges = record.get("judge", str, list)
    judges = judges if isinstance(judges, list) else [] if judges is None else [judges]
    worker = composed([Entry(record.at, {"judge": judge}).name("judge") for judge in judges])
    # Files of two games hold both, the second turned back by the tool that wrote it.
    games = ["winner"] if "g1_winner" not in record.values else ["g1_winner", "g2_winner"]
    for game in games:
        if game == "g2_winner" and game not in record.values:
            continue
        word = record.need(game, str)
        verdict = _verdict(record, word, one, other)
        first, second = (one, other) if game != "g2_winner" else (other, one)
        if game == "g2_winner" and verdict in (FIRST, SECOND):
            verdict = SECOND - verdict
        yield Game(record, first, second, verdict, word, question, turn, worker or None)


def _arena_hard_games(record: Entry, options: ReadingOptions) -> Iterator[Game]:
    """Yield two games against the baseline: it is shown first, then second."""
    model = record.name("model")
    baseline = record.get("baseline", str) or options.baseline
    if baseline is None:
        raise InputError("no-baseline", at=record.at)
    question = record.name("uid" if "uid" in record.values else "question_id")
    for number, game in enumerate(record.need("games", list)):
        played = Entry(record.at, {"game": game or {"score": None}}).entry("game")
        word = played.need("score", str, NULL) or ""
        first, second = (model, baseline) if number % 2 else (baseline, model)
        verdict = _verdict(record, word, first, second)
        yield Game(record, first, second, verdict, word, question, None, record.name("judge"))


def _verdict(record: Entry, word: str, first: str, second: str) -> int | None:
    if word in (first, second):
        return FIRST if word == first else SECOND
    folded = word.strip().casefold()
    if folded not in WORDS:
        raise InputError("no-winner", at=record.at, value=word)
    return WORDS[folded]


GamesOf = Callable[[Entry, ReadingOptions], Iterator[Game]]
GAMES: dict[str, GamesOf] = {"mt-bench": _mt_bench_games, "arena-hard": _arena_hard_games}


def _read_pairs(games_of: GamesOf, records: Entries, rows: AnswerRows) -> None:
    for record in records():
        for game in games_of(record, rows.options):
            is_turned = game.first > game.second
            question = record.name("question_id") if game.prompt is None else game.prompt
            parts = [question, " vs ".join(sorted((game.first, game.second)))]
            task = composed(parts if game.turn in (None, "") else [*parts, f"turn {game.turn}"])
            worker = record.need("judge", str, list) if game.worker is None else game.worker
            label = None
            if game.verdict is not None:
                is_swapped = is_turned and game.verdict != TIE
                label = CLASSES[SECOND - game.verdict if is_swapped else game.verdict]
            rows.add(record.at, task, worker, label, order="BA" if is_turned else "AB")
    # The order says nothing where no judge saw any pair both ways: it was drawn, not repeated.
    seen: dict[tuple[Any, Any], Any] = {}
    columns = (rows.columns.get(name, []) for name in ("task", "worker", "order"))
    if all(seen.setdefault((t, w), order) == order for t, w, order in zip(*columns, strict=True)):
        rows.columns.pop("order", None)


# Inspect: samples with `scores` by scorer; each epoch of a sample is a run. Scorers that share a
# value, such as C and I, judge the same question. One that shares none with the others measures
# something else, such as a length, and is a question of its own.


def _is_inspect(file: Opened) -> bool:
    is_log = file.has("samples", "eval") and isinstance(file.first.get("samples"), list)
    return is_log or file.has("id", "epoch", "scores")


def _read_inspect(records: Entries, rows: AnswerRows) -> None:
    question_of = _scorer_questions(records, rows.options.question)
    for sample in _samples(records, "samples"):
        task = sample.need("id", *ID)
        epoch = sample.need("epoch", int)
        scores = Entry(sample.at, sample.need("scores", dict, NULL) or {})
        if not scores.values:
            rows.drop("samples without a score")
        for scorer in scores.values:
            value = scores.entry(scorer).need("value", object)
            named = value.items() if isinstance(value, Mapping) else [(None, value)]
            for name, label in named:
                if rows.wants(question_of[scorer] if name is None else str(name)):
                    rows.add(sample.at, task, scorer, label, run=epoch)
        rows.add_text(task, sample.values.get("input"))


def _scorer_questions(records: Entries, asked: str | None) -> dict[str, str]:
    """Return which question each scorer answers: those that share a value answer the same."""
    values: dict[str, set[str]] = {}
    for sample in _samples(records, "samples"):
        scores = sample.values.get("scores")
        for scorer, score in scores.items() if isinstance(scores, Mapping) else ():
            value = score.get("value") if isinstance(score, Mapping) else None
            seen = values.setdefault(scorer, set())
            if not isinstance(value, Mapping):
                seen.add(str(value))
    if asked in values:  # one scorer of those that answer the same
        return {scorer: asked if scorer == asked else "other scorers" for scorer in values}
    groups: list[tuple[list[str], set[str]]] = []
    for scorer, seen in values.items():
        near = [group for group in groups if group[1] & seen]
        groups = [group for group in groups if group not in near]
        members = [name for group in near for name in group[0]]
        groups.append(([*members, scorer], seen.union(*(group[1] for group in near))))
    if len(groups) <= 1:
        return dict.fromkeys(values, "score")
    return {scorer: ", ".join(members) for members, _ in groups for scorer in members}


def _samples(records: Entries, key: str) -> Iterator[Entry]:
    """Yield the samples of a log, or the records where each is a sample already."""
    for record in records():
        if isinstance(record.values.get(key), Mapping):
            record = record.entry(key)
        elif record.values.get(key) is None:
            yield record
            continue
        for number, sample in enumerate(record.entries(key)):
            yield sample._replace(at=record.at._replace(row=number))


# promptfoo: results with `gradingResult`. A test has several assertions, and passes where promptfoo
# says so: by default all of them must pass, so they are no votes on one question. Its verdict is
# what is read. Assertions of one type over one output, such as rubrics graded by different models,
# are read as judges where the caller asks for that type as the question.

VERDICT = "verdict"  # the question whose answers are those of the tool


def _is_promptfoo(file: Opened) -> bool:
    inner = file.first.get("results")
    if isinstance(inner, Mapping):
        inner = inner.get("results")
    first = inner[0] if isinstance(inner, list) and inner else file.first
    return isinstance(first, Mapping) and "gradingResult" in first


def _read_promptfoo(records: Entries, rows: AnswerRows) -> None:
    rows.default_question = VERDICT
    for result in _samples(records, "results"):
        task = _graded_output(result)
        if result.need("gradingResult", dict, NULL) is None:
            rows.drop("results without grading")
            continue
        grading = result.entry("gradingResult")
        if rows.wants(VERDICT):
            _add_verdict(rows, task, "promptfoo", grading)
        n_by_judge: Counter[str] = Counter()
        for component in grading.entries("componentResults", is_needed=False):
            if component.get("assertion", dict) is None:
                continue  # what a set of assertions comes to; its parts follow
            assertion = component.entry("assertion")
            kind = assertion.get("type", str) or "assertion"
            if rows.wants(kind):
                judge = _grader(assertion, kind)
                more = {"run": n_by_judge[judge]} if n_by_judge[judge] else {}
                n_by_judge[judge] += 1
                _add_verdict(rows, task, judge, component, **more)
        rows.add_text(task, first_text(result.get("vars", dict) or {}))


def _add_verdict(rows: AnswerRows, task: str, judge: str, part: Entry, **more: Any) -> None:
    passed = part.need("pass", bool)
    score = part.get("score", *NUMBER)
    confidence = None
    if score is not None and 0 <= score <= 1:
        # A score is low where an answer failed; confidence is in the verdict.
        confidence = float(score if passed else 1.0 - score)
    rows.add(part.at, task, judge, "pass" if passed else "fail", confidence=confidence, **more)


def _graded_output(result: Entry) -> str:
    """Name what was graded: the output of a provider for a prompt and a test."""
    test = result.get("testIdx", int)
    prompt = result.get("promptIdx", int) or 0
    number = result.at.row + 1 if test is None else test
    return composed((f"test {number}", _provider(result) or "provider", f"prompt {prompt}"))


def _grader(assertion: Entry, kind: str) -> str:
    """Name who graded: the model that did, else the metric, else the type and its value."""
    value = assertion.values.get("value")
    by_value = kind if value is None else f"{kind}: {str(value)[:60]}"
    return _provider(assertion) or assertion.get("metric", str) or by_value


def _provider(part: Entry) -> str | None:
    """Return the name of a model, which may stand in an object."""
    provider = part.get("provider", str, dict)
    if isinstance(provider, dict):
        provider = Entry(part.at, provider).get("id", str)
    return None if provider is None else str(provider)


FORMATS = (
    Format("batch-api", "batch API output", _is_batch, _read_batch, can_choose=(LABEL_IN_TEXT,)),
    Format("mt-bench", "MT-Bench pairs", _is_pairs, partial(_read_pairs, _mt_bench_games)),
    Format(
        "arena-hard",
        "Arena-Hard judgments",
        _is_arena_hard,
        partial(_read_pairs, _arena_hard_games),
    ),
    Format("inspect", "Inspect log", _is_inspect, _read_inspect),
    Format("promptfoo", "promptfoo results", _is_promptfoo, _read_promptfoo),
)
