"""The story of `tiebreak demo`: what voting gets wrong, what the committee and links repair.

The messages are written for this demo and the crowd that labels them is simulated with a fixed
seed, so it needs no file and no network. Every figure that it tells is computed when it runs.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tiebreak import simulate, tables
from tiebreak.data import Gold, Labels
from tiebreak.estimators.auto import Auto
from tiebreak.estimators.committee import vote_of_each
from tiebreak.estimators.majority_vote import MajorityVote
from tiebreak.links import Links

MESSAGES = (
    ("billing", "I was charged twice for order 1042."),
    ("delivery", "Where is my parcel? It should have come on Monday."),
    ("returns", "The shoes are too small, how do I send them back?"),
    ("billing", "Two payments left my account for one order, 1042."),
    ("delivery", "The courier left the box in the rain."),
    ("returns", "I would like to swap the blue jacket for a green one."),
    ("billing", "Why is there a fee of 4.99 on my card?"),
    ("delivery", "My parcel was due on Monday and is still not here."),
    ("returns", "The kettle does not heat; I want to return it."),
    ("billing", "My discount code was not applied to the total."),
    ("delivery", "Tracking has said 'in transit' for nine days."),
    ("returns", "Shoes do not fit. What is the way to return them?"),
    ("billing", "Please send the invoice to my company address."),
    ("delivery", "Can you deliver to my office instead?"),
    ("returns", "How long do I have to return a gift?"),
    ("billing", "What is the 4.99 you took from my card for?"),
    ("delivery", "Nobody rang, yet the note says I was out."),
    ("returns", "Can I exchange my jacket for another colour?"),
    ("billing", "The invoice shows the wrong VAT number."),
    ("delivery", "My package stood outside and is soaked."),
    ("returns", "I lost the return label."),
    ("billing", "My card was refused but the money is gone."),
    ("delivery", "Only one of the two parcels arrived."),
    ("returns", "The lamp came broken, please take it back."),
    ("billing", "The voucher I typed in did not lower the price."),
    ("delivery", "For over a week the tracking has not moved."),
    ("returns", "Sending back a kettle that stays cold."),
    ("billing", "How do I change the card you have on file?"),
    ("delivery", "Do you ship to Norway?"),
    ("returns", "Who pays the postage when I send it back?"),
    ("billing", "I need a receipt for my tax return."),
    ("delivery", "The driver claims I was not home, but I was."),
    ("returns", "Please email me a new return label, mine is gone."),
    ("billing", "The basket said 30, my statement says 35."),
    ("delivery", "Can the parcel go to a pick-up point?"),
    ("returns", "May I return an opened box?"),
    ("billing", "I paid more than the basket showed."),
    ("delivery", "The parcel went to a neighbour who has moved."),
    ("returns", "I sent the coat back without its belt, is that fine?"),
    ("billing", "Can I pay in three instalments?"),
    ("delivery", "Will it arrive before Friday?"),
    ("returns", "Can I bring the dress back to a shop?"),
)

SAME = (
    "m01=m04 m02=m08 m03=m12 m05=m20 m06=m18 m07=m16 "
    "m09=m27 m10=m25 m11=m26 m17=m32 m21=m33 m34=m37"
)
DIFFERENT = "m13≠m14 m15≠m31 m20≠m24 m22≠m23 m30≠m31 m35≠m36 m37≠m39 m40≠m41"

# How the workers label messages that are truly about [billing, delivery, returns].
CAREFUL = ((0.92, 0.04, 0.04), (0.04, 0.92, 0.04), (0.04, 0.04, 0.92))
FAIR = ((0.70, 0.15, 0.15), (0.15, 0.70, 0.15), (0.15, 0.15, 0.70))
MISREADS_RETURNS = ((0.90, 0.05, 0.05), (0.05, 0.90, 0.05), (0.10, 0.75, 0.15))
ALWAYS_BILLING = ((0.90, 0.05, 0.05), (0.80, 0.15, 0.05), (0.80, 0.05, 0.15))
CROWD = (CAREFUL,) * 4 + (FAIR,) * 4 + (MISREADS_RETURNS,) * 2 + (ALWAYS_BILLING,) * 2
RESPONSES_PER_TASK = 4
# A typical draw: over the seeds 0 to 59 the three steps left 7.6, 4.0 and 2.2 messages wrong on
# average.
SEED = 52

FILES = ("texts", "responses", "links", "gold", "labels", "workers")  # tables, as .csv
N_EXAMPLES = 3  # messages shown for each step of the story


class Chapter(NamedTuple):
    """What one method made of the crowd, with the messages by place that it got wrong.

    `repaired` were wrong in the step before and are right now, `spoilt` the other way round.
    """

    name: str
    labels: Labels
    wrong: list[int]
    repaired: list[int]
    spoilt: list[int]


class Story(NamedTuple):
    """The simulated crowd and three ways to fuse its responses, each better informed."""

    crowd: simulate.Crowd
    links: Links
    model: Auto  # the last step's
    steps: list[Chapter]


def run(seed: int = SEED) -> Story:
    """Simulate the crowd; fuse its responses by voting, by the committee, and with links."""
    ids = [f"m{i:02d}" for i in range(1, len(MESSAGES) + 1)]
    gold = Gold.from_columns(ids, [label for label, _ in MESSAGES])
    # What a reader said who saw two messages side by side.
    links = Links.from_pairs(must=_pairs(SAME, "="), cannot=_pairs(DIFFERENT, "≠"))
    crowd = simulate.crowd_for(
        gold,
        len(CROWD),
        responses_per_task=RESPONSES_PER_TASK,
        confusion=CROWD,
        random_state=seed,
    )
    linked = Auto().fit(crowd.responses, links=links)
    fitted = {
        "voting": MajorityVote().fit(crowd.responses),
        "committee": Auto().fit(crowd.responses),
        "committee and links": linked,
    }
    steps: list[Chapter] = []
    for name, model in fitted.items():
        labels = model.labels_
        wrong = np.flatnonzero(labels.label != labels.classes.codes(gold.classes)[gold.label])
        before = steps[-1].wrong if steps else wrong.tolist()
        repaired, spoilt = np.setdiff1d(before, wrong), np.setdiff1d(wrong, before)
        steps.append(Chapter(name, labels, wrong.tolist(), repaired.tolist(), spoilt.tolist()))
    return Story(crowd, links, linked, steps)


def _pairs(text: str, sign: str) -> list[tuple[str, str]]:
    ends = (pair.partition(sign) for pair in text.split())
    return [(left, right) for left, _, right in ends]


def tell(story: Story) -> str:
    """Put the story into words: a table, then a few messages of each step."""
    vote, alone, linked = story.steps
    responses = story.crowd.responses
    lines = [f"{'':<24}{'wrong':>6}{'repaired':>10}{'spoilt':>8}"]
    for number, step in enumerate(story.steps):
        changes = f"{len(step.repaired):>10}{len(step.spoilt):>8}" if number else ""
        lines.append(f"{step.name:<24}{len(step.wrong):>6}{changes}")
    sections = (
        f"{responses.n_tasks} messages to a support desk, {responses.n_classes} classes "
        f"({', '.join(map(str, responses.classes))}), {responses.n_workers} workers,\n"
        f"{RESPONSES_PER_TASK} labels per message. The crowd is simulated, so the truth is known.",
        "\n".join(lines),
        _examples("Voting got wrong, for example", vote.wrong, vote),
        _examples("Knowing who confuses what repaired", alone.repaired, vote),
        _examples(f"{len(story.links)} links repaired", linked.repaired, alone, story.links),
    )
    return "\n\n".join(sections)


def _examples(title: str, tasks: list[int], before: Chapter, links: Links | None = None) -> str:
    lines = [f"{title}:"]
    for i in tasks[:N_EXAMPLES]:
        truth, text = MESSAGES[i]
        name = before.labels.tasks[i]
        called = before.labels.classes[int(before.labels.label[i])]
        lines.append(f"  {name}  {text}\n       {truth}, not {called}")
        if links is not None:
            words = {"must": "same as", "cannot": "unlike"}
            pairs = [(pair, kind) for *pair, kind in links.pairs() if name in pair]
            told = [f"{words[kind]} {pair[pair[0] == name]}" for pair, kind in pairs]
            why = ", ".join(told) or "not linked itself; links told more about its workers"
            lines[-1] += f" ({why})"
    if len(tasks) > N_EXAMPLES:
        lines.append(f"  and {len(tasks) - N_EXAMPLES} more")
    return "\n".join(lines)


def write(story: Story, folder: Path) -> list[Path]:
    crowd, model = story.crowd, story.model
    paths = {name: folder / f"{name}.csv" for name in FILES}
    texts = {"task": list(crowd.gold.tasks), "text": [text for _, text in MESSAGES]}
    tables.write_table(paths["texts"], texts)
    crowd.responses.write(paths["responses"])
    story.links.write(paths["links"])
    crowd.gold.write(paths["gold"])
    tables.write_labels(paths["labels"], model.labels_, vote=vote_of_each(crowd.responses))
    tables.write_workers(paths["workers"], model)
    report = folder / "report.html"
    source = f"{folder.name}/responses.csv"
    model.report(report, truth=crowd.gold, texts=texts, source=source, overwrite=True)
    return [*paths.values(), report]


def next_commands(folder: Path) -> list[str]:
    """Return commands that repeat the last step from the files, score it, and ask in a browser."""
    texts, responses, links, gold, labels, _ = (str(folder / f"{name}.csv") for name in FILES)
    session = str(folder / "answers.db")
    return [
        shlex.join(["tiebreak", "fuse", responses, "--links", links, "-o", labels]),
        shlex.join(["tiebreak", "evaluate", labels, gold, "--links", links]),
        shlex.join(["tiebreak", "serve", responses, "--texts", texts, "--session", session]),
    ]
