"""How Sphinx builds the site: `make docs`. Pages are the Markdown files of the repository.

The source folder is the repository itself, so that links between pages hold on the site as they do
in the repository. Nothing is loaded from elsewhere: formulas become MathML, fonts are the system's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import tiebreak  # noqa: E402

project = "tiebreak"
author = "The tiebreak authors"
copyright = author
version = release = tiebreak.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["docs/**", "experiments/**", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
include_patterns += ["build/commands.md"]  # written below
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]  # links to folders; CSV
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebooks keep their outputs, which tests renew and compare

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": False}
napoleon_custom_sections = [("Attributes", "params_style")]

html_theme = "furo"
html_title = f"tiebreak {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]


def math(_: Any, node: nodes.math | nodes.math_block, display: str) -> str:
    """Return a formula as MathML, which browsers show without a script."""
    return convert(node.astext(), display=display)


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(math(self, node, "inline"))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(math(self, node, "block"))
    raise nodes.SkipNode


def write_commands(app: Any) -> None:
    """Write the help of every command, as `tiebreak COMMAND --help` prints it, into one page."""
    import typer.main

    from tiebreak.cli.app import app as commands

    lines = ["# Commands", ""]

    def add(command: Any, name: str, parent: Any) -> None:
        context = command.context_class(command, info_name=name, parent=parent)
        lines.extend([f"## {context.command_path}", "", "```text", command.get_help(context)])
        lines.extend(["```", ""])
        for each in getattr(command, "list_commands", lambda _: [])(context):
            child = command.get_command(context, each)
            if not child.hidden:
                add(child, each, context)

    add(typer.main.get_command(commands), "tiebreak", None)
    page = ROOT / "build" / "commands.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n".join(lines), "utf-8")


def write_llms_txt(app: Any, error: Exception | None) -> None:
    """List the pages with their titles for readers that are programs (llmstxt.org)."""
    if error is not None:
        return
    titles = app.env.titles
    lines = ["# tiebreak", "", "> Noisy labels into labels you can trust.", ""]
    for tree in app.env.toctree_includes.values():
        lines += [f"- [{titles[page].astext()}]({page}.html)" for page in tree]
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def setup(app: Any) -> None:
    app.connect("builder-inited", write_commands)
    app.connect("build-finished", write_llms_txt)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
