"""What methods reached: the record of a run, tables, and differences with intervals."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.arguments import PATH, checks
from tiebreak.data.frames import as_frame
from tiebreak.data.ids import Ids
from tiebreak.errors import FileError, InputError, register
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.options import require_word
from tiebreak.tables import open_target
from tiebreak.templating import environment
from tiebreak.wording import aligned

register({"not-a-record": "{file} was not written by tiebreak bench. Name another."})

Cell = dict[str, Any]

KEY = ("set", "method", "seed")
METRICS = ("accuracy", "macro_f", "log_loss", "calibration_error")
LOW_IS_GOOD = ("log_loss", "calibration_error", "cpu")
REFERENCES = ("mv", "auto")  # the vote and the default: what every method is compared with
MEAN = "mean"
DRAWS = 2000  # of the bootstrap
LEVEL = 0.9  # of its intervals
TIE = 0.005  # a difference in accuracy within it is neither won nor lost
BEST = 0.002  # a figure this close to the best is in bold


class Gain(NamedTuple):
    """How much higher an accuracy is than another, on a set or in the mean of sets.

    The interval is that of the bootstrap over tasks of the set, or over sets; `wins`, `ties` and
    `losses` count these.
    """

    mean: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int

    @classmethod
    def of(cls, apart: Floats) -> Gain:
        """Return the mean of differences with its interval."""
        values, counts = np.unique(np.round(apart, 9), return_counts=True)
        n = len(apart)
        drawn = np.random.default_rng(0).multinomial(n, counts / n, DRAWS) @ values / n
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        won, lost = int((apart > TIE).sum()), int((apart < -TIE).sum())
        return cls(float(apart.mean()), float(low), float(high), won, n - won - lost, lost)

    @property
    def interval(self) -> str:
        """The interval, in words."""
        return f"{signed(self.low)} to {signed(self.high)}"


@dataclass(frozen=True)
class BenchResults:
    """The cells of a comparison, one per set, method and seed. Those that failed say why."""

    cells: tuple[Cell, ...]
    labels: dict[tuple[str, str], Ids] = field(default_factory=dict, repr=False)

    @property
    def sets(self) -> list[str]:
        """The sets, in the order of the cells."""
        return list(dict.fromkeys(cell["set"] for cell in self.cells))

    @property
    def methods(self) -> list[str]:
        """The methods, in the order of the cells."""
        return list(dict.fromkeys(cell["method"] for cell in self.cells))

    @property
    def failures(self) -> list[Cell]:
        """The cells in which a method failed or ran out of time."""
        return [cell for cell in self.cells if "error" in cell]

    @property
    def columns(self) -> list[str]:
        """The sets, and the mean where there are several."""
        return [*self.sets, MEAN] if len(self.sets) > 1 else self.sets

    def select(self, sets: Iterable[str]) -> BenchResults:
        """Return the results of some sets, in their order."""
        return BenchResults(tuple(c for name in sets for c in self.cells if c["set"] == name))

    def to_frame(self, frame: str = "pandas") -> Any:
        """Return one row per cell, without what was right task by task."""
        names = dict.fromkeys(name for cell in self.cells for name in cell if name != "credit")
        return as_frame({name: [cell.get(name) for cell in self.cells] for name in names}, frame)

    def table(self, metric: str = "accuracy") -> dict[str, dict[str, float]]:
        """Return a metric by method and set, the mean over seeds; the best method comes first.

        Methods that have a figure on all of several sets have their `mean`, too.
        """
        require_word("metric", metric, (*METRICS, "cpu"))
        rows: dict[str, dict[str, float]] = {}
        for method in self.methods:
            row = rows[method] = {}
            for name in self.sets:
                of_seeds = self._cells_of(method, name)
                if of_seeds and all(metric in cell for cell in of_seeds):
                    row[name] = float(np.mean([cell[metric] for cell in of_seeds]))
            if len(row) == len(self.sets) > 1:
                row[MEAN] = float(np.mean(list(row.values())))
        sign = 1.0 if metric in LOW_IS_GOOD else -1.0
        last = self.columns[-1]
        order = sorted(rows, key=lambda name: (sign * rows[name].get(last, sign * np.inf), name))
        return {method: rows[method] for method in order}

    def differences(self, to: str = "mv") -> dict[str, dict[str, Gain]]:
        """Return how far each method is above another in accuracy, as `table` does."""
        require_word("to", to, self.methods)
        found: dict[str, dict[str, Gain]] = {}
        for method in self.methods:
            gains = found[method] = {}
            for name in self.sets:
                ours, theirs = self._credit(method, name), self._credit(to, name)
                if ours is not None and theirs is not None:
                    gains[name] = Gain.of(ours - theirs)
            if len(gains) == len(self.sets) > 1:
                gains[MEAN] = Gain.of(np.array([each.mean for each in gains.values()]))
        return found

    def _cells_of(self, method: str, name: str) -> list[Cell]:
        """Return the cells of all seeds, where none failed."""
        cells = [c for c in self.cells if (c["method"], c["set"]) == (method, name)]
        return [] if any("error" in cell for cell in cells) else cells

    def _credit(self, method: str, name: str) -> Floats | None:
        """Return what each task counted: the mean of the seeds, or all, if they score others."""
        cells = self._cells_of(method, name)
        if not cells:
            return None
        credit = np.array([unpack(cell["credit"]) for cell in cells])
        return credit.ravel() if cells[0]["gold_share"] else credit.mean(axis=0)

    def summary(self) -> list[list[str]]:
        """Return a table of all metrics, means over sets: a head, then a row per method."""
        last = self.columns[-1]
        of = {metric: self.table(metric) for metric in (*METRICS, "cpu")}
        others = [other for other in REFERENCES if other in self.methods]
        gains = [self.differences(other) for other in others]
        head = ["method", "accuracy"]
        for other in others:
            head += [f"above {other}", f"{LEVEL:.0%} interval"]
        rows = [[*head, *METRICS[1:], "time/vb"]]
        for method in of["accuracy"]:
            row = [method, number(of["accuracy"][method].get(last))]
            for other, of_all in zip(others, gains, strict=True):
                gain = None if method == other else of_all[method].get(last)
                row += ["–", "–"] if gain is None else [signed(gain.mean), gain.interval]
            row += [number(of[metric][method].get(last)) for metric in METRICS[1:]]
            time, of_vb = of["cpu"][method].get(last), of["cpu"].get("vb", {}).get(last)
            rows.append([*row, number(time / of_vb if time is not None and of_vb else None, 1)])
        if len({cell["version"] for cell in self.cells}) > 1:
            rows[0].append("version")
            for row in rows[1:]:
                of_method = (c["version"] for c in self.cells if c["method"] == row[0])
                row.append(", ".join(dict.fromkeys(of_method)))
        return rows

    def by_set(self, metric: str) -> list[list[str]]:
        """Return a table of a metric for Markdown: in bold what is as good as the best."""
        found = self.table(metric)
        best = min if metric in LOW_IS_GOOD else max
        rows = [["method", *self.columns], *([method] for method in found)]
        for name in self.columns:
            top = best((row[name] for row in found.values() if name in row), default=0.0)
            for cells, row in zip(rows[1:], found.values(), strict=True):
                is_best = name in row and abs(row[name] - top) <= BEST
                cells.append(f"**{number(row[name])}**" if is_best else number(row.get(name)))
        return rows

    def gains_by_set(self, to: str) -> list[list[str]]:
        """Return a table of differences in accuracy, with intervals."""
        rows = [["method", *self.columns, "won, even, lost"]]
        for method, gains in self.differences(to).items():
            found = [gains.get(name) for name in self.columns]
            cells = ["–" if g is None else f"{signed(g.mean)} ({g.interval})" for g in found]
            last = found[-1]
            counts = "–" if last is None else f"{last.wins}, {last.ties}, {last.losses}"
            rows.append([method, *cells, counts])
        return rows

    def page(self, title: str = "Methods compared") -> str:
        """Return a page in Markdown, made of these cells alone."""
        template = environment("tiebreak.bench").get_template("page.md")
        versions = dict.fromkeys(cell["version"] for cell in self.cells)
        return template.render(
            found=self, title=title, metrics=METRICS, references=REFERENCES, versions=versions
        )

    def __str__(self) -> str:
        return "\n".join(aligned(self.summary(), to_right=True))


def number(value: float | None, digits: int = 3) -> str:
    """Write a figure; a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def signed(value: float) -> str:
    """Write a difference."""
    return f"{value:+.3f}".replace("-", "−")


