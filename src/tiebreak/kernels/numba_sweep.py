"""Sweeps over tasks, compiled: the names and meaning of `numpy_sweep`, fused into one pass.

The plain version makes all scores, then all probabilities, then all counts, each a pass over
memory. Here tasks go in blocks that stay in the nearest cache:

    score the block  →  softmax  →  write q and count  →  next block

A response is one row of the table to add, and one row of counts to add to. A loop over two to seven
classes takes longer than the additions in it, so these steps are written out for a number of
classes before they are compiled. For two classes `_source` writes

    for t in range(m):
        i = np.uint64(listed[t])
        s0 = log_prior[k]
        s1 = log_prior[k + np.uint64(1)]
        for r in range(np.uint64(start[i]), np.uint64(start[i + ONE])):
            c = np.uint64(np.uint32(code[r]))
            w = weight_of(weight, r)
            s0 += w * log_table[c, k]
            s1 += w * log_table[c, k + np.uint64(1)]
        row_of[t, k] = s0
        row_of[t, k + np.uint64(1)] = s1

More than 32 states are pieces of four, and what is left. Rows of up to 32 are held whole in vector
registers (`whole_rows`), where numba has them. Scores of a block lie as (class, task), so that each
step of the softmax is one loop over the tasks, which becomes vector instructions for any number of
classes; `row_of` is the same array, seen by task. Positions are unsigned: signed ones are checked
for counting from the end of an array.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, cast

import numpy as np

from tiebreak.kernels.arrays import for_each
from tiebreak.kernels.compile import fused_kernel, kernel, summing_kernel
from tiebreak.kernels.layout import AWAY, FREE, KNOWN, ByTask, Floats, Mask, Offsets, Roles, Swept

__all__ = ["scaled_probabilities", "score_tasks", "sweep_tasks", "tally"]

ONE_PIECE = 7  # classes whose steps are written out at once
WHOLE_ROWS = range(2, 33)  # states
TASKS_PER_BLOCK = 128  # the product of as many norms does not overflow
NUMBERS_PER_BLOCK = 4096  # with many classes: a block stays in the nearest cache
NO_FLOATS = np.empty(0)
SWEEP_ALL, INFER, SCORE = range(3)  # a pass: infer and count; infer; write scores in place of q
ONE = np.uint64(1)
ROLES = (np.int8(FREE), np.int8(KNOWN))

# e^r for |r| ≤ ln 2 / 2 by a Chebyshev series, off by less than 1e-17.
C2 = 0.5000000000000019
C3 = 0.16666666666666702
C4 = 0.04166666666648736
C5 = 0.00833333333330943
C6 = 0.0013888888952508691
C7 = 0.00019841269909424066
C8 = 2.4801485275248647e-05
C9 = 2.7557224767288023e-06
C10 = 2.7632716110097873e-07
C11 = 2.5114933069618484e-08
LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it leaves the nearest integer in the low bits
EXP_IS_ZERO = -708.0  # below, e^x is no normal number: it counts as 0


# -- the functions of a backend --------------------------------------------------------------------


def sweep_tasks(
    q: Floats,
    tasks: ByTask,
    log_prior: Floats,
    log_table: Floats,
    n_threads: int = 1,
) -> Swept:
    return _pass(SWEEP_ALL, q, tasks, (log_prior, log_table), n_threads)


def tally(q: Floats, tasks: ByTask, chosen: Mask, n_threads: int = 1) -> tuple[Floats, Floats]:
    tasks = tasks._replace(role=np.where(chosen, np.int8(KNOWN), np.int8(AWAY)))
    q = np.ascontiguousarray(q)
    no_logs = np.empty(q.shape[1]), np.empty((0, q.shape[1]))
    counted = _pass(SWEEP_ALL, q, tasks, no_logs, n_threads)
    return counted.counts, counted.totals


def score_tasks(tasks: ByTask, log_prior: Floats, log_table: Floats, n_threads: int = 1) -> Floats:
    score = np.empty((tasks.n_tasks, len(log_prior)))
    _pass(SCORE, score, _all_free(tasks), (log_prior, log_table), n_threads)
    return score


def scaled_probabilities(
    tasks: ByTask, log_prior: Floats, log_table: Floats, scale: Floats, n_threads: int = 1
) -> Floats:
    q = np.full((tasks.n_tasks, len(log_prior)), np.nan)  # stays where no class is possible
    scale = np.ascontiguousarray(scale)
    _pass(INFER, q, _all_free(tasks), (log_prior, log_table), n_threads, scale)
    return q


def _all_free(tasks: ByTask) -> ByTask:
    return tasks._replace(role=np.full(tasks.n_tasks, FREE, dtype=np.int8))


def _pass(
    goal: int,
    q: Floats,
    tasks: ByTask,
    logs: tuple[Floats, Floats],
    n_threads: int,
    scale: Floats = NO_FLOATS,
) -> Swept:
    """Let each thread pass over chunks of tasks; add up what the chunks found in their order."""
    counts = goal == SWEEP_ALL
    role = tasks.role
    logs = logs[0], np.ascontiguousarray(logs[1])
    n_classes = q.shape[1]
    n_chunks = len(tasks.edges) - 1
    by_code = tasks.by_code if counts else None
    n_counted = tasks.n_codes if counts and by_code is None else 0
    by_chunk = _zeros(n_chunks, n_counted, n_classes)
    totals = np.zeros((n_chunks, n_classes))
    figures = np.zeros((n_chunks, 2))  # change and entropy
    sweep = sweep_for(n_classes)
    if n_classes in WHOLE_ROWS:
        in_lines = _zeros(1, *logs[1].shape)[0]
        in_lines[:] = logs[1]
        logs = logs[0], in_lines
    columns = tasks.start, tasks.code, tasks.weight, tasks.rounder

    def work(c: int) -> None:
        low, high = tasks.edges[c : c + 2]
        sums = by_chunk[c], totals[c], figures[c]
        sweep(goal == SCORE, low, high, q, role, scale, *columns, *logs, *sums)

    for_each(work, n_chunks, n_threads)
    if by_code is None:
        counted = by_chunk[0] if n_chunks == 1 else by_chunk.sum(axis=0)
    else:
        counted = np.zeros((tasks.n_codes, n_classes))
        is_counted = role != AWAY
        given = by_code.start, by_code.task, by_code.weight, tasks.rounder, is_counted, q, counted
        count = count_by_code_for(n_classes)
        edges = by_code.edges
        for_each(lambda s: count(edges[s], edges[s + 1], *given), len(edges) - 1, n_threads)
    change = float(figures[:, 0].max(initial=0.0))
    return Swept(counted, totals.sum(axis=0), change, float(figures[:, 1].sum()))


def _zeros(n_chunks: int, n_codes: int, n_classes: int) -> Floats:
    """Return zeros that start where a line of the cache does, so that fewer rows cross one."""
    size = n_chunks * n_codes * n_classes
    room = np.zeros(size + 8)
    first = -room.ctypes.data % 64 // 8
    return room[first : first + size].reshape(n_chunks, n_codes, n_classes)


# -- what is the same for any number of classes ----------------------------------------------------


@fused_kernel
def exp(x: float) -> float:
    """Return e^x for −708 < x ≤ 700, else 0: 2^n · e^r with x = n ln 2 + r, without a branch.

    The terms are joined in pairs, so that few wait for each other. Off by a bit or two.
    """
    rounded = x * LOG2_E + ROUND
    n = rounded - ROUND
    r = x - n * LN2_HIGH - n * LN2_LOW
    square = r * r
    low = square * (r * C3 + C2) + (r + 1.0)
    middle = square * (r * C7 + C6) + (r * C5 + C4)
    high = square * (r * C11 + C10) + (r * C9 + C8)
    fourth = square * square
    p = fourth * (fourth * high + middle) + low
    power = np.float64(rounded).view(np.uint64) << np.uint64(52)
    scaled = np.uint64(np.float64(p).view(np.uint64) + power).view(np.float64)
    return float(scaled if x > EXP_IS_ZERO else 0.0)


@kernel
def weight_of(weight: Floats | None, r: Any) -> float:
    """Return the weight of response r; without weights it is 1 and leaves no trace in the code."""
    if weight is None:
        return 1.0
    return float(weight[r])


@kernel
def counted(value: float, rounder: float | None) -> float:
    """Return a number as it is counted; where it is not rounded that leaves no trace."""
    if rounder is None:
        return value
    return (value + rounder) - rounder


@kernel
def weighed(value: float, weight: Floats | None, r: Any, rounder: float | None) -> float:
    """Return a counted number times the weight of response r, rounded once more."""
    if weight is None:
        return value
    return counted(value * weight[r], rounder)


@kernel
def list_role(wanted: np.int8, role: Roles, first: int, last: int, listed: Offsets) -> int:
    """List the tasks from first to last that have the role; return how many they are."""
    n = 0
    for i in range(first, last):
        listed[n] = i
        n += role[i] == wanted
    return n


@summing_kernel
def softmax_block(score: Floats, extra: Floats, m: int) -> float:
    """Turn the scores of m tasks into probabilities; return their entropy.

    `extra` is workspace, top of each task set. With norm = Σ exp(score − top) the entropy of a
    task is log norm − ⟨q, score − top⟩. The logarithm is taken once, of the product of all norms.
    """
    top = extra[0]
    norm = extra[1]
    mean = extra[2]
    for t in range(m):
        norm[t] = 0.0
        mean[t] = 0.0
    for k in range(score.shape[0]):
        row = score[k]
        for t in range(m):
            gap = row[t] - top[t]
            gap = gap if gap > EXP_IS_ZERO else EXP_IS_ZERO  # 0 · −∞ must be 0
            e = exp(gap)
            row[t] = e
            norm[t] += e
            mean[t] += e * gap
    product = 1.0
    means = 0.0
    for t in range(m):
        product *= norm[t]
        norm[t] = 1.0 / norm[t]
        means += mean[t] * norm[t]
    for k in range(score.shape[0]):
        row = score[k]
        for t in range(m):
            row[t] *= norm[t]
    return float(np.log(product) - means)


@summing_kernel
def softmax_of_two(one: Floats, two: Floats, m: int) -> float:
    """Do what `softmax_block` does for two classes: one exponential and one division a task."""
    product = 1.0
    means = 0.0
    for t in range(m):
        is_two = two[t] > one[t]
        gap = one[t] - two[t] if is_two else two[t] - one[t]
        gap = EXP_IS_ZERO if gap < EXP_IS_ZERO else gap
        e = exp(gap) if gap == gap else gap  # neither class is possible: nothing can be said
        larger = 1.0 / (1.0 + e)
        smaller = e * larger
        one[t] = smaller if is_two else larger
        two[t] = larger if is_two else smaller
        product *= 1.0 + e
        means += gap * smaller
    return float(np.log(product) - means)


@summing_kernel
def largest(score: Floats, top: Floats, m: int) -> int:
    """Set top to the largest score of each task; return how many have none above −∞."""
    for t in range(m):
        top[t] = score[0, t]
    for k in range(1, score.shape[0]):
        row = score[k]
        for t in range(m):
            top[t] = row[t] if row[t] > top[t] else top[t]
    n_without = 0
    for t in range(m):
        n_without += top[t] == -np.inf
    return n_without


@kernel
def keep_former(score: Floats, top: Floats, listed: Offsets, m: int, q: Floats) -> None:
    """Where underflow leaves no class, let the former q stand: its logs become the scores."""
    for t in range(m):
        if top[t] == -np.inf:
            for k in range(score.shape[0]):
                score[k, t] = np.log(q[listed[t], k])
                top[t] = max(top[t], score[k, t])


@kernel
def infer_columns(
    score: Floats, extra: Floats, listed: Offsets, m: int, q: Floats, scale: Floats
) -> float:
    """Turn scores of free tasks, times their scale if any, into probabilities; return entropy."""
    if len(scale):
        for k in range(score.shape[0]):
            for t in range(m):
                score[k, t] *= scale[listed[t]]
    if largest(score, extra[0], m) > 0:
        keep_former(score, extra[0], listed, m, q)
    if score.shape[0] == 2:
        return softmax_of_two(score[0], score[1], m)
    return softmax_block(score, extra, m)


@kernel
def put_columns(score: Floats, listed: Offsets, m: int, q: Floats) -> None:
    for t in range(m):
        for k in range(score.shape[0]):
            q[listed[t], k] = score[k, t]


# -- what is written out for a number of classes ---------------------------------------------------

PIECE = """
def score_{n}(k, listed, m, start, code, weight, log_prior, log_table, q, row_of):
    for t in range(m):
        i = np.uint64(listed[t])
        [s{j} = log_prior[{at}]]
        r = np.uint64(start[i])
        stop = np.uint64(start[i + ONE])
        while r < stop:
            c = np.uint64(np.uint32(code[r]))
            w = weight_of(weight, r)
            [s{j} += w * log_table[c, {at}]]
            r += ONE
        [row_of[t, {at}] = s{j}]

