"""What the commands that ask people share: options, and the desk made of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from tiebreak.cli.arguments import (
    STANDARD,
    Seed,
    new_option,
    option_parameter,
    split_list,
    split_pairs,
    with_options,
)
from tiebreak.cli.model_options import LinkError, error_rate
from tiebreak.cli.tables import (
    AmongFile,
    Columns,
    GoldFile,
    InputTables,
    LinksFile,
    Question,
    TasksFile,
    format_choices,
    read_inputs,
)
from tiebreak.errors import OptionError

if TYPE_CHECKING:
    from tiebreak.ask import Desk

SessionFile = Annotated[
    str, typer.Option(help="Where answers are kept; made if not there.", metavar="FILE")
]
NamedResponses = Annotated[
    list[str],
    typer.Argument(
        help="Tables of task, worker, label: files, 'patterns*', folders.", metavar="RESPONSES"
    ),
]
Strategy = Annotated[
    Literal["adaptive", "bvsb", "random"], typer.Option(help="How pairs are chosen.")
]
QuestionKinds = Annotated[
    str | None,
    typer.Option("--kinds", help="What may be asked: same, label, is, vote.", metavar="A,B,…"),
]
QuestionCosts = Annotated[
    str | None,
    typer.Option(help="What a question costs: label=2,same=1; or time.", metavar="PAIRS"),
]


class Asking(NamedTuple):
    """What was chosen about the tables and the questions."""

    links: str | None
    gold: str | None
    tasks: str | None
    among: str | None
    budget: int | None
    target: float | None
    question_costs: str | None
    wording: str | None
    class_texts: str | None
    batch: int
    link_error: str | None
    columns: str | None
    question: str | None
    seed: int | None

    def files(
        self, responses: list[str], texts: str | None, why_named: str
    ) -> tuple[str | list[str] | None, ...]:
        """Return the files to read; none can be standard input, which `why_named` explains."""
        reads = (self.links, self.gold, self.tasks, texts, self.among, self.class_texts)
        if STANDARD in (*responses, *reads):
            raise OptionError(f"{why_named}, so no file can be '-'. Name the file.")
        return (responses, *reads)

    def read(self, responses: list[str], texts: str | None = None) -> InputTables:
        """Read the tables."""
        return read_inputs(
            responses,
            links=self.links,
            gold=self.gold,
            tasks=self.tasks,
            among=self.among,
            texts=texts,
            columns=self.columns,
            choices=format_choices(self.question),
        )

    def desk(
        self,
        session: str,
        given: InputTables,
        texts: Mapping[Hashable, str] | None,
        kinds: str | None,
        **more: Any,
    ) -> Desk:
        """Open the desk at which people answer."""
        from tiebreak.ask import Desk

        costs = self.question_costs
        return Desk(
            session,
            given.responses,
            links=given.links,
            gold=given.gold,
            texts=texts,
            among=given.among,
            budget=self.budget,
            target=self.target,
            random_state=self.seed,
            batch=self.batch,
            link_error=error_rate(self.link_error),
            kinds=kinds_given(kinds),
            costs="time" if costs == "time" else costs_given(costs),
            wording=self.wording,
            class_texts=self.class_texts,
            **more,
        )


ASKING_OPTIONS = (
    option_parameter("links", LinksFile),
    option_parameter("gold", GoldFile),
    option_parameter("tasks", TasksFile),
    option_parameter("among", AmongFile),
    new_option(
        "budget", int | None, "Stop after so many answers, all runs counted.", metavar="N", min=0
    ),
    new_option(
        "target", float | None, "Stop when this share of labels should be right.", metavar="P"
    ),
    option_parameter("question_costs", QuestionCosts),
    new_option("wording", str | None, "The same in what sense: 'the same intent'.", metavar="TEXT"),
    new_option("class_texts", str | None, "Table of class, text: what each means.", metavar="FILE"),
    new_option("batch", int, "Answers between two fits.", default=20, metavar="N", min=1),
    option_parameter("link_error", LinkError),
    option_parameter("columns", Columns),
    option_parameter("question", Question),
    option_parameter("seed", Seed),
)


def takes_asking_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of asking; it gets what they say as `asking`."""
    return with_options(command, "asking", ASKING_OPTIONS, Asking)


def kinds_given(kinds: str | None) -> tuple[str, ...] | None:
    """Read --kinds; None where it is not given."""
    return None if kinds is None else tuple(split_list(kinds))


def costs_given(costs: str | None) -> dict[str, float] | None:
    """Read --question-costs, kind=cost for each kind; None where it is not given."""
    if costs is None:
        return None
    found = {}
    for kind, cost in split_pairs("--question-costs", costs).items():
        try:
            found[kind] = float(str(cost))
        except ValueError:
            raise typer.BadParameter(
                f"--question-costs: the cost of {kind} must be a number; got {cost!r}."
            ) from None
    return found
