"""Turn docs/reproduction/results.json into docs/reproduction.md and its figures.

python experiments/00_paper/report.py

Verdicts and numbers come from `tiebreak.reproduce`; reasons are shown beside claims that fail.
"""

from __future__ import annotations

import re
from pathlib import Path

from tiebreak import datasets
from tiebreak.reproduce import as_markdown, judge
from tiebreak.reproduce.figures import draw_all
from tiebreak.reproduce.results import Results

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "reproduction" / "results.json"
PAGE = DOCS / "reproduction.md"
FIGURES = "reproduction"

EXPERIMENTS = {
    "same_number": "(a) As many random labels as random links",
    "bvsb": "(b) Links by BVSB and links at random",
    "label_derived": "(c) Links derived from labels, and the labels themselves",
}

OPENING = """\
# The paper's experiments, run again

Made from `docs/reproduction/results.json` by `make reproduction`; do not edit. That file was
written by `tiebreak reproduce` on {date}, {machine}, Python {python};
[the page on the command](reproduce.md)
says what is run and what the paper leaves open.
"""

# Why a claim fails here, where that could be found out; shown only where it does fail.
REASONS = {
    "BVSB clearly better than random links on Dog and TREC": (
        "BVSB is better there, but by less than the 0.02 that the rule asks for. With four "
        "classes a doubtful Dog task is asked against partners of mostly other classes; on TREC "
        "the crowd is sure and wrong on a fifth of the tasks, so that its margin says little "
        "about where it errs."
    ),
    "ZenCrowd US: VB below MV and DS at first": (
        "VB is below MV here, but not below DS with smoothing 0.01. The copy of the data has "
        "more responses a worker than the paper prints (see Datasets)."
    ),
    "TREC: small gains of VB-ILC over VB": (
        "The gain grows with N_C and is far larger than the 0.02 that the rule allows, although "
        "many links are broken; with few links it is as small as the paper says."
    ),
}


def main() -> None:
    results = Results.read(RESULTS)
    PAGE.write_text(page(results), "utf-8")
    made = draw_all(results, DOCS / FIGURES)
    for path in made:
        if path.suffix == ".svg":  # a hundredth of a point is fine enough
            path.write_text(re.sub(r"(\d\.\d\d)\d+", r"\1", path.read_text("utf-8")), "utf-8")
        else:  # one kind is enough for the page
            path.unlink()
    print(f"wrote {PAGE.relative_to(DOCS.parent)} and {len(made) // 2} figures")


def page(results: Results) -> str:
    body = as_markdown(results).replace("# The paper's claims, judged\n\n", "", 1)
    body = body.replace("\n## ", "\n### ")
    opening = OPENING.format(**results.about)
    parts = [opening, "## The claims\n", body, reasons(results), differences(results)]
    return "\n".join([*parts, figures(results)])


def reasons(results: Results) -> str:
    failed = [verdict.claim.text for verdict in judge(results) if verdict.word == "fails"]
    known = [f"- **{text}.** {REASONS[text]}" for text in failed if text in REASONS]
    others = [text for text in failed if text not in REASONS]
    if others:
        known.append(f"- No reason was found for: {'; '.join(others)}.")
    return "## Why claims fail\n\n" + "\n".join(known or ["None does."]) + "\n"


def differences(results: Results) -> str:
    rows = [
        f"| {name} | {text} |"
        for name in results.datasets
        if (text := " ".join(datasets.info(name).differences.split()))
    ]
    return (
        "## Where the data differ from the paper's\n\n| dataset | difference |\n|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def figures(results: Results) -> str:
    parts = ["## Figures\n", "Means over runs and 95 % bands, against $N_C$.\n"]
    for experiment, title in EXPERIMENTS.items():
        parts.append(f"### {title}\n")
        parts += [
            f"![{measured.title}]({FIGURES}/{name}_{experiment}.svg)\n"
            for name, measured in results.datasets.items()
        ]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
