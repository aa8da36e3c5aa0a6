"""What is said, by code and fields: sentences may change, what they say may not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tiebreak.errors import InputError, InputNote, TiebreakError


def has(told: Any, code: str, fields: dict[str, object]) -> bool:
    """Return whether an error or note has this code and these fields; others may be there."""
    return told.code == code and all(told.fields.get(k) == v for k, v in fields.items())


@contextmanager
def refused(
    code: str, kind: type[TiebreakError] = InputError, /, *, place: str = "", **fields: object
) -> Iterator[pytest.ExceptionInfo[TiebreakError]]:
    """Expect an error of this code, with these fields among others; some field names a place."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert has(error, code, fields), f"{error.code} {error.fields}: {error}"
    assert place in " ".join(map(str, error.fields.values())), error.fields


@contextmanager
def noted(code: str, /, **fields: object) -> Iterator[None]:
    """Expect a note of this code, with these fields among others."""
    with pytest.warns(InputNote) as caught:
        yield
    notes = [each.message for each in caught if isinstance(each.message, InputNote)]
    assert any(has(each, code, fields) for each in notes), [(n.code, n.fields) for n in notes]
