"""Fits of tasks in sequences: what is read at the door, and which model of them is taken.

A chain helps where tasks lack responses, and harms where many workers err alike along a span; words
help unless there is so much text that they drift from the crowd. Nobody knows beforehand which it
is. So each candidate is fitted without the answers of some workers to some sequences, and its
labels are compared with these: [eq:sequence-choice].
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.data.sequences import SequenceCodes, Sequences, Spans
from tiebreak.data.tags import NONE, Tags
from tiebreak.errors import GoldError, LinkError, OptionError, note
from tiebreak.inference.calibration import n_responses
from tiebreak.inference.climb import FitState, Problem, Stopping, climb
from tiebreak.inference.door import Inputs, Rows
from tiebreak.inference.known import Known, deal
from tiebreak.inference.stages import FitOptions, Fitted, Scored, Start, calibrate, fit_gold
from tiebreak.inference.tasks import Parameters
from tiebreak.inference.tasks.chains import (
    MarkovChains,
    Potentials,
    SoftLinks,
    contradiction,
    potentials_of,
    with_chains,
)
from tiebreak.kernels import layout
from tiebreak.kernels.layout import ByTask, Codes, Floats, Mask, Offsets
from tiebreak.links.graph import LinkCodes
from tiebreak.options import AUTO, LEARN, ExactLinkOptions, SequenceOptions

MOST_CLASSES = 100  # K² a task; a table of entity types that large is most likely one of ids
N_FOLDS = 5
MARGIN = 0.01  # the richest that is no more than this behind; chosen on PICO, three sets of weak
BEHIND = 0.05  # rules and sleep (docs/sequences.md), as is this: out after the first fold
# Answers to choose by: a million take a minute or so, and by fewer the choice is left to noise (a
# fifth of BC5CDR, three fifths of PICO). experiments/13_sequences shows all three elsewhere.
ENOUGH = 1_200_000
FOLD_STOPPING = Stopping(tol=1e-3, max_iter=60)
# A chain that climbs to its end may make a class of what responses show and nobody means, such as
# short wakes that become a stage of sleep. Its first sweeps do not: labels after so many are
# compared with left-out answers, too.
FIRST_SWEEPS = (1, 2, 4, 8, 16, 32)
LEAST_SHARE = 1e-12
SPREAD = 0.6180339887498949  # multiples of the golden ratio fall evenly into 0 to 1


class Placed(NamedTuple):
    """Sequences by the rows of a fit, and what their classes say."""

    given: Sequences
    codes: SequenceCodes
    tags: Tags
    options: SequenceOptions


class Candidate(NamedTuple):
    """A model of sequences, and how well it foretold answers that it had not seen."""

    model: str
    score: float  # mean over folds: F1 of tokens in spans, or mean log probability of an answer
    error: float  # standard error of that mean
    n_folds: int
    n_sweeps: int = 0  # after which its labels agree with them best, clearly; 0: at its end


def place(
    given: Sequences,
    responses: Responses,
    gold: GoldCodes | None,
    links: LinkCodes | None,
    options: SequenceOptions,
) -> Placed:
    """Translate sequences into the codes of a crowd that has all their tasks, and check them."""
    if responses.n_classes > MOST_CLASSES:
        raise OptionError("classes-for-sequences", n=responses.n_classes, most=MOST_CLASSES)
    codes = given.on(responses.tasks)
    tags = Tags.of(responses.classes, options.tags)
    if kinds := tags.without_beginning():
        raise OptionError("tags-without-beginning", kinds=kinds)
    if options.words is True and codes.word is None:
        raise OptionError("no-words-in-sequences")
    wrong = None if gold is None else contradiction(tags.rules(), codes, gold)
    if wrong is not None and gold is not None:
        label_of = dict(zip(gold.task.tolist(), gold.label.tolist(), strict=True))
        shown = [(responses.tasks[i], responses.classes[label_of[i]]) for i in wrong]
        raise GoldError("gold-out-of-sequence", one=shown[0], other=shown[1])
    if links is not None:
        sequence = np.full(codes.n_rows, -1)
        sequence[codes.row] = given.sequence_of_each()
        left, right = sequence[links.left], sequence[links.right]
        inside = np.flatnonzero((left == right) & (left >= 0))
        if len(inside):
            ends = [responses.tasks[int(end[inside[0]])] for end in (links.left, links.right)]
            raise LinkError("links-within-sequence", n=len(inside), tasks=ends)
    n_alone = int(np.count_nonzero(np.isin(responses.task_of_each(), codes.row, invert=True)))
    if n_alone:
        note("responses-in-no-sequence", n=n_alone)
    if tags.scheme != NONE and (n_odd := _count_impossible(responses, codes, tags)):
        note("impossible-answers", n=n_odd)
    return Placed(given, codes, tags, options)


def _count_impossible(responses: Responses, codes: SequenceCodes, tags: Tags) -> int:
    """Count answers that cannot follow what the worker answered before; they stay answers."""
    follows = tags.rules().follows
    label, none = responses.label_of_each(), responses.n_classes
    given = responses.task_of_each(), responses.worker_of_each(), label, none
    before = codes.previous(*given)
    has_one = np.flatnonzero(before != none)
    return int(np.count_nonzero(~follows[before[has_one], label[has_one]]))


def fit(
    plain: Problem,
    inputs: Inputs,
    rows: Rows,
    start: Start,
    options: FitOptions,
    at: FitState,
    plain_parameters: Parameters,
) -> tuple[Fitted, Scored]:
    """Fit tasks in sequences, and score: `at` is where plain VB ended.

    What workers do and how common classes are is reported as q shows it, without sequences.
    """
    placed = inputs.sequences
    assert placed is not None
    known = Known.of(rows.gold, options.weight)
    links = _soft_links(rows, options)
    kinds = candidates(placed)
    choice: tuple[Candidate, ...] = ()
    if len(kinds) > 1:
        choice = compare(plain, placed, known, kinds)
        kinds = [chosen(choice).model]
    given = placed.codes, placed.tags.rules(), known
    problem = with_chains(plain, *given, kind=kinds[0], links=links)
    state = at
    if kinds[0] != "none":
        stopping = options.stopping
        n_sweeps = next((each.n_sweeps for each in choice if each.model == kinds[0]), 0)
        if n_sweeps:
            stopping = Stopping(0.0, n_sweeps if start.is_cold else 1, accelerate=False)
        state = climb(problem, FitState(known.clamp(start.state.q)), stopping)
        state = state._replace(converged=state.converged or n_sweeps > 0)
    elif links is not None:
        state = climb(problem, FitState(known.clamp(at.q)), options.stopping)
    elif rows.gold is not None:
        _, state, _ = fit_gold(plain, at, known, start, options)
    state = state._replace(memory=potentials_of(problem, state))
    fitted = Fitted(inputs, rows, plain, plain_parameters, problem, known, state)
    scored = calibrate(fitted, options, {})
    tasks, own = problem.tasks, problem.tasks.own
    assert isinstance(tasks, MarkovChains)
    assert own is not None
    label, q = scored.label.copy(), scored.q.copy()
    label[own.at] = tasks.best_path(state.memory)
    potentials, calibration = state.memory, scored.found["calibration_"]
    if not tasks.is_learnt:  # rows are scaled one by one already
        with np.errstate(divide="ignore"):
            potentials = potentials._replace(score=np.log(q[own.at]))
    elif calibration is not None:
        n_each = n_responses(problem.rows, own.at)
        potentials = tasks.scaled(state.parameters, potentials, calibration, n_each)
    of_own = np.empty((len(own.at), plain.n_classes))
    tasks.forward_backward(potentials.score, potentials.step, of_own)
    if tasks.is_learnt:
        q[own.at] = of_own
    found = scored.adding(
        spans_=spans_of(placed, tasks, potentials, of_own, label[own.at]),
        transitions_=tasks.transitions(state.parameters),
        sequence_model_=kinds[0],
        sequence_choice_=choice,
    )
    implied = state._replace(parameters=known.on(plain).implied(state.q), memory=None)
    return fitted._replace(state=implied), replace(found, label=label, q=q)


def _soft_links(rows: Rows, options: FitOptions) -> SoftLinks | None:
    if rows.implied is None:
        return None
    how = options.links or ExactLinkOptions()
    if not isinstance(how, ExactLinkOptions) or how.error == LEARN:
        raise OptionError("links-of-sequences")
    return rows.implied.given, None if how.error is None else float(how.error)


def candidates(placed: Placed) -> list[str]:
    """Return the models to choose from, the simplest first."""
    options = placed.options
    words = "+words" if options.words is True else ""
    named = {"none": ["none"], "chain": ["chain" + words], "back": ["chain+back" + words]}
    if options.model != AUTO:
        return named[options.model]
    richest = ["chain+back+words"] if options.words == AUTO and placed.codes.n_words else []
    return ["none", *named["chain"], *named["back"], *richest]


def chosen(choice: tuple[Candidate, ...]) -> Candidate:
    """Return the richest model that is not clearly behind the best, of those in all folds."""
    n_folds = max(each.n_folds for each in choice)
    stayed = [each for each in choice if each.n_folds == n_folds]
    best = max(each.score for each in stayed)
    return [each for each in stayed if each.score >= best - MARGIN][-1]


def compare(
    plain: Problem, placed: Placed, known: Known, kinds: list[str]
) -> tuple[Candidate, ...]:
    """Score each model by what workers answered to whole sequences that it was fitted without."""
    part, codes, known = _part(plain.rows, placed.codes, known, plain.n_classes)
    plain = plain._replace(rows=part)
    row = part.task_of_each()
    worker, label = np.divmod(part.code, plain.n_classes)
    fold = _folds(worker, *_contents(part, codes, plain.n_classes))
    scores: dict[str, list[float]] = {kind: [] for kind in kinds}
    agreement: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
    for each in range(N_FOLDS):
        held = fold == each
        if not held.any():
            continue
        answers = row[held], worker[held], label[held]
        train = plain._replace(rows=_without(part, held, plain.n_classes))
        for kind in kinds:
            score, agrees = _score(train, codes, placed.tags, known, kind, answers)
            scores[kind].append(score)
            agreement[kind].append(agrees)
        if each == 0:
            best = max(of_kind[0] for of_kind in scores.values())
            kinds = [kind for kind in kinds if scores[kind][0] >= best - BEHIND]
    return tuple(
        Candidate(
            kind,
            float(np.mean(found)),
            float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else np.inf,
            len(found),
            _best_sweeps(agreement[kind]),
        )
        for kind, found in scores.items()
        if found
    )


def _best_sweeps(agreement: list[list[float]]) -> int:
    """Return after how many sweeps labels agree best with left-out answers; 0: at the end.

    `agreement` has by fold those after FIRST_SWEEPS and, last, those at the end.
    """
    mean = np.mean(agreement, axis=0)
    best = int(mean.argmax())
    return FIRST_SWEEPS[best] if mean[best] > mean[-1] + MARGIN else 0


def _score(
    train: Problem, codes: SequenceCodes, tags: Tags, known: Known, kind: str, answers: Any
) -> tuple[float, list[float]]:
    """Fit one model, and compare it with answers (row, worker, label) that it has not seen.

    With tags it is F1 of tokens in spans; without, the mean log probability of an answer by plain
    confusion matrices as this model's probabilities imply them. Return also how far labels agree
    with the answers after its first sweeps and at its end.
    """
    row, worker, label = answers
    problem = with_chains(train, codes, tags.rules(), known, kind=kind)
    at = known.on(train) if kind == "none" else problem

    def agreement(state: FitState) -> float:
        """Return F1 of tokens in spans, or how many answers are the label."""
        assert isinstance(problem.tasks, MarkovChains)
        path = np.empty(train.rows.n_tasks, dtype=np.int32)
        path[codes.row] = problem.tasks.best_path(potentials_of(problem, state))
        if tags.scheme == NONE:
            return float(np.mean(path[row] == label))
        found, said = tags.kind[path[row]], tags.kind[label]
        n_right = np.count_nonzero((found == said) & (said >= 0))
        n_tokens = int(np.count_nonzero(found >= 0)) + int(np.count_nonzero(said >= 0))
        return 2.0 * float(n_right) / max(n_tokens, 1)

    state = FitState(known.clamp(train.votes()))
    agrees: list[float] = []
    n_done = 0
    for n_sweeps in FIRST_SWEEPS if kind != "none" else ():
        state = climb(at, state, Stopping(0.0, n_sweeps - n_done, accelerate=False))
        state = FitState(state.q, state.parameters)
        n_done = n_sweeps
        agrees.append(agreement(state))
    state = climb(at, state, FOLD_STOPPING)
    agrees.append(agreement(state))
    if tags.scheme != NONE:
        return agrees[-1], agrees
    confusion = train.confusion(known.on(train).implied(state.q))
    of_answer = (state.q[row] * confusion[worker, :, label]).sum(axis=1)
    return float(np.log(np.maximum(of_answer, LEAST_SHARE)).mean()), agrees


def _contents(rows: ByTask, codes: SequenceCodes, n_classes: int) -> tuple[Floats, Codes, Floats]:
    """Return numbers by what was said, not by names or order: of each answer, and of each sequence.

    Between them is the sequence of each answer, -1 where it is in none. That of a sequence is the
    sum over its answers, and over its words by how common they are.
    """
    length = np.diff(codes.start)
    salt = np.random.default_rng(0).random((int(length.max()), n_classes))
    place = np.zeros(rows.n_tasks, dtype=np.int64)
    sequence = np.full(rows.n_tasks, -1, dtype=np.int32)
    place[codes.row] = np.arange(len(codes.row)) - np.repeat(codes.start[:-1], length)
    sequence[codes.row] = np.repeat(np.arange(len(length), dtype=np.int32), length)
    task = rows.task_of_each()
    said, where = salt[place[task], rows.code % n_classes], sequence[task]
    found = np.bincount(where + 1, said, len(length) + 1)[1:]
    if codes.word is not None:
        n_each = np.bincount(codes.word, minlength=codes.n_words)[codes.word]
        of_word = salt[place[codes.row], 0] * np.log1p(n_each)
        found = found + np.add.reduceat(of_word, codes.start[:-1])
    return said, where, np.asarray(found)


def _folds(worker: Codes, said: Floats, sequence: Codes, of_sequence: Floats) -> Codes:
    """Deal whole sequences of single workers out; -1 for answers in none."""
    inside = np.flatnonzero(sequence >= 0)
    who, where = worker[inside].astype(np.int64), sequence[inside]
    of_worker = np.bincount(who, said[inside] * of_sequence[where])
    unit, of_each = np.unique(who * len(of_sequence) + where, return_inverse=True)
    who, where = np.divmod(unit, len(of_sequence))
    of_unit = np.bincount(of_each, said[inside])
    key = (of_unit + of_worker[who]) * SPREAD + of_sequence[where]
    fold = np.full(len(worker), -1, dtype=np.int32)
    fold[inside] = deal(np.argsort(key % 1.0), N_FOLDS)[of_each]
    return fold


def _part(
    rows: ByTask, codes: SequenceCodes, known: Known, n_classes: int
) -> tuple[ByTask, SequenceCodes, Known]:
    """Return the rows in sequences; in some of these where there are more answers than enough."""
    length = np.diff(codes.start)
    size = np.add.reduceat(np.diff(rows.start)[codes.row], codes.start[:-1])
    kept = np.ones(len(size), dtype=bool)
    if size.sum() > ENOUGH:
        key = np.argsort((_contents(rows, codes, n_classes)[2] * SPREAD) % 1.0)
        kept[key] = np.cumsum(size[key]) <= ENOUGH
    of_each = np.repeat(kept, length)
    chosen_rows = codes.row[of_each]
    start = np.concatenate([[0], np.cumsum(length[kept])])
    word = None if codes.word is None else codes.word[of_each]
    here = np.arange(len(chosen_rows), dtype=np.int32)
    number = np.full(rows.n_tasks, -1, dtype=np.int32)
    number[chosen_rows] = here
    stays = known.keep(number[known.task] >= 0)
    part = layout.part_of(rows, chosen_rows, n_classes)
    return (
        part,
        SequenceCodes(here, start, len(here), word, codes.n_words),
        stays._replace(task=number[stays.task]),
    )


def _without(rows: ByTask, held: Mask, n_classes: int) -> ByTask:
    """Return the rows without some of their responses."""
    n_left = np.concatenate([[0], np.cumsum(~held)])
    weight = None if rows.weight is None else rows.weight[~held]
    given = n_left[rows.start], rows.code[~held], rows.role, rows.n_codes, n_classes
    return layout.lay_out(*given, weight)


# -- spans ----------------------------------------------------------------------------------------


def spans_of(
    placed: Placed, chains: MarkovChains, found: Potentials, q: Floats, label: Codes
) -> Spans:
    """Return the spans that labels make, and how probable each is: [eq:span-probability].

    The posterior of a sequence is a Markov chain, so that the probability of a span is a product:
    it begins here, goes on to its end, and goes no further.
    """
    sequences, tags = placed.given, placed.tags
    n = len(sequences.tasks)  # rows beyond are linked tasks in no sequence
    start = sequences.start
    q, label = q[:n], label[:n]
    after = chains.backend.after_each(found.score, chains.start, found.step)[:n]
    score = found.score[:n]

    def given(here: Offsets, before: Codes, now: Codes) -> Floats:
        """Return P(y_n = now | y_n−1 = before); `now` −1: 0."""
        log_p = found.step[before, now] + (score + after)[here, now] - after[here - 1, before]
        return np.where(now >= 0, np.exp(np.minimum(log_p, 0.0)), 0.0)

    is_first = placed.codes.is_first
    later = np.flatnonzero(~is_first)
    inside = tags.inside()
    goes_on = np.zeros(n)  # the probability that what stands before goes on here, 0 at a beginning
    goes_on[later] = given(later, label[later - 1], inside[label[later - 1]])
    first, last, kind = tags.spans(label, start)
    begins = q[first, label[first]]
    if tags.scheme == NONE:  # it does not begin here where the task before is of the same class
        same = np.flatnonzero(~is_first[first])
        here = first[same]
        now = label[here]
        begins[same] -= q[here - 1, now] * given(here, now, now)
    with np.errstate(divide="ignore"):
        logs = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(goes_on, 1e-300)))])
    stays = np.exp(logs[last + 1] - logs[first + 1])
    ends = 1.0 - np.append(goes_on, 0.0)[last + 1]
    probability = np.clip(begins * stays * ends, 0.0, 1.0)
    return Spans(sequences, first, last, tags.kinds, kind, probability)
