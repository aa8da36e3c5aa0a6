"""Turn `results.json` into tables of two pages of docs/, and the reliability picture.

python experiments/05_probabilities/report.py

Tables stand between two marks in each page; the words around them are kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import NAMES, RESULTS, ROOT, STYLE, put, pyplot, save, table

from tiebreak.estimators.publishing import FEW_A_TASK, FEW_A_WORKER

HERE = Path(__file__).parent
PICTURE = ROOT / "docs" / "figures" / "reliability.svg"
DATASETS = tuple(NAMES)
JURIES = ("llmbar", "rewardbench2", "tc_toxicity_zh", "tc_policy_en")  # as files are read
ONE_ORDER = "llmbar, last order"
RULES = ("ws_trec", "ws_sms")
KINDS = ("apart", "together", "kinds", "subtypes", "one class")
MODELS = ("confusion", "coin", "kinds", "subtypes", "kinds+subtypes", "communities", "auto")


def main() -> None:
    kept = json.loads((HERE / RESULTS).read_text("utf-8"))
    put(ROOT / "docs" / "probabilities.md", probabilities(kept), __file__)
    put(ROOT / "docs" / "worker-models.md", worker_models(kept), __file__)
    draw(kept["reliability"])


def probabilities(kept: dict[str, Any]) -> str:
    parts = [
        "### Without gold\n",
        "Calibration error with 10 and with 15 bins, and log-loss, of plain VB: as the model\n"
        "says, and scaled. No label changes.\n",
        without_gold(kept["without_gold"], DATASETS, "0.35"),
        "Juries of LLM judges, with `dependence=0.5`:\n",
        without_gold(kept["without_gold"], JURIES, "0.5"),
        "The file of llmbar says in which order answers were shown, and each judge and order is\n"
        "read as a worker. As 65 judges, each with the last of its two verdicts:\n",
        without_gold(kept["without_gold"], (ONE_ORDER,), "0.5", with_mean=False),
        "### With some gold or links\n",
        "Log-loss over that of the best ρ, which is found with all gold; a mean over datasets,\n"
        "thirty draws each. Gold tasks are not scored.\n",
        with_gold(kept["with_gold"]),
        "### Crowds that err apart, and together\n",
        "Simulated: 600 tasks, 24 workers, 6 responses a task, four crowds of each kind. A crowd\n"
        "that errs apart pays for what one that errs together gains.\n",
        simulated_cost(kept["simulated"]),
        "### Where the model is exactly right\n",
        "Crowds drawn from the model's own prior (400 tasks, 12 workers, 40 crowds): confidence\n"
        "less accuracy / log-loss.\n",
        model_right(kept["model_right"]),
    ]
    return "\n".join(parts)


def without_gold(
    rows: dict[str, Any], names: Sequence[str], chosen: str, *, with_mean: bool = True
) -> str:
    columns = ("ece10", "ece15", "log_loss")
    body = [
        [
            NAMES.get(name, name),
            *_pairs(rows[name], chosen, columns),
            f"{rows[name]['labels_changed']}",
        ]
        for name in names
    ]
    means = [
        f"{_mean(rows, names, 'none', c):.3f} → **{_mean(rows, names, chosen, c):.3f}**"
        for c in columns
    ]
    if with_mean:
        body.append(["**mean**", *means, ""])
    head = ("", "error, 10 bins", "error, 15 bins", "log-loss", "labels changed")
    return table(head, body)


def _pairs(row: dict[str, Any], chosen: str, columns: Sequence[str]) -> list[str]:
    return [f"{row['none'][c]:.3f} → {row[chosen][c]:.3f}" for c in columns]


def _mean(rows: dict[str, Any], names: Sequence[str], option: str, column: str) -> float:
    return float(np.mean([rows[name][option][column] for name in names]))


def with_gold(rows: dict[str, Any]) -> str:
    keys = [f"{kind} {n}" for kind in ("gold", "links") for n in (10, 50, 100)]
    body = []
    last = (ONE_ORDER, *JURIES[1:])
    groups = {"ten datasets": DATASETS, "four juries": JURIES, f"with {ONE_ORDER}": last}
    for words, names in groups.items():
        best = np.mean([rows[name]["best"] for name in names])
        found = [np.mean([rows[name][key] for name in names]) for key in ("0", *keys)]
        body.append([words, f"{best:.3f}", *(f"{value / best:.3f}" for value in found)])
    return table(("", "best ρ", "none", *keys), body)


def simulated_cost(rows: dict[str, Any]) -> str:
    body = []
    for kind in KINDS:
        of_kind = [row for key, row in rows.items() if key.startswith(kind + "/")]
        cells = [
            f"{np.mean([row['none'][c] for row in of_kind]):.3f} → "
            f"{np.mean([row['vb'][c] for row in of_kind]):.3f}"
            for c in ("ece10", "log_loss")
        ]
        body.append([kind, *cells])
    return table(("crowd", "calibration error, 10 bins", "log-loss"), body)


def model_right(rows: dict[str, Any]) -> str:
    keys = ("none", "auto 0", "auto 10", "auto 100")
    body = [
        [name, *(f"{row[key][0]:+.3f} / {row[key][1]:.3f}" for key in keys)]
        for name, row in rows.items()
    ]
    return table(("", "`none`", "no gold", "10 gold", "100 gold"), body)


def worker_models(kept: dict[str, Any]) -> str:
    rows = kept["worker_models"]
    parts = [
        "Accuracy without gold:\n",
        accuracies(rows, DATASETS, with_mean=True),
        "EBCC publishes a mean of .8427 on its 17 datasets; plain VB has .832 there. Juries of\n"
        'LLM judges, and rules that can say one class only (`ws_`), each with `repeats="last"`:\n',
        accuracies(rows, (ONE_ORDER, *JURIES, *RULES), with_mean=False),
        "Simulated crowds, four of each kind:\n",
        simulated_accuracy(kept["simulated"]),
        "Trust: six judges that err together (`shared=0.4`) and one person who errs apart, all\n"
        "right equally often; ten panels of 1,000 tasks:\n",
        trust(kept["trust"]),
        "Few responses: 300 tasks of two and of four classes, twelve draws each, workers right\n"
        "with 0.5 to 0.95. Where the note is given, in bold:\n",
        few_responses(kept["few_responses"]),
        "Another mode: where plain VB says that labels hang on it (nats are scaled as\n"
        "probabilities are), and the processor time of the second look as a share of the fit's:\n",
        near_modes(kept["near_modes"]),
    ]
    return "\n".join(parts)


def accuracies(rows: dict[str, Any], names: Sequence[str], *, with_mean: bool) -> str:
    head = ("", "majority", *MODELS[:-1], "largest bound", "which", "less VB")
    body = []
    for name in names:
        row = rows[name]
        found = [row[model]["accuracy"] for model in MODELS]
        gain = row["auto"]["accuracy"] - row["confusion"]["accuracy"]
        cells = [f"{value:.3f}" for value in (row["majority"], *found)]
        body.append([NAMES.get(name, name), *cells, row["chosen"], f"{gain:+.4f}"])
    if with_mean:
        means = [np.mean([rows[name]["majority"] for name in names])]
        means += [np.mean([rows[name][m]["accuracy"] for name in names]) for m in MODELS]
        cells = [f"**{value:.4f}**" for value in means]
        body.append(["**mean**", *cells, "", f"{means[-1] - means[1]:+.4f}"])
    return table(head, body)


def simulated_accuracy(rows: dict[str, Any]) -> str:
    body = []
    for kind in KINDS:
        of_kind = [row for key, row in rows.items() if key.startswith(kind + "/")]
        majority = np.mean([row["majority"] for row in of_kind])
        plain = np.mean([row["vb"]["accuracy"] for row in of_kind])
        auto = np.mean([row["auto"]["accuracy"] for row in of_kind])
        chosen = ", ".join(row["chosen"] for row in of_kind)
        body.append([kind, *(f"{v:.4f}" for v in (majority, plain, auto)), chosen])
    return table(("crowd", "majority", "VB", "largest bound", "which"), body)


def trust(rows: dict[str, Any]) -> str:
    head = ("", "the person alone", "VB", "`trust` 50", "`trust` 500")
    return table(head, [[name, *(f"{v:.3f}" for v in row)] for name, row in rows.items()])


def few_responses(rows: dict[str, list[float]]) -> str:
    body = []
    for key, (majority, plain, by_em) in rows.items():
        per_task, per_worker = map(float, key.split())
        is_told = per_task < FEW_A_TASK and per_worker < FEW_A_WORKER
        gain = f"{plain - majority:+.3f}"
        cells = [f"{per_task:g}", f"{per_worker:g}", f"{majority:.3f}", f"{plain:.3f}"]
        body.append([*cells, f"**{gain}**" if is_told else gain, f"{by_em - majority:+.3f}"])
    head = ("responses a task", "a worker", "majority", "VB", "VB − majority", "DS − majority")
    return table(head, body)


def near_modes(rows: dict[str, Any]) -> str:
    body = []
    for name, row in rows.items():
        behind = row["behind"]
        words = "" if behind is None else f"{abs(behind):.1f} {'behind' if behind > 0 else 'ahead'}"
        changed = "" if behind is None else f"{row['labels_changed']:,} of {row['tasks']:,}"
        body.append([NAMES.get(name, name), words, changed, f"{row['share_of_time']:.2f}"])
    return table(("", "nats", "labels", "time"), body)


def draw(rows: dict[str, Any]) -> None:
    """Draw the share of right labels against the probability stated, before and after."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        sheet, panel = plt.subplots(figsize=(3.4, 3.2), constrained_layout=True)
        panel.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
        for key, words in (("none", "as the model says"), ("0.35", "scaled, ρ = 0.35")):
            stated, right, _ = np.array(rows[key]).T
            panel.plot(stated, right, marker="o", markersize=3, linewidth=1, label=words)
        panel.set_xlabel("probability stated")
        panel.set_ylabel("share of labels that are right")
        panel.set_xlim(0.2, 1.01)
        panel.set_ylim(0.2, 1.01)
        panel.legend(frameon=False, loc="upper left")
        save(sheet, PICTURE)


if __name__ == "__main__":
    main()
