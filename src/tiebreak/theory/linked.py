"""Linked tasks: how much links add to the lead of the true class (Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import NUMBER, PROBABILITY, checks, whole
from tiebreak.errors import LinkError, OptionError
from tiebreak.kernels.layout import Floats
from tiebreak.options import as_floats, require_number, require_word

SupportVersion = Literal["corrected", "printed", "printed, wrong classes only", "proof's last line"]


@dataclass(frozen=True, slots=True, eq=False, init=False)
class LinkedTasks:
    """The tasks that take part in links, in kinds: how many, and what they are linked to.

    Every link is assumed to be correct, and asked without regard to the responses.

    Parameters
    ----------
    must
        (n_kinds,): must-links of each task of this kind.
    cannot
        (n_kinds, n_classes): its cannot-links, by the true class of the other end.
    truth
        (n_kinds,): its own true class.
    n_tasks
        How many tasks of each kind; a number serves every kind.
    strength
        η > 0, the weight of one link in mean-field inference.

    Examples
    --------
    >>> linked = LinkedTasks(must=[1, 0], cannot=[[0, 0], [0, 2]], truth=[0, 0], strength=2.0)
    >>> linked.total_tasks
    2
    >>> linked.support(label_error=0.05)
    array([0.9, 1.8])
    """

    must: npt.NDArray[np.int64]
    cannot: npt.NDArray[np.int64]
    truth: npt.NDArray[np.int64]
    n_tasks: npt.NDArray[np.int64]
    strength: float

    def __init__(
        self,
        *,
        must: npt.ArrayLike,
        cannot: npt.ArrayLike,
        truth: npt.ArrayLike,
        n_tasks: npt.ArrayLike = 1,
        strength: float = 1.0,
    ) -> None:
        by_class = np.atleast_2d(_counts("cannot", cannot))
        own = np.atleast_1d(_counts("truth", truth))
        musts = _of_each("must", must, own)
        copies = _of_each("n_tasks", n_tasks, own)
        if by_class.shape[0] != len(own) or not len(own):
            raise OptionError(
                f"must, cannot and truth must name the same kinds of linked task; got "
                f"{len(own)} true classes and {by_class.shape[0]} rows of cannot-links."
            )
        if (own >= by_class.shape[1]).any():
            raise OptionError(
                f"truth must be one of the {by_class.shape[1]} classes that cannot has columns "
                f"for, counted from 0; got {own.max()}."
            )
        if by_class[np.arange(len(own)), own].any():
            raise LinkError(
                "A cannot-link joins two tasks of one class; the theorem takes every link to be "
                "correct. Move the count to another class, or leave the link out."
            )
        require_number("link strength", strength, "above 0", above=0.0)
        fields = {"must": musts, "cannot": by_class, "truth": own, "n_tasks": copies}
        for name, value in fields.items():
            frozen = np.array(value)
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)
        object.__setattr__(self, "strength", float(strength))

    @classmethod
    @checks(n_classes=whole(1))
    def from_pairs(
        cls,
        left: npt.ArrayLike,
        right: npt.ArrayLike,
        is_must: npt.ArrayLike,
        truth: npt.ArrayLike,
        *,
        n_classes: int,
        strength: float = 1.0,
    ) -> LinkedTasks:
        """Count the links of every task from pairs of task codes; truth[i] is task i's class.

        >>> LinkedTasks.from_pairs([0, 2], [1, 3], [True, False], [0, 0, 1, 0], n_classes=2)
        LinkedTasks(4 tasks of 3 kinds, strength 1)
        """
        classes = _below("truth", truth, n_classes)
        one = _below("left", left, len(classes))
        other = _below("right", right, len(classes))
        as_floats("is_must", is_must)
        says = np.asarray(is_must)
        if not one.shape == other.shape == says.shape or says.dtype != bool:
            raise OptionError(
                "left, right and is_must must be equally long, and is_must be True or False."
            )
        ends = np.concatenate([one, other])
        others = np.concatenate([other, one])
        musts = np.tile(says, 2)
        wrong = np.flatnonzero(musts != (classes[ends] == classes[others]))
        if len(wrong):
            first = wrong[0]
            raise LinkError(
                f"{len(wrong) // 2:,} links contradict the true classes, first the one of tasks "
                f"{ends[first]} and {others[first]}; the theorem takes every link to be correct."
            )
        linked, row = np.unique(ends, return_inverse=True)
        table = np.zeros((len(linked), 2 + n_classes), dtype=np.int64)
        table[:, 0] = classes[linked]
        np.add.at(table, (row[musts], 1), 1)
        np.add.at(table, (row[~musts], 2 + classes[others[~musts]]), 1)
        kinds, copies = np.unique(table, axis=0, return_counts=True)
        return cls(
            must=kinds[:, 1],
            cannot=kinds[:, 2:],
            truth=kinds[:, 0],
            n_tasks=copies,
            strength=strength,
        )

    def __repr__(self) -> str:
        kinds = f"{len(self.truth)} kind{'s' if len(self.truth) > 1 else ''}"
        return f"LinkedTasks({self.total_tasks:,} tasks of {kinds}, strength {self.strength:g})"

    @property
    def total_tasks(self) -> int:
        """How many tasks take part in a link."""
        return int(self.n_tasks.sum())

    @checks(label_error=NUMBER)
    def support(self, label_error: float, version: SupportVersion = "corrected") -> Floats:
        """W of each kind, (n_kinds,): see `link_support`."""
        require_word("version", version, get_args(SupportVersion))
        return np.array(
            [
                _support(must, cannot, truth, label_error, version)
                for must, cannot, truth in zip(
                    self.must.tolist(), self.cannot, self.truth.tolist(), strict=True
                )
            ]
        )


@checks(n_must=whole(0), truth=whole(0), label_error=PROBABILITY)
def link_support(
    n_must: int,
    n_cannot: npt.ArrayLike,
    truth: int,
    label_error: float,
    version: SupportVersion = "corrected",
) -> float:
    """W: what a task's links add to the lead of its true class, in units of the strength.

    Implements [eq:thm-links], ε the error of the linked neighbours:

        W = n_must (1 − 2ε) + (1 − ε) min_(l≠truth) n_cannot_l − ε n_cannot

    Departs from the paper, which has three other versions (errata 25 and 26): −2ε n_cannot with
    the smallest n_cannot over all classes, the true one with its zero included; the same over
    wrong classes only; and, in the last line of the proof, −(1 + ε) n_cannot.

    Parameters
    ----------
    n_must
        Must-links of the task.
    n_cannot
        (n_classes,): its cannot-links, by the true class of the other end.
    truth
        Its true class.
    label_error
        ε, how far the neighbours' class probabilities are from the truth.
    version
        "corrected", or one of the paper's three.

    Examples
    --------
    >>> round(link_support(2, [0, 3, 1], truth=0, label_error=0.1), 6)
    2.1
    >>> round(link_support(2, [0, 3, 1], truth=0, label_error=0.1, version="printed"), 6)
    0.8
    """
    require_word("version", version, get_args(SupportVersion))
    by_class = np.atleast_1d(_counts("n_cannot", n_cannot))
    if len(by_class) < 2 or not truth < len(by_class):
        raise OptionError(f"truth must be one of two classes or more; got {truth} of {by_class}.")
    return _support(n_must, by_class, truth, label_error, version)


def _support(
    n_must: int,
    n_cannot: npt.NDArray[np.int64],
    truth: int,
    label_error: float,
    version: SupportVersion,
) -> float:
    by_class = n_cannot.astype(np.float64)
    total = float(by_class.sum())
    least_wrong = float(np.delete(by_class, truth).min())
    from_must = n_must * (1 - 2 * label_error)
    if version == "corrected":
        return from_must + (1 - label_error) * least_wrong - label_error * total
    if version == "printed":
        return from_must - 2 * label_error * total + float(by_class.min())
    if version == "printed, wrong classes only":
        return from_must - 2 * label_error * total + least_wrong
    return from_must - (1 + label_error) * total + least_wrong  # the proof's last line


def _of_each(name: str, value: npt.ArrayLike, own: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return counts for every kind of task; one number serves all."""
    given = _counts(name, value)
    if given.shape not in ((), (1,), own.shape):
        raise OptionError(f"{name} must be one number for each of {len(own)}; got {value!r}.")
    return np.broadcast_to(given, own.shape)


def _below(name: str, value: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    """Return a row of codes below n."""
    given = _counts(name, value)
    if given.ndim != 1 or not len(given) or int(given.max()) >= n:
        raise OptionError(f"{name} must be whole numbers from 0 to {n - 1}; got {value!r}.")
    return given


def _counts(name: str, value: npt.ArrayLike) -> npt.NDArray[np.int64]:
    as_floats(name, value)  # refuses rows of different lengths
    given = np.asarray(value)
    if given.dtype.kind not in "iu" or (given < 0).any():
        raise OptionError(f"{name} must be whole numbers, 0 or more; got {value!r}.")
    return given.astype(np.int64)
