"""Make docs/figures/page-*.png from the real page: `python tools/make_page_pictures.py`.

Needs the extra `page`, playwright and chromium. The demo's messages are asked about; nothing of a
picture is drawn by hand.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

import browser  # noqa: E402
from page import served  # noqa: E402

from tiebreak import demo  # noqa: E402

FIGURES = ROOT / "docs" / "figures"
DESK = {"width": 960, "height": 720}
PHONE = {"width": 390, "height": 760}
GUIDELINES = "Decide by what the customer **wants**, not by the words they use."


def main() -> None:
    """Answer a few questions, and take a picture of each view."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        story = demo.run()
        demo.write(story, folder)
        (folder / "guidelines.md").write_text(GUIDELINES)
        arguments = ["responses.csv", "--session", "answers.db", "--texts", "texts.csv"]
        arguments += ["--set", "costs=label=4", "--set", "wording=about the same topic"]
        arguments += ["--guidelines", "guidelines.md", "--set", "target=0.99"]
        with served.serving(folder, *arguments) as server, browser.launched() as chromium:
            _take(chromium, server, {str(k): v for k, v in story.crowd.gold.to_dict().items()})


def _take(chromium: Any, server: served.Server, truth: dict[str, str]) -> None:
    context = chromium.new_context(viewport=DESK, device_scale_factor=1)
    page = context.new_page()
    _enter(page, server, "Ann")
    for _ in range(14):
        _answer(page, truth)
    while not page.locator(".pair article").count():
        _answer(page, truth)
    page.locator("text=Why this").click()
    page.wait_for_selector("#why table")
    page.screenshot(path=FIGURES / "page-ask.png")
    page.goto(f"{server.address}/watch")
    page.screenshot(path=FIGURES / "page-watch.png", full_page=False)
    page.goto(f"{server.address}/people")
    page.fill("textarea", "Ben\nCleo")
    page.locator("text=Make invitations").click()
    page.wait_for_selector(".address")
    page.screenshot(path=FIGURES / "page-people.png")
    context.close()
    context = chromium.new_context(
        viewport=PHONE, color_scheme="dark", has_touch=True, is_mobile=True
    )
    page = context.new_page()
    _enter(page, server, "Dan")
    _answer(page, truth)
    page.screenshot(path=FIGURES / "page-phone.png")
    context.close()


def _enter(page: Any, server: served.Server, who: str) -> None:
    page.goto(server.entrance)
    page.wait_for_selector("input[name=who]")
    page.fill("input[name=who]", who)
    page.keyboard.press("Enter")
    page.wait_for_selector("#ask .answers")


def _answer(page: Any, truth: dict[str, str]) -> None:
    """Press the key of the true answer, and wait for the next question."""
    tasks = page.locator("article h2 .id").all_inner_texts()
    before = page.locator("input[name=question]").first.input_value()
    if len(tasks) == 2:
        key = "s" if truth[tasks[0]] == truth[tasks[1]] else "d"
    else:
        names = page.locator(".answers button span").all_inner_texts()
        key = str(names.index(truth[tasks[0]]) + 1)
    page.keyboard.press(key)
    page.wait_for_selector(f"input[name=question]:not([value='{before}'])", state="attached")
    page.wait_for_timeout(600)  # a person looks; the model is fitted meanwhile


if __name__ == "__main__":
    main()
