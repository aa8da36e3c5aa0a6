"""The reports on panels and rates as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Iterable, Iterator
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
OF_RUNS = {
    "agrees with itself": "self_agreement",
    "flips with order": "flip_rate",
    "prefers first": "first_preference",
}
ORDER = ("ppi", "posterior", "rogan-gladen", "gold", "judges")


def panel_as_text(report: PanelReport) -> str:
    """Put the report into lines."""
    first = [] if report.n_known else _no_gold(report)
    return "\n".join([*first, *_judges(report), *_findings(report)])


def sentences(report: PanelReport) -> list[str]:
    """Return what the report says beside its table of judges, a sentence or two each."""
    first = [] if report.n_known else [" ".join(map(str.strip, _no_gold(report)))]
    return [line for line in (*first, *_findings(report)) if line]


def _no_gold(report: PanelReport) -> list[str]:
    shown = first_few(list(map(str, report.to_label)), MAX_TO_LABEL)
    return [
        "Shared errors cannot be seen without gold: what most judges get wrong counts as right.",
        f"Label these {counted(len(report.to_label), 'task')}, and give them as gold:",
        *textwrap.wrap(shown, WIDTH, initial_indent="  ", subsequent_indent="  "),
    ]


def _judges(report: PanelReport) -> list[str]:
    judges = report.judges[:MAX_SHOWN]
    columns = {"judge": [str(each.worker) for each in judges]}
    if report.n_known:
        columns["accuracy"] = [_number(each.accuracy) for each in judges]
        columns["95 %"] = [" to ".join(map(_number, each.interval)) for each in judges]
        columns["known"] = [f"{each.n_known:,}" for each in judges]
    for title, name in OF_RUNS.items():
        values = [getattr(each, name) for each in judges]
        if any(value == value for value in values):
            columns[title] = list(map(_number, values))
    if any(each.group is not None for each in judges):
        columns["group"] = [each.group or "–" for each in judges]
    lines = aligned([list(columns), *zip(*columns.values(), strict=True)], to_right=True)
    more = len(report.judges) - len(judges)
    return [*lines, f"… and {more:,} more"] if more > 0 else lines


def _findings(report: PanelReport) -> Iterator[str]:
    """Give the lines below the table of judges."""
    several = len(report.workers) > 1
    if report.shared is not None and not several:
        yield from ("", "With one judge there is nothing to share: add judges of another kind.")
    if several:
        yield from _shared(report)
        yield from _versus(report)
    for suspect in report.look_at:
        line = (
            f"Look at {suspect.worker}: it is right in {_number(suspect.accuracy)} of known tasks, "
            f"other judges in {_number(suspect.others)} "
            f"(difference {_difference(suspect.behind, 2)})"
        )
        if suspect.label is not None:
            line += (
                f"; it says {suspect.label!r} in {_number(suspect.said)} of tasks, and "
                f"{_number(suspect.true)} are"
            )
        yield f"{line}."
    if several and report.versus is not None:
        yield from _smaller(report)
    if (gain := report.gold_gain) is not None:
        yield (
            f"More gold: log-loss is {gain.half:.3f} with half of the known labels and "
            f"{gain.all:.3f} with all: {_difference(gain.change)}."
        )
    for each in report.self_preference[:MAX_SHOWN]:
        low, high = each.interval
        yield (
            f"{each.worker} accepts answers of its own family ({each.family}) by "
            f"{each.preference:+.2f} ({low:+.2f} to {high:+.2f}) more than other judges do."
        )


def _shared(report: PanelReport) -> Iterator[str]:
    found = report.shared
    if found is None:
        return
    low, high = found.effective_interval
    phi_low, phi_high = found.interval
    yield ""
    yield (
        f"{found.n_judges:.1f} judges a task are worth {found.effective:.1f} that err apart "
        f"({low:.1f} to {high:.1f}); errors correlate by {found.correlation:.2f} "
        f"({phi_low:.2f} to {phi_high:.2f})."
    )
    yield (
        f"One more judge like these would make it {found.one_more:.2f}, from {found.effective:.2f}."
    )
    for group in found.clusters[:5]:
        names = [str(report.workers[j]) for j in group]
        yield f"Errors alike beyond that: {first_few(names, 6)}."


def _versus(report: PanelReport) -> Iterator[str]:
    found = report.versus
    if found is None:
        return
    low, high = found.panel_interval
    chance = found.probability_better
    answer = "Yes" if chance >= SURE else "No" if chance <= 1.0 - SURE else "Cannot be told yet"
    yield (
        f"Is the panel better than its best judge? {answer}: panel "
        f"{_number(found.panel_accuracy)} ({_number(low)} to {_number(high)}), best judge "
        f"({found.best}) {_number(found.best_accuracy)}; probability {_chance(chance)} that the "
        "panel is better."
    )
    if report.n_unanimous:
        n_wrong = len(report.unanimous_wrong)
        agreed = counted(report.n_unanimous, "known task")
        line = f"All judges agree on {agreed}, of which {n_wrong:,} wrong by gold"
        yield f"{line}: {_some(report.unanimous_wrong)}." if n_wrong else f"{line}."


def _smaller(report: PanelReport) -> Iterator[str]:
    """Say which judges could go, or that it cannot be told."""
    known = counted(report.n_known, "known label")
    small, cheap = report.smallest, report.cheapest
    if not report.outdone:
        why = "no judge is surely less often right than two others"
        yield f"Which judges could go cannot be told from {known}: {why}."
    elif report.gold_gain is None:
        return  # parts of the panel were not tried
    elif small is None:
        yield (
            f"Whether labels stay as good without {_some(report.outdone)} cannot be told from "
            f"{known}."
        )
    else:
        n = len(small.workers)
        stay = "1 judge stays" if n == 1 else f"{n:,} judges stay"
        yield (
            f"Labels are {'better' if small.is_better else 'about as good'} without "
            f"{_some(small.left_out)}: log-loss {small.log_loss:.3f}, of all judges "
            f"{small.whole_log_loss:.3f} (difference {_difference(small.change)}); accuracy "
            f"{_number(small.accuracy)}, of all {_number(small.whole_accuracy)}. "
            f"{stay}: {_some(small.workers)}."
        )
        if cheap is not None and cheap.price is not None and cheap.whole_price is not None:
            yield (
                f"The cheapest panel about as good: {cheap.price:g} a task instead of "
                f"{cheap.whole_price:g} (log-loss {cheap.log_loss:.3f}): {_some(cheap.workers)}."
            )


def _some(names: Iterable[object]) -> str:
    return first_few(list(map(str, names)), 6)


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
