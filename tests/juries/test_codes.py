"""Every error and note about juries, by its code and fields."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from juries.crowds import fitted, made

import tiebreak as tb
from tiebreak import judges

CROWD = made(n_tasks=120, n_known=60)
MODEL = fitted(CROWD.responses)
GOLD = CROWD.some
ONE_CLASS = dict([item for item in CROWD.gold.items() if item[1] == "c0"][:40])
SYSTEMS = dict.fromkeys(CROWD.gold, "gpt")
WORKERS = tuple(CROWD.responses.workers)
OTHER_TASK = fitted(tb.Responses.from_columns("aa", "vw", "xy", tasks=["a", "b"]))
APART = [("a", "x", "lo"), ("b", "y", "hi")]

ERRORS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "no-known-response": (lambda: judges.panel_report(OTHER_TASK, {"b": "x"}), {}),
    "price-of-no-judge": (
        lambda: judges.panel_report(MODEL, GOLD, prices={"nobody": 1.0}),
        {"names": ("nobody",)},
    ),
    "no-accepting-class": (lambda: judges.panel_report(MODEL, systems=SYSTEMS), {}),
    "unknown-accepting-class": (
        lambda: judges.panel_report(MODEL, systems=SYSTEMS, accepts="good"),
        {"label": "good", "classes": tuple(MODEL.classes_)},
    ),
    "no-task-to-label": (lambda: judges.sample_tasks(fitted(CROWD.responses, CROWD.gold)), {}),
    "no-groups": (lambda: judges.share_discount(CROWD.responses), {}),
    "no-such-rate": (
        lambda: judges.estimate_rates(MODEL, GOLD).of("c7"),
        {"label": "c7", "system": "all", "method": "ppi"},
    ),
    "no-selection-probability": (
        lambda: judges.estimate_rates(MODEL, GOLD, selection={next(iter(GOLD)): 0.5}),
        {"n": len(GOLD) - 1},
    ),
    "no-classes-of-pairs": (
        lambda: judges.estimate_rates(MODEL, GOLD, systems={MODEL.tasks_[0]: ("x", "y")}),
        {"classes": MODEL.classes_},
    ),
    "no-task-of-systems": (
        lambda: judges.estimate_rates(MODEL, GOLD, systems={"nothing": "a"}),
        {},
    ),
    "system-called-all": (
        lambda: judges.estimate_rates(MODEL, GOLD, systems=dict.fromkeys(CROWD.gold, "all")),
        {},
    ),
    "no-two-labels": (lambda: judges.agreement_report(APART), {}),
    "no-tags-of-spans": (
        lambda: judges.span_agreement(APART, tb.Sequences.from_columns(["a", "b"], ["s", "s"])),
        {"classes": ["hi", "lo"]},
    ),
    "order-not-classes": (
        lambda: judges.agreement_report([*APART, ("a", "y", "hi")], order=["lo"]),
        {"classes": ("hi", "lo"), "order": ("lo",)},
    ),
}

NOTES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "gold-without-responses": (
        lambda: judges.panel_report(MODEL, GOLD | {"elsewhere": "c0"}, sub_panels=False),
        {"n": 1},
    ),
    "known-tasks-drawn": (
        lambda: judges.panel_report(MODEL, GOLD, sub_panels=False),
        {"n": 50},
    ),
    "panel-of-one-class": (lambda: judges.panel_report(MODEL, ONE_CLASS), {}),
    "few-known-labels": (
        lambda: judges.panel_report(MODEL, dict(list(GOLD.items())[:5])),
        {"n": 5},
    ),
    "no-price": (
        lambda: judges.panel_report(MODEL, GOLD, prices={WORKERS[0]: 1.0}, sub_panels=False),
        {"names": WORKERS[1:]},
    ),
    "rates-without-gold": (lambda: judges.estimate_rates(MODEL), {}),
    "rates-of-one-class": (lambda: judges.estimate_rates(MODEL, ONE_CLASS), {}),
    "known-unlike-all": (
        lambda: judges.estimate_rates(MODEL, ONE_CLASS),
        {"label": "c0", "one_class": True},
    ),
    "few-known-of-systems": (
        lambda: judges.estimate_rates(MODEL, dict(list(GOLD.items())[:5])),
        {"systems": ("all",), "least": 20},
    ),
    "systems-without-responses": (
        lambda: judges.estimate_rates(MODEL, GOLD, systems=SYSTEMS | {"elsewhere": "gpt"}),
        {"n": 1},
    ),
}


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.parametrize("code", ERRORS)
def test_errors(code: str) -> None:
    call, fields = ERRORS[code]
    with pytest.raises(tb.TiebreakError) as refused:
        call()
    assert refused.value.code == code
    assert fields.items() <= refused.value.fields.items()
    assert code not in str(refused.value)


@pytest.mark.parametrize("code", NOTES)
def test_notes(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiebreak.judges.known.MOST_GOLD", 50)
    call, fields = NOTES[code]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    notes = {n.message.code: n.message for n in caught if isinstance(n.message, tb.InputNote)}
    assert fields.items() <= notes[code].fields.items()


def test_the_tables_hold_every_code() -> None:
    assert ERRORS.keys() | NOTES.keys() == judges.messages.MESSAGES.keys()
