"""What the report, explanations and pictures refuse, by code and fields."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb
from tiebreak.report import measure, render

CROWD = tb.simulate.crowd(30, 5, 2, random_state=0)
KNOWN = dict(list(CROWD.gold.to_dict().items())[:10])
MODEL = tb.VariationalBayes().fit(CROWD.responses)
WITH_GOLD = tb.VariationalBayes().fit(CROWD.responses, gold=KNOWN)
MINE = "mine.html"

REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], dict[str, Any]]] = {
    "chart-ending": (
        lambda: MODEL.plot.workers().save("a.png"),
        tb.errors.OptionError,
        {"path": "a.png"},
    ),
    "report-ending": (lambda: MODEL.report("a.pdf"), tb.errors.OptionError, {"path": "a.pdf"}),
    "report-foreign-file": (lambda: MODEL.report(MINE), tb.errors.FileError, {"path": Path(MINE)}),
    "report-not-measured": (lambda: render({}), tb.errors.OptionError, {"type": "dict"}),
    "self-preference-needs-both": (
        lambda: measure(MODEL, systems={"t01": "gpt"}),
        tb.errors.OptionError,
        {},
    ),
    "explain-unknown-task": (
        lambda: MODEL.explain("nowhere"),
        tb.errors.OptionError,
        {"task": "nowhere", "n": 30},
    ),
    "plot-unknown-worker": (
        lambda: MODEL.plot.confusion("nobody"),
        tb.errors.OptionError,
        {"worker": "nobody", "n": 5},
    ),
    "plot-no-bound": (
        lambda: tb.MajorityVote().fit(CROWD.responses).plot.bound(),
        tb.errors.OptionError,
        {"model": "MajorityVote"},
    ),
    "plot-no-gold": (lambda: MODEL.plot.calibration(), tb.errors.OptionError, {}),
    "gold-of-no-task": (lambda: MODEL.plot.calibration({"nowhere": "c0"}), tb.InputError, {}),
    "gold-all-given": (lambda: measure(WITH_GOLD, truth=KNOWN), tb.InputError, {}),
}


@pytest.mark.parametrize("code", REFUSED)
def test_it_is_refused_by_code_and_nothing_is_written(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(MINE).write_text("mine")
    call, kind, fields = REFUSED[code]
    with pytest.raises(tb.TiebreakError) as error:
        call()
    assert error.value.code == code
    assert isinstance(error.value, kind)
    assert fields.items() <= error.value.fields.items()
    assert [path.name for path in tmp_path.iterdir()] == [MINE]


def test_what_is_no_fitted_model_with_responses_is_refused(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "counts.tbm", keep="counts")
    counts = tb.load(tmp_path / "counts.tbm")
    for refused in (counts.report, tb.VariationalBayes().report):
        with pytest.raises(tb.TiebreakError):
            refused(tmp_path / "report.html")
    for refused in (counts.explain, tb.VariationalBayes().explain):
        with pytest.raises(tb.TiebreakError):
            refused("t01")
    with pytest.raises(tb.errors.OptionError):
        measure("model")  # type: ignore[arg-type]
    assert not (tmp_path / "report.html").exists()
