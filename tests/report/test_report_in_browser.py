"""The report in a real browser: no error, no request, no barrier, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import browser
import pytest

import tiebreak as tb
from tiebreak import demo

pytestmark = pytest.mark.browser

HOSTILE = "<script>window.hurt = true; alert(1)</script><img src=x onerror='window.hurt = true'>"
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1100, "height": 800}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report with every section, and links in trouble."""
    folder = tmp_path_factory.mktemp("full")
    story = demo.run()
    links = story.links + tb.Links.from_pairs(cannot=[("m01", "m04"), ("m02", "m08")])
    options = tb.ExactLinkOptions(error=0.1)
    model = tb.Auto(link_options=options)
    model.fit(story.crowd.responses, links=links)
    texts = {
        task: f"Text of {task}, with a <b>tag</b>.\n\n# A title\n\n- a list"
        for task in model.tasks_
    }
    return model.report(
        folder / "report.html", truth=story.crowd.gold, texts=texts, source="responses.csv"
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report in whose every name a script hides."""
    folder = tmp_path_factory.mktemp("hostile")
    votes = [
        (f"{t}{HOSTILE}", f"{w}{HOSTILE}", f"{(t * w) % 3}{HOSTILE}")
        for t in range(40)
        for w in range(5)
    ]
    model = tb.VariationalBayes().fit(votes)
    return model.report(
        folder / "report.html",
        truth={f"{t}{HOSTILE}": f"1{HOSTILE}" for t in range(30)},
        texts=dict.fromkeys(map(str, model.tasks_), HOSTILE),
        source=HOSTILE,
    )


@contextmanager
def opened(
    chromium: Any, page: Path, scheme: str = "light", size: Any = DESK, **options: Any
) -> Iterator[tuple[Any, list[str]]]:
    """Open a file with the network off; give the page, and what it complained of or asked for."""
    context = chromium.new_context(color_scheme=scheme, viewport=size, offline=True, **options)
    view = context.new_page()
    heard: list[str] = []
    view.on("console", lambda message: heard.append(message.text))
    view.on("pageerror", lambda error: heard.append(str(error)))
    view.on("dialog", lambda dialog: heard.append(dialog.message))
    view.on("request", lambda request: heard.append(request.url))
    view.goto(page.as_uri())
    yield view, [each for each in heard if each != page.as_uri()]
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_errors_and_asks_for_nothing(
    chromium: Any, full: Path, scheme: str
) -> None:
    with opened(chromium, full, scheme) as (view, heard):
        assert heard == []
        assert view.title() == "Report on responses.csv"
        assert view.locator("svg[role=img]").count() >= 8


@pytest.mark.browser("axe")
@pytest.mark.parametrize(
    ("which", "scheme", "size"),
    [
        ("full", "light", DESK),
        ("full", "dark", DESK),
        ("full", "dark", PHONE),
        ("hostile", "light", PHONE),
        ("hostile", "dark", DESK),
    ],
)
def test_axe_finds_no_barrier(
    chromium: Any, which: str, scheme: str, size: Any, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(which)
    with opened(chromium, path, scheme, size, bypass_csp=True) as (view, _):
        view.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert browser.violations(view) == []


@pytest.mark.browser("axe")
def test_axe_would_find_a_barrier(chromium: Any, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<html><body><p style='color:#ccc;background:#fff'>Pale.</p></body></html>")
    with opened(chromium, page, bypass_csp=True) as (view, _):
        found = browser.violations(view)
    assert any(each.startswith("color-contrast") for each in found)
    assert any(each.startswith("html-has-lang") for each in found)


def test_scripts_in_names_do_not_run(chromium: Any, hostile: Path) -> None:
    with opened(chromium, hostile, bypass_csp=True) as (view, heard):  # escaping alone must do
        assert heard == []
        assert view.evaluate("window.hurt") is None
        assert view.locator("img, script, iframe").count() == 0
        assert HOSTILE[:30] in view.locator("main").inner_text()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_page_is_never_wider_than_its_window(chromium: Any, full: Path, size: Any) -> None:
    with opened(chromium, full, size=size) as (view, _):
        assert view.evaluate("document.documentElement.scrollWidth") == size["width"]


def test_the_numbers_behind_a_chart_open_by_the_keyboard(chromium: Any, full: Path) -> None:
    with opened(chromium, full) as (view, _):
        summary = view.locator("summary").first
        table = view.locator("details table").first
        assert not table.is_visible()
        summary.focus()
        view.keyboard.press("Enter")
        assert table.is_visible()


def test_the_first_key_skips_to_the_report(chromium: Any, full: Path) -> None:
    with opened(chromium, full) as (view, _):
        view.keyboard.press("Tab")
        assert view.evaluate("document.activeElement.className") == "skip"


def test_print_is_light_and_shows_the_numbers_of_every_chart(chromium: Any, full: Path) -> None:
    with opened(chromium, full, "dark") as (view, _):
        view.emulate_media(media="print", color_scheme="dark")
        ground = view.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        heights = view.evaluate(
            "[...document.querySelectorAll('details table')].map(e => e.offsetHeight)"
        )
        assert heights
        assert min(heights) > 0
        assert view.pdf().startswith(b"%PDF")


def test_dark_and_light_differ(chromium: Any, full: Path) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        with opened(chromium, full, scheme) as (view, _):
            grounds.add(view.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_a_chart_saved_alone_opens_without_errors(chromium: Any, tmp_path: Path) -> None:
    model = tb.VariationalBayes().fit(demo.run().crowd.responses)
    for ending in ("svg", "html"):
        path = tmp_path / f"workers.{ending}"
        model.plot.workers().save(path)
        with opened(chromium, path) as (view, heard):
            assert heard == []
            assert "w01" in view.locator("svg").first.text_content()
