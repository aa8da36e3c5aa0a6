"""Make docs/accuracy.md, its figure and all tables of the record, from the record alone."""

from __future__ import annotations

import re
import sys
from typing import Any

import jinja2

from benchmarks.accuracy.__main__ import GROUPS, HERE, PUBLISHED, RECORD, names
from tiebreak.bench import BenchResults, read_record

ROOT = HERE.parent.parent
PAGE = ROOT / "docs" / "accuracy.md"
FIGURE = ROOT / "docs" / "figures" / "accuracy.svg"
ONLY_PUBLISHED = ("ebcc40", "ebcc_web")
TOLD = ("vb-scale", "auto-scale", "vb-sequences", "bradley-terry")  # of told.py
AHEAD = 0.01  # a lead worth a line
SHOWN = {  # in the figure: colours are safe for the colour-blind
    "mv": ("majority vote", "#999999", "o"),
    "ds_em": ("Dawid–Skene", "#e69f00", "v"),
    "ebcc": ("EBCC", "#009e73", "^"),
    "m3v": ("M3V", "#cc79a7", "s"),
    "mace": ("MACE", "#d55e00", "D"),
    "minimax": ("Minimax entropy", "#f0e442", "P"),
    "vb-kinds": ("tiebreak, kinds", "#56b4e9", "o"),
    "auto": ("tiebreak", "#0072b2", "o"),
}


def grid(rows: list[list[str]]) -> str:
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def published(results: BenchResults) -> list[dict[str, Any]]:
    """Return printed figures beside ours, as they were printed."""
    table = results.table()
    found = []
    for source in PUBLISHED:
        for method, figures in source.items():
            if not isinstance(figures, dict):
                continue
            for name, printed in figures.items():
                ours = table.get(method, {}).get(name)
                if ours is not None and source.get("what") == "error %":
                    ours = 100.0 * (1.0 - ours)
                apart = None if ours is None else round(ours, source["digits"]) - printed
                where = {"source": source["title"], "method": method}
                where |= {"set": name, "what": source.get("what", "accuracy")}
                is_equal = apart is not None and abs(apart) < 1e-9
                found.append(
                    where | {"printed": printed, "ours": ours, "apart": apart, "equal": is_equal,
                             "digits": source["digits"]}
                )  # fmt: skip
    return found


def published_rows(results: BenchResults) -> list[list[str]]:
    rows = [["source", "what", "method", "set", "printed", "here", "difference"]]
    for each in published(results):
        digits = each["digits"]
        ours = "–" if each["ours"] is None else f"{each['ours']:.{digits}f}"
        apart = "–" if each["apart"] is None else f"{each['apart']:+.{digits}f}"
        rows.append(
            [each["source"], each["what"], each["method"], each["set"],
             f"{each['printed']:.{digits}f}", ours, "equal" if each["equal"] else apart]
        )  # fmt: skip
    return rows


def leads(results: BenchResults) -> list[str]:
    """Say on which sets other methods are ahead of the best of ours, and where these fall."""
    table = results.table()
    lines = []
    for name in results.sets:
        ours = {m: row[name] for m, row in table.items() if is_ours(m) and name in row}
        best = max(ours, key=lambda method: ours[method])
        ahead = {
            m: row[name] - table["auto"][name]
            for m, row in table.items()
            if not is_ours(m) and row.get(name, 0.0) - table["auto"][name] > AHEAD
        }
        if ahead:
            ranked = sorted(ahead, key=lambda method: -ahead[method])[:6]
            words = ", ".join(f"{method} +{ahead[method]:.3f}" for method in ranked)
            lines.append(
                f"{name}, where the default has {table['auto'][name]:.3f} and {best}, our best, "
                f"{ours[best]:.3f}: {words}"
            )
    return lines


def is_ours(method: str) -> bool:
    from tiebreak.bench import OWN

    return method in (*OWN, *TOLD) or method in ("gibbs", "ds_spectral")


def lowest(results: BenchResults, method: str) -> str:
    """Say where a method is furthest below the default."""
    gains = results.differences("auto")[method]
    worst = sorted((gain.mean, name) for name, gain in gains.items() if name != "mean")[:3]
    return ", ".join(f"{name} −{-gain:.3f}" for gain, name in worst if gain < 0)


def draw(results: BenchResults) -> None:
    """Draw the share of wrong labels on every set."""
    sys.path.append(str(ROOT / "experiments"))
    from common import STYLE, pyplot, save

    table = results.table()
    sets = sorted(results.sets, key=lambda name: table["mv"][name], reverse=True)
    plt = pyplot()
    with plt.rc_context(STYLE):
        sheet, panel = plt.subplots(figsize=(6.4, 4.4), constrained_layout=True)
        for row, name in enumerate(sets):
            shares = [100 - 100 * table[m][name] for m in SHOWN if name in table.get(m, {})]
            panel.plot([min(shares), max(shares)], [row, row], color="#dddddd", lw=1.2, zorder=1)
        for method, (label, colour, mark) in SHOWN.items():
            at = [row for row, name in enumerate(sets) if name in table.get(method, {})]
            shares = [100 - 100 * table[method][sets[row]] for row in at]
            panel.scatter(shares, at, s=24, color=colour, marker=mark, label=label, zorder=2)
        panel.set_yticks(range(len(sets)), sets)
        panel.set(xlabel="labels that are wrong, %", xlim=(0, None))
        sheet.legend(loc="outside lower center", ncol=4, frameon=False)
        save(sheet, FIGURE)


def kept() -> BenchResults:
    return BenchResults(tuple(read_record(RECORD)))


def parts_of(results: BenchResults) -> dict[str, BenchResults]:
    shown = BenchResults(tuple(c for c in results.cells if c["method"] not in ONLY_PUBLISHED))
    parts = {group: shown.select(names(group)) for group in GROUPS}
    return {group: part for group, part in parts.items() if part.cells}


def text_of(results: BenchResults) -> str:
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True,
    )  # fmt: skip
    text = templates.get_template("page.md").render(
        parts=parts_of(results), titles=GROUPS, grid=grid, checked=published(results),
        leads=leads, lowest=lowest, published_rows=published_rows(results), results=results,
        sources=list(dict.fromkeys(source["where"] for source in PUBLISHED)),
    )  # fmt: skip
    return re.sub(r"\n{3,}(?!def )", "\n\n", text)


def write() -> None:
    results = kept()
    PAGE.write_text(text_of(results), "utf-8")
    parts = parts_of(results)
    for group, part in parts.items():
        (HERE / f"{group}.md").write_text(part.page(GROUPS[group]), "utf-8")
    draw(results.select(name for group in parts for name in names(group)))
    print(f"wrote {PAGE.relative_to(ROOT)}", file=sys.stderr)