def count_{n}(k, listed, m, start, code, weight, rounder, is_new, row_of, q, counts, totals, moved):
    [a{j} = 0.0]
    [far{j} = moved[{at}]]
    counting = len(counts) > 0
    for t in range(m):
        i = np.uint64(listed[t])
        [p{j} = row_of[t, {at}] if is_new else q[i, {at}]]
        [gap{j} = abs(p{j} - q[i, {at}])]
        [far{j} = gap{j} if gap{j} > far{j} else far{j}]
        [q[i, {at}] = p{j}]
        [p{j} = counted(p{j}, rounder)]
        [a{j} += p{j}]
        r = np.uint64(start[i])
        stop = np.uint64(start[i + ONE]) if counting else r
        while r < stop:
            c = np.uint64(np.uint32(code[r]))
            [counts[c, {at}] += weighed(p{j}, weight, r, rounder)]
            r += ONE
    [totals[{at}] += a{j}]
    [moved[{at}] = far{j}]

def count_codes_{n}(k, low, high, start, task, weight, rounder, chosen, q, counts):
    for c in range(low, high):
        [a{j} = 0.0]
        for r in range(np.uint64(start[c]), np.uint64(start[c + 1])):
            i = np.uint64(task[r])
            if chosen[i]:
                [a{j} += weighed(counted(q[i, {at}], rounder), weight, r, rounder)]
        [counts[c, {at}] = a{j}]
