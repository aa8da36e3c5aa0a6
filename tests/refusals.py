"""What was refused or noted, told by its code and not by its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import tiebreak as tb


@contextmanager
def refused(
    kind: type[tb.TiebreakError], what: str
) -> Iterator[pytest.ExceptionInfo[tb.TiebreakError]]:
    """Expect an error of this code; `what` is the code, or the code and its field `name`."""
    with pytest.raises(kind) as error:
        yield error
    _check(error.value, what)


@contextmanager
def noted(what: str) -> Iterator[None]:
    """Expect a note of this code."""
    with pytest.warns(tb.InputNote) as told:
        yield
    codes = [getattr(each.message, "code", None) for each in told]
    assert what in codes, f"{what!r} is not among {codes}"


def _check(error: tb.TiebreakError, what: str) -> None:
    code, _, name = what.partition(" ")
    assert error.code == code, str(error)
    assert not name or error.fields["name"] == name, str(error)
