"""The report: true, small, escaped, and never over another file."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak.report import measure, render

SECTIONS = [
    *(
        "from_vote",
        "labels",
        "scores",
        "workers",
        "scale",
        "runs",
        "judges",
        "spans",
        "doubtful_tasks",
        "links",
        "constraints",
        "features",
        "ranking",
    ),
    *("shared_errors", "agreement", "questions", "fit"),
]

MOST_BYTES = 1_500_000  # what docs/report.md promises of a page
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>\x00"
WORDS = """
    html head meta title style body a header main footer nav section h1 h2 h3 p ul ol li dl dt dd
    div span strong b code blockquote figure figcaption details summary table caption thead tbody
    tr th td svg desc text line rect circle polyline pre em hr h4 h5 h6
"""
ELEMENTS = set(WORDS.split())

CROWD = tb.simulate.crowd(200, 12, 3, random_state=0)
LINKS = tb.simulate.links(CROWD.gold, 80, random_state=1)
MODEL = tb.VariationalBayes().fit(CROWD.responses, links=LINKS)


class _Page(HTMLParser):
    """What a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in ("href", "src"):
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> _Page:
    found = _Page()
    found.feed(page)
    return found


def write(model: Any, folder: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    numbers = folder / "report.json"
    page = model.report(folder / "report.html", json_path=numbers, **options)
    return page.read_text("utf-8"), json.loads(numbers.read_text("utf-8"))


# What it says is true


def test_the_page_is_made_from_its_numbers_alone(tmp_path: Path) -> None:
    page, numbers = write(
        MODEL, tmp_path, truth=CROWD.gold, texts=dict.fromkeys(MODEL.tasks_, "A text.")
    )
    assert render(numbers) == page
    assert numbers["format"] == "tiebreak-report"
    assert numbers["version"] == 1
    assert list(numbers["sections"]) == SECTIONS


def test_the_figures_are_the_models() -> None:
    found = measure(MODEL, truth=CROWD.gold)
    stated = MODEL.labels_.probability
    assert stated is not None
    labels = found["sections"]["labels"]
    assert labels["n_doubtful"] == (stated < 0.9).sum()
    assert labels["expected_wrong"] == pytest.approx((1 - stated).sum())
    assert sum(labels["counts"]) == 200
    scores = found["sections"]["scores"]
    figures = tb.evaluate.report(MODEL.labels_, CROWD.gold)
    assert scores["accuracy"] == figures.accuracy
    assert scores["brier_score"] == figures.brier_score
    alpha = tb.judges.agreement_report(CROWD.responses).alpha.value
    assert found["sections"]["agreement"]["alpha"]["value"] == pytest.approx(alpha)
    together = tb.judges.error_dependence(MODEL, CROWD.gold)
    assert found["sections"]["shared_errors"]["mean_correlation"] == together.mean_correlation
    assert found["sections"]["fit"]["bounds"][-1] == [MODEL.n_iter_, MODEL.bounds_[-1]]
    assert found["counts"]["links"] == len(LINKS)


def test_the_tasks_in_most_doubt_come_first_with_votes_and_texts(tmp_path: Path) -> None:
    texts = {task: f"The text of {task}." for task in MODEL.tasks_}
    page, numbers = write(MODEL, tmp_path, texts=texts)
    tasks = numbers["sections"]["doubtful_tasks"]["tasks"]
    assert tasks
    shown = [task["probability"] for task in tasks]
    assert shown == sorted(shown)
    first = tasks[0]
    code = int(MODEL.tasks_.codes([first["task"]])[0])
    workers, labels = MODEL.responses_.of(code)
    said = {(w, vote["label"]) for vote in first["votes"] for w in vote["workers"]}
    assert said == {
        (MODEL.workers_[int(w)], MODEL.classes_[int(k)])
        for w, k in zip(workers, labels, strict=True)
    }
    assert f"The text of {first['task']}." in read(page).text


def test_the_questions_are_those_that_selection_would_ask() -> None:
    found = measure(MODEL)["sections"]["questions"]
    by_kind = {kind["kind"]: kind["questions"] for kind in found["kinds"]}
    best = tb.selection.questions(MODEL, 10, kinds=("label",), random_state=0)
    expected = [offer.task for offer in best if offer.gain > 1e-6]
    assert [q["task"] for q in by_kind["label"]] == expected
    assert by_kind["label"][0]["gain"] == pytest.approx(best[0].gain)
    assert by_kind["same"][0]["gain"] > 0.0


def test_guessers_and_copies_are_said_first() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    votes = []
    for task, true in enumerate(truth):
        for worker in range(5):
            right = rng.random() < 0.85
            votes.append((task, f"good{worker}", int(true if right else 1 - true)))
        votes.append((task, "guesser", int(rng.integers(0, 2))))
        votes.append((task, "copy", votes[-2][2]))  # what the last good worker said
    found = measure(tb.VariationalBayes().fit(votes))
    words = found["words"]
    looks = [each["text"] for each in words if each["sign"] == "Look"]
    assert any("1 of 7 workers is hardly better than chance: guesser." in text for text in looks)
    assert any("good4 and copy look like copies of each other" in text for text in looks)
    assert [each["sign"] for each in words][: len(looks)] == ["Look"] * len(looks)


def test_contradictory_links_are_shown_with_their_chain() -> None:
    votes = [(t, w, t in "abc") for t in "abcd" for w in ("ann", "bob")]
    links = tb.Links.from_rows(
        [("a", "b", "must"), ("b", "c", "must"), ("a", "c", "cannot"), ("c", "d", "cannot")]
    )
    with pytest.warns(tb.InputNote, match="dropped"):
        model = tb.VariationalBayes(on_contradiction="drop").fit(votes, links=links)
    found = measure(model)["sections"]["links"]
    assert found["n_contradictory"] == 1
    shown = found["contradictory"][0]
    assert (shown["left"], shown["sign"], shown["right"]) == ("a", "≠", "c")
    assert shown["chain"] == "a = b = c"
    assert shown["where"] == "row 3"


def test_an_odd_cycle_of_two_classes_is_a_contradiction_too() -> None:
    votes = [(t, w, t in "ab") for t in "abcd" for w in ("ann", "bob")]
    rows = [("a", "b", "cannot"), ("b", "c", "cannot"), ("a", "c", "cannot")]
    options = tb.ExactLinkOptions(error=0.1)
    model = tb.VariationalBayes(link_options=options).fit(votes, links=tb.Links.from_rows(rows))
    found = measure(model)["sections"]["links"]
    assert found["n_contradictory"] == 1
    assert "cannot all hold" in found["contradictory"][0]["chain"]


def test_doubtful_and_broken_links_are_listed() -> None:
    wrong = tb.Links.from_pairs(must=[("t001", "t002"), ("t003", "t004"), ("t005", "t006")])
    options = tb.ExactLinkOptions(error=0.2)
    links = LINKS + wrong
    model = tb.VariationalBayes(link_options=options).fit(CROWD.responses, links=links)
    found = measure(model)["sections"]["links"]
    doubtful = model.doubtful_links_
    assert doubtful is not None
    assert found["n_doubtful"] == len(doubtful) > 0
    assert found["doubtful"][0]["wrong"] == pytest.approx(doubtful.probability[0])
    assert model.violations_ is not None
    assert found["n_broken"] == len(model.violations_)


def test_gold_that_was_given_is_scored_by_a_fit_without_it() -> None:
    known = dict(list(CROWD.gold.to_dict().items())[:60])
    model = tb.VariationalBayes().fit(CROWD.responses, gold=known)
    found = measure(model)["sections"]["scores"]
    plain = tb.VariationalBayes().fit(CROWD.responses)
    assert found["fitted_again_without_gold"]
    assert found["accuracy"] == tb.evaluate.accuracy(plain.labels_, known)


def test_a_committee_says_where_it_differs_from_the_vote() -> None:
    model = tb.Auto().fit(CROWD.responses)
    found = measure(model)
    assert [each["name"] for each in found["sections"]["fit"]["members"]] == [
        each.name for each in model.members_
    ]
    differs = found["sections"]["from_vote"]
    assert differs["n_differ"] == model.from_vote_.n_differ
    assert any("majority vote" in each["text"] for each in found["words"])
    best = model.labels_.best()
    votes = tb.MajorityVote().fit(CROWD.responses).labels_.best()
    for each in differs["tasks"]:
        assert (each["label"], each["vote"]) == (best[each["task"]], votes[each["task"]])
        assert each["label"] != each["vote"]


def test_the_same_model_gives_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    once = write(MODEL, tmp_path)
    assert "1970-01-01 00:00 UTC" in once[0]
    assert once == write(MODEL, tmp_path)


def test_each_model_says_where_it_differs_from_the_vote() -> None:
    found = measure(MODEL)["sections"]["from_vote"]
    best, votes = MODEL.labels_.best(), tb.MajorityVote().fit(CROWD.responses).labels_
    shares = votes.probabilities
    assert shares is not None
    top = shares >= shares.max(axis=1, keepdims=True) - 1e-9
    differ = ~top[np.arange(200), MODEL.labels_.label]
    assert found["n_differ"] == differ.sum() > 0
    listed = [each["task"] for each in found["tasks"]]
    assert set(listed) <= {MODEL.tasks_[i] for i in np.flatnonzero(differ).tolist()}
    assert all(each["label"] == best[each["task"]] for each in found["tasks"])
    assert measure(tb.MajorityVote().fit(CROWD.responses))["sections"]["from_vote"] is None


def test_the_page_says_the_date_and_a_verdict_and_shows_workers_before_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    page, numbers = write(MODEL, tmp_path)
    assert "2 January 1970" in page
    n = numbers["sections"]["labels"]["n_doubtful"]
    assert numbers["verdict"].startswith(f"{200 - n} of 200 labels can be used as they are")
    assert numbers["verdict"] in page
    places = [page.index(f'<h2 id="{key}">') for key in ("from_vote", "workers", "doubtful_tasks")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("n", "right", "stated", "expected"),
    [
        (3, 3, 0.98, "too few to tell"),
        (60, 51, 0.92, "too few to tell"),
        (300, 210, 0.95, "too high"),
        (300, 270, 0.7, "too low"),
        (300, 270, 0.91, "they are calibrated"),
    ],
)
def test_probabilities_are_judged_only_by_enough_known_labels(
    n: int, right: int, stated: float, expected: str
) -> None:
    """Labels that are sure by so much, of which so many are right by what is known."""
    crowd = tb.simulate.crowd(n, 6, 2, responses_per_task=6, accuracy=0.99, random_state=0)
    model = tb.VariationalBayes().fit(crowd.responses)
    label = np.asarray(model.labels_.label)
    q = np.full((n, 2), 1.0 - stated)
    q[np.arange(n), label] = stated
    model.probabilities_ = q
    model.labels_ = replace(model.labels_, probability=np.full(n, stated), probabilities=q)
    true = np.where(np.arange(n) < right, label, 1 - label)
    truth = {task: model.classes_[int(k)] for task, k in zip(model.tasks_, true, strict=True)}
    found = measure(model, truth=truth)
    assert any(expected in each["text"] for each in found["words"])
    assert ("too high" in found["verdict"]) == (expected == "too high")


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_flips_and_self_agreement_of_judges_are_shown(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {"task": [], "worker": [], "label": [], "run": [], "order": []}
    for task in range(60):
        for judge in ("steady", "fickle"):
            for order in ("ab", "ba"):
                for run in (1, 2):
                    label = task % 2 if judge == "steady" else int(rng.integers(0, 2))
                    for key, value in zip(rows, (task, judge, label, run, order), strict=True):
                        rows[key].append(value)
    model = tb.VariationalBayes().fit(tb.read_responses(rows))
    page, numbers = write(model, tmp_path)
    judges = {each["worker"]: each for each in numbers["sections"]["runs"]["judges"]}
    assert (judges["steady"]["self_agreement"], judges["steady"]["flip_rate"]) == (1.0, 0.0)
    assert judges["fickle"]["self_agreement"] < 0.7
    assert judges["fickle"]["flip_rate"] > 0.3
    assert "Judges asked again" in page
    said = [each["text"] for each in numbers["words"] if each["sign"] == "Look"]
    assert any("fickle changes its verdict with the order" in each for each in said)
    assert measure(MODEL)["sections"]["runs"] is None


def test_texts_are_markdown_that_leads_nowhere(tmp_path: Path) -> None:
    texts = dict.fromkeys(
        MODEL.tasks_, "# Title\n\n1. one\n2. two\n\n```\na\n\nb\n```\n[go](https://example.org)"
    )
    page, _ = write(MODEL, tmp_path, texts=texts)
    assert "<li>one</li>" in page
    assert "<pre><code>a\n\nb\n</code></pre>" in page
    assert "[go](https://example.org)" in page


# Every model, however small or odd


FITS: dict[str, Callable[[], Any]] = {
    "majority": lambda: tb.MajorityVote().fit(CROWD.responses),
    "dawid-skene": lambda: tb.DawidSkene().fit(CROWD.responses),
    "one": lambda: tb.VariationalBayes().fit([("a", "ann", "x")]),
    "two": lambda: tb.VariationalBayes().fit([("a", "ann", "x"), ("b", "ann", "y")]),
    "numbers": lambda: tb.VariationalBayes().fit([(1, 2, 3), (2, 2, 4), (2, 3, 4)]),
    "coin": lambda: tb.VariationalBayes(worker_model="coin").fit(CROWD.responses),
    "mean-field": lambda: tb.VariationalBayes(link_options=tb.MeanFieldOptions()).fit(
        CROWD.responses, links=LINKS
    ),
}


@pytest.mark.filterwarnings("ignore:All labels are:tiebreak.errors.InputNote")
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
def test_every_model_has_a_report(fit: Callable[[], Any], tmp_path: Path) -> None:
    model = fit()
    page, numbers = write(model, tmp_path)
    assert "In short" in page
    assert numbers["counts"]["tasks"] == len(model.tasks_)
    assert "nan" not in re.findall(r"[\w.]+", read(page).text)
    assert "NaN" not in json.dumps(numbers)


def test_tasks_without_responses_have_their_place() -> None:
    responses = CROWD.responses.with_tasks(tb.Gold.from_dict({"new": "c0"}).tasks)
    found = measure(tb.VariationalBayes().fit(responses))
    tasks = {task["task"]: task for task in found["sections"]["doubtful_tasks"]["tasks"]}
    assert tasks["new"]["n_votes"] == 0
    assert "No responses" in render(found)


# Safe


def hostile_model() -> tuple[Any, dict[str, str]]:
    """Return a model in whose every name a script hides, and texts."""
    rng = np.random.default_rng(0)
    votes = [
        (f"{t}{HOSTILE}", f"{w}{HOSTILE}", f"{rng.integers(0, 3)}{HOSTILE}")
        for t in range(60)
        for w in range(4)
    ]
    task = [f"{t}{HOSTILE}" for t in range(60)]
    links = tb.Links.from_columns(
        [task[0], task[2], task[1]],
        [task[1], task[3], task[2]],
        ["must", "cannot", "must"],
        who=[HOSTILE] * 3,
    )
    options = tb.ExactLinkOptions(error="learn")
    model = tb.VariationalBayes(link_options=options).fit(votes, links=links)
    return model, dict.fromkeys(task, f"{HOSTILE}\ud800\n<iframe src='https://example.org'>")


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_no_script_gets_in_by_any_name(tmp_path: Path) -> None:
    model, texts = hostile_model()
    truth = dict.fromkeys(model.tasks_, f"1{HOSTILE}")
    page, numbers = write(model, tmp_path, texts=texts, truth=truth, source=HOSTILE)
    found = read(page)
    assert found.tags <= ELEMENTS
    assert not [name for name in found.attributes if name.startswith("on") or name == "style"]
    assert all(address.startswith("#") for address in found.addresses)
    assert "<script>alert('x')</script>" in found.text  # as words
    assert "\x00" not in page
    assert json.loads(json.dumps(numbers)) == numbers


def test_the_page_forbids_scripts_and_the_network_to_itself(tmp_path: Path) -> None:
    page, _ = write(MODEL, tmp_path)
    assert "Content-Security-Policy" in page
    assert "default-src &#39;none&#39;" in page
    assert not re.search(r"(?:src|href)=\"(?!#)", page)
    assert "url(" not in page
    assert "@import" not in page


def test_ids_on_the_page_are_unique_and_links_lead_to_them(tmp_path: Path) -> None:
    page, _ = write(MODEL, tmp_path, truth=CROWD.gold)
    found = read(page)
    assert len(found.ids) == len(set(found.ids))
    assert {address[1:] for address in found.addresses} <= set(found.ids)


def test_every_chart_has_a_title_a_description_and_a_table(tmp_path: Path) -> None:
    page, _ = write(MODEL, tmp_path, truth=CROWD.gold)
    figures = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert len(figures) >= 8
    assert page.count("<svg") == len(figures)
    for figure in figures:
        assert re.search(r"<title[^>]*>[^<]+</title><desc[^>]*>[^<]+</desc>", figure)
        assert "<table" in figure


# Small


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_a_report_of_long_names_is_below_its_limit(tmp_path: Path) -> None:
    long = '"' * 3000  # six bytes each, escaped
    rng = np.random.default_rng(0)
    votes = [
        (f"{t} {long}", f"{w} {long}", f"{int(rng.integers(0, 60))} {long}")
        for t in range(400)
        for w in rng.choice(80, 20, replace=False).tolist()
    ]
    pairs = [(f"{t} {long}", f"{t + 1} {long}") for t in range(0, 300, 2)]
    apart = [(left, right) for (_, left), (right, _) in itertools.pairwise(pairs)]
    links = tb.Links.from_pairs(must=pairs, cannot=apart)
    options = tb.ExactLinkOptions(error=0.3)
    model = tb.VariationalBayes(link_options=options, max_iter=3, tol=0.0).fit(votes, links=links)
    texts = dict.fromkeys(model.tasks_, "&" * 100000)
    page, numbers = write(model, tmp_path, texts=texts, source=long)
    assert len(page.encode()) <= MOST_BYTES
    assert (tmp_path / "report.json").stat().st_size <= MOST_BYTES
    shown = numbers["sections"]["doubtful_tasks"]
    assert len(shown["tasks"]) < shown["n_doubtful"]
    assert f"{len(shown['tasks'])} of {shown['n_doubtful']:,} doubtful labels" in page


@pytest.mark.data
@pytest.mark.parametrize("name", tb.datasets.names())
def test_reports_of_real_crowds_are_small_and_quick(
    name: str, data_dir: Path, tmp_path: Path
) -> None:
    loaded = tb.datasets.load(name)
    model = tb.VariationalBayes().fit(loaded.responses)
    steps: list[str] = []
    page, numbers = write(model, tmp_path, truth=loaded.gold, source=name, watch=steps.append)
    assert len(page.encode()) <= 400_000
    assert numbers["sections"]["scores"]["n_tasks"] > 0
    assert len(steps) == len(SECTIONS)


@pytest.mark.long
def test_the_report_of_ten_million_responses_is_small(tmp_path: Path) -> None:
    crowd = tb.simulate.crowd(2_000_000, 5000, 4, responses_per_task=5, random_state=0)
    model = tb.VariationalBayes().fit(crowd.responses)
    page, _ = write(model, tmp_path, truth=crowd.gold)
    assert len(page.encode()) <= MOST_BYTES


def test_a_report_alone_is_one_file_and_is_written_again_over_itself(tmp_path: Path) -> None:
    for _ in range(2):
        assert MODEL.report(tmp_path / "report.html") == tmp_path / "report.html"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_other_files_are_left_alone_unless_told_otherwise(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("mine")
    with pytest.raises(tb.errors.FileError) as error:
        MODEL.report(page)
    assert error.value.code == "report-foreign-file"
    assert page.read_text() == "mine"
    MODEL.report(page, overwrite=True)
    assert "mine" not in page.read_text("utf-8")


def test_who_agrees_with_nobody_is_named_whatever_the_prior_hopes() -> None:
    accuracy = np.array([*[0.1] * 2, *[0.8] * 10])
    crowd = tb.simulate.crowd(400, 12, 10, accuracy=accuracy, random_state=0)
    model = tb.VariationalBayes().fit(crowd.responses)
    found = measure(model)["sections"]
    alone = {each["worker"] for each in found["agreement"]["spam"]}
    assert alone == {"w01", "w02"}
    assert set(found["workers"]["poor"]) == alone


def test_a_sample_of_tasks_judges_no_worker() -> None:
    crowd = tb.simulate.crowd(20_500, 4000, 2, responses_per_task=3, random_state=0)
    found = measure(tb.VariationalBayes(max_iter=5, tol=0.0).fit(crowd.responses))["sections"]
    assert found["agreement"]["is_sample"]
    assert found["agreement"]["spam"] == []
    assert "agrees with hardly anybody" not in found["workers"]["verdicts"]


def test_what_is_odd_about_gold_is_said_on_the_page() -> None:
    """Gold of one class says little of judges: the section says so, and nothing is raised."""
    crowd = tb.simulate.crowd(120, 5, 2, responses_per_task=5, random_state=0)
    one = crowd.responses.classes[0]
    known = {task: label for task, label in crowd.gold.to_dict().items() if label == one}
    model = tb.VariationalBayes().fit(crowd.responses)
    found = measure(model, truth=known)["sections"]["judges"]
    assert any("All gold is of one class" in each for each in found["sentences"])
