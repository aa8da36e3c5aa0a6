"""What the commands about judges share: options, and a model fitted to what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tiebreak.cli.arguments import split_pairs
from tiebreak.cli.errors import working
from tiebreak.cli.fuse import Method, build_estimator
from tiebreak.cli.options import InputTables, read_inputs

if TYPE_CHECKING:
    from tiebreak.inference.estimator import Estimator

JUDGES = 0.5  # how much the errors of LLM judges are shared, before gold says otherwise

Dependence = Annotated[
    float,
    typer.Option(help="How much errors are shared: .35 people, .5 LLM judges.", metavar="X"),
]
MethodName = Annotated[Method, typer.Option(help="How responses are fused.")]
SystemsFile = Annotated[
    str | None,
    typer.Option("--by", help="Table of task, system: what each task is about.", metavar="FILE"),
]
Accepts = Annotated[
    str | None, typer.Option(help="The class that accepts an answer, with --by.", metavar="CLASS")
]
Prices = Annotated[
    str | None, typer.Option(help="What one call of a judge costs.", metavar="JUDGE=X,…")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Judged(NamedTuple):
    """A fitted model, and the tables that it was fitted to."""

    model: Estimator
    given: InputTables


def fit_judges(
    responses: str,
    *,
    method: Method = "vb",
    dependence: float = JUDGES,
    quiet: bool = False,
    **tables: Any,
) -> Judged:
    """Read the tables and fit a model with the gold among them."""
    known = {} if method == "mv" else {"dependence": dependence}
    estimator = build_estimator(method, known)
    with working("reading and fitting", quiet=quiet):
        given = read_inputs(responses, **tables)
        model = estimator.fit(given.responses, links=given.links, gold=given.gold)
    return Judged(model, given)


def require_both(by: str | None, accepts: str | None) -> None:
    """Refuse --by without --accepts, and the other way round: self-preference needs both."""
    if accepts is not None and by is None:
        raise typer.BadParameter("--accepts needs --by FILE, which says who made each answer.")
    if by is not None and accepts is None:
        raise typer.BadParameter("--by needs --accepts CLASS, the class that accepts an answer.")


def read_prices(option: str, text: str | None) -> dict[Any, float] | None:
    """Read JUDGE=X,JUDGE=X.

    >>> read_prices("--prices", "gpt=0.002,claude=0.004")
    {'gpt': 0.002, 'claude': 0.004}
    """
    if text is None:
        return None
    try:
        return {name: float(price) for name, price in split_pairs(option, text).items()}
    except ValueError:
        raise typer.BadParameter(
            f"{option} takes JUDGE=PRICE, such as gpt=0.002; got {text!r}."
        ) from None