# The record: one line of JSON per cell


def pack(ties: Codes) -> str:
    """Return how many classes are highest on each task where the truth is one, else 0, as text."""
    return base64.b64encode(zlib.compress(ties.astype(np.uint8).tobytes(), 9)).decode()


def unpack(credit: str) -> Floats:
    """Return what each scored task counts: 1 where it is right, a share of it on ties, else 0."""
    ties = np.frombuffer(zlib.decompress(base64.b64decode(credit)), np.uint8)
    return np.where(ties > 0, 1.0 / np.maximum(ties, 1), 0.0)


@checks(path=PATH)
def read_record(path: str | os.PathLike[str]) -> list[Cell]:
    """Read the cells of a record; half a line at its end, of a run that was killed, is left out."""
    try:
        lines = Path(path).read_bytes().split(b"\n")[:-1]
        cells: list[Cell] = [json.loads(line) for line in lines]
        is_record = all(cell.keys() >= {*KEY, "source"} for cell in cells)
    except OSError as error:
        raise FileError("file-unreadable", file=repr(str(path)), reason=f"{error}.") from None
    except (ValueError, AttributeError):
        is_record = False
    if not is_record:
        raise InputError("not-a-record", file=str(path))
    return cells


def write_record(path: str | os.PathLike[str], cells: Iterable[Cell]) -> None:
    """Write a record anew."""
    with open_target(path) as file:
        file.writelines(map(_line, cells))


def append_cell(path: str | os.PathLike[str], cell: Cell) -> None:
    """Add a cell to a record; it is on the disk when this returns."""
    with Path(path).open("ab") as file:
        file.write(_line(cell))
        file.flush()
        os.fsync(file.fileno())


def _line(cell: Cell) -> bytes:
    return json.dumps(cell, ensure_ascii=False).encode() + b"\n"


def is_record(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file begins as a record does."""
    with contextlib.suppress(OSError), Path(path).open("rb") as file:
        return file.read(8) == b'{"set": '
    return False
