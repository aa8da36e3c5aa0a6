"""Options of the model: what a command line says about the estimator and about links.

Options of links are derived from `tiebreak.options`, where each is said once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from tiebreak.cli.arguments import (
    Seed,
    new_option,
    number_or,
    option_parameter,
    split_list,
    with_options,
)
from tiebreak.options import LINK_OPTIONS, LinkOptions, MeanFieldOptions

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator

FLAGS = {  # of the command, by the estimator's name for them
    "confusion_prior": "--prior",
    "members": "--members",
    "worker_model": "--worker-model",
    "trust": "--trust",
    "gold_weight": "--gold-weight",
    "calibrate": "--calibrate",
    "dependence": "--dependence",
    "on_contradiction": "--on-contradiction",
    "max_iter": "--max-iter",
    "accelerate": "--accelerate",
    "tol": "--tol",
    "backend": "--backend",
    "n_chains": "--chains",
    "n_draws": "--draws",
}
ESTIMATORS = {
    "auto": "Auto",
    "vb": "VariationalBayes",
    "ds": "DawidSkene",
    "mv": "MajorityVote",
    "gibbs": "GibbsSampler",
}
INFERENCE = "--link-inference"
TRUST = 50.0  # right answers to tasks of each class that a trusted worker starts with

Method = Literal["auto", "vb", "ds", "mv", "gibbs"]
WorkerModelName = str
OF_VB = ("worker_model", "gold_weight", "calibrate")  # which Auto has not

MODEL_OPTIONS = (
    new_option(
        "prior",
        Literal["diagonal", "uniform"] | None,
        "Prior of workers: better than chance, or none. [vb: diagonal]",
    ),
    new_option(
        "members",
        str | None,
        "Of auto: votes, first-step, even, kinds. [all]",
        metavar="NAMES",
    ),
    new_option(
        "worker_model",
        str | None,
        "How workers are modelled: confusion, coin, kinds, subtypes, … [vb, ds: confusion]",
        metavar="NAME",
    ),
    new_option(
        "trust", str | None, "Workers known to be good: ann, or ann=50,bob=20.", metavar="NAMES"
    ),
    new_option(
        "gold_weight",
        str | None,
        "How often a known task counts for its workers. [vb, ds: auto]",
        metavar="auto|N",
    ),
    new_option(
        "calibrate",
        Literal["auto", "votes", "none"] | None,
        "Honest probabilities: by gold and links, by votes, or not. [vb: auto]",
    ),
    new_option("no_calibrate", bool, "", "--no-calibrate", default=False, hidden=True),
    new_option(
        "dependence",
        float | None,
        "How much errors are shared: .35 people, .5 LLM judges.",
        metavar="X",
    ),
    new_option(
        "on_contradiction",
        Literal["error", "drop"] | None,
        "Links that contradict: refuse, or drop the cannot-link. [vb: error]",
    ),
    new_option("max_iter", int | None, "The most sweeps.", metavar="N", min=1),
    new_option("tol", float | None, "Stop below this change.", metavar="X", min=0.0),
    new_option("accelerate", bool | None, "Fewer sweeps by SQUAREM. [accelerate]"),
    new_option(
        "backend", Literal["auto", "numpy", "numba", "cuda"] | None, "Where sweeps run. [auto]"
    ),
    new_option("chains", int | None, "Of gibbs: how many. [gibbs: 4]", metavar="N", min=1),
    new_option("draws", int | None, "Kept in each chain. [gibbs: 500]", metavar="N", min=4),
    option_parameter("seed", Seed),
)


def takes_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of estimators; it gets those given, by the estimator's names."""
    return with_options(command, "model_options", MODEL_OPTIONS, gather)


def gather(
    prior: str | None,
    members: str | None,
    trust: str | None,
    gold_weight: str | None,
    calibrate: str | None,
    no_calibrate: bool,
    chains: int | None,
    draws: int | None,
    seed: int | None,
    **same: Any,
) -> dict[str, Any]:
    """Return what was given, as the estimators call and take it; `same` is as it stands."""
    chosen = same | {
        "confusion_prior": prior,
        "members": None if members is None else tuple(split_list(members)),
        "trust": None if trust is None else trusted_workers(trust),
        "gold_weight": number_or(("auto",), "--gold-weight", gold_weight),
        "calibrate": "none" if no_calibrate else calibrate,
        "n_chains": chains,
        "n_draws": draws,
        "random_state": seed,
    }
    return {name: value for name, value in chosen.items() if value is not None}


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


def default_method(
    chosen: dict[str, Any],
    link_options: LinkOptions | None = None,
    *,
    over_shards: bool = False,
    keeps_counts: bool = False,
) -> Method:
    """Return the method where none was named: auto, or vb where only that has what was chosen."""
    needs_vb = over_shards or keeps_counts or isinstance(link_options, MeanFieldOptions)
    return "vb" if needs_vb or any(name in chosen for name in OF_VB) else "auto"


def build_estimator(method: Method, chosen: dict[str, Any]) -> Estimator:
    """Make the estimator with the options that were chosen; refuse those it does not have."""
    import tiebreak as tb

    estimator: Estimator = getattr(tb, ESTIMATORS[method])()  # the others are not loaded
    known = estimator.get_params()
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if "random_state" not in known:
        chosen.pop("random_state", None)  # nothing is random in it: any seed will do
    unknown = [flag for name, flag in FLAGS.items() if name in chosen and name not in known]
    if "link_options" in chosen and "link_options" not in known:
        unknown += flags_of(chosen["link_options"])
    if unknown:
        raise typer.BadParameter(f"--method {method} has no {', '.join(unknown)}. Leave it out.")
    return estimator.set_params(**chosen)


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
        return new_option(self.argument, str | None, metadata["help"], self.name, metavar=metavar)

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


def takes_link_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each field; it gets what they say as `link_options`."""

    def gather(**given: Any) -> LinkOptions | None:
        inference = given.pop(inferred.name)
        return read_link_options(inference, {flag: given[flag.argument] for flag in flags()})

    how = "exact, or mean-field (the paper's)."
    inferred = new_option("link_inference", str | None, how, INFERENCE, metavar="NAME")
    made = [inferred, *(flag.parameter() for flag in flags())]
    return with_options(command, "link_options", made, gather)


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


def error_flag() -> Flag:
    """Return --link-error, which commands without other options of links have too."""
    return next(flag for flag in flags() if flag.field.name == "error")


LinkError = Annotated[
    str | None, typer.Option(help=error_flag().field.metadata["help"], metavar="RATE")
]


def error_rate(link_error: str | None) -> float | str | None:
    """Read --link-error: a rate, or a word that the model knows."""
    return None if link_error is None else error_flag().read(link_error)
