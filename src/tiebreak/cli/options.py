"""Options that several commands have, each declared once, and what they stand for.

An option that people look for has a flag. Every other option of Python (of reading, of an
estimator, of a desk) is reached by `--set name=value`; whoever has an option of that name takes it
from `OptionValues`, and checks its value.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tiebreak.cli import messages as messages
from tiebreak.cli.output import STANDARD
from tiebreak.errors import FileError, OptionError, note
from tiebreak.options import LINK_OPTIONS, LinkOptions, MeanFieldOptions

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator

Method = Literal["auto", "vb", "ds", "mv", "gibbs"]
ESTIMATORS: dict[Method, str] = {
    "auto": "Auto",
    "vb": "VariationalBayes",
    "ds": "DawidSkene",
    "mv": "MajorityVote",
    "gibbs": "GibbsSampler",
}
TRUST = 50.0  # right answers to tasks of each class that a trusted worker starts with

ResponsesArgument = Annotated[
    list[str],
    typer.Argument(
        help="Tables of task, worker, label: files, 'patterns*', folders; - is stdin.",
        metavar="RESPONSES",
    ),
]
ModelArgument = Annotated[str, typer.Argument(help="A model file.", metavar="MODEL.tbm")]
OutOption = Annotated[
    str | None,
    typer.Option("-o", "--out", help="Write labels here, not to stdout.", metavar="FILE"),
]
LinksOption = Annotated[
    str | None, typer.Option(help="Table of left, right, link (must|cannot).", metavar="FILE")
]
GoldOption = Annotated[
    str | None, typer.Option(help="Table of task, label: known classes.", metavar="FILE")
]
TextsOption = Annotated[
    str | None, typer.Option(help="Table of task, text: what to show.", metavar="FILE")
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(help="Names of columns, in any table: task=item,left=…", metavar="PAIRS"),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any other option, such as question=NAME; an unknown name lists all.",
        metavar="NAME=VALUE",
    ),
]
MethodOption = Annotated[
    Method | None,
    typer.Option(
        help="auto: a committee of models near the votes, vb: variational Bayes, ds: Dawid-Skene, "
        "mv: majority vote, gibbs: sampling. [auto, or vb where only that can]"
    ),
]
ProbabilitiesOption = Annotated[
    bool, typer.Option("--probabilities", help="Add one column per class.")
]
SaveOption = Annotated[
    str | None,
    typer.Option(help="Save the model, for predict, update, stream.", metavar="MODEL.tbm"),
]
KeepOption = Annotated[
    Literal["responses", "counts"] | None,
    typer.Option(help="Save all responses, or only counts of them. [responses, or as it is]"),
]
WaitOption = Annotated[
    float,
    typer.Option(
        help="Wait so long while another process writes the model.", metavar="SECONDS", min=0.0
    ),
]
ByOption = Annotated[
    str | None, typer.Option("--by", help="Table of task, system: who made the answer.")
]
AcceptsOption = Annotated[
    str | None, typer.Option(help="The class that accepts an answer, with --by.", metavar="CLASS")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(help="Work on shards with Dask: tcp://HOST:8786, or local:N.", metavar="ADDRESS"),
]
OutOfCoreOption = Annotated[
    bool, typer.Option("--out-of-core", help="Work on shards one by one, mapped from the disk.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SummaryOption = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON on stdout; needs -o.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


def split_list(text: str) -> list[str]:
    """Split at commas; quotes protect a comma inside a name.

    >>> split_list('a , "b, c"')
    ['a', 'b, c']
    """
    return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]


def split_pairs(option: str, text: str | None) -> dict[str, str]:
    """Read name=value,name=value.

    >>> split_pairs("--columns", "task=item,label=answer")
    {'task': 'item', 'label': 'answer'}
    """
    pairs = [] if text is None else [part.partition("=") for part in split_list(text)]
    if text is not None and not (pairs and all(name and is_ and to for name, is_, to in pairs)):
        raise OptionError("pairs-expected", option=option, text=text)
    return {name.strip(): value.strip() for name, _, value in pairs}


def split_numbers(option: str, text: str | None, example: str) -> dict[Any, float] | None:
    """Read name=number,name=number; None where nothing is given.

    >>> split_numbers("--prices", "gpt=0.002,claude=0.004", "gpt=0.002")
    {'gpt': 0.002, 'claude': 0.004}
    """
    if text is None:
        return None
    try:
        return {name: float(number) for name, number in split_pairs(option, text).items()}
    except ValueError:
        raise OptionError("numbers-expected", option=option, example=example, text=text) from None


def one_or_all(names: list[str]) -> str | list[str]:
    """Return the one name that was given, or all: `tiebreak fuse p1.csv` reads one file."""
    return names[0] if len(names) == 1 else names


# --set


class OptionValues:
    """What `--set name=value` was given, until somebody takes it."""

    def __init__(self, given: list[str] | None) -> None:
        pairs = (each.partition("=") for each in given or ())
        self.left = {
            name.strip().replace("-", "_"): value if is_ else "true" for name, is_, value in pairs
        }
        self.known: dict[str, None] = {}

    def take(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the values of these options, as far as they were given."""
        names = list(names)
        self.known |= dict.fromkeys(names)
        return {name: read_value(name, self.left.pop(name)) for name in names if name in self.left}

    def finish(self) -> None:
        """Refuse what nobody took."""
        for name in self.left:
            raise OptionError("unknown-setting", name=name, known=list(self.known))


