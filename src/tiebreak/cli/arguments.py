"""What several commands take: options, lists in one argument, files to write."""

from __future__ import annotations

import csv
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from tiebreak.errors import FileError, OptionError

STANDARD = "-"  # standard input or output

ModelFile = Annotated[str, typer.Argument(help="A model file.", metavar="MODEL.tbm")]
Keep = Annotated[
    Literal["responses", "counts"],
    typer.Option(help="What a model file keeps: all responses, or only what they add up to."),
]
Seed = Annotated[int | None, typer.Option(help="For what is random.", metavar="N", min=0)]
Force = Annotated[bool, typer.Option("--force", help="Do it all the same.")]
Wait = Annotated[
    float,
    typer.Option(
        help="Where somebody else writes the model: wait so long.", metavar="SECONDS", min=0.0
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no notes.")]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster", help="Fit shards on Dask: tcp://HOST:8786, or local:N.", metavar="ADDRESS"
    ),
]


def one_or_all(names: list[str]) -> str | list[str]:
    """Return the one name that was given, or all: `tiebreak fuse p1.csv` reads one file.

    >>> one_or_all(["p1.csv"]), one_or_all(["p1.csv", "p2.csv"])
    ('p1.csv', ['p1.csv', 'p2.csv'])
    """
    return names[0] if len(names) == 1 else names


def split_list(text: str) -> list[str]:
    """Split at commas; quotes protect a comma inside a name.

    >>> split_list('a , "b, c"')
    ['a', 'b, c']
    """
    return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]


def split_pairs(option: str, text: str) -> dict[str, str]:
    """Read name=value,name=value.

    >>> split_pairs("--columns", "task=item,label=answer")
    {'task': 'item', 'label': 'answer'}
    """
    pairs = [part.partition("=") for part in split_list(text)]
    if not pairs or not all(name and equals and value for name, equals, value in pairs):
        raise typer.BadParameter(f"{option} takes name=value,name=value; got {text!r}.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def named_columns(columns: str | None) -> dict[str, str]:
    """Read --columns; nothing is named where it is not given."""
    return {} if columns is None else split_pairs("--columns", columns)


def number_or(words: tuple[str, ...], option: str, text: str | None) -> float | str | None:
    """Read a number, or one of the words that may stand for it."""
    try:
        return text if text is None or text in words else float(text)
    except ValueError:
        allowed = " or ".join(("a number", *words))
        raise typer.BadParameter(f"{option} takes {allowed}; got {text!r}.") from None


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


def takes_safe_csv(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that writes tables the option --safe-csv."""
    signature = inspect.signature(command, eval_str=True)
    words = "In CSV, put ' before text that a spreadsheet would run (= + - @)."
    made = new_option("safe_csv", bool, words, "--safe-csv", default=False)

    @functools.wraps(command)
    def wrapped(*, safe_csv: bool, **given: Any) -> None:
        if not safe_csv:
            command(**given)
            return
        if given.get("cluster") or given.get("out_of_core"):
            raise OptionError("--safe-csv does not go with --cluster and --out-of-core.")
        from tiebreak.tables.write import safe_cells

        with safe_cells():
            command(**given)

    parameters = [*signature.parameters.values(), made]
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped


def option_parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """Make a parameter for `with_options`."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def new_option(
    name: str, kind: Any, help: str, *flags: str, default: Any = None, **more: Any
) -> inspect.Parameter:
    """Make a parameter for `with_options` of an option that only one group has."""
    return option_parameter(name, Annotated[kind, typer.Option(*flags, help=help, **more)], default)


class Partitions(NamedTuple):
    """What was chosen about partitions."""

    cluster: str | None
    out_of_core: bool
    resume: bool = False

    @property
    def are_given(self) -> bool:
        """Whether the command works on partitions at all."""
        if self.cluster is not None and self.out_of_core:
            raise typer.BadParameter("--cluster and --out-of-core exclude each other.")
        chosen = self.cluster is not None or self.out_of_core
        if not chosen and self.resume:
            raise typer.BadParameter("--resume needs --cluster or --out-of-core.")
        return chosen

    def only_of_fits(self) -> dict[str, Any]:
        """Return the options that only a fit has."""
        return {"--resume": self.resume}


PARTITION_OPTIONS = (
    option_parameter("cluster", ClusterAddress),
    new_option(
        "out_of_core",
        bool,
        "Fit shards one by one, mapped from the disk.",
        "--out-of-core",
        default=False,
    ),
    new_option(
        "resume", bool, "Of shards: go on where a fit was broken off.", "--resume", default=False
    ),
)


def takes_cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about partitions; it gets what they say as `partitions`."""
    return with_options(command, "partitions", PARTITION_OPTIONS, Partitions)


def refuse_unused(where: str, unused: dict[str, Any]) -> None:
    """Refuse options that partitions do not have."""
    given = [flag for flag, value in unused.items() if value]
    if given:
        raise typer.BadParameter(f"{where} has no {', '.join(given)}. Leave it out.")


def require_folder(out: str | None) -> str:
    """Return the folder that labels of partitions go into."""
    if out is None or out == STANDARD:
        raise typer.BadParameter("Labels of shards go into a folder: name it with -o FOLDER.")
    return out


def check_files(
    reads: Iterable[str | list[str] | None],
    writes: Iterable[str | None],
    *,
    are_tables: bool = True,
) -> None:
    """Refuse, before any work is done, files that cannot be read or written together.

    Standard input feeds one file only; a file to write needs its folder and must not be one that
    is read, nor be written twice. A table is not written under the name of another format.
    """
    from tiebreak.tables import refuse_unwritable_name

    given = [each for each in reads if each is not None]
    if "" in given or any("" in each for each in given if isinstance(each, list)):
        raise OptionError("The name of a file is empty. Name one; '.' is this folder.")
    read = [name for each in given for name in _names_of(each)]
    write = [f for f in writes if f]
    for names, stream in ((read, "input"), (write, "output")):
        if names.count(STANDARD) > 1:
            raise OptionError(f"Only one file can be '-', the standard {stream}. Name the others.")
    taken = {_real(name): name for name in read if name != STANDARD}
    for name in write:
        if name == STANDARD:
            continue
        path = _real(name)
        if path in taken:
            raise OptionError(f"{name} is read or written by this command already. Name another.")
        if are_tables:
            refuse_unwritable_name(name)
        _require_place(name, path)
        taken[path] = name


def _names_of(given: str | list[str]) -> list[str]:
    """Return the files that an argument names; those at an address cannot be written."""
    from tiebreak.tables.source import names_several

    names = [given] if isinstance(given, str) else given
    here = [name for name in names if "://" not in name]
    if len(names) == 1 and not any(map(names_several, here)):
        return names
    from tiebreak.tables.source import find_files

    return [file.path for file in find_files(here)]


def _require_place(name: str, path: Path) -> None:
    """Refuse a folder, and a file without a folder to be in."""
    if path.is_dir():
        raise FileError(f"{name} is a folder. Name a file in it, such as {name}/labels.csv.")
    if not path.parent.is_dir():
        raise FileError(f"{name} cannot be written: there is no folder {path.parent.name!r}.")


def refuse_model_name(name: str | None) -> None:
    """Refuse, before any work is done, a place where no model file can be written."""
    if name is None:
        return
    from tiebreak.life import model_file

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
