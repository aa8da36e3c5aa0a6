"""What the commands about judges share: options, and a model fitted to what was read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tiebreak.cli.arguments import option_parameter, split_pairs, with_options
from tiebreak.cli.messages import working
from tiebreak.cli.model_options import Method, build_estimator
from tiebreak.cli.tables import (
    Classes,
    Columns,
    FoldLabels,
    GoldFile,
    InputTables,
    Question,
    Repeats,
    format_choices,
    read_inputs,
)

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator

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


PARAMETER = "judging"  # of a command: what it gets is built from the options below


class Judged(NamedTuple):
    """A fitted model, and the tables that it was fitted to."""

    model: Estimator
    given: InputTables


class Judging(NamedTuple):
    """What was chosen about responses of judges and how they are fused."""

    gold: str | None
    method: Method
    dependence: float
    columns: str | None
    repeats: Any
    classes: str | None
    fold_labels: bool
    question: str | None

    @property
    def reads_plainly(self) -> bool:
        """Whether nothing was chosen about how the responses are read, but names of columns."""
        return (
            self.repeats is None
            and self.classes is None
            and not self.fold_labels
            and not self.question
        )

    def fit(self, responses: list[str], *, quiet: bool, **tables: Any) -> Judged:
        """Read the responses, gold and other tables, and fit a model."""
        known = {} if self.method == "mv" else {"dependence": self.dependence}
        estimator = build_estimator(self.method, known)
        with working("reading and fitting", quiet=quiet):
            given = read_inputs(
                responses,
                gold=self.gold,
                columns=self.columns,
                repeats=self.repeats,
                classes=self.classes,
                fold_labels=self.fold_labels,
                choices=format_choices(self.question),
                **tables,
            )
            model = estimator.fit(given.responses, links=given.links, gold=given.gold)
        return Judged(model, given)


def takes_judging_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about judges; it gets what they say as `judging`."""
    made = [
        option_parameter("gold", GoldFile),
        option_parameter("method", MethodName, default="auto"),
        option_parameter("dependence", Dependence, default=JUDGES),
        option_parameter("columns", Columns),
        option_parameter("repeats", Repeats),
        option_parameter("classes", Classes),
        option_parameter("fold_labels", FoldLabels, default=False),
        option_parameter("question", Question),
    ]
    return with_options(command, PARAMETER, made, Judging)


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