"""

SWEEP = """
def sweep_{name}(
    scores_only, low, high, q, role, scale,
    start, code, weight, rounder, log_prior, log_table, counts, totals, figures,
):
    n = q.shape[1]
    size = max(8, min(TASKS_PER_BLOCK, NUMBERS_PER_BLOCK // n))
    score = np.empty((n, size))
    extra = np.empty((3, size))
    listed = np.empty(size, np.int64)
    total = np.zeros(n)  # local: side by side in memory, threads would fight for a cache line
    moved = np.zeros(n)
    entropy = 0.0
    for first in range(low, high, size):
        n_left = min(size, high - first)
        for wanted in ROLES:
            m = list_role(wanted, role, first, min(first + size, high), listed) if n_left else 0
            n_left -= m
            if m == 0:
                continue
            if wanted == FREE:
                <score_{n}({k}, {of_tasks}, log_prior, log_table, q, score.T)>
                if scores_only:
                    put_columns(score, listed, m, q)
                    continue
                entropy += infer_columns(score, extra, listed, m, q, scale)
            <count_{n}({k}, {of_tasks}, rounder, wanted == FREE, score.T, q, counts, total, moved)>
    for k in range(n):
        totals[k] = total[k]
        figures[0] = max(figures[0], moved[k])
    figures[1] = entropy
"""
COUNT_CODES = """
def by_code_{name}(low, high, start, task, weight, rounder, chosen, q, counts):
    n = q.shape[1]
    <count_codes_{n}({k}, low, high, start, task, weight, rounder, chosen, q, counts)>
"""


@cache
def sweep_for(n_classes: int) -> Callable[..., None]:
    """Return what sweeps over tasks with so many classes, or states."""
    whole = whole_rows() if n_classes in WHOLE_ROWS else None
    if whole is None:
        return _compiled("sweep", SWEEP, _pieces(n_classes), globals())
    given = {"LIKE": (0,) * n_classes} | {each: getattr(whole, each) for each in whole.__all__}
    return _compiled("sweep", SWEEP, ("whole", n_classes), globals() | given)


@cache
def count_by_code_for(n_classes: int) -> Callable[..., None]:
    """Return what counts responses that are sorted by code."""
    return _compiled("by_code", COUNT_CODES, _pieces(n_classes), globals())


def _pieces(n_classes: int) -> tuple[int, int]:
    """Return how many classes a piece has, and how many are left after pieces of so many."""
    n = n_classes if n_classes <= ONE_PIECE else 4
    return n, n_classes % n


def whole_rows() -> ModuleType | None:
    """Return the vector code; None: this numba is not the one that it was written for."""
    try:
        from tiebreak.kernels import whole_rows as module
    except (ImportError, AttributeError):
        return None
    return module


def _compiled(
    kind: str, template: str, pieces: tuple[Any, int], names: dict[str, Any]
) -> Callable[..., None]:
    """Write a function out, and all that it calls, and compile it.

    It says that it comes from this file, so that numba keeps it in the cache beside it.
    """
    n, rest = pieces
    name = f"{n}_{rest}" if rest else str(n)
    source = "" if n == "whole" else "".join(_written(PIECE, each) for each in {n, rest} - {0})
    source += _written(template, n, rest).replace("{name}", name)
    source = source.replace("{of_tasks}", "listed, m, start, code, weight")
    namespace = dict(names)
    exec(compile(source, __file__, "exec"), namespace)
    for each, function in list(namespace.items()):
        if each not in names:
            namespace[each] = fused_kernel(function)
    return cast("Callable[..., None]", namespace[f"{kind}_{name}"])


def _written(template: str, n: int | str, rest: int = 0) -> str:
    """Write out what stands in brackets for each of n classes, what stands in <> for each piece."""
    lines = []
    for line in template.splitlines():
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        if text.startswith("["):
            places = [f"k + np.uint64({j})" if j else "k" for j in range(cast(int, n))]
            each = (text[1:-1].replace("{at}", at) for at in places)
            lines += [indent + one.replace("{j}", str(j)) for j, one in enumerate(each)]
        elif not text.startswith("<"):
            lines.append(line)
        elif n == "whole":
            lines.append(indent + text[1:-1].replace("{n}", "whole").replace("{k}", "LIKE"))
        else:
            call = text[1:-1].replace("{n}", str(n)).replace("{k}", "np.uint64(k)")
            lines.append(f"{indent}for k in range(0, n - {rest}, {n}): {call}")
            if rest:
                call = text[1:-1].replace("{n}", str(rest))
                lines.append(indent + call.replace("{k}", f"np.uint64(n - {rest})"))
    return "\n".join(lines).replace("_{n}(", f"_{n}(") + "\n"
