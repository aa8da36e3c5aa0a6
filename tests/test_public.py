"""What the outside sees: names, imports, README, documentation, pins."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from pages import output_of, rounded, steps

import tiebreak as tb

NUMBER = re.compile(r"\d+\.\d+")  # the last digits of a probability may be the processor's
ROOT = Path(__file__).resolve().parent.parent

DOCS = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "experiments").rglob("*.md"))]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
HEAVY = {"duckdb", "matplotlib", "numba", "pandas", "polars", "pyarrow", "scipy", "sklearn"}

PUBLIC = {
    "__version__",
    # data
    *("Responses", "Links", "Constraints", "Gold", "Labels", "Sequences"),
    *("read_responses", "read_links", "read_constraints", "read_gold", "read_labels"),
    # estimators
    *("MajorityVote", "DawidSkene", "VariationalBayes", "GibbsSampler", "Auto", "load"),
    *("ClassifierPrior", "ExactLinkOptions", "MeanFieldOptions", "SequenceOptions"),
    "BradleyTerry",
    # rooms
    *("ask", "bench", "datasets", "decide", "errors", "evaluate", "judges"),
    *("research", "selection", "shards", "simulate"),
    # errors and warnings; the others are in tb.errors
    *("TiebreakError", "InputError", "InputNote"),
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run_python(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python as a user would, without the settings of pytest, and with no key struck."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def imported_by(*arguments: str) -> set[str]:
    """Return the top-level names of all modules that a run of Python imports."""
    done = run_python("-X", "importtime", *arguments)
    assert done.returncode == 0, done.stderr
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


# Ids


def test_the_public_names_are_exactly_these() -> None:
    assert set(tb.__all__) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__"}))
def test_every_public_name_loads_and_says_what_it_is(name: str) -> None:
    assert (inspect.getdoc(getattr(tb, name)) or "").strip()


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'fuse_all'"):
        tb.fuse_all  # noqa: B018


# Imports


def test_importing_the_package_is_light() -> None:
    imported = imported_by("-c", "import tiebreak")
    assert "tiebreak" in imported
    assert not imported & HEAVY


def test_asking_for_help_is_light() -> None:
    imported = imported_by("-m", "tiebreak", "--help")
    assert "tiebreak" in imported
    assert not imported & HEAVY


UNLOADED = {  # by a fit whose links have no loop, tie no three tasks, and hold for sure; no gold
    *(
        "inference.tasks.mean_field",
        "inference.sequencing",
        "estimators.auto",
        "estimators.gold_stage",
    ),
    *("links.chains", "links.feasible", "links.check"),
    *("decide", "judges", "life", "report", "selection", "shards", "tables.array_folder"),
}


def test_a_fit_loads_only_what_it_needs() -> None:
    script = """
