"""MT-Bench pairs: which of two models answered better, as a judge saw it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tiebreak.files.formats.protocol import (
    Head,
    IdType,
    Record,
    RecordPlace,
    Records,
    need,
    need_name,
    optional,
    shown,
)
from tiebreak.files.formats.rows import Rows
from tiebreak.ids import composed

FIRST = "model_a"
SECOND = "model_b"
TIE = "tie"
WORDS = {
    **dict.fromkeys(("a", "model_a", "model_1", "[[a]]", "assistant a"), FIRST),
    **dict.fromkeys(("b", "model_b", "model_2", "[[b]]", "assistant b"), SECOND),
    **dict.fromkeys(("tie", "c", "[[c]]", "draw", "both", "tie (bothbad)"), TIE),
}
SWAPPED = {FIRST: SECOND, SECOND: FIRST, TIE: TIE}
NO_ANSWER = ("error", "", "none")


class PairwiseVerdicts:
    """One row per comparison: question, two models, a winner and a judge.

    The task is the question and the two models by name; a comparison shown the other way round
    is turned back, and `order` keeps which way it was shown.
    """

    name = "mt-bench"
    title = "MT-Bench pairs"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        models = head.has("model_a", "model_b") or head.has("model_1", "model_2")
        return models and ("winner" in head.keys or "g1_winner" in head.keys)

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        for place, record in records():
            ending = ("a", "b") if "model_a" in record else ("1", "2")
            first, second = (need_name(record, f"model_{e}", place) for e in ending)
            is_turned = first > second
            names = sorted((first, second))
            turn = optional(record, "turn", IdType, place)
            question = _question(place, record)
            task = composed((question, f"{names[0]} vs {names[1]}", *_turn(turn)))
            worker = _judge(place, record)
            for winner, is_swapped in _winners(place, record):
                label = _label(place, winner, first, second)
                turned = SWAPPED.get(label) if is_turned and label else label
                order = "BA" if is_turned != is_swapped else "AB"
                rows.add(place, task, worker, turned, order=order)
        _forget_single_orders(rows)


def _question(place: RecordPlace, record: Record) -> Any:
    for key in ("question_id", "id", "item", "prompt"):
        if key in record:
            return need_name(record, key, place)
    return need_name(record, "question_id", place)


def _turn(turn: Any) -> tuple[str, ...]:
    return () if turn in (None, "") else (f"turn {turn}",)


def _judge(place: RecordPlace, record: Record) -> str:
    judge = need(record, "judge", (str, list), place)
    if isinstance(judge, str):
        return need_name(record, "judge", place)
    return composed([need_name({"judge": part}, "judge", place) for part in judge])


def _winners(place: RecordPlace, record: Record) -> Iterator[tuple[str, bool]]:
    """Yield each verdict, and whether the two answers were shown the other way round.

    Files of two games hold both, the second already turned back by the tool that wrote it.
    """
    if "g1_winner" in record:
        yield need(record, "g1_winner", str, place), False
        if "g2_winner" in record:
            yield need(record, "g2_winner", str, place), True
        return
    yield need(record, "winner", str, place), False


def _label(place: RecordPlace, winner: str, first: str, second: str) -> str | None:
    if winner in (first, second):
        return FIRST if winner == first else SECOND
    word = winner.strip().casefold()
    if word in NO_ANSWER:
        return None
    if word not in WORDS:
        raise place.error(
            f"the winner is {shown(winner)}; expected model_a, model_b, tie, or the name of one "
            "of the two models."
        )
    return WORDS[word]


def _forget_single_orders(rows: Rows) -> None:
    """Drop the order where no judge saw any pair both ways: it was drawn, not repeated."""
    orders = rows.more.get("order", [])
    seen: dict[tuple[Any, Any], Any] = {}
    for task, worker, order in zip(rows.task, rows.worker, orders, strict=True):
        if seen.setdefault((task, worker), order) != order:
            return
    rows.more.pop("order", None)
