"""What a report says: each section as numbers and names that JSON can hold.

A section is a function that measures it and returns None where there is nothing to say. A new one
is a line in SECTIONS, its function here, its part in `templates/sections.html`, and what is most
important about it, for the top of the report, in `templates/words.txt`.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak import evaluate, judges, selection, tables, templating
from tiebreak._version import __version__
from tiebreak.arguments import FUNCTION, TEXT, WITH_RESPONSES, checks, having, optional, whole
from tiebreak.ask.job import read_texts
from tiebreak.data import MISSING, Gold, Labels
from tiebreak.data.frames import as_plain
from tiebreak.decide.held_out import without_gold
from tiebreak.errors import InputError, InputNote, OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.estimators.committee import FEW_WORKERS, FromVote
from tiebreak.estimators.majority_vote import MajorityVote
from tiebreak.inference.worker_summary import Interval, readers
from tiebreak.judges.known import interval_of_share
from tiebreak.judges.spans import MarkedSpans, marked_spans
from tiebreak.kernels.layout import TIED, Floats, Offsets
from tiebreak.links import Links
from tiebreak.links import graph as link_graph
from tiebreak.links.check import write_chain
from tiebreak.ranking import BradleyTerry
from tiebreak.report import charts
from tiebreak.report.charts import Chart, Found
from tiebreak.report.explain import explain_tasks
from tiebreak.wording import clip, counted, number, percent, printable

FORMAT = "tiebreak-report"
VERSION = 1  # of the numbers: raised when a name goes or changes its meaning

# Of each list so much is shown that no input makes a page above 1.5 MB.
MOST_DIFFERENT = 20  # tasks whose labels differ from the vote
MOST_DOUBTFUL = 30
MOST_VOTES = 12  # names of workers beside a task
MOST_LABELS = 8  # different labels of one task
MOST_CLASSES = 30
MOST_WORKERS = 40
MOST_MATRICES = 4
MOST_CORRELATED = 12
MOST_LINKS = 25
MOST_QUESTIONS = 10
MOST_SENTENCES = 30
MOST_SPANS = 12  # that one worker marked in one sentence
MOST_MARKINGS = 8  # of one sentence
AROUND = 30  # tokens of a sentence shown before and after a doubtful span
LONGEST_TEXT = 400  # characters of a task's text
LONGEST_PIECE = 200  # … of a span, and of what lies between two
BINS = 20  # of a histogram
MOST_SAMPLED = 20_000  # tasks that agreement and shared errors are measured on

SURE = 0.9  # labels below this probability are doubtful
GOOD = 0.8  # Krippendorff's own words for α: from here on conclusions can be drawn
FAIR = 0.667  # from here on, tentative ones
CALIBRATED = 0.05  # how far the mean probability may be from the share that is right
NARROW = 0.2  # width of an interval of that share, from which on calibration can be judged
LEAST_KNOWN = 20  # known tasks: fewer tell nothing of pairs of workers, nor of a panel
MOST_JUDGES = 30  # more workers are no panel
LEAST_SHARE = 0.2  # of the tasks, that a judge of a panel has seen in the mean
UNSTABLE = 0.1  # share of repeated runs that disagree, or of verdicts that flip, from which to look
MOST_LINKS_OF_A_CHAIN = 20_000  # links of a group, for a chain through it to be looked for
MOST_TASKS = 100_000  # among which questions are looked for
MOST_VOTERS = 20  # workers who may be asked for one more vote: the most accurate
LEAST_GAIN = 1e-6  # labels corrected: below, an answer changes nothing
ASKED = {
    "same": "Are these two of the same class?",
    "label": "What is the class of this task?",
    "vote": "One more response, by whom?",
}

SIGNS = ("Look", "Fine", "Next")  # of sentences, in this order at the top of the report
TOO_HIGH = "which is too high"

LEVEL = 0.9  # of the interval of a worker's accuracy
MOST_RESPONSES = 1_000_000  # up to which intervals come from the model's own table of workers
FEWEST = 10  # responses: workers with fewer get no verdict
BINS_OF_CURVE = 10  # of calibration
MOST_IN_MATRIX = 12  # classes; the rarest are put together
MOST_POINTS = 200  # of a line
OTHERS = "all others"

Watch = Callable[[str], None]


class WorkerAccuracy(NamedTuple):
    """One row per worker, in the order of the model's workers."""

    accuracy: Floats  # expected over the classes
    low: Floats
    high: Floats
    n_responses: npt.NDArray[np.int64]
    verdict: tuple[str, ...]


def worker_accuracy(model: Any) -> WorkerAccuracy:
    """Return how often each worker is right, with an interval of 90 %.

    The accuracy is Σ π(k) θ(k, k), with the interval of `model.workers_table()`. That takes about
    as long as the fit: for very large crowds, and where the model has no such table, each row of a
    confusion matrix is taken as Dirichlet with its fitted mean and as much weight as the worker has
    responses to tasks labelled so, and one for each class; the sum over rows as the Beta of the
    same mean and variance. Then labels count as certain, and the interval is a little narrow.
    """
    prior = np.asarray(model.class_prior_)
    counts = responses_by_class(model)
    end, crowd = vars(model).get("_state"), model.responses_
    # A table can be had soon, and is of the tasks that this model shows.
    has_table = end is not None and getattr(model, "_carried", None) is None
    if has_table and len(end.q) == crowd.n_tasks and 0 < crowd.n_responses <= MOST_RESPONSES:
        table = model.workers_table(level=LEVEL)
        mean, low, high = table.accuracy, table.accuracy_low, table.accuracy_high
    else:
        right = np.diagonal(model.confusion_, axis1=1, axis2=2)
        variance = (right * (1.0 - right) / (counts + len(prior) + 1.0)) @ prior**2
        mean, low, high = Interval.of(right @ prior, variance, LEVEL)
    n_responses = counts.sum(axis=1).round().astype(np.int64)
    # How often answers that ignore the task would be right.
    by_chance = np.einsum("k,wkl->wl", prior, model.confusion_) @ prior
    # Nobody is called a guesser who may be as good as most.
    is_judged = n_responses >= FEWEST
    usual = float(np.median(mean[is_judged])) if is_judged.any() else 1.0
    verdict = np.where(low > by_chance, charts.RELIABLE, charts.TOO_FEW).astype(object)
    verdict[is_judged & (low <= by_chance) & (high < usual)] = charts.CHANCE
    verdict[is_judged & (high < by_chance)] = charts.WORSE
    verdict[~is_judged] = charts.TOO_FEW
    return WorkerAccuracy(mean, low, high, n_responses, tuple(verdict))