import sys, tiebreak as tb
votes = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x"), ("c", "bob", "z")]
links = tb.Links.from_rows([("a", "b", "cannot"), ("b", "c", "cannot")])
tb.{method}().fit(votes, links=links)
print(*sorted(name.removeprefix("tiebreak.") for name in sys.modules))
"""
    plain = run_python("-W", "ignore", "-c", script.format(method="VariationalBayes"))
    assert plain.returncode == 0, plain.stderr
    assert not UNLOADED & set(plain.stdout.split())
    more = run_python("-W", "ignore", "-c", script.format(method="Auto"))
    assert "estimators.auto" in more.stdout.split()


def test_a_small_fit_compiles_nothing() -> None:
    votes = "[('a', 'ann', 'x'), ('b', 'ann', 'y'), ('b', 'bob', 'x')]"
    links = "tb.Links.from_pairs(cannot=[('a', 'b')])"
    code = f"import tiebreak as tb; tb.VariationalBayes().fit({votes}, links={links})"
    imported = imported_by("-c", code)
    assert "numpy" in imported
    assert not imported & {"numba", "polars", "sklearn"}  # pyarrow itself loads pandas


# Equations

KEY = re.compile(r"\[eq:([a-z0-9-]+)\]")
DEFINITION = re.compile(r"^\*\*\[eq:([a-z0-9-]+)\]\*\*", re.MULTILINE)
KEYED_EQUATION = re.compile(r"^\*\*\[eq:[a-z0-9-]+\]\*\*[^\n]*\n\n\$\$\n", re.MULTILINE)


def defined_keys() -> list[str]:
    return [key for page in DOCS for key in DEFINITION.findall(page.read_text("utf-8"))]


def test_every_equation_key_is_defined_once() -> None:
    assert defined_keys()
    assert {key: n for key, n in Counter(defined_keys()).items() if n > 1} == {}


@pytest.mark.parametrize("folder", ["src", "tests", "docs"])
def test_every_equation_that_is_cited_stands_in_the_docs(folder: str) -> None:
    files = [p for p in (ROOT / folder).rglob("*") if p.suffix in {".py", ".md"}]
    cited = {key: name_of(p) for p in files for key in KEY.findall(p.read_text("utf-8"))}
    assert folder == "tests" or cited
    assert {key: file for key, file in cited.items() if key not in defined_keys()} == {}


def test_every_equation_is_computed_in_one_module_beside_its_kernels() -> None:
    """A key in brackets says: computed here. Elsewhere the thing is called by its name."""
    where: dict[str, set[str]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        if "kernels" not in path.parts:
            for key in KEY.findall(path.read_text("utf-8")):
                where.setdefault(key, set()).add(name_of(path))
    assert {key: files for key, files in where.items() if len(files) > 1} == {}


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_every_displayed_equation_has_a_key(page: Path) -> None:
    text = page.read_text("utf-8")
    displayed = len(re.findall(r"^\$\$$", text, re.MULTILINE)) // 2
    assert displayed == len(KEYED_EQUATION.findall(text)) == len(DEFINITION.findall(text))


# README and documentation

BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *kinds: str) -> list[str]:
    """Return the fenced blocks of a page whose first line is one of these words."""
    return [body for kind, body in BLOCK.findall(page.read_text("utf-8")) if kind in kinds]


def commands(page: Path) -> list[str]:
    """Return the commands of a page: what follows a dollar sign in its console blocks."""
    lines = (line for block in blocks(page, "console", "bash") for line in block.splitlines())
    return [line.removeprefix("$ ").partition("  #")[0] for line in lines if line.startswith("$ ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that holds what the README reads."""
    crowd = tb.simulate.crowd(60, 8, 3, random_state=0)
    known = list(crowd.gold.to_dict().items())
    crowd.responses.write(tmp_path / "responses.csv")
    tb.simulate.links(crowd.gold, 30, random_state=1).write(tmp_path / "links.csv")
    tb.Gold.from_dict(dict(known[:10])).write(tmp_path / "gold.csv")
    tb.Gold.from_dict(dict(known[10:])).write(tmp_path / "truth.csv")
    return tmp_path


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """Return a copy of the folder of examples, which the README and the tutorial read."""
    return Path(shutil.copytree(ROOT / "examples", tmp_path / "examples"))


def test_the_python_of_the_readme_prints_what_it_shows(examples: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    shown = re.findall(r"^```python\n(.*?)^```\n+```text\n(.*?)^```$", text, re.M | re.S)
    assert len(shown) == len(blocks(ROOT / "README.md", "python")) == 2
    for code, output in shown:
        done = run_python("-W", "ignore", "-c", code, cwd=examples)
        assert done.returncode == 0, done.stderr
        numbers = [NUMBER.findall(each) for each in (done.stdout, output)]
        assert [float(n) for n in numbers[0]] == pytest.approx([float(n) for n in numbers[1]])
        assert NUMBER.sub("#", done.stdout) == NUMBER.sub("#", output)
    assert len(tb.read_labels(examples / "verdicts.csv")) == 50


def test_the_commands_of_the_readme_print_what_they_show(
    examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(examples)
    shown = [one for block in blocks(ROOT / "README.md", "console run") for one in steps(block)]
    assert len(shown) >= 4
    for command, output in shown:
        assert rounded(output_of(command)) == rounded(output), command


def test_the_readme_says_of_its_picture_what_was_measured() -> None:
    kept = (ROOT / "experiments" / "06_first_look" / "results.json").read_text("utf-8")
    cells = json.loads(kept)["cells"].values()
    assert sum(cell["tiebreak"] < cell["majority"] for cell in cells) == 9
    assert sum(cell["with links"] < cell["majority"] for cell in cells) == len(cells) == 10


def test_the_examples_are_what_their_command_makes(tmp_path: Path) -> None:
    done = run_python(str(ROOT / "examples" / "make.py"), str(tmp_path))
    assert done.returncode == 0, done.stderr
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {name: (ROOT / "examples" / name).read_bytes() for name in made}
    assert len(made) == 5
    assert made == kept


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    wanted = {line.split()[1] for line in commands(page) if line.startswith("make ")}
    assert wanted <= set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))


