"""Make the reports of docs/report.md, measure them, and take their pictures in chromium.

    python tools/report_pictures.py                      the demo and the ten datasets
    python tools/report_pictures.py --big                a crowd of 10,000,000 responses too
    python tools/report_pictures.py --only dog --keep D  some of them; pages and pictures into D

Needs the folder of datasets in TIEBREAK_DATA, chromium, playwright and Pillow. Sizes and times go
to docs/figures/reports.json and from there into the table of docs/report.md; small pictures go to
docs/figures.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import re
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import browser  # noqa: E402

import tiebreak as tb  # noqa: E402
from tiebreak import demo  # noqa: E402

FIGURES = ROOT / "docs" / "figures"
RESULTS = FIGURES / "reports.json"
PAGE = ROOT / "docs" / "report.md"
TABLE = re.compile(r"(<!-- table: tools/report_pictures.py -->\n).*?(<!-- end -->)", re.DOTALL)
BIG = "10,000,000 responses"
WIDTH = 1040
TOP = 1240  # pixels of a page that its small picture shows
COLOURS = 128  # of a picture: drawings need no more


def main() -> None:
    """Make the reports that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--big", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    names = ["demo", *tb.datasets.names(), *([BIG] if options.big else [])]
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as temporary, browser.launched() as chromium:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.only or names:
            results[name] = measure(name, folder, chromium)
            print(name, results[name], flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    made = TABLE.sub(lambda found: found[1] + table(results) + found[2], PAGE.read_text("utf-8"))
    PAGE.write_text(made, encoding="utf-8")


def measure(name: str, folder: Path, chromium: Any) -> dict[str, Any]:
    """Write the report of one crowd, open it, and take its pictures."""
    began = time.monotonic()
    model, more = fitted(name)
    fit_seconds = time.monotonic() - began
    cpu_began = time.process_time()
    began = time.monotonic()
    numbers = folder / f"{slug(name)}.json"
    page = model.report(folder / f"{slug(name)}.html", json_path=numbers, overwrite=True, **more)
    report_seconds = time.monotonic() - began
    cpu_seconds = time.process_time() - cpu_began
    heard = take_pictures(chromium, page, slug(name), folder)
    return {
        "responses": model.responses_.n_responses,
        "tasks": len(model.tasks_),
        "workers": len(model.workers_),
        "making_and_fitting_seconds": round(fit_seconds, 2),
        "report_seconds": round(report_seconds, 2),
        "report_cpu_seconds": round(cpu_seconds, 2),
        "load": round(os.getloadavg()[0], 1),
        "page_bytes": page.stat().st_size,
        "numbers_bytes": numbers.stat().st_size,
        "console_errors_and_requests": heard,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
    }


def fitted(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a fitted model and what its report is given beside it."""
    if name == "demo":
        story = demo.run()
        texts = dict(zip(story.crowd.gold.tasks, (text for _, text in demo.MESSAGES), strict=True))
        source = "tiebreak-demo/responses.csv"
        return story.model, {"truth": story.crowd.gold, "texts": texts, "source": source}
    if name == BIG:
        crowd = tb.simulate.crowd(2_000_000, 5000, 4, responses_per_task=5, random_state=0)
        model = tb.VariationalBayes().fit(crowd.responses)
        return model, {"truth": crowd.gold, "source": "a simulated crowd"}
    loaded = tb.datasets.load(name)
    model = tb.VariationalBayes().fit(loaded.responses)
    return model, {"truth": loaded.gold, "source": name}


def take_pictures(chromium: Any, page: Path, name: str, folder: Path) -> int:
    """Take pictures, light and dark; count what the page complained of or asked for."""
    heard: list[str] = []
    for scheme in ("light", "dark"):
        context = chromium.new_context(
            color_scheme=scheme, viewport={"width": WIDTH, "height": TOP}, offline=True
        )
        view = context.new_page()
        view.on("console", lambda message: heard.append(message.text))
        view.on("pageerror", lambda error: heard.append(str(error)))
        view.on("request", lambda request: heard.append(request.url))
        view.goto(page.as_uri())
        (folder / f"{name}-{scheme}.png").write_bytes(view.screenshot(full_page=True))
        if scheme == "light":
            small(view.screenshot(), FIGURES / f"report-{name}.png", 0.5)
        elif name == "demo":
            part = view.locator("section[aria-labelledby=workers]").screenshot()
            small(part, FIGURES / "report-workers-dark.png", 0.6)
            first = view.locator("details.why").first
            first.evaluate("each => each.open = true")
            card = first.locator("xpath=..").screenshot()
            small(card, FIGURES / "report-why-dark.png", 0.6)
        context.close()
    return len([each for each in heard if each != page.as_uri()])


def small(png: bytes, path: Path, scale: float) -> None:
    """Keep a picture with fewer pixels and colours."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    size = (round(picture.width * scale), round(picture.height * scale))
    picture.resize(size, Image.Resampling.LANCZOS).quantize(COLOURS).save(path, optimize=True)


def table(results: dict[str, Any]) -> str:
    """Lay out sizes and times."""
    lines = ["| crowd | responses | the page | as JSON | the report | of that, on the processor |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for name, found in results.items():
        lines.append(
            f"| [{name}](figures/report-{slug(name)}.png) | {found['responses']:,} "
            f"| {found['page_bytes'] / 1000:.0f} kB | {found['numbers_bytes'] / 1000:.0f} kB "
            f"| {found['report_seconds']:.1f} s | {found['report_cpu_seconds']:.1f} s |"
        )
    last = list(results.values())[-1]
    loads = [found["load"] for found in results.values()]
    when = (
        f"*{last['date']}, {last['machine']}, Python {last['python']}; others used the machine "
        f"too, a load of {min(loads):.0f} to {max(loads):.0f}.*\n"
    )
    return "\n".join([*lines, "", when])


def slug(name: str) -> str:
    """Return a name for files."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


if __name__ == "__main__":
    main()
