"""Options that several commands have, each declared once, and what they stand for.

An option that people look for has a flag. Every other option of Python (of reading, of an
estimator, of a desk) is reached by `--set name=value`: whoever has an option of that name takes it
from `OptionValues`, and checks its value.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tiebreak.cli import messages
from tiebreak.cli.output import STANDARD
from tiebreak.errors import FileError, OptionError, note
from tiebreak.options import (
    ExactLinkOptions,
    LinkOptions,
    MeanFieldOptions,
    SequenceOptions,
    require_word,
)

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator


def option(metavar: str, help: str, *flags: str, **more: Any) -> Any:
    return typer.Option(*flags, metavar=metavar, help=help, **more)


def file(help: str, *flags: str) -> Any:
    return option("FILE", help, *flags)


def flag(name: str, help: str) -> Any:
    return typer.Option(name, help=help)


TABLES = "Tables of task, worker, label: files, 'patterns*', folders; - is stdin."
METHODS = (
    "auto: a committee of models near the votes, vb: variational Bayes, ds: Dawid-Skene, "
    "mv: majority vote, gibbs: sampling. [auto, or vb where only that can]"
)
Method = Literal["auto", "vb", "ds", "mv", "gibbs"]
Text = str | None

Responses = Annotated[list[str], typer.Argument(metavar="RESPONSES", help=TABLES)]
ResponsesIfAny = Annotated[list[str] | None, typer.Argument(metavar="[RESPONSES]", help=TABLES)]
Model = Annotated[str, typer.Argument(metavar="MODEL.tbm", help="A model file.")]
Out = Annotated[Text, file("Write labels here, not to stdout.", "-o", "--out")]
Links = Annotated[Text, file("Table of left, right, link (must|cannot).")]
Sequences = Annotated[Text, file("Table of task, sequence, position, text.")]
Groups = Annotated[Text, file("Table of task, group, with --rule.")]
Rule = Annotated[
    Text, option("RULE", "What holds in each group, as 'at most one 1' or 'exactly one cat'.")
]
Constraints = Annotated[
    Text, file("Constraints: JSON lines, or a table of constraint, task, label, count.")
]
Gold = Annotated[Text, file("Table of task, label: known classes.")]
Features = Annotated[
    Text, file("Table of task and columns of numbers, or one of text: learn from them.")
]
FeatureColumns = Annotated[
    Text, option("NAMES", "The columns of features to use. [all but the task]")
]
Texts = Annotated[Text, file("Table of task, text: what to show.")]
Columns = Annotated[Text, option("PAIRS", "Names of columns, in any table: task=item,left=…")]
Set = Annotated[
    list[str] | None,
    option("NAME=VALUE", "Any other option, as question=…; a wrong name lists all.", "--set"),
]
ByMethod = Annotated[Method | None, typer.Option("--method", help=METHODS)]
Scale = Annotated[
    Text, option("LEVELS", "Classes in order: 1..5, 0..100/20, none,mild,severe, or auto.")
]
Probabilities = Annotated[bool, flag("--probabilities", "Add one column per class.")]
Save = Annotated[Text, option("MODEL.tbm", "Save the model, for predict, update, stream.")]
Keep = Annotated[
    Literal["responses", "counts"] | None,
    typer.Option(help="Save all responses, or only counts of them. [responses, or as it is]"),
]
Wait = Annotated[
    float, option("SECONDS", "Wait so long while another process writes the model.", min=0.0)
]
By = Annotated[Text, file("Table of task, system: who made the answer.", "--by")]
Accepts = Annotated[Text, option("CLASS", "The class that accepts an answer, with --by.")]
Cluster = Annotated[
    Text, option("ADDRESS", "Work on shards with Dask: tcp://HOST:8786, or local:N.")
]
OutOfCore = Annotated[bool, flag("--out-of-core", "Work on shards one by one, from the disk.")]
AsJson = Annotated[bool, flag("--json", "Print JSON.")]
JsonSummary = Annotated[bool, flag("--json", "Print the summary as JSON; needs -o.")]
Force = Annotated[bool, flag("--force", "Overwrite existing files.")]


def split_list(text: str) -> list[str]:
    """Split at commas; quotes protect a comma inside a name.

    >>> split_list('a , "b, c"')
    ['a', 'b, c']
    """
    return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]


def split_pairs(name: str, text: str | None) -> dict[str, str]:
    """Read name=value,name=value.

    >>> split_pairs("--columns", "task=item,label=answer")
    {'task': 'item', 'label': 'answer'}
    """
    pairs = [] if text is None else [part.partition("=") for part in split_list(text)]
    if text is not None and not (pairs and all(key and is_ and to for key, is_, to in pairs)):
        raise OptionError("pairs-expected", option=name, text=text)
    return {key.strip(): value.strip() for key, _, value in pairs}


def split_numbers(name: str, text: str | None, example: str) -> dict[Any, float] | None:
    """Read name=number,name=number; None where nothing is given.

    >>> split_numbers("--prices", "gpt=0.002,claude=0.004", "gpt=0.002")
    {'gpt': 0.002, 'claude': 0.004}
    """
    try:
        found = {key: float(number) for key, number in split_pairs(name, text).items()}
    except ValueError:
        raise OptionError("numbers-expected", option=name, example=example, text=text) from None
    return None if text is None else found


def require(name: str, is_given: object, other: str, has_other: object) -> None:
    """Refuse an option without another that it needs."""
    if is_given and not has_other:
        raise OptionError("option-needs", option=name, other=other)


# --set

OF_RULES = ("groups", "rule", "constraints")
LISTS = ("classes", "covariates", "task_columns", "worker_columns", "members", "kinds", "order")
TEXTS = (
    *("format", "question", "repeats", "tasks", "among", "sampling", "order_column", "field"),
    *("task_pattern", "label_pattern", "label_pointer", "wording", "class_texts", "baseline"),
    *("scale", "nested", *OF_RULES),
)
WORDS = {"yes": True, "true": True, "no": False, "false": False}
TRUST = 50.0  # right answers to tasks of each class that a trusted worker starts with


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


def names_of_fields(prefix: str, kind: Any) -> set[str]:
    return {f"{prefix}{each.name}" for each in fields(kind)}


class OptionValues:
    """What `--set name=value` was given, until somebody takes it by its name."""

    def __init__(self, given: list[str] | None) -> None:
        pairs = (each.partition("=") for each in given or ())
        self.left = {
            name.strip().replace("-", "_"): value if is_ else "true" for name, is_, value in pairs
        }
        self.known: list[str] = []

    def take(self, *names: str) -> dict[str, Any]:
        """Return the values of these options, as far as they were given."""
        self.known += names
        return {name: read_value(name, self.left.pop(name)) for name in names if name in self.left}

    def take_fields(self, prefix: str, kind: type) -> dict[str, Any]:
        """Return the values of the fields of a class of options, such as link_error."""
        found = self.take(*sorted(names_of_fields(prefix, kind)))
        return {
            name.removeprefix(prefix): tuple(value) if isinstance(value, list) else value
            for name, value in found.items()
        }

    def take_last(self, *names: str) -> dict[str, Any]:
        """Take these options, and refuse what nobody took."""
        taken = self.take(*names)
        for name in self.left:
            close = get_close_matches(name, self.known, n=1)
            known = ", ".join(self.known)
            raise OptionError("unknown-setting", name=name, meant="".join(close), known=known)
        return taken


OF_PAIRS = ("format", "repeats", "baseline")  # what --set says of reading verdicts


class CommandInputs(OptionValues):
    """The tables that a command reads: files by what they hold, how they are read, and --set."""

    def __init__(
        self,
        responses: list[str],
        columns: str | None,
        given: list[str] | None,
        scale: str | None = None,
        **files: str | None,
    ) -> None:
        from tiebreak.tables import ReadingOptions

        super().__init__(given)
        self.responses = responses
        self.columns = split_pairs("--columns", columns)
        names = (each.name for each in fields(ReadingOptions) if each.name != "columns")
        if scale is not None:
            self.left["scale"] = scale
        if files.keys() >= {*OF_RULES}:
            files |= self.take(*(name for name in OF_RULES if files[name] is None))
        if "sequences" in files and files["sequences"] is None:
            files |= self.take("sequences")
        self.reading = self.take(*names, "sampling")
        self.scale: str | None = self.reading.get("scale")
        self.of_reading = tuple(self.known)
        self.files = {**files, "tasks": self.reading.pop("tasks", None)}
        self.feature_columns: list[str] | None = None
        self.are_pairs = False  # whether responses are verdicts on pairs of items
        self.rule = self.files.pop("rule", None)
        self.none = self.take("none") if "groups" in files else {}
        require("--set none", self.none, "--groups or --constraints", self.has_constraints)

    def is_of_reading(self, setting: str) -> bool:
        return setting.partition("=")[0].strip().replace("-", "_") in self.of_reading

    @property
    def has_constraints(self) -> bool:
        return any(self.files.get(name) for name in ("groups", "constraints"))

    def read_constraints(self) -> Any:
        """Return the constraints of both files, None where there are none."""
        files = (self.files.get("groups"), self.rule, self.files.get("constraints"))
        return read_constraints(*files, **self.none)

    @property
    def source(self) -> str | list[str]:
        """The one file of responses, or all of them."""
        return self.responses[0] if len(self.responses) == 1 else self.responses

    def of_features(self, chosen: str | None = None) -> CommandInputs:
        """Use some columns of the features alone, separated by commas, or what --set names."""
        self.known += ("feature_columns",)
        chosen = self.left.pop("feature_columns", chosen)
        require("--feature-columns", chosen, "--features", self.files.get("features"))
        self.feature_columns = None if chosen is None else split_list(chosen)
        return self

    def check(
        self, *writes: str | None, also: Iterable[str | None] = (), are_tables: bool = True
    ) -> None:
        """Refuse, before any work is done, files that cannot be read or written together."""
        reads = (self.responses, *self.files.values(), *also)
        check_files(reads, writes, are_tables=are_tables)

    def estimator(
        self, method: Method | None, *, needs_vb: bool = False, **defaults: Any
    ) -> tuple[Method, Estimator]:
        """Make the estimator of a method with the options left; `defaults` where it has them.

        Without a method it is auto, or vb where something was set that only vb has.
        """
        import tiebreak as tb

        for name in self.left:
            if name.startswith("link_") or name == "on_contradiction":
                require(f"--set {name}", True, "--links", self.files.get("links"))
        if self.scale is not None:
            if method not in (None, "auto", "vb"):
                raise OptionError("method-without-scale", method=method)
            self.left["scale"] = self.scale
        if method is None and (asked := self.take("method")):
            require_word("method", asked["method"], tuple(ESTIMATORS))
            method = asked["method"]
        of_mean_field = names_of_fields("link_", MeanFieldOptions)
        is_mean_field = self.left.get("link_options") == MeanFieldOptions.name
        is_mean_field = is_mean_field or not of_mean_field.isdisjoint(self.left)
        tried: list[Method] = ["vb"] if needs_vb or is_mean_field else ["auto", "vb"]
        for tried_name in tried if method is None else [method]:
            estimator: Estimator = getattr(tb, ESTIMATORS[tried_name])()
            known = set(estimator.get_params())
            can_be_set = set(known)
            if "link_options" in known:
                can_be_set |= of_mean_field | names_of_fields("link_", ExactLinkOptions)
            if "sequence_options" in known:
                can_be_set |= names_of_fields("sequence_", SequenceOptions)
            if self.left.keys() <= can_be_set:
                break
        chosen = {key: value for key, value in defaults.items() if key in known}
        if "link_options" in known:
            kind: type[LinkOptions] = MeanFieldOptions if is_mean_field else ExactLinkOptions
            words = self.take("link_options")
            for word in words.values():
                require_word("link_options", word, (ExactLinkOptions.name, MeanFieldOptions.name))
            if (given := self.take_fields("link_", kind)) or words:
                chosen["link_options"] = kind(**given)
        has_sequences = "sequence_options" in known
        if has_sequences and (given := self.take_fields("sequence_", SequenceOptions)):
            chosen["sequence_options"] = SequenceOptions(**given)
        own = {"link_options", "sequence_options", "progress"}
        chosen |= self.take_last(*sorted(known - own))
        return tried_name, estimator.set_params(**chosen)

    def read(self, *, may_be_empty: bool = False, has_media: bool = False) -> SimpleNamespace:
        """Read the tables; names of columns are shared out among all of them.

        What a file marks as true is gold, unless gold is given. With `may_be_empty` a table without
        rows counts as not given; with `has_media` texts are those of the page: by what they are,
        text, markdown, image or audio.
        """
        from tiebreak import tables
        from tiebreak.tables.source import NoRowsError

        options = dict(self.reading)
        sampling = options.pop("sampling", None)
        others = {k: each for k, each in self.files.items() if k not in ("groups", "constraints")}
        has_table = bool(self.responses) and not self.are_pairs
        sources = {"responses": self.source if has_table else None, **others}
        array = None  # features without the names of tasks
        if str(sources.get("features")).endswith(".npy"):
            array = sources.pop("features")
        verdicts, columns = None, dict(self.columns or {})
        if self.are_pairs:
            from tiebreak.tables.pairs import read_pairs

            own = {name: options.pop(name) for name in OF_PAIRS if name in options}
            verdicts, columns = read_pairs(self.source, columns=columns, **own), {}
        opened = tables.open_tables(sources, columns, **options)

        def read(what: str, reader: Callable[..., Any], **more: Any) -> Any:
            try:
                return opened[what].read(reader, **more) if what in opened else None
            except NoRowsError:
                if may_be_empty:
                    return None
                raise

        tasks = read("tasks", tables.read_tasks)
        export = read("responses", tables.read_export, tasks=tasks)
        features = read("features", tables.read_features, chosen=self.feature_columns)
        if array is not None:
            features = tables.read_features(array, tasks=tasks)
        found = SimpleNamespace(
            features=features,
            responses=verdicts if export is None else export.responses,
            columns=None if export is None else export.columns,
            form=None if export is None else export.form,
            links=read("links", tables.read_links, sampling=sampling),
            sequences=read("sequences", tables.read_sequences),
            constraints=self.read_constraints(),
            gold=read("gold", tables.read_gold),
            truth=read("truth", tables.read_gold),
            among=read("among", tables.read_tasks),
            texts=read("texts", tables.read_contents if has_media else tables.read_texts),
            systems=read("systems", tables.read_systems),
            selection=read("selection", tables.read_selection),
        )
        if export is not None and export.gold is not None:
            if found.gold is not None:
                note("gold-overrides-file", n=len(export.gold), file=self.responses[0])
            found.gold = export.gold if found.gold is None else found.gold
        if export is not None and export.sequences is not None and found.sequences is None:
            found.sequences = export.sequences
        if options.get("fold_labels") and export is not None:
            for name in ("gold", "truth"):
                if (known := getattr(found, name)) is not None:
                    setattr(found, name, known.with_labels_like(export.responses.classes))
        return found

    def texts_of_export(self) -> dict[Any, str] | None:
        """Return the texts that stand beside the answers in the export of a tool."""
        from tiebreak.tables.formats import read_texts
        from tiebreak.tables.source import is_packed

        if self.source == STANDARD or is_packed(self.source):  # the one can be read only once
            return None
        return read_texts(self.source) or None


def read_constraints(
    groups: str | None, rule: str | None, constraints: str | None, **none: Any
) -> Any:
    """Return the constraints of both files, None where there are none."""
    import tiebreak as tb

    require("--rule", rule, "--groups", groups)
    require("--groups", groups, "--rule", rule)
    made = tb.Constraints.groups(groups, rule, **none) if groups and rule else None
    if constraints:
        more = replace(tb.read_constraints(constraints), **none)
        made = more if made is None else made + more
    return made


ESTIMATORS: dict[Method, str] = {
    "auto": "Auto",
    "vb": "VariationalBayes",
    "ds": "DawidSkene",
    "mv": "MajorityVote",
    "gibbs": "GibbsSampler",
}

# Arguments of Python, by which messages name options, and how a command spells them.
FLAGS = {
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("gold", "links", "texts", "columns", "kinds", "save", "sequences", "scale", "keep"),
            *("constraints", "groups", "rule", "wait", "again", "force", "selection", "accepts"),
            *("truth", "probabilities", "features", "feature_columns", "cost_matrix", "pairs"),
        )
    },
    "systems": "--by",
    "overwrite": "--force",
}
SETTINGS = (
    *("format", "question", "repeats", "tasks", "classes", "fold_labels", "multi_label", "wide"),
    *("task_columns", "worker_columns", "order_column", "turned", "sampling"),
    *("task_pattern", "label_pattern", "label_pointer", "members", "class_prior", "nested"),
    *("confusion_prior", "worker_model", "trust", "gold_weight", "calibrate", "dependence"),
    *("on_contradiction", "tol", "max_iter", "accelerate", "backend", "smoothing", "n_chains"),
    *("n_warmup", "n_draws", "random_state", "init", "link_error", "among", "target", "batch"),
    *("strategy", "stop_when_worth_less_than", "wording", "class_texts", "level", "human_error"),
    *("abstain_rate", "resume", "budget", "forget", "none", "baseline"),
    *("judges", "prompts", "position", "sharpness", "together", "covariates", "spread"),
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


# Files


def check_files(
    reads: Iterable[str | list[str] | None],
    writes: Iterable[str | None],
    *,
    are_tables: bool = True,
) -> None:
    """Refuse files that cannot be read or written together.

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
            raise FileError("target-is-folder", folder=name)
        if not path.parent.is_dir():
            raise FileError("target-folder-missing", file=name, folder=path.parent)
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
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError("out-folder-not-made", folder=name, reason=error.strerror) from None
    return folder