def test_the_readme_names_its_two_commands() -> None:
    assert {"make demo", "make test"} <= set(commands(ROOT / "README.md"))


def test_contributing_opens_with_targets_of_the_makefile() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert text.startswith("# Contributing\n\n```console\n")
    named = re.findall(r"^\$ make ([\w-]+)", blocks(ROOT / "CONTRIBUTING.md", "console")[0], re.M)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert len(named) == 7
    assert set(named) <= set(targets)


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_the_python_of_the_documentation_runs(page: Path, folder: Path) -> None:
    for code in blocks(page, "python run"):
        done = run_python("-c", code, cwd=folder)
        assert done.returncode == 0, done.stderr


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = page.parent / path if path else page
        assert other.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", other.read_text("utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), f"{name_of(page)} links to {target}"


def test_every_page_of_the_documentation_is_reached_from_its_index() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = re.findall(r"\]\(([^)#\s]+\.md)", page.read_text("utf-8"))
        linked = {(page.parent / target).resolve() for target in targets}
        waiting += [other for other in linked if other in DOCS and other not in reached]
    assert [name_of(page) for page in DOCS if page not in reached] == []


# Versions and pins


def test_the_changelog_and_the_citation_have_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## \[([^\]]+)\]", changelog, re.MULTILINE)
    assert versions[:2] == ["Unreleased", tb.__version__]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [tb.__version__]


def pins(name: str) -> dict[str, list[str]]:
    """Return the hashes of every pinned requirement, by the line that pins it."""
    text = (ROOT / "requirements" / name).read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {
        line.partition(" --hash")[0].strip(): re.findall(r"sha256:\w{64}", line) for line in lines
    }


@pytest.mark.parametrize("name", ["run.txt", "dev.txt", "docs.txt", "bench.txt"])
def test_every_requirement_is_pinned_with_hashes_and_names_no_index(name: str) -> None:
    assert all(hashes and re.match(r"[\w.-]+==", pin) for pin, hashes in pins(name).items())
    assert not re.search(
        r"://|--(extra-)?index|find-links", (ROOT / "requirements" / name).read_text()
    )


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups, extras = project["dependency-groups"], project["project"]["optional-dependencies"]
    needed = [*project["project"]["dependencies"], *groups["build"], *groups["test"]]
    needed += [each for name in ("page", "plot", "dask") for each in extras[name]]
    bounds = {re.match(r"([\w-]+)>=([\d.]+)", each).groups() for each in needed}  # type: ignore[union-attr]
    text = (ROOT / "requirements" / "oldest.txt").read_text("utf-8")
    oldest = dict(re.findall(r"^([\w-]+)==([\d.]+)", text, re.MULTILINE))
    assert set(oldest) - {"click"} == {name for name, _ in bounds}  # see the file about click
    padded = {(name, re.sub(r"(\.0)+$", "", oldest[name])) for name, _ in bounds}
    assert padded == {(name, re.sub(r"(\.0)+$", "", bound)) for name, bound in bounds}
    assert not re.search(r"://|--(extra-)?index|find-links", text)


def test_demo_and_tests_agree_on_versions() -> None:
    assert pins("run.txt")
    assert set(pins("run.txt")) <= set(pins("dev.txt"))


def test_no_name_of_a_class_is_used_twice() -> None:
    where: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, []).append(path.name)
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def public_objects() -> dict[str, object]:
    """Return what `tb` offers, and what its rooms offer, by name."""
    found: dict[str, object] = {}
    for name in set(tb.__all__) - {"__version__"}:
        offered = found[name] = getattr(tb, name)
        for inner in getattr(offered, "__all__", ()) if inspect.ismodule(offered) else ():
            found[f"{name}.{inner}"] = getattr(offered, inner)
    return found


def test_public_names_and_their_methods_have_docstrings() -> None:
    missing = []
    for name, offered in public_objects().items():
        if not isinstance(offered, type) and not inspect.isroutine(offered):
            continue
        if not inspect.getdoc(offered):
            missing.append(name)
        for member in vars(offered) if isinstance(offered, type) else ():
            made = getattr(offered, member)
            is_method = inspect.isroutine(made) or isinstance(vars(offered)[member], property)
            if not member.startswith("_") and is_method and not inspect.getdoc(made):
                missing.append(f"{name}.{member}")
    assert missing == []
