"""What several commands take: lists in one argument, files to write."""

from __future__ import annotations

import csv
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

from tiebreak.errors import FileError, OptionError

STANDARD = "-"  # standard input or output
TRUST = 50.0  # right answers to tasks of each class that a trusted worker starts with


def split_list(text: str) -> list[str]:
    """Split at commas; quotes protect a comma inside a name.

    >>> split_list('a,"b, c"')
    ['a', 'b, c']
    """
    return next(csv.reader([text], skipinitialspace=True), [])


def split_pairs(option: str, text: str) -> dict[str, str]:
    """Read name=value,name=value.

    >>> split_pairs("--columns", "task=item,label=answer")
    {'task': 'item', 'label': 'answer'}
    """
    pairs = [part.partition("=") for part in split_list(text)]
    if not pairs or not all(name and equals and value for name, equals, value in pairs):
        raise typer.BadParameter(f"{option} takes name=value,name=value; got {text!r}.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def trusted_workers(text: str) -> dict[str, float]:
    """Read NAME or NAME=COUNT, with commas between: right answers that each starts with.

    >>> trusted_workers("ann,bob=20")
    {'ann': 50.0, 'bob': 20.0}
    """
    trust = {}
    for part in split_list(text):
        name, equals, count = part.rpartition("=") if "=" in part else (part, "", "")
        try:
            trust[name] = float(count) if equals else TRUST
        except ValueError:
            raise typer.BadParameter(
                f"--trust takes NAME or NAME=COUNT, such as ann=50; got {part!r}."
            ) from None
    return trust


def workers_named(text: str) -> list[str] | bool:
    """Read workers by name, or `all`.

    >>> workers_named("rule1, rule2"), workers_named("all")
    (['rule1', 'rule2'], True)
    """
    return True if text.strip() == "all" else split_list(text)


def with_options(
    command: Callable[..., None],
    argument: str,
    made: Sequence[inspect.Parameter],
    gather: Callable[..., Any],
) -> Callable[..., None]:
    """Give a command several options in the place of one argument, which gets what they say.

    `gather` is called with the options by name.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters = [
        each
        for known in signature.parameters.values()
        for each in (made if known.name == argument else [known])
    ]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        own = {each.name: given.pop(each.name) for each in made}
        command(**given, **{argument: gather(**own)})

    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped


def option_parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """Make a parameter for `with_options`."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def number_or(words: tuple[str, ...], option: str, text: str | None) -> float | str | None:
    """Read a number, or one of the words that may stand for it."""
    try:
        return text if text is None or text in words else float(text)
    except ValueError:
        allowed = " or ".join(("a number", *words))
        raise typer.BadParameter(f"{option} takes {allowed}; got {text!r}.") from None


def check_files(
    reads: Iterable[str | None], writes: Iterable[str | None], *, are_tables: bool = True
) -> None:
    """Refuse, before any work is done, files that cannot be read or written together.

    Standard input feeds one file only; a file to write needs its folder and must not be one that
    is read, nor be written twice. A table is not written under the name of another format.
    """
    from tiebreak.files import refuse_unwritable_name

    read = [f for f in reads if f]
    write = [f for f in writes if f]
    if read.count(STANDARD) > 1:
        raise OptionError("Only one file can be '-', the standard input. Name the others.")
    if write.count(STANDARD) > 1:
        raise OptionError("Only one file can be '-', the standard output. Name the others.")
    taken = {_real(name): name for name in read if name != STANDARD}
    for name in write:
        if name == STANDARD:
            continue
        path = _real(name)
        if path in taken:
            raise OptionError(f"{name} is read or written by this command already. Name another.")
        if are_tables:
            refuse_unwritable_name(name)
        if path.is_dir():
            raise FileError(f"{name} is a folder. Name a file in it, such as {name}/labels.csv.")
        if not path.parent.is_dir():
            raise FileError(f"{name} cannot be written: there is no folder {path.parent.name!r}.")
        taken[path] = name


def refuse_model_name(name: str | None) -> None:
    """Refuse, before any work is done, a place where no model file can be written."""
    if name is None:
        return
    from tiebreak.inference.kept import model_file

    model_file.refuse_unwritable(name)


def _real(name: str) -> Path:
    """Return where a path leads; a loop of symbolic links leads nowhere, and is refused."""
    path = Path(os.path.realpath(name))
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise FileError(f"{name} cannot be used: {error.strerror}.") from None
    return path


def make_folder(name: str) -> Path:
    """Return the folder of that name, made if it is not there."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"The folder {name} cannot be made: {error.strerror}.") from None
    return folder
