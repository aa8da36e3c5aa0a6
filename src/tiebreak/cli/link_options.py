"""Options of links on the command line, derived from `tiebreak.options`: said there once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import Field, fields
from typing import Annotated, Any, NamedTuple

import typer

from tiebreak.cli.arguments import number_or, option_parameter, with_options
from tiebreak.options import LINK_OPTIONS, LinkOptions

INFERENCE = "--link-inference"
PARAMETER = "link_options"  # of a command: what it gets is built from its options


class Flag(NamedTuple):
    """One option of the command line, and the field that it sets."""

    kind: type[LinkOptions]
    field: Field[Any]

    @property
    def name(self) -> str:
        """How the command line spells it."""
        return str(self.field.metadata["flag"])

    @property
    def argument(self) -> str:
        """The name of the command's parameter."""
        return self.name.removeprefix("--").replace("-", "_")

    def parameter(self) -> inspect.Parameter:
        """Return the parameter of a command that typer makes the option from."""
        metadata = self.field.metadata
        metavar = metadata["number"] or "|".join(metadata["words"])
        option = typer.Option(self.name, help=metadata["help"], metavar=metavar)
        annotation = Annotated[str | None, option]
        return option_parameter(self.argument, annotation)

    def read(self, text: str) -> float | str | None:
        """Read what was given: a number, or one of the words."""
        metadata = self.field.metadata
        if metadata["number"]:
            return number_or(metadata["words"], self.name, text)
        if text not in metadata["words"]:
            raise typer.BadParameter(
                f"{self.name} takes {' or '.join(metadata['words'])}; got {text!r}."
            )
        return text


def flags() -> Iterator[Flag]:
    """Return every option of links that the command line has."""
    for kind in LINK_OPTIONS.values():
        for each in fields(kind):
            if "flag" in each.metadata:
                yield Flag(kind, each)


def error_flag() -> Flag:
    """Return --link-error, which commands without other options of links have too."""
    return next(flag for flag in flags() if flag.field.name == "error")


def takes_link_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each field; it gets what they say as `link_options`."""

    def gather(**given: Any) -> LinkOptions | None:
        inference = given.pop(made[0].name)
        return read_link_options(inference, {flag: given[flag.argument] for flag in flags()})

    made = [_inference(), *(flag.parameter() for flag in flags())]
    return with_options(command, PARAMETER, made, gather)


def read_link_options(inference: str | None, texts: dict[Flag, str | None]) -> LinkOptions | None:
    """Return the options that were given, None where none was; refuse those of the other kind."""
    if inference is not None and inference not in LINK_OPTIONS:
        raise typer.BadParameter(
            f"{INFERENCE} takes {' or '.join(LINK_OPTIONS)}; got {inference!r}."
        )
    kind = LINK_OPTIONS[inference or "exact"]
    given = {flag: text for flag, text in texts.items() if text is not None}
    for flag in given:
        if flag.kind is not kind:
            raise typer.BadParameter(f"{flag.name} is for {INFERENCE} {flag.kind.name}.")
    if inference is None and not given:
        return None
    values: dict[str, Any] = {flag.field.name: flag.read(text) for flag, text in given.items()}
    return kind(**values)


def refuse_without_links(
    links: str | None, options: LinkOptions | None, on_contradiction: str | None
) -> None:
    """Refuse options of links where there are none."""
    if not links and (options or on_contradiction):
        unused = flags_of(options) if options else ["--on-contradiction"]
        raise typer.BadParameter(f"{', '.join(unused)} needs --links. Leave it out.")


def flags_of(options: LinkOptions) -> list[str]:
    """Return the options of the command line that say this."""
    is_default = isinstance(options, LINK_OPTIONS["exact"])
    said = [] if is_default else [INFERENCE]
    for flag in flags():
        is_own = isinstance(options, flag.kind)
        if is_own and getattr(options, flag.field.name) != flag.field.default:
            said.append(flag.name)
    return said or [INFERENCE]


def _inference() -> inspect.Parameter:
    option = typer.Option(INFERENCE, help="exact, or mean-field (the paper's).", metavar="NAME")
    return option_parameter("link_inference", Annotated[str | None, option])
