"""A model that keeps counts says so where responses are needed, and never guesses without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import tiebreak as tb
from tiebreak import decide, judges, selection
from tiebreak.errors import OptionError

CROWD = tb.simulate.crowd(300, 12, 3, random_state=1)
COSTS = 1.0 - np.eye(3)
NEEDS_RESPONSES: dict[str, Callable[[Any], Any]] = {
    "workers": lambda model: model.workers_table(),
    "votes": lambda model: decide.plan_votes(model, COSTS, limit=5.0),
    "panel": lambda model: judges.panel_report(model),
    "sample": lambda model: judges.sample_tasks(model, 5),
    "route": lambda model: decide.plan_routes(model, wrong=1.0, human=0.2),
    "questions": lambda model: selection.questions(model, 5),
    "pairs": lambda model: selection.pairs(model, 5),
}
MODELS = [tb.VariationalBayes(), tb.DawidSkene(), tb.VariationalBayes(worker_model="subtypes")]


@pytest.fixture(scope="module")
def full() -> Any:
    return tb.VariationalBayes().fit(CROWD.responses)


@pytest.fixture(scope="module")
def counts(full: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("counts") / "model.tbm"
    full.save(file, keep="counts")
    return tb.load(file)


@pytest.fixture(scope="module")
def over_shards(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("shards")
    for i in range(3):
        part = CROWD.responses.on_tasks(np.arange(100 * i, 100 * (i + 1)))
        part.write(folder / f"{i}.tb")
    return tb.shards.fit(folder, folder / "out")


@pytest.mark.parametrize("name", NEEDS_RESPONSES)
def test_what_needs_responses_is_refused(
    name: str, full: Any, counts: Any, over_shards: Any
) -> None:
    ask = NEEDS_RESPONSES[name]
    ask(full)
    for model in (counts, over_shards, over_shards.model):
        with refused(OptionError, "keeps-counts-alone"):
            ask(model)


def test_decisions_need_tasks(full: Any, counts: Any, over_shards: Any) -> None:
    expected = full.decide(COSTS)
    assert counts.decide(COSTS).columns()["decision"] == expected.columns()["decision"]
    with refused(OptionError, "keeps-no-task"):
        over_shards.decide(COSTS)


@pytest.mark.parametrize("model", MODELS, ids=["vb", "em", "subtypes"])
def test_plots_count_what_was_dropped(model: Any, tmp_path: Path) -> None:
    fitted = type(model)(**model.get_params()).fit(CROWD.responses)
    fitted.save(tmp_path / "model.tbm", keep="counts")
    kept = tb.load(tmp_path / "model.tbm")
    found, expected = ({row[0]: row for row in m.plot.workers().rows} for m in (kept, fitted))
    assert found.keys() == expected.keys()
    for worker, row in expected.items():
        assert found[worker][1] == row[1]
        one, other = (float(str(each[2]).split()[0]) for each in (row, found[worker]))
        assert abs(one - other) <= 5.0
    assert kept.plot.confusion().svg() == fitted.plot.confusion().svg()


def test_a_fit_over_shards_shows_itself_and_is_no_start(over_shards: Any) -> None:
    assert "VariationalBayes" in over_shards._repr_html_()
    for name in ("tasks_", "probabilities_", "responses_"):
        with pytest.raises(AttributeError, match="of a fit over shards are files"):
            getattr(over_shards, name)
    with refused(OptionError, "start-no-model"):
        tb.VariationalBayes().fit(CROWD.responses, start=over_shards)
    assert tb.VariationalBayes().fit(CROWD.responses, start=over_shards.model).converged_