LISTS = ("classes", "task_columns", "worker_columns", "members", "kinds", "order")
TEXTS = (
    *("format", "question", "repeats", "tasks", "among", "sampling", "order_column", "field"),
    *("task_pattern", "label_pattern", "label_pointer", "wording", "class_texts"),
)
WORDS = {"yes": True, "true": True, "no": False, "false": False}


def read_value(name: str, text: str) -> Any:
    """Return what a value of `--set` stands for: a list, a text, JSON, yes or no, or a word.

    >>> read_value("max_iter", "20"), read_value("wide", "no"), read_value("members", "votes,even")
    (20, False, ['votes', 'even'])
    >>> read_value("trust", "ann,bob=20"), read_value("backend", "numpy")
    ({'ann': 50.0, 'bob': 20.0}, 'numpy')
    """
    if name == "costs":
        return text if text == "time" else split_numbers("--set costs", text, "label=2")
    if name == "trust":
        given = ",".join(part if "=" in part else f"{part}={TRUST}" for part in split_list(text))
        return split_numbers("--set trust", given, "ann=50")
    if name in LISTS:
        return split_list(text)
    if name in TEXTS:
        return text
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for read in (json.loads, float):
        with contextlib.suppress(ValueError):
            return read(text)
    return text


def reading_options() -> list[str]:
    """Return the names of the options of reading that `--set` reaches."""
    from tiebreak.tables import ReadingOptions

    return [*(each.name for each in fields(ReadingOptions) if each.name != "columns"), "sampling"]


def link_names() -> Iterator[tuple[str, type[LinkOptions], str]]:
    """Return each option of links: its name in `--set`, the class that has it, its field."""
    for kind in LINK_OPTIONS.values():
        for each in fields(kind):
            yield f"link_{each.name}", kind, each.name


def take_link_options(settings: OptionValues) -> LinkOptions | None:
    """Return the options of links that were set, None where none was.

    >>> take_link_options(OptionValues(["link_error=learn"])).error
    'learn'
    >>> take_link_options(OptionValues(["link_strength=0.25"])).name
    'mean-field'
    """
    asked = settings.take(["link_options"]).get("link_options")
    if asked is not None and asked not in LINK_OPTIONS:
        raise OptionError.unknown("link_options", asked, tuple(LINK_OPTIONS))
    chosen: dict[type[LinkOptions], dict[str, Any]] = {}
    for name, kind, field in link_names():
        for value in settings.take([name]).values():
            given = tuple(value) if isinstance(value, list) else value
            chosen.setdefault(kind, {})[field] = given
    if asked is not None:
        chosen.setdefault(LINK_OPTIONS[asked], {})
    if len(chosen) > 1:
        exact, mean_field = (next(iter(chosen[kind]), "") for kind in LINK_OPTIONS.values())
        raise OptionError(
            "links-of-two-kinds",
            exact=f"link_{exact or 'options=exact'}",
            mean_field=f"link_{mean_field or 'options=mean-field'}",
        )
    for kind, values in chosen.items():
        return kind(**values)
    return None


def refuse_link_settings(settings: OptionValues, links: str | None) -> None:
    """Refuse options of links where there are none."""
    for name in settings.left:
        if name.startswith("link_") or name == "on_contradiction":
            require(f"--set {name}", True, "--links", links)