def worker_rows(model: Any, most: int, found: WorkerAccuracy | None = None) -> list[Found]:
    """Return what is known of some workers, the least accurate first.

    Of many, the half whose accuracy is surely lowest and, of the rest, those with most responses.
    """
    found = found or worker_accuracy(model)
    everyone = np.arange(len(found.accuracy))
    if len(everyone) > most:
        worst = np.argsort(found.high, kind="stable")[: most // 2]
        rest = np.setdiff1d(everyone, worst)
        busiest = rest[np.argsort(-found.n_responses[rest], kind="stable")[: most - len(worst)]]
        everyone = np.concatenate([worst, busiest])
    order = everyone[np.argsort(found.accuracy[everyone], kind="stable")]
    return [
        {
            "worker": clip(model.workers_[w], charts.LONGEST_ID),
            "responses": int(found.n_responses[w]),
            "accuracy": float(found.accuracy[w]),
            "low": float(found.low[w]),
            "high": float(found.high[w]),
            "verdict": found.verdict[w],
        }
        for w in order.tolist()
    ]


def guessing(model: Any) -> float:
    """Return how often answers drawn as classes are would be right."""
    return float((np.asarray(model.class_prior_) ** 2).sum())


def responses_by_class(model: Any) -> Floats:
    """Count the responses of each worker by the label of their task, (n_workers, n_classes).

    Those that the model no longer has, and counts by class, are among them.
    """
    n_workers, n_classes = len(model.workers_), len(model.classes_)
    cell = model.responses_.worker_of_each().astype(np.int64) * n_classes
    cell += np.asarray(model.labels_.label)[model.responses_.task_of_each()]
    counts = np.bincount(cell, minlength=n_workers * n_classes).reshape(n_workers, n_classes)
    carried = getattr(model, "_carried", None)
    if carried is None:
        return counts.astype(np.float64)
    n_parts = carried.counts.shape[1] // n_classes
    by_answer = carried.counts.reshape(-1, n_classes, n_classes, n_parts)
    return np.asarray(counts + by_answer.sum(axis=(1, 3)))


def labels_to_score(model: Any, truth: Any = None) -> tuple[Labels, Gold] | None:
    """Return labels and known labels that they have not seen; None where nothing is known.

    `truth` is compared as it is, less the tasks that the fit was given. Without it, a model that
    was given gold is fitted once more without, and that fit is compared with the gold.
    """
    if truth is not None:
        known = tables.read_gold(truth)
        if model.gold_ is not None:
            seen = known.tasks.codes(model.gold_.tasks)
            is_new = np.ones(len(known), dtype=bool)
            is_new[seen[seen != MISSING]] = False
            if not is_new.any():
                raise InputError("gold-all-given")
            known = subset(known, np.flatnonzero(is_new))
        return model.labels_, known
    if model.gold_ is None or not len(model.gold_):
        return None
    return without_gold(model).labels_, model.gold_


def calibration_curve(labels: Labels, gold: Gold) -> list[Found]:
    """Return one point for each bin of stated probability that has labels in it."""
    task = labels.tasks.codes(gold.tasks)
    truth = labels.classes.codes(gold.classes)[gold.label]
    there = task != MISSING
    if not there.any() or labels.probability is None:
        raise InputError("gold-of-no-task")
    stated = labels.probability[task[there]]
    right = (labels.label[task[there]] == truth[there]).astype(np.float64)
    bin_of = np.minimum((BINS_OF_CURVE * stated).astype(np.int64), BINS_OF_CURVE - 1)
    n, mean, n_right = (np.bincount(bin_of, weights) for weights in (None, stated, right))
    points = []
    for k in np.flatnonzero(n).tolist():
        low, high = interval_of_share(float(n_right[k]), float(n[k]))
        shares = {"stated": float(mean[k] / n[k]), "right": float(n_right[k] / n[k])}
        points.append(shares | {"low": low, "high": high, "n": int(n[k])})
    return points


def subset(known: Gold, chosen: Offsets) -> Gold:
    names = known.tasks.take(chosen)
    return replace(known, tasks=names, label=known.label[chosen], row=known.row[chosen])


def merge_rare_classes(model: Any, matrix: Floats) -> tuple[list[str], Floats]:
    """Put the rarest classes together, so that a matrix can be read; rows still sum to 1."""
    classes, prior = list(map(name, model.classes_)), np.asarray(model.class_prior_)
    if len(classes) <= MOST_IN_MATRIX:
        return classes, matrix
    kept = np.sort(np.argsort(-prior, kind="stable")[: MOST_IN_MATRIX - 1])
    rare = np.setdiff1d(np.arange(len(classes)), kept)
    weight = prior[rare] / max(float(prior[rare].sum()), 1e-300)
    rows = np.vstack([matrix[kept], weight @ matrix[rare]])
    merged = np.column_stack([rows[:, kept], rows[:, rare].sum(axis=1)])
    return [*(classes[int(k)] for k in kept), OTHERS], merged


def thinned(bounds: Sequence[float], n_iter: int) -> list[tuple[int, float]]:
    """Return (iteration, bound), no more than a line needs, the first and last among them.

    >>> thinned([-3.0, -2.0, -1.5], 2)
    [(0, -3.0), (1, -2.0), (2, -1.5)]
    """
    first = n_iter + 1 - len(bounds)
    at = np.arange(len(bounds))
    if len(at) > MOST_POINTS:
        at = np.unique(np.linspace(0, len(bounds) - 1, MOST_POINTS).round().astype(np.int64))
    return [(first + int(k), float(bounds[int(k)])) for k in at]


@dataclass
class Subject:
    """A fitted model and what is known beside it."""

    model: Estimator
    to_score: tuple[Labels, Gold] | None  # what is compared with which known labels
    texts: Mapping[int, str]  # by code of task
    systems: Mapping[Hashable, str] | None  # which model made the answer that each task is about
    accepts: Hashable | None  # the class that accepts an answer

    @cached_property
    def sample(self) -> Estimator:
        """The model on some tasks, where there are very many."""
        n_tasks = len(self.model.tasks_)
        if n_tasks <= MOST_SAMPLED:
            return self.model
        chosen = np.random.default_rng(0).choice(n_tasks, MOST_SAMPLED, replace=False)
        return restricted(self.model, np.sort(chosen))

    @cached_property
    def agreement(self) -> judges.AgreementReport | None:
        """How far workers agree; None where no task has two responses, or one class only."""
        responses = self.sample.responses_
        several = responses.n_workers > 1 and (np.diff(responses.start) >= 2).any()
        if responses.n_classes < 2 or not several:
            return None
        return judges.agreement_report(responses)

    @cached_property
    def accuracy(self) -> WorkerAccuracy:
        return worker_accuracy(self.model)

    @cached_property
    def spam(self) -> list[judges.Spam]:
        """Workers who agree with nobody; a sample has too few responses of each to tell."""
        found = self.agreement
        return [] if found is None or self.sample is not self.model else found.spam

    def text(self, task: int, most: int = LONGEST_TEXT) -> str | None:
        """Return the text of a task, cut to a length that can be read."""
        found = self.texts.get(task)
        if found is None or len(found) <= most:
            return None if found is None else printable(found)
        return printable(found[: most - 1]).rstrip() + "…"


@checks(model=WITH_RESPONSES, source=optional(TEXT), watch=optional(FUNCTION))
def measure(
    model: Estimator,
    *,
    truth: Any = None,
    texts: Any = None,
    source: str | None = None,
    systems: Any = None,
    accepts: Hashable | None = None,
    watch: Watch | None = None,
) -> Found:
    """Measure a fitted model: everything that its report says, for programs.

    Parameters
    ----------
    truth
        Known labels that the fit was not given, to compare with. Without them, a model that was
        given gold is fitted once more without it, and that fit is compared with the gold.
    texts
        What tasks look like: a mapping of task to text, or a table of task, text.
    source
        What the responses are called in the title.
    systems, accepts
        Which model made the answer that each task is about (a table of task, system), and the
        class that accepts an answer: for the self-preference of judges.
    watch
        Called with the name of each step, before it.
    """
    if (systems is None) != (accepts is None):
        raise OptionError("self-preference-needs-both")
    if accepts is not None and model.classes_.codes([accepts])[0] < 0:
        raise OptionError.unknown("accepts", accepts, tuple(map(str, model.classes_)))
    tell = watch or (lambda _: None)
    if truth is None and model.gold_ is not None:
        tell("fitting without gold, to compare with it")
    subject = Subject(
        model,
        labels_to_score(model, truth),
        {} if texts is None else read_texts(texts, model.tasks_),
        None if systems is None else tables.read_texts(systems, of="system"),
        accepts,
    )
    sections: Found = {}
    for key, (title, section) in SECTIONS.items():
        tell(title.lower())
        sections[key] = as_plain(section(subject))
    responses = model.responses_
    # SOURCE_DATE_EPOCH, where set, so that reports can be made again.
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return {
        "format": FORMAT,
        "version": VERSION,
        "tiebreak": __version__,
        "written": now.strftime("%Y-%m-%d %H:%M UTC"),
        "source": clip(source or "responses", 120),
        "counts": {
            "responses": responses.n_given,
            "tasks": responses.n_tasks,
            "workers": responses.n_workers,
            "classes": responses.n_classes,
            "links": 0 if model.links_ is None else len(model.links_),
            "gold": 0 if model.gold_ is None else len(model.gold_),
        },
        **_words(sections),
        "sections": sections,
    }


def _words(sections: Found) -> Found:
    """Return what stands at the top: a verdict, and sentences with signs, what to look at first."""
    runs, scores, workers = (sections[key] for key in ("runs", "scores", "workers"))
    unstable = []
    for key, what in (
        ("flip_rate", "changes its verdict with the order of the answers"),
        ("self_agreement", "disagrees with itself when asked again"),
    ):
        known = [each for each in (runs or {}).get("judges", ()) if each[key] is not None]
        shares = [abs((key == "self_agreement") - each[key]) for each in known]
        if shares:
            share = max(shares)
            unstable.append((known[shares.index(share)]["worker"], share, what))
    said = templating.sentences(
        "tiebreak.report",
        "words.txt",
        s=sections,
        sure=SURE,
        judged=scores and judge_probabilities(scores),
        too_high=TOO_HIGH,
        least_known=LEAST_KNOWN,
        n_poor=sum((workers or {}).get("verdicts", {}).get(kind, 0) for kind in charts.POOR),
        unstable=unstable,
        much_unstable=UNSTABLE,
        much_shared=charts.MUCH,
        fair=FAIR,
        good=GOOD,
    )
    verdict, *words = (each.split(": ", 1) for each in said)
    words.sort(key=lambda each: SIGNS.index(each[0]))
    return {
        "verdict": verdict[1],
        "words": [{"sign": sign, "text": text} for sign, text in words],
    }


def name(value: Hashable | None) -> str:
    return clip(value, charts.LONGEST_ID)


def restricted(model: Estimator, chosen: Offsets) -> Estimator:
    """Return a fitted model as it is on some tasks, by sorted codes; what it learnt is shared.

    Links and gold stay whole: where they matter, their tasks must be among the chosen ones.
    """
    view = copy.copy(model)
    labels = model.labels_
    runs = model.responses_.runs
    view.responses_ = replace(model.responses_.on_tasks(chosen), runs=runs)
    view.tasks_ = view.responses_.tasks
    view.probabilities_ = model.probabilities_[chosen]
    view.labels_ = replace(
        labels,
        tasks=view.tasks_,
        label=labels.label[chosen],
        probability=None if labels.probability is None else labels.probability[chosen],
        probabilities=view.probabilities_,
        scores=None if labels.scores is None else labels.scores.take(chosen),
    )
    return view


def _histogram(shares: Floats) -> Found:
    bin_of = np.minimum((BINS * shares).astype(np.int64), BINS - 1)
    edges = [round(k / BINS, 4) for k in range(BINS + 1)]
    return {"edges": edges, "counts": np.bincount(bin_of, minlength=BINS)}


# Labels


def _labels(subject: Subject) -> Found | None:
    labels = subject.model.labels_
    stated = labels.probability
    if stated is None or not len(labels):
        return None
    n_tasks, n_classes = len(labels), len(labels.classes)
    n_of_class = np.bincount(labels.label, minlength=n_classes)
    total = np.bincount(labels.label, stated, minlength=n_classes)
    doubtful = np.bincount(labels.label[stated < SURE], minlength=n_classes)
    order = np.argsort(-n_of_class, kind="stable")[:MOST_CLASSES]
    return {
        "n_tasks": n_tasks,
        "n_classes": n_classes,
        "doubtful_below": SURE,
        "n_doubtful": doubtful.sum(),
        "expected_wrong": (1.0 - stated).sum(),
        **_histogram(stated),
        "n_without_label": (n_of_class == 0).sum(),
        "classes": [
            {
                "class": name(labels.classes[k]),
                "labels": n_of_class[k],
                "prior": subject.model.class_prior_[k],
                "mean_probability": total[k] / n_of_class[k] if n_of_class[k] else None,
                "doubtful": doubtful[k],
            }
            for k in order.tolist()
        ],
    }


def _from_vote(subject: Subject) -> Found | None:
    """Compare labels with the majority vote; known tasks are left out."""
    model = subject.model
    responses = model.responses_
    if isinstance(model, MajorityVote) or not responses.n_responses:
        return None
    n_tasks, n_classes = responses.n_tasks, responses.n_classes
    cell = responses.task_of_each().astype(np.int64) * n_classes + responses.label_of_each()
    votes = np.bincount(cell, responses.weight, n_tasks * n_classes).reshape(-1, n_classes)
    is_top = votes >= votes.max(axis=1, keepdims=True) * (1.0 - TIED)
    label = model.labels_.label
    differs = ~is_top[np.arange(n_tasks), label]
    if model.gold_ is not None:
        differs[model.gold_.on(model.tasks_, model.classes_).task] = False
    at = np.flatnonzero(differs)
    q, is_top = np.asarray(model.probabilities_)[at], is_top[at]
    vote = np.where(is_top, q, -1.0).argmax(axis=1)
    mine, its = (q[np.arange(len(at)), each] for each in (label[at], vote))
    first = np.lexsort((at, its - mine))[:MOST_DIFFERENT]
    cards = _cards(subject, at[first].tolist())
    from_vote = FromVote(len(at), (mine - (q * is_top).sum(axis=1) / is_top.sum(axis=1)).sum())
    n_workers = len(model.workers_)
    sentence = from_vote.sentence(n_tasks, n_workers, has_gold=model.gold_ is not None)
    return {
        "n_differ": len(at),
        "n_tasks": n_tasks,
        "expected_right": from_vote.expected_right if n_workers > FEW_WORKERS else None,
        "sentence": sentence,
        "tasks": [
            card | {"vote": name(model.classes_[int(vote[i])]), "vote_probability": its[i]}
            for card, i in zip(cards, first.tolist(), strict=True)
        ],
    }


def _doubtful_tasks(subject: Subject) -> Found | None:
    stated = subject.model.labels_.probability
    if stated is None or not (stated < SURE).any():
        return None
    doubtful = np.flatnonzero(stated < SURE)
    order = np.lexsort((doubtful, stated[doubtful]))
    cards = _cards(subject, doubtful[order[:MOST_DOUBTFUL]].tolist())
    return {"n_doubtful": len(doubtful), "tasks": cards}


def _spans(subject: Subject) -> Found | None:
    """Show doubtful spans in their sentences, the most doubtful first, and who marked what."""
    spans = getattr(subject.model, "spans_", None)
    if spans is None or not len(spans):
        return None
    sequences, kinds, sure = spans.sequences, list(map(name, spans.kinds)), spans.probability
    doubtful = np.flatnonzero(sure < SURE)
    first_shown = doubtful[np.argsort(sure[doubtful], kind="stable")]
    sentences: list[Found] = []
    is_shown = np.zeros(len(spans), dtype=bool)
    if sequences.word is not None:
        of_span = np.searchsorted(sequences.start, spans.first, side="right") - 1
        marked = marked_spans(subject.model.responses_, sequences)
        for i in first_shown.tolist():
            if is_shown[i]:
                continue
            if len(sentences) == MOST_SENTENCES:
                break
            ends = sequences.start[of_span[i] : of_span[i] + 2]
            low = int(max(ends[0], spans.first[i] - AROUND))
            high = int(min(ends[1] - 1, spans.last[i] + AROUND))
            here = np.flatnonzero((spans.first >= low) & (spans.last <= high))
            is_shown[here] = True
            names = [(kinds[int(spans.kind[j])], float(sure[j])) for j in here]
            ends_of = zip(spans.first[here].tolist(), spans.last[here].tolist(), names, strict=True)
            sentences.append(
                {
                    "sequence": name(sequences.names[int(of_span[i])]),
                    "probability": sure[i],
                    "is_cut": [low > ends[0], high < ends[1] - 1],
                    "pieces": [
                        {"text": clip(text, LONGEST_PIECE) or text[:1]}
                        | ({} if named is None else {"kind": named[0], "probability": named[1]})
                        for text, named in sequences.pieces(low, high, ends_of)
                    ],
                    "marked": _who_marked(subject.model, marked, low, high),
                }
            )
    return {
        "n_spans": len(spans),
        "n_sequences": len(sequences),
        "n_doubtful": len(doubtful),
        "kinds": kinds[:MOST_CLASSES],
        "sentences": sentences,
        "spans": [
            {
                "sequence": name(each.sequence),
                "first": name(each.first),
                "last": name(each.last),
                "label": name(each.label),
                "probability": each.probability,
            }
            for each in ([] if sentences else spans.take(first_shown[:MOST_DOUBTFUL]))
        ],
    }


def _who_marked(model: Estimator, marked: MarkedSpans, low: int, high: int) -> list[Found]:
    """Return what was marked among some tokens, by the workers who marked the same."""
    at, worker, _ = marked.answers
    by_worker: dict[int, list[tuple[str, str]]] = {
        int(w): [] for w in np.unique(worker[(at >= low) & (at <= high)])
    }
    for i in np.flatnonzero((marked.first >= low) & (marked.last <= high)).tolist():
        text = marked.sequences.text_of(int(marked.first[i]), int(marked.last[i])) or ""
        kind = name(marked.tags.kinds[int(marked.kind[i])])
        by_worker[int(marked.worker[i])].append((clip(text, charts.LONGEST_ID), kind))
    alike: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for w, said in by_worker.items():
        alike.setdefault(tuple(said), []).append(w)
    return [
        {
            "workers": [clip(model.workers_[w], 30) for w in who[:MOST_VOTES]],
            "n": len(who),
            "spans": [{"text": text, "kind": kind} for text, kind in said[:MOST_SPANS]],
        }
        for said, who in sorted(alike.items(), key=lambda each: -len(each[1]))[:MOST_MARKINGS]
    ]


def _cards(subject: Subject, tasks: list[int]) -> list[Found]:
    """Return what is shown of some tasks: label, votes, text and why."""
    model = subject.model
    stated = model.labels_.probability
    cards = []
    for task, reason in zip(tasks, explain_tasks(model, tasks), strict=True):
        q = model.probabilities_[task]
        label = int(model.labels_.label[task])
        second = int(np.where(np.arange(len(q)) == label, -1.0, q).argmax())
        has_second = len(q) > 1
        workers, given = model.responses_.of(task)
        labels, counts = np.unique(given, return_counts=True)
        left, votes = MOST_VOTES, []
        for at in np.argsort(-counts, kind="stable")[:MOST_LABELS].tolist():
            who = workers[given == labels[at]][:left]
            left -= len(who)
            names = [clip(model.workers_[int(w)], 30) for w in who]
            said = name(model.classes_[int(labels[at])])
            votes.append({"label": said, "n": counts[at], "workers": names})
        cards.append(
            {
                "task": name(model.tasks_[task]),
                "label": name(model.classes_[label]),
                "probability": None if stated is None else stated[task],
                "second": name(model.classes_[second]) if has_second else None,
                "second_probability": q[second] if has_second else None,
                "n_votes": len(given),
                "votes": votes,
                "text": subject.text(task),
                "explanation": reason.to_dict(),
            }
        )
    return cards


# Workers


def _workers(subject: Subject) -> Found | None:
    model = subject.model
    n_workers = len(model.workers_)
    if not n_workers or not model.responses_.n_responses:
        return None
    verdicts = list(subject.accuracy.verdict)
    for each in subject.spam:  # what responses alone tell, whatever a prior hopes of them
        if verdicts[each.worker] not in charts.POOR:
            verdicts[each.worker] = charts.ALONE
    found = subject.accuracy._replace(verdict=tuple(verdicts))
    is_poor = np.flatnonzero(np.isin(np.array(verdicts, dtype=str), charts.POOR))
    poor = is_poor[np.argsort(-found.n_responses[is_poor], kind="stable")].tolist()
    kinds, n_each = np.unique(np.array(verdicts, dtype=str), return_counts=True)
    return {
        "n_workers": n_workers,
        "guessing": guessing(model),
        "verdicts": dict(zip(kinds.tolist(), n_each.tolist(), strict=True)),
        "rows": worker_rows(model, MOST_WORKERS, found),
        **_histogram(found.accuracy),
        "poor": [name(model.workers_[w]) for w in poor[:3]],
        "matrices": _matrices(model, found, poor),
    }


def _matrices(model: Estimator, found: WorkerAccuracy, poor: list[int]) -> list[Found]:
    """Return the confusion matrix of all responses together, of poor workers and of busy ones."""
    average = np.einsum(
        "w,wkl->kl", found.n_responses / max(found.n_responses.sum(), 1), model.confusion_
    )
    words = "Each row: of tasks of this class, the share of answers that name each class."
    chosen = [("All workers together", words, average)]
    poor = poor[: MOST_MATRICES // 2]
    busy = np.argsort(-found.n_responses, kind="stable").tolist()
    others = [w for w in busy if w not in poor and found.n_responses[w] >= FEWEST]
    for w in [*poor, *others][: MOST_MATRICES - 1]:
        right = percent(float(found.accuracy[w]), 0)
        given = counted(int(found.n_responses[w]), "response")
        words = f"{found.verdict[w].capitalize()}; right {right}, on {given}."
        chosen.append((name(model.workers_[w]), words, model.confusion_[w]))
    made = []
    for title, description, matrix in chosen:
        names, merged = merge_rare_classes(model, matrix)
        shown = {"classes": names, "matrix": np.round(merged, 6)}
        made.append({"title": title, "description": description, **shown})
    return made


def _runs(subject: Subject) -> Found | None:
    """Measure judges that were asked again, or in both orders."""
    runs = subject.model.responses_.runs
    rows = [] if runs is None else [each for each in runs.workers if each.n_repeated or each.n_both]
    if not rows:
        return None
    rows.sort(key=lambda each: -np.nanmax([each.flip_rate, 1.0 - each.self_agreement, -1.0]))
    return {
        "n_judges": len(rows),
        "judges": [
            {
                "worker": name(each.worker),
                "group": None if each.group is None else name(each.group),
                "repeated": each.n_repeated,
                "self_agreement": each.self_agreement,
                "both_orders": each.n_both,
                "flip_rate": each.flip_rate,
                "first_preference": each.first_preference,
            }
            for each in rows[:MOST_WORKERS]
        ],
    }


def _judges(subject: Subject) -> Found | None:
    """Report on a panel: few workers who saw many tasks."""
    responses = subject.sample.responses_
    seen = responses.n_responses / max(responses.n_workers * responses.n_tasks, 1)
    if not 2 <= responses.n_workers <= MOST_JUDGES or seen < LEAST_SHARE:
        return None
    found = _judges_by_gold(subject)
    if subject.systems is None:
        return found
    found = found or {"n_known": 0, "judges": [], "effective": None, "sentences": []}
    preferences = judges.self_preferences(
        subject.model.responses_, subject.systems, subject.accepts
    )
    found["self_preference"] = [
        {
            "worker": name(each.worker),
            "family": name(each.family),
            "own": each.n_own,
            "preference": each.preference,
            "low": each.interval[0],
            "high": each.interval[1],
        }
        for each in preferences[:MOST_WORKERS]
    ]
    return found


def _judges_by_gold(subject: Subject) -> Found | None:
    """Compare judges with known labels; None where these are too few."""
    if subject.to_score is None:
        return None
    gold = subject.to_score[1]
    codes = subject.model.tasks_.codes(gold.tasks)
    codes = codes[codes != MISSING]
    if len(codes) < LEAST_KNOWN:
        return None
    model = subject.sample
    if model is not subject.model:
        model = restricted(subject.model, np.sort(codes).astype(np.int64))
    with warnings.catch_warnings(record=True) as notes:  # said on the page
        warnings.simplefilter("always", InputNote)
        found = judges.panel_report(model, gold, sub_panels=False)
    return {
        "n_known": found.n_known,
        "judges": [
            {
                "worker": name(each.worker),
                "known": each.n_known,
                "accuracy": each.accuracy,
                "low": each.interval[0],
                "high": each.interval[1],
            }
            for each in found.judges[:MOST_WORKERS]
        ],
        "effective": None if found.shared is None else found.shared.effective,
        "sentences": [*(str(each.message) for each in notes), *found.sentences()],
    }


def _shared_errors(subject: Subject) -> Found | None:
    """Correlate the errors of workers; where enough is known, by known labels."""
    model = subject.model
    if len(model.workers_) < 2 or len(model.classes_) < 2 or not model.responses_.n_responses:
        return None
    found = _dependence(subject)
    chosen = _most_correlated(found.correlation)
    copies = _copies(subject, found)
    return {
        "by_gold": found.by_gold,
        "n_tasks": found.n_tasks,
        "n_workers": len(model.workers_),
        "mean_correlation": found.mean_correlation,
        "interval": found.interval,
        "responses_per_task": found.n_responses,
        "effective": found.effective,
        "effective_interval": found.effective_interval,
        "workers": [name(found.workers[at]) for at in chosen.tolist()],
        "correlation": np.round(found.correlation[np.ix_(chosen, chosen)], 6),
        "n_copies": len(copies),
        "copies": copies[:MOST_CORRELATED],
    }


def _dependence(subject: Subject) -> judges.Dependence:
    """Compare errors by known labels, where enough of them have responses, else by the model's."""
    if subject.to_score is None:
        return judges.error_dependence(subject.sample)
    gold = subject.to_score[1]
    model = subject.model
    task = model.tasks_.codes(gold.tasks)
    n_votes = np.diff(model.responses_.start)
    there = np.flatnonzero((task != MISSING) & (n_votes[np.maximum(task, 0)] > 0))
    if len(there) < LEAST_KNOWN:
        return judges.error_dependence(subject.sample)
    if len(there) > MOST_SAMPLED:
        there = np.random.default_rng(0).choice(there, MOST_SAMPLED, replace=False)
    view = restricted(model, np.sort(task[there]).astype(np.int64))
    return judges.error_dependence(view, subset(gold, there))


def _most_correlated(correlation: Floats) -> Offsets:
    """Return the workers of the most correlated pairs, in the order of workers."""
    upper = np.where(np.triu(~np.isnan(correlation), 1), correlation, -np.inf)
    chosen: set[int] = set()
    for at in np.argsort(-upper, axis=None, kind="stable")[: MOST_CORRELATED**2].tolist():
        pair = divmod(at, len(upper))
        if upper[pair] == -np.inf or len(chosen | set(pair)) > MOST_CORRELATED:
            break
        chosen |= set(pair)
    return np.array(sorted(chosen), dtype=np.int64)


def _copies(subject: Subject, found: judges.Dependence) -> list[Found]:
    """Return pairs that look like copies: by errors, and by answers that others do not give.

    A model may take two who always agree for two good workers; answers alone then tell.
    """
    pairs = {
        frozenset((pair.left, pair.right)): (
            (pair.left, pair.right),
            pair.n_common,
            f"the same wrong label on {pair.n_same:,} of {pair.n_errors:,} tasks on which either "
            "errs",
        )
        for pair in found.copies
    }
    workers = subject.model.workers_
    for each in [] if subject.agreement is None else subject.agreement.copies:
        ends = workers[each.first], workers[each.second]
        pairs.setdefault(frozenset(ends), (ends, each.n_shared, each.reason))
    return [
        {"left": name(left), "right": name(right), "common_tasks": n, "why": why}
        for (left, right), n, why in pairs.values()
    ]


def _agreement(subject: Subject) -> Found | None:
    found = subject.agreement
    if found is None:
        return None
    return {
        "n_tasks": found.n_tasks,
        "is_sample": subject.sample is not subject.model,
        "alpha": found.alpha,
        "alpha_ordinal": found.alpha_ordinal,
        "alpha_interval": found.alpha_interval,
        "share_of_orders": found.share_of_orders,
        "fleiss_kappa": found.fleiss_kappa,
        "cohen_kappa": found.cohen_kappa,
        "equal_pairs": found.percent,
        "spam": [
            {
                "worker": name(found.workers[each.worker]),
                "responses": each.n_answers,
                "kappa": each.kappa,
                "reason": each.reason,
            }
            for each in subject.spam[:MOST_WORKERS]
        ],
        "n_spam": len(subject.spam),
    }


def _scale(subject: Subject) -> Found | None:
    """Say how each worker reads the scale, those farthest from it first."""
    model = subject.model
    found = readers(model)
    if not found or model.scale_ is None:
        return None
    values = model.scale_.values
    away = [abs(each.bias) + abs(np.log(each.gain)) for each in found]
    order = np.argsort(-np.array(away), kind="stable")[:MOST_WORKERS]
    shown = [found[i] for i in order.tolist()]
    return {
        "levels": [name(level) for level in model.scale_.levels],
        "declared": model.scale_.declared,
        "share_of_orders": model.scale_.share_of_orders,
        "values": values,
        "middle": (values[0] + values[-1]) / 2.0,
        "step": (values[-1] - values[0]) / max(len(values) - 1, 1),
        "has_gold": model.gold_ is not None,
        "n_readers": len(found),
        "readers": [each._asdict() | {"worker": name(each.worker)} for each in shown],
        "sentences": [each._replace(worker=name(each.worker)).sentence() for each in shown],
    }


# Links


def _features(subject: Subject) -> Found | None:
    """What a classifier on features knows, and the tasks where it speaks against the label most."""
    model = subject.model
    if model.classifier_weight_ is None or model.classifier_gain_ is None:
        return None
    f, label = np.asarray(model.classifier_probabilities_), model.labels_.label
    top, has_responses = f.argmax(axis=1), np.diff(model.responses_.start) > 0
    differs = np.flatnonzero((top != label) & has_responses)
    gap = f[differs, label[differs]] / f[differs, top[differs]]
    first = differs[np.argsort(gap, kind="stable")[:MOST_DIFFERENT]]
    return {
        "weight": model.classifier_weight_,
        **model.classifier_gain_._asdict(),
        "n_tasks": has_responses.sum(),
        "n_without_responses": (~has_responses).sum(),
        "n_differ": len(differs),
        "tasks": [
            {
                "task": name(model.tasks_[i]),
                "label": name(model.classes_[int(label[i])]),
                "probability": model.probabilities_[i, label[i]],
                "class": name(model.classes_[int(top[i])]),
                "class_probability": f[i, top[i]],
                "text": subject.text(i, 120),
            }
            for i in first.tolist()
        ],
    }


def _ranking(subject: Subject) -> Found | None:
    """Who is best by all verdicts on pairs, and what judges are like."""
    model = subject.model
    if model.pairs_ is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)  # said where the verdicts were read
        found = BradleyTerry().fit(model.pairs_.verdicts(model.responses_))
    judges = sorted(found.judges_, key=lambda each: -abs(each.first_place))
    judges.sort(key=lambda each: not each.prefers_first)
    return {
        "sentences": found.describe(),
        "items": found.ranking_.rows(MOST_WORKERS),
        "n_items": len(found.ranking_),
        "level": found.level,
        "judges": [{**each._asdict(), "worker": name(each.worker)} for each in judges[:MOST_LINKS]],
        "n_judges": len(judges),
    }


def _constraints(subject: Subject) -> Found | None:
    """What constraints did, the soft ones that look wrong, and labels that they changed."""
    model = subject.model
    report, own, table = model.constraint_report_, model.own_probabilities_, model.constraints_
    if report is None or own is None or table is None:
        return None
    label, without = model.labels_.label, own.argmax(axis=1)
    moved = np.flatnonzero(without != label)
    first = moved[np.argsort(-own[moved, without[moved]], kind="stable")[:MOST_LINKS]]
    doubtful = model.doubtful_constraints_
    shown = [] if doubtful is None else range(min(len(doubtful), MOST_LINKS))
    return {
        **report._asdict(),
        "n": len(table),
        "tasks": [
            {
                "task": name(model.tasks_[i]),
                "label": name(model.classes_[int(label[i])]),
                "probability": model.probabilities_[i, label[i]],
                "without": name(model.classes_[int(without[i])]),
                "without_probability": own[i, without[i]],
            }
            for i in first.tolist()
        ],
        "doubtful": [
            {
                "constraint": clip(doubtful.constraints.say(f), 120),
                "where": clip(doubtful.constraints.where(f), 80),
                "wrong": doubtful.probability[f],
            }
            for f in shown
            if doubtful is not None
        ],
    }


def _links(subject: Subject) -> Found | None:
    """Find links that labels break, that look wrong, or that cannot all hold."""
    model = subject.model
    links = model.links_
    if links is None or not len(links):
        return None
    broken, doubtful = model.violations_, model.doubtful_links_
    if not isinstance(broken, Links | None):  # constraints too
        codes = links.on(model.tasks_)
        broken = links.select(codes.row[link_graph.violated(model.labels_.label, codes)])
    report = getattr(model, "link_report_", None)
    groups = getattr(model, "uncertain_groups_", [])
    rates = list((getattr(model, "link_errors_", None) or {}).items())
    doubts = [] if doubtful is None else doubtful.probability.tolist()
    doubted = [] if doubtful is None else _link_rows(model, doubtful.links)
    n_contradictory, contradictions = _contradictions(model, links)
    n_broken = 0 if broken is None else len(broken)
    return {
        "n_links": len(links),
        "n_must": links.n_must,
        "n_cannot": links.n_cannot,
        "n_broken": n_broken,
        "broken": [] if broken is None else _link_rows(model, broken),
        "n_doubtful": None if doubtful is None else len(doubtful),
        "doubtful": [row | {"wrong": wrong} for row, wrong in zip(doubted, doubts, strict=False)],
        "n_contradictory": n_contradictory,
        "contradictory": contradictions,
        "errors": [
            {
                "source": "all links" if source is None else name(source),
                "of_same": rate.says_different_of_same,
                "of_different": rate.says_same_of_different,
            }
            for source, rate in rates[:MOST_LINKS]
        ],
        "components": None if report is None else dict(report._asdict()),
        "uncertain_groups": [
            {"tasks": len(group), "first": name(group[0])} for group in groups[:MOST_LINKS]
        ],
        "n_uncertain_groups": len(groups),
    }


def _link_rows(model: Estimator, links: Links) -> list[Found]:
    label = model.labels_.label[model.tasks_.codes(links.tasks)]
    rows = []
    for at in range(min(MOST_LINKS, len(links))):
        left, right = int(links.left[at]), int(links.right[at])
        rows.append(
            {
                "left": name(links.tasks[left]),
                "right": name(links.tasks[right]),
                "link": "must" if links.must[at] else "cannot",
                "labels": [name(model.classes_[int(label[end])]) for end in (left, right)],
                "where": clip(links.where(at), 80),
            }
        )
    return rows


def _contradictions(model: Estimator, links: Links) -> tuple[int, list[Found]]:
    """Count cannot-links whose tasks must-links join; return some, with the chain that joins them.

    With two classes, an odd cycle of cannot-links is a contradiction, too.
    """
    tasks = model.tasks_
    with warnings.catch_warnings(action="ignore", category=InputNote):  # said by the fit
        codes = links.on(tasks)
    firm = np.ones(codes.n_links, dtype=bool)  # what would follow if every link held
    implied = link_graph.imply(codes, len(model.classes_), firm=firm)
    group = implied.group[implied.links.left]
    has_chain = np.bincount(group)[group] <= MOST_LINKS_OF_A_CHAIN
    rows = []
    for place in implied.closure.conflicts[:MOST_LINKS].tolist():
        a = int(implied.task[implied.links.left[place]])
        b = int(implied.task[implied.links.right[place]])
        chain = "a chain too long to look for"
        if has_chain[place]:
            chain = write_chain(tasks, implied.why(a, b, same=True))
        rows.append((a, "≠", b, chain, place))
    if len(implied.odd) and has_chain[implied.odd[0]]:
        cycle = implied.why_odd()
        last = cycle[-1]
        chain = f"with two classes, {write_chain(tasks, cycle)} cannot all hold"
        rows.append((last.start, "=" if last.must else "≠", last.end, chain, last.origin))
    return len(implied.closure.conflicts) + len(implied.odd), [
        {
            "left": name(tasks[left]),
            "sign": sign,
            "right": name(tasks[right]),
            "chain": clip(chain, 600),
            "where": clip(links.where(int(implied.links.row[place])), 80),
        }
        for left, sign, right, chain, place in rows
    ]


# Known labels, the fit, and what to ask


def _scores(subject: Subject) -> Found | None:
    """Score labels that have not seen what they are compared with."""
    if subject.to_score is None:
        return None
    labels, gold = subject.to_score
    figures = evaluate.report(labels, gold)
    points = calibration_curve(labels, gold)
    n_scored = sum(point["n"] for point in points)
    by_class = sorted(figures.f_by_class.items(), key=lambda item: item[1])
    return {
        "fitted_again_without_gold": labels is not subject.model.labels_,
        "n_tasks": figures.n_tasks,
        "n_gold": figures.n_gold,
        "accuracy": figures.accuracy,
        "macro_f": figures.macro_f,
        "log_loss": figures.log_loss,
        "brier_score": figures.brier_score,
        "calibration_error": figures.calibration_error,
        "mean_probability": sum(point["stated"] * point["n"] for point in points) / n_scored,
        "calibration": points,
        "n_classes": len(by_class),
        "f_by_class": [{"class": name(each), "f": f} for each, f in by_class[:MOST_CLASSES]],
    }


def judge_probabilities(found: Found) -> str:
    """Return whether known labels show that probabilities are calibrated."""
    stated, right, n = found["mean_probability"], found["accuracy"], found["n_tasks"]
    low, high = interval_of_share(right * n, n)
    if stated > high and stated - right > CALIBRATED:
        return TOO_HIGH
    if stated < low and right - stated > CALIBRATED:
        return "which is too low"
    if abs(stated - right) <= CALIBRATED and high - low <= NARROW:
        return "so they are calibrated"
    return "and these are too few to tell whether that is calibrated"


def _fit(subject: Subject) -> Found:
    model = subject.model
    members = [each._asdict() for each in getattr(model, "members_", ())]
    calibration = None if members else model.calibration_  # an average is not scaled
    return {
        "method": clip(repr(model), 300),
        "worker_model": getattr(model, "worker_model_", None),
        "sweeps": model.n_iter_,
        "settled": bool(model.converged_),
        "bounds": thinned(model.bounds_, model.n_iter_),
        "dependence": None if calibration is None else calibration.dependence,
        "multiplier": None if calibration is None else calibration.multiplier,
        "n_gold": 0 if model.gold_ is None else len(model.gold_),
        "members": members,
    }


def _questions(subject: Subject) -> Found | None:
    """Choose the questions that should correct the most labels."""
    model = subject.model
    if not model.supports_adaptive_selection or len(model.classes_) < 2:
        return None
    view = _worth_asking(model)
    kinds: list[Found] = []
    for kind, asks in ASKED.items():
        costs: dict[str, Any] = {kind: 1.0}
        if kind == "vote":
            low = (subject.accuracy if view is model else worker_accuracy(view)).low
            voters = np.argsort(-low, kind="stable")[:MOST_VOTERS]
            costs[kind] = {model.workers_[int(w)]: 1.0 for w in voters}
            if not costs[kind]:
                continue
        offers = selection.questions(
            view, MOST_QUESTIONS, kinds=(kind,), costs=costs, random_state=0
        )
        chosen = [_question(subject, offer) for offer in offers if offer.gain > LEAST_GAIN]
        if chosen:
            kinds.append({"kind": kind, "asks": asks, "questions": chosen})
    return {
        "n_tasks": len(view.tasks_),
        "is_sample": view is not model,
        "expected_wrong": (1.0 - np.asarray(model.labels_.probability)).sum(),
        "kinds": kinds,
    }


def _worth_asking(model: Estimator) -> Estimator:
    """Return the model on the tasks among which questions are looked for.

    Of very many, those in most doubt, as many of the others to compare them with, and all that
    links or gold name.
    """
    n_tasks = len(model.tasks_)
    if n_tasks <= MOST_TASKS:
        return model
    probability = np.asarray(model.labels_.probability)
    doubtful = np.argpartition(probability, MOST_TASKS // 2)[: MOST_TASKS // 2]
    others = np.random.default_rng(0).choice(n_tasks, MOST_TASKS // 2, replace=False)
    named = [each.tasks for each in (model.links_, model.gold_) if each is not None]
    tied = [model.tasks_.codes(tasks) for tasks in named]
    return restricted(model, np.unique(np.concatenate([doubtful, others, *tied])))


def _question(subject: Subject, offer: selection.Offer) -> Found:
    tasks = [task for task in (offer.task, offer.other) if task is not None]
    texts = [subject.text(code) for code in subject.model.tasks_.codes(tasks).tolist()]
    return {
        "task": name(offer.task),
        "other": None if offer.other is None else name(offer.other),
        "worker": None if offer.worker is None else name(offer.worker),
        "gain": offer.gain,
        "texts": [None if text is None else clip(text, 120) for text in texts],
    }


# Title and function of each section, in the order of the page.
SECTIONS: dict[str, tuple[str, Callable[[Subject], Found | None]]] = {
    "from_vote": ("Compared with voting", _from_vote),
    "labels": ("Labels and how certain they are", _labels),
    "scores": ("Against known labels", _scores),
    "workers": ("Workers", _workers),
    "scale": ("How judges read the scale", _scale),
    "runs": ("Judges asked again", _runs),
    "judges": ("The panel", _judges),
    "spans": ("Spans to look at", _spans),
    "doubtful_tasks": ("Tasks to look at", _doubtful_tasks),
    "links": ("Links", _links),
    "constraints": ("Constraints", _constraints),
    "features": ("What features say", _features),
    "ranking": ("Who is best", _ranking),
    "shared_errors": ("Errors that workers share", _shared_errors),
    "agreement": ("Agreement", _agreement),
    "questions": ("What to do next", _questions),
    "fit": ("How the fit went", _fit),
}


class Plots:
    """Pictures of a fitted model: each is a `Chart`, with `save(path)` for .svg and .html."""

    @checks(model=having("fit", words="a model"))
    def __init__(self, model: Any) -> None:
        self._model = model

    def __repr__(self) -> str:
        return "Plots: .workers(), .confusion(worker), .calibration(gold), .bound()"

    @checks(most=whole(1))
    def workers(self, most: int = MOST_WORKERS) -> Chart:
        """Draw how often workers are right, with intervals; of many, the worst and the busiest.

        >>> import tiebreak as tb
        >>> crowd = tb.simulate.crowd(100, 5, 3, random_state=0)
        >>> len(tb.VariationalBayes().fit(crowd.responses).plot.workers().rows)
        5
        """
        rows = worker_rows(self._model, most)
        return charts.worker_accuracies(rows, len(self._model.workers_), guessing(self._model))

    def confusion(self, worker: Hashable | None = None) -> Chart:
        """Draw what a worker says of tasks of each class; None: what a response says on average."""
        model = self._model
        if worker is None:
            given = responses_by_class(model).sum(axis=1)
            matrix = np.einsum("w,wkl->kl", given / max(given.sum(), 1), model.confusion_)
            title = "What workers say, on average"
            words = "Each row: of tasks of this class, the share of answers that name each class."
        else:
            code = int(model.workers_.codes([worker])[0])
            if code == MISSING:
                raise OptionError("plot-unknown-worker", worker=worker, n=len(model.workers_))
            matrix = model.confusion_[code]
            title = f"What {clip(worker, charts.LONGEST_ID)} says"
            words = "Each row: of tasks of this class, how likely each answer is."
        names, merged = merge_rare_classes(model, matrix)
        return charts.confusion_matrix((title, words), names, merged)

    def calibration(self, gold: Any = None) -> Chart:
        """Draw stated probabilities against the share of labels that is right.

        `gold` are known labels that the fit was not given. Without them, a model that was given
        gold is fitted once more without it, and compared with it.
        """
        found = labels_to_score(self._model, gold)
        if found is None:
            raise OptionError("plot-no-gold")
        points = calibration_curve(*found)
        return charts.calibration(points, sum(point["n"] for point in points))

    def bound(self) -> Chart:
        """Draw the lower bound after each iteration."""
        model = self._model
        if not model.bounds_:
            raise OptionError("plot-no-bound", model=type(model).__name__)
        points = thinned(model.bounds_, model.n_iter_)
        ending = "converged" if model.converged_ else "did not converge"
        described = (
            f"The fit {ending} after {counted(model.n_iter_, 'iteration')}. The bound never falls; "
            "where it is flat, nothing changes any more."
        )
        return charts.line(
            ("The lower bound after each iteration", described),
            ("iteration", "bound"),
            [(number(iteration), number(value, 4)) for iteration, value in points],
            points,
        )
