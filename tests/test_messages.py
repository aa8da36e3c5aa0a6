"""Errors and notes have codes: each code that is used has a sentence, with the fields it needs."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import tiebreak
from tiebreak import errors

SOURCE = Path(tiebreak.__file__).parent
TABLES = sorted(path for path in SOURCE.rglob("*.py") if "\nregister(" in path.read_text("utf-8"))


def load_tables() -> None:
    for path in TABLES:
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        importlib.import_module(".".join(parts).removesuffix(".__init__"))


def uses() -> Iterator[tuple[str, int, str, set[str] | None]]:
    """Yield file, line, code and names of fields (None: not known) of each error or note."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else None
            called = node.func.id if isinstance(node.func, ast.Name) else called
            if called is None or not (called.endswith("Error") or called == "note"):
                continue
            first = node.args[0]
            if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
                continue
            if " " in first.value or not first.value:
                continue  # a sentence, where a table has yet to come
            names = {keyword.arg for keyword in node.keywords}
            fields = None if None in names else {str(name) for name in names}
            yield str(path.relative_to(SOURCE)), node.lineno, first.value, fields


def test_each_code_has_a_sentence_with_the_fields_it_needs() -> None:
    load_tables()
    for file, line, code, fields in uses():
        if "-" not in code and code not in errors.MESSAGES:
            continue  # a word, as Python's own errors take
        assert code in errors.MESSAGES, f"{file}:{line}: {code} is in no table of messages"
        message = errors.MESSAGES[code]
        if fields is None:
            continue
        if callable(message):
            inspect.signature(message).bind(**dict.fromkeys(fields))
        else:
            needed = {name.split(".")[0].split("[")[0] for _, name, _, _ in
                      string.Formatter().parse(message) if name}  # fmt: skip
            assert needed <= fields, f"{file}:{line}: {code} needs {sorted(needed - fields)}"


def test_each_sentence_is_used() -> None:
    load_tables()
    used = {code for *_, code, _ in uses()}
    texts = [path.read_text() for path in SOURCE.rglob("*.py") if path not in TABLES]
    for code in errors.MESSAGES.keys() - used:
        assert any(f'"{code}"' in text for text in texts), f"nobody says {code}"


def test_an_error_tells_its_code_and_fields_also_after_pickling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(errors.MESSAGES, "too-cold", "{place} has {degrees} degrees.")
    error = errors.InputError("too-cold", place="Oslo", degrees=-3)
    again = pickle.loads(pickle.dumps(error))
    for each in (error, again):
        assert str(each) == "Oslo has -3 degrees."
        assert each.code == "too-cold"
        assert each.fields == {"place": "Oslo", "degrees": -3}


def test_a_note_has_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(errors.MESSAGES, "too-cold", "{place} has {degrees} degrees.")
    with pytest.warns(errors.InputNote) as caught:
        errors.note("too-cold", place="Oslo", degrees=-3)
    message = caught[0].message
    assert isinstance(message, errors.InputNote)
    assert (message.code, message.fields["degrees"]) == ("too-cold", -3)
