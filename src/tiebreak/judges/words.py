"""The reports on panels and rates as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable
from itertools import product
from typing import TYPE_CHECKING

from tiebreak.judges.rates import LEAST_KNOWN
from tiebreak.wording import aligned, counted, first_few

if TYPE_CHECKING:
    from tiebreak.judges.known import PairedDifference
    from tiebreak.judges.panel import PanelReport
    from tiebreak.judges.rates import Difference, Rate, RateTable

MAX_SHOWN = 20  # judges in the text; to_dict has all
MAX_TO_LABEL = 60  # tasks that are named
MAX_CLASSES = 10  # of rates, the most frequent first; to_dict has all
WIDTH = 100  # characters of a line of tasks
SURE = 0.95  # a sentence says yes or no from this probability on
ORDER = ("ppi", "posterior", "rogan-gladen", "gold", "judges")


def panel_as_text(report: PanelReport) -> str:
    """Put the report into lines."""
    first = [] if report.n_known else _no_gold(report)
    return "\n".join([*first, *_judges(report), *_findings(report)])


def sentences(report: PanelReport) -> list[str]:
    """Return what the report says beside its table of judges, a sentence or two each."""
    first = [] if report.n_known else [" ".join(map(str.strip, _no_gold(report)))]
    return [line for line in (*first, *_findings(report)) if line]


def _findings(report: PanelReport) -> list[str]:
    parts = (_shared, _versus, _look_at, _smaller, _gold, _preferences)
    return [line for part in parts for line in part(report)]


def _no_gold(report: PanelReport) -> list[str]:
    names = list(map(str, report.to_label))
    shown = first_few(names, MAX_TO_LABEL)
    return [
        "Shared errors cannot be seen without gold: what most judges get wrong counts as right.",
        f"Label these {counted(len(names), 'task')}, and give them as gold:",
        *textwrap.wrap(shown, WIDTH, initial_indent="  ", subsequent_indent="  "),
    ]


def _judges(report: PanelReport) -> list[str]:
    judges = report.judges[:MAX_SHOWN]
    columns = {"judge": [str(each.worker) for each in judges]}
    if report.n_known:
        columns["accuracy"] = [_number(each.accuracy) for each in judges]
        ends = [map(_number, each.interval) for each in judges]
        columns["95 %"] = [" to ".join(each) for each in ends]
        columns["known"] = [f"{each.n_known:,}" for each in judges]
    for title, values in (
        ("agrees with itself", [each.self_agreement for each in judges]),
        ("flips with order", [each.flip_rate for each in judges]),
        ("prefers first", [each.first_preference for each in judges]),
    ):
        if any(value == value for value in values):
            columns[title] = list(map(_number, values))
    if any(each.group is not None for each in judges):
        columns["group"] = [each.group or "–" for each in judges]
    lines = aligned([list(columns), *zip(*columns.values(), strict=True)], to_right=True)
    more = len(report.judges) - len(judges)
    return [*lines, f"… and {more:,} more"] if more > 0 else lines


def _shared(report: PanelReport) -> list[str]:
    found = report.shared
    if found is None:
        return []
    if len(report.workers) < 2:
        return ["", "With one judge there is nothing to share: add judges of another kind."]
    low, high = found.effective_interval
    phi_low, phi_high = found.interval
    lines = [
        "",
        f"{found.n_judges:.1f} judges a task are worth {found.effective:.1f} that err apart "
        f"({low:.1f} to {high:.1f}); errors correlate by {found.correlation:.2f} "
        f"({phi_low:.2f} to {phi_high:.2f}).",
        f"One more judge like these would make it {found.one_more:.2f}, "
        f"from {found.effective:.2f}.",
    ]
    for group in found.clusters[:5]:
        names = [str(report.workers[j]) for j in group]
        lines.append(f"Errors alike beyond that: {first_few(names, 6)}.")
    return lines


def _versus(report: PanelReport) -> list[str]:
    found = report.versus
    if found is None or len(report.workers) < 2:
        return []
    low, high = found.panel_interval
    chance = found.probability_better
    answer = "cannot be told yet"
    if chance >= SURE:
        answer = "yes"
    elif chance <= 1.0 - SURE:
        answer = "no"
    lines = [
        f"Is the panel better than its best judge? {answer[0].upper()}{answer[1:]}: panel "
        f"{_number(found.panel_accuracy)} ({_number(low)} to {_number(high)}), best judge "
        f"({found.best}) {_number(found.best_accuracy)}; probability {_chance(chance)} that the "
        "panel is better."
    ]
    if report.n_unanimous:
        n_wrong = len(report.unanimous_wrong)
        agreed = counted(report.n_unanimous, "known task")
        line = f"All judges agree on {agreed}, of which {n_wrong:,} wrong by gold"
        shown = first_few(list(map(str, report.unanimous_wrong)), 6)
        lines.append(f"{line}: {shown}." if n_wrong else f"{line}.")
    return lines


def _smaller(report: PanelReport) -> list[str]:
    """Say which judges could go, or that it cannot be told."""
    if report.versus is None or len(report.workers) < 2:
        return []
    known = counted(report.n_known, "known label")
    if not report.outdone:
        why = "no judge is surely less often right than two others"
        return [f"Which judges could go cannot be told from {known}: {why}."]
    if report.gold_gain is None:
        return []  # parts of the panel were not tried
    small = report.smallest
    if small is None:
        names = first_few(list(map(str, report.outdone)), 6)
        return [f"Whether labels stay as good without {names} cannot be told from {known}."]
    lines = [
        f"Labels are {'better' if small.is_better else 'about as good'} without "
        f"{first_few(list(map(str, small.left_out)), 6)}: log-loss {small.log_loss:.3f}, of all "
        f"judges {small.whole_log_loss:.3f} (difference {_difference(small.change)}); accuracy "
        f"{_number(small.accuracy)}, of all {_number(small.whole_accuracy)}. "
        f"{_stay(len(small.workers))}: {first_few(list(map(str, small.workers)), 6)}."
    ]
    cheap = report.cheapest
    if cheap is not None and cheap.price is not None and cheap.whole_price is not None:
        names = first_few(list(map(str, cheap.workers)), 6)
        lines.append(
            f"The cheapest panel about as good: {cheap.price:g} a task instead of "
            f"{cheap.whole_price:g} (log-loss {cheap.log_loss:.3f}): {names}."
        )
    return lines


def _stay(n: int) -> str:
    return "1 judge stays" if n == 1 else f"{n:,} judges stay"


def _look_at(report: PanelReport) -> list[str]:
    lines = []
    for each in report.look_at:
        line = (
            f"Look at {each.worker}: it is right in {_number(each.accuracy)} of known tasks, other "
            f"judges in {_number(each.others)} (difference {_difference(each.behind, 2)})"
        )
        if each.label is not None:
            line += (
                f"; it says {each.label!r} in {_number(each.said)} of tasks, and "
                f"{_number(each.true)} are"
            )
        lines.append(f"{line}.")
    return lines


def _gold(report: PanelReport) -> list[str]:
    found = report.gold_gain
    if found is None:
        return []
    return [
        f"More gold: log-loss is {found.half:.3f} with half of the known labels and "
        f"{found.all:.3f} with all: {_difference(found.change)}."
    ]


def _preferences(report: PanelReport) -> list[str]:
    lines = []
    for each in report.self_preference[:MAX_SHOWN]:
        low, high = each.interval
        lines.append(
            f"{each.worker} accepts answers of its own family ({each.family}) by "
            f"{each.preference:+.2f} ({low:+.2f} to {high:+.2f}) more than other judges do."
        )
    return lines


def _difference(found: PairedDifference, digits: int = 3) -> str:
    value, low, high = (f"{each:+.{digits}f}".replace("-", "−") for each in found)
    return f"{value} ({low} to {high})"


def _chance(value: float) -> str:
    """Write a probability; never as 0 or 1.

    >>> _chance(0.9969), _chance(0.72), _chance(0.0001)
    ('> .99', '.72', '< .01')
    """
    if value > 0.99:
        return "> .99"
    return "< .01" if value < 0.01 else _number(value)


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.2f}".replace("0.", ".", 1) if value < 1 else "1.00"


def rates_as_text(rates: RateTable) -> str:
    """Lay rates out: a line per system and class, a column per method."""
    systems = list(dict.fromkeys(rate.system for rate in rates.rates))
    labels = list(dict.fromkeys(rate.label for rate in rates.rates))
    found = {(rate.system, rate.label, rate.method): rate for rate in rates.rates}
    labels.sort(key=lambda label: -found[systems[0], label, "judges"].rate)
    used = {rate.method for rate in rates.rates}
    methods = [method for method in ORDER if method in used]
    shown = labels[:MAX_CLASSES]
    rows = [["system", "class", "tasks", "known", *methods]]
    for system, label in product(systems, shown):
        first = found[system, label, "judges"]
        cells = [_cell(found.get((system, label, method))) for method in methods]
        rows.append([system, str(label), f"{first.n_tasks:,}", f"{first.n_known:,}", *cells])
    lines = aligned(rows)
    if len(labels) > len(shown):
        lines.append(f"… and {len(labels) - len(shown):,} more classes")
    lines += _rate_differences(rates, shown)
    if "ppi" in methods:
        alone = [rate.is_gold_alone for rate in rates.rates if rate.method == "ppi"]
        lines.append(f"Intervals of {rates.level:.0%}; {_what_to_quote(alone)}.")
    return "\n".join(lines)


def _what_to_quote(alone: list[bool]) -> str:
    """Say which column to quote, by where ppi is gold alone."""
    if not any(alone):
        return "quote ppi"
    few = f"fewer than {LEAST_KNOWN:g} known tasks of the class or of the others"
    if all(alone):
        return f"quote gold: there are {few}, so that ppi makes no use of the judges"
    return f"quote ppi; where it is gold alone there are {few}, and judges play no part"


def _rate_differences(rates: RateTable, labels: list[Hashable]) -> list[str]:
    """Lay out how systems differ, after an empty line; nothing where there is one."""
    alone = {(rate.system, rate.label) for rate in rates.rates if rate.is_gold_alone}
    rows = [
        [
            f"{each.left} − {each.right}",
            str(each.label),
            ", ".join(
                [
                    _signed(each),
                    *(f"{name}: gold alone" for name in each[:2] if (name, each.label) in alone),
                ]
            ),
        ]
        for each in rates.differences
        if each.method == "ppi" and each.label in labels
    ]
    return ["", *aligned([["difference", "class", "ppi"], *rows])] if rows else []


def _cell(rate: Rate | None) -> str:
    if rate is None:
        return "–"
    if rate.is_gold_alone:
        return "gold alone"
    if rate.low != rate.low:
        return f"{rate.rate:.3f}"
    return f"{rate.rate:.3f} ({rate.low:.3f} to {rate.high:.3f})"


def _signed(each: Difference) -> str:
    return f"{each.difference:+.3f} ({each.low:+.3f} to {each.high:+.3f})"