def build_estimator(
    method: Method | None,
    settings: OptionValues,
    defaults: Mapping[str, Any],
    *,
    needs_vb: bool = False,
) -> tuple[Method, Estimator]:
    """Make the estimator of a method, with its options; `defaults` count where it has them.

    Without a method it is auto, or vb where something was set that only vb has.
    """
    import tiebreak as tb

    mean_field = [name for name, kind, _ in link_names() if kind is MeanFieldOptions]
    needs_vb |= settings.left.get("link_options") == MeanFieldOptions.name
    needs_vb |= not settings.left.keys().isdisjoint(mean_field)
    tried: list[Method] = ["vb"] if needs_vb else ["auto", "vb"]
    for name in tried if method is None else [method]:
        estimator: Estimator = getattr(tb, ESTIMATORS[name])()
        known = estimator.get_params()
        has_links = "link_options" in known
        names = {*known, *((each for each, *_ in link_names()) if has_links else ())}
        if settings.left.keys() <= names:
            break
    links = take_link_options(settings) if has_links else None
    chosen = {key: value for key, value in defaults.items() if key in known}
    chosen |= settings.take(sorted(known.keys() - {"link_options", "progress"}))
    if links is not None:
        chosen["link_options"] = links
    settings.finish()
    return name, estimator.set_params(**chosen)


# Arguments of Python, by which messages name options, and how a command spells them.
FLAGS = {
    **{name: f"--{name}" for name in ("gold", "links", "texts", "columns", "kinds", "budget")},
    **{name: f"--{name}" for name in ("save", "keep", "wait", "again", "force", "resume")},
    **{name: f"--{name.replace('_', '-')}" for name in ("cost_matrix", "abstain_rate")},
    **{name: f"--{name}" for name in ("selection", "accepts", "truth", "probabilities")},
    "systems": "--by",
    "overwrite": "--force",
}
SETTINGS = (
    *("format", "question", "repeats", "tasks", "classes", "fold_labels", "multi_label", "wide"),
    *("task_columns", "worker_columns", "order_column", "turned", "sampling"),
    *("task_pattern", "label_pattern", "label_pointer", "members", "class_prior"),
    *("confusion_prior", "worker_model", "trust", "gold_weight", "calibrate", "dependence"),
    *("on_contradiction", "tol", "max_iter", "accelerate", "backend", "smoothing", "n_chains"),
    *("n_warmup", "n_draws", "random_state", "init", "link_error", "among", "target", "batch"),
    *("strategy", "stop_when_worth_less_than", "wording", "class_texts", "level", "human_error"),
)
ARGUMENT = re.compile(
    r"(?<![\w.'\"{-])(?:"
    r"columns=\{(?P<columns>[^}]*)\}"
    r"|(?:link_options=)?(?:tb\.)?(?:ExactLinkOptions|MeanFieldOptions)"
    r"(?:\.(?P<field>\w+)|\((?P<set>\w+)=(?P<to>[^)]+)\))"
    r"|(?P<name>[a-z]+(?:_[a-z]+)*\b)(?!-)"
    r"(?:(?P<equals>=)(?P<value>'[^']*'|\"[^\"]*\"|\[[^]]*\]|[\w…/]+(?:\.\w+)?)?)?)"
)


def as_cli_options(message: object) -> str:
    """Name arguments of Python as commands spell them.

    >>> as_cli_options("Give gold=, choose repeats='last', or raise max_iter.")
    'Give --gold, choose --set repeats=last, or raise --set max_iter.'
    >>> as_cli_options("Try link_options=tb.ExactLinkOptions(error=0.02), or weights.")
    'Try --set link_error=0.02, or weights.'
    >>> as_cli_options("Name it: columns={'task': 'item'}, or multi_label=True for all questions.")
    'Name it: --columns task=item, or --set multi_label for all questions.'
    >>> as_cli_options("Name them: worker_columns=['ann', 'bob'], or classes=.")
    'Name them: --set worker_columns=ann,bob, or --set classes.'
    """
    is_own = getattr(message, "code", None) in messages.OWN
    return str(message) if is_own else ARGUMENT.sub(_as_option, str(message))


def _as_option(found: re.Match[str]) -> str:
    if found["columns"] is not None:
        return "--columns " + re.sub(r"['\"\s]", "", found["columns"]).replace(":", "=")
    if found["name"] is None:
        value = "" if found["to"] is None else f"={found['to']}"
        return f"--set link_{found['field'] or found['set']}{value}"
    name, value = found["name"], found["value"] or ""
    if not found["equals"] and "_" not in name:
        return found[0]  # a word as any other
    if value.startswith("["):
        value = re.sub(r"[\[\]'\"\s]", "", value)
    bare = value if re.search(r"[\s()]", value) else value.strip("'\"")
    if name in FLAGS:
        return f"{FLAGS[name]} {bare}".rstrip().removesuffix(" True")
    if name in SETTINGS:
        given = {"": "", "True": "", "False": "=no"}.get(bare, f"={bare}")
        return f"--set {name}{given}"
    return found[0]


