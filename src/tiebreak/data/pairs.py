"""Pairs: which of two items is better, as somebody said it, or that neither is.

first   second   verdict   worker   prompt
gpt     llama    FIRST     ann      q1        ann saw gpt first, and preferred it
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tiebreak.data.ids import Ids, composed
from tiebreak.data.responses import Responses
from tiebreak.errors import InputError
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

FIRST, SECOND, TIE = 0, 1, 2
VERDICTS = ("first", "second", "tie")
CLASSES = ("model_a", "model_b", "tie")  # of a task: the better one of its two items, by name
WORDS = {  # verdicts in words: what was shown first, second, neither; None: no answer
    **dict.fromkeys(
        ("a", "model_a", "model_1", "[[a]]", "assistant a", "first", "left", "1"), FIRST
    ),
    **dict.fromkeys(("a>b", "a>>b", "b<a", "b<<a"), FIRST),
    **dict.fromkeys(("b", "model_b", "model_2", "[[b]]", "assistant b", "second", "right"), SECOND),
    **dict.fromkeys(("2", "b>a", "b>>a", "a<b", "a<<b"), SECOND),
    **dict.fromkeys(("tie", "c", "[[c]]", "draw", "both", "equal", "a=b", "b=a", "neither"), TIE),
    **dict.fromkeys(("tie (bothbad)", "bothbad", "both bad", "both_bad"), TIE),
    **dict.fromkeys(("error", "", "none", "ignore", "skip")),
}


@dataclass(frozen=True, slots=True, eq=False)
class PairVerdicts:
    """Verdicts on pairs, a row each, in codes; `tables.pairs.read_pairs` makes them.

    `sides` has a column for each covariate: its number for the first item less that for the second.
    """

    first: Codes  # (n,) the item that was shown first
    second: Codes
    verdict: Codes  # (n,) FIRST, SECOND or TIE
    items: Ids
    worker: Codes | None = None
    workers: Ids = field(default_factory=Ids)
    prompt: Codes | None = None
    prompts: Ids = field(default_factory=Ids)
    weight: Floats | None = None  # (n,) None: 1 each
    sides: Floats | None = None
    covariates: tuple[str, ...] = ()
    frame: str = "pyarrow"

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        sizes = f"{len(self):,} verdicts, {len(self.items):,} items"
        return f"PairVerdicts({sizes}, {len(self.workers):,} judges, {len(self.prompts):,} prompts)"

    def take(self, rows: Offsets) -> PairVerdicts:
        """Return some of the rows; ids and their codes stay."""
        parts = ("first", "second", "verdict", "worker", "prompt", "weight", "sides")
        given = {name: getattr(self, name) for name in parts}
        return replace(self, **{k: each[rows] for k, each in given.items() if each is not None})


@dataclass(frozen=True, slots=True, eq=False)
class PairTasks:
    """Tasks whose classes say which of two items is better, and who saw the items in which order.

    Truth is about the items by name, answers depend on what was shown first. So a judge who saw the
    items of some tasks the other way round is two workers, with one confusion matrix between them
    that is mirrored for the second one.
    """

    tasks: Ids
    first: Codes  # (n_tasks,) the item that comes first by name: class `model_a`
    second: Codes
    items: Ids
    workers: Ids
    judge: Codes  # (n_workers,)
    is_turned: Mask  # (n_workers,) sees the second item first
    judges: Ids
    prompt: Codes  # (n_tasks,)
    prompts: Ids

    def verdicts(self, responses: Responses) -> PairVerdicts:
        """Return what was said, as it was shown."""
        at = self.tasks.codes(responses.tasks)[responses.task_of_each()]
        worker = responses.worker_of_each()
        judge, turned = self.seats(responses.workers)
        is_turned = turned[worker]
        ends = self.first[at], self.second[at]
        first, second = np.where(is_turned, ends[::-1], ends)
        verdict = _turned(responses.label_of_each(), is_turned)
        said = PairVerdicts(first, second, verdict, self.items, judge[worker], self.judges)
        if len(self.prompts):
            said = replace(said, prompt=self.prompt[at], prompts=self.prompts)
        return replace(said, weight=responses.weight)

    def seats(self, workers: Ids) -> tuple[Codes, Mask]:
        """Return the judge of each worker, and whether it is turned."""
        at = self.workers.codes(workers)
        return self.judge[at], self.is_turned[at]

    def by_judge(self, responses: Responses) -> Responses:
        """Return the responses with judges as their workers, in whatever order they saw a pair."""
        judge = self.seats(responses.workers)[0][responses.worker_of_each()]
        codes = responses.task_of_each(), judge, responses.label_of_each()
        names = responses.tasks, self.judges, responses.classes
        return Responses.from_codes(*codes, *names, weight=responses.weight)


def pair_tasks(verdicts: PairVerdicts) -> tuple[Responses, PairTasks]:
    """Return verdicts as responses: a task is a pair on a prompt, and classes are `CLASSES`."""
    if verdicts.worker is None:
        raise InputError("pairs-without-workers")
    items = list(map(str, verdicts.items))
    n = len(items)
    by_name = np.empty(n, dtype=np.int64)
    by_name[sorted(range(n), key=items.__getitem__)] = np.arange(n)
    is_turned = by_name[verdicts.first] > by_name[verdicts.second]
    first = np.where(is_turned, verdicts.second, verdicts.first)
    second = np.where(is_turned, verdicts.first, verdicts.second)
    prompt = np.zeros(len(first), np.int64) if verdicts.prompt is None else verdicts.prompt
    at, task = _numbered((prompt * np.int64(n) + first) * n + second)
    ends = zip(first[at].tolist(), second[at].tolist(), strict=True)
    names = [f"{items[one]} vs {items[other]}" for one, other in ends]
    if verdicts.prompt is not None:
        asked = verdicts.prompts.take(prompt[at])
        names = [composed(each) for each in zip(asked, names, strict=True)]
    shown, worker = _numbered(verdicts.worker * np.int64(2) + is_turned)
    judge, turned = verdicts.worker[shown], is_turned[shown]
    workers = [
        f"{name} [order=BA]" if is_other else name
        for name, is_other in zip(verdicts.workers.take(judge), turned.tolist(), strict=True)
    ]
    label = _turned(verdicts.verdict, is_turned)
    tasks, classes = Ids(names), Ids(list(CLASSES[: 2 + bool((label == TIE).any())]))
    given = task, worker, label, tasks, Ids(workers), classes
    crowd = replace(Responses.from_codes(*given, weight=verdicts.weight), frame=verdicts.frame)
    of_tasks = tasks, first[at].astype(np.int32), second[at].astype(np.int32), verdicts.items
    of_workers = crowd.workers, judge, turned, verdicts.workers
    of_prompts = prompt[at].astype(np.int32), verdicts.prompts
    return crowd, PairTasks(*of_tasks, *of_workers, *of_prompts)


def _turned(verdict: Codes, is_turned: Mask) -> Codes:
    """Return verdicts with first and second exchanged where the items are."""
    return np.where(is_turned & (verdict != TIE), SECOND - verdict, verdict).astype(np.int32)


def _numbered(key: Offsets) -> tuple[Offsets, Offsets]:
    """Return where each key appears first, in that order, and the number of each row's key."""
    _, at, number = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(at)
    place = np.empty(len(at), dtype=np.int64)
    place[order] = np.arange(len(at))
    return at[order], place[number]
