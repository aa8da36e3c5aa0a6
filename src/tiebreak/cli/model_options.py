"""Options of the models: what a command line says about the estimator, and the estimator of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tiebreak.cli.arguments import (
    number_or,
    option_parameter,
    trusted_workers,
    with_options,
    workers_named,
)
from tiebreak.cli.link_options import flags_of
from tiebreak.cli.options import Seed

if TYPE_CHECKING:
    from tiebreak.inference.estimator import Estimator

FLAGS = {  # of the command, by the estimator's name for them
    "confusion_prior": "--prior",
    "init": "--init",
    "worker_model": "--worker-model",
    "trust": "--trust",
    "saw_all": "--saw-all",
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
    "vb": "VariationalBayes",
    "ds": "DawidSkene",
    "mv": "MajorityVote",
    "pool": "LogOpinionPool",
    "auto": "Auto",
    "gibbs": "GibbsSampler",
}
PARAMETER = "model_options"  # of a command: what it gets is built from the options below

Method = Literal["vb", "ds", "mv", "pool", "auto", "gibbs"]
WorkerModelName = Literal[
    "confusion", "coin", "kinds", "subtypes", "kinds+subtypes", "communities", "auto"
]
Prior = Annotated[
    Literal["diagonal", "uniform"] | None,
    typer.Option(help="Prior of workers: better than chance, or none. [vb: diagonal]"),
]
WorkerModel = Annotated[
    WorkerModelName | None, typer.Option(help="How workers are modelled. [vb, ds: confusion]")
]
Trust = Annotated[
    str | None,
    typer.Option(help="Workers known to be good: ann, or ann=50,bob=20.", metavar="NAMES"),
]
SawAll = Annotated[
    str | None,
    typer.Option(help="Who saw every task, so that silence counts.", metavar="all|NAMES"),
]
GoldWeight = Annotated[
    str | None,
    typer.Option(
        help="How often a known task counts for its workers. [vb, ds: auto]", metavar="auto|N"
    ),
]
Init = Annotated[
    Literal["majority", "spectral"] | None,
    typer.Option(help="Start from votes, or from moments. [vb: majority]"),
]
Calibrate = Annotated[
    Literal["auto", "votes", "none"] | None,
    typer.Option(help="Honest probabilities: by gold and links, by votes, or not. [vb: auto]"),
]
NoCalibrate = Annotated[bool, typer.Option("--no-calibrate", hidden=True)]
Dependence = Annotated[
    float | None,
    typer.Option(help="How much errors are shared: .35 people, .5 LLM judges.", metavar="X"),
]
OnContradiction = Annotated[
    Literal["error", "drop"] | None,
    typer.Option(help="Links that contradict: refuse, or drop the cannot-link. [vb: error]"),
]
MaxIter = Annotated[int | None, typer.Option(help="The most sweeps.", metavar="N", min=1)]
Tol = Annotated[float | None, typer.Option(help="Stop below this change.", metavar="X", min=0.0)]
Accelerate = Annotated[bool | None, typer.Option(help="Fewer sweeps by SQUAREM. [accelerate]")]
Backend = Annotated[
    Literal["auto", "numpy", "numba", "cuda"] | None,
    typer.Option(help="Where sweeps run. [auto]"),
]
Chains = Annotated[
    int | None, typer.Option(help="Of gibbs: how many. [gibbs: 4]", metavar="N", min=1)
]
Draws = Annotated[
    int | None, typer.Option(help="Kept in each chain. [gibbs: 500]", metavar="N", min=4)
]


def takes_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of estimators; it gets those given, by the estimator's names."""
    made = [
        option_parameter("prior", Prior),
        option_parameter("worker_model", WorkerModel),
        option_parameter("trust", Trust),
        option_parameter("saw_all", SawAll),
        option_parameter("gold_weight", GoldWeight),
        option_parameter("init", Init),
        option_parameter("calibrate", Calibrate),
        option_parameter("no_calibrate", NoCalibrate, default=False),
        option_parameter("dependence", Dependence),
        option_parameter("on_contradiction", OnContradiction),
        option_parameter("max_iter", MaxIter),
        option_parameter("tol", Tol),
        option_parameter("accelerate", Accelerate),
        option_parameter("backend", Backend),
        option_parameter("chains", Chains),
        option_parameter("draws", Draws),
        option_parameter("seed", Seed),
    ]
    return with_options(command, PARAMETER, made, gather)


def gather(
    prior: str | None,
    trust: str | None,
    saw_all: str | None,
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
        "trust": None if trust is None else trusted_workers(trust),
        "saw_all": None if saw_all is None else workers_named(saw_all),
        "gold_weight": number_or(("auto",), "--gold-weight", gold_weight),
        "calibrate": "none" if no_calibrate else calibrate,
        "n_chains": chains,
        "n_draws": draws,
        "random_state": seed,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def build_estimator(method: Method, chosen: dict[str, Any]) -> Estimator:
    """Make the estimator with the options that were chosen; refuse those it does not have."""
    from tiebreak import inference

    estimator: Estimator = getattr(inference, ESTIMATORS[method])()  # the others are not loaded
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
