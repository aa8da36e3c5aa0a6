"""A person's path in a real browser: by keyboard, by touch, without script; no barrier."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import browser
import pytest
from page.conftest import HOSTILE, write_hostile
from page.served import TOKEN, Server, serving

import tiebreak as tb
from tiebreak import tables

pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1100, "height": 800}
CLASSES = ("bird", "cat", "dog")
TASKS = [f"t{number:02d}" for number in range(16)]
TRUTH = {task: CLASSES[number % 3] for number, task in enumerate(TASKS)}
BUDGET = 12
Press = Callable[[Any, str], None]


def make_job(folder: Path) -> None:
    """Write sixteen tasks on which all workers differ, and links that set many of them apart."""
    rows = [
        (task, f"w{k}", CLASSES[(number + k) % 3])
        for number, task in enumerate(TASKS)
        for k in range(3)
    ]
    columns = [[row[k] for row in rows] for k in range(3)]
    tables.write_table(
        folder / "r.csv", dict(zip(("task", "worker", "label"), columns, strict=True))
    )
    apart = {"left": TASKS[:-1], "right": TASKS[1:], "link": ["cannot"] * (len(TASKS) - 1)}
    tables.write_table(folder / "l.csv", apart)
    tables.write_table(
        folder / "t.csv", {"task": TASKS, "text": [f"The text of {t}." for t in TASKS]}
    )


@contextmanager
def job(folder: Path, *more: str) -> Iterator[Server]:
    make_job(folder)
    arguments = (
        "r.csv",
        "--session",
        "s.db",
        "--texts",
        "t.csv",
        "--links",
        "l.csv",
        "--set",
        "random_state=0",
    )
    with serving(folder, *arguments, *more) as server:
        yield server


@contextmanager
def opened(
    chromium: Any,
    server: Server,
    who: str = "ann",
    size: Any = DESK,
    scheme: str = "light",
    **options: Any,
) -> Iterator[tuple[Any, list[str]]]:
    """Come in by the printed address; give the page, and what it complained of."""
    context = chromium.new_context(viewport=size, color_scheme=scheme, **options)
    view = context.new_page()
    heard: list[str] = []
    view.on("console", lambda message: heard.append(message.text))
    view.on("pageerror", lambda error: heard.append(str(error)))
    view.on("dialog", lambda dialog: heard.append(dialog.message))
    asked: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    view.goto(f"{server.address}/?token={TOKEN}")
    view.wait_for_selector("input[name=who]")
    if who:
        view.focus("input[name=who]")
        view.keyboard.type(who)
        view.keyboard.press("Enter")
        view.wait_for_selector("#ask")
        view.wait_for_load_state()  # before its script is there, no key does anything
    yield view, heard
    context.close()
    assert [url for url in asked if not url.startswith(server.address)] == []


def by_keyboard(view: Any, key: str) -> None:
    view.keyboard.press(key)


def by_touch(view: Any, key: str) -> None:
    view.locator(f'#ask [data-key~="{key}"]').first.tap()


def by_mouse(view: Any, key: str) -> None:
    view.locator(f'#ask [data-key~="{key}"]').first.click()


def tasks_of(view: Any) -> list[str]:
    found: list[str] = view.locator("article h2 .id").all_inner_texts()
    return found


def said_of(view: Any) -> str | None:
    """Return what the page says that it did, above the question."""
    said: str | None = view.locator("[data-said]").get_attribute("data-said")
    return said


def step(view: Any, press: Press, key: str) -> None:
    """Press a key, and wait for what comes of it."""
    view.evaluate("document.getElementById('ask').dataset.old = '1'")
    press(view, key)
    try:
        view.wait_for_selector('#ask:not([data-old]) #asked:not(:has-text("Choosing"))')
    except Exception as error:
        shown = view.locator("body").inner_text()
        raise AssertionError(f"after {key!r} the page shows: {shown}") from error


def right_key(view: Any, known: dict[str, str]) -> str:
    tasks = tasks_of(view)
    if len(tasks) == 2:
        return "s" if known[tasks[0]] == known[tasks[1]] else "d"
    return str(CLASSES.index(known[tasks[0]]) + 1)


def neighbour_key(view: Any, said: dict[str, str]) -> str | None:
    """Return the key of a label that a neighbour has, from which the task is set apart."""
    tasks = tasks_of(view)
    if len(tasks) != 1:
        return None
    at = TASKS.index(tasks[0])
    near = [TASKS[n] for n in (at - 1, at + 1) if 0 <= n < len(TASKS)]
    labels = [said[each] for each in near if each in said]
    return str(CLASSES.index(labels[0]) + 1) if labels else None


def walk(view: Any, press: Press) -> None:
    """Answer ten, undo two, hit a contradiction and settle it, go on to the budget."""
    said: dict[str, str] = {}
    order: list[str] = []
    for _ in range(10):
        task = tasks_of(view)[0]
        step(view, press, right_key(view, TRUTH))
        said[task] = TRUTH[task]
        order.append(task)
        assert said_of(view) == "kept"
    assert "10 of 12 answered" in view.locator(".standing").inner_text()
    for _ in range(2):
        step(view, press, "u")
        assert said_of(view) == "undone"
        assert tasks_of(view)[0] == order[-1]
        said.pop(order.pop())
    assert "8 of 12 answered" in view.locator(".standing").inner_text()
    is_settled = False
    while view.locator("#ask article").count():
        task = tasks_of(view)[0]
        wrong = None if is_settled else neighbour_key(view, said)
        step(view, press, wrong or right_key(view, TRUTH))
        if wrong is not None:
            chain = view.locator(".chain").inner_text()
            assert task in chain
            assert "yet" in chain
            step(view, press, "u")
            assert tasks_of(view)[0] == task
            is_settled = True
        elif view.locator(".chain").count() == 0:
            said[task] = TRUTH[task]
    assert is_settled
    assert view.locator("[data-finished=budget]").count() == 1


def follow_by_keyboard(view: Any, link: str) -> None:
    view.locator(link).focus()
    view.keyboard.press("Enter")


def follow_by_touch(view: Any, link: str) -> None:
    view.locator(link).tap()


def downloads_equal_fuse(view: Any, folder: Path, follow: Press) -> None:
    """Fetch labels, links and known labels by the links of the page; fuse says the same."""
    for name in ("labels", "links", "known"):
        with view.expect_download() as waiting:
            follow(view, f"#ask a[href='/download/{name}.csv']")
        waiting.value.save_as(folder / f"{name}.csv")
    assert set(tb.read_gold(folder / "known.csv").to_dict().values()) == set(CLASSES)
    both = (folder / "l.csv").read_text() + "".join(
        ",".join(line.split(",")[:3]) + "\n"
        for line in (folder / "links.csv").read_text().splitlines()[1:]
    )
    (folder / "both.csv").write_text(both)
    subprocess.run(
        [sys.executable, "-m", "tiebreak", "fuse", "r.csv", "--links", "both.csv", "--gold",
         "known.csv", "--set", "gold_weight=1", "--set", "sampling=pairs", "-o", "fused.csv"],
        cwd=folder, check=True,
    )  # fmt: skip
    fused = tb.read_labels(folder / "fused.csv")
    shown = tb.read_labels(folder / "labels.csv")
    assert shown.best() == fused.best()


def test_by_keyboard_alone_from_opening_to_the_labels(chromium: Any, tmp_path: Path) -> None:
    options = ("--set", f"budget={BUDGET}", "--kinds", "label")
    with job(tmp_path, *options) as server, opened(chromium, server) as (view, heard):
        walk(view, by_keyboard)
        downloads_equal_fuse(view, tmp_path, follow_by_keyboard)
        assert heard == []


def test_by_touch_at_the_size_of_a_phone(chromium: Any, tmp_path: Path) -> None:
    phone: dict[str, Any] = {"size": PHONE, "has_touch": True, "is_mobile": True}
    options = ("--set", f"budget={BUDGET}", "--kinds", "label")
    with job(tmp_path, *options) as server, opened(chromium, server, **phone) as (view, heard):
        walk(view, by_touch)
        downloads_equal_fuse(view, tmp_path, follow_by_touch)
        assert heard == []
        for path in ("/", "/watch", "/people"):
            view.goto(f"{server.address}{path}")
            assert view.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


@pytest.mark.browser("axe")
@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        ("light", DESK),
        ("dark", PHONE),
        pytest.param("dark", DESK, marks=pytest.mark.long),
        pytest.param("light", PHONE, marks=pytest.mark.long),
    ],
)
def test_axe_finds_no_barrier_in_any_view(
    chromium: Any, tmp_path: Path, scheme: str, size: Any
) -> None:
    options: dict[str, Any] = {"size": size, "scheme": scheme, "bypass_csp": True}
    with job(tmp_path, "--set", f"budget={BUDGET}", "--set", "target=1") as server:
        with opened(chromium, server, "", **options) as (view, _):
            assert browser.violations(view) == []
        with opened(chromium, server, "ann", **options) as (view, _):
            for path in ("/watch", "/people", "/nothing", "/"):
                view.goto(f"{server.address}{path}")
                assert browser.violations(view) == [], path
            said: dict[str, str] = {}
            kinds = set()
            while view.locator("#ask article").count():
                shown = len(tasks_of(view))
                if shown not in kinds:
                    kinds.add(shown)
                    view.keyboard.press("v")
                    view.wait_for_selector("#why table")
                    assert browser.violations(view) == [], f"a question of {shown} tasks"
                wrong = neighbour_key(view, said)
                task = tasks_of(view)[0]
                step(view, by_keyboard, wrong or right_key(view, TRUTH))
                if view.locator(".chain").count():
                    assert browser.violations(view) == [], "a contradiction"
                    step(view, by_keyboard, "u")
                    step(view, by_keyboard, right_key(view, TRUTH))
                    kinds.add(0)
                elif wrong is None and shown == 1:
                    said[task] = TRUTH[task]
            assert kinds >= {0, 1}
            assert browser.violations(view) == [], "the end"
            view.goto(f"{server.address}/watch")
            view.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            view.locator("form[action='/explain'] button").first.click()
            view.wait_for_selector(".reasons table")
            assert browser.violations(view) == [], "a curve with points, and a reason"
            view.goto(f"{server.address}/watch?follow=1")
            with view.expect_response("**/progress", timeout=20_000) as renewed:
                pass
            assert renewed.value.status == 200
            assert browser.violations(view) == [], "a curve that grows"
            view.goto(f"{server.address}/people")
            assert browser.violations(view) == [], "people who answered"


def test_without_script_the_buttons_answer(chromium: Any, tmp_path: Path) -> None:
    plain: dict[str, Any] = {"java_script_enabled": False}
    with (
        job(tmp_path, "--kinds", "label") as server,
        opened(chromium, server, **plain) as (view, _),
    ):
        for number in (1, 2):
            first = tasks_of(view)[0]
            with view.expect_navigation():
                by_mouse(view, right_key(view, TRUTH))
            assert tasks_of(view)[0] != first
            assert f"{number} answered" in view.locator(".standing").inner_text()


def test_scripts_in_names_do_not_run(chromium: Any, tmp_path: Path) -> None:
    write_hostile(tmp_path / "r.csv")
    shown = {"task": [f"{t}{HOSTILE}" for t in range(9)], "markdown": [f"**{HOSTILE}**"] * 9}
    tables.write_table(tmp_path / "t.csv", shown)
    with (
        serving(tmp_path, "r.csv", "--session", "s.db", "--texts", "t.csv") as server,
        opened(chromium, server, HOSTILE[:70], bypass_csp=True) as (view, heard),
    ):  # without the policy: escaping alone must do
        by_keyboard(view, "v")
        view.wait_for_selector("#why table")
        step(view, by_keyboard, "1")
        for path in ("/watch", "/people"):
            view.goto(f"{server.address}{path}")
            assert view.locator("img, iframe, main script").count() == 0
        assert heard == []
        assert view.evaluate("window.hurt") is None


def test_focus_goes_to_the_new_question_and_keys_can_be_turned_off(
    chromium: Any, tmp_path: Path
) -> None:
    with job(tmp_path, "--kinds", "label") as server, opened(chromium, server) as (view, _):
        step(view, by_keyboard, "1")
        assert view.evaluate("document.activeElement.id") == "asked"
        view.uncheck("#keys")
        before = tasks_of(view)
        view.keyboard.press("1")
        view.wait_for_timeout(400)
        assert tasks_of(view) == before
        view.reload()
        assert not view.is_checked("#keys")


def test_a_label_set_by_hand_is_known_and_can_be_undone(chromium: Any, tmp_path: Path) -> None:
    with job(tmp_path) as server, opened(chromium, server) as (view, heard):
        view.goto(f"{server.address}/watch?words=t03")
        assert view.locator(".tasks li").count() == 1
        view.select_option(".tasks select", label="dog")
        view.locator(".tasks form[action='/label'] button").click()
        assert said_of(view) == "set"
        assert "t03 = dog" in view.locator("[data-said]").inner_text()
        view.wait_for_timeout(1500)
        view.goto(f"{server.address}/watch?words=t03")
        assert "dog, 100.0" in view.locator(".tasks .head").inner_text()
        view.locator("section[aria-labelledby=by-hand] button").click()
        assert said_of(view) == "unset"
        assert heard == []


def test_what_was_saved_stands_above_the_question_and_in_view(
    chromium: Any, tmp_path: Path
) -> None:
    phone: dict[str, Any] = {"size": PHONE, "has_touch": True, "is_mobile": True}
    with (
        job(tmp_path, "--kinds", "label") as server,
        opened(chromium, server, **phone) as (view, _),
    ):
        view.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        step(view, by_touch, "1")
        said = view.locator("#said").bounding_box()
        assert 0 <= said["y"] < view.locator("#asked").bounding_box()["y"] < PHONE["height"]
        assert not view.locator("kbd").first.is_visible()  # a phone has no keys
        assert not view.locator("#keys").is_visible()


def test_a_desk_shows_the_keys(chromium: Any, tmp_path: Path) -> None:
    with job(tmp_path) as server, opened(chromium, server) as (view, _):
        assert view.locator("kbd").first.is_visible()
        assert view.locator("#keys").is_visible()


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_an_invitation_is_copied(chromium: Any, tmp_path: Path, has_clipboard: bool) -> None:
    allowed: dict[str, Any] = {"permissions": ["clipboard-read", "clipboard-write"]}
    with job(tmp_path) as server, opened(chromium, server, **allowed) as (view, heard):
        view.goto(f"{server.address}/people")
        view.fill("textarea", "bob")
        view.locator("form[action='/invite'] button").click()
        view.wait_for_selector(".address")
        if not has_clipboard:  # as over plain http
            view.evaluate(
                "Object.defineProperty(navigator, 'clipboard', {value: null, configurable: true})"
            )
        view.locator("[data-copy]").first.click()
        view.wait_for_selector("[data-copy]:has-text('Copied')")
        view.evaluate("delete navigator.clipboard")
        copied = view.evaluate("navigator.clipboard.readText()")
        assert copied == view.locator(".address").first.input_value()
        assert heard == []


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_nothing_collides_in_the_views_of_a_lead(chromium: Any, tmp_path: Path, size: Any) -> None:
    long = "Maximiliane-Wilhelmine von Hohenlohe-Langenburg"
    options: dict[str, Any] = {"size": size, "has_touch": size is PHONE, "is_mobile": size is PHONE}
    with job(tmp_path) as server, opened(chromium, server, long, **options) as (view, _):
        by_mouse(view, "1" if len(tasks_of(view)) == 1 else "d")
        view.wait_for_selector("[data-said]")
        for path in ("/", "/watch", "/people"):
            view.goto(f"{server.address}{path}")
            assert view.evaluate(COLLISIONS) == [], path
            assert view.evaluate("document.documentElement.scrollWidth") <= size["width"]


# Pairs of texts or controls that lie over each other.
COLLISIONS = """() => {
  const shown = [...document.querySelectorAll(
    "h1, h2, p, dt, dd, th, td, caption, button, input, select, textarea, summary, .name, header *"
  )].filter((each) => !each.closest("svg, .tb-hidden, thead") && each.checkVisibility() &&
    (each.children.length === 0 || each.matches("button, td")) && each.offsetWidth > 1);
  const found = [];
  shown.forEach((one, at) => shown.slice(at + 1).forEach((two) => {
    if (one.contains(two) || two.contains(one)) return;
    const a = one.getBoundingClientRect();
    const b = two.getBoundingClientRect();
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 1) found.push(`${one.outerHTML} / ${two.outerHTML}`);
  }));
  return found;
}"""