# Tables


def read_inputs(
    responses: list[str],
    columns: str | None,
    reading: Mapping[str, Any],
    names: Mapping[str, str | None],
    *,
    may_be_empty: bool = False,
    has_media: bool = False,
) -> SimpleNamespace:
    """Read responses and the tables beside them; `names` has files by what they hold.

    Names of columns are shared out among all of them. What a file marks as true is gold, unless
    gold is given. With `may_be_empty` a table without rows counts as not given; with `has_media`
    texts are those of the page: by what they are, text, markdown, image or audio.
    """
    from tiebreak import tables
    from tiebreak.tables.source import NoRowsError

    options = dict(reading)
    sampling = options.pop("sampling", None)
    sources = {"responses": one_or_all(responses) if responses else None, **names}
    tasks = options.pop("tasks", None)
    opened = tables.open_tables(
        sources | {"tasks": tasks}, split_pairs("--columns", columns), **options
    )

    def read(what: str, reader: Callable[..., Any], **more: Any) -> Any:
        try:
            return opened[what].read(reader, **more) if what in opened else None
        except NoRowsError:
            if may_be_empty:
                return None
            raise

    known_tasks = read("tasks", tables.read_tasks)
    export = read("responses", tables.read_export, tasks=known_tasks)
    given = SimpleNamespace(
        responses=None if export is None else export.responses,
        columns=None if export is None else export.columns,
        form=None if export is None else export.form,
        links=read("links", tables.read_links, sampling=sampling),
        gold=read("gold", tables.read_gold),
        truth=read("truth", tables.read_gold),
        among=read("among", tables.read_tasks),
        texts=read("texts", tables.read_contents if has_media else tables.read_texts),
        systems=read("systems", tables.read_systems),
        selection=read("selection", tables.read_selection),
    )
    if export is not None and export.gold is not None:
        if given.gold is not None:
            note("gold-overrides-file", n=len(export.gold), file=responses[0])
        given.gold = export.gold if given.gold is None else given.gold
    if options.get("fold_labels") and export is not None:
        for name in ("gold", "truth"):
            known = getattr(given, name)
            if known is not None:
                setattr(given, name, known.with_labels_like(export.responses.classes))
    return given


def texts_of_export(responses: list[str]) -> dict[Any, str] | None:
    """Return the texts that stand beside the answers in the export of a tool."""
    from tiebreak.tables.formats import read_texts
    from tiebreak.tables.source import is_packed

    source = one_or_all(responses)
    if source == STANDARD or is_packed(source):  # the one can be read only once
        return None
    return read_texts(source) or None


# Files


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
        raise OptionError("file-name-empty")
    read = [name for each in given for name in _names_of(each)]
    write = [name for name in writes if name]
    for names, stream in ((read, "input"), (write, "output")):
        if names.count(STANDARD) > 1:
            raise OptionError("stdin-twice", stream=stream)
    taken = {_real(name) for name in read if name != STANDARD}
    for name in write:
        if name == STANDARD:
            continue
        path = _real(name)
        if path in taken:
            raise OptionError("file-taken", file=name)
        if are_tables:
            refuse_unwritable_name(name)
        if path.is_dir():
            raise FileError("out-is-folder", file=name)
        if not path.parent.is_dir():
            raise FileError("out-folder-missing", file=name, folder=path.parent.name)
        taken.add(path)


def _names_of(given: str | list[str]) -> list[str]:
    """Return the files that an argument names; those at an address cannot be written."""
    from tiebreak.tables.source import find_files, names_several

    names = [given] if isinstance(given, str) else given
    here = [name for name in names if "://" not in name]
    if len(names) == 1 and not any(map(names_several, here)):
        return names
    return [file.path for file in find_files(here)]


def _real(name: str) -> Path:
    """Return where a path leads; a loop of symbolic links leads nowhere, and is refused."""
    path = Path(os.path.realpath(name))
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise FileError("file-not-usable", file=name, reason=error.strerror) from None
    return path


def check_model_name(name: str | None) -> None:
    """Refuse, before any work is done, a place where no model file can be written."""
    if name is None:
        return
    from tiebreak.life import model_file

    model_file.refuse_unwritable(name)


def make_folder(name: str) -> Path:
    """Return the folder of that name, made if it is not there."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError("out-folder-not-made", folder=name, reason=error.strerror) from None
    return folder


def require(option: str, is_given: object, other: str, has_other: object) -> None:
    """Refuse an option without another that it needs."""
    if is_given and not has_other:
        raise OptionError("option-needs", option=option, other=other)
